/*
 * The private directory on which a command sees its build.
 *
 * The mount process is in a session of its own, so that ^C at the terminal
 * ends the command but not what it reads from; when its parent is killed the
 * kernel ends it.
 */
#include "config.h"

#include "run_mount.h"

#include "cleanup.h"
#include "exit.h"
#include "fail.h"
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define END_LIMIT_MS 10000
#define LOG_LINES_MAX 20
/* The mount process failed to serve what the command read. */
#define EXIT_LOST 2

/* A new directory, mode 0700. Owned; NULL with @err filled. */
static char *make_dir(bool is_copy, struct incr_error *err)
{
	/* Copies may be large, and the first is usually memory. */
	const char *tops[] = {
		is_copy ? NULL : getenv("XDG_RUNTIME_DIR"),
		getenv("TMPDIR"),
		is_copy ? "/var/tmp" : "/tmp",
	};
	char *dir;

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		if (!tops[i] || tops[i][0] != '/')
			continue;
		if (asprintf(&dir, "%s/incr-run.XXXXXX", tops[i]) < 0) {
			(void)fail_nomem(err);
			return NULL;
		}
		if (mkdtemp(dir))
			return dir;
		(void)fail_errno(err, tops[i],
				 "cannot make a temporary directory");
		free(dir);
	}
	return NULL;
}

static void redirect(int fd, const char *path, int flags)
{
	int opened = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);

	if (opened < 0)
		opened = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (opened >= 0 && opened != fd) {
		(void)dup2(opened, fd);
		(void)close(opened);
	}
}

/* The mount process: never returns. */
static void serve_child(const struct run_mount *m, struct incr_build *b,
			const struct run_mount_options *options, pid_t parent,
			int report)
{
	struct incr_mount_options mount_options = {
		.mountpoint = m->dir,
		.build_json = options->build_json,
		.build_json_size = strlen(options->build_json),
		.staging = options->staging,
		.log = serve_log,
	};
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_mount *mount;
	enum incr_mount_end end = INCR_MOUNT_LOST;
	bool is_lost;

	serve_block_signals();
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) {
		(void)rmdir(m->dir);
		_exit(1);
	}
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	redirect(STDOUT_FILENO, "/dev/null", O_WRONLY);
	redirect(STDERR_FILENO, m->log, O_WRONLY | O_CREAT | O_APPEND);

	(void)incr_mount_build(b, &mount_options, &mount, &err);
	/* The paths of an error stay behind: a mount has none. */
	if (write(report, &err, sizeof(err)) != (ssize_t)sizeof(err) ||
	    err.code != 0)
		_exit(1);
	(void)close(report);
	if (serve_mount(mount, &end, &err) < 0)
		fprintf(stderr, "incrctl: %s\n", err.message);
	is_lost = err.code != 0 || end == INCR_MOUNT_LOST;
	incr_mount_free(mount);
	(void)rmdir(m->dir); /* also when nobody is left to do it */
	_exit(is_lost ? EXIT_LOST : 0);
}

static int read_report(int fd, struct incr_error *err)
{
	struct incr_error report;
	ssize_t n;

	do
		n = read(fd, &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(report))
		return fail(err, INCR_E_IO, "mount-failed", NULL,
			    "the mount process ended at once");
	if (report.code == 0)
		return 0;
	report.paths = NULL;
	report.paths_size = report.n_paths = 0;
	*err = report;
	if (!err->hint[0] || err->code == INCR_E_UNSUPPORTED)
		fail_hint(err, "--view=copy works without a mount");
	return err->code;
}

static int start_process(struct run_mount *m, struct incr_build *b,
			 const struct run_mount_options *options,
			 struct incr_error *err)
{
	pid_t parent = getpid();
	int ends[2], r;

	if (asprintf(&m->log, "%s/mount.log", incr_build_spool(b)) < 0) {
		m->log = NULL;
		return fail_nomem(err);
	}
	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail_errno(err, NULL, "cannot make a pipe");
	(void)fflush(stdout);
	m->pid = fork();
	if (m->pid == 0)
		serve_child(m, b, options, parent, ends[1]);
	(void)close(ends[1]);
	if (m->pid < 0) {
		m->pid = 0;
		r = fail_errno(err, NULL, "cannot start a process");
	} else {
		r = read_report(ends[0], err);
	}
	(void)close(ends[0]);
	return r;
}

int run_mount_start(struct run_mount *m, struct incr_build *b,
		    const struct run_mount_options *options,
		    struct incr_error *err)
{
	struct incr_copy_options copy = {
		.build_json = options->build_json,
		.build_json_size = strlen(options->build_json),
	};

	*m = (struct run_mount){ .is_copy = options->is_copy };
	m->dir = make_dir(options->is_copy, err);
	if (!m->dir)
		return err->code;
	if (!options->is_copy)
		return start_process(m, b, options, err);
	copy.directory = m->dir;
	return incr_copy_layout(b, &copy, err);
}

/* Remove a copy. Directories are made writable on the way down. */
static void remove_tree(char *path)
{
	char *paths[] = { path, NULL };
	FTS *walk =
		fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;

	while (walk && (entry = fts_read(walk)) != NULL) {
		if (entry->fts_info == FTS_D)
			(void)chmod(entry->fts_accpath, 0700);
		else
			(void)remove(entry->fts_accpath); /* best effort */
	}
	if (walk)
		(void)fts_close(walk);
}

/*
 * Wait for the mount process; after a time without patience.  False: it ended
 * by itself, so the command may have read errors.
 */
static bool wait_for_process(pid_t pid)
{
	_cleanup_fd_ int pidfd = pidfd_open(pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	bool is_killed;
	int n, status = 0;

	do
		n = pidfd < 0 ? 0 : poll(&ended, 1, END_LIMIT_MS);
	while (n < 0 && errno == EINTR);
	is_killed = n <= 0;
	if (is_killed)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return is_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void unmount(const struct cli *cli, struct run_mount *m)
{
	_cleanup_error_ struct incr_error err = INCR_ERROR_INIT;
	int r = incr_unmount(m->dir, false, &err);

	if (r == 0 || r == INCR_E_NOTFOUND)
		return;
	exit_note(cli, "warning: %s: %s; it loses its files now", err.message,
		  err.thing);
	incr_error_release(&err);
	(void)incr_unmount(m->dir, true, &err);
	(void)kill(m->pid, SIGTERM);
}

/* What the mount had to say, such as files that could not be read. */
static void print_log(const struct cli *cli, const char *path)
{
	_cleanup_free_ char *line = NULL;
	FILE *file = path ? fopen(path, "re") : NULL;
	size_t size = 0;

	if (!file)
		return;
	for (int n = 0; n < LOG_LINES_MAX && getline(&line, &size, file) > 0;
	     n++)
		if (!cli->common.is_json)
			fputs(line, stderr);
	(void)fclose(file); /* only read */
	(void)unlink(path);
}

void run_mount_stop(const struct cli *cli, struct run_mount *m,
		    bool *out_is_lost)
{
	bool is_lost = false;

	if (m->pid > 0) {
		is_lost = waitpid(m->pid, NULL, WNOHANG) == m->pid;
		unmount(cli, m);
		if (!is_lost)
			is_lost = !wait_for_process(m->pid);
		print_log(cli, m->log);
	}
	if (m->dir && m->is_copy)
		remove_tree(m->dir);
	else if (m->dir)
		(void)rmdir(m->dir); /* a mount that would not go keeps it */
	free(m->dir);
	free(m->log);
	*m = (struct run_mount){ 0 };
	*out_is_lost = is_lost;
}
