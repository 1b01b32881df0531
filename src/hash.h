/* XXH3: 64 bits check bytes against accidents, 128 bits name a file's content. */
#ifndef INCR_HASH_H
#define INCR_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "incr.h"

uint64_t hash64(const void *data, size_t size);
/* Over the concatenation of two byte strings, without copying them together. */
uint64_t hash64_two(const void *a, size_t a_size, const void *b, size_t b_size);
/* Canonical (big-endian) form, as `xxhsum -H128` prints it. */
void hash128(const void *data, size_t size, uint8_t out_hash[INCR_HASH_SIZE]);

/* Streaming form for files that do not fit in one buffer. */
struct hasher;
struct hasher *hasher_new(void);
void hasher_free(struct hasher *h);
void hasher_reset(struct hasher *h);
void hasher_update(struct hasher *h, const void *data, size_t size);
void hasher_digest(const struct hasher *h, uint8_t out_hash[INCR_HASH_SIZE]);

#endif
