/*
 * Fixed files: bytes in memory, and lists of a view's paths.
 *
 * A list is written to an unnamed file when somebody looks it up, since its
 * size has to be told before it is read.
 */
#include "config.h"

#include "error_map.h"
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct layout_file {
	struct node node;
	const char *data; /* borrowed; or */
	struct incr_view *view; /* shared(ref) */
	pthread_mutex_t lock; /* guards what follows */
	int fd; /* of the list; -1: not made yet */
	uint64_t size;
};

static const struct node_ops file_ops;

static int open_unnamed(const struct incr_mount *m)
{
	int fd;

	fd = open(incr_build_spool(m->build), O_TMPFILE | O_RDWR | O_CLOEXEC,
		  0600);
	if (fd < 0)
		fd = memfd_create("incr-list", MFD_CLOEXEC);
	return fd;
}

static int write_paths(FILE *out, struct incr_view *view,
		       struct incr_error *err)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	int r;

	r = incr_view_iter_new(view, NULL, 0, &it, err);
	if (r < 0)
		return r;
	while ((r = incr_view_iter_next(it, &node, err)) == 0)
		(void)fwrite(node.path, 1, node.path_length + 1, out);
	incr_view_iter_free(it);
	incr_node_release(&node);
	return r < 0 ? r : 0;
}

/* Make the list.  The lock is held. */
static int make_list(const struct incr_mount *m, struct layout_file *f,
		     struct incr_error *err)
{
	int fd = open_unnamed(m), r;
	FILE *out;
	off_t size;

	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return mount_fail(err, INCR_E_IO, "list-failed", errno, NULL,
				  "no file for a list of paths");
	}
	r = write_paths(out, f->view, err);
	size = fflush(out) == 0 && ferror(out) == 0 ? ftello(out) : -1;
	if (r == 0 && size < 0)
		r = mount_fail(err, INCR_E_IO, "list-failed", errno, NULL,
			       "cannot write a list of paths");
	if (r == 0) {
		f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		f->size = (uint64_t)size;
		if (f->fd < 0)
			r = mount_fail(err, INCR_E_IO, "list-failed", errno,
				       NULL, "no descriptor for a list");
	}
	(void)fclose(out); /* flushed already */
	return r;
}

static int file_entry(struct incr_mount *m, struct node *n, bool is_lookup,
		      struct fuse_entry_param *e)
{
	struct layout_file *f = (struct layout_file *)n;
	struct incr_error err = INCR_ERROR_INIT;
	int r = 0;

	*e = (struct fuse_entry_param){
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	(void)pthread_mutex_lock(&f->lock);
	if (f->view != NULL && f->fd < 0 && is_lookup) {
		serve_yield(&m->serve);
		r = make_list(m, f, &err);
	}
	if (r == 0 && (f->view == NULL || f->fd >= 0))
		e->ino = n->id;
	fs_fill_stat(m, &e->attr, n->id, S_IFREG | 0444, f->size, m->started);
	(void)pthread_mutex_unlock(&f->lock);
	if (r < 0)
		fs_log(m, "%s: %s", err.word, err.message);
	incr_error_release(&err);
	return r;
}

static void file_getattr(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	struct fuse_entry_param e;

	(void)file_entry(m, n, false, &e);
	(void)fuse_reply_attr(req, &e.attr, FOREVER);
}

static void file_read(struct incr_mount *m, fuse_req_t req, struct node *n,
		      const struct read_request *rr)
{
	const struct layout_file *f = (const struct layout_file *)n;
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(0);
	uint64_t left = rr->off < f->size ? f->size - rr->off : 0;

	(void)m;
	data.buf[0].size = left < rr->size ? left : rr->size;
	if (left == 0 || f->view == NULL) {
		(void)fuse_reply_buf(req, left == 0 ? NULL : f->data + rr->off,
				     data.buf[0].size);
		return;
	}
	data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
	data.buf[0].fd = f->fd;
	data.buf[0].pos = (off_t)rr->off;
	(void)fuse_reply_data(req, &data, 0);
}

static void file_free(struct incr_mount *m, struct node *n)
{
	struct layout_file *f = (struct layout_file *)n;

	(void)m;
	if (f->view != NULL)
		incr_view_unref(f->view);
	if (f->fd >= 0)
		(void)close(f->fd);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
}

static const struct node_ops file_ops = {
	.entry = file_entry,
	.getattr = file_getattr,
	.read = file_read,
	.free = file_free,
};

static int add_file(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, const struct layout_file *init)
{
	struct layout_file *f = malloc(sizeof(*f));

	if (f == NULL)
		return INCR_E_NOMEM;
	*f = *init;
	f->node = (struct node){ .ops = &file_ops };
	f->fd = -1;
	(void)pthread_mutex_init(&f->lock, NULL);
	if (f->view != NULL)
		f->view = incr_view_ref(f->view);
	return layout_add_node(m, dir, name, &f->node);
}

int layout_add_bytes(struct incr_mount *m, struct layout_dir *dir,
		     const char *name, const char *data, size_t size)
{
	struct layout_file init = { .data = data, .size = size };

	return add_file(m, dir, name, &init);
}

int layout_add_list(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct incr_view *view)
{
	struct layout_file init = { .view = view };

	return add_file(m, dir, name, &init);
}
