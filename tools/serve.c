/*
 * Serving a mount. One thread waits for the signals, so that no handler and
 * no global state is needed.
 */
#include "config.h"

#include "serve.h"

#include "fail.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/* Ends the waiting thread when serving has ended by itself. */
#define SIG_DONE SIGUSR1

static void serve_signals(sigset_t *out)
{
	(void)sigemptyset(out);
	(void)sigaddset(out, SIGINT);
	(void)sigaddset(out, SIGTERM);
	(void)sigaddset(out, SIGHUP);
	(void)sigaddset(out, SIGQUIT);
	(void)sigaddset(out, SIG_DONE);
}

void serve_block_signals(void)
{
	sigset_t signals;

	serve_signals(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL); /* cannot fail */
}

static void *wait_for_signal(void *closure)
{
	struct incr_mount *m = closure;
	sigset_t signals;
	int signo;

	serve_signals(&signals);
	if (sigwait(&signals, &signo) == 0 && signo != SIG_DONE)
		incr_mount_interrupt(m);
	return NULL;
}

/* With --staging=fuse each file that programs have open is open here too. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* as far as it goes */
}

/*
 * What one thread frees another one needs: with a heap each they would hold
 * twice as much, for as long as the mount lives.
 */
static void share_heap(void)
{
	(void)mallopt(M_ARENA_MAX, 1); /* it may not be heeded */
}

int serve_mount(struct incr_mount *m, enum incr_mount_end *out_end,
		struct incr_error *err)
{
	pthread_t waiter;
	int r;

	raise_file_limit();
	share_heap();
	errno = pthread_create(&waiter, NULL, wait_for_signal, m);
	if (errno != 0)
		return fail_errno(err, NULL, "cannot start a thread");
	r = incr_mount_serve(m, out_end, err);
	(void)pthread_kill(waiter, SIG_DONE); /* it may have ended */
	(void)pthread_join(waiter, NULL);
	return r;
}

void serve_log(void *closure, const char *line)
{
	(void)closure;
	fprintf(stderr, "incrctl: %s\n", line);
}
