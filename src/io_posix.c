/*
 * The real table of operating-system calls.  A call that a signal interrupts
 * is made again, so that no one above has to think of it; but for close(),
 * after which Linux has closed the file whatever it says.
 */
#include "config.h"

#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC INT64_C(1000000000)

/* The result of a system call, or -errno. */
#define CALL(call)                                      \
	__extension__({                                 \
		__typeof__(call) r_;                    \
		do                                      \
			r_ = (call);                    \
		while (r_ < 0 && errno == EINTR);       \
		r_ < 0 ? (__typeof__(call))-errno : r_; \
	})

static int posix_open_at(const struct incr_io *io, int dirfd, const char *path,
			 int flags, uint32_t mode)
{
	(void)io;
	return CALL(openat(dirfd, path, flags | O_CLOEXEC, (mode_t)mode));
}

static int posix_close(const struct incr_io *io, int fd)
{
	(void)io;
	return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static int64_t posix_pread(const struct incr_io *io, int fd, void *data,
			   size_t size, uint64_t off)
{
	(void)io;
	if (off > INT64_MAX)
		return -EFBIG;
	return CALL(pread(fd, data, size, (off_t)off));
}

static int64_t posix_read(const struct incr_io *io, int fd, void *data,
			  size_t size)
{
	(void)io;
	return CALL(read(fd, data, size));
}

static int64_t posix_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	(void)io;
	if (off > INT64_MAX)
		return -EFBIG;
	return CALL(pwrite(fd, data, size, (off_t)off));
}

static int posix_truncate(const struct incr_io *io, int fd, uint64_t size)
{
	(void)io;
	if (size > INT64_MAX)
		return -EFBIG;
	return CALL(ftruncate(fd, (off_t)size));
}

static int posix_fsync(const struct incr_io *io, int fd)
{
	(void)io;
	return CALL(fsync(fd));
}

static int posix_fdatasync(const struct incr_io *io, int fd)
{
	(void)io;
	return CALL(fdatasync(fd));
}

static int posix_rename_at(const struct incr_io *io, int from_dirfd,
			   const char *from, int to_dirfd, const char *to,
			   unsigned flags)
{
	(void)io;
	return CALL(renameat2(from_dirfd, from, to_dirfd, to, flags));
}

static int posix_link_at(const struct incr_io *io, int from_dirfd,
			 const char *from, int to_dirfd, const char *to)
{
	(void)io;
	return CALL(linkat(from_dirfd, from, to_dirfd, to, 0));
}

static int posix_symlink_at(const struct incr_io *io, const char *target,
			    int dirfd, const char *path)
{
	(void)io;
	return CALL(symlinkat(target, dirfd, path));
}

static int posix_unlink_at(const struct incr_io *io, int dirfd,
			   const char *path, int flags)
{
	(void)io;
	return CALL(unlinkat(dirfd, path, flags));
}

static int posix_mkdir_at(const struct incr_io *io, int dirfd, const char *path,
			  uint32_t mode)
{
	(void)io;
	return CALL(mkdirat(dirfd, path, (mode_t)mode));
}

static enum io_kind kind_of_entry(unsigned char type)
{
	return type == DT_REG ? IO_FILE :
	       type == DT_DIR ? IO_DIR :
	       type == DT_LNK ? IO_SYMLINK :
				IO_OTHER;
}

