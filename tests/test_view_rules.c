/*
 * The rulebook's rules on views (R22-R27) and branches (R29-R37), each test under
 * the number of its rule.
 */
#include "config.h"

#include "incr.h"
#include "store_kit.h"
#include "testing.h"

#include <stdio.h>

#define COMMIT(type, files) store_kit_commit(&k, INCR_##type, NULL, files)
#define COMMIT_ON(branch, type, files) \
	store_kit_commit(&k, INCR_##type, branch, files)

static void test_R22_view_is_the_fold_from_the_snapshot(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	COMMIT(APPEND, "b=2");
	CHECK_STR_EQ("a=1@t1 b=2@t2", store_kit_view(&k, 2));
	COMMIT(SNAPSHOT, "c=3");
	COMMIT(UPDATE, "c=4 a=4");
	COMMIT(DELETE, "c");
	CHECK_STR_EQ("a=4@t4 c=4@t4", store_kit_view(&k, 4));
	CHECK_STR_EQ("a=4@t4", store_kit_view(&k, 5));
	CHECK_STR_EQ("a=1@t1 b=2@t2", store_kit_view(&k, 2));
	CHECK_STR_EQ("", store_kit_view(&k, 0));
	store_kit_release(&k);
}

static uint64_t start_of(struct store_kit *k, uint64_t txn)
{
	struct incr_view *v;
	uint64_t start;

	if (incr_view_open(k->st, k->dataset, txn, &v, store_kit_err(k)) < 0)
		return 0;
	start = incr_view_start(v);
	incr_view_unref(v);
	return start;
}

static void test_R23_start_is_the_snapshot_or_the_first(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	COMMIT(UPDATE, "a=2");
	CHECK_INT_EQ(1, start_of(&k, 2));
	COMMIT(SNAPSHOT, "");
	COMMIT(APPEND, "b=1");
	CHECK_INT_EQ(3, start_of(&k, 3));
	CHECK_INT_EQ(3, start_of(&k, 4));
	CHECK_INT_EQ(0, start_of(&k, 0));
	store_kit_release(&k);
}

static void test_R24_view_runs_across_branches(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1");
	COMMIT(UPDATE, "a=2");
	CHECK_OK(store_kit_make_branch(&k, "child", 2));
	COMMIT(UPDATE, "a=3 m=3");
	COMMIT_ON("child", UPDATE, "b=4 c=4");
	CHECK_STR_EQ("a=2@t2 b=4@t4 c=4@t4",
		     store_kit_view(&k, store_kit_head(&k, "child")));
	CHECK_INT_EQ(1, start_of(&k, 4));
	CHECK_STR_EQ("a=3@t3 b=1@t1 m=3@t3", store_kit_view(&k, 3));
	CHECK_OK(store_kit_make_branch(&k, "grand", 4));
	COMMIT_ON("child", DELETE, "a");
	COMMIT_ON("grand", UPDATE, "a=6");
	CHECK_STR_EQ("a=6@t6 b=4@t4 c=4@t4", store_kit_view(&k, 6));
	CHECK_STR_EQ("b=4@t4 c=4@t4", store_kit_view(&k, 5));
	CHECK_STR_EQ("-a@t5", store_kit_changes(&k, 4, 5));
	/* between branches: what the other side's last removal took away */
	COMMIT_ON("child", APPEND, "q=7");
	CHECK_STR_EQ("-a@t5 +q@t7", store_kit_changes(&k, 6, 7));
	COMMIT_ON("child", DELETE, "q b");
	CHECK_STR_EQ("-a@t5 -b@t8", store_kit_changes(&k, 6, 8));
	CHECK_STR_EQ("-a@t5 -b@t8", store_kit_changes(&k, 4, 8));
	COMMIT_ON("child", SNAPSHOT, "s=9");
	CHECK_INT_EQ(9, start_of(&k, 9));
	CHECK_INT_EQ(1, start_of(&k, 6));
	store_kit_release(&k);
}

static void test_R25_deletes_do_not_move_the_start(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1");
	COMMIT(APPEND, "b=1");
	COMMIT(DELETE, "a");
	COMMIT(DELETE, "b");
	CHECK_INT_EQ(1, start_of(&k, 4));
	CHECK_STR_EQ("", store_kit_view(&k, 4));
	store_kit_release(&k);
}

static void test_R27_many_versions_of_a_path(void)
{
	struct store_kit k;
	char files[64], want[64];

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=0 b=0 c=0");
	for (int i = 2; i <= 200; i++) {
		snprintf(files, sizeof(files), "b=%d", i);
		CHECK_INT_EQ(i, COMMIT(UPDATE, files));
	}
	for (unsigned i = 2; i <= 200; i += 33) {
		snprintf(want, sizeof(want), "a=0@t1 b=%u@t%u c=0@t1", i, i);
		CHECK_STR_EQ(want, store_kit_view(&k, i));
	}
	store_kit_release(&k);
}

static void test_R29_branches_are_pointers(void)
{
	struct store_kit k;
	uint64_t other;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	COMMIT(APPEND, "b=1");
	CHECK_OK(store_kit_make_branch(&k, "early", 1));
	CHECK_INT_EQ(1, store_kit_head(&k, "early"));
	CHECK_OK(incr_branch_create(k.st, k.dataset, "root", NULL, 0, NULL));
	CHECK_INT_EQ(0, store_kit_head(&k, "root"));
	CHECK_STR_EQ("z=1@t3",
		     store_kit_view(&k, COMMIT_ON("root", APPEND, "z=1")));
	CHECK_ERR(INCR_E_EXISTS, store_kit_make_branch(&k, "early", 1));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_make_branch(&k, "x", 99));
	REQUIRE_OK(
		incr_dataset_create(k.st, "other", NULL, NULL, &other, NULL));
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_branch_create(k.st, other, "x", "main", 1, NULL));
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_branch_create(k.st, k.dataset, "x", "nobody", 1, NULL));
	store_kit_release(&k);
}

