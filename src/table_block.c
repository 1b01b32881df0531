/*
 * One block of a table: checked and decoded from untrusted bytes, searched.
 *
 * A block is decoded once, into full keys and an array of entries, so that an
 * entry is found by number in O(1) and by key with a plain binary search; the
 * cache makes up for the cost.  A hash finds accidents only, so every length
 * is checked as if there were none.
 */
#include "config.h"

#include "table_format.h"

#include "bytes.h"
#include "codec.h"
#include "hash.h"

#include <stdlib.h>
#include <string.h>

struct block_header {
	uint32_t stored_size;
	uint32_t raw_size;
	uint32_t keys_size;
	uint32_t number;
	uint16_t n_entries;
	uint8_t codec;
	uint8_t level;
};

int table_key_compare(const void *a, size_t a_size, const void *b,
		      size_t b_size)
{
	size_t n = a_size < b_size ? a_size : b_size;
	int order = n ? memcmp(a, b, n) : 0;

	if (order)
		return order;

	return a_size < b_size ? -1 : a_size > b_size;
}

uint64_t block_hash(uint64_t tag, uint64_t off, const uint8_t *bytes,
		    size_t size)
{
	uint8_t place[16];

	put_u64(place, tag);
	put_u64(place + 8, off);
	return hash64_two(place, sizeof(place), bytes, size);
}

/* Why the header cannot be right, or NULL. */
static const char *header_check(const struct block_header *h,
				const struct block_place *place)
{
	if (h->stored_size != place->size - TABLE_HEADER_SIZE)
		return "its size is not that of the index";

	if (h->level != place->level || h->number != place->number)
		return "it is not the block that the index names";

	if (!h->n_entries || h->n_entries > TABLE_BLOCK_ENTRIES)
		return "bad number of entries";

	if (h->raw_size > TABLE_RAW_MAX || h->keys_size > TABLE_KEYS_MAX ||
	    (h->raw_size > TABLE_BLOCK_SIZE && h->n_entries > 1))
		return "larger than the limit";

	if (h->codec == CODEC_RAW ? h->stored_size != h->raw_size :
				    h->stored_size >= h->raw_size)
		return "its sizes contradict each other";

	return h->codec > CODEC_ZSTD ? "unknown compression" : NULL;
}

static const char *header_decode(const uint8_t *stored, uint64_t tag,
				 const struct block_place *place,
				 struct block_header *out)
{
	struct cursor c = cursor_over(stored, TABLE_HEADER_SIZE);
	uint64_t hash = cursor_u64(&c);

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	if (hash != block_hash(tag, place->off, stored + TABLE_HEADER_HASH,
			       place->size - TABLE_HEADER_HASH))
		return "its hash differs";
#else
	(void)hash;
	(void)tag;
#endif

	out->stored_size = cursor_u32(&c);
	out->raw_size = cursor_u32(&c);
	out->keys_size = cursor_u32(&c);
	out->number = cursor_u32(&c);
	out->n_entries = cursor_u16(&c);
	out->codec = cursor_u8(&c);
	out->level = cursor_u8(&c);
	return header_check(out, place);
}

static inline uint64_t short_varint(struct cursor *c)
{
	if (c->at < c->end && *c->at < 0x80 && !c->is_bad)
		return *c->at++;

	return cursor_varint(c);
}

/* Expand entry @i, whose full key goes to @keys_at in @keys. */
static const char *entry_decode(struct block *b, uint32_t i, struct cursor *c,
				uint8_t *keys, uint32_t keys_at,
				uint32_t keys_size)
{
	const struct block_entry *last = i ? &b->entries[i - 1] : NULL;
	uint64_t n_shared = short_varint(c);
	uint64_t n_own = short_varint(c);
	uint64_t value = short_varint(c);
	const uint8_t *own = cursor_bytes(c, n_own);
	const uint8_t *bytes = cursor_bytes(c, value ? value - 1 : 0);

	if (c->is_bad || value > TABLE_VALUE_MAX + 1)
		return "an entry goes past its end";

	if (n_shared > (last ? last->key_size : 0) ||
	    n_shared + n_own > TABLE_KEY_MAX ||
	    n_shared + n_own > keys_size - keys_at)
		return "a key is too long";

	if (n_shared)
		memcpy(keys + keys_at, keys + last->key_off, n_shared);
	if (n_own)
		memcpy(keys + keys_at + n_shared, own, n_own);
	b->entries[i] = (struct block_entry){
		.key_off = keys_at,
		.key_size = (uint16_t)(n_shared + n_own),
		.value_off = (uint32_t)(bytes - b->raw),
		.value_size = value ? (uint32_t)(value - 1) : 0,
		.is_tombstone = !value,
	};
	if (last &&
	    table_key_compare(keys + last->key_off + n_shared,
			      last->key_size - n_shared, own, n_own) >= 0)
		return "its keys are not ascending";

	return NULL;
}

