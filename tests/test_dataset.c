/* Datasets: made, found, listed, renamed, deleted, described. */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

static uint64_t make(struct store_kit *k, const char *name)
{
	uint64_t id = 0;

	CHECK_OK(incr_dataset_create(k->st, name, NULL, NULL, &id,
				     store_kit_err(k)));
	return id;
}

static uint64_t find(struct store_kit *k, const char *name)
{
	struct incr_dataset_info info;
	uint64_t id;

	if (incr_dataset_find(k->st, name, &info, store_kit_err(k)) < 0)
		return 0;
	CHECK_STR_EQ(name, info.name);
	id = info.id;
	incr_dataset_info_release(&info);
	return id;
}

static int add_name(void *closure, const struct incr_dataset_info *info)
{
	char *text = closure;

	snprintf(text + strlen(text), 512 - strlen(text), "%s ", info->name);
	return 0;
}

static int delete_it(void *closure, const struct incr_dataset_info *info)
{
	struct store_kit *k = closure;

	return incr_dataset_delete(k->st, info->id, store_kit_err(k));
}

static int stop_at_b(void *closure, const struct incr_dataset_info *info)
{
	(*(int *)closure)++;
	return strcmp(info->name, "b") ? 0 : 77;
}

static void test_dataset_list__many__in_name_order(void)
{
	struct store_kit k;
	char text[512] = "";
	int n = 0;

	REQUIRE(store_kit_init(&k));
	make(&k, "b");
	make(&k, "a/z");
	make(&k, "a");
	make(&k, "\303\251");
	CHECK_OK(incr_dataset_list(k.st, add_name, text, NULL));
	CHECK_STR_EQ("a a/z b data \303\251 ", text);
	CHECK_INT_EQ(77, incr_dataset_list(k.st, stop_at_b, &n, NULL));
	CHECK_INT_EQ(3, n);
	/* the callback may write */
	CHECK_OK(incr_dataset_list(k.st, delete_it, &k, NULL));
	text[0] = '\0';
	CHECK_OK(incr_dataset_list(k.st, add_name, text, NULL));
	CHECK_STR_EQ("", text);
	store_kit_release(&k);
}

static void test_dataset_create__name_in_use_or_bad__is_refused(void)
{
	static const char *const bad[] = { "",	      "/a",	   "a/",
					   "a//b",    "a..b",	   "-a",
					   "current", "a/current", "a:b",
					   "a@b",     "\377" };
	struct incr_pair pair = { (char *)"k", NULL };
	struct incr_pairs pairs = { 1, &pair };
	struct store_kit k;
	uint64_t id;

	REQUIRE(store_kit_init(&k));
	CHECK_ERR(INCR_E_EXISTS, incr_dataset_create(k.st, "data", NULL, NULL,
						     &id, store_kit_err(&k)));
	CHECK_STR_EQ("dataset-exists", k.err.word);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_ERR(INCR_E_INVALID,
			  incr_dataset_create(k.st, bad[i], NULL, NULL, &id,
					      NULL));
	CHECK_ERR(INCR_E_INVALID,
		  incr_dataset_create(k.st, "x", "\377", NULL, &id, NULL));
	CHECK_ERR(INCR_E_INVALID,
		  incr_dataset_create(k.st, "x", NULL, &pairs, &id, NULL));
	CHECK_OK(store_kit_reopen(&k));
	CHECK_INT_EQ(0, find(&k, "x"));
	store_kit_release(&k);
}

static void test_dataset__name_used_again__is_another_dataset(void)
{
	struct store_kit k;
	uint64_t first, second, third, txn;

	REQUIRE(store_kit_init(&k));
	first = k.dataset;
	txn = store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	CHECK_OK(incr_dataset_rename(k.st, first, "moved", NULL));
	CHECK_INT_EQ(0, find(&k, "data"));
	CHECK_INT_EQ(first, find(&k, "moved"));
	second = make(&k, "data");
	CHECK(second != first);
	CHECK_OK(incr_dataset_delete(k.st, second, NULL));
	CHECK_INT_EQ(0, find(&k, "data"));
	third = make(&k, "data");
	CHECK(third != first && third != second);
	for (int i = 0; i < 2; i++) {
		CHECK_INT_EQ(third, find(&k, "data"));
		CHECK_INT_EQ(first, find(&k, "moved"));
		k.dataset = third;
		CHECK_INT_EQ(0, store_kit_head(&k, NULL));
		k.dataset = first;
		CHECK_INT_EQ(txn, store_kit_head(&k, NULL));
		CHECK_STR_EQ("a=1@t1", store_kit_view(&k, txn));
		CHECK_OK(store_kit_reopen(&k));
	}
	CHECK_ERR(INCR_E_EXISTS,
		  incr_dataset_rename(k.st, first, "data", NULL));
	CHECK_ERR(INCR_E_NOTFOUND, incr_dataset_rename(k.st, 99, "x", NULL));
	CHECK_ERR(INCR_E_INVALID,
		  incr_dataset_rename(k.st, first, "a//b", NULL));
	store_kit_release(&k);
}

