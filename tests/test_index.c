/*
 * The derived index: flushed and merged by many, damaged, deleted, ahead of
 * the log; and that looking up never gives anything but the truth.
 */
#include "config.h"

#include "index_files.h"
#include "store_kit.h"
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t n_tables(struct store_kit *k)
{
	return k->st->index->n_tables;
}

static int flush(struct store_kit *k)
{
	return index_flush(k->st->index, store_kit_err(k));
}

/* An index of its own, without a log. */
static bool bare_index_with(struct index_options options,
			    struct index **out_index, int *out_dirfd)
{
	int dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	(void)close(fd);
	options.io = &io_posix;
	options.tag = 42;
	options.store_dirfd = *out_dirfd = dirfd;
	options.cache = block_cache_new(1 << 20);
	return testing_err_eq(0, index_open(&options, out_index, NULL), "0",
			      "index_open", __FILE__, __LINE__);
}

static bool bare_index(struct index **out_index, int *out_dirfd)
{
	struct index_options options = { .is_writable = true };

	return bare_index_with(options, out_index, out_dirfd);
}

static void close_bare(struct index *ix, int dirfd)
{
	struct block_cache *cache = ix->options.cache;

	index_close(ix);
	block_cache_free(cache);
	(void)close(dirfd);
}

/* ---- the index alone, against an array ---- */

#define N_KEYS 300

static void check_keys(struct index *ix, const uint32_t *want)
{
	_cleanup_buf_ struct buf value = BUF_INIT;

	for (uint32_t key = 0; key < N_KEYS; key++) {
		uint8_t bytes[4];
		int r;

		put_u32(bytes, key);
		r = index_get(ix, bytes, 4, &value, NULL);
		if (r != !want[key] ||
		    (r == 0 && get_u32(value.data) != want[key])) {
			CHECK_INT_EQ(want[key], r);
			return;
		}
	}
}

static void check_walk(struct index *ix, const uint32_t *want)
{
	_cleanup_iter_ struct iter *it = NULL;
	uint32_t n = 0, n_want = 0;
	int r;

	for (uint32_t key = 0; key < N_KEYS; key++)
		n_want += want[key] != 0;
	REQUIRE_OK(index_iter(ix, &it, NULL));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL))
		n++;
	CHECK_INT_EQ(1, r);
	CHECK_INT_EQ(n_want, n);
}

/* Returns the most tables that were spilled at a time. */
static size_t check_random(struct index *ix, uint64_t *random)
{
	uint32_t want[N_KEYS] = { 0 };
	size_t n_spilled = 0;

	for (uint32_t i = 1; i <= 12000; i++) {
		uint32_t key = (uint32_t)store_kit_random(random, N_KEYS);
		uint8_t k[4], v[4];

		put_u32(k, key);
		put_u32(v, i);
		want[key] = store_kit_random(random, 3) ? i : 0;
		CHECK_OK(want[key] ? index_put(ix, k, 4, v, 4, NULL) :
				     index_delete(ix, k, 4, NULL));
		if (ix->n_spilled > n_spilled)
			n_spilled = ix->n_spilled;
		if (!store_kit_random(random, 40)) {
			struct index_sources *s;

			/* as a view does */
			CHECK_OK(index_freeze(ix, &s, NULL));
			CHECK(s->n <= INDEX_SOURCES_MAX);
			index_sources_free(s);
		}
		ix->position.position = i;
		if (!store_kit_random(random, 300))
			CHECK_OK(index_flush(ix, NULL));
		if (!store_kit_random(random, 500)) {
			check_keys(ix, want);
			check_walk(ix, want);
		}
	}
	check_keys(ix, want);
	return n_spilled;
}

static void test_index__random_puts_deletes_flushes__equals_array(void)
{
	uint64_t random = store_kit_seed();
	struct index *ix;
	int dirfd;

	REQUIRE(bare_index(&ix, &dirfd));
	CHECK_INT_EQ(0, check_random(ix, &random));
	close_bare(ix, dirfd);
}

