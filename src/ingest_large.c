/*
 * A large file, or a stream of unknown size, into jobs of whole frames.
 *
 * While it equals the stored version of its path, frame by frame, nothing is
 * written: those frames are shared.  From the first difference on it is cut
 * into jobs that workers compress.
 */
#include "config.h"

#include "ingest_parts.h"

#include "error.h"
#include "hash.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_FIRST ((size_t)4 << 10) /* bytes that are asked for first */

struct large {
	struct ingest_reader *r; /* borrowed */
	const struct ingest_source *source; /* borrowed */
	uint64_t off; /* bytes read so far */
	bool is_at_end; /* and those are all */
	uint64_t front_hash; /* of the first frame */
	bool has_stored;
	bool is_elsewhere; /* that is no version of this path */
	struct manifest_entry stored; /* owned; the version to compare with */
	uint64_t n_shared; /* frames at the front that are equal */
};

static int prepare_buffers(struct ingest_reader *r, struct incr_error *err)
{
	if (!r->hasher)
		r->hasher = hasher_new();
	if (!r->hasher)
		return incr_fail_nomem(err);

	hasher_reset(r->hasher);
	return 0;
}

/* The next @want bytes of the file, unless it ends. */
static int read_bytes(struct large *l, uint8_t *data, size_t want,
		      size_t *out_n, struct incr_error *err)
{
	const struct ingest_source *source = l->source;
	size_t n;
	int r;

	if (!source->is_stream && want > source->st.size - l->off)
		want = (size_t)(source->st.size - l->off);
	r = ingest_source_read(l->r, source, l->off, data, want, &n, err);
	if (r < 0)
		return r;

	hasher_update(l->r->hasher, data, n);
	l->off += n;
	l->is_at_end = source->is_stream ?
			       n < want :
			       l->off == source->st.size || n < want;
	*out_n = n;
	if (!l->is_at_end)
		return 0;

	/* Also tells of a file that ended before its size. */
	return ingest_source_check(l->r, source, err);
}

static int read_piece(struct large *l, uint8_t *data, size_t *out_n,
		      struct incr_error *err)
{
	return read_bytes(l, data, INGEST_JOB_SIZE, out_n, err);
}

/* The first piece; of a stream, which tells no size, in growing memory. */
static int read_front(struct large *l, struct incr_error *err)
{
	struct buf *mine = &l->r->mine;
	size_t want = l->source->is_stream ? STREAM_FIRST : INGEST_JOB_SIZE, n;

	buf_reset(mine);
	while (!l->is_at_end && mine->size < INGEST_JOB_SIZE) {
		int r;

		if (buf_reserve(mine, want - mine->size) < 0)
			return incr_fail_nomem(err);
		r = read_bytes(l, mine->data + mine->size, want - mine->size,
			       &n, err);
		if (r < 0)
			return r;
		mine->size += n;
		want = want < INGEST_JOB_SIZE / 16 ? 16 * want :
						     INGEST_JOB_SIZE;
	}
	return 0;
}

/* A file of the same size and beginning, at whatever path: 0, or 1. */
static int find_elsewhere(struct large *l, struct content *out,
			  struct incr_error *err)
{
	const struct ingest_options *o = l->r->options;
	uint64_t size = l->source->st.size;

	if (l->source->is_stream || !o->reader)
		return 1;
	if (ingest_seen_find_large(o->seen, l->front_hash, size, out))
		return 0;
	return o->find_content ?
		       o->find_content(o->content_closure, NULL, l->front_hash,
				       size, out, err) :
		       1;
}

/* Does the version of this path look like the same bytes? */
static bool is_likely(const struct large *l)
{
	const struct content *c = &l->stored.content;

	return c->size == l->source->st.size &&
	       (!c->front || c->front == l->front_hash);
}

static int find_stored(struct large *l, struct incr_error *err)
{
	const struct ingest_options *o = l->r->options;
	const struct content *c = &l->stored.content;
	struct content other;
	int r = 1;

	if (o->find_stored)
		r = o->find_stored(o->closure, l->source->e->path,
				   l->source->e->path_length, &l->stored, err);
	if (r < 0)
		return r;
	if (r == 1 || !is_likely(l)) {
		r = find_elsewhere(l, &other, err);
		if (r < 0)
			return r;
		if (r == 0) {
			content_release(&l->stored.content);
			l->stored.op = MANIFEST_PUT;
			l->stored.content = other;
			l->is_elsewhere = true;
		}
	}

	l->has_stored = l->stored.op == MANIFEST_PUT &&
			c->kind == CONTENT_EXTENTS &&
			c->frame_size == FRAME_RAW_DEFAULT &&
			c->n_extents <= INGEST_SHARED_EXTENTS_MAX;
	if (l->has_stored && !l->r->theirs)
		l->r->theirs = malloc(INGEST_JOB_SIZE);
	if (l->has_stored && !l->r->theirs)
		return incr_fail_nomem(err);
	return 0;
}

/* Bytes at the front of the piece that are whole frames of the stored version. */
static int count_equal(struct large *l, size_t n, size_t *out_equal,
		       struct incr_error *err)
{
	const struct content *c = &l->stored.content;
	struct incr_error ignored = INCR_ERROR_INIT;
	uint64_t off = l->off - n;
	size_t m = 0, at = 0;
	int r;

