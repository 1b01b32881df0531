/*
 * Immutable sorted tables of key -> value: what every derived index (catalog,
 * views, change sets) is stored in.  Byte layout: docs/format.md, "Tables".
 *
 * A table is written once, front to back, and never changed.  It is derived:
 * a damaged one is reported as INCR_E_CORRUPT with the word "damaged-table",
 * and the caller rebuilds it from the log.
 *
 * Layout: blocks of at most TABLE_BLOCK_SIZE bytes before compression (one
 * entry larger than that has a block of its own), each with a hash and
 * prefix-compressed keys; among them index blocks (separating key, offset and
 * size of each block below), each behind the last block it leads to, in as
 * many levels as it takes; then a fixed footer.  At most TABLE_BLOCK_ENTRIES
 * entries a block, so that (block number, entry number) fits an inode number.
 */
#ifndef INCR_TABLE_H
#define INCR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "io.h"

#define TABLE_BLOCK_SIZE 16384
#define TABLE_BLOCK_ENTRIES 1024
#define TABLE_KEY_MAX 4352
#define TABLE_VALUE_MAX (UINT32_C(16) << 20)

/* Borrowed bytes of one entry; valid until the iterator moves or is released. */
struct table_entry {
	const uint8_t *key;
	size_t key_size;
	const uint8_t *value; /* NULL and size 0 with is_tombstone */
	size_t value_size;
	bool is_tombstone; /* hides older entries of the key in a merge */
};

/* memcmp order, shorter first. */
int table_key_compare(const void *a, size_t a_size, const void *b,
		      size_t b_size);

/* ---- writing ---- */
struct table_writer;
/*
 * Create @path (O_EXCL) below @dirfd.  @tag: store tag and caller's identity
 * (hash64), checked again at open so that a table of another store is refused.
 */
int table_writer_open(const struct incr_io *io, int dirfd, const char *path,
		      uint64_t tag, struct table_writer **out_writer,
		      struct incr_error *err);
/*
 * Before the first put: keys that begin with @prefix, about @n_keys_max of
 * them, go into a filter, so that table_get() of an absent one reads one block
 * at most.  0 keys: no filter.
 */
int table_writer_filter(struct table_writer *w, uint8_t prefix,
			uint64_t n_keys_max, struct incr_error *err);
/*
 * Keys strictly ascending, sizes within the limits; INCR_E_INVALID otherwise,
 * and the entry is left out.  Bytes are copied.  After any other failure put
 * and finish fail with the same code.
 */
int table_writer_put(struct table_writer *w, const struct table_entry *entry,
		     struct incr_error *err);
/*
 * Writes index and footer, closes.  is_durable: fsync the file too (its
 * directory is the caller's).  The writer is freed, whatever the result; on
 * failure the file is removed.
 */
int table_writer_finish(struct table_writer *w, bool is_durable,
			struct incr_error *err);
/* Give up: remove the file. */
void table_writer_abort(struct table_writer *w);

/* ---- reading; all calls are thread-safe on one table ---- */
/*
 * Bounded LRU of decoded blocks shared by all tables of a store handle;
 * thread-safe; blocks are reference counted while an iterator stands in them.
 * Must outlive the tables opened with it.  NULL when out of memory.
 */
struct block_cache;
struct block_cache *block_cache_new(size_t capacity_size);
void block_cache_free(struct block_cache *c);

struct table;
/*
 * Reads the footer alone.  INCR_E_CORRUPT "damaged-table" also for a table with
 * another tag, INCR_E_UNSUPPORTED for one of a newer format.
 */
int table_open(const struct incr_io *io, int dirfd, const char *path,
	       uint64_t tag, struct block_cache *cache,
	       struct table **out_table, struct incr_error *err);
struct table *table_ref(struct table *t); /* shared(ref) */
void table_unref(struct table *t);
uint64_t table_n_entries(const struct table *t);
uint64_t table_size(const struct table *t); /* bytes of the file */
uint64_t table_n_filtered(const struct table *t); /* keys in the filter */

/* ---- iterators: over one table, a memtable or a merge of many ---- */
/*
 * One interface, so that a reader does not know what it walks over.  A fresh
 * iterator stands nowhere; seek first.  seek and next return 0 (entry ready),
 * 1 (past the end) or a negative code.  Not thread-safe; any number at once.
 */
struct iter {
	/* First entry with a key >= @key. */
	int (*seek)(struct iter *it, const void *key, size_t key_size,
		    struct incr_error *err);
	int (*next)(struct iter *it, struct incr_error *err);
	void (*free)(struct iter *it);
	/*
	 * Of a table: entries of a smaller rank (the last eight bytes of the key, as
	 * a number) may be left out, to pass over blocks that hold nothing else.
	 * Set before the first move.  0: all are given.
	 */
	uint64_t least_rank;
	struct table_entry entry; /* valid after 0 */
	/* Where the entry stands, for inode numbers: source index in the merge (0 for a single
	 * table), block and entry number; a memtable gives ordinal / TABLE_BLOCK_ENTRIES and
	 * ordinal % TABLE_BLOCK_ENTRIES when frozen (else 0). */
	uint32_t source;
	uint32_t block;
	uint32_t index;
};

void iter_free(struct iter *it); /* NULL allowed */
void cleanup_iter(struct iter **it);
#define _cleanup_iter_ __attribute__((cleanup(cleanup_iter)))

int table_iter_new(struct table *t, struct iter **out_iter,
		   struct incr_error *err);
/* Stand at (block, entry) as an iterator gave it; INCR_E_RANGE if none. */
int table_iter_goto(struct iter *it, uint32_t block, uint32_t index,
		    struct incr_error *err);
/*
 * Point lookup: 0, a copy of the value in place of what @out_value holds and
 * *out_tombstone; 1 when absent.
 */
int table_get(struct table *t, const void *key, size_t key_size,
	      struct buf *out_value, bool *out_tombstone,
	      struct incr_error *err);

/*
 * Merge of @n iterators (taken), newest first: of equal keys the entry of the
 * lowest index is given, the others are skipped.  Tombstones are given too
 * (is_tombstone) unless @drops_tombstones.  seek on the merge seeks each (one
 * forward only those that stand before the target).  The iterators are taken
 * whatever the result, and are not to be moved by others.
 */
int iter_merge_new(struct iter **iters, size_t n, bool drops_tombstones,
		   struct iter **out_iter, struct incr_error *err);

#endif
