/*
 * The browser: a mount of the whole store.
 *
 *	<part>/<part>/...       datasets, by the parts of their names
 *	<dataset>/current/      the view at the head of main
 *	<dataset>/@t42/         the view at a transaction of the dataset
 *	<dataset>/:<branch>/    the same for another branch
 */
#ifndef INCR_BROWSE_FS_H
#define INCR_BROWSE_FS_H

#include "fs.h"

int browse_init(struct incr_mount *m, struct incr_error *err);

/* What `current` led to when the store was read last. */
struct browse_head {
	uint64_t generation; /* of the watch, before that; 0: not read yet */
	uint64_t dataset_id, txn;
	struct timespec time;
};

/* A directory above views. */
struct browse_dir {
	struct node node;
	char *path; /* dataset name, or the first parts of one; owned */
	char *branch; /* owned; NULL: not the directory of a branch */
	pthread_mutex_t lock; /* guards @head */
	struct browse_head head;
};

/* The root of a view, which is opened when somebody looks into it. */
struct browse_view {
	struct node node;
	uint64_t dataset_id, txn;
	struct timespec time;
	struct view_slot *slot; /* guarded by store_lock until it is set */
};

/*
 * The head that a branch shows, at the time of the mount: 0, or 1 if there is
 * no such branch.  store_lock is held.
 */
int browse_head(struct incr_mount *m, uint64_t dataset_id, const char *branch,
		uint64_t *out_head, struct incr_error *err);

/* Numbers of a directory or of a view, as stat tells them. */
uint64_t browse_dir_ino(const char *path, const char *branch);
uint64_t browse_view_ino(uint64_t dataset_id, uint64_t txn);

/* browse_dir.c: listing. */
void browse_opendir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    struct fuse_file_info *fi);
void browse_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    const struct dir_request *dr);
void browse_releasedir(struct incr_mount *m, fuse_req_t req, struct node *n,
		       struct fuse_file_info *fi);

/* Every dataset below a directory.  @rest: its name behind the directory. */
typedef int (*browse_child_fn)(void *closure, const char *rest);
int browse_each_below(struct incr_mount *m, const char *path,
		      browse_child_fn fn, void *closure,
		      struct incr_error *err);

#endif