static const char *entries_decode(struct block *b, uint8_t *keys,
				  uint32_t keys_size, uint32_t raw_size)
{
	struct cursor c = cursor_over(b->raw, raw_size);
	uint32_t keys_at = 0;

	for (uint32_t i = 0; i < b->n_entries; i++) {
		const char *reason =
			entry_decode(b, i, &c, keys, keys_at, keys_size);

		if (reason)
			return reason;

		keys_at += b->entries[i].key_size;
	}

	if (cursor_left(&c) || keys_at != keys_size)
		return "its entries do not fill it";

	return NULL;
}

/* An index block names blocks in order, so that a walk over them ends. */
static const char *index_check(const struct block *b)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < b->n_entries; i++) {
		struct block_place place;

		if (b->entries[i].is_tombstone ||
		    b->entries[i].value_size != TABLE_INDEX_VALUE_SIZE)
			return "bad index entry";

		block_child(b, i, &place);
		if (!i ? place.number != b->number :
			 place.number <= last ||
				    (b->level == 1 && place.number != last + 1))
			return "its blocks are out of order";

		last = place.number;
	}

	return NULL;
}

int block_decode(const struct block_place *place, uint64_t tag,
		 const uint8_t *stored, struct decompressor *d,
		 struct block **out_block, const char **out_reason)
{
	_cleanup_block_ struct block *b = NULL;
	struct block_header h;
	const char *reason = header_decode(stored, tag, place, &h);
	size_t size;
	uint8_t *keys, *raw;
	int r = 0;

	if (reason) {
		*out_reason = reason;
		return INCR_E_CORRUPT;
	}

	size = sizeof(*b) + h.n_entries * sizeof(b->entries[0]) + h.keys_size +
	       h.raw_size;
	b = malloc(size);
	if (!b)
		return INCR_E_NOMEM;

	keys = (uint8_t *)&b->entries[h.n_entries];
	raw = keys + h.keys_size;
	*b = (struct block){ .number = h.number,
			     .n_entries = h.n_entries,
			     .level = h.level,
			     .charge = size,
			     .keys = keys,
			     .raw = raw };
	atomic_init(&b->n_refs, 1);
	stored += TABLE_HEADER_SIZE;
	if (h.codec == CODEC_RAW)
		memcpy(raw, stored, h.raw_size);
	else
		r = decompressor_run(d, stored, h.stored_size, raw, h.raw_size);
	if (r == INCR_E_NOMEM)
		return r;

	if (r)
		reason = "it does not decompress";
	else
		reason = entries_decode(b, keys, h.keys_size, h.raw_size);
	if (!reason && b->level && b->level != TABLE_FILTER_LEVEL)
		reason = index_check(b);
	if (reason) {
		*out_reason = reason;
		return INCR_E_CORRUPT;
	}

	*out_block = b;
	b = NULL;
	return 0;
}

void block_unref(struct block *b)
{
	if (b &&
	    atomic_fetch_sub_explicit(&b->n_refs, 1, memory_order_acq_rel) == 1)
		free(b);
}

void cleanup_block(struct block **b)
{
	block_unref(*b);
}

uint32_t block_lower_bound(const struct block *b, const void *key,
			   size_t key_size)
{
	return block_lower_bound_in(b, 0, b->n_entries, key, key_size);
}

uint32_t block_lower_bound_in(const struct block *b, uint32_t low,
			      uint32_t high, const void *key, size_t key_size)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (block_compare(b, middle, key, key_size) < 0)
			low = middle + 1;
		else
			high = middle;
	}

	return low;
}

uint32_t block_index_by_key(const struct block *b, const void *key,
			    size_t key_size)
{
	uint32_t i = block_lower_bound(b, key, key_size);

	/* The last separator <= key; below all of them it is the first block. */
	if (i && (i == b->n_entries || block_compare(b, i, key, key_size)))
		i--;
	return i;
}

void block_child(const struct block *b, uint32_t i,
		 struct block_place *out_place)
{
	const uint8_t *value = b->raw + b->entries[i].value_off;

	out_place->off = get_u64(value);
	out_place->size = get_u32(value + 8);
	out_place->number = get_u32(value + 12);
	out_place->level = (uint8_t)(b->level - 1);
}

uint64_t block_child_rank(const struct block *b, uint32_t i)
{
	return get_u64(b->raw + b->entries[i].value_off + 16);
}

uint32_t block_next_of_rank(const struct block *b, uint32_t i, uint64_t least)
{
	while (i < b->n_entries && block_child_rank(b, i) < least)
		i++;
	return i;
}

uint32_t block_index_by_number(const struct block *b, uint32_t number)
{
	uint32_t low = 0, high = b->n_entries;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		struct block_place place;

		block_child(b, middle, &place);
		if (place.number <= number)
			low = middle;
		else
			high = middle;
	}

	return low;
}
