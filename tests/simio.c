/* The recording file system in memory: the calls. */
#include "config.h"

#include "simio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simio_impl.h"

static struct sim *sim_of(const struct incr_io *io)
{
	return io->closure;
}

/* ---- the calls ---- */

#define ENTER(io)                     \
	struct sim *sim = sim_of(io); \
	pthread_mutex_lock(&sim->mutex)
#define LEAVE(value)                                 \
	do {                                         \
		__typeof__(value) result_ = (value); \
		pthread_mutex_unlock(&sim->mutex);   \
		return result_;                      \
	} while (0)

static int sim_open_at(const struct incr_io *io, int dirfd, const char *path,
		       int flags, uint32_t mode)
{
	char name[NAME_MAX + 1];
	struct sim_entry *e = NULL;
	size_t dir, inode;
	int r;

	ENTER(io);
	r = sim_walk(sim, dirfd, path, &dir, name);
	if (r < 0)
		LEAVE(r);
	if (name[0] && sim->inodes[dir].kind != IO_DIR)
		LEAVE(-ENOTDIR);
	if (name[0])
		e = sim_find_entry(sim, dir, name);
	if (name[0] && !e) {
		if (!(flags & O_CREAT))
			LEAVE(-ENOENT);
		inode = sim_new_inode(sim, IO_FILE, mode & 0777);
		sim_set_entry(sim, dir, name, inode);
		sim_record_name(sim, SIM_OP_LINK, dir, name, inode);
		LEAVE(sim_new_fd(sim, inode));
	}
	if (e && flags & O_CREAT && flags & O_EXCL)
		LEAVE(-EEXIST);
	inode = e ? e->inode : dir;
	if (flags & O_DIRECTORY && sim->inodes[inode].kind != IO_DIR)
		LEAVE(-ENOTDIR);
	if ((flags & O_ACCMODE) != O_RDONLY &&
	    sim->inodes[inode].kind == IO_DIR)
		LEAVE(-EISDIR);
	if (flags & O_TRUNC) {
		struct sim_op *op = sim_record(sim, SIM_OP_TRUNCATE);

		if (op)
			op->inode = inode;
		sim_resize(&sim->inodes[inode], 0);
	}
	LEAVE(sim_new_fd(sim, inode));
}

static int sim_close(const struct incr_io *io, int fd)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (!f)
		LEAVE(-EBADF);
	f->is_open = false;
	for (size_t i = 0; i < sim->n_locks;)
		if (sim->locks[i].fd == fd)
			sim->locks[i] = sim->locks[--sim->n_locks];
		else
			i++;
	LEAVE(0);
}

static int64_t read_at(struct sim *sim, struct sim_fd *f, void *data,
		       size_t size, uint64_t off)
{
	const struct sim_inode *n = &sim->inodes[f->inode];

	if (n->kind != IO_FILE)
		return -EISDIR;
	if (off >= n->size)
		return 0;
	if (size > n->size - off)
		size = n->size - off;
	memcpy(data, n->data + off, size);
	return (int64_t)size;
}

static int64_t sim_pread(const struct incr_io *io, int fd, void *data,
			 size_t size, uint64_t off)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	LEAVE(f ? read_at(sim, f, data, size, off) : (int64_t)-EBADF);
}

static int64_t sim_read(const struct incr_io *io, int fd, void *data,
			size_t size)
{
	struct sim_fd *f;
	int64_t n;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	n = f ? read_at(sim, f, data, size, f->off) : (int64_t)-EBADF;
	if (n > 0)
		f->off += (uint64_t)n;
	LEAVE(n);
}

static int64_t sim_pwrite(const struct incr_io *io, int fd, const void *data,
			  size_t size, uint64_t off)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (!f)
		LEAVE((int64_t)-EBADF);
	sim_write(&sim->inodes[f->inode], off, data, size);
	sim->inodes[f->inode].time = ++sim->clock;
	sim_record_write(sim, f->inode, off, data, size);
	LEAVE((int64_t)size);
}

