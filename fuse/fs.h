/*
 * What the parts of the mount share: struct incr_mount and the helpers that
 * every kind of node needs.
 */
#ifndef INCR_FS_H
#define INCR_FS_H

#include "ahead.h"
#include "fuse_api.h"
#include "mount.h"
#include "node.h"
#include "push.h"
#include "serve.h"
#include "view_fs.h"
#include "watch.h"

#include <sys/stat.h>

#define FS_MAX_READ 1048576 /* bytes of one request */

struct incr_mount {
	struct incr_mount_options options;
	char *path; /* of the mount point, absolute */
	struct incr_store *store;
	struct incr_build *build; /* NULL: a browser */
	int64_t at_ns; /* of a browser; 0: live */
	uid_t uid;
	gid_t gid;
	struct timespec started; /* time of directories that have none */
	bool answers_open; /* else open is ENOSYS */
	bool was_served;
	size_t n_outputs; /* of a build */
	struct output **outputs; /* owned */

	struct fuse_session *se;
	dev_t dev; /* of the mounted filesystem */
	struct serve serve;
	struct node_table nodes;
	struct view_slots slots;
	struct dir_cache dirs;
	struct push push;
	uint64_t told_damage; /* atomic: stable id of the file last told of */
	struct ahead ahead;
	pthread_mutex_t store_lock; /* guards @store in a browser */
	struct watch watch; /* of @store, in a live browser */
};

/* The operations of the session; its userdata is the struct incr_mount. */
extern const struct fuse_lowlevel_ops fs_ops;

/* Call the log function, if there is one. */
void fs_log(const struct incr_mount *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Answer with the errno of a library error; what is damaged goes to the log. */
void fs_reply_error(struct incr_mount *m, fuse_req_t req, int code,
		    const struct incr_error *err);

/* The same for the bytes of a file; one line, however often it is tried. */
void fs_reply_unreadable(struct incr_mount *m, fuse_req_t req,
			 const struct incr_node *file, int code,
			 const struct incr_error *err);

/* Attributes of a read-only directory, link or file of the mount. */
void fs_fill_stat(const struct incr_mount *m, struct stat *st, uint64_t ino,
		  mode_t mode, uint64_t size, struct timespec mtime);

struct timespec fs_timespec(int64_t ns);

/* Directory entries on their way to the kernel. */
struct dir_buffer {
	fuse_req_t req;
	char *data; /* owned */
	size_t size, used;
	bool has_attrs;
};

int dir_buffer_init(struct dir_buffer *b, fuse_req_t req,
		    const struct dir_request *dr);
void dir_buffer_release(struct dir_buffer *b);
/* False: it is full.  @cookie: continue behind this entry. */
bool dir_buffer_add(struct dir_buffer *b, const char *name,
		    const struct fuse_entry_param *e, uint64_t cookie);
/* "." and "..", as far as they lie behind @off.  False: it is full. */
bool dir_buffer_add_dots(struct dir_buffer *b, uint64_t off, uint64_t ino);
void dir_buffer_reply(struct dir_buffer *b);

#endif
