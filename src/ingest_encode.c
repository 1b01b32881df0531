/*
 * What one worker does with a job: small files are hashed, compared with their
 * stored versions, and what is new is cut into shared frames in path order; a
 * piece of a large file is cut into frames of equal size.
 */
#include "config.h"

#include "ingest_parts.h"

#include "error.h"
#include "hash.h"

#include <stdlib.h>
#include <string.h>

/* A frame that gives less than 1/32 is not worth decompressing. */
#define GAIN_SHIFT 5
/* Less than this is stored as it is: what zstd could win is not its time. */
#define COMPRESS_MIN 128
/* Literals that give less than 1/32 of a frame are not worth their time. */
#define LITERALS_SHIFT 5
/*
 * A larger table of shorter matches than level 1 has.  Frames of small files,
 * which are mostly text, and alike, become 3 % to 8 % smaller, at the same
 * speed.  Where literals are left alone it is faster too.
 */
#define HASH_LOG 16
#define MIN_MATCH 5
#define RAW_SIZE_MIN ((size_t)4 << 10) /* of a job's memory */

/*
 * To compare a small file with one elsewhere means to decode a frame of many.
 * A moved directory needs each frame once.  Where equal files lie scattered
 * that could cost many times what they take to be stored again: so no more is
 * decoded than this at first, and then so many times the bytes that come in.
 */
#define CREDIT_START (UINT64_C(256) << 20)
#define CREDIT_FACTOR 4

int ingest_job_reserve(struct ingest_job *job, size_t size)
{
	size_t want = job->raw_size + size;
	size_t n = job->raw_capacity ? 4 * job->raw_capacity : RAW_SIZE_MIN;
	uint8_t *grown;

	if (job->raw && want <= job->raw_capacity)
		return 0;
	n = want > n ? want : n < INGEST_JOB_SIZE ? n : INGEST_JOB_SIZE;
	grown = realloc(job->raw, n);
	if (!grown)
		return INCR_E_NOMEM;
	job->raw = grown;
	job->raw_capacity = n;
	return 0;
}

void ingest_job_reset(struct ingest_job *job)
{
	for (size_t i = 0; i < job->n_items; i++)
		manifest_entry_release(&job->items[i].entry);
	content_release(&job->prefix);
	job->n_items = 0;
	job->is_large = false;
	job->is_first = false;
	job->is_last = false;
	job->raw_size = 0;
	job->n_frames = 0;
	buf_reset(&job->paths);
	buf_reset(&job->frames);
}

void ingest_job_release(struct ingest_job *job)
{
	ingest_job_reset(job);
	free(job->raw);
	free(job->items);
	buf_release(&job->paths);
	buf_release(&job->frames);
}

struct ingest_item *ingest_job_add(struct ingest_job *job, const char *path,
				   size_t length)
{
	struct ingest_item *item;

	if (job->n_items == job->items_capacity) {
		size_t n = job->items_capacity ? 2 * job->items_capacity : 16;

		item = reallocarray(job->items, n, sizeof(*item));
		if (!item)
			return NULL;
		job->items = item;
		job->items_capacity = n;
	}
	item = &job->items[job->n_items];
	*item = (struct ingest_item){ .path_off = job->paths.size };
	item->entry.path_length = length;
	if (buf_put(&job->paths, path, length) < 0)
		return NULL;

	job->n_items++;
	return item;
}

void ingest_job_set_paths(struct ingest_job *job)
{
	for (size_t i = 0; i < job->n_items; i++)
		job->items[i].entry.path =
			(const char *)job->paths.data + job->items[i].path_off;
}

void ingest_worker_init(struct ingest_worker *w,
			const struct ingest_options *options)
{
	*w = (struct ingest_worker){ .options = options,
				     .credit = CREDIT_START };
}

void ingest_worker_release(struct ingest_worker *w)
{
	compressor_free(w->compressor);
	free(w->stored);
	free(w->places);
}

/*
 * The compressor for frames of a kind; NULL for those that stay raw.  It is made
 * when it is needed: it costs a commit of few bytes a tenth of its time.
 */
static int need_compressor(struct ingest_worker *w, enum ingest_kind kind,
			   struct compressor **out_compressor,
			   struct incr_error *err)
{
	bool has_table = kind != INGEST_LARGE;

	if (kind == INGEST_RAW) {
		*out_compressor = NULL;
		return 0;
	}
	if (!w->compressor)
		w->compressor = compressor_new(INGEST_LEVEL);
	if (!w->compressor)
		return incr_fail_nomem(err);

	if (w->kind != kind) {
		compressor_set_hash(w->compressor, has_table ? HASH_LOG : 0,
				    has_table ? MIN_MATCH : 0);
		compressor_set_literals(w->compressor,
					kind != INGEST_LITERALS_RAW);
	}
	w->kind = kind;
	*out_compressor = w->compressor;
	return 0;
}

/* Whether the stored version has the same bytes.  One that cannot be read is
 * not the same: new data must not depend on damaged old data. */
