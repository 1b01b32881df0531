/*
 * What comes out of the pipeline, in path order.  It stays in memory while it
 * is small enough for a log record; the pack is made when a limit is passed,
 * and what was kept so far moves into it.
 */
#include "config.h"

#include "ingest_parts.h"

#include "bytes.h"
#include "error.h"

#include <string.h>

#define MANIFEST_INLINE_MAX ((size_t)64 << 10)
#define MANIFEST_FRAME FRAME_RAW_DEFAULT

/* Nobody reads what the pack holds from here on. */
static void detach_pack(struct ingest_sink *s)
{
	if (s->options->reader)
		pack_set_detach(content_reader_packs(s->options->reader),
				s->pack);
}

void ingest_sink_release(struct ingest_sink *s)
{
	detach_pack(s);
	pack_writer_discard(s->pack);
	s->pack = NULL;
	compressor_free(s->compressor);
	s->compressor = NULL;
	buf_release(&s->frames);
	buf_release(&s->manifest);
	ingest_base_release(&s->base);
	ingest_index_release(&s->manifest_index);
	ingest_index_release(&s->file_index);
}

int ingest_sink_start(struct ingest_sink *s, struct incr_error *err)
{
	const struct ingest_base *base = s->options->base;

	return base ? ingest_base_start(&s->base, base, err) : 0;
}

uint64_t ingest_sink_container(const struct ingest_sink *s)
{
	return s->pack ? pack_writer_id(s->pack) : PACK_LOG;
}

/* Frames that were made before the pack had a name. */
static void rebind(uint8_t *frames, size_t size, uint64_t container)
{
	size_t at = 0;

	while (at < size) {
		frame_rebind(frames + at, container);
		at += FRAME_HEADER_SIZE + get_u32(frames + at + 12);
	}
}

/* The entries so far, which point into this record, now point into the pack. */
static int move_manifest(struct ingest_sink *s, uint64_t frames_off)
{
	_cleanup_buf_ struct buf moved = BUF_INIT;
	struct cursor c = cursor_over(s->manifest.data, s->manifest.size);

	while (cursor_left(&c) > 0) {
		struct manifest_entry e;
		int r = manifest_decode(&c, &e);

		if (r < 0)
			return r;
		if (e.content.kind == CONTENT_PART &&
		    e.content.container == PACK_SELF) {
			e.content.container = pack_writer_id(s->pack);
			e.content.frame_off += frames_off;
		}
		r = manifest_encode(&e, &moved);
		manifest_entry_release(&e);
		if (r < 0)
			return r;
	}
	buf_release(&s->manifest);
	buf_move(&s->manifest, &moved);
	return 0;
}

static int open_pack(struct ingest_sink *s, struct incr_error *err)
{
	const struct ingest_options *o = s->options;
	uint64_t off = 0;
	int r;

	if (s->pack)
		return 0;

	s->compressor = compressor_new(INGEST_LEVEL);
	if (!s->compressor)
		return incr_fail_nomem(err);

	r = pack_writer_open(o->io, o->store_dirfd, o->uuid, &s->pack, err);
	if (r < 0)
		return r;
	if (o->reader)
		pack_set_attach(content_reader_packs(o->reader), s->pack);

	if (s->frames.size > 0) {
		rebind(s->frames.data, s->frames.size, pack_writer_id(s->pack));
		r = pack_writer_put(s->pack, s->frames.data, s->frames.size,
				    &off, err);
		if (r < 0)
			return r;
		buf_release(&s->frames);
		s->inline_off = off;
	}
	r = move_manifest(s, off);
	return r < 0 ? incr_fail_nomem(err) : 0;
}

/* Take the frames of a job; *out_base: where the first one stands. */
static int put_frames(struct ingest_sink *s, struct ingest_job *job,
		      uint64_t *out_base, struct incr_error *err)
{
	size_t size = job->frames.size;
	int r;

	*out_base = 0;
	if (size == 0)
		return 0;

	if (job->is_large || s->frames.size + size > INGEST_INLINE_MAX) {
		r = open_pack(s, err);
		if (r < 0)
			return r;
	}
	if (job->container != ingest_sink_container(s))
		rebind(job->frames.data, size, ingest_sink_container(s));
	if (s->pack)
		return pack_writer_put(s->pack, job->frames.data, size,
				       out_base, err);

	*out_base = s->frames.size;
	if (buf_put(&s->frames, job->frames.data, size) < 0)
		return incr_fail_nomem(err);
	return 0;
}