static int sim_truncate(const struct incr_io *io, int fd, uint64_t size)
{
	struct sim_op *op;
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (!f)
		LEAVE(-EBADF);
	sim_resize(&sim->inodes[f->inode], size);
	op = sim_record(sim, SIM_OP_TRUNCATE);
	if (op) {
		op->inode = f->inode;
		op->size = size;
	}
	LEAVE(0);
}

static int sim_fsync(const struct incr_io *io, int fd)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (!f)
		LEAVE(-EBADF);
	sim_record_sync(sim, f->inode, sim->inodes[f->inode].kind == IO_DIR);
	LEAVE(0);
}

static int sim_rename_at(const struct incr_io *io, int from_dirfd,
			 const char *from, int to_dirfd, const char *to,
			 unsigned flags)
{
	char from_name[NAME_MAX + 1], to_name[NAME_MAX + 1];
	struct sim_entry *e, *old;
	size_t from_dir = 0, to_dir = 0, inode;
	struct sim_op *op;
	int r;

	ENTER(io);
	r = sim_walk(sim, from_dirfd, from, &from_dir, from_name);
	if (r == 0)
		r = sim_walk(sim, to_dirfd, to, &to_dir, to_name);
	if (r < 0)
		LEAVE(r);
	e = sim_find_entry(sim, from_dir, from_name);
	if (!e)
		LEAVE(-ENOENT);
	old = sim_find_entry(sim, to_dir, to_name);
	if (old && flags)
		LEAVE(-EEXIST);
	inode = e->inode;
	sim_set_entry(sim, to_dir, to_name, inode);
	sim_remove_entry(sim, from_dir, from_name);
	op = sim_record(sim, SIM_OP_RENAME);
	if (op) {
		op->dir = from_dir;
		op->dir2 = to_dir;
		op->inode = inode;
		snprintf(op->name, sizeof(op->name), "%s", from_name);
		snprintf(op->name2, sizeof(op->name2), "%s", to_name);
	}
	LEAVE(0);
}

static int sim_link_at(const struct incr_io *io, int from_dirfd,
		       const char *from, int to_dirfd, const char *to)
{
	char name[NAME_MAX + 1];
	int64_t inode;
	size_t dir;
	int r;

	ENTER(io);
	inode = sim_resolve(sim, from_dirfd, from);
	r = inode < 0 ? (int)inode : sim_walk(sim, to_dirfd, to, &dir, name);
	if (r < 0)
		LEAVE(r);
	if (sim_find_entry(sim, dir, name))
		LEAVE(-EEXIST);
	sim_set_entry(sim, dir, name, (size_t)inode);
	sim_record_name(sim, SIM_OP_LINK, dir, name, (size_t)inode);
	LEAVE(0);
}

static int make(struct sim *sim, int dirfd, const char *path, enum io_kind kind,
		uint32_t mode)
{
	char name[NAME_MAX + 1];
	size_t dir, inode;
	int r = sim_walk(sim, dirfd, path, &dir, name);

	if (r < 0)
		return r;
	if (!name[0] || sim_find_entry(sim, dir, name))
		return -EEXIST;
	inode = sim_new_inode(sim, kind, mode & 0777);
	sim_set_entry(sim, dir, name, inode);
	sim_record_name(sim, SIM_OP_LINK, dir, name, inode);
	return 0;
}

static int sim_symlink_at(const struct incr_io *io, const char *target,
			  int dirfd, const char *path)
{
	(void)target; /* nobody follows it here */
	ENTER(io);
	LEAVE(make(sim, dirfd, path, IO_SYMLINK, 0777));
}

static int sim_mkdir_at(const struct incr_io *io, int dirfd, const char *path,
			uint32_t mode)
{
	ENTER(io);
	LEAVE(make(sim, dirfd, path, IO_DIR, mode));
}

