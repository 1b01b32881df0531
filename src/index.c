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

void index_sources_free(struct index_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		memtable_unref(s->items[i].memtable);
		table_unref(s->items[i].table);
	}
	free(s);
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
		    uint64_t least_rank, struct iter **out_iter,
		    struct incr_error *err)
{
	struct iter *iters[INDEX_SOURCES_MAX];
	size_t n = 0;
	int r = 0;

	for (; n < s->n; n++) {
		r = index_sources_iter_one(s, n, &iters[n], err);
		if (r < 0)
			break;
		iters[n]->least_rank = least_rank;
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
	return merge_of(s, true, 0, out_iter, err);
}

int index_sources_iter_rank(struct index_sources *s, uint64_t least_rank,
			    struct iter **out_iter, struct incr_error *err)
{
	return merge_of(s, true, least_rank, out_iter, err);
}

/* Sources of a merge that keeps tombstones: for compaction over a part of the tables. */
int index_sources_iter_raw(struct index_sources *s, struct iter **out_iter,
			   struct incr_error *err)
{
	return merge_of(s, false, 0, out_iter, err);
}

int index_open(const struct index_options *options, struct index **out_index,
	       struct incr_error *err)
{
	struct index *ix = calloc(1, sizeof(*ix));
	int r;

	if (!ix)
		return incr_fail_nomem(err);
	ix->options = *options;
	if (!ix->options.spill_size)
		ix->options.spill_size = INDEX_SPILL_SIZE;
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

void index_drop_frozen(struct index *ix)
{
	for (size_t i = 0; i < ix->n_frozen; i++)
		memtable_unref(ix->frozen[i]);
	ix->n_frozen = 0;
}

static void index_clear(struct index *ix)
{
	memtable_unref(ix->active);
	ix->active = NULL;
	index_drop_frozen(ix);
	index_drop_spilled(ix);
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
	ix->has_losses = -1;
	ix->spill_at = ix->options.spill_size;
}

int index_reset(struct index *ix, struct incr_error *err)
{
	uint64_t id = ix->checkpoint_id;
	struct memtable *fresh;

	if (memtable_new(&fresh) < 0)
		return incr_fail_nomem(err);
	index_clear(ix);
	index_start_empty(ix);
	ix->active = fresh;
	__atomic_store_n(&ix->is_damaged, false, __ATOMIC_RELAXED);
	return index_files_forget(ix, id, err);
}

/* ---- damage ---- */

bool index_is_damaged(const struct index *ix)
{
	return __atomic_load_n(&ix->is_damaged, __ATOMIC_RELAXED);
}

void index_note_damage(struct index *ix)
{
	__atomic_store_n(&ix->is_damaged, true, __ATOMIC_RELAXED);
}

void index_sources_damaged(struct index_sources *s)
{
	if (s->index)
		index_note_damage(s->index);
}

void index_set_replaying(struct index *ix, bool is_replaying)
{
	ix->is_replaying = is_replaying;
}

/*
 * After a look-up that gave @r and @why: 0 when the index was rebuilt and the
 * look-up is to be tried again, else @r with the error passed on.
 */
static int heal(struct index *ix, int r, struct incr_error *why,
		struct incr_error *err)
{
	if (r == INCR_E_CORRUPT) {
		index_note_damage(ix);
		if (ix->options.rebuild && !ix->is_replaying) {
			incr_error_release(why);
			return ix->options.rebuild(ix->options.closure, err);
		}
	}
	return incr_fail_with(err, r, why);
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

/* 2: it is deleted. */
static int get_from_table(struct table *t, const void *key, size_t key_size,
			  struct buf *out_value, struct incr_error *err)
{
	bool is_tombstone = false;
	int r = table_get(t, key, key_size, out_value, &is_tombstone, err);

	return r == 0 && is_tombstone ? 2 : r;
}

static int get_once(struct index *ix, const void *key, size_t key_size,
		    struct buf *out_value, struct incr_error *err)
{
	int r = get_from(ix->active, key, key_size, out_value, err);

