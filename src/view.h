/*
 * Views: path -> file version, resolved through the index's sources.
 *
 * All versions that a view is made of (of its dataset, since its root) stand
 * side by side in the index, newest first for each path.  A version counts if its
 * transaction is on the view's path and not after its end; the newest that
 * counts decides.  A change set is the same thing over a private memtable or
 * table in which everything counts.
 */
#ifndef INCR_VIEW_H
#define INCR_VIEW_H

#include "name.h"
#include "store.h"

struct incr_view {
	unsigned refs; /* atomic */
	struct incr_store
		*store; /* borrowed; only for look-ups by its own thread */
	struct content_reader *reader; /* borrowed from the store */
	uint64_t store_tag;
	struct index_sources *sources; /* shared(ref); NULL: the empty view */
	uint64_t dataset_id, txn, start;
	/* What was put before this transaction, a SNAPSHOT that took it over, was put by it. */
	uint64_t oldest;
	uint64_t unknown; /* a transaction of it whose changes are lost; 0: none */
	uint64_t n_files, size;
	struct state_key prefix; /* of all its keys */
	bool counts_all; /* a change set */
	struct lineage lineage; /* owned */
};

/* A walk over the paths of a view, in order; one thread at a time. */
struct view_walk {
	struct incr_view *view;
	struct iter *it; /* owned; NULL: the empty view */
	bool is_placed; /* the iterator stands at an entry not looked at yet */
	/* the version found, valid after 0: */
	const char *path; /* borrowed from the iterator */
	size_t path_length;
	uint64_t key_txn; /* the one in its key */
	uint64_t txn; /* the one that put it, as the view has it */
	uint64_t removed_by; /* after a find that gave 1: the last that took it away; 0: none */
	uint64_t place;
	const uint8_t *value; /* borrowed from the iterator */
	size_t value_size;
	uint8_t last_path[NAME_PATH_MAX]; /* decided already */
	size_t last_length;
};

int view_walk_init(struct view_walk *w, struct incr_view *v,
		   struct incr_error *err);
void view_walk_release(struct view_walk *w);
/* First path >= @from: 0, 1 at the end. */
int view_walk_seek(struct view_walk *w, const void *from, size_t length,
		   struct incr_error *err);
int view_walk_next(struct view_walk *w, struct incr_error *err);
/* Exactly @path: 0, or 1 when the view does not have it. */
int view_walk_find(struct view_walk *w, const void *path, size_t length,
		   struct incr_error *err);
/* Take the version that w->it stands at: 0, or 1 when the view does not count it. */
int view_walk_stand(struct view_walk *w, struct incr_error *err);
/* The version that the walk stands at. */
int view_walk_version(const struct view_walk *w, struct version *out,
		      struct incr_error *err);
/* Fill a node (which keeps its buffers) from the walk. */
int view_walk_node(const struct view_walk *w, struct incr_node *node,
		   struct incr_error *err);

/* A view over one source of STATE_CHANGE keys; its reference is taken. */
int view_new_changes(struct incr_view *like, struct index_source source,
		     uint64_t n_files, uint64_t size,
		     struct incr_view **out_view, struct incr_error *err);

uint64_t view_place(const struct iter *it);
/* A directory node at the first @length bytes of the walk's path. */
int view_walk_directory(const struct view_walk *w, size_t length,
			struct incr_node *node, struct incr_error *err);

#endif