/* Files in index/ that are neither the checkpoint nor named by it. */
static size_t count_nameless(const struct index *ix)
{
	size_t n = 0;
	struct dirent *e;
	int fd = openat(ix->options.store_dirfd, "index",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	while (d && (e = readdir(d)))
		n += strstr(e->d_name, ".table") != NULL;
	if (d)
		(void)closedir(d);
	return n - ix->n_tables;
}

static void test_index__memory_spills__equals_array(void)
{
	struct index_options options = { .is_writable = true,
					 .spill_size = 1500 };
	uint64_t random = store_kit_seed();
	struct index *ix;
	int dirfd;

	REQUIRE(bare_index_with(options, &ix, &dirfd));
	CHECK(check_random(ix, &random) > 0);
	CHECK_INT_EQ(0, count_nameless(ix));
	CHECK_OK(index_flush(ix, NULL));
	CHECK_INT_EQ(0, ix->n_spilled);
	CHECK_INT_EQ(0, count_nameless(ix));
	close_bare(ix, dirfd);
}

static void test_index__cannot_spill__stays_in_memory(void)
{
	struct index_options options = { .spill_size = 1500 };
	uint64_t random = store_kit_seed();
	struct index *ix;
	int dirfd;

	REQUIRE(bare_index_with(options, &ix, &dirfd));
	CHECK_INT_EQ(0, check_random(ix, &random));
	close_bare(ix, dirfd);
}

static void test_index_collect__put_meanwhile__is_not_seen(void)
{
	struct index *ix;
	struct iter *it;
	uint8_t key[2] = { 'k', 0 };
	int dirfd, n = 0, r;

	REQUIRE(bare_index(&ix, &dirfd));
	for (; key[1] < 20; key[1]++)
		CHECK_OK(index_put(ix, key, 2, "v", 1, NULL));
	CHECK_OK(index_put(ix, "l", 1, "v", 1, NULL));
	REQUIRE_OK(index_collect(ix, "k", 1, &it, NULL));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		key[1]++;
		CHECK_OK(index_put(ix, key, 2, "v", 1, NULL));
		CHECK_OK(index_delete(ix, it->entry.key, it->entry.key_size,
				      NULL));
		n++;
	}
	CHECK_INT_EQ(20, n);
	iter_free(it);
	close_bare(ix, dirfd);
}

/* ---- flushing ---- */

static void test_index_flush__names_that_were_deleted__stay_away(void)
{
	struct incr_branch_info branch;
	struct incr_dataset_info dataset;
	struct store_kit k;
	uint64_t id;
	char name[16];

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 400);
	CHECK_OK(incr_branch_create(k.st, k.dataset, "b", NULL, 0, NULL));
	CHECK_OK(incr_dataset_create(k.st, "gone", NULL, NULL, &id, NULL));
	CHECK_OK(flush(&k));
	CHECK_OK(incr_branch_delete(k.st, k.dataset, "b", NULL));
	CHECK_OK(incr_dataset_delete(k.st, id, NULL));
	/* newer tables over the one that still has the names */
	for (int i = 0; i < 12; i++) {
		CHECK_OK(flush(&k));
		snprintf(name, sizeof(name), "n%d", i);
		CHECK_OK(incr_branch_create(k.st, k.dataset, name, NULL, 0,
					    NULL));
	}
	CHECK(n_tables(&k) > 1);
	for (int i = 0; i < 2; i++) {
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_branch_find(k.st, k.dataset, "b", &branch,
					   NULL));
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_dataset_find(k.st, "gone", &dataset, NULL));
		CHECK_OK(store_kit_reopen(&k));
	}
	store_kit_check_n_files(&k, 400);
	store_kit_release(&k);
}

static void test_index_flush__many_commits__few_tables(void)
{
	struct store_kit k;
	size_t most = 0, n_files;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 5000; i += 10) {
		store_kit_commit_n(&k, i, i + 10);
		CHECK_OK(flush(&k));
		if (n_tables(&k) > most)
			most = n_tables(&k);
	}
	/* each table four times the next: 4^6 flushes and more */
	CHECK(most <= 8);
	store_kit_size(&k, "index", &n_files);
	CHECK_INT_EQ(n_tables(&k) + 1, n_files);
	CHECK_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 5000);
	store_kit_release(&k);
}

static uint64_t n_written;

static int64_t count_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	(void)io;
	n_written += size;
	return io_posix.pwrite(&io_posix, fd, data, size, off);
}

