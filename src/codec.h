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
/* Size of the table of matches (2^@hash_log entries) and the shortest match, instead of the level's own. */
void compressor_set_hash(struct compressor *c, int hash_log, int min_match);
size_t compressor_bound(size_t raw_size);
/*
 * Compress @raw into @out (of compressor_bound(raw_size) bytes).
 * Returns the compressed size, or 0 when it would not be smaller than raw_size
 * (the caller stores it raw).
 */
size_t compressor_run(struct compressor *c, const void *raw, size_t raw_size,
		      void *out, size_t out_capacity);

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
