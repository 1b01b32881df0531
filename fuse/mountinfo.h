/*
 * Mounts as the kernel lists them in /proc/self/mountinfo.
 */
#ifndef INCR_MOUNTINFO_H
#define INCR_MOUNTINFO_H

#include "incr.h"

#include <stdbool.h>
#include <sys/types.h>

#define MOUNTINFO_FSTYPE "fuse.incr"

struct mountinfo {
	dev_t dev;
	char *mountpoint; /* owned */
	char *fstype; /* owned */
	char *source; /* owned */
};

void mountinfo_release(struct mountinfo *mi);

/* What was mounted last on @path: 0, or 1 when nothing is. */
int mountinfo_find(const char *path, struct mountinfo *out_mount,
		   struct incr_error *err);

/* Whether @dev is mounted on @path, perhaps below another mount. */
bool mountinfo_has(const char *path, dev_t dev);

/*
 * Absolute path of a directory that may be a dead mount point; owned.
 * Returns 0 or a negative errno.
 */
int mountinfo_resolve(const char *path, char **out_path);

/*
 * Whether a mount answers ENOTCONN.  One that does not answer at all is taken
 * for alive after a while.
 */
bool mountinfo_is_dead(const char *path);

/*
 * Detach what is mounted on @path: 0 or a negative errno, and in *out_text what
 * fusermount3 said, or NULL; owned.
 */
int mountinfo_detach(const char *path, bool is_lazy, char **out_text);

#endif
