/*
 * The layout of a mount made of plain files, where there is no FUSE.
 *
 * Files of a view come in path order, so the directories of one are those of
 * the file before it, or new ones.  What `current` has is in other views too:
 * where the filesystem can, those share its blocks.
 */
#include "config.h"

#include "error_map.h"
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_SIZE (1 << 20)

/* A directory that is being filled. */
struct copy {
	int dir_fd; /* of the layout */
	char *buffer; /* COPY_SIZE bytes */
	bool cannot_clone; /* the filesystem said so */
	struct incr_view *current; /* borrowed; NULL: not copied yet */
	char current_path[256];
	struct incr_error *err;
};

static int fail_errno(const struct copy *c, const char *path)
{
	int e = errno;

	return mount_fail(c->err,
			  e == ENOSPC || e == EDQUOT ? INCR_E_NOSPC : INCR_E_IO,
			  "copy-failed", e, path, "cannot write the copy");
}

static int make_dir(const struct copy *c, const char *path)
{
	if (mkdirat(c->dir_fd, path, 0777) < 0 && errno != EEXIST)
		return fail_errno(c, path);
	return 0;
}

static int make_link(const struct copy *c, const char *path, const char *target)
{
	return symlinkat(target, c->dir_fd, path) < 0 ? fail_errno(c, path) : 0;
}

/* Make all directories above @path. */
static int make_parents(const struct copy *c, char *path)
{
	int r = 0;

	for (char *slash = strchr(path, '/'); slash != NULL && r == 0;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_dir(c, path);
		*slash = '/';
	}
	return r;
}

static int write_bytes(const struct copy *c, int fd, const char *path,
		       const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(c, path);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The mode comes last, without write bits; then the time. */
static int finish(const struct copy *c, int fd, const char *path, mode_t mode,
		  const int64_t *mtime_ns)
{
	struct timespec times[2];

	if (fchmod(fd, mode & 0555) < 0)
		return fail_errno(c, path);
	if (mtime_ns == NULL)
		return 0;
	times[1].tv_sec = *mtime_ns / 1000000000;
	times[1].tv_nsec = *mtime_ns % 1000000000;
	if (times[1].tv_nsec < 0) {
		times[1].tv_sec--;
		times[1].tv_nsec += 1000000000;
	}
	times[0] = times[1];
	return futimens(fd, times) < 0 ? fail_errno(c, path) : 0;
}

static int open_new(const struct copy *c, const char *path)
{
	int fd = openat(c->dir_fd, path,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);

	return fd < 0 ? fail_errno(c, path) : fd;
}

static int close_new(const struct copy *c, int fd, const char *path, int r)
{
	if (close(fd) < 0 && r == 0)
		return fail_errno(c, path);
	return r;
}

/* The copy that `current` has of the same version, or -1. */
static int open_first(const struct copy *c, const struct incr_node *node)
{
	struct incr_node first = INCR_NODE_INIT;
	char *path = NULL;
	int fd = -1;

	if (incr_view_find(c->current, node->path, node->path_length, &first,
			   NULL) == 0 &&
	    !first.is_dir && first.stable_id == node->stable_id &&
	    first.size == node->size &&
	    asprintf(&path, "%s/%s", c->current_path, node->path) >= 0) {
		fd = openat(c->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		free(path);
	}
	incr_node_release(&first);
	return fd;
}

static bool clone_file(struct copy *c, int fd, const struct incr_node *node)
{
	int first;
	bool is_done;

	if (c->cannot_clone || c->current == NULL)
		return false;
	first = open_first(c, node);
	if (first < 0)
		return false;
	is_done = ioctl(fd, FICLONE, first) == 0;
	c->cannot_clone = !is_done;
	(void)close(first);
	return is_done;
}

static int copy_file(struct copy *c, const char *path, struct incr_view *view,
		     const struct incr_node *node)
{
	uint64_t off = 0;
	size_t size = 0;
	int fd = open_new(c, path), r = 0;

	if (fd < 0)
		return fd;
	if (clone_file(c, fd, node))
		off = node->size;
	while (r == 0 && off < node->size) {
		r = incr_file_read(view, node, off, c->buffer, COPY_SIZE, &size,
				   c->err);
		if (r == 0)
			r = write_bytes(c, fd, path, c->buffer, size);
		off += size;
	}
	if (r == 0)
		r = finish(c, fd, path, node->mode, &node->mtime_ns);
	return close_new(c, fd, path, r);
}

static int copy_view(struct copy *c, const char *dir, struct incr_view *view)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it = NULL;
	char *path = NULL;
	int r;

	r = make_dir(c, dir);
	if (r == 0)
		r = incr_view_iter_new(view, NULL, 0, &it, c->err);
	if (r < 0)
		return r;
	while ((r = incr_view_iter_next(it, &node, c->err)) == 0) {
		if (asprintf(&path, "%s/%s", dir, node.path) < 0) {
			r = mount_fail_nomem(c->err);
			break;
		}
		r = make_parents(c, path);
		if (r == 0)
			r = copy_file(c, path, view, &node);
		free(path);
		if (r < 0)
			break;
	}
	incr_view_iter_free(it);
	incr_node_release(&node);
	return r < 0 ? r : 0;
}

static int copy_bytes(const struct copy *c, const char *path, const char *data,
		      size_t size)
{
	int fd = open_new(c, path), r;

	if (fd < 0)
		return fd;
	r = write_bytes(c, fd, path, data, size);
	if (r == 0)
		r = finish(c, fd, path, 0444, NULL);
	return close_new(c, fd, path, r);
}

static int copy_list(const struct copy *c, const char *path,
		     struct incr_view *view)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it = NULL;
	int fd = open_new(c, path), copy, r;
	FILE *out;

	if (fd < 0)
		return fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	out = copy < 0 ? NULL : fdopen(copy, "w");
	r = out == NULL ? mount_fail_nomem(c->err) :
			  incr_view_iter_new(view, NULL, 0, &it, c->err);
	if (r == 0) {
		while ((r = incr_view_iter_next(it, &node, c->err)) == 0)
			(void)fwrite(node.path, 1, node.path_length + 1, out);
		incr_view_iter_free(it);
		incr_node_release(&node);
	}
	if (out != NULL && fclose(out) != 0 && r >= 0)
		r = fail_errno(c, path);
	if (r >= 0)
		r = finish(c, fd, path, 0444, NULL);
	return close_new(c, fd, path, r);
}

