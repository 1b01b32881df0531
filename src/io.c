/*
 * Helpers over the table of operating-system calls: whole reads and writes,
 * small files, trees.
 */
#include "config.h"

#include "io.h"

#include "buf.h"
#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

void cleanup_io_file(struct io_file *file)
{
	if (file->io)
		(void)io_close(file->io, file->fd); /* nothing was written */
}

int io_close(const struct incr_io *io, int fd)
{
	return fd < 0 ? 0 : io->close(io, fd);
}

/* open_at() that retries EINTR; a descriptor or -errno. */
static int open_retry(const struct incr_io *io, int dirfd, const char *path,
		      int flags, uint32_t mode)
{
	int fd;

	do
		fd = io->open_at(io, dirfd, path, flags, mode);
	while (fd == -EINTR);
	return fd;
}

int io_open(const struct incr_io *io, int dirfd, const char *path, int flags,
	    uint32_t mode, int *out_fd, struct incr_error *err)
{
	int fd = open_retry(io, dirfd, path, flags, mode);

	if (fd < 0)
		return incr_fail_errno(err, fd, path, "cannot open");

	*out_fd = fd;
	return 0;
}

int io_write_all(const struct incr_io *io, int fd, const void *data,
		 size_t size, uint64_t off, const char *thing,
		 struct incr_error *err)
{
	const uint8_t *at = data;

	while (size) {
		int64_t n = io->pwrite(io, fd, at, size, off);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return incr_fail_errno(err, n ? (int)n : EIO, thing,
					       "cannot write at byte %" PRIu64,
					       off);
		at += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

int io_read_upto(const struct incr_io *io, int fd, void *data, size_t size,
		 uint64_t off, size_t *out_size, const char *thing,
		 struct incr_error *err)
{
	uint8_t *at = data;
	size_t done = 0;

	while (done < size) {
		int64_t n =
			io->pread(io, fd, at + done, size - done, off + done);

		if (n == -EINTR)
			continue;
		if (n < 0) {
			int r = incr_fail_errno(err, (int)n, thing,
						"cannot read at byte %" PRIu64,
						off + done);

			incr_error_at(err, off + done);
			return r;
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*out_size = done;
	return 0;
}

int io_read_exact(const struct incr_io *io, int fd, void *data, size_t size,
		  uint64_t off, const char *thing, struct incr_error *err)
{
	size_t done;
	int r = io_read_upto(io, fd, data, size, off, &done, thing, err);

	if (r < 0)
		return r;
	if (done < size)
		return incr_fail(err, INCR_E_CORRUPT, NULL, thing,
				 "the file ends at byte %" PRIu64
				 ", %zu bytes too early",
				 off + done, size - done);

	return 0;
}

int io_read_file(const struct incr_io *io, int dirfd, const char *path,
		 size_t limit, struct buf *out, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { io, -1 };
	_cleanup_buf_ struct buf data = BUF_INIT;
	size_t chunk = 4096, n;
	int r = io_open(io, dirfd, path, O_RDONLY | O_NOCTTY, 0, &file.fd, err);

	if (r < 0)
		return r;

	do {
		if (buf_reserve(&data, chunk) < 0)
			return incr_fail_nomem(err);
		r = io_read_upto(io, file.fd, data.data + data.size, chunk,
				 data.size, &n, path, err);
		if (r < 0)
			return r;
		data.size += n;
		if (data.size > limit)
			return incr_fail(err, INCR_E_CORRUPT, NULL, path,
					 "the file is larger than %zu bytes",
					 limit);
	} while (n == chunk);
	buf_release(out);
	buf_move(out, &data);
	return 0;
}

int io_sync_file(const struct incr_io *io, int fd, const char *thing,
		 struct incr_error *err)
{
	int r = io->fsync(io, fd);

	if (r < 0)
		return incr_fail_errno(err, r, thing, "cannot sync the file");
	return 0;
}

int io_sync_dir(const struct incr_io *io, int dirfd, const char *thing,
		struct incr_error *err)
{
	int r = io->fsync_dir(io, dirfd);

	if (r < 0)
		return incr_fail_errno(err, r, thing,
				       "cannot sync the directory");
	return 0;
}

int io_mkdir(const struct incr_io *io, int dirfd, const char *path,
	     struct incr_error *err)
{
	int r = io->mkdir_at(io, dirfd, path, 0777);

	if (r < 0)
		return incr_fail_errno(err, r, path,
				       "cannot make the directory");
	return 0;
}

/* Sync the directory that @path, below @dirfd, stands in. */
static int sync_parent(const struct incr_io *io, int dirfd, const char *path,
		       struct incr_error *err)
{
	_cleanup_io_file_ struct io_file dir = { io, -1 };
	_cleanup_free_ char *parent = NULL;
	const char *slash = strrchr(path, '/');
	int r;

	parent = slash ? strndup(path, (size_t)(slash - path) + 1) :
			 strdup(".");
	if (!parent)
		return incr_fail_nomem(err);
	r = io_open(io, dirfd, parent, O_RDONLY | O_DIRECTORY, 0, &dir.fd, err);
	if (r < 0)
		return r;

	return io_sync_dir(io, dir.fd, parent, err);
}

/* Create @path and write it; on failure it is removed again. */
static int write_new_file(const struct incr_io *io, int dirfd, const char *path,
			  const void *data, size_t size, bool is_durable,
			  struct incr_error *err)
{
	int fd = -1, r, closed;

	r = io_open(io, dirfd, path, O_WRONLY | O_CREAT | O_EXCL, 0666, &fd,
		    err);
	if (r < 0)
		return r;

	r = io_write_all(io, fd, data, size, 0, path, err);
	if (r == 0 && is_durable)
		r = io_sync_file(io, fd, path, err);
	closed = io_close(io, fd);
	if (r == 0 && closed < 0)
		r = incr_fail_errno(err, closed, path, "cannot close");
	if (r < 0)
		(void)io->unlink_at(io, dirfd, path, 0); /* r tells more */
	return r;
}

int io_replace_file(const struct incr_io *io, int dirfd, const char *path,
		    const void *data, size_t size, bool is_durable,
		    struct incr_error *err)
{
	_cleanup_free_ char *temporary = NULL;
	uint64_t tag;
	int r = io->random(io, &tag, sizeof(tag));

	if (r < 0)
		return incr_fail_errno(err, r, path, "no random number");
	if (asprintf(&temporary, "%s.%016" PRIx64 ".tmp", path, tag) < 0) {
		temporary = NULL;
		return incr_fail_nomem(err);
	}

	r = write_new_file(io, dirfd, temporary, data, size, is_durable, err);
	if (r < 0)
		return r;
	r = io->rename_at(io, dirfd, temporary, dirfd, path, 0);
	if (r < 0) {
		r = incr_fail_errno(err, r, path, "cannot replace the file");
		(void)io->unlink_at(io, dirfd, temporary, 0); /* r says more */
		return r;
	}

	return is_durable ? sync_parent(io, dirfd, path, err) : 0;
}

size_t io_count_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (size_t)CPU_COUNT(&set);
}
