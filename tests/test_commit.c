/*
 * Commits: what is read, left out, shared and refused, and what one costs in
 * bytes and calls.
 */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int commit_path(struct store_kit *k, enum incr_txn_type type,
		       const char *path, const char *prefix, uint64_t *out)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = type };
	struct incr_source source = { .kind = INCR_SOURCE_PATH,
				      .path = path,
				      .prefix = prefix };
	struct incr_txn_info info = { 0 };
	int r = incr_commit(k->st, &options, &source, 1, &info,
			    store_kit_err(k));

	if (out)
		*out = info.number;
	incr_txn_info_release(&info);
	return r;
}

static void fill(char *data, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char)store_kit_random(&seed, 256);
}

/* ---- expectations and races ---- */

static void test_commit__expect__holds_or_conflicts(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND,
					    .has_expect = true };
	struct store_kit k;
	uint64_t number;

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	CHECK_OK(store_kit_commit_with(&k, &options, "a=1", &number));
	CHECK_ERR(INCR_E_CONFLICT,
		  store_kit_commit_with(&k, &options, "b=1", NULL));
	CHECK_STR_EQ("branch-moved", k.err.word);
	options.expect = number;
	options.type = INCR_DELETE;
	CHECK_OK(store_kit_commit_with(&k, &options, "a", &number));
	CHECK_ERR(INCR_E_CONFLICT,
		  store_kit_commit_with(&k, &options, "", NULL));
	options.type = INCR_APPEND;
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_txn_begin(k.st, &options, &number, store_kit_err(&k)));
	CHECK_STR_EQ("branch-moved", k.err.word);
	CHECK_INT_EQ(2, store_kit_head(&k, NULL));
	store_kit_release(&k);
}

/* A second handle that commits while the first reads its source. */
struct intruder {
	struct store_kit kit;
	enum incr_txn_type type;
	const char *files;
	unsigned n_left;
};

static void intrude(void *closure, uint64_t n_files_done, uint64_t size_done,
		    uint64_t n_files_total, uint64_t size_total)
{
	struct intruder *i = closure;

	(void)n_files_done;
	(void)size_done;
	(void)n_files_total;
	(void)size_total;
	if (!i->n_left)
		return;
	i->n_left--;
	CHECK(store_kit_commit(&i->kit, i->type, NULL, i->files));
}

static int commit_intruded(struct store_kit *k, enum incr_txn_type type,
			   const char *path, struct intruder *i)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = type,
					    .progress = intrude,
					    .progress_closure = i };
	struct incr_source source = { .kind = INCR_SOURCE_PATH, .path = path };

	return incr_commit(k->st, &options, &source, 1, NULL, store_kit_err(k));
}

static void test_commit__lost_races__are_seen_or_repeated(void)
{
	struct store_kit k;
	struct intruder other = { .type = INCR_UPDATE };
	char *path = store_kit_path("src");

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	other.kit = k;
	other.kit.st = NULL;
	other.kit.text = NULL;
	REQUIRE_OK(store_kit_reopen(&other.kit));
	store_kit_write("src/a", "1", 1);
	/* disjoint: both succeed */
	other.files = "other=1";
	other.n_left = 1;
	CHECK_OK(commit_intruded(&k, INCR_APPEND, path, &other));
	CHECK_INT_EQ(0, other.n_left);
	/* a was left out as unchanged, but it is no longer: read again */
	other.files = "a=2";
	other.n_left = 1;
	CHECK_OK(commit_intruded(&k, INCR_UPDATE, path, &other));
	CHECK_STR_EQ("a=1@t4 other=1@t1",
		     store_kit_view(&k, store_kit_head(&k, NULL)));
	/* the same path: the later one is refused */
	store_kit_write("src/b", "1", 1);
	{
		char *file = store_kit_path("src/a");

		CHECK_INT_EQ(0, unlink(file));
		free(file);
	}
	other.type = INCR_APPEND;
	other.files = "b=2";
	other.n_left = 1;
	CHECK_ERR(INCR_E_CONFLICT,
		  commit_intruded(&k, INCR_APPEND, path, &other));
	CHECK_STR_EQ("append-collision", k.err.word);
	incr_store_close(other.kit.st);
	incr_error_release(&other.kit.err);
	free(path);
	store_kit_release(&k);
}

/* ---- what an UPDATE leaves out ---- */

