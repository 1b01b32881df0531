/*
 * `staging` served through the mount, for programs that see only the mount: a
 * whole POSIX directory that leads to the staging directory in the spool.
 */
#ifndef INCR_STAGING_FS_H
#define INCR_STAGING_FS_H

#include "fs.h"

#include <dirent.h>
#include <pthread.h>

/* The root of an output's staging; for layout_add_node(). */
int staging_root_new(struct incr_mount *m, size_t idx, struct node **out_node,
		     struct incr_error *err);

struct staging_node;

/* A name of a node.  Holds a lookup of its parent. */
struct staging_link {
	struct staging_node *parent, *child;
	char *name; /* owned */
	struct staging_link *next_of_child;
};

/* An open file or directory. */
struct staging_handle {
	int fd;
	DIR *dir; /* of @fd, which it owns then; NULL for a file */
	struct staging_handle *next;
};

/* What is shared by the nodes of one output; lives as long as its root. */
struct staging {
	size_t idx;
	int root_fd; /* owned */
	pthread_mutex_t lock; /* guards names and handles of all nodes */
};

/* A file or directory: one node for each inode, whatever its names. */
struct staging_node {
	struct node node;
	struct staging *staging; /* borrowed; owned by the root */
	bool is_root;
	dev_t dev;
	ino_t ino;
	struct staging_link *links;
	struct staging_handle *handles;
};

/* staging_node.c; the lock of the staging is held. */

/*
 * A descriptor of the node, found by one of its names, or of an open file if it
 * has none.  Returns it, to be closed, or a negative errno; ESTALE if another
 * file is there now.
 */
int staging_open(struct staging_node *s, int flags);
/* The directory @parent, for the *at() calls; the same. */
int staging_open_dir(struct staging_node *parent);
/*
 * Stat @name in the open directory @dir_fd and count a lookup of its node.
 * 0 or a negative errno.
 */
int staging_look_up(struct incr_mount *m, struct staging_node *parent,
		    int dir_fd, const char *name, struct fuse_entry_param *e);
/* @s is not called @name any more.  is_last: its file is gone. */
void staging_forget_name(struct incr_mount *m, struct staging_node *s,
			 struct staging_node *parent, const char *name,
			 bool is_last);
/* @s is called @name too.  0 or -ENOMEM. */
int staging_add_name(struct incr_mount *m, struct staging_node *s,
		     struct staging_node *parent, const char *name);
/* The node of an entry that staging_look_up() gave. */
struct staging_node *staging_of(struct incr_mount *m,
				const struct fuse_entry_param *e);
void staging_fill_stat(struct stat *st);
extern const struct node_ops staging_node_ops;
void staging_free(struct incr_mount *m, struct node *n);

/* staging_ops.c: the operations that write; EROFS for all other nodes. */
void staging_op_setattr(fuse_req_t req, fuse_ino_t id, struct stat *attr,
			int to_set, struct fuse_file_info *fi);
void staging_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode, dev_t rdev);
void staging_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode);
void staging_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void staging_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void staging_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
			const char *name);
void staging_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		       fuse_ino_t new_parent, const char *new_name,
		       unsigned int flags);
void staging_op_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t new_parent,
		     const char *new_name);
void staging_op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		       mode_t mode, struct fuse_file_info *fi);
void staging_op_write(fuse_req_t req, fuse_ino_t id, const char *data,
		      size_t size, off_t off, struct fuse_file_info *fi);
void staging_op_fsync(fuse_req_t req, fuse_ino_t id, int is_data_only,
		      struct fuse_file_info *fi);
void staging_op_fsyncdir(fuse_req_t req, fuse_ino_t id, int is_data_only,
			 struct fuse_file_info *fi);
void staging_op_fallocate(fuse_req_t req, fuse_ino_t id, int mode, off_t off,
			  off_t length, struct fuse_file_info *fi);
void staging_op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off,
				struct fuse_file_info *from_fi, fuse_ino_t to,
				off_t to_off, struct fuse_file_info *to_fi,
				size_t size, int flags);
void staging_op_lseek(fuse_req_t req, fuse_ino_t id, off_t off, int whence,
		      struct fuse_file_info *fi);

/* Register an open file of @s, and answer open with it. */
void staging_reply_open(fuse_req_t req, struct staging_node *s, int fd,
			struct fuse_file_info *fi);
/* The same for a file that was just made. */
void staging_reply_create(fuse_req_t req, struct staging_node *s, int fd,
			  const struct fuse_entry_param *e,
			  struct fuse_file_info *fi);
int staging_fd(const struct fuse_file_info *fi);
/* staging_open(), with the lock taken. */
int staging_open_node(struct staging_node *s, int flags);
/* The node if it is one of a staging; NULL: @req was answered with EROFS. */
struct staging_node *staging_need(fuse_req_t req, fuse_ino_t id);

#endif
