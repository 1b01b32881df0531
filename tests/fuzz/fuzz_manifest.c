/* Fuzzer: a manifest and the content descriptors in it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest_reader *m;
	const struct manifest_entry *e;
	char last[4096];
	size_t last_length = 0;

	if (manifest_reader_new_memory(data, size, 4096, &m) < 0)
		abort();
	while (manifest_reader_next(m, &e, NULL) == 0) {
		struct buf again = BUF_INIT;
		size_t shared = last_length < e->path_length ? last_length :
							       e->path_length;

		if (e->path_length >= sizeof(last) ||
		    memchr(e->path, 0, e->path_length) ||
		    (last_length && memcmp(last, e->path, shared) > 0) ||
		    manifest_encode(e, &again) < 0)
			abort();
		memcpy(last, e->path, e->path_length);
		last_length = e->path_length;
		buf_release(&again);
	}
	manifest_reader_free(m);
	return 0;
}
