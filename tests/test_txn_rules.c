/*
 * The rulebook's rules on transactions (R1-R21), each test under the number of
 * its rule.
 */
#include "config.h"

#include "incr.h"
#include "store_kit.h"
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT(type, files) store_kit_commit(&k, INCR_##type, NULL, files)
#define COMMIT_ON(branch, type, files) \
	store_kit_commit(&k, INCR_##type, branch, files)

/* A commit that is refused with @word and leaves the head where it is. */
static void check_refused(struct store_kit *k, const char *branch,
			  enum incr_txn_type type, const char *files, int code,
			  const char *word)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .branch = branch,
					    .type = type };
	uint64_t before = store_kit_head(k, branch);
	struct incr_error err;

	CHECK_ERR(code, store_kit_commit_with(k, &options, files, NULL));
	CHECK_STR_EQ(word, k->err.word);
	err = k->err; /* for the caller */
	k->err = INCR_ERROR_INIT;
	CHECK_INT_EQ(before, store_kit_head(k, branch));
	k->err = err;
}

static void test_R1_closed_transactions_do_not_move(void)
{
	struct store_kit k;
	uint64_t committed, aborted;

	REQUIRE(store_kit_init(&k));
	committed = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_txn_commit(&k, committed));
	aborted = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_txn_abort(&k, aborted));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_commit(&k, committed));
	CHECK_STR_EQ("not-open", k.err.word);
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_abort(&k, committed));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_commit(&k, aborted));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_abort(&k, aborted));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, aborted, "a", "", false));
	CHECK_ERR(INCR_E_NOTFOUND, store_kit_txn_commit(&k, 4711));
	store_kit_release(&k);
}

static void test_R2_staged_is_in_no_view(void)
{
	struct store_kit k;
	uint64_t head, txn;

	REQUIRE(store_kit_init(&k));
	head = COMMIT(SNAPSHOT, "a=1");
	txn = store_kit_begin(&k, INCR_UPDATE);
	CHECK_OK(store_kit_put(&k, txn, "a", "2", false));
	CHECK_INT_EQ(head, store_kit_head(&k, NULL));
	CHECK_STR_EQ("a=1@t1", store_kit_view(&k, head));
	CHECK_STR_EQ("no-such-transaction", store_kit_view(&k, txn));
	CHECK_OK(store_kit_txn_abort(&k, txn));
	CHECK_STR_EQ("a=1@t1", store_kit_view(&k, store_kit_head(&k, NULL)));
	CHECK_STR_EQ("no-such-transaction", store_kit_view(&k, txn));
	CHECK(!store_kit_is_on_path(&k, txn, head));
	CHECK(COMMIT(APPEND, "b=1"));
	CHECK(!store_kit_is_on_path(&k, txn, store_kit_head(&k, NULL)));
	store_kit_release(&k);
}

static void test_R3_one_open_transaction_a_branch(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct store_kit k;
	uint64_t txn, other;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	options.dataset_id = k.dataset;
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_txn_begin(k.st, &options, &other, store_kit_err(&k)));
	CHECK_STR_EQ("open-transaction", k.err.word);
	check_refused(&k, NULL, INCR_APPEND, "a=1", INCR_E_CONFLICT,
		      "open-transaction");
	check_refused(&k, NULL, INCR_DELETE, "", INCR_E_CONFLICT,
		      "open-transaction");
	CHECK_OK(store_kit_txn_abort(&k, txn));
	CHECK(COMMIT(APPEND, "a=1"));
	store_kit_release(&k);
}

static void test_R4_open_transaction_is_newest(void)
{
	struct store_kit k;
	struct incr_branch_info info;
	uint64_t before, txn;

	REQUIRE(store_kit_init(&k));
	before = COMMIT(APPEND, "a=1");
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK(txn > before);
	REQUIRE_OK(incr_branch_find(k.st, k.dataset, "main", &info, NULL));
	CHECK_INT_EQ(txn, info.open_txn);
	CHECK_INT_EQ(before, info.head);
	incr_branch_info_release(&info);
	/* nothing may move the branch below it */
	CHECK_ERR(INCR_E_CONFLICT, store_kit_reset(&k, "main", before));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_INT_EQ(txn, store_kit_head(&k, NULL));
	CHECK(COMMIT(APPEND, "b=1") > txn);
	store_kit_release(&k);
}

