/*
 * Tables against a sorted array: scan, lookup, seek, goto; limits; writers
 * that fail; many readers at once.
 */
#include "config.h"

#include "table.h"

#include "bytes.h"
#include "error.h"
#include "table_format.h"
#include "table_model.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define TAG UINT64_C(0x1122334455667788)

static int tmpdir_open(void)
{
	return open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A table of the model, with its cache; everything checked. */
struct fixture {
	int dirfd;
	struct block_cache *cache;
	struct table *table;
};

#define FIXTURE_INIT ((struct fixture){ -1, NULL, NULL })

static bool fixture_init(struct fixture *f, const struct model *m,
			 size_t cache_size)
{
	struct incr_error err = INCR_ERROR_INIT;
	bool is_ok;

	f->dirfd = tmpdir_open();
	f->cache = block_cache_new(cache_size);
	f->table = NULL;
	(void)unlinkat(f->dirfd, "t", 0);
	is_ok = testing_int_eq(0, model_write(m, &io_posix, f->dirfd, "t", TAG),
			       "write", __FILE__, __LINE__) &&
		testing_int_eq(0,
			       table_open(&io_posix, f->dirfd, "t", TAG,
					  f->cache, &f->table, &err),
			       "open", __FILE__, __LINE__);
	incr_error_release(&err);
	return is_ok;
}

static void fixture_release(struct fixture *f)
{
	table_unref(f->table);
	block_cache_free(f->cache);
	if (f->dirfd >= 0)
		(void)close(f->dirfd);
}

#define _cleanup_fixture_ __attribute__((cleanup(fixture_release)))

static void check_scan(struct table *t, const struct model *m)
{
	_cleanup_iter_ struct iter *it = NULL;
	size_t n = 0;
	int r;

	REQUIRE_OK(table_iter_new(t, &it, NULL));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		REQUIRE(n < m->n && model_is_entry(m, n, &it->entry));
		n++;
	}
	CHECK_INT_EQ(1, r);
	CHECK_INT_EQ(m->n, n);
	CHECK_INT_EQ(m->n, table_n_entries(t));
	CHECK_INT_EQ(1, it->next(it, NULL));
}

static void check_get(struct table *t, const struct model *m, const void *key,
		      size_t key_size)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	size_t at = model_lower_bound(m, key, key_size);
	const struct model_entry *e = at < m->n ? &m->entries[at] : NULL;
	bool is_tombstone = true;
	int r = table_get(t, key, key_size, &value, &is_tombstone, NULL);

	if (!e || table_key_compare(e->key, e->key_size, key, key_size) != 0) {
		REQUIRE_INT_EQ(1, r);
		return;
	}

	REQUIRE_INT_EQ(0, r);
	REQUIRE_INT_EQ(e->is_tombstone, is_tombstone);
	REQUIRE_INT_EQ(e->value_size, value.size);
	if (value.size)
		REQUIRE_MEM_EQ(e->value, value.data, value.size);
}

/* Random lookups, and seeks of one iterator, near and far, with walks. */
static void check_seeks(struct table *t, const struct model *m,
			enum model_keys keys, uint64_t *random)
{
	_cleanup_iter_ struct iter *it = NULL;
	uint8_t key[TABLE_KEY_MAX];
	size_t at = 0;

	REQUIRE_OK(table_iter_new(t, &it, NULL));
	for (int i = 0; i < 3000; i++) {
		size_t size = model_key(keys, random, key);
		uint64_t how = model_random(random) % 3;

		if (how == 0 && at + 5 < m->n) { /* a little ahead */
			const struct model_entry *e =
				&m->entries[at + model_random(random) % 5];

			size = e->key_size;
			memcpy(key, e->key, size);
		} else if (how == 1 && size) {
			size--; /* mostly between two keys */
		}
		at = model_lower_bound(m, key, size);
		check_get(t, m, key, size);
		REQUIRE_INT_EQ(at == m->n, it->seek(it, key, size, NULL));
		if (at < m->n)
			REQUIRE(model_is_entry(m, at, &it->entry));
		for (int steps = i % 4; steps-- && at < m->n;) {
			at++;
			REQUIRE_INT_EQ(at == m->n, it->next(it, NULL));
			if (at < m->n)
				REQUIRE(model_is_entry(m, at, &it->entry));
		}
	}
}

