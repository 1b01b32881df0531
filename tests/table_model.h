/*
 * A plain sorted array that tables, memtables and merges are compared with,
 * and random entries for it.
 */
#ifndef INCR_TABLE_MODEL_H
#define INCR_TABLE_MODEL_H

#include "table.h"

struct model_entry {
	uint8_t *key; /* owned */
	size_t key_size;
	uint8_t *value; /* owned */
	size_t value_size;
	bool is_tombstone;
	uint32_t source; /* for a merge: which one the entry is from */
};

/* Sorted by key, without duplicates, once model_sort() has run. */
struct model {
	struct model_entry *entries;
	size_t n;
	size_t capacity;
};

/* How random keys look. */
enum model_keys {
	MODEL_SHORT, /* 0 to 3 letters of few: dense, many duplicates */
	MODEL_VIEW, /* a long common prefix, a path, a number */
	MODEL_LONG, /* up to the limit, mostly shared */
	MODEL_N_KEYS
};

/* xorshift; the state is the seed. */
uint64_t model_random(uint64_t *state);
/* The seed of this run: INCR_TEST_SEED or a new one; printed. Never 0. */
uint64_t model_seed(void);

void model_release(struct model *m);
#define _cleanup_model_ __attribute__((cleanup(model_release)))

/* Append a copy; aborts the program when out of memory, as all of this does. */
void model_add(struct model *m, const void *key, size_t key_size,
	       const void *value, size_t value_size);
/* Sort by key; of equal keys the one added last stays. */
void model_sort(struct model *m);
/* At most @n random entries, sorted; a tenth are tombstones. */
void model_fill(struct model *m, size_t n, enum model_keys keys,
		uint64_t *random);
/* A random key, to look up; returns its size. @key: TABLE_KEY_MAX bytes. */
size_t model_key(enum model_keys keys, uint64_t *random, uint8_t *key);
/* First entry >= the key. */
size_t model_lower_bound(const struct model *m, const void *key, size_t size);

/* Whether @e is entry @at of the model, bytes and all. */
bool model_is_entry(const struct model *m, size_t at,
		    const struct table_entry *e);
/* Write the model as a table, with a filter for some keys; returns what the writer does. */
int model_write(const struct model *m, const struct incr_io *io, int dirfd,
		const char *path, uint64_t tag);

#endif