static void put_noise(struct index *ix, uint64_t *random, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t key[8], value[32];

		put_u64(key, store_kit_random(random, UINT64_MAX));
		for (size_t k = 0; k < sizeof(value); k += 8)
			put_u64(value + k,
				store_kit_random(random, UINT64_MAX));
		CHECK_OK(index_put(ix, key, 8, value, sizeof(value), NULL));
		ix->position.position++;
	}
}

/* Who waits for a flush waits for about what it brings, however much there is. */
static void test_index_flush_short__beside_much__writes_little(void)
{
	struct index_options options = { .is_writable = true };
	struct incr_io io = io_posix;
	uint64_t random = store_kit_seed(), most = 0, size;
	struct index *ix;
	int dirfd;

	REQUIRE(bare_index_with(options, &ix, &dirfd));
	io.pwrite = count_pwrite;
	ix->options.io = &io;
	put_noise(ix, &random, 200000);
	CHECK_OK(index_flush(ix, NULL));
	size = table_size(ix->tables[0].table);
	CHECK(size > 3 * INDEX_MERGE_SHORT);
	for (int i = 0; i < 200; i++) {
		put_noise(ix, &random, 4000);
		n_written = 0;
		CHECK_OK(index_flush_short(ix, NULL));
		if (n_written > most)
			most = n_written;
		CHECK(ix->n_tables <= INDEX_TABLES_MAX);
	}
	CHECK(most < INDEX_MERGE_SHORT + INDEX_MERGE_SHORT / 2);
	CHECK(ix->n_tables > 6);
	/* what was left is done by the first that has the time */
	put_noise(ix, &random, 1);
	CHECK_OK(index_flush(ix, NULL));
	CHECK(ix->n_tables <= 2);
	close_bare(ix, dirfd);
}

static void test_index_flush__leftovers_of_a_crash__are_removed(void)
{
	static const char *const left[] = {
		"store/index/00000000deadbeef.table",
		"store/index/current.0123456789abcdef.tmp",
	};
	struct store_kit k;
	size_t n;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 2; i++) {
		store_kit_commit_n(&k, i, i + 1);
		for (size_t j = 0; j < 2; j++)
			store_kit_write(left[j], "junk", 4);
		CHECK_OK(flush(&k));
		store_kit_size(&k, "index", &n);
		CHECK_INT_EQ(n_tables(&k) + 1, n);
		CHECK_OK(store_kit_reopen(&k));
	}
	store_kit_release(&k);
}

static void test_index_flush__two_handles__build_on_each_other(void)
{
	struct store_kit a, b;

	REQUIRE(store_kit_init_with(&a, store_kit_quick_io()));
	b = a;
	b.st = NULL;
	REQUIRE_OK(store_kit_reopen(&b));
	for (int i = 0; i < 60; i++) {
		struct store_kit *writer = i % 2 ? &a : &b;
		struct store_kit *other = i % 2 ? &b : &a;

		store_kit_commit_n(writer, 3 * i, 3 * i + 3);
		CHECK_OK(flush(writer));
		CHECK_INT_EQ(writer->st->index->checkpoint.position,
			     writer->st->index->position.position);
		if (i % 5 == 0)
			CHECK_OK(incr_store_refresh(other->st, NULL));
	}
	CHECK_OK(flush(&a));
	CHECK_OK(flush(&b));
	CHECK_INT_EQ(0, a.st->index->n_frozen);
	store_kit_check_n_files(&a, 180);
	CHECK_OK(incr_store_refresh(b.st, NULL));
	store_kit_check_n_files(&b, 180);
	incr_store_close(b.st);
	free(b.text);
	CHECK_OK(store_kit_reopen(&a));
	store_kit_check_n_files(&a, 180);
	store_kit_release(&a);
}

static void test_index_adopt__reader_of_many_commits__stays_small(void)
{
	struct incr_store_options options = { .is_readonly = true };
	struct store_kit writer, reader;

	REQUIRE(store_kit_init_with(&writer, store_kit_quick_io()));
	reader = writer;
	reader.st = NULL;
	REQUIRE_OK(store_kit_reopen_with(&reader, &io_posix, &options));
	for (int i = 0; i < 30; i++) {
		store_kit_commit_n(&writer, 100 * i, 100 * i + 100);
		CHECK_OK(flush(&writer));
		CHECK_OK(incr_store_refresh(reader.st, NULL));
		CHECK(memtable_n_entries(reader.st->index->active) <
		      2 * INDEX_FLUSH_ENTRIES);
	}
	CHECK(reader.st->index->checkpoint_id != 0);
	store_kit_check_n_files(&reader, 3000);
	incr_store_close(reader.st);
	free(reader.text);
	store_kit_release(&writer);
}