static int note_number(void *closure, const struct incr_txn_info *info)
{
	char *text = closure;

	snprintf(text + strlen(text), 256 - strlen(text), " t%llu/t%llu",
		 (unsigned long long)info->number,
		 (unsigned long long)info->parent);
	return 0;
}

static void test_R5_transactions_of_a_branch_are_ordered(void)
{
	struct store_kit k;
	char text[256] = "";

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	CHECK_OK(store_kit_make_branch(&k, "b", 1));
	COMMIT_ON("b", APPEND, "b=1");
	COMMIT(APPEND, "c=1");
	CHECK_OK(store_kit_txn_abort(&k, store_kit_begin(&k, INCR_APPEND)));
	COMMIT(APPEND, "d=1");
	CHECK_OK(incr_txn_log(k.st, store_kit_head(&k, NULL), 0, note_number,
			      text, NULL));
	CHECK_STR_EQ(" t5/t3 t3/t1 t1/t0", text);
	text[0] = '\0';
	CHECK_OK(incr_txn_log(k.st, store_kit_head(&k, "b"), 1, note_number,
			      text, NULL));
	CHECK_STR_EQ(" t2/t1", text);
	store_kit_release(&k);
}

static void test_R6_type_is_declared_and_kept(void)
{
	static const enum incr_txn_type types[] = { INCR_SNAPSHOT, INCR_APPEND,
						    INCR_UPDATE, INCR_DELETE };
	struct store_kit k;
	struct incr_txn_info info;
	struct incr_txn_options bad = { 0 };
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	for (size_t i = 0; i < 4; i++) {
		txn = store_kit_begin(&k, types[i]);
		CHECK_OK(store_kit_txn_commit(&k, txn));
		REQUIRE_OK(incr_txn_find(k.st, txn, &info, NULL));
		CHECK_INT_EQ(types[i], info.type);
		CHECK_INT_EQ(INCR_COMMITTED, info.status);
		incr_txn_info_release(&info);
	}
	bad.dataset_id = k.dataset;
	for (int type = -1; type < 7; type++) {
		bad.type = (enum incr_txn_type)type;
		if (type >= INCR_SNAPSHOT && type <= INCR_DELETE)
			continue;
		CHECK_ERR(INCR_E_INVALID,
			  incr_txn_begin(k.st, &bad, &txn, NULL));
		CHECK_ERR(INCR_E_INVALID,
			  incr_commit(k.st, &bad, NULL, 0, NULL, NULL));
	}
	CHECK_OK(store_kit_reopen(&k));
	store_kit_release(&k);
}

static void test_R7_snapshot_is_the_whole_view(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1");
	CHECK_STR_EQ("b=2@t2 c=2@t2",
		     store_kit_view(&k, COMMIT(SNAPSHOT, "b=2 c=2")));
	CHECK_STR_EQ("", store_kit_view(&k, COMMIT(SNAPSHOT, "")));
	CHECK_STR_EQ("a=4@t4", store_kit_view(&k, COMMIT(APPEND, "a=4")));
	store_kit_release(&k);
}

static void test_R8_append_collides_lists_all(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b/x=1 c=1");
	/* also with the same bytes */
	check_refused(&k, NULL, INCR_APPEND, "a=1 b/x=2 c=1 d=1 e=1",
		      INCR_E_CONFLICT, "append-collision");
	REQUIRE_INT_EQ(3, k.err.n_paths);
	CHECK_MEM_EQ("a\0b/x\0c", k.err.paths, 8);
	CHECK_STR_EQ("a=1@t1 b/x=1@t1 c=1@t1",
		     store_kit_view(&k, store_kit_head(&k, NULL)));
	store_kit_release(&k);
}

static void test_R9_append_of_deleted_path_allowed(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1");
	COMMIT(DELETE, "a");
	CHECK_STR_EQ("a=2@t3 b=1@t1",
		     store_kit_view(&k, COMMIT(APPEND, "a=2")));
	store_kit_release(&k);
}

static void test_R10_update_adds_and_replaces(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1 b=1");
	CHECK_STR_EQ("a=1@t1 b=2@t2 c=2@t2",
		     store_kit_view(&k, COMMIT(UPDATE, "b=2 c=2")));
	store_kit_release(&k);
}

