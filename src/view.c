/* Views: opened, looked into, listed, read. */
#include "config.h"

#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define PLACE_SOURCE(place) ((size_t)((place) >> 34))
#define PLACE_BLOCK(place) ((uint32_t)((place) >> 10) & 0xffffff)
#define PLACE_INDEX(place) ((uint32_t)(place)&0x3ff)

struct incr_view *incr_view_ref(struct incr_view *v)
{
	__atomic_add_fetch(&v->refs, 1, __ATOMIC_RELAXED);
	return v;
}

void incr_view_unref(struct incr_view *v)
{
	if (!v || __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL))
		return;
	index_sources_free(v->sources);
	lineage_release(&v->lineage);
	free(v);
}

uint64_t incr_view_n_files(const struct incr_view *v)
{
	return v->n_files;
}

uint64_t incr_view_size(const struct incr_view *v)
{
	return v->size;
}

uint64_t incr_view_dataset_id(const struct incr_view *v)
{
	return v->dataset_id;
}

uint64_t incr_view_txn(const struct incr_view *v)
{
	return v->txn;
}

uint64_t incr_view_start(const struct incr_view *v)
{
	return v->start;
}

uint64_t incr_view_unknown(const struct incr_view *v)
{
	return v->unknown;
}

/*
 * A view that holds a transaction whose manifest cannot be read is not shown,
 * unless a repair has given that up: it would be short of files, or show old
 * ones, and nothing would say so.  1: the manifest is back, and the index was
 * made again.
 */
static int check_known(struct incr_store *st, struct incr_view *v,
		       struct incr_error *err)
{
	uint64_t unknown, build;
	char name[32];
	int r = state_unknown(st->index, v->txn, &unknown, err);

	if (r)
		return r < 0 ? r : 0;
	r = state_given_up(st->index, unknown, &build, err);
	if (r == 0)
		v->unknown = unknown;
	if (r <= 0)
		return r;
	r = store_try_manifest(st, unknown, err);
	if (r == 0) {
		r = store_rebuild(st, err);
		return r < 0 ? r : 1;
	}
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "t%llu", (unsigned long long)unknown);
	(void)incr_fail(err, INCR_E_CORRUPT, "damaged-manifest", name,
			"the view needs the list of its files, which is "
			"damaged");
	incr_hint(err, "get its pack back from a copy, or give it up: incrctl "
		       "repair");
	return INCR_E_CORRUPT;
}

static int open_at(struct incr_store *st, uint64_t txn, struct incr_view *v,
		   struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t = { 0 };
	/* what a view found damaged is not given to the next one */
	int r = index_is_damaged(st->index) ? store_catch_up(st, err) : 0;

	if (r == 0)
		r = store_find_txn(st, txn, &storage, &t, err);
	if (r < 0)
		return r;
	if (t.fact.dataset_id != v->dataset_id ||
	    (t.status != INCR_COMMITTED && t.status != INCR_LOST)) {
		char name[32];

		snprintf(name, sizeof(name), "t%llu", (unsigned long long)txn);
		return incr_fail(
			err, INCR_E_NOTFOUND, "no-such-transaction", name,
			"it is no committed transaction of this dataset");
	}
	r = check_known(st, v, err);
	if (r == 1)
		return open_at(st, txn, v, err); /* once: it is known now */
	if (r < 0)
		return r;
	v->start = t.fact.view_start;
	v->oldest = v->start;
	v->n_files = t.fact.view_files;
	v->size = t.fact.view_size;
	v->prefix = state_key_of(STATE_VERSION, v->dataset_id);
	state_key_number(&v->prefix, t.root);
	r = lineage_of(st->index, t.fact.line, txn, t.root, &v->lineage, err);
	return r < 0 ? r : index_freeze(st->index, &v->sources, err);
}

int incr_view_open(struct incr_store *st, uint64_t dataset_id, uint64_t txn,
		   struct incr_view **out_view, struct incr_error *err)
{
	struct incr_view *v = calloc(1, sizeof(*v));
	int r = 0;

