/*
 * The derived index: every key -> value that the log's records amount to, in
 * immutable tables, newest first, with a memtable on top for the records after
 * the last checkpoint.  It may be deleted at any time: the log is the truth.
 *
 * Files (docs/format.md, "The index"): index/current names the tables and the
 * log position they cover; index/<16 hex>.table are the tables.
 */
#ifndef INCR_INDEX_H
#define INCR_INDEX_H

#include "memtable.h"
#include "table.h"

#define INDEX_SOURCES_MAX 64 /* so that a source fits an inode number */

/* What comes next of everything that is numbered. */
struct index_counters {
	uint64_t next_txn, next_build, next_dataset, next_branch, next_line;
};

struct index_options {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	uint64_t tag; /* of the store */
	bool is_writable;
	struct block_cache *cache; /* borrowed */
	/* keys that begin with it are mostly looked up in vain: tables get a filter for them */
	uint8_t filtered;
	size_t spill_size; /* of memory that goes to a table; 0: the default */
	/* index_reset() and the log from its beginning; NULL: damage is an error */
	int (*rebuild)(void *closure, struct incr_error *err);
	void *closure;
};

/* The sources of one moment; immutable. */
struct index_sources {
	/* borrowed, for index_sources_damaged(); NULL: none */
	struct index *index;
	size_t n;
	struct index_source {
		struct memtable *memtable; /* one of the two */
		struct table *table;
	} items[INDEX_SOURCES_MAX]; /* newest first */
};
void index_sources_free(struct index_sources *s);
/* Iterator over source @idx alone, and a merge of all. */
int index_sources_iter_one(struct index_sources *s, size_t idx,
			   struct iter **out_iter, struct incr_error *err);
int index_sources_iter(struct index_sources *s, struct iter **out_iter,
		       struct incr_error *err);
/* The same, but entries of a smaller rank may be left out: see struct iter. */
int index_sources_iter_rank(struct index_sources *s, uint64_t least_rank,
			    struct iter **out_iter, struct incr_error *err);
/* Stand at a place that an iterator over source @idx gave. */
int index_sources_goto(struct index_sources *s, size_t idx, struct iter *it,
		       uint32_t block, uint32_t index, struct incr_error *err);
/* Reading them gave INCR_E_CORRUPT: these stay broken, the index starts again.  Thread-safe. */
void index_sources_damaged(struct index_sources *s);

struct index;
/* Loads the checkpoint if it is whole; otherwise starts empty, at log position 0. */
int index_open(const struct index_options *options, struct index **out_index,
	       struct incr_error *err);
void index_close(struct index *ix);
/*
 * Forget everything, also the checkpoint on disk: the caller replays the log.
 * What was found damaged is forgotten too.
 */
int index_reset(struct index *ix, struct incr_error *err);
/* A table was found damaged, or taken away: nothing from it is to be believed. */
bool index_is_damaged(const struct index *ix);
void index_note_damage(struct index *ix);
/* While records are applied, damage is an error: the caller starts again. */
void index_set_replaying(struct index *ix, bool is_replaying);

/* 0 and the value, 1 when absent.  Rebuilds a damaged index, once. */
int index_get(struct index *ix, const void *key, size_t key_size,
	      struct buf *out_value, struct incr_error *err);
/*
 * The same for something that can be done without: damage is "absent", and
 * noted for the next call that needs the truth.  Any number of threads at
 * once, as long as nobody calls anything else.
 */
int index_peek(struct index *ix, const void *key, size_t key_size,
	       struct buf *out_value, struct incr_error *err);
int index_put(struct index *ix, const void *key, size_t key_size,
	      const void *value, size_t value_size, struct incr_error *err);
int index_delete(struct index *ix, const void *key, size_t key_size,
		 struct incr_error *err);
/* Everything at this moment, also what is in the memtable; not to be kept over a put. */
int index_iter(struct index *ix, struct iter **out_iter,
	       struct incr_error *err);
/*
 * A copy of all entries whose keys begin with @prefix: what is put meanwhile
 * changes nothing.  Rebuilds a damaged index, once.
 */
int index_collect(struct index *ix, const void *prefix, size_t size,
		  struct iter **out_iter, struct incr_error *err);
/* Value of the first entry >= @key that begins with its first @fixed bytes: 0, or 1. */
int index_first(struct index *ix, const void *key, size_t key_size,
		size_t fixed, struct buf *out_value, struct incr_error *err);
/* The sources of this moment, fixed: later puts go elsewhere. */
int index_freeze(struct index *ix, struct index_sources **out_sources,
		 struct incr_error *err);

struct index_counters *index_counters(struct index *ix);
/* How far the log has been applied, and the header hash of the last record applied. */
struct index_position {
	uint64_t position, sequence;
	uint64_t last_position, last_hash; /* of the last record; 0: none */
};
struct index_position *index_position(struct index *ix);
/* Kept for state_lost.c: whether there are entries about losses; -1: not known. */
int *index_losses(struct index *ix);

/*
 * Write what the memtable holds as a table and a new checkpoint, merge tables
 * so that their number stays logarithmic, and remove files that no checkpoint
 * names.  Only what is durable in the log may be flushed: the caller sees to
 * it.  Takes LOCK_MAINTENANCE; does nothing when somebody else has it.  Builds
 * upon what somebody else has flushed since.
 */
int index_flush(struct index *ix, struct incr_error *err);
/* The same while somebody waits: merges that are much larger than what is new are left to the next index_flush(). */
int index_flush_short(struct index *ix, struct incr_error *err);
/*
 * Of names of files that stand in index/, and that nobody is making, keep those
 * that the checkpoint on disk does not name; the others are freed.  Where there
 * is none, that is nothing.
 */
int index_keep_strays(const struct index *ix, size_t *n, char **names,
		      struct incr_error *err);
/* Worth a flush? */
bool index_is_due(const struct index *ix);
/* Too much to hold in memory any longer. */
bool index_is_full(const struct index *ix);
/*
 * Take over the checkpoint that somebody else wrote, if it is of use: the
 * memory of a handle that only reads stays small.  0, or 1: there is none.
 */
int index_adopt(struct index *ix, struct incr_error *err);

#endif
