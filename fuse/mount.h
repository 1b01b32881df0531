/*
 * The mount, for the programs in tools/: mounting, serving, unmounting, and
 * telling our mounts from others.
 *
 * Life of a mount:
 *
 *	incr_mount_build() or incr_mount_browse()   the mount point is taken;
 *	                                            requests wait
 *	incr_mount_serve()                          answers until it ends; run it
 *	                                            in the main thread or another
 *	incr_mount_free()
 *
 * To put it in the background, fork before incr_mount_build(), since locks and
 * threads do not survive a fork after it; a pipe tells the parent that it
 * worked.  Redirect stdin, stdout and stderr of a background process to
 * /dev/null or a file: a mount that keeps its parent's hangs whoever reads
 * them.
 */
#ifndef INCR_MOUNT_H
#define INCR_MOUNT_H

#include "incr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct incr_mount;

enum incr_staging_mode {
	INCR_STAGING_LINK = 0, /* `staging` is a link into the spool */
	INCR_STAGING_FUSE = 1, /* `staging` is served through the mount */
};

/*
 * One line without a newline, such as a damaged frame that answered EIO.  May
 * be called from several threads at once.
 */
typedef void (*incr_mount_log_fn)(void *closure, const char *line);

struct incr_mount_options {
	const char *mountpoint; /* an existing, empty directory */
	const char *
		build_json; /* .incr/build.json; borrowed until incr_mount_free() */
	size_t build_json_size;
	bool allows_other; /* -o allow_other */
	bool has_uid, has_gid; /* owner of the views; else the mounting user */
	uid_t uid;
	gid_t gid;
	enum incr_staging_mode staging; /* builds only */
	bool is_readonly; /* builds only: no `staging` and no abort links */
	unsigned int n_threads; /* that answer requests; 0: default */
	incr_mount_log_fn log; /* NULL: nothing is logged */
	void *log_closure;
};

/*
 * Mount the views of a build, laid out as in docs/cli.md, "The mount".
 *
 * @b must outlive the mount and may not be used meanwhile, except for
 * incr_build_plan(), _number(), _spool() and _staging().  A dead mount of ours
 * on the mount point is detached first.  Cost: the same for any number of
 * files.
 *
 * Returns 0, or
 *   INCR_E_NOTFOUND     "no-mountpoint": there is no such directory
 *   INCR_E_INVALID      "not-a-directory", "mountpoint-not-empty",
 *                       "mounted": something else is mounted there
 *   INCR_E_UNSUPPORTED  "no-fuse": no /dev/fuse, or no fusermount3 for a user
 *   INCR_E_IO           "mount-failed": the mount was refused
 */
int incr_mount_build(struct incr_build *b,
		     const struct incr_mount_options *options,
		     struct incr_mount **out_mount, struct incr_error *err);

/*
 * Mount a browser of the whole store.
 *
 * @at_ns   show every branch as it was at this time; 0: live.
 *
 * The handle @st belongs to the mount until incr_mount_free().  Returns as
 * incr_mount_build() does.
 */
int incr_mount_browse(struct incr_store *st, int64_t at_ns,
		      const struct incr_mount_options *options,
		      struct incr_mount **out_mount, struct incr_error *err);

enum incr_mount_end {
	INCR_MOUNT_UNMOUNTED = 1, /* the mount is gone: commit */
	INCR_MOUNT_LOST = 2, /* the connection was aborted: commit nothing */
	INCR_MOUNT_INTERRUPTED = 3, /* incr_mount_interrupt(): commit nothing */
};

/*
 * Answer requests until the mount ends.  When this returns nothing is served
 * any more.  After INTERRUPTED the mount point has been detached; after LOST it
 * is left as it is, so that programs fail there instead of finding an empty
 * directory.
 * Signals: the calling program handles them; serving threads block all.
 * 0, or INCR_E_NOMEM or INCR_E_IO if serving could not start.
 */
int incr_mount_serve(struct incr_mount *m, enum incr_mount_end *out_end,
		     struct incr_error *err);

/*
 * Make incr_mount_serve() end as INTERRUPTED, also when it has not begun yet.
 * Safe in a signal handler and in any thread.
 */
void incr_mount_interrupt(struct incr_mount *m);

/* Absolute path of the mount point; borrowed. */
const char *incr_mount_path(const struct incr_mount *m);

/* Detaches the mount if it was never served.  NULL allowed. */
void incr_mount_free(struct incr_mount *m);

/*
 * Unmount as root with umount2(), else with fusermount3.
 *
 * @is_lazy  detach now; the mount ends when the last user has left.
 *
 * A dead mount is detached either way; one that is in use is tried for a second.
 * Does not wait for the commit: that is up to the process that serves it.
 *
 * Returns 0, or
 *   INCR_E_NOTFOUND  "not-mounted": nothing is mounted there
 *   INCR_E_BUSY      "mount-busy": in use; the message names each process that
 *                    was found: pid, program and path
 *   INCR_E_INVALID   "not-ours": the mount is not one of this program
 *   INCR_E_IO        "unmount-failed"
 */
int incr_unmount(const char *mountpoint, bool is_lazy, struct incr_error *err);

/* What is mounted on a directory. */
struct incr_mount_info {
	bool is_mounted; /* anything at all; what follows is false or 0 if not */
	bool is_ours;
	bool is_dead; /* ours, and no process answers */
	char *mountpoint; /* absolute; owned */
	char *store; /* absolute path; owned; NULL unless ours */
	uint64_t build; /* 0: a browser or a preview */
};
void incr_mount_info_release(struct incr_mount_info *info);

/*
 * Look at what is mounted on @path itself (not above it).  0 also when nothing
 * is; never waits for a mount that hangs.
 */
int incr_mount_identify(const char *path, struct incr_mount_info *out_info,
			struct incr_error *err);

/* How incr_copy_layout() is to work. */
struct incr_copy_options {
	const char *directory; /* an existing, empty directory */
	const char *build_json;
	size_t build_json_size;
};

/*
 * The layout of a mount, made of plain files: for `--view=copy`.
 *
 * All views of all inputs are copied, with their modes (without write bits)
 * and times.  `staging` and `added` of an output are links to its staging
 * directory; its `current` is a copy of what the output held at the start and
 * does not follow what is staged.  The caller removes the directory.
 *
 * Returns 0, INCR_E_INVALID "mountpoint-not-empty", or the error of the first
 * file that could not be read or written.
 */
int incr_copy_layout(struct incr_build *b,
		     const struct incr_copy_options *options,
		     struct incr_error *err);

#endif
