/* One directory tree, file by file in byte order of the whole path. */
#ifndef INCR_SOURCE_TREE_H
#define INCR_SOURCE_TREE_H

#include "source_walk.h"

struct source_tree;
/* @prefix: "" or a path in the store without a '/' at its end. */
int source_tree_new(const struct incr_io *io, bool skips_special, int dirfd,
		    const char *path, const char *prefix,
		    struct source_tree **out_tree);
/* Leave out the directory with this device and inode; as the root it is an error. */
void source_tree_leave_out(struct source_tree *t, const struct io_stat *st);
void source_tree_free(struct source_tree *t);
/* 0 and an entry, 1 at the end. */
int source_tree_next(struct source_tree *t, struct source_entry *out_entry,
		     struct incr_error *err);

#endif