static void test_R11_delete_removes_from_the_view_alone(void)
{
	struct store_kit k;
	struct incr_txn_info info;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1 b=1 c=1");
	CHECK_STR_EQ("b=1@t1", store_kit_view(&k, COMMIT(DELETE, "a c")));
	CHECK_STR_EQ("a=1@t1 b=1@t1 c=1@t1", store_kit_view(&k, 1));
	REQUIRE_OK(incr_txn_find(k.st, 2, &info, NULL));
	CHECK_INT_EQ(0, info.n_files);
	CHECK_INT_EQ(2, info.n_removed);
	CHECK_INT_EQ(0, info.size);
	CHECK_INT_EQ(1, info.view_files);
	CHECK_INT_EQ(1, info.view_size);
	incr_txn_info_release(&info);
	store_kit_release(&k);
}

static void test_R12_canonical_trace(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "A=1 B=1");
	COMMIT(APPEND, "C=1");
	COMMIT(UPDATE, "A=2");
	CHECK_STR_EQ("A=2@t3 C=1@t2", store_kit_view(&k, COMMIT(DELETE, "B")));
	CHECK_STR_EQ("D=1@t5", store_kit_view(&k, COMMIT(SNAPSHOT, "D=1")));
	CHECK_STR_EQ("A=1@t1 B=1@t1", store_kit_view(&k, 1));
	CHECK_STR_EQ("A=2@t3 B=1@t1 C=1@t2", store_kit_view(&k, 3));
	store_kit_release(&k);
}

static void test_R13_removal_by_path_or_directory(void)
{
	struct store_kit k;
	struct incr_txn_info info;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1 d.x=1 d/x=1 d/y/z=1 d0=1 e=1");
	CHECK_STR_EQ("a=1@t1 d.x=1@t1 d0=1@t1 e=1@t1",
		     store_kit_view(&k, COMMIT(DELETE, "d")));
	COMMIT(APPEND, "d/x=3 d/w=3");
	txn = store_kit_begin(&k, INCR_DELETE);
	/* a missing path is ignored */
	CHECK_OK(incr_txn_remove(k.st, txn, "missing", store_kit_err(&k)));
	CHECK_OK(incr_txn_remove(k.st, txn, "a", store_kit_err(&k)));
	CHECK_OK(incr_txn_remove(k.st, txn, "d", store_kit_err(&k)));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("d.x=1@t1 d0=1@t1 e=1@t1", store_kit_view(&k, txn));
	REQUIRE_OK(incr_txn_find(k.st, txn, &info, NULL));
	CHECK_INT_EQ(3, info.n_removed);
	incr_txn_info_release(&info);
	store_kit_release(&k);
}

static void test_R14_writes_and_deletes_do_not_mix(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	txn = store_kit_begin(&k, INCR_UPDATE);
	CHECK_ERR(INCR_E_INVALID,
		  incr_txn_remove(k.st, txn, "a", store_kit_err(&k)));
	CHECK_STR_EQ("committed-path", k.err.word);
	/* what was staged in it is unstaged */
	CHECK_OK(store_kit_put(&k, txn, "a", "2", false));
	CHECK_OK(store_kit_put(&k, txn, "b/c", "2", false));
	CHECK_OK(incr_txn_remove(k.st, txn, "a", NULL));
	CHECK_OK(incr_txn_remove(k.st, txn, "b/c", NULL));
	CHECK_ERR(INCR_E_NOTFOUND, incr_txn_remove(k.st, txn, "b/c", NULL));
	CHECK_OK(store_kit_put(&k, txn, "b", "3", false));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=1@t1 b=3@t2", store_kit_view(&k, txn));
	txn = store_kit_begin(&k, INCR_DELETE);
	CHECK_ERR(INCR_E_INVALID, store_kit_put(&k, txn, "x", "1", false));
	CHECK_OK(store_kit_txn_abort(&k, txn));
	/* nor by the back door */
	{
		struct incr_txn_options options = { .dataset_id = k.dataset,
						    .type = INCR_DELETE };
		int fd = store_kit_stream("1", 1);
		struct incr_source source = store_kit_source(fd, "x");

		CHECK_ERR(INCR_E_INVALID,
			  incr_commit(k.st, &options, &source, 1, NULL, NULL));
		(void)close(fd);
	}
	CHECK_STR_EQ("a=1@t1 b=3@t2",
		     store_kit_view(&k, store_kit_head(&k, NULL)));
	store_kit_release(&k);
}