static void check_goto(struct table *t, const struct model *m, uint64_t *random)
{
	_cleanup_iter_ struct iter *it = NULL, *other = NULL;
	_cleanup_free_ uint32_t *places = calloc(m->n + 1, 8);
	size_t n = 0;
	int r;

	REQUIRE_OK(table_iter_new(t, &it, NULL));
	REQUIRE_OK(table_iter_new(t, &other, NULL));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		places[2 * n] = it->block;
		places[2 * n + 1] = it->index;
		n++;
	}
	for (int i = 0; n && i < 3000; i++) {
		size_t at = model_random(random) % n;

		REQUIRE_OK(table_iter_goto(other, places[2 * at],
					   places[2 * at + 1], NULL));
		REQUIRE(model_is_entry(m, at, &other->entry));
		REQUIRE_INT_EQ(at + 1 == n, other->next(other, NULL));
		if (at + 1 < n)
			REQUIRE(model_is_entry(m, at + 1, &other->entry));
	}
	CHECK_ERR(INCR_E_RANGE,
		  table_iter_goto(other, n ? places[2 * n - 2] + 1 : 0, 0,
				  NULL));
	if (n)
		CHECK_ERR(INCR_E_RANGE,
			  table_iter_goto(other, places[2 * n - 2],
					  places[2 * n - 1] + 1, NULL));
}

static void test_table__random_entries__agree_with_a_sorted_array(void)
{
	static const size_t sizes[] = { 0, 1, 2, 17, 300, 1500, 20000 };
	uint64_t random = model_seed();

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int keys = 0; keys < MODEL_N_KEYS; keys++) {
			_cleanup_model_ struct model m = { 0 };
			_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
			size_t n = keys == MODEL_LONG ? sizes[i] / 10 :
							sizes[i];

			model_fill(&m, n, (enum model_keys)keys, &random);
			/* One cache that holds all, one that holds little. */
			REQUIRE(fixture_init(&f, &m,
					     keys % 2 ? 100000 : 64 << 20));
			check_scan(f.table, &m);
			check_seeks(f.table, &m, (enum model_keys)keys,
				    &random);
			check_goto(f.table, &m, &random);
		}
	}
}

static void test_table__hundred_thousand_entries__all_found(void)
{
	uint64_t random = model_seed();
	_cleanup_model_ struct model m = { 0 };
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;

	model_fill(&m, 100000, MODEL_VIEW, &random);
	REQUIRE(fixture_init(&f, &m, 8 << 20));
	check_scan(f.table, &m);
	for (size_t i = 0; i < m.n; i++)
		check_get(f.table, &m, m.entries[i].key, m.entries[i].key_size);
	check_seeks(f.table, &m, MODEL_VIEW, &random);
}

/* The tiniest entries, so that the limit is their number. */
static void test_table__block_of_the_most_entries__starts_the_next_one(void)
{
	for (size_t n = TABLE_BLOCK_ENTRIES - 1; n <= TABLE_BLOCK_ENTRIES + 1;
	     n++) {
		_cleanup_model_ struct model m = { 0 };
		_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
		_cleanup_iter_ struct iter *it = NULL;

		for (size_t i = 0; i < n; i++) {
			uint8_t key[8];

			put_be64(key, i);
			model_add(&m, key, sizeof(key), "", 0);
		}
		model_sort(&m);
		REQUIRE(fixture_init(&f, &m, 1 << 20));
		check_scan(f.table, &m);
		REQUIRE_OK(table_iter_new(f.table, &it, NULL));
		REQUIRE_OK(it->seek(it, m.entries[n - 1].key, 8, NULL));
		CHECK_INT_EQ(n > TABLE_BLOCK_ENTRIES, it->block);
		CHECK_INT_EQ((n - 1) % TABLE_BLOCK_ENTRIES, it->index);
	}
}

