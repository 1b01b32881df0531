/*
 * Decoded frames, bounded by bytes, least recently used out first.  Thread
 * safe: of all threads that want a frame at once, one loads it.
 */
#ifndef INCR_FRAME_CACHE_H
#define INCR_FRAME_CACHE_H

#include "content.h"

struct frame_key {
	uint64_t container;
	uint64_t off;
	uint32_t stored_size; /* header and stored bytes */
	uint32_t raw_size;
};

/*
 * The frame of @key, in use until frame_cache_put().
 *
 * Returns 0 with a decoded frame; 1 when the caller must fill the bytes at
 * *out_frame (raw_size of them, writable) and then call frame_cache_loaded();
 * INCR_E_NOMEM.  Waits while another thread loads the same frame.
 */
int frame_cache_get(struct frame_cache *c, const struct frame_key *key,
		    struct frame **out_frame);
/* The bytes to fill after frame_cache_get() gave 1. */
uint8_t *frame_cache_bytes(struct frame *frame);
/* Loading ended; !is_good: the frame is forgotten and the caller's use of it ended. */
void frame_cache_loaded(struct frame_cache *c, struct frame *frame,
			bool is_good);
/* Like get, but NULL when the frame is not there; waits while it is loaded. */
struct frame *frame_cache_wait(struct frame_cache *c,
			       const struct frame_key *key);
/* Is the frame there, or coming? */
bool frame_cache_has(struct frame_cache *c, const struct frame_key *key);
/*
 * Like a get that gives 1, but never waits, so that several frames can be
 * claimed at once.  False: it is there, or coming, or there is no memory.
 */
bool frame_cache_claim(struct frame_cache *c, const struct frame_key *key,
		       struct frame **out_frame);
void frame_cache_put(struct frame_cache *c, const struct frame *frame);
/* Like put, for a frame that was read whole: the first one to be dropped. */
void frame_cache_put_read(struct frame_cache *c, const struct frame *frame);

#endif
