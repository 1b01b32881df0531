/*
 * Staging into an OPEN transaction by hand.  A file is copied beside its
 * place, synced and renamed, so that what `put` acknowledged is whole after
 * any crash.
 */
#include "config.h"

#include "open_txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "hash.h"
#include "name.h"
#include "view.h"

#define TEMPORARY "incoming"
#define COPY_SIZE ((size_t)1 << 20)

static int copy_bytes(struct incr_store *st, int to, int from,
		      const char *thing, struct incr_error *err)
{
	_cleanup_free_ uint8_t *data = malloc(COPY_SIZE);
	uint64_t off = 0;

	if (!data)
		return incr_fail_nomem(err);
	for (;;) {
		int64_t n = st->io->read(st->io, from, data, COPY_SIZE);
		int r;

		if (n == -EINTR)
			continue;
		if (n < 0)
			return incr_fail_errno(err, (int)-n, thing,
					       "cannot read the source");
		if (!n)
			return 0;
		r = io_write_all(st->io, to, data, (size_t)n, off, thing, err);
		if (r < 0)
			return r;
		off += (uint64_t)n;
	}
}

/* @before: of the source when it was opened. */
static int check_unchanged(struct incr_store *st, int from,
			   const struct io_stat *before, const char *thing,
			   struct incr_error *err)
{
	struct io_stat s;
	int r = st->io->stat_at(st->io, from, "", &s);

	if (r < 0)
		return incr_fail_errno(err, r, thing, "cannot stat the source");
	if (s.size == before->size && s.mtime_ns == before->mtime_ns &&
	    s.ctime_ns == before->ctime_ns)
		return 0;
	return incr_fail(err, INCR_E_INVALID, "source-changed", thing,
			 "the source changed while it was read");
}

static int copy_to_temporary(struct incr_store *st, int spool, int from,
			     const struct io_stat *s, const char *thing,
			     struct incr_error *err)
{
	int to, closed;
	int r = io_open(st->io, spool, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC,
			0600, &to, err);

	if (r < 0)
		return r;
	r = copy_bytes(st, to, from, thing, err);
	if (r == 0 && s)
		r = check_unchanged(st, from, s, thing, err);
	if (r == 0 && s) {
		int e = st->io->chmod(st->io, to, s->mode & 0777);

		if (e == 0)
			e = st->io->set_times(st->io, to, s->mtime_ns);
		if (e < 0)
			r = incr_fail_errno(err, -e, thing,
					    "cannot set mode and time");
	} else if (r == 0) {
		int e = st->io->chmod(st->io, to, 0644);

		if (e < 0)
			r = incr_fail_errno(err, -e, thing,
					    "cannot set the mode");
	}
	if (r == 0)
		r = io_sync_file(st->io, to, thing, err);
	closed = io_close(st->io, to);
	if (closed < 0 && r == 0)
		r = incr_fail_errno(err, closed, thing,
				    "cannot close the staged file");
	return r;
}

/* Make every directory of @path below @dirfd, durably. */
static int make_parents(struct incr_store *st, int dirfd, const char *path,
			struct incr_error *err)
{
	char dir[NAME_PATH_MAX + 1];

	for (const char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - path);
		int r;

		memcpy(dir, path, length);
		dir[length] = '\0';
		r = st->io->mkdir_at(st->io, dirfd, dir, 0777);
		if (r == -EEXIST) {
			struct io_stat s;

			r = st->io->stat_at(st->io, dirfd, dir, &s);
			if (r == 0 && s.kind != IO_DIR)
				return incr_fail(
					err, INCR_E_CONFLICT, "path-conflict",
					path,
					"a path may not be a file and a directory at once");
		}
		if (r < 0)
			return incr_fail_errno(err, -r, path,
					       "cannot stage the path");
	}
	return 0;
}

/* fsync every directory from that of @path up to @dirfd itself. */
static int sync_parents(struct incr_store *st, int dirfd, const char *path,
			struct incr_error *err)
{
	char dir[NAME_PATH_MAX + 1];
	size_t length = strlen(path);

