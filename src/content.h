/*
 * Where a file's bytes are: the content descriptor of a manifest entry, and
 * reading through it with a bounded cache of decoded frames.
 */
#ifndef INCR_CONTENT_H
#define INCR_CONTENT_H

#include "pack.h"

/* A smaller file is stored again: to share it is not worth an entry, or a frame elsewhere. */
#define CONTENT_SHARE_MIN 512

enum content_kind {
	CONTENT_EMPTY = 0, /* size 0 */
	CONTENT_PART = 1, /* within one frame, perhaps shared with neighbours */
	CONTENT_EXTENTS =
		2, /* many frames, each but the last of frame_size raw bytes */
	CONTENT_FRONTED = 3 /* on disk only: the same, with its front */
};

/*
 * An extent is a run of frames listed by one frame index.  A frame index is an
 * array of 16-byte entries (u64 offset of the frame in its container, u32
 * stored size with header, u32 zero) cut into raw (codec 0) frames of
 * CONTENT_INDEX_ENTRIES entries (the last may be shorter), written back to
 * back, so that the place of any entry is arithmetic.
 */
#define CONTENT_INDEX_ENTRIES 4096
#define CONTENT_EXTENTS_MAX 65536

struct content_extent {
	uint64_t container;
	uint64_t index_off; /* of the first index frame */
	uint64_t index_n; /* entries in that index */
	uint64_t first; /* first entry used */
	uint64_t n_frames; /* entries used */
};

struct content {
	enum content_kind kind;
	uint64_t size; /* of the file */
	/* CONTENT_PART */
	uint64_t container;
	uint64_t frame_off;
	uint32_t frame_stored; /* header and stored bytes */
	uint32_t frame_raw;
	uint32_t part_off; /* of the file in the raw frame */
	/* CONTENT_EXTENTS */
	uint64_t front; /* hash64 of the first frame's raw bytes; 0: not known */
	uint32_t frame_size; /* power of two, 4 KiB to FRAME_RAW_MAX */
	size_t n_extents;
	struct content_extent *extents; /* owned */
};

void content_release(struct content *c);
/* The same place in the same frames. */
bool content_equals(const struct content *a, const struct content *b);
int content_copy(const struct content *from, struct content *out);
/* PACK_SELF becomes PACK_LOG at @frames_position + offset; INCR_E_CORRUPT on overflow. */
int content_rebase(struct content *c, uint64_t frames_position);
/* The first @n_frames frames of CONTENT_EXTENTS as a file of @size bytes; they share the frames. */
int content_prefix(const struct content *from, uint64_t n_frames, uint64_t size,
		   struct content *out);
int content_add_extent(struct content *c, const struct content_extent *extent);
/* Varints, docs/format.md, "Content descriptors"; decode checks every size. */
struct cursor;
int content_encode(const struct content *c, struct buf *out);
int content_decode(struct cursor *from, struct content *out);

/* ---- reading ---- */
/* Decoded frames, bounded by bytes, LRU, thread-safe; a frame in use stays. */
struct frame_cache;
struct frame_cache *frame_cache_new(size_t capacity_size);
void frame_cache_free(struct frame_cache *c);

struct frame {
	const uint8_t *data; /* raw_size bytes, valid until frame_put() */
	uint32_t raw_size;
};

struct content_reader; /* pack set + frame cache + decompressors; one per store handle, thread-safe */
int content_reader_new(struct pack_set *packs, struct frame_cache *cache,
		       struct content_reader **out_reader);
void content_reader_free(struct content_reader *r);
struct pack_set *content_reader_packs(struct content_reader *r); /* borrowed */

/*
 * The decoded frame at a place.  Two threads that ask for the same frame at
 * once decode it once.  Damage is INCR_E_CORRUPT, word "damaged-frame", with
 * pack and offset in the message; never wrong bytes.
 */
int content_frame_get(struct content_reader *r, uint64_t container,
		      uint64_t off, uint32_t stored_size, uint32_t raw_size,
		      const struct frame **out_frame, struct incr_error *err);
void content_frame_put(struct content_reader *r, const struct frame *frame);

/*
 * Up to @size bytes at @off; *out_size < size only at the end of the file.
 * Sequential frames are fetched with one pread where they stand back to back.
 */
int content_read(struct content_reader *r, const struct content *c,
		 uint64_t off, void *data, size_t size, size_t *out_size,
		 struct incr_error *err);

/* The decoded frame of CONTENT_EXTENTS that holds byte @off < size, which is *out_in_frame in it; content_frame_put() it. */
int content_frame_at(struct content_reader *r, const struct content *c,
		     uint64_t off, const struct frame **out_frame,
		     uint32_t *out_in_frame, struct incr_error *err);

/* Have the frames of these bytes of CONTENT_EXTENTS in the cache, or on their way into it by another thread. */
int content_prefetch(struct content_reader *r, const struct content *c,
		     uint64_t off, size_t size, struct incr_error *err);

#endif
