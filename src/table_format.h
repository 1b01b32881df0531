/*
 * What the parts of the table implementation share: the numbers of the file
 * format, decoded blocks and their cache.  docs/format.md, "Tables".
 */
#ifndef INCR_TABLE_FORMAT_H
#define INCR_TABLE_FORMAT_H

#include "bytes.h"
#include "table.h"

#include <stdatomic.h>

#define TABLE_MAGIC "INCRTABL"
#define TABLE_VERSION 2
#define TABLE_FOOTER_SIZE 96
#define TABLE_FOOTER_HASHED 88 /* bytes before the hash */
#define TABLE_HEADER_SIZE 28 /* of a block */
#define TABLE_HEADER_HASH 8 /* the hash stands first, over all after it */
#define TABLE_KEYS_MAX 65536 /* full key bytes of one block */
#define TABLE_INDEX_VALUE_SIZE 24
#define TABLE_LEVELS_MAX 32
#define TABLE_FILTER_LEVEL 255 /* of a block that is part of the filter */
#define TABLE_FILTER_LINE 64 /* bytes that hold all bits of a key */
#define TABLE_FILTER_BLOCK_LINES 64
#define TABLE_FILTER_KEYS_MAX (UINT64_C(1) << 25) /* 40 MiB of filter */
/* Three varints before the bytes of an entry, each as long as its limit. */
#define TABLE_ENTRY_OVERHEAD 8
#define TABLE_RAW_MAX (TABLE_ENTRY_OVERHEAD + TABLE_KEY_MAX + TABLE_VALUE_MAX)
#define TABLE_BLOCK_MAX (TABLE_HEADER_SIZE + TABLE_RAW_MAX)

/* Where a block stands, and what it must say about itself. */
struct block_place {
	uint64_t off;
	uint32_t size; /* header included */
	uint32_t number; /* index block: of the first data block below it */
	uint8_t level; /* 0: data */
};

struct block_entry {
	uint32_t key_off; /* in keys */
	uint32_t value_off; /* in raw */
	uint32_t value_size;
	uint16_t key_size;
	bool is_tombstone;
};

/* A decoded block: never changed once it can be seen; shared by references. */
struct block {
	atomic_size_t n_refs;
	uint32_t number;
	uint32_t n_entries; /* at least 1 */
	uint8_t level;
	size_t charge; /* bytes of memory */
	const uint8_t *keys; /* full keys, back to back */
	const uint8_t *raw; /* payload as encoded; values stay in place */
	/* The cache's, under the lock of the shard. */
	uint64_t table_id;
	uint64_t off;
	struct block *chain_next;
	struct block *lru_prev, *lru_next;
	struct block_entry entries[];
};

struct decompressor;

/*
 * Decode and check the block of @place from its stored bytes (place->size of
 * them).  Pure.  INCR_E_CORRUPT: *out_reason says why (static), nothing else
 * is touched.
 */
int block_decode(const struct block_place *place, uint64_t tag,
		 const uint8_t *stored, struct decompressor *d,
		 struct block **out_block, const char **out_reason);
void block_unref(struct block *b); /* NULL allowed */
void cleanup_block(struct block **b);
#define _cleanup_block_ __attribute__((cleanup(cleanup_block)))

static inline struct block *block_ref(struct block *b)
{
	atomic_fetch_add_explicit(&b->n_refs, 1, memory_order_relaxed);
	return b;
}

static inline const uint8_t *block_key(const struct block *b, uint32_t i)
{
	return b->keys + b->entries[i].key_off;
}

/* What blocks can be passed over by: the last eight bytes of a key, as a number. */
static inline uint64_t table_rank(const uint8_t *key, size_t size)
{
	return size < 8 ? UINT64_MAX : get_be64(key + size - 8);
}

static inline int block_compare(const struct block *b, uint32_t i,
				const void *key, size_t key_size)
{
	return table_key_compare(block_key(b, i), b->entries[i].key_size, key,
				 key_size);
}

/* First entry with a key >= @key; n_entries if none. */
uint32_t block_lower_bound(const struct block *b, const void *key,
			   size_t key_size);
/* The same among entries [@low, @high); @high if none. */
uint32_t block_lower_bound_in(const struct block *b, uint32_t low,
			      uint32_t high, const void *key, size_t key_size);
