/*
 * The threads that answer requests: a loop with one reader at a time.
 *
 * The descriptor of the session does not block: the reader waits in poll() for
 * it and for stop_fd, so that an interrupt needs no signal.  To try again for a
 * moment before it sleeps was measured and won nothing.
 */
#include "config.h"

#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEFAULT_THREADS 3
#define MAX_THREADS 64

struct serve_thread {
	struct serve *serve;
	pthread_t thread;
	bool has_token;
	struct fuse_buf request;
	void *buffer;
	size_t buffer_size;
};

int serve_init(struct serve *s, unsigned int n_threads)
{
	int r;

	*s = (struct serve){ .n_threads = n_threads };
	if (n_threads == 0)
		s->n_threads = DEFAULT_THREADS;
	if (s->n_threads > MAX_THREADS)
		s->n_threads = MAX_THREADS;
	if (s->n_threads < 2) /* pushing needs another one, see push.c */
		s->n_threads = 2;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->stop_fd < 0)
		return -errno;
	r = pthread_key_create(&s->self, NULL);
	if (r != 0) {
		(void)close(s->stop_fd);
		return -r;
	}
	(void)sem_init(&s->token, 0, 1);
	s->is_ready = true;
	return 0;
}

void serve_release(struct serve *s)
{
	if (!s->is_ready)
		return;
	(void)close(s->stop_fd);
	(void)pthread_key_delete(s->self);
	(void)sem_destroy(&s->token);
}

void serve_interrupt(struct serve *s)
{
	uint64_t one = 1;

	atomic_store(&s->is_interrupted, true);
	/* It only fails when it is readable already. */
	if (write(s->stop_fd, &one, sizeof(one)) < 0)
		return;
}

void serve_yield(struct serve *s)
{
	struct serve_thread *me = pthread_getspecific(s->self);

	if (me == NULL || !me->has_token)
		return;
	me->has_token = false;
	(void)sem_post(&s->token);
}

void *serve_buffer(struct serve *s, size_t size)
{
	struct serve_thread *me = pthread_getspecific(s->self);

	if (me->buffer_size < size) {
		free(me->buffer);
		me->buffer = malloc(size);
		me->buffer_size = me->buffer == NULL ? 0 : size;
	}
	return me->buffer;
}

/* Wait for a request or the end.  False: the end. */
static bool wait_request(const struct serve *s)
{
	struct pollfd fds[] = {
		{ .fd = fuse_session_fd(s->se), .events = POLLIN },
		{ .fd = s->stop_fd, .events = POLLIN },
	};

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR;
	/* A descriptor in error is read, which says why. */
	return fds[1].revents == 0;
}

/* Read one request, if there is one.  False: there will be no more. */
static bool next_request(struct serve_thread *me, bool *out_has_request)
{
	struct serve *s = me->serve;
	int r;

	if (!wait_request(s))
		return false;
	r = fuse_session_receive_buf(s->se, &me->request);
	*out_has_request = r > 0;
	return r > 0 || r == -EAGAIN || r == -EINTR;
}

static void *serve_thread(void *arg)
{
	struct serve_thread *me = arg;
	struct serve *s = me->serve;

	(void)pthread_setspecific(s->self, me);
	for (;;) {
		bool has_request = false;

		if (!me->has_token) {
			while (sem_wait(&s->token) < 0)
				; /* EINTR */
			me->has_token = true;
		}
		if (atomic_load(&s->has_ended))
			break;
		if (!next_request(me, &has_request))
			atomic_store(&s->has_ended, true);
		else if (has_request)
			fuse_session_process_buf(s->se, &me->request);
		if (fuse_session_exited(s->se))
			atomic_store(&s->has_ended, true);
	}
	serve_yield(s); /* the others end too */
	return NULL;
}

static int start(struct serve *s, struct serve_thread *threads,
		 unsigned int *out_n_started)
{
	sigset_t all, old;
	int r = 0;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned int i = 0; i < s->n_threads && r == 0; i++) {
		threads[i].serve = s;
		r = pthread_create(&threads[i].thread, NULL, serve_thread,
				   &threads[i]);
		if (r == 0)
			++*out_n_started;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

int serve_run(struct serve *s, struct fuse_session *se)
{
	struct serve_thread *threads;
	unsigned int n_started = 0;
	int fd = fuse_session_fd(se), r;

	r = fcntl(fd, F_GETFL);
	if (r < 0 || fcntl(fd, F_SETFL, r | O_NONBLOCK) < 0)
		return -errno;
	threads = calloc(s->n_threads, sizeof(*threads));
	if (threads == NULL)
		return -ENOMEM;
	s->se = se;
	r = start(s, threads, &n_started);
	if (r < 0)
		serve_interrupt(s);
	for (unsigned int i = 0; i < n_started; i++) {
		(void)pthread_join(threads[i].thread, NULL);
		free(threads[i].request.mem);
		free(threads[i].buffer);
	}
	free(threads);
	return r;
}
