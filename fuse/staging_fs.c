/*
 * A served staging directory: looking, listing, opening and reading.
 *
 * Nothing is kept by the kernel without asking, since the same directory may be
 * written in the spool.
 */
#include "config.h"

#include "inode.h"
#include "output_fs.h"
#include "staging_fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void lock(struct staging_node *s)
{
	(void)pthread_mutex_lock(&s->staging->lock);
}

static void unlock(struct staging_node *s)
{
	(void)pthread_mutex_unlock(&s->staging->lock);
}

int staging_open_node(struct staging_node *s, int flags)
{
	int fd;

	lock(s);
	fd = staging_open(s, flags);
	unlock(s);
	return fd;
}

struct staging_node *staging_need(fuse_req_t req, fuse_ino_t id)
{
	struct incr_mount *m = fuse_req_userdata(req);
	struct node *n = NULL;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n != NULL && n->ops->is_writable)
		return (struct staging_node *)n;
	(void)fuse_reply_err(req, EROFS);
	return NULL;
}

static int staging_entry(struct incr_mount *m, struct node *n, bool is_lookup,
			 struct fuse_entry_param *e)
{
	struct staging_node *s = (struct staging_node *)n;

	(void)m;
	(void)is_lookup;
	*e = (struct fuse_entry_param){
		.ino = n->id,
		.entry_timeout = FOREVER, /* the root, which stays */
	};
	if (fstat(s->staging->root_fd, &e->attr) < 0)
		return INCR_E_IO;
	staging_fill_stat(&e->attr);
	return 0;
}

static void staging_lookup(struct incr_mount *m, fuse_req_t req, struct node *n,
			   const char *name)
{
	struct staging_node *s = (struct staging_node *)n;
	struct fuse_entry_param e;
	int fd, r;

	lock(s);
	fd = staging_open_dir(s);
	r = fd < 0 ? fd : staging_look_up(m, s, fd, name, &e);
	unlock(s);
	if (fd >= 0)
		(void)close(fd);
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &e) != 0)
		node_table_forget(&m->nodes, e.ino, 1);
}

static void staging_getattr(struct incr_mount *m, fuse_req_t req,
			    struct node *n)
{
	int fd = staging_open_node((struct staging_node *)n, O_PATH);
	struct stat st;
	int r;

	(void)m;
	r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
	if (fd >= 0)
		(void)close(fd);
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	staging_fill_stat(&st);
	(void)fuse_reply_attr(req, &st, 0);
}

static void staging_readlink(struct incr_mount *m, fuse_req_t req,
			     struct node *n)
{
	int fd = staging_open_node((struct staging_node *)n, O_PATH);
	char target[PATH_MAX + 1];
	ssize_t size;

	(void)m;
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	size = readlinkat(fd, "", target, PATH_MAX);
	if (size < 0) {
		(void)fuse_reply_err(req, errno);
	} else {
		target[size] = '\0';
		(void)fuse_reply_readlink(req, target);
	}
	(void)close(fd);
}

/* What is open */

int staging_fd(const struct fuse_file_info *fi)
{
	return ((const struct staging_handle *)(uintptr_t)fi->fh)->fd;
}

/* Takes @fd, also on failure; with @dir, which is of the same descriptor. */
static int add_handle(struct staging_node *s, int fd, DIR *dir,
		      struct fuse_file_info *fi)
{
	struct staging_handle *h = malloc(sizeof(*h));

	if (h == NULL) {
		(void)(dir != NULL ? closedir(dir) : close(fd));
		return -ENOMEM;
	}
	h->fd = fd;
	h->dir = dir;
	lock(s);
	h->next = s->handles;
	s->handles = h;
	unlock(s);
	fi->fh = (uint64_t)(uintptr_t)h;
	return 0;
}

static void remove_handle(struct staging_node *s, struct fuse_file_info *fi)
{
	struct staging_handle *h = (struct staging_handle *)(uintptr_t)fi->fh;
	struct staging_handle **at;

	lock(s);
	for (at = &s->handles; *at != h; at = &(*at)->next)
		;
	*at = h->next;
	unlock(s);
	(void)(h->dir != NULL ? closedir(h->dir) : close(h->fd));
	free(h);
}

