/*
 * The newest entries, in memory: a sorted map with the entries of the log's
 * tail that no table holds yet.  Keys and values are copied into an arena.
 */
#ifndef INCR_MEMTABLE_H
#define INCR_MEMTABLE_H

#include "table.h"

struct memtable;
int memtable_new(struct memtable **out_memtable);
struct memtable *memtable_ref(struct memtable *m); /* shared(ref), atomic */
void memtable_unref(struct memtable *m);
/* Insert or replace; value NULL: a tombstone.  INCR_E_INVALID above the limits of table.h. */
int memtable_put(struct memtable *m, const void *key, size_t key_size,
		 const void *value, size_t value_size);
/* 0 and a borrowed entry (valid as long as the memtable), 1 when absent. */
int memtable_get(const struct memtable *m, const void *key, size_t key_size,
		 struct table_entry *out_entry);
/* Those whose keys begin with @first; walks over them. */
size_t memtable_count(const struct memtable *m, uint8_t first);
size_t memtable_n_entries(const struct memtable *m);
size_t memtable_size(const struct memtable *m); /* bytes of arena in use */
/* After this, put is INCR_E_INVALID, and iterators may be used from many
 * threads. Builds the ordinal array. */
int memtable_freeze(struct memtable *m);
/*
 * An iterator holds a reference.  Until the memtable is frozen it may be used
 * only by the thread that puts, and a put ends its use: afterwards seek it
 * afresh, and make a merge over it anew.
 */
int memtable_iter_new(struct memtable *m, struct iter **out_iter);
/* Stand at (block, entry) as given before; INCR_E_RANGE if there is none,
 * INCR_E_INVALID before freeze. */
int memtable_iter_goto(struct iter *it, uint32_t block, uint32_t index,
		       struct incr_error *err);

#endif
