/*
 * Net change between two views of a dataset (rulebook R81): added, modified
 * and removed paths, in path order.
 *
 * Where one view's transaction lies on the path of the other and no SNAPSHOT
 * stands between, only the paths that the transactions in between touched can
 * differ: their manifests are read and each path is looked up in both views.
 * Otherwise both views are walked side by side, and also where so many paths
 * were touched that this is no more work, and they need not be held in memory.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "change_table.h"
#include "error.h"
#include "view.h"

/* A walk steps over files faster than they are looked up. */
#define WALK_FACTOR 8

struct side {
	struct change_table table; /* owned */
	struct incr_view *view; /* shared(ref) */
	struct incr_view_iter *iter; /* owned: for incr_changes_next() */
	struct incr_node node; /* owned: the next one of iter */
	int state; /* of iter */
	uint64_t n_files, size;
};

struct incr_changes {
	struct incr_view *from, *to; /* shared(ref) */
	struct side sides[3]; /* added, modified, removed */
	bool is_started;
};

static void stop_iteration(struct incr_changes *c)
{
	for (size_t i = 0; i < 3; i++) {
		incr_view_iter_free(c->sides[i].iter);
		c->sides[i].iter = NULL;
		incr_node_release(&c->sides[i].node);
	}
	c->is_started = false;
}

void incr_changes_free(struct incr_changes *c)
{
	if (!c)
		return;
	stop_iteration(c);
	for (size_t i = 0; i < 3; i++) {
		incr_view_unref(c->sides[i].view);
		change_table_release(&c->sides[i].table);
	}
	incr_view_unref(c->from);
	incr_view_unref(c->to);
	free(c);
}

/* Record the version that @w stands at as a change made by @change_txn. */
static int record(struct incr_changes *c, enum incr_change which,
		  const struct view_walk *w, uint64_t change_txn,
		  struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct side *side = &c->sides[which - 1];
	struct table_entry entry;
	struct state_key k;
	struct version v;
	int r = view_walk_version(w, &v, err);

	if (r < 0)
		return r;
	state_key_start(&k, STATE_CHANGE);
	state_key_bytes(&k, w->path, w->path_length);
	state_key_bytes(&k, "", 1);
	state_key_number(&k, ~w->txn);
	v.change_txn = change_txn;
	side->n_files++;
	side->size += v.content.size;
	r = version_encode(&v, &value) < 0 ? incr_fail_nomem(err) : 0;
	version_release(&v);
	if (r < 0)
		return r;
	entry = (struct table_entry){
		.key = k.bytes,
		.key_size = k.size,
		.value = value.data,
		.value_size = value.size,
	};
	return change_table_put(&side->table, &entry, err);
}

/* What became of one path that a transaction touched. */
static int compare_path(struct incr_changes *c, struct view_walk *from,
			struct view_walk *to, const void *path, size_t length,
			uint64_t touched_by, struct incr_error *err)
{
	int before = view_walk_find(from, path, length, err);
	int after = before < 0 ? before : view_walk_find(to, path, length, err);

	if (before < 0 || after < 0)
		return before < 0 ? before : after;
	if (before == 1 && after == 1)
		return 0;
	if (before == 1)
		return record(c, INCR_ADDED, to, to->txn, err);
	if (after == 1)
		return record(c, INCR_REMOVED, from,
			      to->removed_by ? to->removed_by : touched_by,
			      err);
	if (from->txn == to->txn)
		return 0;
	return record(c, INCR_MODIFIED, to, to->txn, err);
}

/* ---- by the transactions in between ---- */

/* Add the paths of one transaction that no newer one touched. */
static int add_touched(struct incr_store *st, const struct state_txn *t,
		       struct memtable *touched, struct incr_error *err)
{
	uint8_t number[8];
	struct manifest_source m;
	const struct manifest_entry *e;
	struct table_entry known;
	int r = store_manifest(st, t, &m, err);

	if (r < 0)
		return r;
	put_be64(number, t->fact.number);
	while ((r = manifest_reader_next(m.entries, &e, err)) == 0) {
		if (memtable_get(touched, e->path, e->path_length, &known) == 0)
			continue;
		if (memtable_put(touched, e->path, e->path_length, number,
				 sizeof(number)) < 0) {
			r = incr_fail_nomem(err);
			break;
		}
	}
	manifest_source_release(&m);
	return r < 0 ? r : 0;
}

