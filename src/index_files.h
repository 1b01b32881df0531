/* The index on disk: the checkpoint file, flushing and merging. */
#ifndef INCR_INDEX_FILES_H
#define INCR_INDEX_FILES_H

#include "index.h"

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
/* A frozen memtable is merged into the next older one until that is this much larger. */
#define INDEX_FREEZE_FACTOR 2
/* A newer run of tables is merged into the next older table until that one is this much larger. */
#define INDEX_MERGE_FACTOR 4

struct index {
	struct index_options options;
	struct memtable *active; /* owned */
	struct memtable *frozen[INDEX_FROZEN_MAX + 1]; /* owned, newest first */
	size_t n_frozen;
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
int index_sources_iter_raw(struct index_sources *s, struct iter **out_iter,
			   struct incr_error *err);

int index_files_load(struct index *ix, struct incr_error *err);
/* Remove checkpoint @id, if it is still the one on disk and the store is writable. */
int index_files_forget(struct index *ix, uint64_t id, struct incr_error *err);

#endif
