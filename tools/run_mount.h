/*
 * The private directory on which a command sees its build: a mount served by
 * a process of its own, or a copy.
 */
#ifndef INCR_TOOLS_RUN_MOUNT_H
#define INCR_TOOLS_RUN_MOUNT_H

#include "cli.h"
#include "mount.h"

#include <sys/types.h>

struct run_mount {
	char *dir; /* owned; NULL: there is none */
	char *log; /* owned: the file that the mount process writes to */
	pid_t pid; /* of the mount process; 0: none */
	bool is_copy;
};

struct run_mount_options {
	bool is_copy;
	enum incr_staging_mode staging;
	const char *build_json; /* borrowed */
};

/*
 * The calling process must have no thread yet. When this returns 0 the views
 * can be read.
 */
int run_mount_start(struct run_mount *m, struct incr_build *b,
		    const struct run_mount_options *options,
		    struct incr_error *err);
/*
 * Unmount and remove the directory, whatever it takes. *out_is_lost: the mount
 * had ended before, so the command may have seen errors.
 */
void run_mount_stop(const struct cli *cli, struct run_mount *m,
		    bool *out_is_lost);

#endif
