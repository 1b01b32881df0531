/*
 * Iterators that may leave out entries of a small rank: none of the others is
 * missing, nothing is given that is not there, and blocks that hold nothing
 * else are not read.
 */
#include "config.h"

#include "table.h"

#include "bytes.h"
#include "table_format.h"
#include "table_model.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG UINT64_C(0x8877665544332211)

static unsigned n_preads;

static int64_t counting_pread(const struct incr_io *io, int fd, void *data,
			      size_t size, uint64_t off)
{
	n_preads++;
	return io_posix.pread(io, fd, data, size, off);
}

struct fixture {
	int dirfd;
	struct incr_io io;
	struct block_cache *cache;
	struct table *table;
	struct model model;
};

static void fixture_release(struct fixture *f)
{
	table_unref(f->table);
	block_cache_free(f->cache);
	model_release(&f->model);
	(void)unlinkat(f->dirfd, "t", 0);
	(void)close(f->dirfd);
}

static bool fixture_open(struct fixture *f)
{
	model_sort(&f->model);
	f->io = io_posix;
	f->io.pread = counting_pread;
	f->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->cache = block_cache_new((size_t)64 << 20);
	f->table = NULL;
	return model_write(&f->model, &io_posix, f->dirfd, "t", TAG) == 0 &&
	       table_open(&f->io, f->dirfd, "t", TAG, f->cache, &f->table,
			  NULL) == 0;
}

static uint64_t rank_of(const struct model_entry *e)
{
	return table_rank(e->key, e->key_size);
}

/* Entries with paths in order; rank_at() gives the rank of the i-th. */
static void fill(struct model *m, size_t n,
		 uint64_t (*rank_at)(size_t i, size_t n, uint64_t *random),
		 uint64_t *random)
{
	uint8_t key[64], value[40];

	for (size_t i = 0; i < n; i++) {
		int size = snprintf((char *)key, sizeof(key), "v/d%03zu/f%06zu",
				    i / 1000, i);

		for (size_t k = 0; k < sizeof(value); k++)
			value[k] = (uint8_t)model_random(random);
		put_be64(key + size, rank_at(i, n, random));
		model_add(m, key, (size_t)size + 8, value, sizeof(value));
	}
}

static uint64_t rank_random(size_t i, size_t n, uint64_t *random)
{
	(void)i;
	(void)n;
	return model_random(random) % 1000;
}

/* As files that came one directory after the other have it. */
static uint64_t rank_falling(size_t i, size_t n, uint64_t *random)
{
	(void)random;
	return (n - i) / 1000;
}

static uint64_t rank_rising(size_t i, size_t n, uint64_t *random)
{
	(void)n;
	(void)random;
	return i / 1000;
}

/* Runs of small ones of all lengths, with a large one between. */
static uint64_t rank_rare(size_t i, size_t n, uint64_t *random)
{
	(void)i;
	(void)n;
	return model_random(random) % 3000 ? model_random(random) % 500 : 999;
}

/* From @at on the iterator gives every entry of the rank, and others in order. */
static void check_walk(const struct model *m, struct iter *it, int r, size_t at,
		       uint64_t least, size_t n_max)
{
	for (size_t n = 0; r == 0 && n < n_max; n++) {
		while (at < m->n && !model_is_entry(m, at, &it->entry)) {
			if (rank_of(&m->entries[at]) >= least)
				break;
			at++;
		}
		REQUIRE(at < m->n && model_is_entry(m, at, &it->entry));
		at++;
		r = it->next(it, NULL);
	}
	if (r != 1) {
		CHECK_OK(r);
		return;
	}
	for (; at < m->n; at++)
		if (rank_of(&m->entries[at]) >= least)
			CHECK_INT_EQ(m->n, at);
}

static void check_ranks(size_t n, uint64_t (*rank_at)(size_t i, size_t n,
						      uint64_t *random))
{
	static const uint64_t ranks[] = { 0,   1,   10,	 97,   499,
					  500, 900, 999, 1000, UINT64_MAX };
	uint64_t random = model_seed();
	struct fixture f = { .model = { 0 } };

	fill(&f.model, n, rank_at, &random);
	REQUIRE(fixture_open(&f));
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct iter *it;

		REQUIRE_OK(table_iter_new(f.table, &it, NULL));
		it->least_rank = ranks[i];
		check_walk(&f.model, it, it->seek(it, "", 0, NULL), 0, ranks[i],
			   SIZE_MAX);
		/* from anywhere, forward and back */
		for (int k = 0; k < 50 && n; k++) {
			size_t at = (size_t)(model_random(&random) % n);
			const struct model_entry *e = &f.model.entries[at];

			check_walk(&f.model, it,
				   it->seek(it, e->key, e->key_size, NULL), at,
				   ranks[i], 300);
		}
		iter_free(it);
	}
	fixture_release(&f);
}

static void test_rank__any_table__gives_all_that_count(void)
{
	static const size_t sizes[] = { 0,    1,    2,	  150,	 1023,
					1024, 1025, 5000, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_ranks(sizes[i], rank_random);
		check_ranks(sizes[i], rank_falling);
		check_ranks(sizes[i], rank_rising);
		check_ranks(sizes[i], rank_rare);
	}
}

static void count_reads(struct fixture *f, uint64_t least, unsigned *out_n)
{
	struct block_cache *cache = block_cache_new((size_t)64 << 20);
	struct table *t;
	struct iter *it;
	int r;

	REQUIRE_OK(table_open(&f->io, f->dirfd, "t", TAG, cache, &t, NULL));
	REQUIRE_OK(table_iter_new(t, &it, NULL));
	it->least_rank = least;
	n_preads = 0;
	r = it->seek(it, "", 0, NULL);
	while (r == 0)
		r = it->next(it, NULL);
	CHECK_INT_EQ(1, r);
	iter_free(it);
	table_unref(t);
	block_cache_free(cache);
	*out_n = n_preads;
}

/* What lies together is found together. */
static void test_rank__few_that_count__few_blocks_read(void)
{
	uint64_t random = model_seed();
	struct fixture f = { .model = { 0 } };
	unsigned n_all = 0, n = 0;

	fill(&f.model, 200000, rank_rising, &random);
	REQUIRE(fixture_open(&f));
	count_reads(&f, 0, &n_all);
	CHECK(n_all > 500);
	count_reads(&f, 199, &n); /* the last thousand */
	CHECK(n < 20);
	count_reads(&f, 200, &n); /* none at all */
	CHECK(n < 10);
	count_reads(&f, 100, &n);
	CHECK(n < n_all / 2 + 10);
	fixture_release(&f);
}

/* Keys that are too short to have one are always given. */
static void test_rank__short_keys__always_count(void)
{
	struct fixture f = { .model = { 0 } };
	uint8_t key[16] = "k";
	struct iter *it;
	size_t n = 0;
	int r;

	for (unsigned i = 0; i < 20000; i++) {
		key[1] = (uint8_t)(i >> 8);
		key[2] = (uint8_t)i;
		model_add(&f.model, key, i % 2000 ? 16 : 7, "value", 5);
	}
	REQUIRE(fixture_open(&f));
	REQUIRE_OK(table_iter_new(f.table, &it, NULL));
	it->least_rank = UINT64_MAX;
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL))
		n += it->entry.key_size == 7;
	CHECK_INT_EQ(10, n);
	iter_free(it);
	fixture_release(&f);
}

static const struct testing_test tests[] = {
	TEST(test_rank__any_table__gives_all_that_count),
	TEST(test_rank__few_that_count__few_blocks_read),
	TEST(test_rank__short_keys__always_count),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "table_rank", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