/* All paths that were touched after @low up to @high, each with its newest transaction. */
static int collect_touched(struct incr_store *st, uint64_t low, uint64_t high,
			   struct memtable *touched, struct incr_error *err)
{
	while (high != low) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_txn t;
		int r = store_find_txn(st, high, &storage, &t, err);

		if (r == 0)
			r = add_touched(st, &t, touched, err);
		if (r < 0)
			return r;
		high = t.fact.parent;
	}
	return 0;
}

static int compare_touched(struct incr_changes *c, struct memtable *touched,
			   struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct view_walk from, to;
	int r = view_walk_init(&from, c->from, err);

	if (r < 0)
		return r;
	r = view_walk_init(&to, c->to, err);
	if (r == 0 && memtable_iter_new(touched, &it) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = it->seek(it, "", 0, err);
	while (r == 0) {
		const struct table_entry *e = &it->entry;

		r = compare_path(c, &from, &to, e->key, e->key_size,
				 get_be64(e->value), err);
		if (r == 0)
			r = it->next(it, err);
	}
	view_walk_release(&to);
	view_walk_release(&from);
	return r < 0 ? r : 0;
}

static int by_transactions(struct incr_store *st, struct incr_changes *c,
			   uint64_t low, uint64_t high, struct incr_error *err)
{
	struct memtable *touched;
	int r;

	if (memtable_new(&touched) < 0)
		return incr_fail_nomem(err);
	r = collect_touched(st, low, high, touched, err);
	if (r == 0)
		r = compare_touched(c, touched, err);
	memtable_unref(touched);
	return r;
}

/* ---- by walking both views ---- */

static int compare_heads(const struct view_walk *a, int a_state,
			 const struct view_walk *b, int b_state)
{
	if (a_state || b_state)
		return a_state ? 1 : -1;
	return table_key_compare(a->path, a->path_length, b->path,
				 b->path_length);
}

/* A path that @to does not have: a transaction of its own took it away, or it never had it. */
static int record_removed(struct incr_changes *c, const struct view_walk *from,
			  struct view_walk *look_up, struct incr_error *err)
{
	/* between views with different starts it was the SNAPSHOT that removed */
	uint64_t remover = c->to->start != c->from->start ? c->to->start :
							    c->to->txn;
	int r = view_walk_find(look_up, from->path, from->path_length, err);

	if (r < 0)
		return r;
	if (look_up->removed_by)
		remover = look_up->removed_by;
	return record(c, INCR_REMOVED, from, remover, err);
}

static int walk_both(struct incr_changes *c, struct view_walk *from,
		     struct view_walk *to, struct view_walk *look_up,
		     struct incr_error *err)
{
	int f = view_walk_seek(from, NULL, 0, err);
	int t = f < 0 ? f : view_walk_seek(to, NULL, 0, err);

	while (f >= 0 && t >= 0 && (f == 0 || t == 0)) {
		int order = compare_heads(from, f, to, t);
		int r = 0;

		if (order < 0)
			r = record_removed(c, from, look_up, err);
		else if (order > 0)
			r = record(c, INCR_ADDED, to, to->txn, err);
		else if (from->txn != to->txn)
			r = record(c, INCR_MODIFIED, to, to->txn, err);
		if (r < 0)
			return r;
		if (order <= 0)
			f = view_walk_next(from, err);
		if (order >= 0 && f >= 0)
			t = view_walk_next(to, err);
	}
	return f < 0 ? f : (t < 0 ? t : 0);
}

static int by_walking(struct incr_changes *c, struct incr_error *err)
{
	struct view_walk from, to, look_up;
	int r = view_walk_init(&from, c->from, err);

	if (r < 0)
		return r;
	r = view_walk_init(&to, c->to, err);
	if (r == 0) {
		r = view_walk_init(&look_up, c->to, err);
		if (r == 0)
			r = walk_both(c, &from, &to, &look_up, err);
		view_walk_release(&look_up);
	}
	view_walk_release(&to);
	view_walk_release(&from);
	return r;
}

/* Did the transactions after @low up to @high touch more than is held in memory? */
static int touched_many(struct incr_store *st, const struct incr_changes *c,
			uint64_t low, uint64_t high, bool *out_many,
			struct incr_error *err)
{
	uint64_t limit = c->to->n_files / WALK_FACTOR, n = 0;

	if (limit < st->n_changes_in_memory)
		limit = st->n_changes_in_memory;
	while (high != low && n <= limit) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_txn t;
		int r = store_find_txn(st, high, &storage, &t, err);

		if (r < 0)
			return r;
		n += t.fact.n_files + t.fact.n_removed;
		high = t.fact.parent;
	}
	*out_many = n > limit;
	return 0;
}

