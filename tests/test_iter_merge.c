/* Merges of tables and memtables against a sorted array of the newest entries. */
#include "config.h"

#include "memtable.h"
#include "table.h"

#include "table_model.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG UINT64_C(99)
#define SOURCES_MAX 20

/* Sources, newest first, and what their merge must give. */
struct fixture {
	int dirfd;
	struct block_cache *cache;
	struct model sources[SOURCES_MAX];
	size_t n_sources;
	struct model all;
};

static void fixture_release(struct fixture *f)
{
	for (size_t i = 0; i < f->n_sources; i++)
		model_release(&f->sources[i]);
	model_release(&f->all);
	block_cache_free(f->cache);
	if (f->dirfd >= 0)
		(void)close(f->dirfd);
}

#define _cleanup_fixture_ __attribute__((cleanup(fixture_release)))
#define FIXTURE_INIT ((struct fixture){ .dirfd = -1 })

/* The source that has the key and comes first. */
static uint32_t newest_source(const struct fixture *f, const void *key,
			      size_t size)
{
	for (uint32_t i = 0; i < f->n_sources; i++) {
		const struct model *m = &f->sources[i];
		size_t at = model_lower_bound(m, key, size);

		if (at < m->n &&
		    !table_key_compare(m->entries[at].key,
				       m->entries[at].key_size, key, size))
			return i;
	}
	return UINT32_MAX;
}

static void fixture_fill(struct fixture *f, size_t n_sources, size_t n,
			 enum model_keys keys, uint64_t *random)
{
	f->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->cache = block_cache_new(1 << 20);
	f->n_sources = n_sources;
	for (size_t i = 0; i < n_sources; i++)
		model_fill(&f->sources[i], model_random(random) % (n + 1), keys,
			   random);
	for (size_t i = n_sources; i-- > 0;) {
		for (size_t j = 0; j < f->sources[i].n; j++) {
			const struct model_entry *e = &f->sources[i].entries[j];

			model_add(&f->all, e->key, e->key_size, e->value,
				  e->value_size);
		}
	}
	model_sort(&f->all);
	for (size_t i = 0; i < f->all.n; i++)
		f->all.entries[i].source = newest_source(
			f, f->all.entries[i].key, f->all.entries[i].key_size);
}

/* Keep only the entries that are no tombstones. */
static void model_drop_tombstones(struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (m->entries[i].is_tombstone)
			free(m->entries[i].key);
		else
			m->entries[n++] = m->entries[i];
	}
	m->n = n;
}

/* Even sources are memtables, odd ones tables. */
static struct iter *source_iter(const struct fixture *f, size_t i)
{
	const struct model *m = &f->sources[i];
	struct iter *it = NULL;
	struct memtable *mt;
	struct table *t;

	if (i % 2) {
		(void)unlinkat(f->dirfd, "t", 0);
		CHECK_OK(model_write(m, &io_posix, f->dirfd, "t", TAG));
		CHECK_OK(table_open(&io_posix, f->dirfd, "t", TAG, f->cache, &t,
				    NULL));
		CHECK_OK(table_iter_new(t, &it, NULL));
		table_unref(t);
		return it;
	}

	CHECK_OK(memtable_new(&mt));
	for (size_t j = 0; j < m->n; j++)
		CHECK_OK(memtable_put(
			mt, m->entries[j].key, m->entries[j].key_size,
			m->entries[j].value, m->entries[j].value_size));
	if (i % 4 == 0)
		CHECK_OK(memtable_freeze(mt));
	CHECK_OK(memtable_iter_new(mt, &it));
	memtable_unref(mt);
	return it;
}

static struct iter *fixture_merge(struct fixture *f, bool drops_tombstones)
{
	struct iter *sources[SOURCES_MAX], *it = NULL;

	for (size_t i = 0; i < f->n_sources; i++)
		sources[i] = source_iter(f, i);
	if (drops_tombstones)
		model_drop_tombstones(&f->all);
	CHECK_OK(iter_merge_new(sources, f->n_sources, drops_tombstones, &it,
				NULL));
	return it;
}

static bool is_at(const struct fixture *f, size_t at, const struct iter *it)
{
	return model_is_entry(&f->all, at, &it->entry) &&
	       it->source == f->all.entries[at].source;
}

static void check_walk(const struct fixture *f, struct iter *it)
{
	size_t n = 0;
	int r;

	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		REQUIRE(n < f->all.n && is_at(f, n, it));
		n++;
	}
	CHECK_INT_EQ(1, r);
	CHECK_INT_EQ(f->all.n, n);
	CHECK_INT_EQ(1, it->next(it, NULL));
}

static void check_seeks(const struct fixture *f, struct iter *it,
			enum model_keys keys, uint64_t *random)
{
	const struct model *m = &f->all;
	uint8_t key[TABLE_KEY_MAX];
	size_t at = 0;

	for (int i = 0; i < 400; i++) {
		size_t size = model_key(keys, random, key);

		if (i % 2 && at + 4 < m->n) { /* a little ahead, or here */
			const struct model_entry *e =
				&m->entries[at + model_random(random) % 4];

			size = e->key_size;
			if (size)
				memcpy(key, e->key, size);
		}
		at = model_lower_bound(m, key, size);
		REQUIRE_INT_EQ(at == m->n, it->seek(it, key, size, NULL));
		if (at < m->n)
			REQUIRE(is_at(f, at, it));
		for (int j = i % 5; j-- && at < m->n;) {
			at++;
			REQUIRE_INT_EQ(at == m->n, it->next(it, NULL));
			if (at < m->n)
				REQUIRE(is_at(f, at, it));
		}
	}
}