	if (!v)
		return incr_fail_nomem(err);
	v->refs = 1;
	v->store = st;
	v->reader = st->reader;
	v->store_tag = st->tag;
	v->dataset_id = dataset_id;
	v->txn = txn;
	if (txn)
		r = open_at(st, txn, v, err);
	if (r < 0) {
		incr_view_unref(v);
		return r;
	}
	*out_view = v;
	return 0;
}

int view_new_changes(struct incr_view *like, struct index_source source,
		     uint64_t n_files, uint64_t size,
		     struct incr_view **out_view, struct incr_error *err)
{
	struct incr_view *v = calloc(1, sizeof(*v));
	struct index_sources *s = calloc(1, sizeof(*s));

	if (!v || !s) {
		memtable_unref(source.memtable);
		table_unref(source.table);
		free(v);
		free(s);
		return incr_fail_nomem(err);
	}
	s->n = 1;
	s->items[0] = source;
	v->refs = 1;
	v->store = like->store;
	v->reader = like->reader;
	v->store_tag = like->store_tag;
	v->dataset_id = like->dataset_id;
	v->txn = like->txn;
	v->start = like->start;
	v->sources = s;
	v->n_files = n_files;
	v->size = size;
	v->counts_all = true;
	state_key_start(&v->prefix, STATE_CHANGE);
	*out_view = v;
	return 0;
}

void incr_node_release(struct incr_node *n)
{
	if (n->content)
		content_release(n->content);
	free(n->content);
	free(n->path);
	*n = INCR_NODE_INIT;
}

static int find_directory(struct view_walk *w, const char *path, size_t length,
			  struct incr_node *out_node, struct incr_error *err)
{
	char below[NAME_PATH_MAX + 1];
	int r;

	if (length >= sizeof(below))
		return 1;
	memcpy(below, path, length);
	below[length] = '/';
	r = view_walk_seek(w, below, length ? length + 1 : 0, err);
	if (r < 0)
		return r;
	if (!length) {
		if (r == 0)
			return view_walk_directory(w, 0, out_node, err);
		w->path = "";
		w->place = 0;
		return view_walk_directory(w, 0, out_node, err);
	}
	if (r == 1 || w->path_length <= length ||
	    memcmp(w->path, below, length + 1) != 0)
		return 1;
	return view_walk_directory(w, length, out_node, err);
}

int incr_view_find(struct incr_view *v, const char *path, size_t length,
		   struct incr_node *out_node, struct incr_error *err)
{
	struct view_walk w;
	int r = view_walk_init(&w, v, err);

	if (r < 0)
		return r;
	r = length && length <= NAME_PATH_MAX ?
		    view_walk_find(&w, path, length, err) :
		    1;
	if (r == 0)
		r = view_walk_node(&w, out_node, err);
	else if (r == 1)
		r = find_directory(&w, path, length, out_node, err);
	view_walk_release(&w);
	return r;
}

/* Length of the first @depth parts of a path. */
static size_t parts_length(const char *path, size_t length, unsigned depth)
{
	size_t i = 0;

	for (; i < length; i++)
		if (path[i] == '/' && !--depth)
			break;
	return i;
}

static int no_such_place(struct incr_error *err)
{
	return incr_fail(err, INCR_E_RANGE, NULL, NULL,
			 "no such place in the view");
}

static int at_place(struct incr_view *v, struct iter *it, size_t source,
		    uint64_t place, uint8_t depth, struct incr_node *out_node,
		    struct incr_error *err)
{
	struct view_walk w;
	size_t length;
	int r = index_sources_goto(v->sources, source, it, PLACE_BLOCK(place),
				   PLACE_INDEX(place), err);

	w.view = v;
	w.it = it;
	w.place = place;
	if (r == 0)
		r = view_walk_stand(&w, err);
	if (r == INCR_E_CORRUPT)
		index_sources_damaged(v->sources);
	if (r < 0)
		return r;
	if (r > 0)
		return no_such_place(err);
	if (!depth)
		return view_walk_node(&w, out_node, err);
	length = parts_length(w.path, w.path_length, depth);
	if (length == w.path_length)
		return no_such_place(err);
	return view_walk_directory(&w, length, out_node, err);
}

