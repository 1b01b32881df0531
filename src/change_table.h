/*
 * The entries of a change set: in memory as long as they are few, then in a
 * table that has no name and goes away with its last user.
 */
#ifndef INCR_CHANGE_TABLE_H
#define INCR_CHANGE_TABLE_H

#include "index.h"
#include "lock.h"

struct incr_store;

#define CHANGE_TABLE_IN_MEMORY 65536 /* entries; what stores have at first */

struct change_table {
	struct incr_store *store; /* borrowed */
	struct memtable *memtable; /* owned; NULL once there is a table */
	struct table_writer *writer; /* owned; until it is finished */
	struct table *table; /* owned; when it is finished */
	uint64_t tag; /* of the table */
	char path[64]; /* of the table, while it has a name */
	struct claim claim; /* owned: of that name, as long */
	bool stays_in_memory; /* no table can be written here */
};

int change_table_init(struct change_table *t, struct incr_store *st,
		      struct incr_error *err);
void change_table_release(struct change_table *t); /* zeroed: a no-op */
/* Keys strictly ascending. */
int change_table_put(struct change_table *t, const struct table_entry *entry,
		     struct incr_error *err);
/* No more are put: now they can be read, from many threads. */
int change_table_finish(struct change_table *t, struct incr_error *err);
/* The source to read them from, with a reference for the caller. */
struct index_source change_table_source(const struct change_table *t);
/* A copy of the value at @key: 0, or 1 when it is absent. */
int change_table_get(const struct change_table *t, const void *key,
		     size_t key_size, struct buf *out_value,
		     struct incr_error *err);

#endif
