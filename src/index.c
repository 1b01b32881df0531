/*
 * The derived index in memory: one active memtable, frozen ones below it that
 * views hold on to, and the tables of the checkpoint below those.
 */
#include "config.h"

#include "index.h"

#include <stdatomic.h>
#include <string.h>

#include "error.h"
#include "index_files.h"

void index_sources_unref(struct index_sources *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < s->n; i++) {
		memtable_unref(s->items[i].memtable);
		table_unref(s->items[i].table);
	}
	free(s);
}

struct index_sources *index_sources_ref(struct index_sources *s)
{
	__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

int index_sources_iter_one(struct index_sources *s, size_t idx,
			   struct iter **out_iter, struct incr_error *err)
{
	const struct index_source *source = &s->items[idx];

	if (source->table)
		return table_iter_new(source->table, out_iter, err);
	if (memtable_iter_new(source->memtable, out_iter) < 0)
		return incr_fail_nomem(err);
	return 0;
}

int index_sources_goto(struct index_sources *s, size_t idx, struct iter *it,
		       uint32_t block, uint32_t index, struct incr_error *err)
{
	if (s->items[idx].table)
		return table_iter_goto(it, block, index, err);
	return memtable_iter_goto(it, block, index, err);
}

static int merge_of(struct index_sources *s, bool drops_tombstones,
		    struct iter **out_iter, struct incr_error *err)
{
	struct iter *iters[INDEX_SOURCES_MAX];
	size_t n = 0;
	int r = 0;

	for (; n < s->n; n++) {
		r = index_sources_iter_one(s, n, &iters[n], err);
		if (r < 0)
			break;
	}
	if (r == 0)
		return iter_merge_new(iters, n, drops_tombstones, out_iter,
				      err);
	while (n--)
		iter_free(iters[n]);
	return r;
}

int index_sources_iter(struct index_sources *s, struct iter **out_iter,
		       struct incr_error *err)
{
	return merge_of(s, true, out_iter, err);
}

/* Sources of a merge that keeps tombstones: for compaction over a part of the tables. */
int index_sources_iter_raw(struct index_sources *s, struct iter **out_iter,
			   struct incr_error *err)
{
	return merge_of(s, false, out_iter, err);
}

int index_open(const struct index_options *options, struct index **out_index,
	       struct incr_error *err)
{
	struct index *ix = calloc(1, sizeof(*ix));
	int r;

	if (!ix)
		return incr_fail_nomem(err);
	ix->options = *options;
	if (memtable_new(&ix->active) < 0) {
		index_close(ix);
		return incr_fail_nomem(err);
	}
	r = index_files_load(ix, err);
	if (r < 0) {
		index_close(ix);
		return r;
	}
	*out_index = ix;
	return 0;
}

static void index_clear(struct index *ix)
{
	memtable_unref(ix->active);
	ix->active = NULL;
	for (size_t i = 0; i < ix->n_frozen; i++)
		memtable_unref(ix->frozen[i]);
	ix->n_frozen = 0;
	for (size_t i = 0; i < ix->n_tables; i++)
		table_unref(ix->tables[i].table);
	ix->n_tables = 0;
}

void index_close(struct index *ix)
{
	if (!ix)
		return;
	index_clear(ix);
	free(ix);
}

void index_start_empty(struct index *ix)
{
	ix->counters = (struct index_counters){ 1, 1, 1, 1, 1 };
	ix->position = (struct index_position){ 0 };
	ix->checkpoint = (struct index_position){ 0 };
	ix->checkpoint_id = 0;
}

int index_reset(struct index *ix, struct incr_error *err)
{
	index_clear(ix);
	index_start_empty(ix);
	if (memtable_new(&ix->active) < 0)
		return incr_fail_nomem(err);
	return index_files_forget(ix, err);
}

static int get_from(struct memtable *m, const void *key, size_t key_size,
		    struct buf *out_value, struct incr_error *err)
{
	struct table_entry e;
	int r = memtable_get(m, key, key_size, &e);

	if (r != 0)
		return r;
	if (e.is_tombstone)
		return 2;
	buf_reset(out_value);
	if (buf_put(out_value, e.value, e.value_size) < 0)
		return incr_fail_nomem(err);
	return 0;
}

int index_get(struct index *ix, const void *key, size_t key_size,
	      struct buf *out_value, struct incr_error *err)
{
	int r = get_from(ix->active, key, key_size, out_value, err);

	for (size_t i = 0; r == 1 && i < ix->n_frozen; i++)
		r = get_from(ix->frozen[i], key, key_size, out_value, err);
	for (size_t i = 0; r == 1 && i < ix->n_tables; i++) {
		bool is_tombstone = false;

		r = table_get(ix->tables[i].table, key, key_size, out_value,
			      &is_tombstone, err);
		if (r == 0 && is_tombstone)
			r = 2;
	}
	return r == 2 ? 1 : r;
}

int index_put(struct index *ix, const void *key, size_t key_size,
	      const void *value, size_t value_size, struct incr_error *err)
{
	int r = memtable_put(ix->active, key, key_size, value, value_size);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0)
		return incr_fail(err, (enum incr_err)r, NULL, NULL,
				 "index entry is too large");
	return 0;
}

