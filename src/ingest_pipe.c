/*
 * The threads of an ingest.  Jobs stand in a ring and are numbered: the reader
 * fills them in order, workers take them in order and finish in any order, the
 * writer takes them in order.  The ring is what bounds memory.  The threads
 * start with the second job, so that a small commit starts none.
 */
#include "config.h"

#include "ingest_parts.h"

#include "error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define N_WORKERS_MAX 32
#define N_JOBS_MAX 24
#define N_JOBS_ALONE 2 /* while there are no threads */
#define PROGRESS_NS INT64_C(100000000)

struct slot {
	struct ingest_job job;
	bool is_encoded;
};

struct ingest_pipe {
	const struct ingest_options *options; /* borrowed */
	struct ingest_sink *sink; /* borrowed; of the writer while it runs */
	int64_t progress_ns; /* of the writer: when progress was told last */
	size_t n_slots;
	bool has_threads;
	size_t n_workers; /* that run */
	pthread_t workers[N_WORKERS_MAX];
	pthread_t writer;

	pthread_mutex_t lock; /* guards all below; a job belongs to one thread */
	pthread_cond_t freed, filled, encoded;
	uint64_t n_filled, n_taken, n_written; /* jobs so far */
	uint64_t container; /* that workers bind frames to */
	bool is_at_end; /* no more jobs will be filled */
	int failure; /* first code; 0: none */
	struct incr_error error; /* of it; owned */
	struct slot slots[N_JOBS_MAX];
};

int ingest_pipe_new(const struct ingest_options *options,
		    struct ingest_sink *sink, struct ingest_pipe **out_pipe)
{
	struct ingest_pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return INCR_E_NOMEM;

	p->options = options;
	p->sink = sink;
	p->n_slots = N_JOBS_ALONE;
	/* None of these can fail on Linux. */
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->freed, NULL);
	(void)pthread_cond_init(&p->filled, NULL);
	(void)pthread_cond_init(&p->encoded, NULL);
	*out_pipe = p;
	return 0;
}

/* With the lock held. */
static void fail_locked(struct ingest_pipe *p, int code, struct incr_error *err)
{
	if (p->failure) {
		incr_error_release(err);
		return;
	}
	p->failure = code;
	p->error = *err;
	*err = INCR_ERROR_INIT;
	(void)pthread_cond_broadcast(&p->freed);
	(void)pthread_cond_broadcast(&p->filled);
	(void)pthread_cond_broadcast(&p->encoded);
}

void ingest_pipe_fail(struct ingest_pipe *p, int code, struct incr_error *err)
{
	(void)pthread_mutex_lock(&p->lock);
	fail_locked(p, code, err);
	(void)pthread_mutex_unlock(&p->lock);
}

static void tell_progress(struct ingest_pipe *p, bool is_last)
{
	const struct ingest_options *o = p->options;
	int64_t now;

	if (!o->progress)
		return;

	now = o->io->now_ns(o->io);
	if (!is_last && now >= p->progress_ns &&
	    now - p->progress_ns < PROGRESS_NS)
		return;
	p->progress_ns = now;
	o->progress(o->progress_closure, p->sink->n_done, p->sink->size_done, 0,
		    0);
}

/* With the lock held: the next job to encode, or NULL at the end. */
static struct slot *wait_filled(struct ingest_pipe *p)
{
	while (!p->failure && p->n_taken == p->n_filled && !p->is_at_end)
		(void)pthread_cond_wait(&p->filled, &p->lock);
	if (p->failure || p->n_taken == p->n_filled)
		return NULL;
	return &p->slots[p->n_taken++ % p->n_slots];
}

static void *run_worker(void *closure)
{
	struct ingest_pipe *p = closure;
	struct incr_error err = INCR_ERROR_INIT;
	struct ingest_worker w;
	struct slot *slot;
	int r = 0;

	ingest_worker_init(&w, p->options);
	(void)pthread_mutex_lock(&p->lock);
	while (r == 0 && (slot = wait_filled(p)) != NULL) {
		uint64_t container = p->container;

		(void)pthread_mutex_unlock(&p->lock);
		r = ingest_encode(&w, &slot->job, container, &err);
		(void)pthread_mutex_lock(&p->lock);
		slot->is_encoded = true;
		(void)pthread_cond_signal(&p->encoded);
	}
	if (r < 0)
		fail_locked(p, r, &err);
	(void)pthread_mutex_unlock(&p->lock);
	ingest_worker_release(&w);
	return NULL;
}

/* With the lock held: the next job in order, or NULL at the end. */
static struct slot *wait_encoded(struct ingest_pipe *p)
{
	for (;;) {
		struct slot *slot = &p->slots[p->n_written % p->n_slots];

		if (p->failure || (p->is_at_end && p->n_written == p->n_filled))
			return NULL;
		if (p->n_written < p->n_filled && slot->is_encoded)
			return slot;
		(void)pthread_cond_wait(&p->encoded, &p->lock);
	}
}