/* Whole frames of the manifest go to the pack; with is_end the rest too. */
static int drain_manifest(struct ingest_sink *s, bool is_end,
			  struct incr_error *err)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (s->manifest.size - at >= MANIFEST_FRAME ||
			  (is_end && s->manifest.size > at))) {
		size_t size = s->manifest.size - at;
		uint64_t off;

		if (size > MANIFEST_FRAME)
			size = MANIFEST_FRAME;
		buf_reset(&frame);
		r = frame_encode(s->compressor, s->manifest.data + at,
				 (uint32_t)size, pack_writer_id(s->pack),
				 &frame);
		if (r < 0)
			return incr_fail_nomem(err);

		at += size;
		r = pack_writer_put(s->pack, frame.data, frame.size, &off, err);
		if (r == 0)
			r = ingest_index_add(&s->manifest_index, s->pack, off,
					     (uint32_t)frame.size, err);
	}
	if (r < 0)
		return r;

	if (at > 0 && at < s->manifest.size)
		memmove(s->manifest.data, s->manifest.data + at,
			s->manifest.size - at);
	s->manifest.size -= at;
	s->manifest_size += at;
	return 0;
}

/* What the manifest holds goes to the pack when it has become much. */
static int settle_manifest(struct ingest_sink *s, struct incr_error *err)
{
	int r;

	if (!s->pack && s->manifest.size > MANIFEST_INLINE_MAX) {
		r = open_pack(s, err);
		if (r < 0)
			return r;
	}
	if (s->pack && s->manifest.size >= MANIFEST_FRAME)
		return drain_manifest(s, false, err);
	return 0;
}

static int write_entry(void *closure, const struct manifest_entry *e,
		       struct incr_error *err)
{
	struct ingest_sink *s = closure;

	if (manifest_encode(e, &s->manifest) < 0)
		return incr_fail_nomem(err);
	return settle_manifest(s, err);
}

/* Of the difference, whose frames were perhaps moved into a pack meanwhile. */
static int write_merged(void *closure, const struct manifest_entry *e,
			struct incr_error *err)
{
	struct ingest_sink *s = closure;
	struct manifest_entry moved = *e;

	if (s->pack && e->content.kind == CONTENT_PART &&
	    e->content.container == PACK_SELF) {
		moved.content.container = pack_writer_id(s->pack);
		moved.content.frame_off += s->inline_off;
	}
	return write_entry(s, &moved, err);
}

/* The difference is too long: go on with the whole manifest. */
static int leave_base(struct ingest_sink *s, const struct manifest_entry *last,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf difference = BUF_INIT;
	int r;

	buf_move(&difference, &s->manifest);
	r = ingest_base_merge(&s->base, &difference, last, write_merged, s,
			      err);
	s->base.base = NULL;
	return r;
}

static int put_changed(struct ingest_sink *s, const struct manifest_entry *e,
		       struct incr_error *err)
{
	int r = ingest_base_put(&s->base, e, &s->manifest, err);

	if (r < 0 || !ingest_base_is_long(&s->base, &s->manifest))
		return r;
	return leave_base(s, e, err);
}

static int put_entry(struct ingest_sink *s, const struct manifest_entry *e,
		     struct incr_error *err)
{
	if (e->op == MANIFEST_PUT) {
		s->n_put++;
		s->size += e->content.size;
	} else {
		s->n_removed++;
	}
	return s->base.base ? put_changed(s, e, err) : write_entry(s, e, err);
}

static int take_small(struct ingest_sink *s, struct ingest_job *job,
		      struct incr_error *err)
{
	uint64_t base;
	int r = put_frames(s, job, &base, err);
	bool was_inline = !s->pack;