static int sim_unlink_at(const struct incr_io *io, int dirfd, const char *path,
			 int flags)
{
	char name[NAME_MAX + 1];
	struct sim_entry *e;
	size_t dir, inode;
	int r;

	ENTER(io);
	r = sim_walk(sim, dirfd, path, &dir, name);
	if (r < 0)
		LEAVE(r);
	e = sim_find_entry(sim, dir, name);
	if (!e)
		LEAVE(-ENOENT);
	inode = e->inode;
	if (flags & AT_REMOVEDIR && sim->inodes[inode].kind != IO_DIR)
		LEAVE(-ENOTDIR);
	if (!(flags & AT_REMOVEDIR) && sim->inodes[inode].kind == IO_DIR)
		LEAVE(-EISDIR);
	if (sim->inodes[inode].n_entries)
		LEAVE(-ENOTEMPTY);
	sim_remove_entry(sim, dir, name);
	sim_record_name(sim, SIM_OP_UNLINK, dir, name, inode);
	LEAVE(0);
}

/* A copy of the names, so that the caller may change the directory. */
static int sim_readdir(const struct incr_io *io, int dirfd, io_readdir_fn fn,
		       void *closure)
{
	struct sim_entry *entries;
	enum io_kind *kinds;
	struct sim_fd *f;
	size_t n;
	int r = 0;

	{
		ENTER(io);
		f = sim_fd_of(sim, dirfd);
		if (!f || sim->inodes[f->inode].kind != IO_DIR)
			LEAVE(f ? -ENOTDIR : -EBADF);
		n = sim->inodes[f->inode].n_entries;
		entries = sim_alloc(NULL, n * sizeof(*entries));
		kinds = sim_alloc(NULL, n * sizeof(*kinds));
		for (size_t i = 0; i < n; i++) {
			const struct sim_entry *e =
				&sim->inodes[f->inode].entries[i];

			entries[i].name = strdup(e->name);
			kinds[i] = sim->inodes[e->inode].kind;
		}
		pthread_mutex_unlock(&sim->mutex);
	}
	for (size_t i = 0; i < n; i++) {
		if (!r)
			r = fn(closure, entries[i].name, kinds[i]);
		free(entries[i].name);
	}
	free(entries);
	free(kinds);
	return r;
}

static int sim_stat_at(const struct incr_io *io, int dirfd, const char *path,
		       struct io_stat *out_stat)
{
	const struct sim_inode *n;
	int64_t inode;

	ENTER(io);
	inode = sim_resolve(sim, dirfd, path);
	if (inode < 0)
		LEAVE((int)inode);
	n = &sim->inodes[inode];
	*out_stat = (struct io_stat){ .kind = n->kind,
				      .mode = n->mode,
				      .size = n->size,
				      .n_links = 1,
				      .device = 1,
				      .inode = (uint64_t)inode + 1,
				      .mtime_ns = n->time,
				      .ctime_ns = n->time };
	LEAVE(0);
}

static int sim_real_path(const struct incr_io *io, const char *path, char *out,
			 size_t size)
{
	int64_t inode;

	ENTER(io);
	inode = sim_resolve(sim, AT_FDCWD, path);
	if (inode < 0)
		LEAVE((int)inode);
	snprintf(out, size, "%s", path);
	LEAVE(0);
}

static int sim_fallocate(const struct incr_io *io, int fd, uint64_t off,
			 uint64_t size)
{
	(void)io;
	(void)fd;
	(void)off;
	(void)size;
	return -EOPNOTSUPP;
}

static int sim_lease(const struct incr_io *io, int fd, bool is_on)
{
	(void)io;
	(void)fd;
	(void)is_on;
	return 0; /* one process: nobody else writes */
}

static bool is_refused(const struct sim *sim, const struct sim_lock *want)
{
	for (size_t i = 0; i < sim->n_locks; i++) {
		const struct sim_lock *l = &sim->locks[i];

		if (l->fd != want->fd && l->off < want->off + want->size &&
		    want->off < l->off + l->size &&
		    (l->is_exclusive || want->is_exclusive))
			return true;
	}
	return false;
}

static int sim_lock_range(const struct incr_io *io, int fd, bool is_exclusive,
			  uint64_t off, uint64_t size)
{
	struct sim_lock want = { fd, is_exclusive, off, size };

	ENTER(io);
	if (is_refused(sim, &want))
		LEAVE(-EAGAIN);
	sim->locks =
		sim_alloc(sim->locks, (sim->n_locks + 1) * sizeof(*sim->locks));
	sim->locks[sim->n_locks++] = want;
	LEAVE(0);
}