/* ---- several processes ---- */

#define N_WRITERS 4
#define N_EACH 60

static int write_and_flush(const char *path, int writer)
{
	struct store_kit k = { .io = &io_posix };
	struct incr_store_options options = { .wait_ms = 60000 };
	struct incr_dataset_info info;
	char files[64];

	snprintf(k.path, sizeof(k.path), "%s", path);
	if (store_kit_reopen_with(&k, store_kit_quick_io(), &options) < 0 ||
	    incr_dataset_find(k.st, "data", &info, NULL) < 0)
		return 1;
	k.dataset = info.id;
	incr_dataset_info_release(&info);
	for (int i = 0; i < N_EACH; i++) {
		snprintf(files, sizeof(files), "w%d/f%d=%d", writer, i, i);
		if (!store_kit_commit(&k, INCR_APPEND, NULL, files)) {
			fprintf(stderr, "%s: %s\n", k.err.word, k.err.message);
			return 2;
		}
		if (i % 3 == writer % 3 && flush(&k) < 0)
			return 3;
		/* what was committed is there at once, and so is all before */
		if (i % 10 == 0 &&
		    store_kit_reopen_with(&k, k.io, &options) < 0)
			return 4;
	}
	store_kit_release(&k);
	return 0;
}

static int read_until(const char *path, int stop_fd)
{
	struct store_kit k = { .io = &io_posix };
	struct incr_store_options options = { .is_readonly = true };
	uint64_t before = 0;
	char byte;

	snprintf(k.path, sizeof(k.path), "%s", path);
	(void)fcntl(stop_fd, F_SETFL, O_NONBLOCK);
	k.dataset = 1;
	while (read(stop_fd, &byte, 1) != 0) {
		struct incr_branch_info info;

		if (store_kit_reopen_with(&k, &io_posix, &options) < 0) {
			fprintf(stderr, "reader: %s\n", k.err.message);
			return 5;
		}
		if (incr_branch_find(k.st, 1, NULL, &info, &k.err) < 0)
			return 6;
		if (info.view_files < before ||
		    strstr(store_kit_view(&k, info.head), "!"))
			return 7;
		before = info.view_files;
		incr_branch_info_release(&info);
	}
	store_kit_release(&k);
	return 0;
}

static void test_index_flush__many_processes__nothing_is_lost(void)
{
	struct store_kit k;
	pid_t pids[N_WRITERS + 1];
	int stop[2], status;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	CHECK_INT_EQ(0, pipe(stop));
	incr_store_close(k.st);
	k.st = NULL;
	fflush(NULL);
	for (int i = 0; i <= N_WRITERS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		(void)close(stop[1]);
		_exit(i < N_WRITERS ? write_and_flush(k.path, i) :
				      read_until(k.path, stop[0]));
	}
	(void)close(stop[0]);
	for (int i = 0; i <= N_WRITERS; i++) {
		if (i == N_WRITERS)
			(void)close(stop[1]);
		CHECK_INT_EQ(pids[i], waitpid(pids[i], &status, 0));
		CHECK_INT_EQ(0, status);
	}
	REQUIRE_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, (uint64_t)N_WRITERS * N_EACH);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_index__random_puts_deletes_flushes__equals_array),
	TEST(test_index__memory_spills__equals_array),
	TEST(test_index__cannot_spill__stays_in_memory),
	TEST(test_index_collect__put_meanwhile__is_not_seen),
	TEST(test_index_flush__names_that_were_deleted__stay_away),
	TEST(test_index_flush__many_commits__few_tables),
	TEST(test_index_flush_short__beside_much__writes_little),
	TEST(test_index_flush__leftovers_of_a_crash__are_removed),
	TEST(test_index_flush__two_handles__build_on_each_other),
	TEST(test_index_adopt__reader_of_many_commits__stays_small),
	TEST(test_index_flush__many_processes__nothing_is_lost),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "index", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