	if (r < 0)
		return r;

	for (size_t i = 0; i < job->n_items; i++) {
		struct ingest_item *item = &job->items[i];
		struct content *c = &item->entry.content;

		s->n_done++;
		s->size_done += c->size;
		if (item->is_dropped)
			continue;
		if (!item->is_done && c->kind == CONTENT_PART) {
			c->container = s->pack ? pack_writer_id(s->pack) :
						 PACK_SELF;
			c->frame_off += base;
			/* An entry before this one may have made the pack. */
			if (was_inline && s->pack)
				c->frame_off += s->inline_off;
		}
		if (s->pack && c->kind == CONTENT_PART &&
		    c->container == pack_writer_id(s->pack) &&
		    c->size >= CONTENT_SHARE_MIN)
			ingest_seen_add(s->options->seen, &item->entry);
		r = put_entry(s, &item->entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_large(struct ingest_sink *s, struct ingest_job *job,
		      struct incr_error *err)
{
	uint64_t off;
	int r;

	if (job->is_first) {
		content_release(&s->file_index.content);
		s->file_index.content = job->prefix;
		job->prefix = (struct content){ .kind = CONTENT_EMPTY };
	}
	r = put_frames(s, job, &off, err);
	for (size_t i = 0; i < job->n_frames && r == 0; i++) {
		r = ingest_index_add(&s->file_index, s->pack, off,
				     job->frame_sizes[i], err);
		off += job->frame_sizes[i];
	}
	s->size_done += job->raw_size;
	if (r < 0 || !job->is_last)
		return r;

	s->n_done++;
	r = ingest_index_finish(&s->file_index, s->pack,
				job->items[0].entry.content.size,
				&job->items[0].entry.content, err);
	if (r < 0)
		return r;
	job->items[0].entry.content.front = job->items[0].front_hash;
	ingest_seen_add_large(s->options->seen, job->items[0].front_hash,
			      &job->items[0].entry.content);
	return put_entry(s, &job->items[0].entry, err);
}

int ingest_sink_take(struct ingest_sink *s, struct ingest_job *job,
		     struct incr_error *err)
{
	return job->is_large ? take_large(s, job, err) :
			       take_small(s, job, err);
}

static int finish_pack(struct ingest_sink *s, struct ingest_result *result,
		       struct incr_error *err)
{
	int r = drain_manifest(s, true, err);

	if (r == 0)
		r = ingest_index_finish(&s->manifest_index, s->pack,
					s->manifest_size,
					&result->manifest_content, err);
	detach_pack(s);
	if (r == 0)
		r = pack_writer_finish(s->pack, &result->pack_size, err);
	if (r < 0) {
		content_release(&result->manifest_content);
		return r;
	}
	result->pack_id = pack_writer_id(s->pack);
	pack_writer_take_claim(s->pack, &result->pack_claim);
	pack_writer_free(s->pack);
	s->pack = NULL;
	return 0;
}

/* What is left of the view that the manifest is relative to. */
static int finish_base(struct ingest_sink *s, struct incr_error *err)
{
	int r = ingest_base_finish(&s->base, &s->manifest, err);

	if (r < 0)
		return r;
	if (ingest_base_is_long(&s->base, &s->manifest))
		return leave_base(s, NULL, err);
	return settle_manifest(s, err);
}

int ingest_sink_finish(struct ingest_sink *s, struct ingest_result *out_result,
		       struct incr_error *err)
{
	int r = s->base.base ? finish_base(s, err) : 0;
	struct ingest_result result = {
		.n_put = s->n_put,
		.n_removed = s->n_removed,
		.size = s->size,
		.relative_to = s->base.base ? s->base.base->txn : 0,
		.is_inline = !s->pack,
	};

	if (r < 0)
		return r;
	if (s->pack) {
		r = finish_pack(s, &result, err);
		if (r < 0)
			return r;
	} else {
		buf_move(&result.manifest, &s->manifest);
		buf_move(&result.inline_frames, &s->frames);
	}
	*out_result = result;
	return 0;
}
