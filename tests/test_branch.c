/* Branches: made, listed, moved, deleted, made again. */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int make(struct store_kit *k, const char *name, const char *parent,
		uint64_t at)
{
	return incr_branch_create(k->st, k->dataset, name, parent, at,
				  store_kit_err(k));
}

static int drop(struct store_kit *k, const char *name)
{
	return incr_branch_delete(k->st, k->dataset, name, store_kit_err(k));
}

static uint64_t id_of(struct store_kit *k, const char *name)
{
	struct incr_branch_info info;
	uint64_t id;

	if (incr_branch_find(k->st, k->dataset, name, &info, store_kit_err(k)) <
	    0)
		return 0;
	id = info.id;
	incr_branch_info_release(&info);
	return id;
}

static int add_branch(void *closure, const struct incr_branch_info *info)
{
	char *text = closure;

	snprintf(text + strlen(text), 512 - strlen(text),
		 "%s<%s@%" PRIu64 ":%" PRIu64 "/%" PRIu64 " ", info->name,
		 info->parent ? info->parent : "", info->head, info->view_start,
		 info->view_files);
	return 0;
}

static int drop_it(void *closure, const struct incr_branch_info *info)
{
	return drop(closure, info->name);
}

static void test_branch_list__all_facts__in_name_order(void)
{
	struct store_kit k;
	char text[512] = "";

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	store_kit_commit(&k, INCR_SNAPSHOT, NULL, "a=1 b=1");
	CHECK_OK(make(&k, "z", "main", 1));
	CHECK_OK(make(&k, "empty", NULL, 0));
	CHECK_OK(make(&k, "b", "z", 1));
	store_kit_commit(&k, INCR_APPEND, "b", "x=1 y=1");
	CHECK_OK(incr_branch_list(k.st, k.dataset, add_branch, text, NULL));
	CHECK_STR_EQ("b<z@3:1/3 empty<@0:0/0 main<@2:2/2 z<main@1:1/1 ", text);
	CHECK_OK(incr_branch_list(k.st, k.dataset, drop_it, &k, NULL));
	text[0] = '\0';
	CHECK_OK(incr_branch_list(k.st, k.dataset, add_branch, text, NULL));
	CHECK_STR_EQ("", text);
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_branch_list(k.st, 99, add_branch, text, NULL));
	/* main comes back with the first commit, without history */
	CHECK_STR_EQ("n=1@t4",
		     store_kit_view(&k, store_kit_commit(&k, INCR_APPEND, NULL,
							 "n=1")));
	store_kit_release(&k);
}

static void test_branch__name_used_again__is_another_branch(void)
{
	struct store_kit k;
	uint64_t first;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	CHECK_OK(make(&k, "b", "main", 1));
	first = id_of(&k, "b");
	store_kit_commit(&k, INCR_APPEND, "b", "b=1");
	CHECK_OK(drop(&k, "b"));
	CHECK_ERR(INCR_E_NOTFOUND, drop(&k, "b"));
	CHECK_INT_EQ(0, store_kit_commit(&k, INCR_APPEND, "b", "c=1"));
	CHECK_ERR(INCR_E_NOTFOUND, k.err.code);
	CHECK_OK(make(&k, "b", NULL, 0));
	CHECK(id_of(&k, "b") && id_of(&k, "b") != first);
	CHECK_INT_EQ(0, store_kit_head(&k, "b"));
	/* what was committed on the first one is still there */
	CHECK_STR_EQ("a=1@t1 b=1@t2", store_kit_view(&k, 2));
	{
		struct incr_txn_info info;

		REQUIRE_OK(incr_txn_find(k.st, 2, &info, NULL));
		CHECK_STR_EQ("b", info.branch);
		CHECK_INT_EQ(first, info.branch_id);
		incr_txn_info_release(&info);
	}
	store_kit_release(&k);
}

