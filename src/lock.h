/*
 * Locks that the kernel frees when their process dies: open-file-description
 * locks on byte ranges of the store's permanent `lock` file.
 */
#ifndef INCR_LOCK_H
#define INCR_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "io.h"

/* Byte offsets in the lock file; docs/format.md, "The lock file". */
#define LOCK_APPEND UINT64_C(0) /* held for one append */
#define LOCK_SYNC UINT64_C(1) /* held for one sync of the log */
#define LOCK_MAINTENANCE UINT64_C(2) /* held while derived tables are written */
#define LOCK_BRANCH(branch_id) \
	(UINT64_C(1) << 40 | (branch_id)) /* shared: commit; exclusive: build */
#define LOCK_BUILD(build) \
	(UINT64_C(1) << 61 | (build)) /* owner of an open build */

#define LOCK_SPARES_MAX 2

/* The lock file, as one thread at a time uses it. */
struct lock_file {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	/* Owned: of locks that were released, so that the next need not open. */
	int spares[LOCK_SPARES_MAX];
	size_t n_spares;
	pid_t pid; /* a child of fork() shares the spares, and leaves them alone */
};

#define LOCK_FILE_INIT(io_, store_dirfd_) \
	((struct lock_file){              \
		.io = (io_), .store_dirfd = (store_dirfd_), .pid = getpid() })

void lock_file_release(struct lock_file *file);
#define _cleanup_lock_file_ __attribute__((cleanup(lock_file_release)))

/*
 * One lock is one descriptor of its own, so that two holders in one process
 * exclude each other too.  A zeroed struct holds nothing.
 */
struct lock {
	struct lock_file *file; /* borrowed; NULL: nothing held */
	int fd; /* owned */
	uint64_t off;
};

/*
 * @wait_ms  how long to wait; 0 = one try.  Waits by polling with growing
 *           pauses, because OFD locks have no timed wait.
 * Returns 0, or INCR_E_BUSY with the code word "busy" and @thing in the message.
 */
int lock_take(struct lock_file *file, uint64_t off, bool is_exclusive,
	      uint64_t wait_ms, const char *thing, struct lock *out_lock,
	      struct incr_error *err);
void lock_release(struct lock *lock);
/*
 * The pause before the next try of who has waited for *io_waited_us, which is
 * added up; never beyond @wait_us.
 */
void lock_pause(const struct incr_io *io, uint64_t wait_us,
		uint64_t *io_waited_us);
/* True when somebody (also this process) holds it exclusively. */
bool lock_is_held(const struct incr_io *io, int store_dirfd, uint64_t off);
/* True when it is certain that nobody does. */
bool lock_is_free(const struct incr_io *io, int store_dirfd, uint64_t off);

/*
 * The lock of a file or directory below the store, by its path there: held from
 * before it is made until the log tells of it, or until it is gone again.  It
 * may be moved, and used by any thread.  A zeroed struct holds nothing.
 */
struct claim {
	const struct incr_io *io; /* NULL: nothing held */
	int fd; /* owned */
	uint64_t off;
};

uint64_t claim_of(const char *path);
/* One try: nobody else makes what has this name. */
int claim_take(const struct incr_io *io, int store_dirfd, const char *path,
	       struct claim *out_claim, struct incr_error *err);
void claim_release(struct claim *claim);

#endif
