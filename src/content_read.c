/*
 * Reading content.  Frames of which only a part is wanted go through the
 * cache.  Frames that a read covers wholly are decoded straight into the
 * caller's memory: several that stand back to back are fetched with one read,
 * and a long sequential read does not push everything else out of the cache.
 */
#include "config.h"

#include "content_load.h"

#include "bytes.h"
#include "error.h"

#include <string.h>

#define RUN_SIZE_MAX ((size_t)1 << 20) /* bytes fetched with one read */
#define INDEX_ENTRY_SIZE 16

/* ---- the frames of CONTENT_EXTENTS, one after the other ---- */

struct walk {
	struct content_reader *r;
	const struct content *c;
	uint64_t frame_no; /* of the file */
	size_t extent; /* that holds it */
	uint64_t in_extent; /* frames of that extent before it */
	const struct frame *index; /* held; NULL: none */
	uint64_t index_first; /* entry number of its first entry */
};

static void walk_release(struct walk *w)
{
	if (w->index)
		content_frame_put(w->r, w->index);
	w->index = NULL;
}

static void walk_skip(struct walk *w, uint64_t n_frames)
{
	w->frame_no += n_frames;
	w->in_extent += n_frames;
	while (w->extent < w->c->n_extents &&
	       w->in_extent >= w->c->extents[w->extent].n_frames) {
		w->in_extent -= w->c->extents[w->extent].n_frames;
		w->extent++;
		walk_release(w);
	}
}

/* Hold the index frame of entry @entry of the current extent. */
static int load_index(struct walk *w, uint64_t entry, struct incr_error *err)
{
	const struct content_extent *e = &w->c->extents[w->extent];
	uint64_t first = entry - entry % CONTENT_INDEX_ENTRIES;
	uint64_t n = e->index_n - first;
	uint64_t off = e->index_off +
		       entry / CONTENT_INDEX_ENTRIES *
			       (FRAME_HEADER_SIZE +
				CONTENT_INDEX_ENTRIES * INDEX_ENTRY_SIZE);
	uint32_t raw_size;
	int r;

	if (w->index && w->index_first == first)
		return 0;

	walk_release(w);
	if (n > CONTENT_INDEX_ENTRIES)
		n = CONTENT_INDEX_ENTRIES;
	raw_size = (uint32_t)n * INDEX_ENTRY_SIZE;
	r = content_frame_get(w->r, e->container, off,
			      FRAME_HEADER_SIZE + raw_size, raw_size, &w->index,
			      err);
	if (r < 0)
		return r;

	w->index_first = first;
	return 0;
}

/* Where the current frame stands. */
static int walk_place(struct walk *w, struct frame_key *out_key,
		      struct incr_error *err)
{
	const struct content *c = w->c;
	uint64_t entry, left = c->size - w->frame_no * c->frame_size, end;
	struct frame_key key = { .raw_size = c->frame_size };
	const uint8_t *at;
	int r;

	if (w->extent >= c->n_extents)
		return incr_fail(err, INCR_E_CORRUPT, "damaged-frame", NULL,
				 "a file has fewer frames than bytes");

	entry = c->extents[w->extent].first + w->in_extent;
	r = load_index(w, entry, err);
	if (r < 0)
		return r;

	at = w->index->data + (entry - w->index_first) * INDEX_ENTRY_SIZE;
	key.container = c->extents[w->extent].container;
	key.off = get_u64(at);
	key.stored_size = get_u32(at + 8);
	if (left < key.raw_size)
		key.raw_size = (uint32_t)left;
	if (get_u32(at + 12) != 0 || key.stored_size <= FRAME_HEADER_SIZE ||
	    key.stored_size > FRAME_HEADER_SIZE + key.raw_size ||
	    !add_ok(key.off, (uint64_t)key.stored_size, &end))
		return content_fail_frame(err, key.container, key.off);

	*out_key = key;
	return 0;
}

/*
 * At most @n_most frames from the current one on that lie wholly in the next
 * @size bytes, back to back in their pack: into @keys.  *out_n is 0 when the
 * current one does not.
 */
static int gather_run(struct walk *w, size_t size, uint64_t n_most,
		      struct frame_key *keys, size_t *out_n,
		      struct incr_error *err)
{
	size_t n = 0, stored = 0;
	uint64_t next_off = 0;

	if (n_most > RUN_FRAMES_MAX)
		n_most = RUN_FRAMES_MAX;
	while (size > 0 && n < n_most) {
		struct frame_key key = { 0 };
		int r = walk_place(w, &key, err);

		if (r < 0)
			return r;
		if (key.raw_size > size)
			break;
		if (n > 0 && (key.container != keys[0].container ||
			      key.off != next_off ||
			      stored + key.stored_size > RUN_SIZE_MAX))
			break;

		next_off = key.off + key.stored_size;
		stored += key.stored_size;
		size -= key.raw_size;
		keys[n++] = key;
		walk_skip(w, 1);
	}
	*out_n = n;
	return 0;
}

