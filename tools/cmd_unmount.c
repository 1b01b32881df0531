/*
 * incrctl unmount: unmount, wait for the commit, and tell how it went.
 */
#include "config.h"

#include "build_text.h"
#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "json_plan.h"
#include "mount.h"
#include "out.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct unmount_options {
	bool is_abort, is_lazy;
};

static const struct args_option table[] = {
	{ "abort", 0, ARGS_FLAG, offsetof(struct unmount_options, is_abort),
	  NULL, "throw away what was written" },
	{ "lazy", 0, ARGS_FLAG, offsetof(struct unmount_options, is_lazy), NULL,
	  "detach now; it is committed when the last user has left" },
	ARGS_END,
};

#define POLL_FIRST_NS 2000000
#define POLL_LAST_NS 100000000
#define FULL_SIZE 65536 /* bytes free */

/* The store is the one that is mounted, whatever else is nearer. */
static int open_mounted(struct cli *cli, const struct incr_mount_info *mount)
{
	cli->common.store = mount->store;
	return find_store(cli);
}

/* Is this the command of a run, which would wait for its own end? */
static bool is_own_mount(const struct incr_mount_info *mount)
{
	const char *env = getenv("INCR_MOUNT");
	_cleanup_free_ char *own = env ? realpath(env, NULL) : NULL;

	return own && strcmp(own, mount->mountpoint) == 0;
}

/* The store is gone or was moved: unmount, though nobody can tell the result. */
static int unmount_blindly(struct cli *cli, const char *path, bool is_lazy,
			   const struct incr_mount_info *mount)
{
	int r;

	incr_error_release(&cli->err);
	r = incr_unmount(path, is_lazy, &cli->err);
	if (r < 0)
		return r;
	r = fail(&cli->err, INCR_E_NOTFOUND, "no-store", mount->store,
		 "unmounted, but the store is not there any more");
	fail_hint(&cli->err,
		  "where it is now, incrctl --store DIR build show b%" PRIu64
		  " tells how it went",
		  mount->build);
	return r;
}

/* Owned; NULL with @err filled. */
static char *abort_path(struct cli *cli, const struct incr_mount_info *mount)
{
	char *path;

	if (asprintf(&path, "%s/.incr/abort", mount->mountpoint) >= 0)
		return path;
	(void)fail_nomem(&cli->err);
	return NULL;
}

static int mark_abort(struct cli *cli, const struct incr_mount_info *mount)
{
	_cleanup_free_ char *path = abort_path(cli, mount);
	_cleanup_fd_ int fd = -1;

	if (!path)
		return cli->err.code;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(&cli->err, path, "cannot mark the abort");
	return 0;
}

/* It stays mounted, so a later unmount is to commit again. */
static void unmark_abort(struct cli *cli, const struct incr_mount_info *mount)
{
	struct incr_error busy = cli->err;
	_cleanup_free_ char *path = abort_path(cli, mount);
	_cleanup_free_ char *marker = path ? realpath(path, NULL) : NULL;

	if (marker)
		(void)unlink(marker);
	cli->err = busy;
}

/* Has its process ended with it? */
static bool has_ended(const struct incr_build_info *info)
{
	return info->status != INCR_BUILD_OPEN || info->is_orphaned;
}

/* Wait for the process behind the mount to end its build. */
static int wait_for_build(struct cli *cli, uint64_t number,
			  struct incr_build_info *out_info)
{
	struct timespec pause = { .tv_nsec = POLL_FIRST_NS };
	int r;

	for (;;) {
		struct incr_build_info info = { 0 };

		r = incr_store_refresh(cli->store, &cli->err);
		if (r == 0)
			r = incr_build_find(cli->store, number, &info,
					    &cli->err);
		if (r < 0)
			return r;
		if (has_ended(&info)) {
			*out_info = info;
			return 0;
		}
		incr_build_info_release(&info);
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < POLL_LAST_NS)
			pause.tv_nsec *= 2;
	}
}

/* So full that not even the reason of a failed commit could be left there. */
static bool is_disk_full(const struct cli *cli)
{
	struct statvfs fs;

	return statvfs(incr_store_path(cli->store), &fs) == 0 &&
	       fs.f_bavail * fs.f_frsize < FULL_SIZE;
}

