/*
 * One on-disk record: encode, decode, check.
 */
#include "config.h"

#include "record.h"

#include "bytes.h"
#include "hash.h"

#define HASHED_SIZE 56 /* of the header; its hash follows */

uint64_t record_span(uint32_t payload_size)
{
	uint64_t size = (uint64_t)RECORD_HEADER_SIZE + payload_size;

	return (size + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

void record_encode_header(const struct record_header *h,
			  uint8_t out[RECORD_HEADER_SIZE])
{
	put_u32(out, RECORD_MAGIC);
	put_u16(out + 4, h->type);
	put_u16(out + 6, h->flags);
	put_u32(out + 8, h->payload_size);
	put_u32(out + 12, RECORD_VERSION);
	put_u64(out + 16, h->sequence);
	put_u64(out + 24, h->position);
	put_u64(out + 32, h->durable_to);
	put_u64(out + 40, h->store_tag);
	put_u64(out + 48, h->payload_hash);
	put_u64(out + HASHED_SIZE, hash64(out, HASHED_SIZE));
}

/* A fuzzer cannot guess hashes; let it reach what is behind them. */
static bool is_hash_ok(uint64_t want, uint64_t got)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)want;
	(void)got;
	return true;
#else
	return want == got;
#endif
}

int record_decode_header(const uint8_t bytes[RECORD_HEADER_SIZE],
			 struct record_header *out)
{
	struct record_header h = {
		.type = get_u16(bytes + 4),
		.flags = get_u16(bytes + 6),
		.payload_size = get_u32(bytes + 8),
		.sequence = get_u64(bytes + 16),
		.position = get_u64(bytes + 24),
		.durable_to = get_u64(bytes + 32),
		.store_tag = get_u64(bytes + 40),
		.payload_hash = get_u64(bytes + 48),
	};
	uint32_t version = get_u32(bytes + 12);

	if (get_u32(bytes) != RECORD_MAGIC ||
	    !is_hash_ok(get_u64(bytes + HASHED_SIZE),
			hash64(bytes, HASHED_SIZE)))
		return INCR_E_CORRUPT;
	if (version != RECORD_VERSION ||
	    (h.flags & RECORD_FLAGS_REFUSE & ~RECORD_FLAGS_KNOWN))
		return INCR_E_UNSUPPORTED;
	if (h.payload_size > RECORD_PAYLOAD_MAX || h.durable_to > h.position ||
	    h.sequence == 0)
		return INCR_E_CORRUPT;

	*out = h;
	return 0;
}

int record_check_payload(const struct record_header *h, const uint8_t *bytes,
			 size_t size)
{
	if (size != record_span(h->payload_size) - RECORD_HEADER_SIZE)
		return INCR_E_CORRUPT;
	for (size_t i = h->payload_size; i < size; i++)
		if (bytes[i] != 0)
			return INCR_E_CORRUPT;
	if (!is_hash_ok(h->payload_hash, hash64(bytes, h->payload_size)))
		return INCR_E_CORRUPT;
	return 0;
}
