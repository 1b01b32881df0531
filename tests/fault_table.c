/* An io table that makes one call of the one below it fail. */
#include "config.h"

#include "fault_table.h"

#include <errno.h>

const char *const fault_call_names[FAULT_N_CALLS] = {
	"open_at",  "close",	  "pread",     "read",	    "pwrite",
	"truncate", "fsync",	  "fdatasync", "fsync_dir", "rename_at",
	"link_at",  "symlink_at", "unlink_at", "mkdir_at",  "readdir",
	"stat_at",  "real_path",  "fallocate", "lease",	    "lock",
	"unlock",   "lock_test",  "set_times", "chmod",	    "reflink",
	"random",
};

static void enter(const struct fault_table *f)
{
	if (f->enter)
		f->enter();
}

static void leave(const struct fault_table *f)
{
	if (f->leave)
		f->leave();
}

bool fault_applies(enum fault_call call, int fail_errno)
{
	return fail_errno != FAULT_SHORT || call == FAULT_PREAD ||
	       call == FAULT_READ || call == FAULT_PWRITE;
}

/* Does the call that comes now fail? */
static bool is_hit(struct fault_table *f, enum fault_call call)
{
	long n;

	if (f->only >= 0 && f->only != (int)call)
		return false;
	n = __atomic_add_fetch(&f->n_calls, 1, __ATOMIC_SEQ_CST);
	if (f->fail_at == 0 || n < f->fail_at)
		return false;
	if (n == f->fail_at) {
		f->hit = call;
		return true;
	}
	switch (f->mode) {
	case FAULT_FOR_GOOD:
		return call == f->hit;
	case FAULT_EVERYTHING:
		return true;
	default:
		return false;
	}
}

/* -errno, or 0 for a call that is made. */
static int fails(struct fault_table *f, enum fault_call call)
{
	/* reads and writes ask shortens() for themselves */
	if (f->fail_errno == FAULT_SHORT && fault_applies(call, FAULT_SHORT))
		return 0;
	if (!is_hit(f, call) || f->fail_errno == FAULT_SHORT)
		return 0;
	__atomic_add_fetch(&f->n_failed, 1, __ATOMIC_SEQ_CST);
	return -f->fail_errno;
}

static bool shortens(struct fault_table *f, enum fault_call call)
{
	if (f->fail_errno != FAULT_SHORT || !is_hit(f, call))
		return false;
	__atomic_add_fetch(&f->n_failed, 1, __ATOMIC_SEQ_CST);
	return true;
}

static int fault_open_at(const struct incr_io *io, int dirfd, const char *path,
			 int flags, uint32_t mode)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_OPEN_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->open_at(f->below, dirfd, path, flags, mode);
	leave(f);
	return r;
}

/* As in the kernel, the descriptor is gone whatever close() says. */
static int fault_close(const struct incr_io *io, int fd)
{
	struct fault_table *f = io->closure;
	int failed = fails(f, FAULT_CLOSE), r;

	enter(f);
	r = f->below->close(f->below, fd);
	leave(f);
	return failed < 0 ? failed : r;
}

static int64_t fault_pread(const struct incr_io *io, int fd, void *data,
			   size_t size, uint64_t off)
{
	struct fault_table *f = io->closure;
	int64_t r = fails(f, FAULT_PREAD);

	if (r < 0)
		return r;
	if (shortens(f, FAULT_PREAD) && size > 1)
		size /= 2;
	enter(f);
	r = f->below->pread(f->below, fd, data, size, off);
	leave(f);
	return r;
}

static int64_t fault_read(const struct incr_io *io, int fd, void *data,
			  size_t size)
{
	struct fault_table *f = io->closure;
	int64_t r = fails(f, FAULT_READ);

	if (r < 0)
		return r;
	if (shortens(f, FAULT_READ) && size > 1)
		size /= 2;
	enter(f);
	r = f->below->read(f->below, fd, data, size);
	leave(f);
	return r;
}

static int64_t fault_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	struct fault_table *f = io->closure;
	int64_t r = fails(f, FAULT_PWRITE);

	if (r < 0)
		return r;
	if (shortens(f, FAULT_PWRITE) && size > 1)
		size /= 2;
	enter(f);
	r = f->below->pwrite(f->below, fd, data, size, off);
	leave(f);
	return r;
}

static int fault_truncate(const struct incr_io *io, int fd, uint64_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_TRUNCATE);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->truncate(f->below, fd, size);
	leave(f);
	return r;
}

static int fault_fsync(const struct incr_io *io, int fd)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_FSYNC);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->fsync(f->below, fd);
	leave(f);
	return r;
}

static int fault_fdatasync(const struct incr_io *io, int fd)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_FDATASYNC);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->fdatasync(f->below, fd);
	leave(f);
	return r;
}

static int fault_fsync_dir(const struct incr_io *io, int dirfd)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_FSYNC_DIR);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->fsync_dir(f->below, dirfd);
	leave(f);
	return r;
}

static int fault_rename_at(const struct incr_io *io, int from_dirfd,
			   const char *from, int to_dirfd, const char *to,
			   unsigned flags)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_RENAME_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->rename_at(f->below, from_dirfd, from, to_dirfd, to,
				flags);
	leave(f);
	return r;
}