static void test_commit__update_of_equal_files__records_what_differs(void)
{
	struct incr_txn_options options = { .type = INCR_UPDATE };
	struct store_kit k;
	char *path = store_kit_path("src"), *file = store_kit_path("src/a");
	uint64_t number;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	options.dataset_id = k.dataset;
	store_kit_write("src/a", "1", 1);
	store_kit_write("src/b", "1", 1);
	CHECK_OK(commit_path(&k, INCR_APPEND, path, NULL, NULL));
	store_kit_write("src/b", "2", 1);
	CHECK_OK(commit_path(&k, INCR_UPDATE, path, NULL, &number));
	CHECK_STR_EQ("a=1@t1 b=2@t2", store_kit_view(&k, number));
	/* permission bits count, times do not */
	CHECK_INT_EQ(0, chmod(file, 0600));
	CHECK_OK(commit_path(&k, INCR_UPDATE, path, NULL, &number));
	CHECK_STR_EQ("a=1@t3 b=2@t2", store_kit_view(&k, number));
	options.skips_empty = true;
	{
		struct incr_source source = { .kind = INCR_SOURCE_PATH,
					      .path = path };

		CHECK_INT_EQ(1, incr_commit(k.st, &options, &source, 1, NULL,
					    NULL));
		options.rewrites = true;
		CHECK_OK(incr_commit(k.st, &options, &source, 1, NULL, NULL));
	}
	CHECK_STR_EQ("a=1@t4 b=2@t4", store_kit_view(&k, 4));
	free(path);
	free(file);
	store_kit_release(&k);
}

static void test_commit__repeated_snapshots__share_content(void)
{
	struct store_kit k;
	char *path = store_kit_path("src"), name[32], data[20000];
	uint64_t packs, log;
	size_t n_packs;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "src/f%u", i);
		fill(data, sizeof(data), i);
		store_kit_write(name, data, sizeof(data));
	}
	CHECK_OK(commit_path(&k, INCR_SNAPSHOT, path, NULL, NULL));
	packs = store_kit_size(&k, "packs", &n_packs);
	log = store_kit_size(&k, "log", NULL);
	CHECK(packs > 20 * sizeof(data));
	for (unsigned i = 0; i < 10; i++)
		CHECK_OK(commit_path(&k, INCR_SNAPSHOT, path, NULL, NULL));
	CHECK_INT_EQ(packs, store_kit_size(&k, "packs", NULL));
	CHECK(store_kit_size(&k, "log", NULL) - log < 10 * 3000);
	/* one file changes: that one is stored */
	store_kit_write("src/f3", "new", 3);
	log = store_kit_size(&k, "log", NULL);
	CHECK_OK(commit_path(&k, INCR_SNAPSHOT, path, NULL, NULL));
	CHECK_INT_EQ(packs, store_kit_size(&k, "packs", NULL));
	CHECK(store_kit_size(&k, "log", NULL) - log < 3000);
	free(path);
	store_kit_release(&k);
}

/* ---- sources ---- */

static void test_commit__large_and_small__stand_in_pack_and_log(void)
{
	struct store_kit k;
	char *path = store_kit_path("big"), *data = malloc(300000);
	char *got = malloc(300001);
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view *v;
	size_t n, size;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit(&k, INCR_APPEND, NULL, "small=1");
	store_kit_size(&k, "packs", &n);
	CHECK_INT_EQ(0, n);
	fill(data, 300000, 1);
	store_kit_write("big", data, 300000);
	/* a file by its base name, and below a prefix */
	CHECK_OK(commit_path(&k, INCR_APPEND, path, "pre/fix", NULL));
	store_kit_size(&k, "packs", &n);
	CHECK_INT_EQ(1, n);
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(incr_view_open(k.st, k.dataset, 2, &v, NULL));
		CHECK_OK(incr_view_find(v, "pre/fix/big", 11, &node, NULL));
		CHECK_INT_EQ(300000, node.size);
		CHECK_OK(incr_file_read(v, &node, 0, got, 300001, &size, NULL));
		CHECK_INT_EQ(300000, size);
		CHECK(size == 300000 && !memcmp(data, got, size));
		CHECK_OK(
			incr_file_read(v, &node, 299990, got, 20, &size, NULL));
		CHECK_INT_EQ(10, size);
		incr_view_unref(v);
		CHECK_OK(store_kit_reopen(&k));
	}
	/* a refused commit leaves no pack behind */
	CHECK_ERR(INCR_E_CONFLICT,
		  commit_path(&k, INCR_APPEND, path, "pre/fix", NULL));
	store_kit_size(&k, "packs", &n);
	CHECK_INT_EQ(1, n);
	incr_node_release(&node);
	free(path);
	free(data);
	free(got);
	store_kit_release(&k);
}

