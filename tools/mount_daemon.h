/*
 * The process behind `incrctl mount`: begins the build, serves, and commits
 * when it is unmounted.
 */
#ifndef INCR_TOOLS_MOUNT_DAEMON_H
#define INCR_TOOLS_MOUNT_DAEMON_H

#include "cli.h"
#include "mount.h"
#include "transform_args.h"

struct mount_daemon {
	struct cli *cli;
	const struct transform_args *transform_args;
	const char *transform; /* NULL: browse the store */
	bool is_preview, allows_empty;
	int64_t at_ns; /* of a browser; 0: live */
	struct incr_mount_options mount;
	/* set by the functions */
	struct incr_build *build; /* owned; NULL: a browser */
	char *json; /* owned */
	char *scratch; /* owned; NULL: the store can be written */
};

/* Both return as a verb does. */
/* Serve in this process; returns when it has ended and is committed. */
int mount_daemon_foreground(struct mount_daemon *d);
/* Serve in a process of its own; returns when the mount answers. */
int mount_daemon_background(struct mount_daemon *d);

#endif
