/*
 * libfuse as all files of the mount include it, and two kinds of request.
 */
#ifndef INCR_FUSE_API_H
#define INCR_FUSE_API_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREVER 1e9 /* seconds that the kernel may keep what never changes */

struct dir_request {
	struct fuse_file_info *fi;
	size_t size;
	uint64_t off; /* the cookie of the last entry; 0: from the start */
	bool has_attrs; /* READDIRPLUS */
};

struct read_request {
	struct fuse_file_info *fi;
	size_t size;
	uint64_t off;
};

#endif