/* @was_dead: nobody tried to commit. */
static int print_result(struct cli *cli, struct incr_build_info *info,
			bool was_dead)
{
	int r;

	if (cli->common.is_json)
		out_line(json_build(info));
	else if (info->status != INCR_BUILD_OPEN && !cli->common.is_quiet)
		build_text_result(stdout, info);
	if (info->status == INCR_BUILD_FAILED)
		return EXIT_FAILED;
	if (info->status != INCR_BUILD_OPEN)
		return 0;

	if (info->error.code != 0) {
		cli->err = info->error; /* with what it owns */
		info->error = INCR_ERROR_INIT;
		r = cli->err.code;
	} else if (!was_dead && is_disk_full(cli)) {
		r = fail(&cli->err, INCR_E_NOSPC, "no-space",
			 incr_store_path(cli->store),
			 "b%" PRIu64 " stays open: no space to commit it",
			 info->number);
	} else {
		r = fail(&cli->err, INCR_E_IO, "mount-ended", NULL,
			 "b%" PRIu64 " stays open: its mount ended before it "
			 "was unmounted",
			 info->number);
	}
	build_text_hint(&cli->err, info->number);
	return r;
}

/* --abort of a build whose process is gone. */
static int abort_orphan(struct cli *cli, uint64_t number)
{
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	struct incr_build *b;
	int r;

	r = incr_build_adopt(cli->store, number, &b, &cli->err);
	if (r < 0)
		return r;
	r = incr_build_abort(b, false, -1, &info, &cli->err);
	incr_build_close(b);
	return r < 0 ? r : print_result(cli, &info, true);
}

static int finish_build(struct cli *cli, const struct unmount_options *o,
			const struct incr_mount_info *mount)
{
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	int r;

	if (mount->is_dead && o->is_abort)
		return abort_orphan(cli, mount->build);
	if (o->is_lazy && !mount->is_dead) {
		exit_info(cli,
			  "b%" PRIu64 " ends when the last user has left "
			  "the mount",
			  mount->build);
		return 0;
	}
	r = wait_for_build(cli, mount->build, &info);
	return r < 0 ? r : print_result(cli, &info, mount->is_dead);
}

static int run_unmount(struct cli *cli, void *options)
{
	const struct unmount_options *o = options;
	const char *path = cli->args[0];
	_cleanup_(incr_mount_info_release) struct incr_mount_info mount = { 0 };
	int r;

	r = incr_mount_identify(path, &mount, &cli->err);
	if (r < 0)
		return r;
	if (!mount.is_mounted)
		return fail(&cli->err, INCR_E_NOTFOUND, "not-mounted", path,
			    "nothing is mounted there");
	if (!mount.is_ours)
		return fail(&cli->err, INCR_E_INVALID, "not-ours", path,
			    "what is mounted there is not of incrctl");
	if (o->is_abort && mount.build == 0)
		return fail_usage(&cli->err, path,
				  "there is no build to abort");
	if (is_own_mount(&mount))
		return fail(&cli->err, INCR_E_BUSY, "in-run", path,
			    "the mount ends with the command that runs on it");
	if (mount.build != 0)
		r = open_mounted(cli, &mount);
	if (r == INCR_E_NOTFOUND && !o->is_abort)
		return unmount_blindly(cli, path, o->is_lazy, &mount);
	if (r == 0 && o->is_abort && !mount.is_dead)
		r = mark_abort(cli, &mount);
	if (r == 0)
		r = incr_unmount(path, o->is_lazy, &cli->err);
	if (r < 0 && o->is_abort && !mount.is_dead)
		unmark_abort(cli, &mount);
	if (r < 0 || mount.build == 0)
		return r;
	return finish_build(cli, o, &mount);
}

const struct verb verb_unmount = {
	.name = "unmount",
	.summary = "Unmount, wait for the commit, and exit with its result.",
	.synopsis = "MOUNTPOINT [--abort] [--lazy]",
	.tables = { table },
	.options_size = sizeof(struct unmount_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_unmount,
};