static int sim_lock_test(const struct incr_io *io, int fd, bool is_exclusive,
			 uint64_t off, uint64_t size)
{
	struct sim_lock want = { fd, is_exclusive, off, size };

	ENTER(io);
	LEAVE((int)is_refused(sim, &want));
}

static int sim_unlock(const struct incr_io *io, int fd, uint64_t off,
		      uint64_t size)
{
	ENTER(io);
	for (size_t i = 0; i < sim->n_locks; i++)
		if (sim->locks[i].fd == fd && sim->locks[i].off == off &&
		    sim->locks[i].size == size) {
			sim->locks[i] = sim->locks[--sim->n_locks];
			break;
		}
	LEAVE(0);
}

static int sim_set_times(const struct incr_io *io, int fd, int64_t mtime_ns)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (f)
		sim->inodes[f->inode].time = mtime_ns;
	LEAVE(f ? 0 : -EBADF);
}

static int sim_chmod(const struct incr_io *io, int fd, uint32_t mode)
{
	struct sim_fd *f;

	ENTER(io);
	f = sim_fd_of(sim, fd);
	if (f)
		sim->inodes[f->inode].mode = mode & 07777;
	LEAVE(f ? 0 : -EBADF);
}

static int sim_reflink(const struct incr_io *io, int to_fd, int from_fd)
{
	(void)io;
	(void)to_fd;
	(void)from_fd;
	return -EOPNOTSUPP;
}

static int sim_random_bytes(const struct incr_io *io, void *data, size_t size)
{
	uint8_t *p = data;

	ENTER(io);
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)sim_random(&sim->seed);
	LEAVE(0);
}

static int64_t sim_now(const struct incr_io *io)
{
	ENTER(io);
	sim->clock += 1000;
	LEAVE(sim->clock);
}

static void sim_pause(const struct incr_io *io, unsigned us)
{
	(void)io;
	(void)us; /* time does not pass here */
}

static const struct incr_io sim_table = {
	.open_at = sim_open_at,
	.close = sim_close,
	.pread = sim_pread,
	.read = sim_read,
	.pwrite = sim_pwrite,
	.truncate = sim_truncate,
	.fsync = sim_fsync,
	.fdatasync = sim_fsync,
	.fsync_dir = sim_fsync,
	.rename_at = sim_rename_at,
	.link_at = sim_link_at,
	.symlink_at = sim_symlink_at,
	.unlink_at = sim_unlink_at,
	.mkdir_at = sim_mkdir_at,
	.readdir = sim_readdir,
	.stat_at = sim_stat_at,
	.real_path = sim_real_path,
	.fallocate = sim_fallocate,
	.lease = sim_lease,
	.lock = sim_lock_range,
	.unlock = sim_unlock,
	.lock_test = sim_lock_test,
	.set_times = sim_set_times,
	.chmod = sim_chmod,
	.reflink = sim_reflink,
	.random = sim_random_bytes,
	.now_ns = sim_now,
	.pause_us = sim_pause,
};

struct sim *sim_new(void)
{
	struct sim *sim = sim_alloc(NULL, sizeof(*sim));

	*sim = (struct sim){ .io = sim_table, .seed = 1, .clock = 1000000000 };
	sim->io.closure = sim;
	pthread_mutex_init(&sim->mutex, NULL);
	(void)sim_new_inode(sim, IO_DIR, 0755); /* the root is inode 0 */
	return sim;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	for (size_t i = 0; i < sim->n_inodes; i++) {
		for (size_t j = 0; j < sim->inodes[i].n_entries; j++)
			free(sim->inodes[i].entries[j].name);
		free(sim->inodes[i].entries);
		free(sim->inodes[i].data);
	}
	for (size_t i = 0; i < sim->n_ops; i++)
		free(sim->ops[i].data);
	free(sim->inodes);
	free(sim->ops);
	free(sim->fds);
	free(sim->locks);
	free(sim->seen);
	sim_free(sim->start);
	pthread_mutex_destroy(&sim->mutex);
	free(sim);
}

const struct incr_io *sim_io(struct sim *sim)
{
	return &sim->io;
}

size_t sim_n_ops(const struct sim *sim)
{
	return sim->n_ops;
}
