/* The `format` file: what makes a directory a store. docs/format.md, "The format file". */
#ifndef INCR_STORE_FORMAT_H
#define INCR_STORE_FORMAT_H

#include "store.h"

#define STORE_FORMAT_FILE "format"
#define STORE_FORMAT_SIZE 128
#define STORE_FORMAT_MAGIC "INCRSTOR"
#define STORE_FORMAT_VERSION 1
/* Feature flags of three classes; no flag is in use yet. */
#define STORE_KNOWN_INCOMPATIBLE UINT64_C(0) /* unknown bit: refuse to open */
#define STORE_KNOWN_READ_COMPATIBLE \
	UINT64_C(0) /* unknown bit: open read-only */

/* Open the directory and read its format file into @st: path, dirfd, uuid, tag, is_readonly. */
int store_format_open(struct incr_store *st, const char *path,
		      struct incr_error *err);

#endif
