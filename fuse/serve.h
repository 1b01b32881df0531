/*
 * The threads that answer requests.
 *
 * One of them, which holds the token, reads requests and answers the quick ones
 * itself, so that a single client is served without waking a thread for each
 * request.  Before work that takes long it gives the token away with
 * serve_yield() and the next thread reads on.
 */
#ifndef INCR_SERVE_H
#define INCR_SERVE_H

#include "fuse_api.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct serve {
	bool is_ready;
	struct fuse_session *se; /* borrowed */
	unsigned int n_threads;
	int stop_fd; /* an eventfd; readable: end */
	sem_t token; /* at most one thread reads requests */
	pthread_key_t self; /* struct serve_thread of the calling thread */
	atomic_bool has_ended;
	atomic_bool is_interrupted;
};

/* 0, or a negative errno. */
int serve_init(struct serve *s, unsigned int n_threads);
void serve_release(struct serve *s);

/* Answer until the session ends or serve_interrupt().  0 or a negative errno. */
int serve_run(struct serve *s, struct fuse_session *se);

/* Safe in a signal handler. */
void serve_interrupt(struct serve *s);

/* Let another thread read requests while this one works. */
void serve_yield(struct serve *s);

/* Memory of the calling thread, at least @size bytes; NULL without memory. */
void *serve_buffer(struct serve *s, size_t size);

#endif
