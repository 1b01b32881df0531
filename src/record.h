/*
 * One record of the log: a fixed header of 64 bytes and a payload, both under
 * checksums.  Pure: bytes in, bytes out.  docs/format.md, "Records".
 */
#ifndef INCR_RECORD_H
#define INCR_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "incr.h"

#define RECORD_MAGIC UINT32_C(0x52434e49) /* "INCR" */
#define RECORD_VERSION UINT32_C(1)
#define RECORD_HEADER_SIZE 64
#define RECORD_ALIGN 8 /* the payload is padded with zeros */
#define RECORD_PAYLOAD_MAX (UINT32_C(64) << 20)

/* What a reader that does not know a flag does with the whole log. */
#define RECORD_FLAGS_REFUSE 0x00ffu /* it must not read */
#define RECORD_FLAGS_READ_ONLY 0x0f00u /* it may read, and must not append */
#define RECORD_FLAGS_IGNORE 0xf000u /* it goes on */
#define RECORD_FLAGS_KNOWN 0x0000u

struct record_header {
	uint16_t type; /* enum of fact.h; record.c does not know them */
	uint16_t flags; /* RECORD_FLAGS_* */
	uint32_t payload_size;
	uint64_t sequence; /* 1 for the first record of the store, without gaps */
	uint64_t position; /* of this header in the log as a whole */
	uint64_t durable_to; /* log position known to be on disk when this was written */
	uint64_t store_tag; /* hash64 of the store uuid: a record of another store fails */
	uint64_t payload_hash;
};

/*
 * Header: u32 magic, u16 type, u16 flags, u32 payload_size, u32 version, then
 * sequence, position, durable_to, store_tag, payload_hash, and a hash64 over
 * the 56 bytes before it, u64 each.
 */

/* Bytes that header, payload and padding take. */
uint64_t record_span(uint32_t payload_size);
void record_encode_header(const struct record_header *h,
			  uint8_t out[RECORD_HEADER_SIZE]);
/*
 * Checks magic, header hash, limits; INCR_E_CORRUPT without touching @out
 * otherwise.  INCR_E_UNSUPPORTED: whole, but of a newer version or with an
 * unknown flag of RECORD_FLAGS_REFUSE.
 */
int record_decode_header(const uint8_t bytes[RECORD_HEADER_SIZE],
			 struct record_header *out);
/* Payload hash and zero padding; @bytes holds payload and padding. */
int record_check_payload(const struct record_header *h, const uint8_t *bytes,
			 size_t size);

#endif