/* Two entries that fill a block to the byte, and one byte less and more. */
static void test_table__block_filled_to_the_byte__splits_after_it(void)
{
	static uint8_t value[TABLE_BLOCK_SIZE];

	for (int more = -1; more <= 1; more++) {
		_cleanup_model_ struct model m = { 0 };
		_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
		_cleanup_iter_ struct iter *it = NULL;
		/* 1 + 1 + 2 bytes of numbers and 1 of key, twice. */
		size_t rest = TABLE_BLOCK_SIZE - 2 * 5 - 8000;

		model_add(&m, "a", 1, value, 8000);
		model_add(&m, "b", 1, value, rest + (size_t)(more + 1) - 1);
		model_sort(&m);
		REQUIRE(fixture_init(&f, &m, 1 << 20));
		check_scan(f.table, &m);
		REQUIRE_OK(table_iter_new(f.table, &it, NULL));
		REQUIRE_OK(it->seek(it, "b", 1, NULL));
		CHECK_INT_EQ(more > 0, it->block);
	}
}

static void test_table__entries_at_the_limits__come_back(void)
{
	_cleanup_free_ uint8_t *value = malloc(TABLE_VALUE_MAX);
	_cleanup_model_ struct model m = { 0 };
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
	uint8_t key[TABLE_KEY_MAX];
	uint64_t random = model_seed();

	REQUIRE(value != NULL);
	for (size_t i = 0; i < TABLE_VALUE_MAX; i++)
		value[i] = (uint8_t)(model_random(&random) >> (i & 7));
	memset(key, 'k', sizeof(key));
	model_add(&m, "", 0, value, TABLE_VALUE_MAX);
	model_add(&m, key, sizeof(key), value, TABLE_VALUE_MAX);
	key[sizeof(key) - 1] = 'l';
	model_add(&m, key, sizeof(key), NULL, 0);
	key[0] = 'z';
	model_add(&m, key, sizeof(key), "", 0);
	model_sort(&m);
	REQUIRE(fixture_init(&f, &m, 1 << 20));
	check_scan(f.table, &m);
	for (size_t i = 0; i < m.n; i++)
		check_get(f.table, &m, m.entries[i].key, m.entries[i].key_size);
}

static void test_table_put__bad_entry__is_refused_and_left_out(void)
{
	static uint8_t bytes[TABLE_KEY_MAX + 1];
	struct table_entry e = { .key = (const uint8_t *)"m", .key_size = 1 };
	struct block_cache *cache = block_cache_new(1 << 20);
	int dirfd = tmpdir_open();
	struct table_writer *w;
	struct table *t = NULL;

	e.value = bytes;
	e.value_size = 3;
	REQUIRE_OK(table_writer_open(&io_posix, dirfd, "t", TAG, &w, NULL));
	CHECK_OK(table_writer_put(w, &e, NULL));
	CHECK_ERR(INCR_E_INVALID, table_writer_put(w, &e, NULL));
	e.key = (const uint8_t *)"lz";
	e.key_size = 2;
	CHECK_ERR(INCR_E_INVALID, table_writer_put(w, &e, NULL));
	e.key_size = 0;
	CHECK_ERR(INCR_E_INVALID, table_writer_put(w, &e, NULL));
	memset(bytes, 'x', sizeof(bytes));
	e.key = bytes;
	e.key_size = sizeof(bytes);
	CHECK_ERR(INCR_E_INVALID, table_writer_put(w, &e, NULL));
	e.key_size = 1;
	e.value_size = TABLE_VALUE_MAX + 1; /* refused before it is read */
	CHECK_ERR(INCR_E_INVALID, table_writer_put(w, &e, NULL));
	CHECK_OK(table_writer_finish(w, true, NULL));
	REQUIRE_OK(table_open(&io_posix, dirfd, "t", TAG, cache, &t, NULL));
	CHECK_INT_EQ(1, table_n_entries(t));
	table_unref(t);
	block_cache_free(cache);
	(void)close(dirfd);
}

static void test_table_writer__file_there__is_exists(void)
{
	_cleanup_model_ struct model m = { 0 };
	struct block_cache *cache = block_cache_new(1 << 20);
	int dirfd = tmpdir_open();
	struct table_writer *w;
	struct table *t;

	CHECK_OK(model_write(&m, &io_posix, dirfd, "t", TAG));
	CHECK_ERR(INCR_E_EXISTS,
		  table_writer_open(&io_posix, dirfd, "t", TAG, &w, NULL));
	REQUIRE_OK(table_writer_open(&io_posix, dirfd, "u", TAG, &w, NULL));
	table_writer_abort(w);
	CHECK_INT_EQ(-1, faccessat(dirfd, "u", F_OK, 0));
	CHECK_ERR(INCR_E_NOTFOUND,
		  table_open(&io_posix, dirfd, "u", TAG, cache, &t, NULL));
	block_cache_free(cache);
	(void)close(dirfd);
}

