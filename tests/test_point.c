/*
 * A dataset at a point, and ranges.
 */
#include "config.h"

#include "testing.h"

#include "fail.h"
#include "point.h"

#include <stdlib.h>

static const struct {
	const char *text, *dataset, *branch;
	enum point_kind kind;
	uint64_t txn;
} good[] = {
	{ "a", "a", NULL, POINT_NONE, 0 },
	{ "a/b c", "a/b c", NULL, POINT_NONE, 0 },
	{ "a:dev", "a", "dev", POINT_NONE, 0 },
	{ "a@t42", "a", NULL, POINT_TXN, 42 },
	{ "a:dev@t42", "a", "dev", POINT_TXN, 42 },
	{ "a@2026-01-05T12:00:00Z", "a", NULL, POINT_TIME, 0 },
	{ "a:dev@2026-01-05T12:00:00+01:00", "a", "dev", POINT_TIME, 0 },
	/* the last '@' starts the point */
	{ "\xc3\xa4@b@t1", "\xc3\xa4@b", NULL, POINT_TXN, 1 },
	{ "a@t18446744073709551615", "a", NULL, POINT_TXN, UINT64_MAX },
};

static void test_dataset_point_parse__good__parts(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct dataset_point p;

		REQUIRE_OK(dataset_point_parse(good[i].text, &p, &err));
		CHECK_STR_EQ(good[i].dataset, p.dataset);
		CHECK_STR_EQ(good[i].branch, p.branch);
		CHECK_INT_EQ(good[i].kind, p.point.kind);
		CHECK_INT_EQ(good[i].txn, p.point.txn);
		dataset_point_release(&p);
	}
}

static void test_dataset_point_parse__bad__is_usage(void)
{
	static const char *const bad[] = {
		"",	 "@t1",		 ":b",
		"a:",	 "a@",		 "a@42",
		"a@t",	 "a@t0",	 "a@t01",
		"a@t-1", "a@t1x",	 "a@T1",
		"a@tt1", "a@2026-01-05", "a@t18446744073709551616",
	};
	struct incr_error err = INCR_ERROR_INIT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dataset_point p;

		CHECK_ERR(INCR_E_INVALID,
			  dataset_point_parse(bad[i], &p, &err));
		CHECK_STR_EQ("usage", err.word);
	}
	incr_error_release(&err);
}

static void test_point_range_parse__ends__may_be_open(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct point_range range;

	REQUIRE_OK(point_range_parse("t3..t7", &range, &err));
	CHECK_INT_EQ(3, range.from.txn);
	CHECK_INT_EQ(7, range.to.txn);
	REQUIRE_OK(point_range_parse("..t7", &range, &err));
	CHECK_INT_EQ(POINT_NONE, range.from.kind);
	CHECK_INT_EQ(7, range.to.txn);
	REQUIRE_OK(point_range_parse("t3..", &range, &err));
	CHECK_INT_EQ(POINT_NONE, range.to.kind);
	REQUIRE_OK(point_range_parse(
		"2026-01-05T12:00:00.25Z..2026-01-05T12:00:01Z", &range, &err));
	CHECK_INT_EQ(750000000, range.to.time_ns - range.from.time_ns);

	CHECK_ERR(INCR_E_INVALID, point_range_parse("t3", &range, &err));
	CHECK_ERR(INCR_E_INVALID, point_range_parse("t3...t7", &range, &err));
	CHECK_ERR(INCR_E_INVALID, point_range_parse("a..b", &range, &err));
	incr_error_release(&err);
}

static const struct testing_test tests[] = {
	TEST(test_dataset_point_parse__good__parts),
	TEST(test_dataset_point_parse__bad__is_usage),
	TEST(test_point_range_parse__ends__may_be_open),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "point", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