static void test_dataset_delete__takes_everything_with_it(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct incr_branch_info branch;
	struct incr_dataset_info info;
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	REQUIRE_OK(incr_txn_begin(k.st, &options, &txn, NULL));
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_dataset_delete(k.st, k.dataset, store_kit_err(&k)));
	CHECK_STR_EQ("open-transaction", k.err.word);
	CHECK_OK(incr_txn_abort(k.st, txn, NULL));
	CHECK_OK(incr_dataset_delete(k.st, k.dataset, NULL));
	for (int i = 0; i < 2; i++) {
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_dataset_delete(k.st, k.dataset, NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_dataset_by_id(k.st, k.dataset, &info, NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_branch_find(k.st, k.dataset, NULL, &branch,
					   NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  store_kit_commit_with(&k, &options, "b=1", NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_txn_begin(k.st, &options, &txn, NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_branch_create(k.st, k.dataset, "b", NULL, 0,
					     NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_branch_reset(k.st, k.dataset, "main", 1, NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_branch_delete(k.st, k.dataset, "main", NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_schema_set(k.st, k.dataset, NULL, "{}", 2,
					  NULL));
		CHECK_OK(store_kit_reopen(&k));
	}
	store_kit_release(&k);
}

static void check_meta(struct store_kit *k, const char *want)
{
	struct incr_dataset_info info;
	char text[256] = "";

	REQUIRE_OK(incr_dataset_by_id(k->st, k->dataset, &info, NULL));
	for (size_t i = 0; i < info.meta.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s=%s ", info.meta.items[i].key,
			 info.meta.items[i].value);
	CHECK_STR_EQ(want, text);
	CHECK(info.description != NULL);
	incr_dataset_info_release(&info);
}

static void test_dataset_set_meta__sets_replaces_clears(void)
{
	struct incr_pair pairs[3] = { { (char *)"a", (char *)"1" },
				      { (char *)"b", (char *)"2" },
				      { (char *)"c", (char *)"3" } };
	struct incr_pairs meta = { 3, pairs };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	CHECK_OK(incr_dataset_set_meta(k.st, k.dataset, &meta, NULL));
	check_meta(&k, "a=1 b=2 c=3 ");
	/* what is left keeps its order */
	pairs[0].value = NULL;
	pairs[1].value = (char *)"new";
	pairs[2].key = (char *)"none";
	pairs[2].value = NULL;
	CHECK_OK(incr_dataset_set_meta(k.st, k.dataset, &meta, NULL));
	check_meta(&k, "b=new c=3 ");
	CHECK_OK(store_kit_reopen(&k));
	check_meta(&k, "b=new c=3 ");
	pairs[0].key = NULL;
	CHECK_ERR(INCR_E_INVALID,
		  incr_dataset_set_meta(k.st, k.dataset, &meta, NULL));
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_dataset_set_meta(k.st, 99,
					&(struct incr_pairs){ 0, NULL }, NULL));
	check_meta(&k, "b=new c=3 ");
	store_kit_release(&k);
}

/* As a program wrote it that allowed such names; also of its branch. */
static void make_old(struct store_kit *k, const char *name)
{
	_cleanup_buf_ struct buf dataset = BUF_INIT, branch = BUF_INIT;
	const struct index_counters *next = index_counters(k->st->index);
	struct fact_dataset d = { .id = next->next_dataset,
				  .name = text_of(name),
				  .description = text_of(NULL),
				  .user = text_of(NULL),
				  .pairs = text_of(NULL),
				  .branch_id = next->next_branch,
				  .line = next->next_line };
	struct fact_branch b = { .id = next->next_branch + 1,
				 .dataset_id = d.id,
				 .line = next->next_line + 1,
				 .name = text_of("old "),
				 .parent = text_of(NULL) };

	CHECK_OK(fact_encode_dataset(&d, &dataset));
	CHECK_OK(fact_encode_branch(&b, &branch));
	CHECK_OK(store_append_fact(k->st, FACT_DATASET_CREATED, &dataset,
				   store_kit_err(k)));
	CHECK_OK(store_append_fact(k->st, FACT_BRANCH_CREATED, &branch,
				   store_kit_err(k)));
}

static void test_dataset__old_name_that_ends_in_a_space__stays(void)
{
	struct incr_branch_info branch = { 0 };
	struct store_kit k;
	uint64_t id;

	REQUIRE(store_kit_init(&k));
	make_old(&k, "part /name ");
	CHECK_OK(store_kit_reopen(&k));
	id = find(&k, "part /name ");
	CHECK(id != 0);
	CHECK_OK(incr_branch_find(k.st, id, "old ", &branch, NULL));
	incr_branch_info_release(&branch);
	k.dataset = id;
	CHECK(store_kit_commit(&k, INCR_APPEND, "old ", "a=1") != 0);
	/* but none is made any more */
	CHECK_ERR(INCR_E_INVALID, incr_dataset_create(k.st, "new ", NULL, NULL,
						      &id, store_kit_err(&k)));
	CHECK_STR_EQ("bad-dataset-name", k.err.word);
	CHECK_ERR(INCR_E_INVALID, incr_dataset_rename(k.st, id, "part /new",
						      store_kit_err(&k)));
	CHECK_ERR(INCR_E_INVALID, incr_branch_create(k.st, id, "new ", NULL, 0,
						     store_kit_err(&k)));
	CHECK_STR_EQ("bad-branch-name", k.err.word);
	CHECK_OK(incr_dataset_rename(k.st, id, "part/name", NULL));
	CHECK_INT_EQ(id, find(&k, "part/name"));
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_dataset_list__many__in_name_order),
	TEST(test_dataset_create__name_in_use_or_bad__is_refused),
	TEST(test_dataset__name_used_again__is_another_dataset),
	TEST(test_dataset_delete__takes_everything_with_it),
	TEST(test_dataset_set_meta__sets_replaces_clears),
	TEST(test_dataset__old_name_that_ends_in_a_space__stays),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "dataset", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
