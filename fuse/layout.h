/*
 * Fixed things of a mount: directories, links and small files that are there
 * from the start.
 */
#ifndef INCR_LAYOUT_H
#define INCR_LAYOUT_H

#include "fs.h"

struct layout_dir;

/* A directory below @parent, or the root of the mount if @parent is NULL. */
int layout_add_dir(struct incr_mount *m, struct layout_dir *parent,
		   const char *name, struct layout_dir **out_dir);
/* A symbolic link; @target is copied. */
int layout_add_link(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, const char *target);
/* A file of bytes in memory, which stay the caller's. */
int layout_add_bytes(struct incr_mount *m, struct layout_dir *dir,
		     const char *name, const char *data, size_t size);
/* The paths of a view, each with a NUL behind it; made when somebody looks. */
int layout_add_list(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct incr_view *view);
/* A node of another kind, which is taken into the node table. */
int layout_add_node(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct node *n);
/* The root of a view. */
int layout_add_view(struct layout_dir *dir, const char *name,
		    struct view_slot *slot);

/* All of a build: directories, views, outputs and `.incr`. */
int layout_build(struct incr_mount *m, struct incr_error *err);

#endif
