/* Memtables against a sorted array. */
#include "config.h"

#include "memtable.h"

#include "bytes.h"
#include "table_model.h"
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void cleanup_memtable(struct memtable **m)
{
	memtable_unref(*m);
}

#define _cleanup_memtable_ __attribute__((cleanup(cleanup_memtable)))

static void check_scan(struct memtable *mt, const struct model *m)
{
	_cleanup_iter_ struct iter *it = NULL;
	size_t n = 0;
	int r;

	REQUIRE_OK(memtable_iter_new(mt, &it));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		REQUIRE(n < m->n && model_is_entry(m, n, &it->entry));
		n++;
	}
	CHECK_INT_EQ(1, r);
	CHECK_INT_EQ(1, it->next(it, NULL));
	CHECK_INT_EQ(m->n, n);
	CHECK_INT_EQ(m->n, memtable_n_entries(mt));
}

static void check_lookups(struct memtable *mt, const struct model *m,
			  enum model_keys keys, uint64_t *random)
{
	_cleanup_iter_ struct iter *it = NULL;
	uint8_t key[TABLE_KEY_MAX];

	REQUIRE_OK(memtable_iter_new(mt, &it));
	for (int i = 0; i < 1000; i++) {
		size_t size = model_key(keys, random, key);
		size_t at = model_lower_bound(m, key, size);
		bool is_there = at < m->n &&
				!table_key_compare(m->entries[at].key,
						   m->entries[at].key_size, key,
						   size);
		struct table_entry e;

		REQUIRE_INT_EQ(!is_there, memtable_get(mt, key, size, &e));
		if (is_there)
			REQUIRE(model_is_entry(m, at, &e));
		REQUIRE_INT_EQ(at == m->n, it->seek(it, key, size, NULL));
		for (int j = 0; j < 3 && at + 1 < m->n; j++) {
			REQUIRE(model_is_entry(m, at, &it->entry));
			at++;
			/* The entry after it, by both ways. */
			if (i % 2)
				REQUIRE_OK(it->next(it, NULL));
			else
				REQUIRE_OK(it->seek(it, m->entries[at].key,
						    m->entries[at].key_size,
						    NULL));
		}
	}
}

static void check_ordinals(struct memtable *mt, const struct model *m)
{
	_cleanup_iter_ struct iter *it = NULL, *other = NULL;
	size_t at = 0;
	int r;

	REQUIRE_OK(memtable_iter_new(mt, &it));
	REQUIRE_OK(memtable_iter_new(mt, &other));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL)) {
		REQUIRE_INT_EQ(at, it->block * TABLE_BLOCK_ENTRIES + it->index);
		REQUIRE(it->index < TABLE_BLOCK_ENTRIES);
		REQUIRE_OK(
			memtable_iter_goto(other, it->block, it->index, NULL));
		REQUIRE(model_is_entry(m, at, &other->entry));
		at++;
	}
	CHECK_ERR(
		INCR_E_RANGE,
		memtable_iter_goto(other, (uint32_t)(at / TABLE_BLOCK_ENTRIES),
				   (uint32_t)(at % TABLE_BLOCK_ENTRIES), NULL));
	CHECK_ERR(INCR_E_RANGE,
		  memtable_iter_goto(other, UINT32_MAX, UINT32_MAX, NULL));
}

/* Entries of @m in an order: ascending, descending, random or in stripes. */
static struct memtable *memtable_of(const struct model *m, int order,
				    uint64_t *random)
{
	struct memtable *mt = NULL;

	if (memtable_new(&mt) < 0)
		abort();
	for (size_t i = 0; i < m->n; i++) {
		size_t at = i;
		const struct model_entry *e;

		if (order == 1)
			at = m->n - 1 - i;
		else if (order >= 2) /* wrong values, put right below */
			at = order == 2 ? model_random(random) % m->n :
					  i * 7919 % m->n;
		e = &m->entries[at];
		if (order >= 2)
			CHECK_OK(memtable_put(mt, e->key, e->key_size, "wrong",
					      5));
		else
			CHECK_OK(memtable_put(mt, e->key, e->key_size, e->value,
					      e->value_size));
	}
	for (size_t i = 0; order >= 2 && i < m->n; i++) {
		const struct model_entry *e = &m->entries[i];

		CHECK_OK(memtable_put(mt, e->key, e->key_size, e->value,
				      e->value_size));
	}
	return mt;
}

static void test_memtable__random_entries__agree_with_a_sorted_array(void)
{
	static const size_t sizes[] = { 0, 1, 2, 50, 1024, 1025, 10000 };
	uint64_t random = model_seed();

	for (size_t i = 0; i < 4 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int keys = 0; keys < MODEL_N_KEYS; keys++) {
			_cleanup_model_ struct model m = { 0 };
			_cleanup_memtable_ struct memtable *mt = NULL;
			size_t n = sizes[i / 4];

			model_fill(&m, keys == MODEL_LONG ? n / 10 : n,
				   (enum model_keys)keys, &random);
			mt = memtable_of(&m, i % 4, &random);
			check_scan(mt, &m);
			check_lookups(mt, &m, (enum model_keys)keys, &random);
			CHECK_OK(memtable_freeze(mt));
			check_scan(mt, &m);
			check_lookups(mt, &m, (enum model_keys)keys, &random);
			check_ordinals(mt, &m);
		}
	}
}