static int compare_stored(struct ingest_worker *w, const uint8_t *bytes,
			  size_t size, const struct content *stored,
			  bool *out_is_same)
{
	struct incr_error ignored = INCR_ERROR_INIT;
	size_t n = 0;
	int r;

	if (size == 0) {
		*out_is_same = true;
		return 0;
	}
	if (!w->stored)
		w->stored = malloc(INGEST_SMALL_MAX);
	if (!w->stored)
		return INCR_E_NOMEM;

	r = content_read(w->options->reader, stored, 0, w->stored, size, &n,
			 &ignored);
	incr_error_release(&ignored);
	if (r == INCR_E_NOMEM)
		return r;
	*out_is_same = r == 0 && n == size &&
		       memcmp(w->stored, bytes, size) == 0;
	return 0;
}

/* Take the content of @stored for the item if its bytes are the same. */
static int share_stored(struct ingest_worker *w, struct ingest_item *item,
			const uint8_t *bytes, struct manifest_entry *stored)
{
	struct manifest_entry *e = &item->entry;
	bool is_same = false;
	int r = 0;

	if (stored->op == MANIFEST_PUT &&
	    stored->content.size == e->content.size &&
	    memcmp(stored->hash, e->hash, sizeof(e->hash)) == 0)
		r = compare_stored(w, bytes, (size_t)e->content.size,
				   &stored->content, &is_same);
	if (r < 0 || !is_same)
		return r;

	e->content = stored->content;
	stored->content = (struct content){ .kind = CONTENT_EMPTY };
	item->is_done = true;
	item->is_dropped = w->options->drops_unchanged &&
			   stored->mode == e->mode;
	return 0;
}

/* The same with a file of another path that this commit has stored. */
static int share_seen(struct ingest_worker *w, struct ingest_item *item,
		      const uint8_t *bytes)
{
	struct manifest_entry *e = &item->entry;
	struct content c;
	int r;

	if (!w->options->reader || e->content.size < CONTENT_SHARE_MIN ||
	    !ingest_seen_find(w->options->seen, e, &c))
		return 0;
	r = compare_stored(w, bytes, (size_t)c.size, &c, &item->is_done);
	if (r == 0 && item->is_done)
		e->content = c;
	return r;
}

static bool can_afford(struct ingest_worker *w, const struct content *c)
{
	if (c->container == w->last_container && c->frame_off == w->last_off)
		return true;
	if (w->credit < c->frame_raw)
		return false;

	w->credit -= c->frame_raw;
	w->last_container = c->container;
	w->last_off = c->frame_off;
	return true;
}

/* The same with one that some transaction has put somewhere. */
static int share_elsewhere(struct ingest_worker *w, struct ingest_item *item,
			   const uint8_t *bytes, struct incr_error *err)
{
	const struct ingest_options *o = w->options;
	struct manifest_entry *e = &item->entry;
	uint64_t size = e->content.size;
	struct content c;
	int r;

	if (!o->find_content || size < CONTENT_SHARE_MIN)
		return 0;
	r = o->find_content(o->content_closure, e->hash, 0, size, &c, err);
	if (r)
		return r < 0 ? r : 0;

	/* a large one is not equal, and would cost more */
	if (c.kind == CONTENT_PART && can_afford(w, &c) &&
	    compare_stored(w, bytes, (size_t)size, &c, &item->is_done) < 0)
		r = incr_fail_nomem(err);
	if (item->is_done)
		e->content = c;
	else
		content_release(&c);
	return r;
}

static int prepare_item(struct ingest_worker *w, struct ingest_job *job,
			struct ingest_item *item, struct incr_error *err)
{
	const struct ingest_options *o = w->options;
	struct manifest_entry *e = &item->entry;
	const uint8_t *bytes;
	struct manifest_entry stored = { .op = MANIFEST_REMOVE };
	int r;

	if (item->is_done)
		return 0;

	bytes = job->raw + item->raw_off;
	hash128(bytes, (size_t)e->content.size, e->hash);
	r = o->find_stored ? o->find_stored(o->closure, e->path, e->path_length,
					    &stored, err) :
			     1;
	if (r < 0)
		return r;
	if (r == 0) {
		r = share_stored(w, item, bytes, &stored);
		manifest_entry_release(&stored);
	} else {
		r = 0;
	}
	if (r == 0 && !item->is_done)
		r = share_seen(w, item, bytes);
	if (r < 0)
		return incr_fail_nomem(err);
	return item->is_done ? 0 : share_elsewhere(w, item, bytes, err);
}

/* Encode one frame. */
static int put_frame(struct ingest_worker *w, struct ingest_job *job,
		     enum ingest_kind kind, const uint8_t *raw, size_t raw_size,
		     struct incr_error *err)
{
	size_t before = job->frames.size;
	struct compressor *c = NULL;
	int r = need_compressor(w, raw_size < COMPRESS_MIN ? INGEST_RAW : kind,
				&c, err);

	if (r < 0)
		return r;

	r = frame_encode(c, raw, (uint32_t)raw_size, job->container,
			 &job->frames);
	if (r < 0)
		return incr_fail_nomem(err);

	job->frame_sizes[job->n_frames++] =
		(uint32_t)(job->frames.size - before);
	return 0;
}

