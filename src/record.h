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
#define RECORD_HEADER_SIZE 64
#define RECORD_ALIGN 8 /* the payload is padded with zeros */
#define RECORD_PAYLOAD_MAX (UINT32_C(64) << 20)

struct record_header {
	uint16_t type; /* enum of fact.h; record.c does not know them */
	uint16_t flags; /* RECORD_FLAG_*; unknown ones are handled as feature flags are */
	uint32_t payload_size;
	uint64_t sequence; /* 1 for the first record of the store, without gaps */
	uint64_t position; /* of this header in the log as a whole */
	uint64_t durable_to; /* log position known to be on disk when this was written */
	uint64_t store_tag; /* hash64 of the store uuid: a record of another store fails */
	uint64_t payload_hash;
	/* u64 header_hash over the 56 bytes before it */
};

/* Bytes that header, payload and padding take. */
uint64_t record_span(uint32_t payload_size);
void record_encode_header(const struct record_header *h, uint8_t out[RECORD_HEADER_SIZE]);
/* Checks magic, header hash, limits; INCR_E_CORRUPT without touching @out otherwise. */
int record_decode_header(const uint8_t bytes[RECORD_HEADER_SIZE], struct record_header *out);
/* Payload hash and zero padding; @bytes holds payload and padding. */
int record_check_payload(const struct record_header *h, const uint8_t *bytes, size_t size);

#endif