int incr_view_at(struct incr_view *v, uint64_t place, uint8_t depth,
		 struct incr_node *out_node, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	size_t source = PLACE_SOURCE(place);
	int r;

	if (!v->sources || source >= v->sources->n)
		return no_such_place(err);
	r = index_sources_iter_one(v->sources, source, &it, err);
	return r < 0 ? r : at_place(v, it, source, place, depth, out_node, err);
}

/* ---- all files ---- */

struct incr_view_iter {
	struct view_walk walk;
	bool has_first; /* the walk stands at an entry that was not given yet */
	int first; /* what the first seek returned */
};

int incr_view_iter_new(struct incr_view *v, const char *from, size_t length,
		       struct incr_view_iter **out_iter, struct incr_error *err)
{
	struct incr_view_iter *it = calloc(1, sizeof(*it));
	int r;

	if (!it)
		return incr_fail_nomem(err);
	r = view_walk_init(&it->walk, incr_view_ref(v), err);
	if (r == 0) {
		it->first =
			view_walk_seek(&it->walk, from, from ? length : 0, err);
		r = it->first < 0 ? it->first : 0;
	}
	if (r < 0) {
		incr_view_iter_free(it);
		return r;
	}
	it->has_first = true;
	*out_iter = it;
	return 0;
}

int incr_view_iter_next(struct incr_view_iter *it, struct incr_node *node,
			struct incr_error *err)
{
	int r = it->has_first ? it->first : view_walk_next(&it->walk, err);

	it->has_first = false;
	return r ? r : view_walk_node(&it->walk, node, err);
}

void incr_view_iter_free(struct incr_view_iter *it)
{
	if (!it)
		return;
	view_walk_release(&it->walk);
	incr_view_unref(it->walk.view);
	free(it);
}

/* ---- content ---- */

int incr_file_read(struct incr_view *v, const struct incr_node *file,
		   uint64_t off, void *data, size_t size, size_t *out_size,
		   struct incr_error *err)
{
	return content_read(v->reader, file->content, off, data, size, out_size,
			    err);
}

int incr_file_prefetch(struct incr_view *v, const struct incr_node *file,
		       uint64_t off, size_t size, struct incr_error *err)
{
	return file->content ? content_prefetch(v->reader, file->content, off,
						size, err) :
			       0;
}

int incr_file_frame_id(const struct incr_node *file, uint64_t *out_id,
		       uint32_t *out_off)
{
	const struct content *c = file->content;

	if (!c || c->kind != CONTENT_PART)
		return 1;
	*out_id = c->container * UINT64_C(0x9e3779b97f4a7c15) + c->frame_off;
	*out_off = c->part_off;
	return 0;
}

static void refer(struct incr_frame_ref *ref, const struct frame *frame)
{
	ref->data = frame->data;
	ref->raw_size = frame->raw_size;
	ref->handle = frame;
}

int incr_file_frame(struct incr_view *v, const struct incr_node *file,
		    struct incr_frame_ref *out_ref, struct incr_error *err)
{
	const struct content *c = file->content;
	struct incr_frame_ref ref;
	const struct frame *frame;
	int r = incr_file_frame_id(file, &ref.id, &ref.off);

	if (r)
		return r;
	r = content_frame_get(v->reader, c->container, c->frame_off,
			      c->frame_stored, c->frame_raw, &frame, err);
	if (r < 0)
		return r;
	refer(&ref, frame);
	*out_ref = ref;
	return 0;
}

int incr_file_frame_at(struct incr_view *v, const struct incr_node *file,
		       uint64_t at, struct incr_frame_ref *out_ref,
		       struct incr_error *err)
{
	const struct content *c = file->content;
	struct incr_frame_ref ref = { 0 };
	const struct frame *frame;
	int r;

	if (!c || c->kind != CONTENT_EXTENTS || at >= c->size)
		return 1;
	r = content_frame_at(v->reader, c, at, &frame, &ref.off, err);
	if (r < 0)
		return r;
	refer(&ref, frame);
	*out_ref = ref;
	return 0;
}

void incr_frame_put(struct incr_view *v, struct incr_frame_ref *ref)
{
	content_frame_put(v->reader, ref->handle);
	ref->handle = NULL;
}