	r = content_read(l->r->options->reader, c, off, l->r->theirs,
			 INGEST_JOB_SIZE, &m, &ignored);
	incr_error_release(&ignored);
	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0)
		m = 0; /* new data must not depend on damaged old data */

	while (at < n) {
		size_t size = n - at < FRAME_RAW_DEFAULT ? n - at :
							   FRAME_RAW_DEFAULT;
		size_t stored_size =
			m - at < FRAME_RAW_DEFAULT ? m - at : FRAME_RAW_DEFAULT;

		if (at >= m || size != stored_size ||
		    memcmp(l->r->mine.data + at, l->r->theirs + at, size) != 0)
			break;
		at += size;
		l->n_shared++;
	}
	*out_equal = at;
	return 0;
}

/* All of the file is stored already. */
static int add_shared(struct large *l, struct incr_error *err)
{
	const struct ingest_options *o = l->r->options;
	struct ingest_item *item;
	int r = ingest_reader_item(l->r, l->source, 0, &item, err);

	if (r < 0)
		return r;

	if (content_prefix(&l->stored.content, l->n_shared, l->off,
			   &item->entry.content) < 0)
		return incr_fail_nomem(err);

	hasher_digest(l->r->hasher, item->entry.hash);
	item->is_done = true;
	item->is_dropped = o->drops_unchanged && !l->is_elsewhere &&
			   l->off == l->stored.content.size &&
			   item->entry.mode == l->stored.mode;
	return 0;
}

/* A stream that turned out to be small. */
static int add_small(struct large *l, size_t n, struct incr_error *err)
{
	struct ingest_item *item;
	int r = ingest_reader_item(l->r, l->source, n, &item, err);

	if (r < 0)
		return r;

	memcpy(l->r->job->raw + item->raw_off, l->r->mine.data, n);
	item->entry.content.size = n;
	l->r->job->raw_size += n;
	return 0;
}

/* Fill in the item of the last piece. */
static int end_file(struct large *l, struct incr_error *err)
{
	struct ingest_item *item;
	int r = ingest_reader_item(l->r, l->source, 0, &item, err);

	if (r < 0)
		return r;

	item->entry.content.size = l->off;
	item->is_done = true;
	item->front_hash = l->front_hash;
	hasher_digest(l->r->hasher, item->entry.hash);
	l->r->job->is_last = true;
	return 0;
}

/* One job of frames; the first @kept bytes are those at the end of @mine. */
static int add_piece(struct large *l, bool is_first, const uint8_t *kept,
		     size_t n_kept, struct incr_error *err)
{
	struct ingest_job *job = ingest_pipe_take(l->r->pipe);
	size_t room = kept ? n_kept : INGEST_JOB_SIZE;
	int r = 0;

	if (!job)
		return INGEST_STOPPED;

	l->r->job = job;
	job->is_large = true;
	job->is_first = is_first;
	if (ingest_job_reserve(job, room) < 0)
		return incr_fail_nomem(err);
	if (is_first && l->n_shared > 0 &&
	    content_prefix(&l->stored.content, l->n_shared,
			   l->n_shared * FRAME_RAW_DEFAULT, &job->prefix) < 0)
		return incr_fail_nomem(err);

	if (kept) {
		memcpy(job->raw, kept, n_kept);
		job->raw_size = n_kept;
	} else {
		r = read_piece(l, job->raw, &job->raw_size, err);
	}
	if (r == 0 && l->is_at_end)
		r = end_file(l, err);
	return r < 0 ? r : ingest_reader_flush(l->r);
}

/* From the first difference on: @n bytes at @bytes were read already. */
static int add_pieces(struct large *l, const uint8_t *bytes, size_t n,
		      struct incr_error *err)
{
	int r = ingest_reader_flush(l->r);

	if (r == 0)
		r = add_piece(l, true, bytes, n, err);
	while (r == 0 && !l->is_at_end)
		r = add_piece(l, false, NULL, 0, err);
	return r;
}

static int add(struct large *l, struct incr_error *err)
{
	uint8_t *mine;
	size_t n, n_equal;
	int r = read_front(l, err);

	if (r < 0)
		return r;
	mine = l->r->mine.data;
	n = l->r->mine.size;
	if (l->is_at_end && n <= INGEST_SMALL_MAX)
		return add_small(l, n, err);

	l->front_hash =
		hash64(mine, n < FRAME_RAW_DEFAULT ? n : FRAME_RAW_DEFAULT);
	r = find_stored(l, err);
	while (r == 0) {
		n_equal = 0;
		if (l->has_stored)
			r = count_equal(l, n, &n_equal, err);
		if (r < 0)
			break;
		if (n_equal < n)
			return add_pieces(l, mine + n_equal, n - n_equal, err);
		if (l->is_at_end)
			return add_shared(l, err);
		r = read_piece(l, mine, &n, err);
	}
	return r;
}

int ingest_reader_add_large(struct ingest_reader *r,
			    const struct ingest_source *source,
			    struct incr_error *err)
{
	struct large l = { .r = r, .source = source };
	int result = prepare_buffers(r, err);

	if (result == 0)
		result = add(&l, err);
	manifest_entry_release(&l.stored);
	return result;
}
