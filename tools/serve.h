/*
 * Serving a mount in this process until it ends or a signal says so.
 */
#ifndef INCR_TOOLS_SERVE_H
#define INCR_TOOLS_SERVE_H

#include "mount.h"

/*
 * Block the signals that end serving; before the mount is made, so that none
 * is lost.
 */
void serve_block_signals(void);
/* SIGTERM, SIGINT, SIGHUP and SIGQUIT end it as INCR_MOUNT_INTERRUPTED. */
int serve_mount(struct incr_mount *m, enum incr_mount_end *out_end,
		struct incr_error *err);
/* An incr_mount_log_fn: lines on stderr. */
void serve_log(void *closure, const char *line);

#endif
