/*
 * XXH3 of libxxhash: check sums and content names.
 */
#include "config.h"

#include "hash.h"

#include <stdlib.h>

/* Gives the size of a state, so that one can stand on the stack. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

_Static_assert(sizeof(XXH128_canonical_t) == INCR_HASH_SIZE, "hash size");

struct hasher {
	XXH3_state_t *state; /* owned */
};

uint64_t hash64(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

uint64_t hash64_two(const void *a, size_t a_size, const void *b, size_t b_size)
{
	XXH3_state_t state;

	/* The functions fail for NULL arguments only. */
	(void)XXH3_64bits_reset(&state);
	if (a_size)
		(void)XXH3_64bits_update(&state, a, a_size);
	if (b_size)
		(void)XXH3_64bits_update(&state, b, b_size);
	return XXH3_64bits_digest(&state);
}

static void store_hash128(uint8_t out_hash[INCR_HASH_SIZE], XXH128_hash_t hash)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, hash);
	for (size_t i = 0; i < INCR_HASH_SIZE; i++)
		out_hash[i] = canonical.digest[i];
}

void hash128(const void *data, size_t size, uint8_t out_hash[INCR_HASH_SIZE])
{
	store_hash128(out_hash, XXH3_128bits(data, size));
}

struct hasher *hasher_new(void)
{
	struct hasher *h = malloc(sizeof(*h));

	if (!h)
		return NULL;

	h->state = XXH3_createState();
	if (!h->state) {
		free(h);
		return NULL;
	}
	hasher_reset(h);
	return h;
}

void hasher_free(struct hasher *h)
{
	if (!h)
		return;
	(void)XXH3_freeState(h->state); /* cannot fail */
	free(h);
}

void hasher_reset(struct hasher *h)
{
	(void)XXH3_128bits_reset(h->state); /* fails for NULL only */
}

void hasher_update(struct hasher *h, const void *data, size_t size)
{
	if (size)
		(void)XXH3_128bits_update(h->state, data, size); /* same */
}

void hasher_digest(const struct hasher *h, uint8_t out_hash[INCR_HASH_SIZE])
{
	store_hash128(out_hash, XXH3_128bits_digest(h->state));
}