static void test_branch__bad_names__are_refused(void)
{
	static const char *const bad[] = { "",	  "a/b", "..",	   "-x",
					   "a:b", "a@b", "current" };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_ERR(INCR_E_INVALID, make(&k, bad[i], NULL, 0));
	CHECK_OK(store_kit_reopen(&k));
	store_kit_release(&k);
}

static void test_branch__open_transaction__keeps_it(void)
{
	struct incr_txn_options options = { .branch = "b",
					    .type = INCR_APPEND };
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	CHECK_OK(make(&k, "b", "main", 1));
	REQUIRE_OK(incr_txn_begin(k.st, &options, &txn, NULL));
	CHECK_ERR(INCR_E_CONFLICT, drop(&k, "b"));
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_branch_reset(k.st, k.dataset, "b", 1, NULL));
	/* other branches go on */
	CHECK(store_kit_commit(&k, INCR_APPEND, NULL, "c=1"));
	CHECK_OK(incr_txn_abort(k.st, txn, NULL));
	CHECK_OK(drop(&k, "b"));
	store_kit_release(&k);
}

static void test_branch__locked_by_a_build__is_busy(void)
{
	struct store_kit k;
	struct lock lock;
	struct incr_txn_options options = { .type = INCR_APPEND };
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	CHECK_OK(make(&k, "b", "main", 1));
	REQUIRE_OK(lock_take(log_locks(k.st->log),
			     LOCK_BRANCH(id_of(&k, "main")), true, 0, "test",
			     &lock, NULL));
	CHECK_INT_EQ(0, store_kit_commit(&k, INCR_APPEND, NULL, "b=1"));
	CHECK_ERR(INCR_E_BUSY, k.err.code);
	CHECK_INT_EQ(0, store_kit_commit(&k, INCR_DELETE, NULL, "a"));
	CHECK_ERR(INCR_E_BUSY, k.err.code);
	CHECK_ERR(INCR_E_BUSY, incr_txn_begin(k.st, &options, &txn, NULL));
	CHECK_ERR(INCR_E_BUSY, drop(&k, "main"));
	CHECK_ERR(INCR_E_BUSY,
		  incr_branch_reset(k.st, k.dataset, "main", 1, NULL));
	CHECK_ERR(INCR_E_BUSY, incr_dataset_delete(k.st, k.dataset, NULL));
	CHECK(store_kit_commit(&k, INCR_APPEND, "b", "b=1"));
	lock_release(&lock);
	CHECK(store_kit_commit(&k, INCR_APPEND, NULL, "b=1"));
	store_kit_release(&k);
}

static void test_branch_reset__many_times__old_views_stay(void)
{
	struct store_kit k;
	char files[32];

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	for (int i = 2; i < 200; i++) {
		snprintf(files, sizeof(files), "f%d=%d", i, i);
		CHECK_INT_EQ(i, store_kit_commit(&k, INCR_APPEND, NULL, files));
		/* every other one is rolled back: a long chain of lines */
		if (i % 2)
			CHECK_OK(incr_branch_reset(k.st, k.dataset, "main",
						   (uint64_t)i - 1, NULL));
	}
	CHECK_OK(store_kit_reopen(&k));
	for (uint64_t i = 2; i < 200; i += 7) {
		struct incr_view *v;

		REQUIRE_OK(incr_view_open(k.st, k.dataset, i, &v, NULL));
		CHECK_INT_EQ(1 + i / 2 + i % 2, incr_view_n_files(v));
		CHECK(!strstr(store_kit_view_text(&k, v), "!"));
		incr_view_unref(v);
	}
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_branch_list__all_facts__in_name_order),
	TEST(test_branch__name_used_again__is_another_branch),
	TEST(test_branch__bad_names__are_refused),
	TEST(test_branch__open_transaction__keeps_it),
	TEST(test_branch__locked_by_a_build__is_busy),
	TEST(test_branch_reset__many_times__old_views_stay),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "branch", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
