/*
 * The manifest of a SNAPSHOT as the difference to the view it follows: what
 * that view has already is not written again, what it has too much is removed.
 * Both come in path order, so one walk beside the sink finds it.
 *
 * The difference stays in memory until all of it is known.  When it becomes
 * long it is worth nothing: every later view would step over what it replaces.
 * Then the walk begins again and the whole list is made of both.
 */
#include "config.h"

#include "ingest_parts.h"

#include "bytes.h"
#include "error.h"
#include "table.h"

#include <string.h>

#define DIFFERENCE_SIZE_MAX ((size_t)16 << 20)

void ingest_base_release(struct ingest_base_walk *b)
{
	manifest_entry_release(&b->stored);
	b->stored = (struct manifest_entry){ .op = MANIFEST_REMOVE };
}

static int advance(struct ingest_base_walk *b, struct incr_error *err)
{
	int r;

	ingest_base_release(b);
	r = b->base->next(b->base->closure, &b->stored, err);
	b->is_at_end = r == 1;
	return r < 0 ? r : 0;
}

int ingest_base_start(struct ingest_base_walk *b,
		      const struct ingest_base *base, struct incr_error *err)
{
	int r = base->rewind(base->closure, err);

	if (r < 0)
		return r;
	b->base = base;
	b->n_changes = 0;
	return advance(b, err);
}

static int compare(const struct manifest_entry *a,
		   const struct manifest_entry *b)
{
	return table_key_compare(a->path, a->path_length, b->path,
				 b->path_length);
}

static int put_removal(struct ingest_base_walk *b, struct buf *out,
		       struct incr_error *err)
{
	const struct manifest_entry gone = { .op = MANIFEST_REMOVE,
					     .path = b->stored.path,
					     .path_length =
						     b->stored.path_length };

	b->n_changes++;
	if (manifest_encode(&gone, out) < 0)
		return incr_fail_nomem(err);
	return advance(b, err);
}

static bool is_same(const struct manifest_entry *a,
		    const struct manifest_entry *b)
{
	return a->mode == b->mode && a->mtime_ns == b->mtime_ns &&
	       !memcmp(a->hash, b->hash, sizeof(a->hash)) &&
	       content_equals(&a->content, &b->content);
}

int ingest_base_put(struct ingest_base_walk *b, const struct manifest_entry *e,
		    struct buf *out, struct incr_error *err)
{
	int order = -1, r = 0;

	while (r == 0 && !b->is_at_end && (order = compare(&b->stored, e)) < 0)
		r = put_removal(b, out, err);
	if (r < 0)
		return r;
	if (!b->is_at_end && order == 0) {
		bool same = is_same(&b->stored, e);

		r = advance(b, err);
		if (r < 0 || same)
			return r;
	}
	b->n_changes++;
	return manifest_encode(e, out) < 0 ? incr_fail_nomem(err) : 0;
}

int ingest_base_finish(struct ingest_base_walk *b, struct buf *out,
		       struct incr_error *err)
{
	int r = 0;

	while (r == 0 && !b->is_at_end && !ingest_base_is_long(b, out))
		r = put_removal(b, out, err);
	return r;
}

bool ingest_base_is_long(const struct ingest_base_walk *b,
			 const struct buf *difference)
{
	return b->n_changes > b->base->max_changes ||
	       difference->size > DIFFERENCE_SIZE_MAX;
}

/* ---- the whole list, of the base and the difference ---- */

/* What the base has before @until, or up to its end, as it is. */
static int keep(struct ingest_base_walk *b, const struct manifest_entry *until,
		ingest_entry_fn put, void *closure, struct incr_error *err)
{
	int r = 0;

	while (r == 0 && !b->is_at_end &&
	       (!until || compare(&b->stored, until) < 0)) {
		r = put(closure, &b->stored, err);
		if (r == 0)
			r = advance(b, err);
	}
	return r;
}

static int merge_entry(struct ingest_base_walk *b,
		       const struct manifest_entry *e, ingest_entry_fn put,
		       void *closure, struct incr_error *err)
{
	int r = keep(b, e, put, closure, err);

	if (r == 0 && !b->is_at_end && compare(&b->stored, e) == 0)
		r = advance(b, err);
	if (r == 0 && e->op == MANIFEST_PUT)
		r = put(closure, e, err);
	return r;
}

int ingest_base_merge(struct ingest_base_walk *b, const struct buf *difference,
		      const struct manifest_entry *last, ingest_entry_fn put,
		      void *closure, struct incr_error *err)
{
	struct cursor c = cursor_over(difference->data, difference->size);
	int r = ingest_base_start(b, b->base, err);

	while (r == 0 && cursor_left(&c)) {
		struct manifest_entry e;

		if (manifest_decode(&c, &e) < 0)
			return incr_fail_nomem(err);
		r = merge_entry(b, &e, put, closure, err);
		manifest_entry_release(&e);
	}
	if (r == 0 && last) {
		r = keep(b, last, put, closure, err);
		/* the same as the base's, or it were in the difference */
		if (r == 0 && !b->is_at_end && compare(&b->stored, last) == 0)
			r = put(closure, &b->stored, err);
	}
	ingest_base_release(b);
	return r;
}
