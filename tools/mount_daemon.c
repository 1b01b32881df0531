/*
 * The process behind `incrctl mount`.
 *
 * In the background everything happens in the child, from opening the store
 * on: locks, threads and the process number that a build is known by stay
 * with it. It tells its parent through a pipe how it went: an exit status,
 * and what the parent is to print.
 */
#include "config.h"

#include "mount_daemon.h"

#include "build_text.h"
#include "cleanup.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "plan_text.h"
#include "scratch.h"
#include "serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int begin_build(struct mount_daemon *d)
{
	struct cli *cli = d->cli;
	_cleanup_transform_ struct incr_transform transform = { 0 };
	_cleanup_plan_ struct incr_plan plan = { 0 };
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	/* Never fresh: whoever mounts wants to see something. */
	struct incr_plan_options plan_options =
		transform_args_plan(d->transform_args, true);
	struct incr_build_options build_options = {
		.cwd = cwd ? cwd : "",
		.is_preview = d->is_preview,
	};
	int r = d->is_preview ? scratch_make(cli, &d->scratch) : 0;

	plan_options.ignores_command = true;
	build_options.scratch = d->scratch;
	if (r == 0)
		r = transform_args_read(cli, d->transform_args, d->transform,
					&transform);
	if (r == 0)
		r = incr_build_begin(cli->store, &transform, &plan_options,
				     &build_options, &d->build, &plan,
				     &cli->err);
	if (r < 0)
		return r;
	plan_text_say(cli, &plan);
	if (!d->build)
		return plan_text_fail(&plan, &cli->err);
	d->json = build_text_json(cli->store, incr_build_number(d->build),
				  incr_build_plan(d->build), &cli->err);
	if (!d->json)
		return cli->err.code;
	d->mount.build_json = d->json;
	d->mount.build_json_size = strlen(d->json);
	return 0;
}

/* Nothing was written yet: leave no open build behind. */
static void drop_build(struct mount_daemon *d)
{
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	_cleanup_error_ struct incr_error ignored = INCR_ERROR_INIT;

	if (d->build)
		(void)incr_build_abort(d->build, false, -1, &info, &ignored);
}

static bool is_empty(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			return false;
	return true;
}

/*
 * What incr_mount_build() would refuse, found before a build is begun and
 * waits for the outputs. A dead mount of ours is none: it will be replaced.
 */
static int check_mountpoint(struct mount_daemon *d)
{
	const char *path = d->mount.mountpoint;
	struct incr_error *err = &d->cli->err;
	struct incr_mount_info info = { 0 };
	bool is_mounted, is_dead, has_entries;
	DIR *dir;
	int r = incr_mount_identify(path, &info, err);

	if (r < 0)
		return r;
	is_mounted = info.is_mounted;
	is_dead = info.is_dead;
	incr_mount_info_release(&info);
	if (is_dead)
		return 0;
	if (is_mounted)
		return fail(err, INCR_E_INVALID, "mounted", path,
			    "something is mounted there");
	dir = opendir(path);
	if (!dir && errno == ENOTDIR)
		return fail(err, INCR_E_INVALID, "not-a-directory", path,
			    "the mount point is no directory");
	if (!dir)
		return fail_errno(err, path, "cannot read the mount point");
	has_entries = !is_empty(dir);
	(void)closedir(dir);
	if (has_entries)
		return fail(err, INCR_E_INVALID, "mountpoint-not-empty", path,
			    "the mount point is not empty");
	return 0;
}

static int start(struct mount_daemon *d, struct incr_mount **out_mount)
{
	struct cli *cli = d->cli;
	int r = find_store(cli);

	if (r == 0)
		r = check_mountpoint(d);
	if (r == 0 && d->transform)
		r = begin_build(d);
	if (r < 0) {
		drop_build(d);
		return r;
	}
	serve_block_signals();
	d->mount.log = serve_log;
	if (d->transform)
		r = incr_mount_build(d->build, &d->mount, out_mount, &cli->err);
	else
		r = incr_mount_browse(cli->store, d->at_ns, &d->mount,
				      out_mount, &cli->err);
	if (r < 0)
		drop_build(d);
	if (r == INCR_E_UNSUPPORTED || r == INCR_E_IO)
		fail_hint(&cli->err,
			  "incrctl run --view=copy works without a mount");
	return r;
}

/* What a successful mount prints. Owned. */
static char *describe(const struct mount_daemon *d, const struct incr_mount *m)
{
	const char *path = incr_mount_path(m);
	uint64_t number = d->build ? incr_build_number(d->build) : 0;
	char *line = NULL;
	int r;

	if (d->cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "mountpoint", out_text(path));
		out_put(json, "store",
			out_text(incr_store_path(d->cli->store)));
		out_put(json, "build",
			d->json ? json_loads(d->json, 0, NULL) : NULL);
		line = json_dumps(json, JSON_COMPACT);
		json_decref(json);
		return line;
	}
	if (!d->build)
		r = asprintf(&line, "%s mounted on %s",
			     incr_store_path(d->cli->store), path);
	else if (number == 0)
		r = asprintf(&line, "%s mounted on %s: %s, read-only",
			     d->transform, path,
			     incr_decision_name(
				     incr_build_plan(d->build)->decision));
	else
		r = asprintf(&line, "b%" PRIu64 " mounted on %s: %s", number,
			     path,
			     incr_decision_name(
				     incr_build_plan(d->build)->decision));
	return r < 0 ? NULL : line;
}