static void test_iter_merge__random_sources__newest_wins(void)
{
	static const size_t counts[] = { 0, 1, 2, 3, 8, 16, 17, SOURCES_MAX };
	uint64_t random = model_seed();

	for (size_t i = 0; i < 16; i++) {
		for (int keys = 0; keys < MODEL_N_KEYS; keys++) {
			_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
			_cleanup_iter_ struct iter *it = NULL;

			fixture_fill(&f, counts[i / 2],
				     keys == MODEL_VIEW ? 2000 : 60,
				     (enum model_keys)keys, &random);
			it = fixture_merge(&f, i % 2);
			check_walk(&f, it);
			check_seeks(&f, it, (enum model_keys)keys, &random);
			check_walk(&f, it);
		}
	}
}

static void test_iter_merge__of_merges__newest_wins(void)
{
	uint64_t random = model_seed();
	_cleanup_fixture_ struct fixture f = FIXTURE_INIT;
	_cleanup_iter_ struct iter *it = NULL;
	struct iter *inner[2], *sources[8];
	size_t n = 0;
	int r;

	fixture_fill(&f, 8, 100, MODEL_SHORT, &random);
	for (size_t i = 0; i < 8; i++)
		sources[i] = source_iter(&f, i);
	REQUIRE_OK(iter_merge_new(sources, 4, false, &inner[0], NULL));
	REQUIRE_OK(iter_merge_new(sources + 4, 4, false, &inner[1], NULL));
	REQUIRE_OK(iter_merge_new(inner, 2, false, &it, NULL));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		REQUIRE(model_is_entry(&f.all, n, &it->entry));
		REQUIRE_INT_EQ(f.all.entries[n].source / 4, it->source);
		n++;
	}
	CHECK_INT_EQ(f.all.n, n);
}

static void test_iter_merge__stands_nowhere__next_is_invalid(void)
{
	_cleanup_iter_ struct iter *it = NULL;

	REQUIRE_OK(iter_merge_new(NULL, 0, true, &it, NULL));
	CHECK_ERR(INCR_E_INVALID, it->next(it, NULL));
	CHECK_INT_EQ(1, it->seek(it, "", 0, NULL));
	CHECK_INT_EQ(1, it->next(it, NULL));
}

/* A source of one-letter keys that fails at its n-th call. */
struct failing_iter {
	struct iter iter; /* first */
	int n_calls_left;
	uint8_t letter;
	int *n_freed;
};

static int failing_step(struct failing_iter *f)
{
	if (f->n_calls_left-- == 0)
		return INCR_E_IO;
	f->iter.entry = (struct table_entry){ .key = &f->letter,
					      .key_size = 1,
					      .value = &f->letter,
					      .value_size = 1 };
	return f->letter > 'z';
}

static int failing_seek(struct iter *it, const void *key, size_t key_size,
			struct incr_error *err)
{
	struct failing_iter *f = (struct failing_iter *)it;

	(void)err;
	f->letter = key_size ? *(const uint8_t *)key : 'a';
	return failing_step(f);
}

static int failing_next(struct iter *it, struct incr_error *err)
{
	struct failing_iter *f = (struct failing_iter *)it;

	(void)err;
	f->letter++;
	return failing_step(f);
}

static void failing_free(struct iter *it)
{
	++*((struct failing_iter *)it)->n_freed;
	free(it);
}

static struct iter *failing_new(int n_calls, int *n_freed)
{
	struct failing_iter *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	*f = (struct failing_iter){ .iter = { .seek = failing_seek,
					      .next = failing_next,
					      .free = failing_free },
				    .n_calls_left = n_calls,
				    .n_freed = n_freed };
	return &f->iter;
}

static void test_iter_merge__source_fails__fails_until_next_seek(void)
{
	for (int n_calls = 0; n_calls < 28; n_calls++) {
		int n_freed = 0, n = 0, r;
		struct iter *sources[3] = { failing_new(1000, &n_freed),
					    failing_new(n_calls, &n_freed),
					    failing_new(1000, &n_freed) };
		struct iter *it = NULL;

		REQUIRE_OK(iter_merge_new(sources, 3, false, &it, NULL));
		r = it->seek(it, "", 0, NULL);
		for (; r == 0; r = it->next(it, NULL)) {
			CHECK_INT_EQ('a' + n++, it->entry.key[0]);
			CHECK_INT_EQ(0, it->source);
		}
		CHECK_INT_EQ(n_calls == 27 ? 1 : INCR_E_IO, r);
		CHECK_INT_EQ(n_calls == 27 ? 1 : INCR_E_INVALID,
			     it->next(it, NULL));
		CHECK_INT_EQ(n_calls == 27 ? INCR_E_IO : 0,
			     it->seek(it, "c", 1, NULL));
		iter_free(it);
		CHECK_INT_EQ(3, n_freed);
	}
}

static const struct testing_test tests[] = {
	TEST(test_iter_merge__random_sources__newest_wins),
	TEST(test_iter_merge__of_merges__newest_wins),
	TEST(test_iter_merge__stands_nowhere__next_is_invalid),
	TEST(test_iter_merge__source_fails__fails_until_next_seek),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "iter_merge", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
