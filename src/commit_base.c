/*
 * The view that a SNAPSHOT follows, for a manifest that is only the difference
 * to it (format.md, "Manifests").
 *
 * A relative SNAPSHOT adds to the entries that its view is looked up in, a
 * whole one begins anew.  So a view may not become relative to one with more
 * dead entries than files: what a view costs follows its own size.
 */
#include "config.h"

#include "commit.h"

#include <string.h>

#include "error.h"

int commit_version_entry(const struct view_walk *w,
			 struct manifest_entry *out_entry,
			 struct incr_error *err)
{
	struct manifest_entry e = { .op = MANIFEST_PUT,
				    .path = w->path,
				    .path_length = w->path_length };
	struct version v;
	int r = view_walk_version(w, &v, err);

	if (r < 0)
		return r;
	e.mode = v.mode;
	e.mtime_ns = v.mtime_ns;
	memcpy(e.hash, v.hash, sizeof(e.hash));
	e.content = v.content;
	*out_entry = e;
	return 0;
}

static int rewind_view(void *closure, struct incr_error *err)
{
	struct commit_base *b = closure;

	(void)err;
	b->has_begun = false;
	return 0;
}

static int next_file(void *closure, struct manifest_entry *out_entry,
		     struct incr_error *err)
{
	struct commit_base *b = closure;
	int r = b->has_begun ? view_walk_next(&b->walk, err) :
			       view_walk_seek(&b->walk, NULL, 0, err);

	b->has_begun = true;
	return r ? r : commit_version_entry(&b->walk, out_entry, err);
}

/* Half of the files, if there are not too many entries yet. */
static uint64_t count_changes_max(uint64_t n_files, uint64_t n_entries)
{
	uint64_t half = n_files / 2;
	uint64_t room = n_entries < 2 * n_files ? 2 * n_files - n_entries : 0;

	return half < room ? half : room;
}

int commit_base_init(struct commit_base *b, struct incr_store *st,
		     struct incr_view *view, struct ingest_options *options,
		     struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	uint64_t max;
	int r;

	/* a SNAPSHOT makes a view whole again: it takes nothing over from one that is not */
	if (!view || !view->txn || !view->n_files || view->unknown)
		return 0;
	r = store_find_txn(st, view->txn, &storage, &t, err);
	if (r < 0)
		return r;
	max = count_changes_max(view->n_files, t.n_entries);
	r = max ? view_walk_init(&b->walk, view, err) : 0;
	if (!max || r < 0)
		return r;
	b->base = (struct ingest_base){ .rewind = rewind_view,
					.next = next_file,
					.closure = b,
					.txn = view->txn,
					.max_changes = max };
	options->base = &b->base;
	return 0;
}

void commit_base_release(struct commit_base *b)
{
	if (b->base.closure)
		view_walk_release(&b->walk);
	*b = (struct commit_base){ 0 };
}
