/* Fuzzer: a block of a table. */
#include "config.h"

#include <stdlib.h>

#include "codec.h"
#include "table_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct block_place place = { .size = (uint32_t)size };
	struct decompressor *d;
	const char *reason;
	struct block *b;

	/* what a reader of index entries refuses before it comes to this */
	if (size < TABLE_HEADER_SIZE || size > TABLE_BLOCK_MAX)
		return 0;
	d = decompressor_new();
	if (!d)
		abort();
	if (block_decode(&place, 1, data, d, &b, &reason) == 0)
		block_unref(b);
	decompressor_free(d);
	return 0;
}