/* The items @first..@end share the raw bytes @raw_off..: one frame. */
static int close_frame(struct ingest_worker *w, struct ingest_job *job,
		       size_t first, size_t end, size_t raw_size,
		       struct incr_error *err)
{
	size_t frame_off = job->frames.size;
	size_t raw_off = 0;
	bool is_first = true;
	int r;

	for (size_t i = first; i < end && is_first; i++) {
		if (job->items[i].is_done || !job->items[i].entry.content.size)
			continue;
		raw_off = job->items[i].raw_off;
		is_first = false;
	}
	if (is_first)
		return 0;

	r = put_frame(w, job, INGEST_SHARED, job->raw + raw_off, raw_size, err);
	if (r < 0)
		return r;

	for (size_t i = first; i < end; i++) {
		struct ingest_item *item = &job->items[i];
		struct content *c = &item->entry.content;

		if (item->is_done || !c->size)
			continue;
		c->kind = CONTENT_PART;
		c->container = job->container;
		c->frame_off = frame_off;
		c->frame_stored = job->frame_sizes[job->n_frames - 1];
		c->frame_raw = (uint32_t)raw_size;
		c->part_off = (uint32_t)(item->raw_off - raw_off);
	}
	return 0;
}

/* Bytes of items that are stored already leave no gap in the frames. */
static void close_gaps(struct ingest_job *job)
{
	size_t to = 0;

	for (size_t i = 0; i < job->n_items; i++) {
		struct ingest_item *item = &job->items[i];
		size_t size = (size_t)item->entry.content.size;

		if (item->is_done)
			continue;
		if (to != item->raw_off)
			memmove(job->raw + to, job->raw + item->raw_off, size);
		item->raw_off = (uint32_t)to;
		to += size;
	}
}

/* A frame ends behind this size: so all of a job's have about the same. */
static size_t choose_frame_size(const struct ingest_job *job)
{
	size_t size = 0, n;

	for (size_t i = 0; i < job->n_items; i++)
		if (!job->items[i].is_done)
			size += (size_t)job->items[i].entry.content.size;
	n = (size + INGEST_SHARED_FRAME - 1) / INGEST_SHARED_FRAME;
	return n ? (size + n - 1) / n : 1;
}

static int encode_small(struct ingest_worker *w, struct ingest_job *job,
			struct incr_error *err)
{
	size_t first = 0, raw_size = 0, frame_size;
	int r = 0;

	w->credit += CREDIT_FACTOR * (uint64_t)job->raw_size;
	for (size_t i = 0; i < job->n_items && r == 0; i++)
		r = prepare_item(w, job, &job->items[i], err);
	if (r == 0 && ingest_same_find(w, job) < 0)
		r = incr_fail_nomem(err);
	if (r < 0)
		return r;

	close_gaps(job);
	frame_size = choose_frame_size(job);
	for (size_t i = 0; i < job->n_items; i++) {
		const struct ingest_item *item = &job->items[i];
		size_t size = (size_t)item->entry.content.size;

		if (item->is_done)
			continue;
		if (raw_size >= frame_size) {
			r = close_frame(w, job, first, i, raw_size, err);
			if (r < 0)
				return r;
			first = i;
			raw_size = 0;
		}
		raw_size += size;
	}
	r = close_frame(w, job, first, job->n_items, raw_size, err);
	ingest_same_fill(job);
	return r;
}

/*
 * What the first frame of a piece says of all of it: whether to compress at
 * all, and whether literals, which take a third of the time, gain anything.
 */
static enum ingest_kind judge_first(const struct ingest_job *job,
				    size_t raw_size)
{
	size_t size = job->frame_sizes[0];

	if (size > raw_size - (raw_size >> GAIN_SHIFT))
		return INGEST_RAW;
	return codec_literal_gain(job->frames.data + FRAME_HEADER_SIZE,
				  size - FRAME_HEADER_SIZE) < raw_size >>
			       LITERALS_SHIFT ?
		       INGEST_LITERALS_RAW :
		       INGEST_LARGE;
}

static int encode_large(struct ingest_worker *w, struct ingest_job *job,
			struct incr_error *err)
{
	enum ingest_kind kind = INGEST_LARGE;

	for (size_t off = 0; off < job->raw_size; off += FRAME_RAW_DEFAULT) {
		size_t size = job->raw_size - off;
		int r;

		if (size > FRAME_RAW_DEFAULT)
			size = FRAME_RAW_DEFAULT;
		r = put_frame(w, job, kind, job->raw + off, size, err);
		if (r < 0)
			return r;
		if (off == 0)
			kind = judge_first(job, size);
	}
	return 0;
}

int ingest_encode(struct ingest_worker *w, struct ingest_job *job,
		  uint64_t container, struct incr_error *err)
{
	/* In the log, frames say PACK_LOG and descriptors PACK_SELF. */
	job->container = container;
	if (buf_reserve(&job->frames,
			job->raw_size + job->raw_size / 64 + 1024) < 0)
		return incr_fail_nomem(err);

	ingest_job_set_paths(job);
	return job->is_large ? encode_large(w, job, err) :
			       encode_small(w, job, err);
}
