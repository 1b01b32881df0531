/*
 * Open-file-description locks on byte ranges of the `lock` file.
 */
#include "config.h"

#include "lock.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>

/* The next pause is an eighth of the time waited so far, within these. */
#define PAUSE_MIN_MS 1
#define PAUSE_MAX_MS 50

int lock_take(const struct incr_io *io, int store_dirfd, uint64_t off,
	      bool is_exclusive, uint64_t wait_ms, const char *thing,
	      struct lock *out_lock, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { io, -1 };
	uint64_t waited_ms = 0;
	int r;

	/* The kernel wants a writable descriptor for an exclusive lock. */
	r = io_open(io, store_dirfd, "lock", is_exclusive ? O_RDWR : O_RDONLY,
		    0, &file.fd, err);
	if (r < 0)
		return r;

	for (;;) {
		uint64_t pause_ms = PAUSE_MIN_MS + waited_ms / 8;

		r = io->lock(io, file.fd, is_exclusive, off, 1);
		if (r != -EAGAIN && r != -EINTR)
			break;
		if (waited_ms >= wait_ms)
			return incr_fail(err, INCR_E_BUSY, NULL, thing,
					 "another process holds the lock");
		if (pause_ms > PAUSE_MAX_MS)
			pause_ms = PAUSE_MAX_MS;
		if (pause_ms > wait_ms - waited_ms)
			pause_ms = wait_ms - waited_ms;
		io->pause_ms(io, (unsigned)pause_ms);
		waited_ms += pause_ms;
	}
	if (r < 0)
		return incr_fail_errno(err, r, thing, "cannot take the lock");

	*out_lock = (struct lock){ io, file.fd, off };
	file.fd = -1;
	return 0;
}

void lock_release(struct lock *lock)
{
	if (!lock->io)
		return;
	/* Closing frees it too, unless a child of fork() shares the file. */
	(void)lock->io->unlock(lock->io, lock->fd, lock->off, 1);
	(void)io_close(lock->io, lock->fd);
	*lock = (struct lock){ 0 };
}

bool lock_is_held(const struct incr_io *io, int store_dirfd, uint64_t off)
{
	_cleanup_io_file_ struct io_file file = { io, -1 };

	if (io_open(io, store_dirfd, "lock", O_RDONLY, 0, &file.fd, NULL) < 0)
		return false;
	/* A shared lock is refused by an exclusive one only. */
	return io->lock_test(io, file.fd, false, off, 1) == 1;
}
