/*
 * Walking a view's versions in key order and picking, for each path, the one
 * that counts.  Few versions of a path are stepped over one by one; many are
 * jumped over by a seek, so that a path's history costs nothing.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hash.h"
#include "view.h"

#define STEPS_BEFORE_SEEK 6
#define TXN_SUFFIX 9 /* a zero byte and ~transaction */

/* Place: source (6 bits), block (24), entry (10). */
#define PLACE_BLOCK_BITS 24
#define PLACE_INDEX_BITS 10

uint64_t view_place(const struct iter *it)
{
	return (uint64_t)it->source << (PLACE_BLOCK_BITS + PLACE_INDEX_BITS) |
	       (uint64_t)it->block << PLACE_INDEX_BITS | it->index;
}

int view_walk_init(struct view_walk *w, struct incr_view *v,
		   struct incr_error *err)
{
	w->view = v;
	w->it = NULL;
	w->is_placed = false;
	w->last_length = SIZE_MAX;
	if (!v->sources)
		return 0;
	/* what is newer than the view is nothing to it */
	return index_sources_iter_rank(v->sources, v->counts_all ? 0 : ~v->txn,
				       &w->it, err);
}

void view_walk_release(struct view_walk *w)
{
	iter_free(w->it);
	w->it = NULL;
}

/* What a reading call gives back: damage is known to the index from then on. */
static int noted(const struct view_walk *w, int r)
{
	if (r == INCR_E_CORRUPT && w->view->sources)
		index_sources_damaged(w->view->sources);
	return r;
}

static bool is_within(const struct view_walk *w)
{
	const struct state_key *prefix = &w->view->prefix;
	const struct table_entry *e = &w->it->entry;

	return e->key_size >= prefix->size + TXN_SUFFIX &&
	       !memcmp(e->key, prefix->bytes, prefix->size);
}

/* Path and transaction of the entry that the iterator stands at. */
static void parse_key(struct view_walk *w)
{
	const struct table_entry *e = &w->it->entry;

	w->path = (const char *)e->key + w->view->prefix.size;
	w->path_length = e->key_size - w->view->prefix.size - TXN_SUFFIX;
	w->key_txn = ~get_be64(e->key + e->key_size - 8);
	w->txn = w->key_txn > w->view->oldest ? w->key_txn : w->view->oldest;
}

static bool is_decided(const struct view_walk *w)
{
	return w->last_length == w->path_length &&
	       !memcmp(w->last_path, w->path, w->path_length);
}

static int remember(struct view_walk *w, struct incr_error *err)
{
	if (w->path_length > sizeof(w->last_path))
		return incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
				 "a path in the index is too long");
	memcpy(w->last_path, w->path, w->path_length);
	w->last_length = w->path_length;
	return 0;
}

static int seek_path(struct view_walk *w, const void *path, size_t length,
		     const void *tail, size_t tail_size, struct incr_error *err)
{
	struct state_key k = w->view->prefix;

	state_key_bytes(&k, path, length);
	state_key_bytes(&k, tail, tail_size);
	return w->it->seek(w->it, k.bytes, k.size, err);
}

/* Is the version that the iterator stands at the one that counts, or does it not count? */
static int judge(struct view_walk *w, bool *out_counts,
		 enum manifest_op *out_op, struct incr_error *err)
{
	const struct table_entry *e = &w->it->entry;
	uint64_t line;

	if (version_peek(e->value, e->value_size, out_op, &line) < 0)
		return incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
				 "a file version in the index does not parse");
	*out_counts = w->view->counts_all ||
		      (w->key_txn <= w->view->txn &&
		       lineage_holds(&w->view->lineage, line, w->key_txn));
	return 0;
}

/* Past the path that was decided, or to its versions that are old enough. */
static int skip_versions(struct view_walk *w, unsigned n_steps,
			 struct incr_error *err)
{
	uint8_t tail[TXN_SUFFIX] = { 0 };

	if (n_steps % (STEPS_BEFORE_SEEK + 1) < STEPS_BEFORE_SEEK)
		return w->it->next(w->it, err);
	if (is_decided(w))
		/* no path has a byte below 1, so this is the first key of another path */
		return seek_path(w, w->last_path, w->last_length, "\1", 1, err);
	if (w->key_txn <= w->view->txn)
		return w->it->next(w->it, err);
	put_be64(tail + 1, ~w->view->txn);
	return seek_path(w, w->path, w->path_length, tail, sizeof(tail), err);
}

/* From where the iterator stands (@r: what its move returned) to the next version that counts. */
static int settle(struct view_walk *w, int r, struct incr_error *err)
{
	unsigned n_steps = 0;

	for (; r == 0; r = skip_versions(w, n_steps++, err)) {
		enum manifest_op op;
		bool counts;

		if (!is_within(w))
			return 1;
		parse_key(w);
		if (is_decided(w))
			continue;
		r = judge(w, &counts, &op, err);
		if (r == 0 && counts)
			r = remember(w, err);
		if (r < 0)
			return r;
		if (!counts)
			continue;
		n_steps = 0;
		if (op == MANIFEST_REMOVE)
			continue;
		w->value = w->it->entry.value;
		w->value_size = w->it->entry.value_size;
		w->place = view_place(w->it);
		return 0;
	}
	return r;
}

