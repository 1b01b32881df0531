/* How content_read.c gets frames: one, or a run of them back to back. */
#ifndef INCR_CONTENT_LOAD_H
#define INCR_CONTENT_LOAD_H

#include "content.h"
#include "frame_cache.h"

#define RUN_FRAMES_MAX 64

/* INCR_E_CORRUPT, which names pack and offset. */
int content_fail_frame(struct incr_error *err, uint64_t container,
		       uint64_t off);

/* The decoded frame of a checked key, through the cache; content_frame_put() it. */
int content_get_frame(struct content_reader *r, const struct frame_key *key,
		      const struct frame **out_frame, struct incr_error *err);

/* Fetch @n frames that stand back to back, and decode them to @out. */
int content_load_run(struct content_reader *r, const struct frame_key *keys,
		     size_t n, uint8_t *out, struct incr_error *err);

/* The whole frame to @out, waiting while it is loaded.  False: it is not cached. */
bool content_copy_cached(struct content_reader *r, const struct frame_key *key,
			 uint8_t *out);

/* How many of @keys from @first on are not cached: what one read fetches. */
size_t content_count_absent(struct content_reader *r,
			    const struct frame_key *keys, size_t first,
			    size_t n);

/* Cache what of @n <= RUN_FRAMES_MAX @keys, back to back, is neither there nor coming. */
int content_cache_absent(struct content_reader *r, const struct frame_key *keys,
			 size_t n, struct incr_error *err);

#endif