/* Listing */

static void staging_opendir(struct incr_mount *m, fuse_req_t req,
			    struct node *n, struct fuse_file_info *fi)
{
	struct staging_node *s = (struct staging_node *)n;
	int fd = staging_open_node(s, O_RDONLY | O_DIRECTORY), r;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	(void)m;
	if (dir == NULL) {
		(void)fuse_reply_err(req, fd < 0 ? -fd : errno);
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	r = add_handle(s, fd, dir, fi);
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (fuse_reply_open(req, fi) != 0)
		remove_handle(s, fi);
}

static void staging_readdir(struct incr_mount *m, fuse_req_t req,
			    struct node *n, const struct dir_request *dr)
{
	const struct staging_node *s = (const struct staging_node *)n;
	DIR *dir = ((struct staging_handle *)(uintptr_t)dr->fi->fh)->dir;
	struct dir_buffer b;
	struct dirent *d;

	(void)m;
	if (dir_buffer_init(&b, req, dr) < 0) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	if ((uint64_t)telldir(dir) != dr->off)
		seekdir(dir, (long)dr->off);
	while ((d = readdir(dir)) != NULL) {
		struct fuse_entry_param e = { .ino = 0 };

		e.attr.st_mode = DTTOIF(d->d_type);
		e.attr.st_ino = output_file_ino(s->dev, d->d_ino);
		if (!dir_buffer_add(&b, d->d_name, &e, (uint64_t)d->d_off))
			break;
	}
	dir_buffer_reply(&b);
	dir_buffer_release(&b);
}

static void staging_releasedir(struct incr_mount *m, fuse_req_t req,
			       struct node *n, struct fuse_file_info *fi)
{
	(void)m;
	remove_handle((struct staging_node *)n, fi);
	(void)fuse_reply_err(req, 0);
}

/* Open files */

void staging_reply_open(fuse_req_t req, struct staging_node *s, int fd,
			struct fuse_file_info *fi)
{
	int r = fd < 0 ? fd : add_handle(s, fd, NULL, fi);

	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (fuse_reply_open(req, fi) != 0)
		remove_handle(s, fi);
}

void staging_reply_create(fuse_req_t req, struct staging_node *s, int fd,
			  const struct fuse_entry_param *e,
			  struct fuse_file_info *fi)
{
	int r = add_handle(s, fd, NULL, fi);

	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (fuse_reply_create(req, e, fi) != 0)
		remove_handle(s, fi);
}

static void staging_op_open(struct incr_mount *m, fuse_req_t req,
			    struct node *n, struct fuse_file_info *fi)
{
	struct staging_node *s = (struct staging_node *)n;
	int flags = fi->flags & (O_ACCMODE | O_TRUNC);

	(void)m;
	staging_reply_open(req, s, staging_open_node(s, flags | O_NONBLOCK),
			   fi);
}

static void staging_read(struct incr_mount *m, fuse_req_t req, struct node *n,
			 const struct read_request *rr)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(rr->size);

	(void)n;
	serve_yield(&m->serve);
	data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK |
			    FUSE_BUF_FD_RETRY;
	data.buf[0].fd = staging_fd(rr->fi);
	data.buf[0].pos = (off_t)rr->off;
	(void)fuse_reply_data(req, &data, 0);
}

static void staging_release(struct incr_mount *m, fuse_req_t req,
			    struct node *n, struct fuse_file_info *fi)
{
	(void)m;
	remove_handle((struct staging_node *)n, fi);
	(void)fuse_reply_err(req, 0);
}

const struct node_ops staging_node_ops = {
	.is_writable = true,
	.entry = staging_entry,
	.getattr = staging_getattr,
	.lookup = staging_lookup,
	.readlink = staging_readlink,
	.opendir = staging_opendir,
	.readdir = staging_readdir,
	.releasedir = staging_releasedir,
	.open = staging_op_open,
	.read = staging_read,
	.release = staging_release,
	.free = staging_free,
};
