/*
 * Running the command of `incrctl run`.
 *
 * The command stays in our process group: it can read the terminal, and ^C and
 * ^Z reach it from there. What only reaches us (a plain kill) is passed on.
 */
#include "config.h"

#include "run_child.h"

#include "cleanup.h"
#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void ending_signals(sigset_t *out)
{
	(void)sigemptyset(out);
	(void)sigaddset(out, SIGINT);
	(void)sigaddset(out, SIGTERM);
	(void)sigaddset(out, SIGHUP);
	(void)sigaddset(out, SIGQUIT);
}

void run_signals_block(sigset_t *out_old)
{
	sigset_t ending;

	ending_signals(&ending);
	(void)sigprocmask(SIG_BLOCK, &ending, out_old); /* cannot fail */
}

void run_signals_restore(const sigset_t *old)
{
	(void)sigprocmask(SIG_SETMASK, old, NULL); /* cannot fail */
}

/* In the new process: never returns. */
static void exec_command(char *const *argv, const sigset_t *old, int report)
{
	int sys_errno;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	run_signals_restore(old);
	(void)execvp(argv[0], argv);
	sys_errno = errno;
	while (write(report, &sys_errno, sizeof(sys_errno)) < 0 &&
	       errno == EINTR)
		;
	_exit(127);
}

/* Why the exec failed; 0: the pipe closed by it. */
static int read_report(int fd)
{
	int sys_errno;
	ssize_t n;

	do
		n = read(fd, &sys_errno, sizeof(sys_errno));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(sys_errno) ? sys_errno : 0;
}

static int start(char *const *argv, const sigset_t *old, pid_t *out_pid,
		 int *out_exec_errno, struct incr_error *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail_errno(err, NULL, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		exec_command(argv, old, ends[1]);
	(void)close(ends[1]); /* only the child writes */
	if (pid < 0) {
		(void)close(ends[0]);
		return fail_errno(err, NULL, "cannot start a process");
	}
	*out_exec_errno = read_report(ends[0]);
	(void)close(ends[0]); /* only read */
	*out_pid = pid;
	return 0;
}

static void take_signal(int fd, pid_t pid, struct run_result *result)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	result->signo = (int)info.ssi_signo;
	/* From a terminal it has come to the whole group. */
	if (info.ssi_code != SI_KERNEL)
		(void)kill(pid, result->signo); /* it may have ended */
}

static int wait_for_end(pid_t pid, struct run_result *result,
			struct incr_error *err)
{
	_cleanup_fd_ int pidfd = pidfd_open(pid, 0), sigfd = -1;
	sigset_t ending;
	struct pollfd fds[2];

	ending_signals(&ending);
	sigfd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
	if (pidfd < 0 || sigfd < 0)
		return fail_errno(err, NULL, "cannot watch the command");
	fds[0] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
	for (;;) {
		if (poll(fds, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return fail_errno(err, NULL, "cannot wait");
		}
		if (fds[1].revents)
			take_signal(sigfd, pid, result);
		if (fds[0].revents)
			return 0;
	}
}

int run_child(char *const *argv, const sigset_t *old,
	      struct run_result *out_result, struct incr_error *err)
{
	struct run_result result = { 0 };
	int status, r, waited;
	pid_t pid = 0;

	r = start(argv, old, &pid, &result.exec_errno, err);
	if (r < 0)
		return r;
	r = wait_for_end(pid, &result, err);
	do
		waited = waitpid(pid, &status, 0);
	while (waited < 0 && errno == EINTR);
	if (waited < 0)
		return fail_errno(err, NULL, "cannot wait for the command");
	if (r < 0)
		return r;

	if (WIFSIGNALED(status))
		result.exit_code = 128 + WTERMSIG(status);
	else
		result.exit_code = WEXITSTATUS(status);
	*out_result = result;
	return 0;
}
