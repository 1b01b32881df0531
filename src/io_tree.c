/*
 * Removing a tree of any depth with two descriptors: a directory found two
 * levels down is moved up to the first level, where the next pass finds it.
 */
#include "config.h"

#include "buf.h"
#include "error.h"
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A walk gives -errno for its own failures, so it needs another value here. */
#define WALK_FAILED 1

struct removal {
	const struct incr_io *io;
	const char *path; /* of the tree, for messages */
	int top; /* descriptor of the tree */
	int dir; /* of the directory being emptied */
	unsigned n_moved;
	bool is_progress; /* something was removed or moved in this pass */
	int failure; /* code of the failure that ended a walk with WALK_FAILED */
	struct incr_error *err;
};

static int fail(struct removal *rm, int sys_errno, const char *name)
{
	rm->failure = incr_fail_errno(rm->err, sys_errno, rm->path,
				      "cannot remove \"%s\" in it", name);
	return WALK_FAILED;
}

/* What a walk returned, as a code. */
static int walk_result(struct removal *rm, int r)
{
	if (r < 0)
		return incr_fail_errno(rm->err, r, rm->path, "cannot list");
	return r ? rm->failure : 0;
}

/* Open a directory, and make it one that its owner can empty. */
static int open_dir(const struct incr_io *io, int dirfd, const char *name)
{
	int fd = io->open_at(io, dirfd, name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct io_stat st;

	if (fd >= 0 && io->stat_at(io, fd, "", &st) == 0 &&
	    (st.mode & 0700) != 0700)
		(void)io->chmod(io, fd, 0700); /* the removal will tell */
	return fd;
}

/* Move a directory of rm->dir into rm->top, under a name not in use there. */
static int move_up(struct removal *rm, const char *name)
{
	int fd = open_dir(rm->io, rm->dir, name), r;
	char fresh[32];

	if (fd < 0)
		return fail(rm, fd, name);
	(void)io_close(rm->io, fd); /* was opened for its mode only */
	do {
		(void)snprintf(fresh, sizeof(fresh), ".removed-%u",
			       rm->n_moved++);
		r = rm->io->rename_at(rm->io, rm->dir, name, rm->top, fresh,
				      RENAME_NOREPLACE);
	} while (r == -EEXIST);
	return r < 0 ? fail(rm, r, name) : 0;
}

static int is_directory(struct removal *rm, int dirfd, const char *name,
			enum io_kind kind)
{
	struct io_stat st;
	int r;

	if (kind != IO_OTHER)
		return kind == IO_DIR;
	r = rm->io->stat_at(rm->io, dirfd, name, &st);
	return r < 0 ? r : st.kind == IO_DIR;
}

static int remove_at_second(void *closure, const char *name, enum io_kind kind)
{
	struct removal *rm = closure;
	int r = is_directory(rm, rm->dir, name, kind);

	if (r < 0)
		return r == -ENOENT ? 0 : fail(rm, r, name);
	rm->is_progress = true;
	r = rm->io->unlink_at(rm->io, rm->dir, name, r ? AT_REMOVEDIR : 0);
	if (r == 0 || r == -ENOENT)
		return 0;
	if (r == -ENOTEMPTY || r == -EEXIST)
		return move_up(rm, name);
	return fail(rm, r, name);
}

static int remove_at_first(void *closure, const char *name, enum io_kind kind)
{
	struct removal *rm = closure;
	int r = is_directory(rm, rm->top, name, kind);

	if (r < 0)
		return r == -ENOENT ? 0 : fail(rm, r, name);
	rm->is_progress = true;
	if (r == 0) {
		r = rm->io->unlink_at(rm->io, rm->top, name, 0);
		return r < 0 && r != -ENOENT ? fail(rm, r, name) : 0;
	}

	rm->dir = open_dir(rm->io, rm->top, name);
	if (rm->dir < 0)
		return rm->dir == -ENOENT ? 0 : fail(rm, rm->dir, name);
	r = rm->io->readdir(rm->io, rm->dir, remove_at_second, rm);
	(void)io_close(rm->io, rm->dir); /* nothing was written */
	if (r != 0)
		return r < 0 ? fail(rm, r, name) : r;
	r = rm->io->unlink_at(rm->io, rm->top, name, AT_REMOVEDIR);
	/* Not empty: the walk missed an entry; the next pass sees it. */
	return r < 0 && r != -ENOENT && r != -ENOTEMPTY ? fail(rm, r, name) : 0;
}

int io_remove_tree(const struct incr_io *io, int dirfd, const char *path,
		   struct incr_error *err)
{
	_cleanup_io_file_ struct io_file top = { io, -1 };
	struct removal rm = { .io = io, .path = path, .err = err };
	int r = io->unlink_at(io, dirfd, path, 0);

	if (r == 0 || r == -ENOENT)
		return 0;
	if (r != -EISDIR && r != -EPERM)
		return incr_fail_errno(err, r, path, "cannot remove");

	top.fd = open_dir(io, dirfd, path);
	if (top.fd < 0)
		return incr_fail_errno(err, top.fd, path, "cannot remove");
	rm.top = top.fd;
	/* A walk may miss what is moved or made meanwhile: until none is left. */
	do {
		rm.is_progress = false;
		r = io->readdir(io, top.fd, remove_at_first, &rm);
		if (r != 0)
			return walk_result(&rm, r);
	} while (rm.is_progress);

	r = io->unlink_at(io, dirfd, path, AT_REMOVEDIR);
	if (r < 0 && r != -ENOENT)
		return incr_fail_errno(err, r, path, "cannot remove");
	return 0;
}
