/*
 * Frames from their packs: fetched, several with one read if they stand back to
 * back, and decoded, into the cache or straight to where they are wanted.
 */
#include "config.h"

#include "content_load.h"

#include "error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

int content_fail_frame(struct incr_error *err, uint64_t container, uint64_t off)
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
		return content_fail_frame(err, key->container, key->off);
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

int content_get_frame(struct content_reader *r, const struct frame_key *key,
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
		return content_fail_frame(err, container, off);

	return content_get_frame(r, &key, out_frame, err);
}

void content_frame_put(struct content_reader *r, const struct frame *frame)
{
	frame_cache_put(r->cache, frame);
}

/* Fetch @n frames that stand back to back; give_scratch() what comes back. */
static int fetch_run(struct content_reader *r, const struct frame_key *keys,
		     size_t n, struct scratch **out_scratch,
		     struct incr_error *err)
{
	size_t size = 0;
	struct scratch *s;
	int result;

	for (size_t i = 0; i < n; i++)
		size += keys[i].stored_size;
	s = take_scratch(r, size);
	if (!s)
		return incr_fail_nomem(err);

	result = pack_set_read(r->packs, keys[0].container, keys[0].off,
			       s->stored.data, size, err);
	if (result < 0)
		give_scratch(r, s);
	else
		*out_scratch = s;
	return result;
}

int content_load_run(struct content_reader *r, const struct frame_key *keys,
		     size_t n, uint8_t *out, struct incr_error *err)
{
	size_t at = 0;
	struct scratch *s;
	int result = fetch_run(r, keys, n, &s, err);

	if (result < 0)
		return result;

	for (size_t i = 0; i < n && result == 0; i++) {
		result = decode(s, s->stored.data + at, &keys[i], out, err);
		at += keys[i].stored_size;
		out += keys[i].raw_size;
	}
	give_scratch(r, s);
	return result;
}

bool content_copy_cached(struct content_reader *r, const struct frame_key *key,
			 uint8_t *out)
{
	struct frame *frame = frame_cache_wait(r->cache, key);

	if (!frame)
		return false;

	memcpy(out, frame->data, key->raw_size);
	frame_cache_put_read(r->cache, frame);
	return true;
}

size_t content_count_absent(struct content_reader *r,
			    const struct frame_key *keys, size_t first,
			    size_t n)
{
	size_t i = first;

	while (i < n && !frame_cache_has(r->cache, &keys[i]))
		i++;
	return i - first;
}

/* Fetch and decode into the cache the @n frames that stand back to back. */
static int cache_run(struct content_reader *r, const struct frame_key *keys,
		     struct frame **frames, size_t n, struct incr_error *err)
{
	size_t at = 0;
	struct scratch *s = NULL;
	int result = fetch_run(r, keys, n, &s, err);

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

int content_cache_absent(struct content_reader *r, const struct frame_key *keys,
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