/* The mount is gone: commit what was staged. */
static int commit(struct mount_daemon *d)
{
	struct cli *cli = d->cli;
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	struct incr_commit_build_options options = {
		.exit_code = -1,
		.allows_empty = d->allows_empty,
	};
	uint64_t number = incr_build_number(d->build);
	int r;

	r = incr_build_commit(d->build, &options, &info, &cli->err);
	if (r < 0)
		build_text_hint(&cli->err, number);
	else if (!cli->common.is_json && !cli->common.is_quiet)
		build_text_result(stderr, &info);
	return r;
}

static int stay_open(struct mount_daemon *d, enum incr_mount_end end)
{
	int r = fail(&d->cli->err, INCR_E_IO, "mount-ended", NULL,
		     end == INCR_MOUNT_LOST ?
			     "the mount was aborted: nothing is committed" :
			     "interrupted: nothing is committed");

	build_text_hint(&d->cli->err, incr_build_number(d->build));
	return r;
}

/* Serve until the end. Frees the mount. */
static int serve(struct mount_daemon *d, struct incr_mount *m)
{
	enum incr_mount_end end = INCR_MOUNT_LOST;
	int r = serve_mount(m, &end, &d->cli->err);

	incr_mount_free(m);
	if (r < 0 || !d->build)
		return r;
	if (d->is_preview) {
		drop_build(d);
		return 0;
	}
	return end == INCR_MOUNT_UNMOUNTED ? commit(d) : stay_open(d, end);
}

static void finish(struct mount_daemon *d)
{
	incr_build_close(d->build);
	d->build = NULL;
	scratch_remove(d->scratch);
	d->scratch = NULL;
	free(d->json);
	d->json = NULL;
}

int mount_daemon_foreground(struct mount_daemon *d)
{
	struct incr_mount *m;
	int r = start(d, &m);

	if (r == 0) {
		_cleanup_free_ char *line = describe(d, m);

		if (!d->cli->common.is_quiet && line)
			printf("%s\n", line);
		(void)fflush(stdout); /* looked at again at the end */
		r = serve(d, m);
	}
	finish(d);
	return r;
}

/* From now on nobody sees what is printed: it goes to the build's folder. */
static void detach(const struct mount_daemon *d)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_fd_ int log = -1;

	if (d->build &&
	    asprintf(&path, "%s/mount.log", incr_build_spool(d->build)) >= 0)
		log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			   0600);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(log >= 0 ? log : null, STDERR_FILENO);
	(void)!chdir("/"); /* only not to keep a directory busy */
}

static void send_report(int fd, int status, const char *line)
{
	/* A parent that was killed meanwhile does not matter. */
	if (write(fd, &status, sizeof(status)) == (ssize_t)sizeof(status) &&
	    line)
		(void)!write(fd, line, strlen(line));
}

/* What the caller had open, a lock perhaps, is not to live as long as we do. */
static void drop_inherited(int but)
{
	if (but > STDERR_FILENO + 1)
		(void)close_range(STDERR_FILENO + 1, (unsigned int)but - 1, 0);
	(void)close_range((unsigned int)but + 1, UINT_MAX, 0);
}

/* The daemon: never returns. */
static void run_child(struct mount_daemon *d, int report)
{
	struct cli *cli = d->cli;
	struct incr_mount *m;
	int r;

	(void)setsid();
	drop_inherited(report);
	r = start(d, &m);
	if (r < 0) {
		send_report(report, exit_print(cli, &cli->err), NULL);
		finish(d);
		_exit(1);
	}
	{
		_cleanup_free_ char *line = describe(d, m);

		send_report(report, 0, line);
	}
	detach(d);
	(void)close(report);
	r = serve(d, m);
	if (r < 0)
		(void)exit_print(cli, &cli->err);
	finish(d);
	incr_store_close(cli->store);
	_exit(r < 0 ? 1 : 0);
}

/* What the daemon said; then it has closed the pipe, or it is gone. */
static int read_report(struct cli *cli, int fd)
{
	char line[8192];
	int status;
	ssize_t n;

	do
		n = read(fd, &status, sizeof(status));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(status))
		return fail(&cli->err, INCR_E_IO, "mount-failed", NULL,
			    "the mount process ended at once");
	if (status != 0)
		return status;
	while ((n = read(fd, line, sizeof(line))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(&cli->err, NULL,
					  "cannot read from the mount process");
		if (!cli->common.is_quiet)
			(void)fwrite(line, 1, (size_t)n, stdout);
	}
	if (!cli->common.is_quiet)
		(void)putchar('\n');
	return 0;
}

int mount_daemon_background(struct mount_daemon *d)
{
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail_errno(&d->cli->err, NULL, "cannot make a pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		run_child(d, ends[1]);
	}
	(void)close(ends[1]);
	if (pid < 0)
		r = fail_errno(&d->cli->err, NULL, "cannot start a process");
	else
		r = read_report(d->cli, ends[0]);
	(void)close(ends[0]);
	return r;
}
