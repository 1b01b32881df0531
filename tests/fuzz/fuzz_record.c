/* Fuzzer: the header and payload of a log record. */
#include "config.h"

#include <stdlib.h>

#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[RECORD_HEADER_SIZE];
	struct record_header h;

	if (size < RECORD_HEADER_SIZE || record_decode_header(data, &h) < 0)
		return 0;
	if (h.payload_size > RECORD_PAYLOAD_MAX)
		abort();
	record_encode_header(&h, again);
	(void)record_check_payload(&h, data + RECORD_HEADER_SIZE,
				   size - RECORD_HEADER_SIZE);
	return 0;
}
