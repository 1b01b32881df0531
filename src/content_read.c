/*
 * Reading content.  Frames of which only a part is wanted go through the
 * cache.  Frames that a read covers wholly are decoded straight into the
 * caller's memory: several that stand back to back are fetched with one read,
 * and a long sequential read does not push everything else out of the cache.
 */
#include "config.h"

#include "content.h"

#include "bytes.h"
#include "error.h"
#include "frame_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RUN_SIZE_MAX ((size_t)1 << 20) /* bytes fetched with one read */
#define INDEX_ENTRY_SIZE 16

/* What one thread needs to decode; kept for the next one. */
struct scratch {
	struct scratch *next;
	struct decompressor *decompressor;
	struct buf stored;
};

struct content_reader {
	struct pack_set *packs; /* borrowed */
	struct frame_cache *cache; /* borrowed */
	pthread_mutex_t lock; /* guards @idle */
	struct scratch *idle; /* owned */
};

int content_reader_new(struct pack_set *packs, struct frame_cache *cache,
		       struct content_reader **out_reader)
{
	struct content_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return INCR_E_NOMEM;

	r->packs = packs;
	r->cache = cache;
	(void)pthread_mutex_init(&r->lock, NULL); /* cannot fail on Linux */
	*out_reader = r;
	return 0;
}

static void scratch_free(struct scratch *s)
{
	if (!s)
		return;

	decompressor_free(s->decompressor);
	buf_release(&s->stored);
	free(s);
}

void content_reader_free(struct content_reader *r)
{
	if (!r)
		return;

	while (r->idle) {
		struct scratch *s = r->idle;

		r->idle = s->next;
		scratch_free(s);
	}
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

struct pack_set *content_reader_packs(struct content_reader *r)
{
	return r->packs;
}

/* With room for @size stored bytes; NULL: no memory. */
static struct scratch *take_scratch(struct content_reader *r, size_t size)
{
	struct scratch *s;

	(void)pthread_mutex_lock(&r->lock);
	s = r->idle;
	if (s)
		r->idle = s->next;
	(void)pthread_mutex_unlock(&r->lock);

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (s)
			s->decompressor = decompressor_new();
		if (!s || !s->decompressor) {
			scratch_free(s);
			return NULL;
		}
	}
	buf_reset(&s->stored);
	if (buf_reserve(&s->stored, size) < 0) {
		scratch_free(s);
		return NULL;
	}
	return s;
}

static void give_scratch(struct content_reader *r, struct scratch *s)
{
	(void)pthread_mutex_lock(&r->lock);
	s->next = r->idle;
	r->idle = s;
	(void)pthread_mutex_unlock(&r->lock);
}

static int fail_frame(struct incr_error *err, uint64_t container, uint64_t off)
{
	char path[PACK_PATH_SIZE] = "log";

	if (container != PACK_LOG)
		pack_path(container, path);
	(void)incr_fail(err, INCR_E_CORRUPT, "damaged-frame", path,
			"the frame at offset %llu is damaged",
			(unsigned long long)off);
	incr_error_at(err, off);
	return INCR_E_CORRUPT;
}

/* Decode one frame of the scratch into @out. */
static int decode(struct scratch *s, const uint8_t *bytes,
		  const struct frame_key *key, void *out,
		  struct incr_error *err)
{
	int r = frame_decode(s->decompressor, bytes, key->stored_size,
			     (struct frame_place){ key->container, key->off },
			     out, key->raw_size);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0)
		return fail_frame(err, key->container, key->off);
	return 0;
}

static int load(struct content_reader *r, const struct frame_key *key,
		uint8_t *out, struct incr_error *err)
{
	struct scratch *s = take_scratch(r, key->stored_size);
	int result;

	if (!s)
		return incr_fail_nomem(err);

	result = pack_set_read(r->packs, key->container, key->off,
			       s->stored.data, key->stored_size, err);
	if (result == 0)
		result = decode(s, s->stored.data, key, out, err);
	give_scratch(r, s);
	return result;
}

static int get_frame(struct content_reader *r, const struct frame_key *key,
		     const struct frame **out_frame, struct incr_error *err)
{
	struct frame *frame;
	int result = frame_cache_get(r->cache, key, &frame);

	if (result < 0)
		return incr_fail_nomem(err);

	if (result == 1) {
		result = load(r, key, frame_cache_bytes(frame), err);
		frame_cache_loaded(r->cache, frame, result == 0);
		if (result < 0)
			return result;
	}
	*out_frame = frame;
	return 0;
}