	for (;;) {
		int fd, r;

		while (length && path[length - 1] != '/')
			length--;
		length -= length > 0;
		memcpy(dir, path, length);
		dir[length] = '\0';
		r = io_open(st->io, dirfd, length ? dir : ".",
			    O_RDONLY | O_DIRECTORY, 0, &fd, err);
		if (r < 0)
			return r;
		r = io_sync_dir(st->io, fd, path, err);
		(void)io_close(st->io, fd); /* only read from */
		if (r < 0 || !length)
			return r;
	}
}

static int already_staged(struct incr_error *err, const char *path)
{
	incr_fail(err, INCR_E_CONFLICT, "already-staged", path,
		  "the path is staged already");
	incr_hint(err, "--overwrite replaces it");
	return INCR_E_CONFLICT;
}

static int move_into_place(struct incr_store *st, int spool, const char *path,
			   bool overwrites, struct incr_error *err)
{
	struct io_stat s;
	int dirfd, r;

	r = io_open(st->io, spool, PUT_DIR, O_RDONLY | O_DIRECTORY, 0, &dirfd,
		    err);
	if (r < 0)
		return r;
	r = make_parents(st, dirfd, path, err);
	if (r == 0 && st->io->stat_at(st->io, dirfd, path, &s) == 0) {
		/* an empty directory is what a put that failed left behind */
		if (s.kind == IO_DIR &&
		    st->io->unlink_at(st->io, dirfd, path, AT_REMOVEDIR) < 0)
			r = incr_fail(
				err, INCR_E_CONFLICT, "path-conflict", path,
				"a path may not be a file and a directory at once");
		else if (s.kind == IO_DIR)
			r = 0;
		else if (!overwrites)
			r = already_staged(err, path);
	}
	if (r == 0) {
		int e = st->io->rename_at(st->io, spool, TEMPORARY, dirfd, path,
					  0);

		if (e < 0)
			r = incr_fail_errno(err, -e, path,
					    "cannot stage the path");
	}
	if (r == 0)
		r = sync_parents(st, dirfd, path, err);
	(void)io_close(st->io, dirfd); /* only read from */
	return r;
}

/* @s: of a source that is a file; NULL: a stream. */
static int stage(struct open_txn *o, const char *path, int from,
		 const struct io_stat *s, bool overwrites,
		 struct incr_error *err)
{
	struct incr_store *st = o->st;
	int spool;
	int r = io_open(st->io, st->dirfd, o->spool, O_RDONLY | O_DIRECTORY, 0,
			&spool, err);

	if (r < 0)
		return r;
	r = copy_to_temporary(st, spool, from, s, path, err);
	if (r == 0)
		r = move_into_place(st, spool, path, overwrites, err);
	(void)io_close(st->io, spool);
	return r;
}

/* A regular file, opened so that a FIFO cannot block and a swapped link is seen. */
static int open_source(struct incr_store *st, const char *path, int *out_fd,
		       struct io_stat *out, struct incr_error *err)
{
	int fd = st->io->open_at(st->io, AT_FDCWD, path,
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	int r;

	if (fd == -ELOOP)
		return incr_fail(err, INCR_E_INVALID, "special-file", path,
				 "a symbolic link is no data");
	if (fd < 0)
		return incr_fail_errno(err, -fd, path,
				       "cannot open the source");
	r = st->io->stat_at(st->io, fd, "", out);
	if (r == 0 && out->kind == IO_FILE) {
		*out_fd = fd;
		return 0;
	}
	(void)io_close(st->io, fd); /* only looked at */
	if (r < 0)
		return incr_fail_errno(err, -r, path, "cannot stat the source");
	return incr_fail(err, INCR_E_INVALID,
			 out->kind == IO_DIR ? "is-directory" : "special-file",
			 path,
			 "only regular files and standard input can be staged");
}

static int put_source(struct open_txn *o, const char *path,
		      const struct incr_source *source, bool overwrites,
		      struct incr_error *err)
{
	struct io_stat before;
	int fd = -1;
	int r;

	if (source->kind == INCR_SOURCE_STREAM)
		return stage(o, path, source->fd, NULL, overwrites, err);
	r = open_source(o->st, source->path, &fd, &before, err);
	if (r < 0)
		return r;
	r = stage(o, path, fd, &before, overwrites, err);
	(void)io_close(o->st->io, fd); /* only read from */
	return r;
}

int incr_txn_put(struct incr_store *st, uint64_t number, const char *path,
		 const struct incr_source *source, bool overwrites,
		 struct incr_error *err)
{
	struct open_txn o = { .st = st };
	int r = name_check_path(path, strlen(path), err);

