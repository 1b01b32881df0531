/* zstd frames in and out, with hard limits on every size. */
#ifndef INCR_CODEC_H
#define INCR_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "incr.h"

enum codec { CODEC_RAW = 0, CODEC_ZSTD = 1 };

/* One per thread; not shared. */
struct compressor;
struct compressor *compressor_new(int level);
void compressor_free(struct compressor *c);
/* Size of the table of matches (2^@hash_log entries) and the shortest match, instead of the level's own; 0: as the level has it. */
void compressor_set_hash(struct compressor *c, int hash_log, int min_match);
/* Whether bytes outside of matches are compressed too; they are at first. */
void compressor_set_literals(struct compressor *c, bool compresses);
size_t compressor_bound(size_t raw_size);
/*
 * Compress @raw into @out (of compressor_bound(raw_size) bytes).
 * Returns the compressed size, or 0 when it would not be smaller than raw_size
 * (the caller stores it raw).
 */
size_t compressor_run(struct compressor *c, const void *raw, size_t raw_size,
		      void *out, size_t out_capacity);

/*
 * Bytes that the compression of literals saved in the first block of a zstd
 * frame; 0: none, or not known.
 */
size_t codec_literal_gain(const void *stored, size_t stored_size);

struct decompressor;
struct decompressor *decompressor_new(void);
void decompressor_free(struct decompressor *d);
/*
 * Expand exactly one zstd frame into exactly @raw_size bytes at @out.
 * Anything else (wrong declared size, trailing bytes, window above the limit) is INCR_E_CORRUPT.
 */
int decompressor_run(struct decompressor *d, const void *stored,
		     size_t stored_size, void *out, size_t raw_size);

#endif
