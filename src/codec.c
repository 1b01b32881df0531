/*
 * zstd frames in and out, with hard limits on every size.
 */
#include "config.h"

#include "codec.h"

#include "bytes.h"

#include <stdlib.h>
#include <zstd.h>

/* The largest window written or read: 1 MiB, the largest frame. */
#define CODEC_WINDOW_LOG_MAX 20

struct compressor {
	ZSTD_CCtx *context; /* owned */
};

struct decompressor {
	ZSTD_DCtx *context; /* owned */
};

struct compressor *compressor_new(int level)
{
	struct compressor *c = malloc(sizeof(*c));

	if (!c)
		return NULL;

	c->context = ZSTD_createCCtx();
	if (!c->context ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(
		    c->context, ZSTD_c_compressionLevel, level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->context, ZSTD_c_windowLog,
						CODEC_WINDOW_LOG_MAX))) {
		compressor_free(c);
		return NULL;
	}
	return c;
}

void compressor_free(struct compressor *c)
{
	if (!c)
		return;
	(void)ZSTD_freeCCtx(c->context); /* always 0 */
	free(c);
}

void compressor_set_hash(struct compressor *c, int hash_log, int min_match)
{
	/* what a version of zstd refuses stays as the level has it */
	(void)ZSTD_CCtx_setParameter(c->context, ZSTD_c_hashLog, hash_log);
	(void)ZSTD_CCtx_setParameter(c->context, ZSTD_c_minMatch, min_match);
}

void compressor_set_literals(struct compressor *c, bool compresses)
{
	/*
	 * For the fast strategy of level 1, zstd takes any length but 0 as a wish
	 * to leave literals alone; 2 also looks for matches at fewer places: a
	 * sixth faster, for 2 % of the size.
	 */
	(void)ZSTD_CCtx_setParameter(c->context, ZSTD_c_targetLength,
				     compresses ? 0 : 2);
}

/* RFC 8878, 3.1.1.1: bytes before the first block; 0: not known. */
static size_t frame_header_size(uint8_t descriptor)
{
	static const uint8_t content_size[4] = { 0, 2, 4, 8 };
	bool is_single = descriptor & 0x20;
	size_t size = 5 + (size_t)!is_single + content_size[descriptor >> 6];

	if (descriptor & 0x03) /* a dictionary: none of ours */
		return 0;
	return size + (is_single && descriptor >> 6 == 0);
}

size_t codec_literal_gain(const void *stored, size_t stored_size)
{
	struct cursor c = cursor_over(stored, stored_size);
	uint64_t sizes = 0;
	size_t header, n, bits;
	const uint8_t *at;

	(void)cursor_u32(&c);
	header = frame_header_size(cursor_u8(&c));
	if (c.is_bad || header == 0 || stored_size < header + 3 + 5)
		return 0;

	/* 3.1.1.2: the type of the block; 3.1.1.3.1.1: of its literals */
	at = (const uint8_t *)stored + header;
	if ((at[0] >> 1 & 3) != 2 || (at[3] & 3) < 2)
		return 0;
	at += 3;
	n = at[0] >> 2 & 3;
	n = n < 2 ? 3 : n + 2;
	bits = n == 3 ? 10 : n == 4 ? 14 : 18;
	for (size_t i = 0; i < n; i++)
		sizes |= (uint64_t)at[i] << (8 * i);
	sizes >>= 4;
	n = (size_t)(sizes & ((UINT64_C(1) << bits) - 1));
	sizes >>= bits;
	return n > sizes ? n - (size_t)sizes : 0;
}

size_t compressor_bound(size_t raw_size)
{
	return ZSTD_compressBound(raw_size);
}

size_t compressor_run(struct compressor *c, const void *raw, size_t raw_size,
		      void *out, size_t out_capacity)
{
	size_t n = ZSTD_compress2(c->context, out, out_capacity, raw, raw_size);

	/* Whatever the reason, the caller can always store the bytes raw. */
	return ZSTD_isError(n) || n >= raw_size ? 0 : n;
}

struct decompressor *decompressor_new(void)
{
	struct decompressor *d = malloc(sizeof(*d));

	if (!d)
		return NULL;

	d->context = ZSTD_createDCtx();
	if (!d->context ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(d->context, ZSTD_d_windowLogMax,
						CODEC_WINDOW_LOG_MAX))) {
		decompressor_free(d);
		return NULL;
	}
	return d;
}

void decompressor_free(struct decompressor *d)
{
	if (!d)
		return;
	(void)ZSTD_freeDCtx(d->context); /* always 0 */
	free(d);
}

/*
 * zstd looks at its window limit only when it streams; the frame header
 * (RFC 8878, 3.1.1.1) is short enough to look ourselves.
 */
static bool is_window_ok(const void *stored, size_t stored_size)
{
	struct cursor c = cursor_over(stored, stored_size);
	uint32_t magic = cursor_u32(&c);
	uint8_t descriptor = cursor_u8(&c);
	uint8_t window;

	if (c.is_bad || magic != ZSTD_MAGICNUMBER)
		return false;
	if (descriptor & 0x20) /* single segment: the content is the window */
		return true;
	window = cursor_u8(&c);
	return !c.is_bad && window <= (CODEC_WINDOW_LOG_MAX - 10) << 3;
}

int decompressor_run(struct decompressor *d, const void *stored,
		     size_t stored_size, void *out, size_t raw_size)
{
	size_t n;

	if (!is_window_ok(stored, stored_size) ||
	    ZSTD_getFrameContentSize(stored, stored_size) != raw_size ||
	    ZSTD_findFrameCompressedSize(stored, stored_size) != stored_size)
		return INCR_E_CORRUPT;

	n = ZSTD_decompressDCtx(d->context, out, raw_size, stored, stored_size);
	return n == raw_size ? 0 : INCR_E_CORRUPT;
}