static int fault_link_at(const struct incr_io *io, int from_dirfd,
			 const char *from, int to_dirfd, const char *to)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_LINK_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->link_at(f->below, from_dirfd, from, to_dirfd, to);
	leave(f);
	return r;
}

static int fault_symlink_at(const struct incr_io *io, const char *target,
			    int dirfd, const char *path)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_SYMLINK_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->symlink_at(f->below, target, dirfd, path);
	leave(f);
	return r;
}

static int fault_unlink_at(const struct incr_io *io, int dirfd,
			   const char *path, int flags)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_UNLINK_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->unlink_at(f->below, dirfd, path, flags);
	leave(f);
	return r;
}

static int fault_mkdir_at(const struct incr_io *io, int dirfd, const char *path,
			  uint32_t mode)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_MKDIR_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->mkdir_at(f->below, dirfd, path, mode);
	leave(f);
	return r;
}

struct list {
	struct fault_table *table;
	io_readdir_fn fn;
	void *closure;
};

/* What the callback does is the caller's again. */
static int list_entry(void *closure, const char *name, enum io_kind kind)
{
	struct list *list = closure;
	int r;

	leave(list->table);
	r = list->fn(list->closure, name, kind);
	enter(list->table);
	return r;
}

static int fault_readdir(const struct incr_io *io, int dirfd, io_readdir_fn fn,
			 void *closure)
{
	struct fault_table *f = io->closure;
	struct list list = { f, fn, closure };
	int r = fails(f, FAULT_READDIR);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->readdir(f->below, dirfd, list_entry, &list);
	leave(f);
	return r;
}

static int fault_stat_at(const struct incr_io *io, int dirfd, const char *path,
			 struct io_stat *out_stat)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_STAT_AT);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->stat_at(f->below, dirfd, path, out_stat);
	leave(f);
	return r;
}

static int fault_real_path(const struct incr_io *io, const char *path,
			   char *out, size_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_REAL_PATH);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->real_path(f->below, path, out, size);
	leave(f);
	return r;
}

static int fault_fallocate(const struct incr_io *io, int fd, uint64_t off,
			   uint64_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_FALLOCATE);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->fallocate(f->below, fd, off, size);
	leave(f);
	return r;
}

static int fault_lease(const struct incr_io *io, int fd, bool is_on)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_LEASE);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->lease(f->below, fd, is_on);
	leave(f);
	return r;
}

static int fault_lock(const struct incr_io *io, int fd, bool is_exclusive,
		      uint64_t off, uint64_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_LOCK);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->lock(f->below, fd, is_exclusive, off, size);
	leave(f);
	return r;
}

static int fault_unlock(const struct incr_io *io, int fd, uint64_t off,
			uint64_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_UNLOCK);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->unlock(f->below, fd, off, size);
	leave(f);
	return r;
}

static int fault_lock_test(const struct incr_io *io, int fd, bool is_exclusive,
			   uint64_t off, uint64_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_LOCK_TEST);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->lock_test(f->below, fd, is_exclusive, off, size);
	leave(f);
	return r;
}

static int fault_set_times(const struct incr_io *io, int fd, int64_t mtime_ns)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_SET_TIMES);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->set_times(f->below, fd, mtime_ns);
	leave(f);
	return r;
}

static int fault_chmod(const struct incr_io *io, int fd, uint32_t mode)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_CHMOD);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->chmod(f->below, fd, mode);
	leave(f);
	return r;
}

static int fault_reflink(const struct incr_io *io, int to_fd, int from_fd)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_REFLINK);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->reflink(f->below, to_fd, from_fd);
	leave(f);
	return r;
}

static int fault_random(const struct incr_io *io, void *data, size_t size)
{
	struct fault_table *f = io->closure;
	int r = fails(f, FAULT_RANDOM);

	if (r < 0)
		return r;
	enter(f);
	r = f->below->random(f->below, data, size);
	leave(f);
	return r;
}

static int64_t fault_now_ns(const struct incr_io *io)
{
	const struct fault_table *f = io->closure;

	return f->below->now_ns(f->below);
}

static void fault_pause_us(const struct incr_io *io, unsigned us)
{
	const struct fault_table *f = io->closure;

	f->below->pause_us(f->below, us);
}

static const struct incr_io table = {
	.open_at = fault_open_at,
	.close = fault_close,
	.pread = fault_pread,
	.read = fault_read,
	.pwrite = fault_pwrite,
	.truncate = fault_truncate,
	.fsync = fault_fsync,
	.fdatasync = fault_fdatasync,
	.fsync_dir = fault_fsync_dir,
	.rename_at = fault_rename_at,
	.link_at = fault_link_at,
	.symlink_at = fault_symlink_at,
	.unlink_at = fault_unlink_at,
	.mkdir_at = fault_mkdir_at,
	.readdir = fault_readdir,
	.stat_at = fault_stat_at,
	.real_path = fault_real_path,
	.fallocate = fault_fallocate,
	.lease = fault_lease,
	.lock = fault_lock,
	.unlock = fault_unlock,
	.lock_test = fault_lock_test,
	.set_times = fault_set_times,
	.chmod = fault_chmod,
	.reflink = fault_reflink,
	.random = fault_random,
	.now_ns = fault_now_ns,
	.pause_us = fault_pause_us,
};

void fault_table_init(struct fault_table *f, const struct incr_io *below)
{
	*f = (struct fault_table){ .io = table, .below = below, .only = -1 };
	f->io.closure = f;
}