static void test_table_iter__stands_nowhere__next_is_invalid(void)
{
	_cleanup_model_ struct model m = { 0 };
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
	_cleanup_iter_ struct iter *it = NULL;

	model_add(&m, "a", 1, "b", 1);
	REQUIRE(fixture_init(&f, &m, 1 << 20));
	REQUIRE_OK(table_iter_new(f.table, &it, NULL));
	CHECK_ERR(INCR_E_INVALID, it->next(it, NULL));
	CHECK_OK(it->seek(it, "a", 1, NULL));
	CHECK_ERR(INCR_E_RANGE, table_iter_goto(it, 0, 1, NULL));
	CHECK_ERR(INCR_E_INVALID, it->next(it, NULL));
}

/* io_posix that counts reads and fails on order. */
struct faulty_io {
	struct incr_io io;
	int n_reads;
	int n_writes_left; /* before they fail; negative: never */
	bool fails_sync;
	bool fails_close;
};

static int64_t faulty_pread(const struct incr_io *io, int fd, void *data,
			    size_t size, uint64_t off)
{
	((struct faulty_io *)io->closure)->n_reads++;
	return io_posix.pread(&io_posix, fd, data, size, off);
}

static int64_t faulty_pwrite(const struct incr_io *io, int fd, const void *data,
			     size_t size, uint64_t off)
{
	struct faulty_io *f = io->closure;

	if (f->n_writes_left == 0)
		return -ENOSPC;
	f->n_writes_left--;
	return io_posix.pwrite(&io_posix, fd, data, size, off);
}

static int faulty_fsync(const struct incr_io *io, int fd)
{
	struct faulty_io *f = io->closure;

	return f->fails_sync ? -EIO : io_posix.fsync(&io_posix, fd);
}

static int faulty_fdatasync(const struct incr_io *io, int fd)
{
	struct faulty_io *f = io->closure;

	return f->fails_sync ? -EIO : io_posix.fdatasync(&io_posix, fd);
}

static int faulty_close(const struct incr_io *io, int fd)
{
	struct faulty_io *f = io->closure;
	int r = io_posix.close(&io_posix, fd);

	return f->fails_close ? -EIO : r;
}

static void faulty_init(struct faulty_io *f)
{
	*f = (struct faulty_io){ .io = io_posix, .n_writes_left = -1 };
	f->io.closure = f;
	f->io.pread = faulty_pread;
	f->io.pwrite = faulty_pwrite;
	f->io.fsync = faulty_fsync;
	f->io.fdatasync = faulty_fdatasync;
	f->io.close = faulty_close;
}

static void test_table_writer__write_fails__removes_the_file(void)
{
	uint64_t random = model_seed();
	_cleanup_model_ struct model m = { 0 };
	int dirfd = tmpdir_open();

	model_fill(&m, 20000, MODEL_VIEW, &random);
	for (int kind = 0; kind < 5; kind++) {
		struct table_entry e = { .key = (const uint8_t *)"k",
					 .key_size = 1,
					 .value = (const uint8_t *)"v",
					 .value_size = 1 };
		struct faulty_io f;
		struct table_writer *w;

		faulty_init(&f);
		f.n_writes_left = kind < 2 ? kind : -1;
		f.fails_sync = kind == 2;
		f.fails_close = kind == 3;
		REQUIRE_OK(table_writer_open(&f.io, dirfd, "t", TAG, &w, NULL));
		CHECK_OK(table_writer_put(w, &e, NULL));
		if (kind == 1)
			f.n_writes_left = 0;
		CHECK_ERR(kind < 2 ? INCR_E_NOSPC :
			  kind < 4 ? INCR_E_IO :
				     0,
			  table_writer_finish(w, true, NULL));
		CHECK_INT_EQ(kind < 4 ? -1 : 0, faccessat(dirfd, "t", F_OK, 0));
		(void)unlinkat(dirfd, "t", 0);
		faulty_init(&f);
		f.n_writes_left = kind;
		CHECK_INT_EQ(kind < 3 ? INCR_E_NOSPC : 0,
			     model_write(&m, &f.io, dirfd, "u", TAG));
		(void)unlinkat(dirfd, "u", 0);
	}
	(void)close(dirfd);
}