int content_frame_get(struct content_reader *r, uint64_t container,
		      uint64_t off, uint32_t stored_size, uint32_t raw_size,
		      const struct frame **out_frame, struct incr_error *err)
{
	const struct frame_key key = { container, off, stored_size, raw_size };

	if (raw_size == 0 || raw_size > FRAME_RAW_MAX ||
	    stored_size <= FRAME_HEADER_SIZE ||
	    stored_size > FRAME_HEADER_SIZE + raw_size)
		return fail_frame(err, container, off);

	return get_frame(r, &key, out_frame, err);
}

void content_frame_put(struct content_reader *r, const struct frame *frame)
{
	frame_cache_put(r->cache, frame);
}

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
		return fail_frame(err, key.container, key.off);

	*out_key = key;
	return 0;
}

/* Fetch @n frames that stand back to back, and decode them to @out. */
static int load_run(struct content_reader *r, const struct frame_key *keys,
		    size_t n, uint8_t *out, struct incr_error *err)
{
	size_t size = 0, at = 0;
	struct scratch *s;
	int result;

	for (size_t i = 0; i < n; i++)
		size += keys[i].stored_size;
	s = take_scratch(r, size);
	if (!s)
		return incr_fail_nomem(err);

	result = pack_set_read(r->packs, keys[0].container, keys[0].off,
			       s->stored.data, size, err);
	for (size_t i = 0; i < n && result == 0; i++) {
		result = decode(s, s->stored.data + at, &keys[i], out, err);
		at += keys[i].stored_size;
		out += keys[i].raw_size;
	}
	give_scratch(r, s);
	return result;
}

#define RUN_FRAMES_MAX 64

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

static bool copy_cached(struct content_reader *r, const struct frame_key *key,
			uint8_t *out)
{
	struct frame *frame = frame_cache_wait(r->cache, key);

	if (!frame)
		return false;

	memcpy(out, frame->data, key->raw_size);
	frame_cache_put_read(r->cache, frame);
	return true;
}

/* How many of @keys from @first on are not cached: what one read fetches. */
static size_t count_absent(struct content_reader *r,
			   const struct frame_key *keys, size_t first, size_t n)
{
	size_t i = first;

	while (i < n && !frame_cache_has(r->cache, &keys[i]))
		i++;
	return i - first;
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
		if (copy_cached(w->r, &keys[first], out + done)) {
			done += keys[first++].raw_size;
			continue;
		}
		n_absent = count_absent(w->r, keys, first, n);
		if (n_absent == 0)
			n_absent = 1; /* it came meanwhile */
		r = load_run(w->r, keys + first, n_absent, out + done, err);
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

	r = get_frame(w->r, &key, &frame, err);
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
		result = get_frame(r, &key, out_frame, err);
	walk_release(&w);
	*out_in_frame = (uint32_t)(off % c->frame_size);
	return result;
}

/* Fetch and decode into the cache the @n frames that stand back to back. */
static int cache_run(struct content_reader *r, const struct frame_key *keys,
		     struct frame **frames, size_t n, struct incr_error *err)
{
	size_t size = 0, at = 0;
	struct scratch *s;
	int result;

	for (size_t i = 0; i < n; i++)
		size += keys[i].stored_size;
	s = take_scratch(r, size);
	result = s ? pack_set_read(r->packs, keys[0].container, keys[0].off,
				   s->stored.data, size, err) :
		     incr_fail_nomem(err);
	for (size_t i = 0; i < n; i++) {
		if (result == 0)
			result = decode(s, s->stored.data + at, &keys[i],
					frame_cache_bytes(frames[i]), err);
		at += keys[i].stored_size;
		frame_cache_loaded(r->cache, frames[i], result == 0);
		if (result == 0)
			frame_cache_put(r->cache, frames[i]);
	}
	if (s)
		give_scratch(r, s);
	return result;
}

/* Cache what of @keys, which stand back to back, is neither there nor coming. */
static int cache_absent(struct content_reader *r, const struct frame_key *keys,
			size_t n, struct incr_error *err)
{
	struct frame *frames[RUN_FRAMES_MAX];
	size_t first = 0;
	int result = 0;

	while (first < n && result == 0) {
		size_t n_claimed = 0;

		while (first + n_claimed < n &&
		       frame_cache_claim(r->cache, &keys[first + n_claimed],
					 &frames[n_claimed]))
			n_claimed++;
		if (n_claimed > 0)
			result = cache_run(r, keys + first, frames, n_claimed,
					   err);
		first += n_claimed + 1; /* and the one that was not claimed */
	}
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
			result = cache_absent(r, keys, n, err);
		n_frames -= n;
	}
	walk_release(&w);
	return result;
}