int view_walk_seek(struct view_walk *w, const void *from, size_t length,
		   struct incr_error *err)
{
	w->last_length = SIZE_MAX;
	if (!w->it)
		return 1;
	return noted(w,
		     settle(w, seek_path(w, from, length, NULL, 0, err), err));
}

int view_walk_next(struct view_walk *w, struct incr_error *err)
{
	if (!w->it)
		return 1;
	return noted(w, settle(w, w->it->next(w->it, err), err));
}

static int find(struct view_walk *w, const void *path, size_t length,
		struct incr_error *err)
{
	uint8_t tail[TXN_SUFFIX] = { 0 };
	int r;

	if (!w->view->counts_all)
		put_be64(tail + 1, ~w->view->txn);
	r = seek_path(w, path, length, tail, sizeof(tail), err);
	for (; r == 0; r = w->it->next(w->it, err)) {
		enum manifest_op op;
		bool counts;

		if (!is_within(w))
			return 1;
		parse_key(w);
		if (w->path_length != length ||
		    memcmp(w->path, path, length) != 0)
			return 1;
		r = judge(w, &counts, &op, err);
		if (r < 0)
			return r;
		if (!counts)
			continue;
		if (op == MANIFEST_REMOVE) {
			/* the view began without it */
			if (w->key_txn <= w->view->oldest)
				return 1;
			/* a removal of what was removed already took nothing away */
			w->removed_by = w->txn;
			continue;
		}
		if (w->removed_by)
			return 1;
		w->value = w->it->entry.value;
		w->value_size = w->it->entry.value_size;
		w->place = view_place(w->it);
		return remember(w, err);
	}
	return r;
}

int view_walk_find(struct view_walk *w, const void *path, size_t length,
		   struct incr_error *err)
{
	w->last_length = SIZE_MAX;
	w->removed_by = 0;
	return w->it ? noted(w, find(w, path, length, err)) : 1;
}

int view_walk_stand(struct view_walk *w, struct incr_error *err)
{
	enum manifest_op op;
	bool counts;
	int r;

	if (!is_within(w))
		return 1;
	parse_key(w);
	r = judge(w, &counts, &op, err);
	if (r < 0)
		return r;
	w->value = w->it->entry.value;
	w->value_size = w->it->entry.value_size;
	return counts && op == MANIFEST_PUT ? 0 : 1;
}

int view_walk_version(const struct view_walk *w, struct version *out,
		      struct incr_error *err)
{
	int r = version_decode(w->value, w->value_size, out);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0)
		return noted(
			w,
			incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
				  "a file version in the index does not parse"));
	return 0;
}

/* The node's path buffer grows and is kept. */
static int set_path(struct incr_node *node, const char *path, size_t length,
		    struct incr_error *err)
{
	char *grown = realloc(node->path, length + 1);

	if (!grown)
		return incr_fail_nomem(err);
	memcpy(grown, path, length);
	grown[length] = '\0';
	node->path = grown;
	node->path_length = length;
	return 0;
}

static uint64_t stable_id(const struct view_walk *w, size_t length,
			  uint64_t txn)
{
	uint8_t identity[24];
	uint64_t id;

	put_u64(identity, w->view->store_tag);
	put_u64(identity + 8, w->view->dataset_id);
	put_u64(identity + 16, txn);
	id = hash64_two(identity, sizeof(identity), w->path, length);
	return id > 1 ? id : 2; /* 0 and 1 mean other things to file systems */
}

int view_walk_node(const struct view_walk *w, struct incr_node *node,
		   struct incr_error *err)
{
	struct version v;
	struct content *content = node->content;
	int r = view_walk_version(w, &v, err);

	if (r < 0)
		return r;
	if (!content) {
		content = calloc(1, sizeof(*content));
		node->content = content;
	}
	if (!content || set_path(node, w->path, w->path_length, err) < 0) {
		version_release(&v);
		return incr_fail_nomem(err);
	}
	content_release(content);
	*content = v.content;
	node->is_dir = false;
	node->depth = 0;
	node->place = w->place;
	node->size = content->size;
	node->mtime_ns = v.mtime_ns;
	node->mode = v.mode;
	node->txn = w->txn;
	memcpy(node->hash, v.hash, sizeof(node->hash));
	node->stable_id = stable_id(w, w->path_length, w->txn);
	return 0;
}

int view_walk_directory(const struct view_walk *w, size_t length,
			struct incr_node *node, struct incr_error *err)
{
	unsigned depth = length > 0;
	int r = set_path(node, w->path, length, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < length; i++)
		depth += w->path[i] == '/';
	node->is_dir = true;
	node->depth = (uint8_t)depth;
	node->place = w->place;
	node->size = 0;
	node->mtime_ns = 0;
	node->mode = 0;
	node->txn = 0;
	node->stable_id = stable_id(w, length, UINT64_MAX);
	return 0;
}