	if (r == 0)
		r = open_txn_take(st, number, &o, err);
	if (r < 0)
		return r;
	if (o.txn.fact.type == INCR_DELETE)
		r = incr_fail(err, INCR_E_INVALID, "delete-has-no-data", path,
			      "a DELETE transaction takes removals only");
	else
		r = put_source(&o, path, source, overwrites, err);
	open_txn_release(&o);
	return r;
}

/* Directories that hold nothing any more would be in the way of files of their names. */
static int drop_empty_parents(struct incr_store *st, int dirfd,
			      const char *path, struct incr_error *err)
{
	char dir[NAME_PATH_MAX + 1];
	size_t length = strlen(path);

	memcpy(dir, path, length + 1);
	for (char *slash; (slash = strrchr(dir, '/'));) {
		*slash = '\0';
		if (st->io->unlink_at(st->io, dirfd, dir, AT_REMOVEDIR) < 0)
			break;
		length = (size_t)(slash - dir);
	}
	memcpy(dir, path, length);
	dir[length] = '\0';
	return sync_parents(st, dirfd, dir, err);
}

/* 1: it is not staged. */
static int unlink_staged(struct open_txn *o, const char *path,
			 struct incr_error *err)
{
	struct incr_store *st = o->st;
	char put[80];
	int dirfd, r;

	snprintf(put, sizeof(put), "%s/%s", o->spool, PUT_DIR);
	r = io_open(st->io, st->dirfd, put, O_RDONLY | O_DIRECTORY, 0, &dirfd,
		    err);
	if (r < 0)
		return r;
	r = st->io->unlink_at(st->io, dirfd, path, 0);
	if (r == 0)
		r = drop_empty_parents(st, dirfd, path, err);
	else if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR)
		r = 1;
	else
		r = incr_fail_errno(err, -r, path, "cannot unstage the path");
	(void)io_close(st->io, dirfd); /* only read from */
	return r;
}

static int unstage(struct open_txn *o, const char *path, struct incr_error *err)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view *view;
	int r = unlink_staged(o, path, err);

	if (r <= 0)
		return r;
	r = incr_view_open(o->st, o->txn.fact.dataset_id, o->branch.head, &view,
			   err);
	if (r < 0)
		return r;
	r = incr_view_find(view, path, strlen(path), &node, err);
	incr_node_release(&node);
	incr_view_unref(view);
	if (r == 0)
		return incr_fail(
			err, INCR_E_INVALID, "committed-path", path,
			"only a DELETE transaction removes committed paths");
	return r < 0 ? r :
		       incr_fail(err, INCR_E_NOTFOUND, "no-such-path", path,
				 "the path is not staged");
}

/* A file named by the path's hash, with the path in it. */
static int stage_removal(struct open_txn *o, const char *path,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf known = BUF_INIT;
	struct incr_store *st = o->st;
	uint8_t hash[INCR_HASH_SIZE];
	char name[80 + 2 * INCR_HASH_SIZE];
	int at = snprintf(name, sizeof(name), "%s/%s/", o->spool, REMOVE_DIR);
	size_t length = strlen(path);

	hash128(path, length, hash);
	for (size_t i = 0; i < sizeof(hash); i++, at += 2)
		snprintf(name + at, 3, "%02x", hash[i]);
	if (io_read_file(st->io, st->dirfd, name, NAME_PATH_MAX, &known,
			 NULL) == 0 &&
	    (known.size != length || memcmp(known.data, path, length) != 0))
		return incr_fail(err, INCR_E_CONFLICT, "path-conflict", path,
				 "a path with the same hash is staged already");
	return io_replace_file(st->io, st->dirfd, name, path, length, true,
			       err);
}

int incr_txn_remove(struct incr_store *st, uint64_t number, const char *path,
		    struct incr_error *err)
{
	struct open_txn o = { .st = st };
	int r = name_check_path(path, strlen(path), err);

	if (r == 0)
		r = open_txn_take(st, number, &o, err);
	if (r < 0)
		return r;
	if (o.txn.fact.type == INCR_DELETE)
		r = stage_removal(&o, path, err);
	else
		r = unstage(&o, path, err);
	open_txn_release(&o);
	return r;
}