static int posix_readdir(const struct incr_io *io, int dirfd, io_readdir_fn fn,
			 void *closure)
{
	/* A descriptor of its own: the offset of @dirfd may be shared. */
	int fd = CALL(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int r = 0;
	DIR *dir;

	(void)io;
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		(void)close(fd); /* nothing was written */
		return r;
	}

	while (r == 0) {
		struct dirent *entry;

		do {
			errno = 0;
			entry = readdir(dir);
		} while (!entry && errno == EINTR);
		if (!entry) {
			r = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			r = fn(closure, entry->d_name,
			       kind_of_entry(entry->d_type));
	}
	(void)closedir(dir); /* nothing was written */
	return r;
}

/* Times beyond what 64 bits of nanoseconds hold (year 2262) are clamped. */
static int64_t ns_of_time(struct timespec t)
{
	int64_t ns;

	if (__builtin_mul_overflow((int64_t)t.tv_sec, NS_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

static int posix_real_path(const struct incr_io *io, const char *path,
			   char *out, size_t size)
{
	char *found;
	size_t length;

	(void)io;
	do
		found = realpath(path, NULL);
	while (!found && errno == EINTR);
	if (!found)
		return -errno;
	length = strlen(found);
	if (length < size)
		memcpy(out, found, length + 1);
	free(found);
	return length < size ? 0 : -ENAMETOOLONG;
}

static int posix_stat_at(const struct incr_io *io, int dirfd, const char *path,
			 struct io_stat *out_stat)
{
	struct stat st;
	int r = CALL(
		fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));

	(void)io;
	if (r < 0)
		return r;

	*out_stat = (struct io_stat){
		.kind = S_ISREG(st.st_mode) ? IO_FILE :
			S_ISDIR(st.st_mode) ? IO_DIR :
			S_ISLNK(st.st_mode) ? IO_SYMLINK :
					      IO_OTHER,
		.mode = st.st_mode & 07777,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.size = (uint64_t)st.st_size,
		.n_links = st.st_nlink,
		.device = st.st_dev,
		.inode = st.st_ino,
		.mtime_ns = ns_of_time(st.st_mtim),
		.ctime_ns = ns_of_time(st.st_ctim),
	};
	return 0;
}

static int posix_fallocate_keep(const struct incr_io *io, int fd, uint64_t off,
				uint64_t size)
{
	(void)io;
	if (off > INT64_MAX || size > INT64_MAX)
		return -EFBIG;
	return CALL(
		fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)size));
}

static int posix_lease(const struct incr_io *io, int fd, bool is_on)
{
	(void)io;
	/*
	 * Who opens the file for writing meanwhile makes the kernel signal us;
	 * SIGURG is one that does nothing unless asked to, SIGIO would kill.
	 */
	if (is_on) {
		int r = CALL(fcntl(fd, F_SETSIG, SIGURG));

		if (r < 0)
			return r;
	}
	return CALL(fcntl(fd, F_SETLEASE, is_on ? F_RDLCK : F_UNLCK));
}

/* @command: F_OFD_SETLK or F_OFD_GETLK; @type_io: what is asked, then found. */
static int lock_call(int fd, int command, short *type_io, uint64_t off,
		     uint64_t size)
{
	struct flock range = { .l_type = *type_io, .l_whence = SEEK_SET };
	int r;

	if (off > INT64_MAX || size > INT64_MAX)
		return -EINVAL;
	range.l_start = (off_t)off;
	range.l_len = (off_t)size;
	r = CALL(fcntl(fd, command, &range));
	if (r < 0)
		return r == -EACCES ? -EAGAIN : r;
	*type_io = range.l_type;
	return 0;
}

static int posix_lock(const struct incr_io *io, int fd, bool is_exclusive,
		      uint64_t off, uint64_t size)
{
	short type = is_exclusive ? F_WRLCK : F_RDLCK;

	(void)io;
	return lock_call(fd, F_OFD_SETLK, &type, off, size);
}

static int posix_unlock(const struct incr_io *io, int fd, uint64_t off,
			uint64_t size)
{
	short type = F_UNLCK;

	(void)io;
	return lock_call(fd, F_OFD_SETLK, &type, off, size);
}

static int posix_lock_test(const struct incr_io *io, int fd, bool is_exclusive,
			   uint64_t off, uint64_t size)
{
	short type = is_exclusive ? F_WRLCK : F_RDLCK;
	int r = lock_call(fd, F_OFD_GETLK, &type, off, size);

	(void)io;
	return r < 0 ? r : type != F_UNLCK;
}

static int posix_set_times(const struct incr_io *io, int fd, int64_t mtime_ns)
{
	int64_t sec = mtime_ns / NS_PER_SEC, ns = mtime_ns % NS_PER_SEC;
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 0, 0 } };

	(void)io;
	if (ns < 0) {
		sec--;
		ns += NS_PER_SEC;
	}
	times[1] = (struct timespec){ (time_t)sec, (long)ns };
	return CALL(futimens(fd, times));
}

static int posix_chmod(const struct incr_io *io, int fd, uint32_t mode)
{
	(void)io;
	return CALL(fchmod(fd, (mode_t)mode));
}

static int posix_reflink(const struct incr_io *io, int to_fd, int from_fd)
{
	(void)io;
	return CALL(ioctl(to_fd, FICLONE, from_fd));
}

static int posix_random(const struct incr_io *io, void *data, size_t size)
{
	uint8_t *at = data;

	(void)io;
	while (size) {
		ssize_t n = CALL(getrandom(at, size, 0));

		if (n < 0)
			return (int)n;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int64_t posix_now_ns(const struct incr_io *io)
{
	struct timespec now = { 0, 0 };

	(void)io;
	(void)clock_gettime(CLOCK_REALTIME, &now); /* this clock always is */
	return ns_of_time(now);
}

static void posix_pause_us(const struct incr_io *io, unsigned us)
{
	struct timespec pause = { us / 1000000, (long)(us % 1000000) * 1000 };

	(void)io;
	(void)nanosleep(&pause, NULL); /* a signal may cut the pause short */
}

const struct incr_io io_posix = {
	.open_at = posix_open_at,
	.close = posix_close,
	.pread = posix_pread,
	.read = posix_read,
	.pwrite = posix_pwrite,
	.truncate = posix_truncate,
	.fsync = posix_fsync,
	.fdatasync = posix_fdatasync,
	.fsync_dir = posix_fsync,
	.rename_at = posix_rename_at,
	.link_at = posix_link_at,
	.symlink_at = posix_symlink_at,
	.unlink_at = posix_unlink_at,
	.mkdir_at = posix_mkdir_at,
	.readdir = posix_readdir,
	.stat_at = posix_stat_at,
	.real_path = posix_real_path,
	.fallocate = posix_fallocate_keep,
	.lease = posix_lease,
	.lock = posix_lock,
	.unlock = posix_unlock,
	.lock_test = posix_lock_test,
	.set_times = posix_set_times,
	.chmod = posix_chmod,
	.reflink = posix_reflink,
	.random = posix_random,
	.now_ns = posix_now_ns,
	.pause_us = posix_pause_us,
};
