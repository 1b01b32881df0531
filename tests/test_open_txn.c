/* OPEN transactions by hand: staged, unstaged, kept, committed, aborted. */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int take_out(struct store_kit *k, uint64_t txn, const char *path)
{
	return incr_txn_remove(k->st, txn, path, store_kit_err(k));
}

static int put_file(struct store_kit *k, uint64_t txn, const char *path,
		    const char *file)
{
	struct incr_source source = { .kind = INCR_SOURCE_PATH, .path = file };

	return incr_txn_put(k->st, txn, path, &source, false, store_kit_err(k));
}

static size_t n_spooled(struct store_kit *k, uint64_t txn)
{
	char path[600];
	struct stat s;

	snprintf(path, sizeof(path), "%s/spool/t%llu", k->path,
		 (unsigned long long)txn);
	return stat(path, &s) == 0;
}

static void test_txn_begin__what_it_was_told__is_recorded(void)
{
	struct incr_pair pair = { (char *)"k", (char *)"v" };
	struct incr_txn_options options = { .type = INCR_UPDATE,
					    .origin = "gdpr",
					    .message = "why",
					    .meta = { 1, &pair } };
	struct incr_txn_info info;
	struct store_kit k;
	uint64_t number;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	REQUIRE_OK(incr_txn_begin(k.st, &options, &number, NULL));
	CHECK_OK(store_kit_reopen(&k));
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(incr_txn_find(k.st, number, &info, NULL));
		CHECK_INT_EQ(i ? INCR_COMMITTED : INCR_OPEN, info.status);
		CHECK_INT_EQ(INCR_UPDATE, info.type);
		CHECK_STR_EQ("gdpr", info.origin);
		CHECK_STR_EQ("why", info.message);
		CHECK_INT_EQ(1, info.meta.n);
		CHECK((info.closed_ns != 0) == (i == 1));
		incr_txn_info_release(&info);
		if (!i)
			CHECK_OK(store_kit_txn_commit(&k, number));
	}
	store_kit_release(&k);
}

static int count_open(void *closure, const struct incr_txn_info *info)
{
	CHECK_INT_EQ(INCR_OPEN, info->status);
	(*(unsigned *)closure)++;
	return 0;
}

static int abort_it(void *closure, const struct incr_txn_info *info)
{
	struct store_kit *k = closure;

	return incr_txn_abort(k->st, info->number, store_kit_err(k));
}

static void test_txn_list_open__callback_aborts_each__none_is_left(void)
{
	struct store_kit k;
	unsigned n = 0;
	char name[16];

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 5; i++) {
		struct incr_txn_options options = { .dataset_id = k.dataset,
						    .branch = name,
						    .type = INCR_APPEND };
		uint64_t number;

		snprintf(name, sizeof(name), "b%d", i);
		CHECK_OK(incr_branch_create(k.st, k.dataset, name, NULL, 0,
					    NULL));
		CHECK_OK(incr_txn_begin(k.st, &options, &number, NULL));
	}
	CHECK_OK(incr_txn_list_open(k.st, count_open, &n, NULL));
	CHECK_INT_EQ(5, n);
	CHECK_OK(incr_txn_list_open(k.st, abort_it, &k, NULL));
	n = 0;
	CHECK_OK(incr_txn_list_open(k.st, count_open, &n, NULL));
	CHECK_INT_EQ(0, n);
	store_kit_release(&k);
}

static void test_txn__reopened_between__keeps_what_was_staged(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1 d/x=1 d/y=1");
	txn = store_kit_begin(&k, INCR_UPDATE);
	CHECK_OK(store_kit_put(&k, txn, "a", "2", false));
	CHECK_OK(store_kit_reopen(&k));
	CHECK_OK(store_kit_put(&k, txn, "n/e/w", "2", false));
	CHECK_OK(store_kit_reopen(&k));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, txn, "a", "3", false));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=2@t2 d/x=1@t1 d/y=1@t1 n/e/w=2@t2",
		     store_kit_view(&k, txn));
	CHECK(!n_spooled(&k, txn));
	txn = store_kit_begin(&k, INCR_DELETE);
	CHECK_OK(take_out(&k, txn, "d"));
	CHECK_OK(store_kit_reopen(&k));
	CHECK_OK(take_out(&k, txn, "d/x"));
	CHECK_OK(take_out(&k, txn, "d"));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=2@t2 n/e/w=2@t2", store_kit_view(&k, txn));
	store_kit_release(&k);
}