static void test_table_open__large_table__reads_once(void)
{
	uint64_t random = model_seed();
	_cleanup_model_ struct model m = { 0 };
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
	struct faulty_io faulty; /* outlives the iterator */
	_cleanup_iter_ struct iter *it = NULL;
	struct table *t = NULL;

	model_fill(&m, 50000, MODEL_VIEW, &random);
	REQUIRE(fixture_init(&f, &m, 1 << 20));
	faulty_init(&faulty);
	REQUIRE_OK(
		table_open(&faulty.io, f.dirfd, "t", TAG, f.cache, &t, NULL));
	CHECK_INT_EQ(1, faulty.n_reads);
	CHECK_OK(table_iter_new(t, &it, NULL));
	CHECK_OK(it->seek(it, m.entries[100].key, m.entries[100].key_size,
			  NULL));
	CHECK(faulty.n_reads <= 4);
	table_unref(t); /* the iterator holds it */
	faulty.n_reads = 0;
	CHECK_OK(it->seek(it, m.entries[103].key, m.entries[103].key_size,
			  NULL));
	CHECK(model_is_entry(&m, 103, &it->entry));
	CHECK(faulty.n_reads <= 1);
}

struct reader {
	pthread_t thread;
	struct table *table;
	const struct model *model;
	uint64_t random;
	int n_wrong;
};

static void *reader_run(void *closure)
{
	struct reader *rd = closure;
	_cleanup_buf_ struct buf value = BUF_INIT;
	_cleanup_iter_ struct iter *it = NULL;

	if (table_iter_new(rd->table, &it, NULL) < 0) {
		rd->n_wrong++;
		return NULL;
	}
	for (int i = 0; i < 3000; i++) {
		size_t at = model_random(&rd->random) % rd->model->n;
		const struct model_entry *e = &rd->model->entries[at];
		bool is_tombstone;

		if (table_get(rd->table, e->key, e->key_size, &value,
			      &is_tombstone, NULL) ||
		    is_tombstone != e->is_tombstone ||
		    value.size != e->value_size)
			rd->n_wrong++;
		if (it->seek(it, e->key, e->key_size, NULL))
			rd->n_wrong++;
		for (int j = 0; j < 20 && at < rd->model->n; j++, at++) {
			if (!model_is_entry(rd->model, at, &it->entry))
				rd->n_wrong++;
			if (it->next(it, NULL))
				break;
		}
	}
	return NULL;
}

static void test_table__many_readers__all_see_the_same(void)
{
	uint64_t random = model_seed();
	_cleanup_model_ struct model m = { 0 };
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
	struct reader readers[6];

	model_fill(&m, 20000, MODEL_VIEW, &random);
	REQUIRE(fixture_init(&f, &m, 300000)); /* evicts all the time */
	for (int i = 0; i < 6; i++) {
		readers[i] = (struct reader){ .table = f.table,
					      .model = &m,
					      .random = model_random(&random) };
		REQUIRE_INT_EQ(0, pthread_create(&readers[i].thread, NULL,
						 reader_run, &readers[i]));
	}
	for (int i = 0; i < 6; i++) {
		(void)pthread_join(readers[i].thread, NULL);
		CHECK_INT_EQ(0, readers[i].n_wrong);
	}
}

static const struct testing_test tests[] = {
	TEST(test_table__random_entries__agree_with_a_sorted_array),
	TEST(test_table__hundred_thousand_entries__all_found),
	TEST(test_table__block_of_the_most_entries__starts_the_next_one),
	TEST(test_table__block_filled_to_the_byte__splits_after_it),
	TEST(test_table__entries_at_the_limits__come_back),
	TEST(test_table_put__bad_entry__is_refused_and_left_out),
	TEST(test_table_writer__file_there__is_exists),
	TEST(test_table_iter__stands_nowhere__next_is_invalid),
	TEST(test_table_writer__write_fails__removes_the_file),
	TEST(test_table_open__large_table__reads_once),
	TEST(test_table__many_readers__all_see_the_same),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "table", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
