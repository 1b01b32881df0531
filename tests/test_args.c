/*
 * Options by table.
 */
#include "config.h"

#include "testing.h"

#include "args.h"
#include "fail.h"

#include <stdlib.h>

struct options {
	bool is_big;
	const char *mode;
	struct args_list names;
	struct args_number limit;
	struct args_signed version;
};

#define OPTION(field) offsetof(struct options, field)

static const struct args_option table[] = {
	{ "big", 'b', ARGS_FLAG, OPTION(is_big), NULL, "" },
	{ "mode", 0, ARGS_TEXT, OPTION(mode), "one|two", "" },
	{ "name", 'n', ARGS_LIST, OPTION(names), "NAME", "" },
	{ "limit", 0, ARGS_NUMBER, OPTION(limit), "N", "" },
	{ "version", 0, ARGS_SIGNED, OPTION(version), "N", "" },
	ARGS_END,
};

#define ARGV(...)                         \
	{                                 \
		"verb", __VA_ARGS__, NULL \
	}

static int parse(const char **argv, struct options *o,
		 struct args_result *result, struct incr_error *err)
{
	struct args_target target = { table, o };
	int argc = 0;

	*o = (struct options){ 0 };
	while (argv[argc])
		argc++;
	return args_parse(argc, (char **)argv, &target, 1, ARGS_MIXED, result,
			  err);
}

static void test_args_parse__mixed__options_anywhere(void)
{
	const char *argv[] = ARGV("x", "-b", "y", "--name=a", "-n", "b", "-nc",
				  "--", "-b", "z");
	struct incr_error err = INCR_ERROR_INIT;
	struct args_result result;
	struct options o;
	struct args_target target = { table, &o };

	REQUIRE_OK(parse(argv, &o, &result, &err));
	CHECK(o.is_big);
	REQUIRE_INT_EQ(2, result.n_args);
	CHECK_STR_EQ("x", result.args[0]);
	CHECK_STR_EQ("y", result.args[1]);
	REQUIRE_INT_EQ(3, o.names.n);
	CHECK_STR_EQ("c", o.names.items[2]);
	CHECK(result.has_dashes);
	REQUIRE_INT_EQ(2, result.n_rest);
	CHECK_STR_EQ("-b", result.rest[0]);
	free(result.args);
	args_release(&target, 1);
}

static void test_args_parse__dashes_as_value__are_no_end(void)
{
	const char *argv[] = ARGV("-n", "--");
	struct incr_error err = INCR_ERROR_INIT;
	struct args_result result;
	struct options o;
	struct args_target target = { table, &o };

	REQUIRE_OK(parse(argv, &o, &result, &err));
	CHECK(!result.has_dashes);
	CHECK_INT_EQ(1, o.names.n);
	free(result.args);
	args_release(&target, 1);
}

static void test_args_parse__values__checked(void)
{
	const char *good[] =
		ARGV("--limit=7", "--version", "-3", "--mode", "two");
	const char *bad[][4] = {
		ARGV("--limit=-1"),	ARGV("--limit=x"), ARGV("--limit"),
		ARGV("--version=1.5"),	ARGV("--mode=on"), ARGV("--mode="),
		ARGV("--nothing"),	ARGV("-x"),	   ARGV("--big=1"),
		ARGV("--mode=one|two"), ARGV("-n"),
	};
	struct incr_error err = INCR_ERROR_INIT;
	struct args_result result;
	struct options o;

	REQUIRE_OK(parse(good, &o, &result, &err));
	CHECK_INT_EQ(7, o.limit.value);
	CHECK_INT_EQ(-3, o.version.value);
	CHECK_STR_EQ("two", o.mode);
	free(result.args);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_ERR(INCR_E_INVALID, parse(bad[i], &o, &result, &err));
	incr_error_release(&err);
}

static void test_args_pairs__table__first_equals_splits(void)
{
	const char *items[] = { "k=v", "a=b=c", "e=" };
	const char *bad[] = { "novalue" }, *empty[] = { "=v" };
	struct args_list list = { 3, items };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_pairs pairs;

	REQUIRE_OK(args_pairs(&list, &pairs, &err));
	REQUIRE_INT_EQ(3, pairs.n);
	CHECK_STR_EQ("a", pairs.items[1].key);
	CHECK_STR_EQ("b=c", pairs.items[1].value);
	CHECK_STR_EQ("", pairs.items[2].value);
	args_pairs_release(&pairs);

	list = (struct args_list){ 1, bad };
	CHECK_ERR(INCR_E_INVALID, args_pairs(&list, &pairs, &err));
	list = (struct args_list){ 1, empty };
	CHECK_ERR(INCR_E_INVALID, args_pairs(&list, &pairs, &err));
	incr_error_release(&err);
}

static const struct testing_test tests[] = {
	TEST(test_args_parse__mixed__options_anywhere),
	TEST(test_args_parse__dashes_as_value__are_no_end),
	TEST(test_args_parse__values__checked),
	TEST(test_args_pairs__table__first_equals_splits),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "args", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
