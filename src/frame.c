/*
 * Frames: header, hash and codec of one run of content bytes.
 */
#include "config.h"

#include "frame.h"

#include "bytes.h"
#include "hash.h"

#include <string.h>

#define HASHED_SIZE 24 /* header bytes under the hash */

/* An odd factor: different offsets give different masks. */
#define PLACE_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static void encode_header(const struct frame_header *h, uint8_t *out)
{
	put_u32(out, FRAME_MAGIC);
	out[4] = (uint8_t)h->codec;
	memset(out + 5, 0, 3);
	put_u32(out + 8, h->raw_size);
	put_u32(out + 12, h->stored_size);
	put_u64(out + 16, h->container);
}

static void seal(uint8_t *frame, uint32_t stored_size)
{
	put_u64(frame + HASHED_SIZE,
		hash64_two(frame, HASHED_SIZE, frame + FRAME_HEADER_SIZE,
			   stored_size));
}

int frame_encode(struct compressor *c, const void *raw, uint32_t raw_size,
		 uint64_t container, struct buf *out)
{
	struct frame_header h = {
		.codec = CODEC_RAW,
		.raw_size = raw_size,
		.stored_size = raw_size,
		.container = container,
	};
	size_t capacity = c ? compressor_bound(raw_size) : 0, n = 0;
	uint8_t *frame;
	int r;

	if (raw_size == 0 || raw_size > FRAME_RAW_MAX)
		return INCR_E_RANGE;

	if (capacity < raw_size)
		capacity = raw_size;
	r = buf_reserve(out, FRAME_HEADER_SIZE + capacity);
	if (r < 0)
		return r;

	frame = out->data + out->size;
	if (c)
		n = compressor_run(c, raw, raw_size, frame + FRAME_HEADER_SIZE,
				   capacity);
	if (n > 0 && n < raw_size) {
		h.codec = CODEC_ZSTD;
		h.stored_size = (uint32_t)n;
	} else {
		memcpy(frame + FRAME_HEADER_SIZE, raw, raw_size);
	}
	encode_header(&h, frame);
	seal(frame, h.stored_size);
	out->size += FRAME_HEADER_SIZE + h.stored_size;
	return 0;
}

void frame_rebind(uint8_t *frame, uint64_t container)
{
	put_u64(frame + 16, container);
	seal(frame, get_u32(frame + 12));
}

static uint64_t place_mask(struct frame_place place)
{
	return place.container == FRAME_IN_LOG ? 0 : place.off * PLACE_FACTOR;
}

void frame_place(uint8_t *frame, struct frame_place place)
{
	put_u64(frame + HASHED_SIZE,
		get_u64(frame + HASHED_SIZE) ^ place_mask(place));
}

int frame_decode_header(const uint8_t bytes[FRAME_HEADER_SIZE],
			uint64_t container, struct frame_header *out)
{
	struct frame_header h = {
		.raw_size = get_u32(bytes + 8),
		.stored_size = get_u32(bytes + 12),
		.container = get_u64(bytes + 16),
		.hash = get_u64(bytes + HASHED_SIZE),
	};

	if (get_u32(bytes) != FRAME_MAGIC || bytes[5] || bytes[6] || bytes[7])
		return INCR_E_CORRUPT;
	if (h.container != container)
		return INCR_E_CORRUPT;
	if (h.raw_size == 0 || h.raw_size > FRAME_RAW_MAX || h.stored_size == 0)
		return INCR_E_CORRUPT;

	switch (bytes[4]) {
	case CODEC_RAW:
		h.codec = CODEC_RAW;
		if (h.stored_size != h.raw_size)
			return INCR_E_CORRUPT;
		break;
	case CODEC_ZSTD:
		h.codec = CODEC_ZSTD;
		if (h.stored_size >= h.raw_size)
			return INCR_E_CORRUPT;
		break;
	default:
		return INCR_E_CORRUPT;
	}
	*out = h;
	return 0;
}

int frame_decode(struct decompressor *d, const uint8_t *bytes, size_t size,
		 struct frame_place place, void *out, uint32_t raw_size)
{
	struct frame_header h;
	int r;

	if (size < FRAME_HEADER_SIZE)
		return INCR_E_CORRUPT;

	r = frame_decode_header(bytes, place.container, &h);
	if (r < 0)
		return r;

	if (h.raw_size != raw_size || h.stored_size != size - FRAME_HEADER_SIZE)
		return INCR_E_CORRUPT;

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	if (hash64_two(bytes, HASHED_SIZE, bytes + FRAME_HEADER_SIZE,
		       h.stored_size) != (h.hash ^ place_mask(place)))
		return INCR_E_CORRUPT;
#endif

	if (h.codec == CODEC_RAW) {
		memcpy(out, bytes + FRAME_HEADER_SIZE, raw_size);
		return 0;
	}
	return decompressor_run(d, bytes + FRAME_HEADER_SIZE, h.stored_size,
				out, raw_size);
}
