/*
 * Locks that the kernel frees when their process dies: open-file-description
 * locks on byte ranges of the store's permanent `lock` file.
 */
#ifndef INCR_LOCK_H
#define INCR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

/* Byte offsets in the lock file; docs/format.md, "The lock file". */
#define LOCK_APPEND UINT64_C(0) /* held for one append */
#define LOCK_SYNC UINT64_C(1) /* held for one sync of the log */
#define LOCK_MAINTENANCE UINT64_C(2) /* held while derived tables are written */
#define LOCK_BRANCH(branch_id) \
	(UINT64_C(1) << 40 | (branch_id)) /* shared: commit; exclusive: build */
#define LOCK_BUILD(build) \
	(UINT64_C(1) << 61 | (build)) /* owner of an open build */

/*
 * One lock is one descriptor of its own, so that two holders in one process
 * exclude each other too.  A zeroed struct holds nothing.
 */
struct lock {
	const struct incr_io *io;
	int fd; /* owned; -1 or 0 with io == NULL: nothing held */
	uint64_t off;
};

/*
 * @wait_ms  how long to wait; 0 = one try.  Waits by polling with growing
 *           pauses (1 ms to 50 ms), because OFD locks have no timed wait.
 * Returns 0, or INCR_E_BUSY with the code word "busy" and @thing in the message.
 */
int lock_take(const struct incr_io *io, int store_dirfd, uint64_t off,
	      bool is_exclusive, uint64_t wait_ms, const char *thing,
	      struct lock *out_lock, struct incr_error *err);
void lock_release(struct lock *lock);
/* True when somebody (also this process) holds it exclusively. */
bool lock_is_held(const struct incr_io *io, int store_dirfd, uint64_t off);

#endif