/* The others of its input or output come after it, then the next input. */
static int copy_current(struct copy *c, const char *path,
			struct incr_view *view)
{
	int r;

	c->current = NULL;
	r = copy_view(c, path, view);
	if (r == 0) {
		(void)snprintf(c->current_path, sizeof(c->current_path), "%s",
			       path);
		c->current = view;
	}
	return r;
}

static int copy_input_view(struct copy *c, struct incr_build *b,
			   const char *alias, size_t idx,
			   enum incr_view_kind kind)
{
	struct incr_view *view = incr_build_input_view(b, idx, kind);
	char path[256];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", alias,
		       incr_view_kind_name(kind));
	r = kind == INCR_VIEW_CURRENT ? copy_current(c, path, view) :
					copy_view(c, path, view);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), ".incr/%s.%s", alias,
		       incr_view_kind_name(kind));
	return copy_list(c, path, view);
}

static int copy_input(struct copy *c, struct incr_build *b, const char *alias,
		      size_t idx)
{
	int r;

	r = make_dir(c, alias);
	if (r == 0)
		r = copy_input_view(c, b, alias, idx, INCR_VIEW_CURRENT);
	for (int i = 0; i < INCR_N_VIEW_KINDS && r == 0; i++) {
		if (i != INCR_VIEW_CURRENT)
			r = copy_input_view(c, b, alias, idx,
					    (enum incr_view_kind)i);
	}
	return r;
}

static int copy_previous(struct copy *c, struct incr_build *b, const char *path,
			 size_t idx)
{
	char file[512];
	const char *empty;
	size_t size;
	int r;

	empty = incr_build_empty_previous(b, idx, &size);
	if (empty == NULL)
		return copy_view(c, path, incr_build_output_previous(b, idx));
	r = make_dir(c, path);
	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), "%s/empty.csv", path);
	return copy_bytes(c, file, empty, size);
}

static int link_abort(const struct copy *c, const struct incr_build *b,
		      const char *alias)
{
	char path[256], target[PATH_MAX];

	(void)snprintf(path, sizeof(path), ".incr/abort%s%s",
		       *alias == '\0' ? "" : "-", alias);
	if ((size_t)snprintf(target, sizeof(target), "%s/%s",
			     incr_build_spool(b),
			     path + strlen(".incr/")) >= sizeof(target)) {
		errno = ENAMETOOLONG;
		return fail_errno(c, path);
	}
	return make_link(c, path, target);
}

static int copy_output(struct copy *c, struct incr_build *b, const char *alias,
		       size_t idx)
{
	const char *staging = incr_build_staging(b, idx);
	char path[256];
	int r;

	r = make_dir(c, alias);
	(void)snprintf(path, sizeof(path), "%s/staging", alias);
	if (r == 0)
		r = make_link(c, path, staging);
	(void)snprintf(path, sizeof(path), "%s/added", alias);
	if (r == 0)
		r = make_link(c, path, staging);
	(void)snprintf(path, sizeof(path), "%s/current", alias);
	if (r == 0)
		r = copy_current(c, path, incr_build_output_base(b, idx));
	(void)snprintf(path, sizeof(path), "%s/previous", alias);
	if (r == 0)
		r = copy_previous(c, b, path, idx);
	return r == 0 ? link_abort(c, b, alias) : r;
}

static int copy_all(struct copy *c, struct incr_build *b,
		    const struct incr_copy_options *options)
{
	const struct incr_plan *plan = incr_build_plan(b);
	int r;

	r = make_dir(c, ".incr");
	if (r == 0 && options->build_json != NULL)
		r = copy_bytes(c, ".incr/build.json", options->build_json,
			       options->build_json_size);
	if (r == 0)
		r = link_abort(c, b, "");
	for (size_t i = 0; i < plan->n_inputs && r == 0; i++)
		r = copy_input(c, b, plan->inputs[i].alias, i);
	for (size_t i = 0; i < plan->n_outputs && r == 0; i++)
		r = copy_output(c, b, plan->outputs[i].alias, i);
	return r;
}

int incr_copy_layout(struct incr_build *b,
		     const struct incr_copy_options *options,
		     struct incr_error *err)
{
	struct copy c = { .err = err };
	int r;

	c.dir_fd = open(options->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c.dir_fd < 0)
		return fail_errno(&c, options->directory);
	c.buffer = malloc(COPY_SIZE);
	r = c.buffer == NULL ? mount_fail_nomem(err) : copy_all(&c, b, options);
	free(c.buffer);
	(void)close(c.dir_fd);
	return r;
}
