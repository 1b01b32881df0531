/* Tables of calls that count, or leave something out. */
#include "config.h"

#include "store_kit.h"

#include <fcntl.h>

struct store_calls store_calls;

static int64_t count_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	store_calls.n_pwrite++;
	store_calls.size_pwrite += size;
	return io_posix.pwrite(io, fd, data, size, off);
}

static int count_fdatasync(const struct incr_io *io, int fd)
{
	store_calls.n_fdatasync++;
	return io_posix.fdatasync(io, fd);
}

static int count_fsync(const struct incr_io *io, int fd)
{
	store_calls.n_fsync++;
	return io_posix.fsync(io, fd);
}

static int count_fsync_dir(const struct incr_io *io, int dirfd)
{
	store_calls.n_fsync_dir++;
	return io_posix.fsync_dir(io, dirfd);
}

static int count_lock(const struct incr_io *io, int fd, bool is_exclusive,
		      uint64_t off, uint64_t size)
{
	store_calls.n_lock++;
	return io_posix.lock(io, fd, is_exclusive, off, size);
}

static int count_rename(const struct incr_io *io, int from_dirfd,
			const char *from, int to_dirfd, const char *to,
			unsigned flags)
{
	store_calls.n_change++;
	return io_posix.rename_at(io, from_dirfd, from, to_dirfd, to, flags);
}

static int count_unlink(const struct incr_io *io, int dirfd, const char *path,
			int flags)
{
	store_calls.n_change++;
	return io_posix.unlink_at(io, dirfd, path, flags);
}

static int count_mkdir(const struct incr_io *io, int dirfd, const char *path,
		       uint32_t mode)
{
	store_calls.n_change++;
	return io_posix.mkdir_at(io, dirfd, path, mode);
}

static int count_truncate(const struct incr_io *io, int fd, uint64_t size)
{
	store_calls.n_change++;
	return io_posix.truncate(io, fd, size);
}

static int count_open(const struct incr_io *io, int dirfd, const char *path,
		      int flags, uint32_t mode)
{
	store_calls.n_change += (flags & (O_CREAT | O_TRUNC)) != 0;
	return io_posix.open_at(io, dirfd, path, flags, mode);
}

const struct incr_io *store_kit_counting_io(void)
{
	static struct incr_io io;

	io = io_posix;
	io.pwrite = count_pwrite;
	io.fdatasync = count_fdatasync;
	io.fsync = count_fsync;
	io.fsync_dir = count_fsync_dir;
	io.lock = count_lock;
	io.rename_at = count_rename;
	io.unlink_at = count_unlink;
	io.mkdir_at = count_mkdir;
	io.truncate = count_truncate;
	io.open_at = count_open;
	return &io;
}

static int skip_sync(const struct incr_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

const struct incr_io *store_kit_quick_io(void)
{
	static struct incr_io io;

	io = io_posix;
	io.fdatasync = skip_sync;
	io.fsync = skip_sync;
	io.fsync_dir = skip_sync;
	return &io;
}