int index_delete(struct index *ix, const void *key, size_t key_size,
		 struct incr_error *err)
{
	return index_put(ix, key, key_size, NULL, 0, err);
}

/* A snapshot of all sources; the active memtable among them when it has entries. */
static struct index_sources *sources_now(struct index *ix)
{
	struct index_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->refs = 1;
	if (memtable_n_entries(ix->active))
		s->items[s->n++].memtable = memtable_ref(ix->active);
	for (size_t i = 0; i < ix->n_frozen; i++)
		s->items[s->n++].memtable = memtable_ref(ix->frozen[i]);
	for (size_t i = 0; i < ix->n_tables; i++)
		s->items[s->n++].table = table_ref(ix->tables[i].table);
	return s;
}

int index_iter(struct index *ix, struct iter **out_iter, struct incr_error *err)
{
	struct index_sources *s = sources_now(ix);
	int r;

	if (!s)
		return incr_fail_nomem(err);
	/* the iterators hold on to nothing but the tables, which the index keeps */
	r = index_sources_iter(s, out_iter, err);
	index_sources_unref(s);
	return r;
}

static int copy_all(struct index_sources *from, struct memtable *to,
		    struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	int r = index_sources_iter_raw(from, &it, err);

	if (r == 0)
		r = it->seek(it, "", 0, err);
	for (; r == 0; r = it->next(it, err)) {
		const struct table_entry *e = &it->entry;

		if (memtable_put(to, e->key, e->key_size,
				 e->is_tombstone ? NULL : e->value,
				 e->value_size) < 0)
			return incr_fail_nomem(err);
	}
	return r < 0 ? r : 0;
}

/* Many short-lived frozen memtables become one, so that a long-lived reader keeps few sources. */
static int join_frozen(struct index *ix, struct incr_error *err)
{
	struct index_sources s = { .refs = 1, .n = ix->n_frozen };
	struct memtable *joined;
	int r;

	for (size_t i = 0; i < ix->n_frozen; i++)
		s.items[i].memtable = ix->frozen[i];
	if (memtable_new(&joined) < 0)
		return incr_fail_nomem(err);
	r = copy_all(&s, joined, err);
	if (r == 0 && memtable_freeze(joined) < 0)
		r = incr_fail_nomem(err);
	if (r < 0) {
		memtable_unref(joined);
		return r;
	}
	for (size_t i = 0; i < ix->n_frozen; i++)
		memtable_unref(ix->frozen[i]);
	ix->frozen[0] = joined;
	ix->n_frozen = 1;
	return 0;
}

int index_freeze_active(struct index *ix, struct incr_error *err)
{
	struct memtable *fresh;
	int r;

	if (!memtable_n_entries(ix->active))
		return 0;
	if (ix->n_frozen == INDEX_FROZEN_MAX) {
		r = join_frozen(ix, err);
		if (r < 0)
			return r;
	}
	if (memtable_new(&fresh) < 0)
		return incr_fail_nomem(err);
	if (memtable_freeze(ix->active) < 0) {
		memtable_unref(fresh);
		return incr_fail_nomem(err);
	}
	memmove(&ix->frozen[1], &ix->frozen[0],
		ix->n_frozen * sizeof(ix->frozen[0]));
	ix->frozen[0] = ix->active;
	ix->n_frozen++;
	ix->active = fresh;
	return 0;
}

int index_freeze(struct index *ix, struct index_sources **out_sources,
		 struct incr_error *err)
{
	struct index_sources *s;
	int r = index_freeze_active(ix, err);

	if (r < 0)
		return r;
	s = sources_now(ix);
	if (!s)
		return incr_fail_nomem(err);
	*out_sources = s;
	return 0;
}

struct index_counters *index_counters(struct index *ix)
{
	return &ix->counters;
}

struct index_position *index_position(struct index *ix)
{
	return &ix->position;
}

const struct index_position *index_checkpoint(const struct index *ix)
{
	return &ix->checkpoint;
}

bool index_is_due(const struct index *ix)
{
	size_t n = memtable_n_entries(ix->active);
	size_t size = memtable_size(ix->active);

	for (size_t i = 0; i < ix->n_frozen; i++) {
		n += memtable_n_entries(ix->frozen[i]);
		size += memtable_size(ix->frozen[i]);
	}
	return n >= INDEX_FLUSH_ENTRIES || size >= INDEX_FLUSH_SIZE ||
	       ix->position.position - ix->checkpoint.position >=
		       INDEX_FLUSH_LOG;
}