static void test_R30_branch_beside_an_open_transaction(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "b", "1", false));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_make_branch(&k, "x", txn));
	CHECK_OK(store_kit_make_branch(&k, "child", 1));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=1@t1 c=1@t3",
		     store_kit_view(&k, COMMIT_ON("child", APPEND, "c=1")));
	CHECK_STR_EQ("a=1@t1 b=1@t2", store_kit_view(&k, txn));
	store_kit_release(&k);
}

static void check_parent(struct store_kit *k, const char *name,
			 const char *want)
{
	struct incr_branch_info info;

	REQUIRE_OK(incr_branch_find(k->st, k->dataset, name, &info, NULL));
	if (want)
		CHECK_STR_EQ(want, info.parent);
	else
		CHECK(info.parent == NULL);
	incr_branch_info_release(&info);
}

static void test_R31_deleted_branch_hands_its_children_on(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	CHECK_OK(store_kit_make_branch(&k, "b", 1));
	COMMIT_ON("b", APPEND, "b=1");
	CHECK_OK(incr_branch_create(k.st, k.dataset, "c", "b", 2, NULL));
	check_parent(&k, "c", "b");
	CHECK_OK(incr_branch_delete(k.st, k.dataset, "b", NULL));
	check_parent(&k, "c", "main");
	/* no transaction went */
	CHECK_STR_EQ("a=1@t1 b=1@t2", store_kit_view(&k, 2));
	CHECK_STR_EQ("a=1@t1 b=1@t2 c=1@t3",
		     store_kit_view(&k, COMMIT_ON("c", APPEND, "c=1")));
	/* a new branch of the old name is nobody's parent */
	CHECK_OK(incr_branch_create(k.st, k.dataset, "b", NULL, 0, NULL));
	check_parent(&k, "c", "main");
	CHECK_OK(store_kit_reopen(&k));
	check_parent(&k, "c", "main");
	store_kit_release(&k);
}

static void test_R35_path_after_reset(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1");
	COMMIT(APPEND, "b=1");
	COMMIT(APPEND, "c=1");
	CHECK(store_kit_is_on_path(&k, 2, 3));
	CHECK(store_kit_is_on_path(&k, 3, 3));
	CHECK(!store_kit_is_on_path(&k, 3, 2));
	CHECK_OK(store_kit_reset(&k, "main", 1));
	COMMIT(APPEND, "d=1");
	CHECK(store_kit_is_on_path(&k, 1, 4));
	CHECK(!store_kit_is_on_path(&k, 2, 4));
	CHECK(!store_kit_is_on_path(&k, 3, 4));
	CHECK_STR_EQ("a=1@t1 d=1@t4", store_kit_view(&k, 4));
	CHECK_STR_EQ("a=1@t1 b=1@t2 c=1@t3", store_kit_view(&k, 3));
	/* forward again, to the line that was left */
	CHECK_OK(store_kit_reset(&k, "main", 3));
	CHECK_STR_EQ("a=1@t1 b=1@t2 c=1@t3 e=1@t5",
		     store_kit_view(&k, COMMIT(APPEND, "e=1")));
	CHECK(store_kit_is_on_path(&k, 3, 5));
	CHECK(!store_kit_is_on_path(&k, 4, 5));
	store_kit_release(&k);
}

static void test_R36_snapshot_on_the_new_line_moves_the_start(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1");
	COMMIT(APPEND, "b=1");
	CHECK_OK(store_kit_reset(&k, "main", 1));
	COMMIT(SNAPSHOT, "c=1");
	CHECK_INT_EQ(3, start_of(&k, 3));
	CHECK_INT_EQ(1, start_of(&k, 2));
	CHECK(!store_kit_is_on_path(&k, 2, 3));
	CHECK(store_kit_is_on_path(&k, 1, 3));
	store_kit_release(&k);
}

static void test_R37_rollback_to_committed_only(void)
{
	struct store_kit k;
	uint64_t other, aborted;
	struct incr_txn_options options = { .type = INCR_APPEND };

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	aborted = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_txn_abort(&k, aborted));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_reset(&k, "main", aborted));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_reset(&k, "main", 77));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_reset(&k, "main", 0));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_reset(&k, "none", 1));
	REQUIRE_OK(
		incr_dataset_create(k.st, "other", NULL, NULL, &other, NULL));
	options.dataset_id = other;
	CHECK_OK(store_kit_commit_with(&k, &options, "x=1", &other));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_reset(&k, "main", other));
	CHECK_INT_EQ(1, store_kit_head(&k, NULL));
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_R22_view_is_the_fold_from_the_snapshot),
	TEST(test_R23_start_is_the_snapshot_or_the_first),
	TEST(test_R24_view_runs_across_branches),
	TEST(test_R25_deletes_do_not_move_the_start),
	TEST(test_R27_many_versions_of_a_path),
	TEST(test_R29_branches_are_pointers),
	TEST(test_R30_branch_beside_an_open_transaction),
	TEST(test_R31_deleted_branch_hands_its_children_on),
	TEST(test_R35_path_after_reset),
	TEST(test_R36_snapshot_on_the_new_line_moves_the_start),
	TEST(test_R37_rollback_to_committed_only),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "view_rules", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