static void test_memtable_put__replaced_value__is_the_new_one(void)
{
	_cleanup_memtable_ struct memtable *m = NULL;
	struct table_entry e;

	REQUIRE_OK(memtable_new(&m));
	CHECK_INT_EQ(1, memtable_get(m, "k", 1, &e));
	CHECK_OK(memtable_put(m, "k", 1, "one", 3));
	CHECK_OK(memtable_put(m, "k", 1, NULL, 0));
	REQUIRE_OK(memtable_get(m, "k", 1, &e));
	CHECK(e.is_tombstone && !e.value && !e.value_size);
	CHECK_OK(memtable_put(m, "k", 1, "", 0));
	REQUIRE_OK(memtable_get(m, "k", 1, &e));
	CHECK(!e.is_tombstone && e.value && !e.value_size);
	CHECK_INT_EQ(1, memtable_n_entries(m));
	CHECK_OK(memtable_put(m, "", 0, "empty key", 9));
	REQUIRE_OK(memtable_get(m, "", 0, &e));
	CHECK_MEM_EQ("empty key", e.value, 9);
	CHECK_INT_EQ(2, memtable_n_entries(m));
}

static void test_memtable_put__limits_and_frozen__are_invalid(void)
{
	_cleanup_memtable_ struct memtable *m = NULL;
	_cleanup_iter_ struct iter *it = NULL;
	_cleanup_free_ uint8_t *bytes = calloc(1, TABLE_VALUE_MAX);
	size_t size;

	REQUIRE(bytes != NULL);
	REQUIRE_OK(memtable_new(&m));
	CHECK_OK(memtable_put(m, bytes, TABLE_KEY_MAX, bytes, TABLE_VALUE_MAX));
	CHECK(memtable_size(m) >= TABLE_KEY_MAX + TABLE_VALUE_MAX);
	CHECK_ERR(INCR_E_INVALID,
		  memtable_put(m, bytes, TABLE_KEY_MAX + 1, "", 0));
	CHECK_ERR(INCR_E_INVALID,
		  memtable_put(m, "k", 1, bytes, TABLE_VALUE_MAX + 1));
	REQUIRE_OK(memtable_iter_new(m, &it));
	CHECK_ERR(INCR_E_INVALID, it->next(it, NULL));
	CHECK_ERR(INCR_E_INVALID, memtable_iter_goto(it, 0, 0, NULL));
	size = memtable_size(m);
	CHECK_OK(memtable_freeze(m));
	CHECK_OK(memtable_freeze(m));
	CHECK_ERR(INCR_E_INVALID, memtable_put(m, "k", 1, "", 0));
	CHECK_INT_EQ(size, memtable_size(m));
	CHECK_INT_EQ(1, memtable_n_entries(m));
}

static void test_memtable__million_in_order__all_there(void)
{
	_cleanup_memtable_ struct memtable *m = NULL;
	_cleanup_iter_ struct iter *it = NULL;
	uint64_t n = 0;
	int r;

	REQUIRE_OK(memtable_new(&m));
	for (uint64_t i = 0; i < 1000000; i++) {
		uint8_t key[8];

		put_be64(key, i);
		REQUIRE_OK(memtable_put(m, key, 8, key, 8));
	}
	CHECK_OK(memtable_freeze(m));
	REQUIRE_OK(memtable_iter_new(m, &it));
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL))
		REQUIRE_INT_EQ(n++, get_be64(it->entry.value));
	CHECK_INT_EQ(1000000, n);
}

struct reader {
	pthread_t thread;
	struct memtable *memtable; /* shared(ref) */
	const struct model *model;
	uint64_t random;
	int n_wrong;
};

static void *reader_run(void *closure)
{
	struct reader *rd = closure;
	struct iter *it = NULL;

	if (memtable_iter_new(rd->memtable, &it) < 0)
		abort();
	memtable_unref(rd->memtable);
	for (int i = 0; i < 20000; i++) {
		size_t at = model_random(&rd->random) % rd->model->n;
		const struct model_entry *e = &rd->model->entries[at];

		if (it->seek(it, e->key, e->key_size, NULL) ||
		    !model_is_entry(rd->model, at, &it->entry))
			rd->n_wrong++;
	}
	iter_free(it);
	return NULL;
}

static void test_memtable__frozen__many_readers(void)
{
	uint64_t random = model_seed();
	_cleanup_model_ struct model m = { 0 };
	struct reader readers[4];
	struct memtable *mt;

	model_fill(&m, 5000, MODEL_VIEW, &random);
	mt = memtable_of(&m, 0, &random);
	CHECK_OK(memtable_freeze(mt));
	for (int i = 0; i < 4; i++) {
		readers[i] = (struct reader){ .memtable = memtable_ref(mt),
					      .model = &m,
					      .random = model_random(&random) };
		REQUIRE_INT_EQ(0, pthread_create(&readers[i].thread, NULL,
						 reader_run, &readers[i]));
	}
	memtable_unref(mt); /* the last reader frees it */
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(readers[i].thread, NULL);
		CHECK_INT_EQ(0, readers[i].n_wrong);
	}
}

static const struct testing_test tests[] = {
	TEST(test_memtable__random_entries__agree_with_a_sorted_array),
	TEST(test_memtable_put__replaced_value__is_the_new_one),
	TEST(test_memtable_put__limits_and_frozen__are_invalid),
	TEST(test_memtable__million_in_order__all_there),
	TEST(test_memtable__frozen__many_readers),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "memtable", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