static void test_txn_abort__drops_what_was_staged(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "a", "1", false));
	CHECK(n_spooled(&k, txn));
	CHECK_OK(incr_txn_abort(k.st, txn, NULL));
	CHECK(!n_spooled(&k, txn));
	CHECK_INT_EQ(0, store_kit_head(&k, NULL));
	store_kit_release(&k);
}

static void test_txn_commit__collision__keeps_what_was_staged(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "a", "2", false));
	CHECK_OK(store_kit_put(&k, txn, "b", "2", false));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("append-collision", k.err.word);
	CHECK_INT_EQ(1, store_kit_head(&k, NULL));
	CHECK_OK(take_out(&k, txn, "a"));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=1@t1 b=2@t2", store_kit_view(&k, txn));
	store_kit_release(&k);
}

static void test_txn_commit__update__leaves_out_or_rewrites(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1 b=1");
	for (int rewrites = 0; rewrites < 2; rewrites++) {
		txn = store_kit_begin(&k, INCR_UPDATE);
		CHECK_OK(store_kit_put(&k, txn, "a", "1", false));
		CHECK_OK(incr_txn_commit(k.st, txn, rewrites, NULL, NULL));
		CHECK_STR_EQ(rewrites ? "a=1@t3 b=1@t1" : "a=1@t1 b=1@t1",
			     store_kit_view(&k, txn));
	}
	store_kit_release(&k);
}

static void test_txn_put__paths_in_each_others_way__are_refused(void)
{
	struct store_kit k;
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "a/b/c", "1", false));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, txn, "a", "1", false));
	CHECK_STR_EQ("path-conflict", k.err.word);
	CHECK_ERR(INCR_E_CONFLICT, store_kit_put(&k, txn, "a/b", "1", true));
	CHECK_ERR(INCR_E_CONFLICT,
		  store_kit_put(&k, txn, "a/b/c/d", "1", false));
	CHECK_ERR(INCR_E_INVALID, store_kit_put(&k, txn, "../x", "1", false));
	CHECK_ERR(INCR_E_INVALID, store_kit_put(&k, txn, "", "1", false));
	CHECK_ERR(INCR_E_NOTFOUND, take_out(&k, txn, "a"));
	CHECK_ERR(INCR_E_NOTFOUND, take_out(&k, txn, "a/b/c/d"));
	/* once it is taken out, its directories are in nobody's way */
	CHECK_OK(take_out(&k, txn, "a/b/c"));
	CHECK_OK(store_kit_put(&k, txn, "a", "2", false));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	CHECK_STR_EQ("a=2@t1", store_kit_view(&k, txn));
	store_kit_release(&k);
}

static void test_txn_put__sources__regular_files_with_their_mode(void)
{
	struct store_kit k;
	struct incr_view *v;
	struct incr_node node = INCR_NODE_INIT;
	char *file = store_kit_path("file"), *link = store_kit_path("link");
	char *fifo = store_kit_path("fifo");
	uint64_t txn;

	REQUIRE(store_kit_init(&k));
	store_kit_write("file", "content", 7);
	CHECK_INT_EQ(0, chmod(file, 0750));
	CHECK_INT_EQ(0, symlink("file", link));
	CHECK_INT_EQ(0, mkfifo(fifo, 0666));
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(put_file(&k, txn, "to/here", file));
	CHECK_ERR(INCR_E_INVALID, put_file(&k, txn, "x", link));
	CHECK_ERR(INCR_E_INVALID, put_file(&k, txn, "x", fifo));
	CHECK_ERR(INCR_E_INVALID, put_file(&k, txn, "x", testing_tmpdir()));
	CHECK_ERR(INCR_E_NOTFOUND, put_file(&k, txn, "x", "/nonexistent/x"));
	CHECK_OK(store_kit_txn_commit(&k, txn));
	REQUIRE_OK(incr_view_open(k.st, k.dataset, txn, &v, NULL));
	CHECK_INT_EQ(1, incr_view_n_files(v));
	CHECK_INT_EQ(0, incr_view_find(v, "to/here", 7, &node, NULL));
	CHECK_INT_EQ(0750, node.mode);
	CHECK_INT_EQ(7, node.size);
	incr_node_release(&node);
	incr_view_unref(v);
	free(file);
	free(link);
	free(fifo);
	store_kit_release(&k);
}

