/*
 * Open-file-description locks on byte ranges of the `lock` file.
 */
#include "config.h"

#include "lock.h"

#include "bytes.h"
#include "error.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define CLAIMS_FIRST (UINT64_C(1) << 62) /* the last quarter of all offsets */

/*
 * The next pause is an eighth of the time waited so far, within these.  What is
 * waited for most often, an append or a sync, takes a tenth of a millisecond.
 */
#define PAUSE_MIN_US 50
#define PAUSE_MAX_US 50000

void lock_file_release(struct lock_file *file)
{
	while (file->n_spares > 0)
		(void)io_close(file->io, file->spares[--file->n_spares]);
}

/* Writable, as the kernel wants it for an exclusive lock. */
static int take_descriptor(struct lock_file *file, int *out_fd,
			   struct incr_error *err)
{
	if (file->n_spares > 0 && file->pid == getpid()) {
		*out_fd = file->spares[--file->n_spares];
		return 0;
	}
	return io_open(file->io, file->store_dirfd, "lock", O_RDWR, 0, out_fd,
		       err);
}

/* Nothing is locked through it. */
static void give_descriptor(struct lock_file *file, int fd)
{
	if (file->n_spares < LOCK_SPARES_MAX && file->pid == getpid())
		file->spares[file->n_spares++] = fd;
	else
		(void)io_close(file->io, fd); /* only locked */
}

void lock_pause(const struct incr_io *io, uint64_t wait_us,
		uint64_t *io_waited_us)
{
	uint64_t left_us = wait_us - *io_waited_us;
	uint64_t pause_us = *io_waited_us / 8;

	if (pause_us < PAUSE_MIN_US)
		pause_us = PAUSE_MIN_US;
	if (pause_us > PAUSE_MAX_US)
		pause_us = PAUSE_MAX_US;
	if (pause_us > left_us)
		pause_us = left_us;
	io->pause_us(io, (unsigned)pause_us);
	*io_waited_us += pause_us;
}

int lock_take(struct lock_file *file, uint64_t off, bool is_exclusive,
	      uint64_t wait_ms, const char *thing, struct lock *out_lock,
	      struct incr_error *err)
{
	const struct incr_io *io = file->io;
	uint64_t waited_us = 0, wait_us;
	int fd, r = take_descriptor(file, &fd, err);

	if (r < 0)
		return r;
	if (!mul_ok(wait_ms, UINT64_C(1000), &wait_us))
		wait_us = UINT64_MAX;
	for (;;) {
		r = io->lock(io, fd, is_exclusive, off, 1);
		if ((r != -EAGAIN && r != -EINTR) || waited_us >= wait_us)
			break;
		lock_pause(io, wait_us, &waited_us);
	}
	if (r == 0) {
		*out_lock = (struct lock){ file, fd, off };
		return 0;
	}
	give_descriptor(file, fd);
	if (r == -EAGAIN || r == -EINTR)
		return incr_fail(err, INCR_E_BUSY, NULL, thing,
				 "another process holds the lock");
	return incr_fail_errno(err, r, thing, "cannot take the lock");
}

void lock_release(struct lock *lock)
{
	struct lock_file *file = lock->file;

	if (!file)
		return;
	/* Closing frees it too, unless a child of fork() shares the file. */
	if (file->io->unlock(file->io, lock->fd, lock->off, 1) < 0)
		(void)io_close(file->io, lock->fd);
	else
		give_descriptor(file, lock->fd);
	*lock = (struct lock){ 0 };
}

/* 1: somebody holds it exclusively, 0: nobody does; negative: not known. */
static int test_lock(const struct incr_io *io, int store_dirfd, uint64_t off)
{
	_cleanup_io_file_ struct io_file file = { io, -1 };
	int r = io_open(io, store_dirfd, "lock", O_RDONLY, 0, &file.fd, NULL);

	/* A shared lock is refused by an exclusive one only. */
	return r < 0 ? r : io->lock_test(io, file.fd, false, off, 1);
}

bool lock_is_held(const struct incr_io *io, int store_dirfd, uint64_t off)
{
	return test_lock(io, store_dirfd, off) == 1;
}

bool lock_is_free(const struct incr_io *io, int store_dirfd, uint64_t off)
{
	return test_lock(io, store_dirfd, off) == 0;
}

uint64_t claim_of(const char *path)
{
	return CLAIMS_FIRST | hash64(path, strlen(path)) % CLAIMS_FIRST;
}

int claim_take(const struct incr_io *io, int store_dirfd, const char *path,
	       struct claim *out_claim, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { io, -1 };
	uint64_t off = claim_of(path);
	int r = io_open(io, store_dirfd, "lock", O_RDWR, 0, &file.fd, err);

	if (r < 0)
		return r;
	do
		r = io->lock(io, file.fd, true, off, 1);
	while (r == -EINTR);
	if (r == -EAGAIN)
		return incr_fail(err, INCR_E_BUSY, NULL, path,
				 "another process makes a file of this name");
	if (r < 0)
		return incr_fail_errno(err, r, path, "cannot take its lock");
	*out_claim = (struct claim){ io, file.fd, off };
	file.fd = -1;
	return 0;
}

void claim_release(struct claim *claim)
{
	if (!claim->io)
		return;
	/* as in lock_release() */
	(void)claim->io->unlock(claim->io, claim->fd, claim->off, 1);
	(void)io_close(claim->io, claim->fd); /* only locked */
	*claim = (struct claim){ 0 };
}
