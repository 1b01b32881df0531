/*
 * What memory holds of a record with very many files, in tables that no
 * checkpoint names: so that applying it takes bounded memory.
 *
 * They lie between memory and the checkpoint's tables, and lose their names
 * as soon as they are open.  The next flush takes them in; a process that ends
 * before leaves nothing, and the next one applies the record again.
 */
#include "config.h"

#include "index_files.h"

#include <string.h>

#include "error.h"
#include "lock.h"

void index_drop_spilled(struct index *ix)
{
	for (size_t i = 0; i < ix->n_spilled; i++)
		table_unref(ix->spilled[i]);
	ix->n_spilled = 0;
	ix->spill_at = ix->options.spill_size;
}

/* The newest ones up to one that is much larger than they are together. */
static size_t choose_spilled(const struct index *ix, uint64_t memory_size)
{
	uint64_t run = memory_size / 3;
	size_t n = 0;

	while (n < ix->n_spilled &&
	       (table_size(ix->spilled[n]) < run * INDEX_MERGE_FACTOR ||
		ix->n_spilled - n >= INDEX_SPILLED_MAX))
		run += table_size(ix->spilled[n++]);
	return n;
}

static struct index_sources *collect(struct index *ix, size_t n_spilled)
{
	struct index_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	for (size_t i = 0; i < ix->n_frozen; i++)
		s->items[s->n++].memtable = memtable_ref(ix->frozen[i]);
	for (size_t i = 0; i < n_spilled; i++)
		s->items[s->n++].table = table_ref(ix->spilled[i]);
	return s;
}

static int write_spilled(struct index *ix, struct index_sources *s,
			 struct table **out_table, struct incr_error *err)
{
	const struct incr_io *io = ix->options.io;
	struct claim claim = { 0 };
	uint64_t id;
	char path[64];
	int r = io->random(io, &id, sizeof(id));

	if (r < 0)
		return incr_fail_errno(err, -r, NULL, "no random numbers");
	index_table_path(id, path);
	r = claim_take(io, ix->options.store_dirfd, path, &claim, err);
	/* what deletes may hide something in older tables */
	if (r == 0)
		r = index_write_table(ix, s, false, id, out_table, err);
	/* the table is read through its descriptor; a name is no harm */
	if (r == 0)
		(void)io->unlink_at(io, ix->options.store_dirfd, path, 0);
	claim_release(&claim);
	return r;
}

static int spill(struct index *ix, struct incr_error *err)
{
	size_t size = memtable_size(ix->active), n, kept;
	struct index_sources *s;
	struct table *t = NULL;
	int r = index_freeze_active(ix, err);

	if (r < 0)
		return r;
	for (size_t i = 1; i < ix->n_frozen; i++)
		size += memtable_size(ix->frozen[i]);
	n = choose_spilled(ix, size);
	s = collect(ix, n);
	if (!s)
		return incr_fail_nomem(err);
	r = write_spilled(ix, s, &t, err);
	index_sources_free(s);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		table_unref(ix->spilled[i]);
	kept = ix->n_spilled - n;
	memmove(&ix->spilled[1], &ix->spilled[n], kept * sizeof(t));
	ix->spilled[0] = t;
	ix->n_spilled = kept + 1;
	index_drop_frozen(ix);
	return 0;
}

void index_spill(struct index *ix)
{
	struct incr_error ignored = INCR_ERROR_INIT;
	int r = ix->options.is_writable ? spill(ix, &ignored) : INCR_E_READONLY;

	incr_error_release(&ignored);
	/* what cannot be written stays in memory, and is not tried at each put */
	ix->spill_at = r < 0 ? 2 * ix->spill_at : ix->options.spill_size;
}
