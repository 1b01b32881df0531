/*
 * Writing files below a directory, by path, without ever following a symbolic
 * link that someone planted there.
 */
#ifndef INCR_TOOLS_TREE_H
#define INCR_TOOLS_TREE_H

#include "incr.h"

#include <stddef.h>
#include <stdint.h>

#define TREE_MAX_DEPTH 256

struct tree {
	int fds[TREE_MAX_DEPTH]; /* of the root and of the directories below */
	size_t depth; /* directories below the root that are open */
	char *path; /* owned: the innermost, relative; "" is the root */
	size_t path_length;
};

/* @path: absent or an empty directory, else INCR_E_EXISTS "not-empty". */
int tree_open(struct tree *tree, const char *path, struct incr_error *err);
void tree_close(struct tree *tree);
/*
 * Create a new file and open it for writing. Cheap when called in path order:
 * only directories that differ from the last call's are opened.
 */
int tree_create(struct tree *tree, const char *path, size_t length, int *out_fd,
		struct incr_error *err);

#endif