static void test_commit__20000_files__are_all_there(void)
{
	struct store_kit k;
	struct incr_txn_info info;
	char *path = store_kit_path("src"), name[64];
	uint64_t number;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "src/d%d/f%d", i % 20, i);
		store_kit_write(name, name, strlen(name));
	}
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		CHECK_OK(commit_path(&k, INCR_APPEND, path, name, NULL));
	}
	/* and all in one */
	{
		struct incr_txn_options options = { .dataset_id = k.dataset,
						    .type = INCR_SNAPSHOT };
		struct incr_source sources[10];
		static char prefixes[10][16];

		for (int i = 0; i < 10; i++) {
			snprintf(prefixes[i], 16, "p%d", i);
			sources[i] =
				(struct incr_source){ .kind = INCR_SOURCE_PATH,
						      .path = path,
						      .prefix = prefixes[i] };
		}
		REQUIRE_OK(incr_commit(k.st, &options, sources, 10, &info,
				       store_kit_err(&k)));
		number = info.number;
		CHECK_INT_EQ(20000, info.n_files);
		CHECK_INT_EQ(20000, info.view_files);
		incr_txn_info_release(&info);
	}
	CHECK_OK(store_kit_reopen(&k));
	REQUIRE_OK(incr_txn_find(k.st, number - 1, &info, NULL));
	CHECK_INT_EQ(20000, info.view_files);
	incr_txn_info_release(&info);
	{
		struct incr_view *v;
		struct incr_node node = INCR_NODE_INIT;

		REQUIRE_OK(incr_view_open(k.st, k.dataset, number, &v, NULL));
		CHECK_OK(incr_view_find(v, "p7/d19/f1999", 12, &node, NULL));
		CHECK_INT_EQ(13, node.size);
		incr_node_release(&node);
		incr_view_unref(v);
	}
	free(path);
	store_kit_release(&k);
}

static void test_commit__streams__are_read_to_their_end(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct store_kit k;
	struct incr_source source;
	int fds[2];

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	CHECK_INT_EQ(0, pipe(fds));
	CHECK_INT_EQ(5, write(fds[1], "piped", 5));
	CHECK_INT_EQ(0, close(fds[1]));
	source = store_kit_source(fds[0], "in/pipe");
	CHECK_OK(incr_commit(k.st, &options, &source, 1, NULL,
			     store_kit_err(&k)));
	CHECK_STR_EQ("in/pipe=piped@t1", store_kit_view(&k, 1));
	(void)close(fds[0]);
	/* no name, no file */
	source = store_kit_source(0, NULL);
	CHECK_ERR(INCR_E_INVALID,
		  incr_commit(k.st, &options, &source, 1, NULL, NULL));
	store_kit_release(&k);
}

static void test_commit__special_or_missing_sources__are_named(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND,
					    .skips_special = true };
	struct incr_source source = { .kind = INCR_SOURCE_PATH };
	struct store_kit k;
	char *dir = store_kit_path("src"), *fifo = store_kit_path("src/fifo");
	char *link = store_kit_path("src/link"), *none = store_kit_path("none");

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	CHECK_ERR(INCR_E_NOTFOUND,
		  commit_path(&k, INCR_APPEND, none, NULL, NULL));
	store_kit_write("src/a", "1", 1);
	CHECK_INT_EQ(0, mkfifo(fifo, 0666));
	CHECK_ERR(INCR_E_INVALID,
		  commit_path(&k, INCR_APPEND, dir, NULL, NULL));
	CHECK_STR_EQ("special-file", k.err.word);
	CHECK_ERR(INCR_E_INVALID,
		  commit_path(&k, INCR_APPEND, fifo, NULL, NULL));
	CHECK_INT_EQ(0, unlink(fifo));
	CHECK_INT_EQ(0, symlink("a", link));
	CHECK_ERR(INCR_E_INVALID,
		  commit_path(&k, INCR_APPEND, dir, NULL, NULL));
	CHECK_STR_EQ("special-file", k.err.word);
	CHECK_INT_EQ(0, store_kit_head(&k, NULL));
	source.path = dir;
	CHECK_OK(incr_commit(k.st, &options, &source, 1, NULL, NULL));
	CHECK_STR_EQ("a=1@t1", store_kit_view(&k, 1));
	free(dir);
	free(fifo);
	free(link);
	free(none);
	store_kit_release(&k);
}