/* Whole frames at @out; *out_size: how many bytes, 0 when none fits in @size. */
static int read_run(struct walk *w, uint8_t *out, size_t size, size_t *out_size,
		    struct incr_error *err)
{
	struct frame_key keys[RUN_FRAMES_MAX];
	size_t n, done = 0, first = 0;
	int r = gather_run(w, size, RUN_FRAMES_MAX, keys, &n, err);

	while (r == 0 && first < n) {
		size_t n_absent;

		/* Those that a partial read or reading ahead brought in. */
		if (content_copy_cached(w->r, &keys[first], out + done)) {
			done += keys[first++].raw_size;
			continue;
		}
		n_absent = content_count_absent(w->r, keys, first, n);
		if (n_absent == 0)
			n_absent = 1; /* it came meanwhile */
		r = content_load_run(w->r, keys + first, n_absent, out + done,
				     err);
		for (; n_absent > 0; n_absent--)
			done += keys[first++].raw_size;
	}
	*out_size = done;
	return r;
}

/* Up to @size bytes of the current frame from byte @from on. */
static int read_piece(struct walk *w, uint32_t from, uint8_t *out, size_t size,
		      size_t *out_size, struct incr_error *err)
{
	const struct frame *frame;
	struct frame_key key;
	int r = walk_place(w, &key, err);

	if (r < 0)
		return r;

	r = content_get_frame(w->r, &key, &frame, err);
	if (r < 0)
		return r;

	if (size > key.raw_size - from)
		size = key.raw_size - from;
	memcpy(out, frame->data + from, size);
	content_frame_put(w->r, frame);
	walk_skip(w, 1);
	*out_size = size;
	return 0;
}

static int read_extents(struct walk *w, uint64_t off, uint8_t *out, size_t size,
			struct incr_error *err)
{
	uint32_t from = (uint32_t)(off % w->c->frame_size);
	size_t n = 0;
	int r = 0;

	walk_skip(w, off / w->c->frame_size);
	while (size > 0 && r == 0) {
		n = 0;
		if (from == 0)
			r = read_run(w, out, size, &n, err);
		if (r == 0 && n == 0)
			r = read_piece(w, from, out, size, &n, err);
		from = 0;
		out += n;
		size -= n;
	}
	return r;
}

static int read_part(struct content_reader *r, const struct content *c,
		     uint64_t off, void *out, size_t size,
		     struct incr_error *err)
{
	const struct frame *frame;
	int result;

	result = content_frame_get(r, c->container, c->frame_off,
				   c->frame_stored, c->frame_raw, &frame, err);
	if (result < 0)
		return result;

	memcpy(out, frame->data + c->part_off + off, size);
	content_frame_put(r, frame);
	return 0;
}

int content_read(struct content_reader *r, const struct content *c,
		 uint64_t off, void *data, size_t size, size_t *out_size,
		 struct incr_error *err)
{
	struct walk w = { .r = r, .c = c };
	int result = 0;

	if (off >= c->size)
		size = 0;
	else if (size > c->size - off)
		size = (size_t)(c->size - off);

	if (size > 0 && c->kind == CONTENT_PART)
		result = read_part(r, c, off, data, size, err);
	else if (size > 0 && c->kind == CONTENT_EXTENTS)
		result = read_extents(&w, off, data, size, err);
	walk_release(&w);
	if (result < 0)
		return result;

	*out_size = size;
	return 0;
}

int content_frame_at(struct content_reader *r, const struct content *c,
		     uint64_t off, const struct frame **out_frame,
		     uint32_t *out_in_frame, struct incr_error *err)
{
	struct walk w = { .r = r, .c = c };
	struct frame_key key;
	int result;

	walk_skip(&w, off / c->frame_size);
	result = walk_place(&w, &key, err);
	if (result == 0)
		result = content_get_frame(r, &key, out_frame, err);
	walk_release(&w);
	*out_in_frame = (uint32_t)(off % c->frame_size);
	return result;
}

int content_prefetch(struct content_reader *r, const struct content *c,
		     uint64_t off, size_t size, struct incr_error *err)
{
	struct walk w = { .r = r, .c = c };
	struct frame_key keys[RUN_FRAMES_MAX];
	uint64_t first, n_frames;
	size_t n = 0;
	int result = 0;

	if (c->kind != CONTENT_EXTENTS || off >= c->size || size == 0)
		return 0;
	if (size > c->size - off)
		size = (size_t)(c->size - off);
	first = off / c->frame_size;
	n_frames = (off + size - 1) / c->frame_size - first + 1;
	walk_skip(&w, first);
	while (n_frames > 0 && result == 0) {
		result = gather_run(&w, SIZE_MAX, n_frames, keys, &n, err);
		if (result == 0)
			result = content_cache_absent(r, keys, n, err);
		n_frames -= n;
	}
	walk_release(&w);
	return result;
}