static void test_R15_same_path_twice_needs_overwrite(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "a", "1", false));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, txn, "a", "2", false));
	CHECK_STR_EQ("already-staged", k.err.word);
	CHECK_OK(store_kit_put(&k, txn, "a", "3", true));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=3@t1", store_kit_view(&k, txn));
	check_refused(&k, NULL, INCR_UPDATE, "a=4 a=5", INCR_E_INVALID,
		      "duplicate-path");
	store_kit_release(&k);
}

static void test_R16_empty_transactions_count(void)
{
	struct store_kit k;
	struct incr_txn_options options = { .type = INCR_APPEND,
					    .skips_empty = true };
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	CHECK_STR_EQ("", store_kit_view(&k, COMMIT(APPEND, "")));
	CHECK_STR_EQ("a=@t2", store_kit_view(&k, COMMIT(APPEND, "a")));
	COMMIT(UPDATE, "");
	COMMIT(DELETE, "");
	txn = store_kit_begin(&k, INCR_UPDATE);
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_INT_EQ(5, store_kit_head(&k, NULL));
	CHECK_STR_EQ("a=@t2", store_kit_view(&k, txn));
	options.dataset_id = k.dataset;
	CHECK_INT_EQ(1, store_kit_commit_with(&k, &options, "", NULL));
	CHECK_INT_EQ(5, store_kit_head(&k, NULL));
	/* zero bytes are something */
	CHECK_OK(store_kit_commit_with(&k, &options, "b", NULL));
	store_kit_release(&k);
}

static void test_R17_transaction_record(void)
{
	struct incr_pair pair = { (char *)"key", (char *)"value" };
	struct incr_txn_options options = { .type = INCR_UPDATE,
					    .origin = "gdpr",
					    .message = "why",
					    .meta = { 1, &pair } };
	struct store_kit k;
	struct incr_txn_info info;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	COMMIT(APPEND, "a=1 b=22");
	REQUIRE_OK(store_kit_commit_with(&k, &options, "a=333 c=1", &txn));
	REQUIRE_OK(incr_txn_find(k.st, txn, &info, NULL));
	CHECK_INT_EQ(2, info.number);
	CHECK_INT_EQ(1, info.parent);
	CHECK_INT_EQ(1, info.view_start);
	CHECK_STR_EQ("data", info.dataset);
	CHECK_STR_EQ("main", info.branch);
	CHECK_STR_EQ("gdpr", info.origin);
	CHECK_STR_EQ("why", info.message);
	CHECK(info.user && *info.user);
	CHECK_INT_EQ(2, info.n_files);
	CHECK_INT_EQ(4, info.size);
	CHECK_INT_EQ(3, info.view_files);
	CHECK_INT_EQ(6, info.view_size);
	CHECK(info.opened_ns > 0 && info.closed_ns >= info.opened_ns);
	REQUIRE_INT_EQ(1, info.meta.n);
	CHECK_STR_EQ("key", info.meta.items[0].key);
	CHECK_STR_EQ("value", info.meta.items[0].value);
	incr_txn_info_release(&info);
	store_kit_release(&k);
}

static void test_R18_paths_are_relative(void)
{
	static const char *const bad[] = { "/a=1",   "a//b=1", "a/=1",
					   "./a=1",  "a/..=1", "..=1",
					   "a/./b=1" };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(&k, NULL, INCR_APPEND, bad[i], INCR_E_INVALID,
			      "bad-path");
	store_kit_release(&k);
}

static void test_R19_range_gives_the_newest_versions(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1");
	COMMIT(UPDATE, "a=2 c=2");
	COMMIT(UPDATE, "c=3 d=3");
	COMMIT(DELETE, "b");
	CHECK_STR_EQ("~a@t2 -b@t4 +c@t3 +d@t3", store_kit_changes(&k, 1, 4));
	CHECK_STR_EQ("-b@t4 ~c@t3 +d@t3", store_kit_changes(&k, 2, 4));
	CHECK_STR_EQ("", store_kit_changes(&k, 4, 4));
	COMMIT(SNAPSHOT, "a=5 z=5");
	CHECK_STR_EQ("~a@t5 -c@t5 -d@t5 +z@t5", store_kit_changes(&k, 4, 5));
	CHECK_STR_EQ("+a@t5 +z@t5", store_kit_changes(&k, 0, 5));
	store_kit_release(&k);
}