static int compare_views(struct incr_store *st, struct incr_changes *c,
			 struct incr_error *err)
{
	uint64_t a = c->from->txn, b = c->to->txn;
	bool is_on_path = false, is_many = false;
	int r;

	if (c->from->start != c->to->start || !a || !b)
		return by_walking(c, err);
	if (a == b)
		return 0;
	r = incr_txn_is_on_path(st, a < b ? a : b, a < b ? b : a, &is_on_path,
				err);
	if (r < 0)
		return r;
	/* Who removed a path that was not there yet, only transactions tell. */
	if (is_on_path && a < b)
		r = touched_many(st, c, a, b, &is_many, err);
	if (r < 0)
		return r;
	if (!is_on_path || is_many)
		return by_walking(c, err);
	return by_transactions(st, c, a < b ? a : b, a < b ? b : a, err);
}

static int make_views(struct incr_changes *c, struct incr_error *err)
{
	for (size_t i = 0; i < 3; i++) {
		struct side *s = &c->sides[i];
		int r = change_table_finish(&s->table, err);
		if (r == 0)
			r = view_new_changes(c->to,
					     change_table_source(&s->table),
					     s->n_files, s->size, &s->view,
					     err);
		if (r < 0)
			return r;
	}
	return 0;
}

int incr_changes_new(struct incr_view *from, struct incr_view *to,
		     struct incr_changes **out_changes, struct incr_error *err)
{
	struct incr_changes *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return incr_fail_nomem(err);
	c->from = incr_view_ref(from);
	c->to = incr_view_ref(to);
	for (size_t i = 0; r == 0 && i < 3; i++)
		r = change_table_init(&c->sides[i].table, to->store, err);
	if (r == 0)
		r = compare_views(to->store, c, err);
	if (r == 0)
		r = make_views(c, err);
	if (r < 0) {
		incr_changes_free(c);
		return r;
	}
	*out_changes = c;
	return 0;
}

struct incr_view *incr_changes_view(struct incr_changes *c,
				    enum incr_change which)
{
	return c->sides[which - 1].view;
}

/* ---- all of them in path order ---- */

static int start_iteration(struct incr_changes *c, struct incr_error *err)
{
	for (size_t i = 0; i < 3; i++) {
		struct side *s = &c->sides[i];
		int r = incr_view_iter_new(s->view, NULL, 0, &s->iter, err);

		if (r == 0)
			s->state = r =
				incr_view_iter_next(s->iter, &s->node, err);
		if (r < 0)
			return r;
	}
	c->is_started = true;
	return 0;
}

static struct side *first_side(struct incr_changes *c)
{
	struct side *first = NULL;

	for (size_t i = 0; i < 3; i++) {
		struct side *s = &c->sides[i];

		if (!s->state &&
		    (!first ||
		     table_key_compare(s->node.path, s->node.path_length,
				       first->node.path,
				       first->node.path_length) < 0))
			first = s;
	}
	return first;
}

/* Who made the change that the side's iterator stands at. */
static int change_txn_of(const struct side *s, uint64_t *out_txn,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k;
	struct version v;
	int r;

	state_key_start(&k, STATE_CHANGE);
	state_key_bytes(&k, s->node.path, s->node.path_length);
	state_key_bytes(&k, "", 1);
	state_key_number(&k, ~s->node.txn);
	r = change_table_get(&s->table, k.bytes, k.size, &value, err);
	if (r < 0)
		return r;
	if (r == 1 || version_decode(value.data, value.size, &v) < 0)
		return incr_fail_nomem(err);
	*out_txn = v.change_txn;
	version_release(&v);
	return 0;
}

int incr_changes_next(struct incr_changes *c, enum incr_change *out_change,
		      struct incr_node *node, uint64_t *out_txn,
		      struct incr_error *err)
{
	struct incr_node given;
	struct side *s;
	int r = c->is_started ? 0 : start_iteration(c, err);

	if (r < 0)
		return r;
	s = first_side(c);
	if (!s)
		return 1;
	r = change_txn_of(s, out_txn, err);
	if (r < 0)
		return r;
	*out_change = (enum incr_change)(s - c->sides + 1);
	/* the caller's buffers are reused for what comes next */
	given = s->node;
	s->node = *node;
	*node = given;
	s->state = incr_view_iter_next(s->iter, &s->node, err);
	return s->state < 0 ? s->state : 0;
}

void incr_changes_rewind(struct incr_changes *c)
{
	stop_iteration(c);
}
