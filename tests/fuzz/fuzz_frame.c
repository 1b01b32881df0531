/* Fuzzer: a frame of content, with its zstd stream. */
#include "config.h"

#include <stdlib.h>

#include "frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct decompressor *d;
	struct frame_header h;
	uint8_t *out;

	if (size < FRAME_HEADER_SIZE || frame_decode_header(data, 0, &h) < 0)
		return 0;
	if (h.raw_size > FRAME_RAW_MAX)
		abort();
	d = decompressor_new();
	out = malloc(h.raw_size ? h.raw_size : 1);
	if (!d || !out)
		abort();
	(void)frame_decode(d, data, size, (struct frame_place){ 0, 0 }, out,
			   h.raw_size);
	free(out);
	decompressor_free(d);
	return 0;
}