static void test_R20_a_crash_before_commit_changes_nothing(void)
{
	struct store_kit k;
	pid_t pid;
	int status;

	REQUIRE(store_kit_init(&k));
	COMMIT(APPEND, "a=1");
	incr_store_close(k.st);
	k.st = NULL;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* dies with all it holds */
		if (store_kit_reopen(&k) == 0 &&
		    store_kit_put(&k, store_kit_begin(&k, INCR_APPEND), "b",
				  "1", false) == 0)
			(void)raise(SIGKILL);
		_exit(1);
	}
	CHECK_INT_EQ(pid, waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status));
	REQUIRE_OK(store_kit_reopen(&k));
	CHECK_STR_EQ("a=1@t1", store_kit_view(&k, store_kit_head(&k, NULL)));
	CHECK_STR_EQ("no-such-transaction", store_kit_view(&k, 2));
	CHECK_OK(store_kit_txn_abort(&k, 2));
	CHECK_STR_EQ("a=1@t1 c=1@t3",
		     store_kit_view(&k, COMMIT(APPEND, "c=1")));
	store_kit_release(&k);
}

static void test_R21_no_file_and_directory_of_one_name(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	/* within one commit, also with paths that sort between */
	check_refused(&k, NULL, INCR_APPEND, "x=1 x/y=1", INCR_E_INVALID,
		      "path-conflict");
	check_refused(&k, NULL, INCR_SNAPSHOT, "x=1 x.a=1 x/y/z=1",
		      INCR_E_INVALID, "path-conflict");
	/* against the view */
	COMMIT(APPEND, "x/y=1 f=1 g-=1 g/h/i=1");
	check_refused(&k, NULL, INCR_APPEND, "x=1", INCR_E_CONFLICT,
		      "path-conflict");
	check_refused(&k, NULL, INCR_UPDATE, "f/a=1", INCR_E_CONFLICT,
		      "path-conflict");
	check_refused(&k, NULL, INCR_UPDATE, "a=1 f/a/b/c=1", INCR_E_CONFLICT,
		      "path-conflict");
	check_refused(&k, NULL, INCR_UPDATE, "g=1", INCR_E_CONFLICT,
		      "path-conflict");
	check_refused(&k, NULL, INCR_UPDATE, "g/h=1", INCR_E_CONFLICT,
		      "path-conflict");
	/* staged */
	txn = store_kit_begin(&k, INCR_UPDATE);
	CHECK_OK(store_kit_put(&k, txn, "x", "1", false));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("path-conflict", k.err.word);
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, txn, "x/z", "1", false));
	CHECK_OK(store_kit_txn_abort(&k, txn));
	/* a SNAPSHOT replaces the view, and a removed file is in nobody's way */
	CHECK(COMMIT(SNAPSHOT, "x=1"));
	COMMIT(DELETE, "x");
	CHECK_STR_EQ("x/y=1@t5", store_kit_view(&k, COMMIT(APPEND, "x/y=1")));
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_R1_closed_transactions_do_not_move),
	TEST(test_R2_staged_is_in_no_view),
	TEST(test_R3_one_open_transaction_a_branch),
	TEST(test_R4_open_transaction_is_newest),
	TEST(test_R5_transactions_of_a_branch_are_ordered),
	TEST(test_R6_type_is_declared_and_kept),
	TEST(test_R7_snapshot_is_the_whole_view),
	TEST(test_R8_append_collides_lists_all),
	TEST(test_R9_append_of_deleted_path_allowed),
	TEST(test_R10_update_adds_and_replaces),
	TEST(test_R11_delete_removes_from_the_view_alone),
	TEST(test_R12_canonical_trace),
	TEST(test_R13_removal_by_path_or_directory),
	TEST(test_R14_writes_and_deletes_do_not_mix),
	TEST(test_R15_same_path_twice_needs_overwrite),
	TEST(test_R16_empty_transactions_count),
	TEST(test_R17_transaction_record),
	TEST(test_R18_paths_are_relative),
	TEST(test_R19_range_gives_the_newest_versions),
	TEST(test_R20_a_crash_before_commit_changes_nothing),
	TEST(test_R21_no_file_and_directory_of_one_name),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "txn_rules", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