	for (size_t i = 0; r == 1 && i < ix->n_frozen; i++)
		r = get_from(ix->frozen[i], key, key_size, out_value, err);
	for (size_t i = 0; r == 1 && i < ix->n_spilled; i++)
		r = get_from_table(ix->spilled[i], key, key_size, out_value,
				   err);
	for (size_t i = 0; r == 1 && i < ix->n_tables; i++)
		r = get_from_table(ix->tables[i].table, key, key_size,
				   out_value, err);
	return r == 2 ? 1 : r;
}

int index_get(struct index *ix, const void *key, size_t key_size,
	      struct buf *out_value, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r = get_once(ix, key, key_size, out_value, &why);

	if (r >= 0)
		return r;
	r = heal(ix, r, &why, err);
	return r < 0 ? r : get_once(ix, key, key_size, out_value, err);
}

int index_peek(struct index *ix, const void *key, size_t key_size,
	       struct buf *out_value, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r = get_once(ix, key, key_size, out_value, &why);

	if (r >= 0)
		return r;
	if (r == INCR_E_NOMEM)
		return incr_fail_with(err, r, &why);
	incr_error_release(&why);
	if (r == INCR_E_CORRUPT)
		index_note_damage(ix);
	return 1;
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
	if (memtable_size(ix->active) >= ix->spill_at)
		index_spill(ix);
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
	s->index = ix;
	if (memtable_n_entries(ix->active))
		s->items[s->n++].memtable = memtable_ref(ix->active);
	for (size_t i = 0; i < ix->n_frozen; i++)
		s->items[s->n++].memtable = memtable_ref(ix->frozen[i]);
	for (size_t i = 0; i < ix->n_spilled; i++)
		s->items[s->n++].table = table_ref(ix->spilled[i]);
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
	/* each iterator holds on to what it reads */
	r = index_sources_iter(s, out_iter, err);
	index_sources_free(s);
	return r;
}

/* ---- copies ---- */

static bool begins_with(const struct table_entry *e, const void *prefix,
			size_t size)
{
	return e->key_size >= size && !memcmp(e->key, prefix, size);
}

static int copy_prefix(struct index *ix, const void *prefix, size_t size,
		       struct memtable *to, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	int r = index_iter(ix, &it, err);

	if (r == 0)
		r = it->seek(it, prefix, size, err);
	for (; r == 0 && begins_with(&it->entry, prefix, size);
	     r = it->next(it, err)) {
		const struct table_entry *e = &it->entry;

		if (memtable_put(to, e->key, e->key_size, e->value,
				 e->value_size) < 0)
			return incr_fail_nomem(err);
	}
	return r < 0 ? r : 0;
}

int index_collect(struct index *ix, const void *prefix, size_t size,
		  struct iter **out_iter, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct memtable *copy;
	int r;

	if (memtable_new(&copy) < 0)
		return incr_fail_nomem(err);
	r = copy_prefix(ix, prefix, size, copy, &why);
	if (r < 0) {
		r = heal(ix, r, &why, err);
		/* what was copied before the damage is put again */
		if (r == 0)
			r = copy_prefix(ix, prefix, size, copy, err);
	}
	if (r == 0 && memtable_iter_new(copy, out_iter) < 0)
		r = incr_fail_nomem(err);
	memtable_unref(copy);
	return r;
}

static int first_once(struct index *ix, const void *key, size_t key_size,
		      size_t fixed, struct buf *out_value,
		      struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	int r = index_iter(ix, &it, err);

	if (r == 0)
		r = it->seek(it, key, key_size, err);
	if (r)
		return r;
	if (!begins_with(&it->entry, key, fixed))
		return 1;
	buf_reset(out_value);
	if (buf_put(out_value, it->entry.value, it->entry.value_size) < 0)
		return incr_fail_nomem(err);
	return 0;
}

int index_first(struct index *ix, const void *key, size_t key_size,
		size_t fixed, struct buf *out_value, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r = first_once(ix, key, key_size, fixed, out_value, &why);

	if (r >= 0)
		return r;
	r = heal(ix, r, &why, err);
	return r < 0 ? r : first_once(ix, key, key_size, fixed, out_value, err);
}

/* ---- freezing ---- */

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

/* The newest so many that are not much smaller than the next older one. */
static size_t choose_frozen(const struct index *ix)
{
	size_t run = memtable_n_entries(ix->frozen[0]);
	size_t n = 1;

	while (n < ix->n_frozen && (n < 2 || memtable_n_entries(ix->frozen[n]) <
						     run * INDEX_FREEZE_FACTOR))
		run += memtable_n_entries(ix->frozen[n++]);
	return n;
}

/* Several short-lived frozen memtables become one, so that a long-lived reader keeps few sources. */
static int join_frozen(struct index *ix, struct incr_error *err)
{
	struct index_sources s = { .n = choose_frozen(ix) };
	struct memtable *joined;
	int r;

	for (size_t i = 0; i < s.n; i++)
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
	for (size_t i = 0; i < s.n; i++)
		memtable_unref(ix->frozen[i]);
	memmove(&ix->frozen[1], &ix->frozen[s.n],
		(ix->n_frozen - s.n) * sizeof(ix->frozen[0]));
	ix->frozen[0] = joined;
	ix->n_frozen -= s.n - 1;
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

int *index_losses(struct index *ix)
{
	return &ix->has_losses;
}

static void count_memory(const struct index *ix, size_t *out_n,
			 size_t *out_size)
{
	*out_n = memtable_n_entries(ix->active);
	*out_size = memtable_size(ix->active);
	for (size_t i = 0; i < ix->n_frozen; i++) {
		*out_n += memtable_n_entries(ix->frozen[i]);
		*out_size += memtable_size(ix->frozen[i]);
	}
}

bool index_is_full(const struct index *ix)
{
	size_t n, size;

	count_memory(ix, &n, &size);
	return n >= INDEX_FULL_ENTRIES || size >= INDEX_FULL_SIZE;
}

bool index_is_due(const struct index *ix)
{
	size_t n, size;

	count_memory(ix, &n, &size);
	return n >= INDEX_FLUSH_ENTRIES || size >= INDEX_FLUSH_SIZE ||
	       ix->n_spilled ||
	       ix->position.position - ix->checkpoint.position >=
		       INDEX_FLUSH_LOG;
}