/* The entry of an index block that leads to @key, or to data block @number. */
uint32_t block_index_by_key(const struct block *b, const void *key,
			    size_t key_size);
uint32_t block_index_by_number(const struct block *b, uint32_t number);
void block_child(const struct block *b, uint32_t i,
		 struct block_place *out_place);
/* No key below entry @i of an index block has a larger rank. */
uint64_t block_child_rank(const struct block *b, uint32_t i);
/* The first such entry from @i on with a rank of at least @least; n_entries if none. */
uint32_t block_next_of_rank(const struct block *b, uint32_t i, uint64_t least);

/* Hash of a block's bytes after the hash, bound to its file and place. */
uint64_t block_hash(uint64_t tag, uint64_t off, const uint8_t *bytes,
		    size_t size);

/* What reading one block needs besides the block; kept for the next reader. */
struct block_scratch {
	struct block_scratch *next;
	struct decompressor *d; /* owned */
	struct buf stored;
};

uint64_t block_cache_new_id(struct block_cache *c);
/* A new reference, or NULL. */
struct block *block_cache_find(struct block_cache *c, uint64_t table_id,
			       uint64_t off);
/*
 * Keep @b (the caller's reference is taken) and return a reference to the
 * cached block: another one if another thread was faster.
 */
struct block *block_cache_add(struct block_cache *c, struct block *b,
			      uint64_t table_id, uint64_t off);
/* Forget all blocks of a table that no one will read again. */
void block_cache_drop(struct block_cache *c, uint64_t table_id);
struct block_scratch *block_cache_take_scratch(struct block_cache *c);
void block_cache_put_scratch(struct block_cache *c, struct block_scratch *s);

struct table {
	atomic_size_t n_refs;
	const struct incr_io *io; /* borrowed */
	struct block_cache *cache; /* borrowed */
	char *path; /* owned; for messages */
	int fd; /* owned */
	uint64_t id; /* in the cache */
	uint64_t tag;
	uint64_t size;
	uint64_t n_entries;
	uint64_t n_blocks; /* data blocks */
	struct block_place root;
	uint8_t filter_prefix; /* of the keys in the filter */
	uint64_t filter_off; /* of its first block */
	uint64_t n_filter_lines; /* 0: there is no filter */
	uint64_t n_filtered; /* keys in it */
};

/* ---- table_filter.c ---- */

/* A filter being made. */
struct filter {
	uint8_t prefix;
	uint64_t n_keys;
	uint64_t n_lines; /* 0: none */
	uint8_t *lines; /* owned */
};
/* For up to @n_keys_max keys that begin with @prefix; more make it say yes more often. */
int filter_init(struct filter *f, uint8_t prefix, uint64_t n_keys_max);
void filter_release(struct filter *f);
/* Keys with another first byte are passed over. */
void filter_add(struct filter *f, const void *key, size_t key_size);
uint64_t filter_n_blocks(uint64_t n_lines);
/* Bytes of all of its blocks in the file. */
uint64_t filter_size(uint64_t n_lines);
/* Bytes of the lines in block @number. */
size_t filter_value_size(uint64_t n_lines, uint64_t number);
/* False: the table does not hold the key. */
int table_may_hold(struct table *t, const void *key, size_t key_size,
		   bool *out_may, struct incr_error *err);

int table_damaged(const char *path, uint64_t off, const char *reason,
		  struct incr_error *err);

/* A data block and the place in the index that led to it; both references. */
struct block_path {
	struct block *index; /* NULL when the root is the data block */
	uint32_t index_pos;
	struct block *data;
};

void block_path_release(struct block_path *path);
/* The block at @place, from the cache or the file. */
int table_load(struct table *t, const struct block_place *place,
	       struct block **out_block, struct incr_error *err);
/* From the root to the data block that holds @key if any does; 1: the table is empty. */
int table_descend_key(struct table *t, const void *key, size_t key_size,
		      struct block_path *out_path, struct incr_error *err);
/* The same to data block @number, which must exist. */
int table_descend_number(struct table *t, uint32_t number,
			 struct block_path *out_path, struct incr_error *err);
/* To the first data block from @number on that has a key of rank @least; 1: there is none. */
int table_descend_rank(struct table *t, uint32_t number, uint64_t least,
		       struct block_path *out_path, struct incr_error *err);

#endif