static void test_commit__bad_words__are_refused(void)
{
	struct incr_pair pair = { NULL, (char *)"v" };
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct store_kit k;
	char *long_text = malloc(2 << 20);

	REQUIRE(store_kit_init(&k));
	options.dataset_id = k.dataset;
	options.origin = "Not Good";
	CHECK_ERR(INCR_E_INVALID,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	options.origin = NULL;
	options.message = "\377";
	CHECK_ERR(INCR_E_INVALID,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	memset(long_text, 'x', 2 << 20);
	long_text[(2 << 20) - 1] = '\0';
	options.message = long_text;
	CHECK_ERR(INCR_E_RANGE,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	options.message = NULL;
	options.meta = (struct incr_pairs){ 1, &pair };
	CHECK_ERR(INCR_E_INVALID,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	pair.key = (char *)"k";
	pair.value = long_text;
	CHECK_ERR(INCR_E_RANGE,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	options.meta.n = 0;
	options.branch = "none";
	CHECK_ERR(INCR_E_NOTFOUND,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	options.branch = NULL;
	options.dataset_id = 99;
	CHECK_ERR(INCR_E_NOTFOUND,
		  store_kit_commit_with(&k, &options, "a=1", NULL));
	CHECK_INT_EQ(0, store_kit_head(&k, NULL));
	CHECK_OK(store_kit_reopen(&k));
	free(long_text);
	store_kit_release(&k);
}

/* ---- rm ---- */

static int rm(struct store_kit *k, const char *pattern,
	      struct incr_remove_flags flags)
{
	struct incr_txn_options options = { .dataset_id = k->dataset };

	return incr_remove(k->st, &options, &pattern, 1, flags, NULL,
			   store_kit_err(k));
}

static void test_remove__names_and_globs__as_they_stand(void)
{
	struct incr_remove_flags plain = { 0 }, deep = { .is_recursive = true };
	struct incr_remove_flags lax = { .ignores_missing = true };
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit(&k, INCR_APPEND, NULL,
			 "*=1 a=1 b.x=1 c/a=1 c/b/x=1 c0=1 cc=1 [z]=1 z=1");
	/* an existing path is that path, also when it looks like a glob */
	CHECK_OK(rm(&k, "*", plain));
	CHECK_OK(rm(&k, "[z]", plain));
	CHECK_STR_EQ("a=1@t1 b.x=1@t1 c/a=1@t1 c/b/x=1@t1 c0=1@t1 cc=1@t1 "
		     "z=1@t1",
		     store_kit_view(&k, 3));
	CHECK_ERR(INCR_E_NOTFOUND, rm(&k, "nothing*", plain));
	CHECK_STR_EQ("no-such-path", k.err.word);
	CHECK_ERR(INCR_E_INVALID, rm(&k, "c", plain));
	CHECK_STR_EQ("is-directory", k.err.word);
	CHECK_INT_EQ(3, store_kit_head(&k, NULL));
	CHECK_OK(rm(&k, "?.x", plain));
	CHECK_OK(rm(&k, "c", deep));
	CHECK_STR_EQ("a=1@t1 c0=1@t1 cc=1@t1 z=1@t1", store_kit_view(&k, 5));
	CHECK_OK(rm(&k, "nothing", lax));
	CHECK_STR_EQ("a=1@t1 c0=1@t1 cc=1@t1 z=1@t1",
		     store_kit_view(&k, store_kit_head(&k, NULL)));
	CHECK_OK(rm(&k, "**", plain));
	CHECK_STR_EQ("", store_kit_view(&k, store_kit_head(&k, NULL)));
	store_kit_release(&k);
}

/* ---- calls ---- */

static void test_commit__small__is_one_write_and_one_sync(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_counting_io()));
	for (int i = 0; i < 3; i++) {
		char files[32];
		unsigned n_hints;

		snprintf(files, sizeof(files), "a%d=1 b%d=2", i, i);
		store_calls = (struct store_calls){ 0 };
		CHECK(store_kit_commit(&k, INCR_APPEND, NULL, files));
		CHECK_INT_EQ(1, store_calls.n_fdatasync);
		CHECK_INT_EQ(0, store_calls.n_fsync);
		CHECK_INT_EQ(0, store_calls.n_fsync_dir);
		CHECK_INT_EQ(0, store_calls.n_change);
		/* the record, and the hint of 64 bytes in the lock file */
		n_hints = store_calls.n_pwrite - 1;
		CHECK(n_hints <= 1);
	}
	store_kit_release(&k);
}

static void test_commit__large__is_three_syncs(void)
{
	struct store_kit k;
	char *data = malloc(400000), *path = store_kit_path("big");

	REQUIRE(store_kit_init_with(&k, store_kit_counting_io()));
	fill(data, 400000, 9);
	store_kit_write("big", data, 400000);
	store_calls = (struct store_calls){ 0 };
	CHECK_OK(commit_path(&k, INCR_APPEND, path, NULL, NULL));
	/* pack and log; the directory of packs */
	CHECK_INT_EQ(2, store_calls.n_fdatasync + store_calls.n_fsync);
	CHECK_INT_EQ(1, store_calls.n_fsync_dir);
	free(data);
	free(path);
	store_kit_release(&k);
}

static void test_commit__nothing_to_do__writes_nothing(void)
{
	struct incr_txn_options options = { .type = INCR_UPDATE,
					    .skips_empty = true };
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_counting_io()));
	options.dataset_id = k.dataset;
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1");
	store_calls = (struct store_calls){ 0 };
	CHECK_INT_EQ(1, store_kit_commit_with(&k, &options, "a=1", NULL));
	CHECK_INT_EQ(0, store_calls.n_pwrite);
	CHECK_INT_EQ(0, store_calls.n_fdatasync);
	CHECK_INT_EQ(0, store_calls.n_change);
	store_kit_release(&k);
}

static void test_read__everything__writes_and_locks_nothing(void)
{
	static const struct incr_store_options modes[] = {
		{ .is_readonly = false }, { .is_readonly = true }
	};
	struct store_kit k;
	struct incr_txn_info info;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 50; i++) {
		char files[32];

		snprintf(files, sizeof(files), "a%d=1", i);
		store_kit_commit(&k, INCR_APPEND, NULL, files);
	}
	for (size_t i = 0; i < 2; i++) {
		store_calls = (struct store_calls){ 0 };
		REQUIRE_OK(store_kit_reopen_with(&k, store_kit_counting_io(),
						 &modes[i]));
		CHECK_INT_EQ(50, store_kit_head(&k, NULL));
		CHECK(strlen(store_kit_view(&k, 50)) > 100);
		CHECK(strlen(store_kit_changes(&k, 10, 50)) > 100);
		REQUIRE_OK(incr_txn_find(k.st, 7, &info, NULL));
		incr_txn_info_release(&info);
		CHECK_OK(incr_store_refresh(k.st, NULL));
		incr_store_close(k.st);
		k.st = NULL;
		CHECK_INT_EQ(0, store_calls.n_pwrite);
		CHECK_INT_EQ(0, store_calls.n_change);
		CHECK_INT_EQ(0, store_calls.n_lock);
		CHECK_INT_EQ(0, store_calls.n_fdatasync + store_calls.n_fsync +
					store_calls.n_fsync_dir);
	}
	REQUIRE_OK(store_kit_reopen_with(&k, &io_posix, &modes[1]));
	CHECK_INT_EQ(0, store_kit_commit(&k, INCR_APPEND, NULL, "z=1"));
	CHECK_ERR(INCR_E_READONLY, k.err.code);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_commit__expect__holds_or_conflicts),
	TEST(test_commit__lost_races__are_seen_or_repeated),
	TEST(test_commit__update_of_equal_files__records_what_differs),
	TEST(test_commit__repeated_snapshots__share_content),
	TEST(test_commit__large_and_small__stand_in_pack_and_log),
	TEST(test_commit__20000_files__are_all_there),
	TEST(test_commit__streams__are_read_to_their_end),
	TEST(test_commit__special_or_missing_sources__are_named),
	TEST(test_commit__bad_words__are_refused),
	TEST(test_remove__names_and_globs__as_they_stand),
	TEST(test_commit__small__is_one_write_and_one_sync),
	TEST(test_commit__large__is_three_syncs),
	TEST(test_commit__nothing_to_do__writes_nothing),
	TEST(test_read__everything__writes_and_locks_nothing),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "commit", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
