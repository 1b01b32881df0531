/* Schemas: versioned with the view that they were set on. */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <string.h>

static int set(struct store_kit *k, const char *branch, const char *text)
{
	return incr_schema_set(k->st, k->dataset, branch, text, strlen(text),
			       store_kit_err(k));
}

/* "" when there is none. */
static void check(struct store_kit *k, uint64_t txn, const char *want)
{
	char *text = NULL;
	size_t length = 0;
	int r = incr_schema_get(k->st, k->dataset, txn, &text, &length,
				store_kit_err(k));

	CHECK_INT_EQ(!*want, r);
	CHECK_STR_EQ(want, text ? text : "");
	CHECK_INT_EQ(strlen(want), length);
	free(text);
}

static void test_schema__set_between_transactions__belongs_to_the_view(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	check(&k, 0, "");
	CHECK_OK(set(&k, NULL, "0"));
	check(&k, 0, "0");
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	store_kit_commit(&k, INCR_APPEND, NULL, "b=1");
	CHECK_OK(set(&k, NULL, "2"));
	CHECK_OK(set(&k, NULL, "2 again"));
	store_kit_commit(&k, INCR_SNAPSHOT, NULL, "c=1");
	for (int i = 0; i < 2; i++) {
		check(&k, 0, "0");
		check(&k, 1, "0");
		check(&k, 2, "2 again");
		check(&k, 3, "2 again");
		CHECK_OK(index_flush(k.st->index, NULL));
		CHECK_OK(store_kit_reopen(&k));
	}
	store_kit_release(&k);
}

static void test_schema__branches_and_resets__follow_the_path(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	CHECK_OK(set(&k, NULL, "1"));
	CHECK_OK(incr_branch_create(k.st, k.dataset, "b", "main", 1, NULL));
	store_kit_commit(&k, INCR_APPEND, NULL, "m=1");
	CHECK_OK(set(&k, NULL, "main 2"));
	store_kit_commit(&k, INCR_APPEND, "b", "b=1");
	check(&k, 3, "1");
	CHECK_OK(set(&k, "b", "b 3"));
	check(&k, 3, "b 3");
	check(&k, 2, "main 2");
	CHECK_OK(incr_branch_reset(k.st, k.dataset, "main", 1, NULL));
	store_kit_commit(&k, INCR_APPEND, NULL, "n=1");
	check(&k, 4, "1");
	check(&k, 2, "main 2");
	store_kit_release(&k);
}

static void test_schema__bad_ones__are_refused(void)
{
	struct store_kit k;
	char *large = malloc((1 << 20) + 2), *got;
	size_t length;

	REQUIRE(store_kit_init(&k));
	memset(large, ' ', (1 << 20) + 1);
	CHECK_ERR(INCR_E_RANGE, incr_schema_set(k.st, k.dataset, NULL, large,
						(1 << 20) + 1, NULL));
	CHECK_OK(incr_schema_set(k.st, k.dataset, NULL, large, 1 << 20, NULL));
	CHECK_OK(incr_schema_get(k.st, k.dataset, 0, &got, &length, NULL));
	CHECK_INT_EQ(1 << 20, length);
	free(got);
	CHECK_ERR(INCR_E_NOTFOUND, set(&k, "none", "x"));
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_schema_get(k.st, k.dataset, 9, &got, &length, NULL));
	free(large);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_schema__set_between_transactions__belongs_to_the_view),
	TEST(test_schema__branches_and_resets__follow_the_path),
	TEST(test_schema__bad_ones__are_refused),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "schema", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
