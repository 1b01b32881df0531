/*
 * Strategy.  The table is written to the spool, not synced, and unlinked as
 * soon as it is open: a crash before that leaves a file that is no one's.
 * Where it cannot be made (a store that is only read) all stays in memory; an
 * error while it is written is told, since what was put is not elsewhere.
 */
#include "config.h"

#include "change_table.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "bytes.h"
#include "error.h"
#include "hash.h"
#include "memtable.h"
#include "store.h"

int change_table_init(struct change_table *t, struct incr_store *st,
		      struct incr_error *err)
{
	*t = (struct change_table){
		.store = st,
		.stays_in_memory = st->is_readonly,
	};
	return memtable_new(&t->memtable) < 0 ? incr_fail_nomem(err) : 0;
}

void change_table_release(struct change_table *t)
{
	memtable_unref(t->memtable);
	table_writer_abort(t->writer);
	claim_release(&t->claim);
	table_unref(t->table);
	*t = (struct change_table){ 0 };
}

/* A name of its own; a file that has it all the same makes opening fail. */
static void name_table(struct change_table *t)
{
	static atomic_uint_fast64_t counter;
	uint64_t n = atomic_fetch_add(&counter, 1);
	uint8_t identity[24];

	snprintf(t->path, sizeof(t->path), "spool/changes-%ld-%" PRIu64,
		 (long)getpid(), n);
	put_u64(identity, t->store->tag);
	put_u64(identity + 8, (uint64_t)getpid());
	put_u64(identity + 16, n);
	t->tag = hash64(identity, sizeof(identity));
}

static int open_table(struct change_table *t, struct incr_error *err)
{
	const struct incr_io *io = t->store->io;
	int r = claim_take(io, t->store->dirfd, t->path, &t->claim, err);

	if (r == 0)
		r = table_writer_open(io, t->store->dirfd, t->path, t->tag,
				      &t->writer, err);
	if (r < 0)
		claim_release(&t->claim);
	return r;
}

/* Go on in a table, which begins with what is in memory. */
static int leave_memory(struct change_table *t, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct incr_error ignored = INCR_ERROR_INIT;
	int r;

	name_table(t);
	if (open_table(t, &ignored) < 0) {
		incr_error_release(&ignored);
		t->stays_in_memory = true;
		return 0;
	}
	if (memtable_iter_new(t->memtable, &it) < 0)
		return incr_fail_nomem(err);
	r = it->seek(it, "", 0, err);
	while (r == 0) {
		r = table_writer_put(t->writer, &it->entry, err);
		if (r == 0)
			r = it->next(it, err);
	}
	if (r < 0)
		return r;
	memtable_unref(t->memtable);
	t->memtable = NULL;
	return 0;
}

int change_table_put(struct change_table *t, const struct table_entry *entry,
		     struct incr_error *err)
{
	int r = 0;

	if (t->memtable && !t->stays_in_memory &&
	    memtable_n_entries(t->memtable) >= t->store->n_changes_in_memory)
		r = leave_memory(t, err);
	if (r < 0)
		return r;
	if (t->writer)
		return table_writer_put(t->writer, entry, err);
	if (memtable_put(t->memtable, entry->key, entry->key_size, entry->value,
			 entry->value_size) < 0)
		return incr_fail_nomem(err);
	return 0;
}

int change_table_finish(struct change_table *t, struct incr_error *err)
{
	const struct incr_io *io = t->store->io;
	struct table_writer *w = t->writer;
	int r;

	if (!w)
		return memtable_freeze(t->memtable) < 0 ? incr_fail_nomem(err) :
							  0;
	t->writer = NULL;
	r = table_writer_finish(w, false, err);
	if (r < 0)
		return r;
	r = table_open(io, t->store->dirfd, t->path, t->tag, t->store->blocks,
		       &t->table, err);
	(void)io->unlink_at(io, t->store->dirfd, t->path, 0);
	claim_release(&t->claim);
	return r;
}

struct index_source change_table_source(const struct change_table *t)
{
	struct index_source source = { 0 };

	if (t->table)
		source.table = table_ref(t->table);
	else
		source.memtable = memtable_ref(t->memtable);
	return source;
}

int change_table_get(const struct change_table *t, const void *key,
		     size_t key_size, struct buf *out_value,
		     struct incr_error *err)
{
	struct table_entry e;
	bool is_tombstone;
	int r;

	if (t->table)
		return table_get(t->table, key, key_size, out_value,
				 &is_tombstone, err);
	r = memtable_get(t->memtable, key, key_size, &e);
	if (r != 0)
		return r;
	buf_reset(out_value);
	return buf_put(out_value, e.value, e.value_size) < 0 ?
		       incr_fail_nomem(err) :
		       0;
}
