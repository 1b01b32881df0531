/* The index on disk: the checkpoint file, flushing and merging. */
#ifndef INCR_INDEX_FILES_H
#define INCR_INDEX_FILES_H

#include "index.h"

#define INDEX_DIR "index"
#define INDEX_CURRENT_FILE INDEX_DIR "/current"
#define INDEX_FROZEN_MAX 6
#define INDEX_TABLES_MAX 40
/*
 * A flush is due when what an open must replay has grown to about 0.2 ms of
 * work (1.3 us for a record of one file), so that opening a long history costs
 * little more than opening a short one.
 */
#define INDEX_FLUSH_ENTRIES 256
#define INDEX_FLUSH_SIZE (1u << 20)
#define INDEX_FLUSH_LOG (1u << 19)
#define INDEX_FULL_ENTRIES (1u << 16)
#define INDEX_FULL_SIZE (16u << 20)
/*
 * One record can have any number of files.  What memory holds of it goes to a
 * table when it is this much, which the next flush takes in.
 */
#define INDEX_SPILL_SIZE ((size_t)32 << 20)
#define INDEX_SPILLED_MAX 8
/* A frozen memtable is merged into the next older one until that is this much larger. */
#define INDEX_FREEZE_FACTOR 2
/* A newer run of tables is merged into the next older table until that one is this much larger. */
#define INDEX_MERGE_FACTOR 4
/* A short flush merges no more than this, or so many times what is new. */
#define INDEX_MERGE_SHORT (UINT64_C(2) << 20)

struct index {
	struct index_options options;
	struct memtable *active; /* owned */
	struct memtable *frozen[INDEX_FROZEN_MAX + 1]; /* owned, newest first */
	size_t n_frozen;
	struct table *spilled
		[INDEX_SPILLED_MAX]; /* owned, newest first; older than memory, no checkpoint has them */
	size_t n_spilled;
	size_t spill_at; /* size of the active memtable to try it at */
	struct index_table {
		uint64_t id;
		struct table *table; /* owned */
	} tables[INDEX_TABLES_MAX]; /* newest first */
	size_t n_tables;
	struct index_counters counters;
	struct index_position position;
	struct index_position checkpoint; /* what the tables cover */
	uint64_t checkpoint_id; /* of the file that was loaded or written; 0: none */
	bool is_damaged; /* atomic */
	bool is_replaying;
	int has_losses; /* index_losses() */
};

void index_start_empty(struct index *ix);
int index_freeze_active(struct index *ix, struct incr_error *err);
/* Forget the frozen memtables: they are in a table, or of no use. */
void index_drop_frozen(struct index *ix);
int index_sources_iter_raw(struct index_sources *s, struct iter **out_iter,
			   struct incr_error *err);

/* ---- index_current.c ---- */
struct index_current {
	uint64_t id;
	struct index_position position;
	struct index_counters counters;
	size_t n_tables;
	uint64_t tables[INDEX_TABLES_MAX]; /* the newest first */
};
/* 0, or 1 when there is none worth reading. */
int index_current_read(const struct index *ix, struct index_current *out,
		       struct incr_error *err);
int index_current_write(struct index *ix, const struct index_current *cur,
			struct incr_error *err);

/* ---- index_spill.c ---- */
/* The active memtable has become large; does nothing where it cannot help. */
void index_spill(struct index *ix);
/* Forget what was spilled: it is in the tables of a checkpoint, or of no use. */
void index_drop_spilled(struct index *ix);

/* ---- index_files.c ---- */
/* A table of what @s holds, opened; *out_id names its file. */
int index_write_table(struct index *ix, struct index_sources *s,
		      bool drops_tombstones, uint64_t id,
		      struct table **out_table, struct incr_error *err);
void index_table_path(uint64_t id, char out[64]);
int index_files_load(struct index *ix, struct incr_error *err);
/* Remove checkpoint @id, if it is still the one on disk and the store is writable. */
int index_files_forget(struct index *ix, uint64_t id, struct incr_error *err);

#endif