static void test_txn_put__by_4_processes__all_are_staged(void)
{
	struct incr_store_options options = { .wait_ms = 30000 };
	struct store_kit k;
	pid_t pids[4];
	uint64_t txn;
	int status;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	fflush(NULL);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		k.st = NULL; /* the parent's */
		if (store_kit_reopen_with(&k, &io_posix, &options) < 0)
			_exit(1);
		for (int j = 0; j < 10; j++) {
			char path[32];

			snprintf(path, sizeof(path), "d%d/p%d-%d", j % 3, i, j);
			if (store_kit_put(&k, txn, path, path, false) < 0)
				_exit(2);
		}
		_exit(0);
	}
	for (int i = 0; i < 4; i++) {
		CHECK_INT_EQ(pids[i], waitpid(pids[i], &status, 0));
		CHECK_INT_EQ(0, status);
	}
	CHECK_OK(store_kit_txn_commit(&k, txn));
	{
		struct incr_txn_info info;

		REQUIRE_OK(incr_txn_find(k.st, txn, &info, NULL));
		CHECK_INT_EQ(40, info.n_files);
		incr_txn_info_release(&info);
	}
	store_kit_release(&k);
}

static void test_txn_commit__twice_at_once__one_wins(void)
{
	struct incr_store_options options = { .wait_ms = 30000 };
	struct store_kit k;
	pid_t pids[4];
	uint64_t txn;
	int status, n_won = 0;

	REQUIRE(store_kit_init(&k));
	txn = store_kit_begin(&k, INCR_APPEND);
	CHECK_OK(store_kit_put(&k, txn, "a", "1", false));
	fflush(NULL);
	for (int i = 0; i < 4; i++) {
		int r;

		pids[i] = fork();
		if (pids[i])
			continue;
		k.st = NULL;
		if (store_kit_reopen_with(&k, &io_posix, &options) < 0)
			_exit(1);
		r = i == 3 ? incr_txn_abort(k.st, txn, NULL) :
			     store_kit_txn_commit(&k, txn);
		_exit(r == 0 ? 10 : r == INCR_E_CONFLICT ? 0 : 2);
	}
	for (int i = 0; i < 4; i++) {
		CHECK_INT_EQ(pids[i], waitpid(pids[i], &status, 0));
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) % 10 == 0);
		n_won += WEXITSTATUS(status) == 10;
	}
	CHECK_INT_EQ(1, n_won);
	CHECK_OK(incr_store_refresh(k.st, NULL));
	CHECK_ERR(INCR_E_CONFLICT, store_kit_txn_commit(&k, txn));
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_txn_begin__what_it_was_told__is_recorded),
	TEST(test_txn_list_open__callback_aborts_each__none_is_left),
	TEST(test_txn__reopened_between__keeps_what_was_staged),
	TEST(test_txn_abort__drops_what_was_staged),
	TEST(test_txn_commit__collision__keeps_what_was_staged),
	TEST(test_txn_commit__update__leaves_out_or_rewrites),
	TEST(test_txn_put__paths_in_each_others_way__are_refused),
	TEST(test_txn_put__sources__regular_files_with_their_mode),
	TEST(test_txn_put__by_4_processes__all_are_staged),
	TEST(test_txn_commit__twice_at_once__one_wins),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "open_txn", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
