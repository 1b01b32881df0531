/*
 * A plain sorted array that tables, memtables and merges are compared with.
 */
#include "config.h"

#include "table_model.h"

#include "bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t model_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

uint64_t model_seed(void)
{
	const char *given = getenv("INCR_TEST_SEED");
	uint64_t seed = given ? (uint64_t)strtoull(given, NULL, 10) :
				(uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();

	if (!seed)
		seed = 1;
	printf("INCR_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size + 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	return copy;
}

static void entry_release(struct model_entry *e)
{
	free(e->key);
	free(e->value);
}

void model_release(struct model *m)
{
	for (size_t i = 0; i < m->n; i++)
		entry_release(&m->entries[i]);
	free(m->entries);
	*m = (struct model){ 0 };
}

void model_add(struct model *m, const void *key, size_t key_size,
	       const void *value, size_t value_size)
{
	if (m->n == m->capacity) {
		m->capacity = m->capacity ? m->capacity * 2 : 16;
		m->entries = realloc(m->entries,
				     m->capacity * sizeof(m->entries[0]));
		if (!m->entries)
			abort();
	}
	m->entries[m->n] = (struct model_entry){
		.key = copy_of(key, key_size),
		.key_size = key_size,
		.value = value ? copy_of(value, value_size) : NULL,
		.value_size = value_size,
		.is_tombstone = !value,
		.source = (uint32_t)m->n, /* the order, until sorted */
	};
	m->n++;
}

static int entry_order(const void *a, const void *b)
{
	const struct model_entry *x = a, *y = b;
	int order = table_key_compare(x->key, x->key_size, y->key, y->key_size);

	/* The newest of equal keys first. */
	return order ? order :
		       (x->source < y->source) - (x->source > y->source);
}

void model_sort(struct model *m)
{
	size_t n = 0;

	if (m->n)
		qsort(m->entries, m->n, sizeof(m->entries[0]), entry_order);
	for (size_t i = 0; i < m->n; i++) {
		struct model_entry *e = &m->entries[i];
		struct model_entry *last = n ? &m->entries[n - 1] : NULL;

		if (last && !table_key_compare(last->key, last->key_size,
					       e->key, e->key_size))
			entry_release(e);
		else
			m->entries[n++] = *e;
	}
	m->n = n;
	for (size_t i = 0; i < n; i++)
		m->entries[i].source = 0;
}

size_t model_key(enum model_keys keys, uint64_t *random, uint8_t *key)
{
	uint64_t r = model_random(random);
	size_t size = 0;

	switch (keys) {
	case MODEL_SHORT:
		for (size = 0; size < r % 4; size++)
			key[size] =
				(uint8_t) "\0az\xff"[r >> (8 + 8 * size) & 3];
		return size;
	case MODEL_VIEW:
		size = (size_t)snprintf((char *)key, 100,
					"v0123456789abcdefdir_%04u/file_%06u",
					(unsigned)(r >> 40 & 15),
					(unsigned)(r & 0xffff));
		key[size++] = 0;
		put_be64(key + size, r >> 24 & 3);
		return size + 8;
	default:
		size = TABLE_KEY_MAX - r % 9;
		memset(key, 'p', size);
		for (size_t i = 0; i < 3; i++)
			key[size - 1 - (r >> 8 * i) % 40] =
				(uint8_t)('a' + (r >> (32 + 8 * i) & 31));
		return size;
	}
}

void model_fill(struct model *m, size_t n, enum model_keys keys,
		uint64_t *random)
{
	uint8_t key[TABLE_KEY_MAX], value[200];

	for (size_t i = 0; i < n; i++) {
		size_t key_size = model_key(keys, random, key);
		uint64_t r = model_random(random);
		size_t size = r % 60 ? r >> 8 & 63 : r >> 8 & 127;

		for (size_t j = 0; j < size; j++)
			value[j] = (uint8_t)(j % 3 ? j : model_random(random));
		model_add(m, key, key_size, r % 10 ? value : NULL,
			  r % 10 ? size : 0);
	}
	model_sort(m);
}

size_t model_lower_bound(const struct model *m, const void *key, size_t size)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_entry *e = &m->entries[middle];

		if (table_key_compare(e->key, e->key_size, key, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool model_is_entry(const struct model *m, size_t at,
		    const struct table_entry *e)
{
	const struct model_entry *want = &m->entries[at];

	return at < m->n && e->key_size == want->key_size &&
	       !memcmp(e->key, want->key, e->key_size) &&
	       e->is_tombstone == want->is_tombstone &&
	       e->value_size == want->value_size &&
	       !e->value == want->is_tombstone &&
	       (!e->value || !memcmp(e->value, want->value, e->value_size));
}

int model_write(const struct model *m, const struct incr_io *io, int dirfd,
		const char *path, uint64_t tag)
{
	struct table_writer *w;
	int r = table_writer_open(io, dirfd, path, tag, &w, NULL);

	/* the last key has a first byte if any has */
	if (r >= 0 && m->n && m->entries[m->n - 1].key_size) {
		r = table_writer_filter(w, m->entries[m->n - 1].key[0],
					m->n / 2 + 1, NULL);
		if (r < 0)
			table_writer_abort(w);
	}
	for (size_t i = 0; r >= 0 && i < m->n; i++) {
		struct table_entry e = {
			.key = m->entries[i].key,
			.key_size = m->entries[i].key_size,
			.value = m->entries[i].value,
			.value_size = m->entries[i].value_size,
			.is_tombstone = m->entries[i].is_tombstone,
		};

		r = table_writer_put(w, &e, NULL);
		if (r < 0)
			table_writer_abort(w);
	}
	return r < 0 ? r : table_writer_finish(w, false, NULL);
}
