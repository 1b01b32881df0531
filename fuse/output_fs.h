/*
 * Live views of an output: `added`, what was staged so far, and `current`, the
 * same laid upon the view that the output had at the start.
 *
 * Nothing here is kept by the kernel but pages: each lookup looks at the
 * staging directory.  A file is known by its path and by inode, size and times,
 * so a file that changed is another node and old pages never answer for it.
 */
#ifndef INCR_OUTPUT_FS_H
#define INCR_OUTPUT_FS_H

#include "fs.h"

/* An output while it is mounted; lives as long as the mount. */
struct output {
	size_t idx;
	int staging_fd; /* its directory; owned */
	struct view_slot *base; /* borrowed */
};

int output_new(struct incr_mount *m, size_t idx, struct output **out_output,
	       struct incr_error *err);
void output_free(struct output *o);

/* The root of `added` or of `current`; for layout_add_node(). */
int output_root_new(struct output *o, bool is_current, struct node **out_node);

/* Between output_fs.c and output_dir.c. */
struct live_node {
	struct node node;
	struct output *output; /* borrowed */
	bool is_dir;
	bool is_current; /* directories only */
	char *path; /* below the view; owned */
	struct stat st; /* as it was at the lookup */
};

/*
 * Open what is staged at @path, never through a symbolic link.  Returns the
 * descriptor or a negative errno.
 */
int output_open(const struct output *o, const char *path, int flags);
/*
 * The path of @name in @dir, in @path of PATH_MAX bytes.  False: it is too long.
 */
bool output_join(const struct live_node *dir, const char *name, char *path);
/* An inode number for a directory. */
uint64_t output_dir_ino(const struct live_node *dir, const char *path);
/* One for a staged file. */
uint64_t output_file_ino(dev_t dev, ino_t ino);

void output_opendir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    struct fuse_file_info *fi);
void output_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    const struct dir_request *dr);
void output_releasedir(struct incr_mount *m, fuse_req_t req, struct node *n,
		       struct fuse_file_info *fi);

#endif