static void *run_writer(void *closure)
{
	struct ingest_pipe *p = closure;
	struct incr_error err = INCR_ERROR_INIT;
	struct slot *slot;
	int r = 0;

	(void)pthread_mutex_lock(&p->lock);
	while (r == 0 && (slot = wait_encoded(p)) != NULL) {
		(void)pthread_mutex_unlock(&p->lock);
		r = ingest_sink_take(p->sink, &slot->job, &err);
		ingest_job_reset(&slot->job);
		tell_progress(p, false);
		(void)pthread_mutex_lock(&p->lock);
		slot->is_encoded = false;
		p->n_written++;
		p->container = ingest_sink_container(p->sink);
		(void)pthread_cond_signal(&p->freed);
	}
	if (r < 0)
		fail_locked(p, r, &err);
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int start_threads(struct ingest_pipe *p, struct incr_error *err)
{
	size_t n_wanted = p->options->n_threads ? p->options->n_threads :
						  io_count_cores();
	size_t n = 0;
	int e;

	p->n_slots = 2 * n_wanted + 4 < N_JOBS_MAX ? 2 * n_wanted + 4 :
						     N_JOBS_MAX;
	if (n_wanted > N_WORKERS_MAX)
		n_wanted = N_WORKERS_MAX;
	e = pthread_create(&p->writer, NULL, run_writer, p);
	if (e == 0) {
		p->has_threads = true;
		while (n < n_wanted &&
		       pthread_create(&p->workers[n], NULL, run_worker, p) == 0)
			n++;
		e = n == 0 ? EAGAIN : 0;
		p->n_workers = n;
	}
	if (e != 0)
		return incr_fail_errno(err, e, NULL, "cannot start a thread");
	return 0;
}

struct ingest_job *ingest_pipe_take(struct ingest_pipe *p)
{
	struct slot *slot;
	bool is_failed;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->failure && p->n_filled - p->n_written == p->n_slots)
		(void)pthread_cond_wait(&p->freed, &p->lock);
	slot = &p->slots[p->n_filled % p->n_slots];
	is_failed = p->failure != 0;
	(void)pthread_mutex_unlock(&p->lock);
	return is_failed ? NULL : &slot->job;
}

int ingest_pipe_push(struct ingest_pipe *p)
{
	struct incr_error err = INCR_ERROR_INIT;
	bool starts;
	int r;

	(void)pthread_mutex_lock(&p->lock);
	p->n_filled++;
	starts = p->n_filled == N_JOBS_ALONE;
	(void)pthread_cond_signal(&p->filled);
	r = p->failure ? INGEST_STOPPED : 0;
	(void)pthread_mutex_unlock(&p->lock);
	if (r == 0 && starts) {
		r = start_threads(p, &err);
		if (r < 0)
			ingest_pipe_fail(p, r, &err);
	}
	return r;
}

/* The only job, in the caller's thread. */
static int run_alone(struct ingest_pipe *p, struct incr_error *err)
{
	struct ingest_job *job = &p->slots[0].job;
	struct ingest_worker w;
	int r;

	ingest_worker_init(&w, p->options);
	r = ingest_encode(&w, job, PACK_LOG, err);
	ingest_worker_release(&w);
	if (r < 0)
		return r;
	return ingest_sink_take(p->sink, job, err);
}

static void join_threads(struct ingest_pipe *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->is_at_end = true;
	(void)pthread_cond_broadcast(&p->filled);
	(void)pthread_cond_broadcast(&p->encoded);
	(void)pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->n_workers; i++)
		(void)pthread_join(p->workers[i], NULL);
	(void)pthread_join(p->writer, NULL);
	p->has_threads = false;
}

int ingest_pipe_finish(struct ingest_pipe *p, struct incr_error *err)
{
	struct incr_error own = INCR_ERROR_INIT;
	int r = 0;

	if (p->has_threads)
		join_threads(p);
	else if (!p->failure && p->n_filled == 1)
		r = run_alone(p, &own);
	if (r < 0)
		ingest_pipe_fail(p, r, &own);
	if (p->failure) {
		if (err)
			*err = p->error;
		else
			incr_error_release(&p->error);
		p->error = INCR_ERROR_INIT;
		return p->failure;
	}
	tell_progress(p, true);
	return 0;
}

void ingest_pipe_free(struct ingest_pipe *p)
{
	if (!p)
		return;

	for (size_t i = 0; i < p->n_slots; i++)
		ingest_job_release(&p->slots[i].job);
	incr_error_release(&p->error);
	(void)pthread_cond_destroy(&p->encoded);
	(void)pthread_cond_destroy(&p->filled);
	(void)pthread_cond_destroy(&p->freed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}
