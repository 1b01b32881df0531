/*
 * A frame: a run of content bytes, compressed by itself, under a checksum.
 * The unit of reading.  Frames stand in packs and, for small commits, in log
 * records; the byte layout is the same.  docs/format.md, "Frames".
 */
#ifndef INCR_FRAME_H
#define INCR_FRAME_H

#include <stdint.h>

#include "buf.h"
#include "codec.h"

#define FRAME_MAGIC UINT32_C(0x454d5246) /* "FRME" */
#define FRAME_HEADER_SIZE 32
#define FRAME_IN_LOG UINT64_C(0) /* container of frames in log records */
#define FRAME_RAW_MAX (UINT32_C(1) << 20) /* a reader refuses more */
#define FRAME_RAW_DEFAULT (UINT32_C(64) << 10)

/*
 * Header: u32 magic, u8 codec, u8[3] zero, u32 raw_size, u32 stored_size,
 * u64 container (pack id, or 0 for the log), u64 hash64 over the first 24
 * bytes and the stored bytes, XORed with the offset where it
 * stands times an odd constant (0 in the log).  A frame moved within its pack, or copied from another, fails.
 */
struct frame_header {
	enum codec codec;
	uint32_t raw_size;
	uint32_t stored_size;
	uint64_t container;
	uint64_t hash;
};

/* Where a frame stands; in PACK_LOG only the container counts, the record's hash covers the rest. */
struct frame_place {
	uint64_t container;
	uint64_t off;
};

/*
 * Append a whole frame (header and stored bytes) to @out; @c NULL: store
 * raw.  It belongs to @container, and to no place there until frame_place().
 */
int frame_encode(struct compressor *c, const void *raw, uint32_t raw_size,
		 uint64_t container, struct buf *out);
/* Give a whole, valid frame in memory to another container; its hash is made anew. */
void frame_rebind(uint8_t *frame, uint64_t container);
/* Bind a whole frame in memory to where it will stand. */
void frame_place(uint8_t *frame, struct frame_place place);
/* Header and limits only; INCR_E_CORRUPT otherwise. */
int frame_decode_header(const uint8_t bytes[FRAME_HEADER_SIZE],
			uint64_t container, struct frame_header *out);
/* Whole frame of header + stored bytes at @bytes: checks the hash, expands into @out (raw_size bytes). */
int frame_decode(struct decompressor *d, const uint8_t *bytes, size_t size,
		 struct frame_place place, void *out, uint32_t raw_size);

#endif
