/*
 * Reading ahead.  The kernel asks for one or two pieces of a file at a time, so
 * that a reader alone would keep one processor decoding.  A read that goes on
 * where the last one ended has the threads here decode what follows into the
 * store's cache of frames; the window doubles with each such read.
 *
 * What cannot be decoded is left for the reader to meet.
 */
#include "config.h"

#include "ahead.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_WINDOW ((uint64_t)512 << 10)
#define MAX_WINDOW ((uint64_t)4 << 20)
#define PIECE ((uint64_t)256 << 10) /* that one thread decodes at once */
/* Reads in flight are answered by several threads, not always in order. */
#define SLACK ((uint64_t)1 << 20)

void ahead_init(struct ahead *a)
{
	*a = (struct ahead){ 0 };
	(void)pthread_mutex_init(&a->lock, NULL);
	(void)pthread_cond_init(&a->work, NULL);
}

void ahead_release(struct ahead *a)
{
	(void)pthread_mutex_lock(&a->lock);
	a->has_ended = true;
	(void)pthread_cond_broadcast(&a->work);
	(void)pthread_mutex_unlock(&a->lock);
	for (unsigned int i = 0; i < a->n_threads; i++)
		(void)pthread_join(a->threads[i], NULL);
	for (size_t i = 0; i < AHEAD_N_STREAMS; i++)
		incr_view_unref(a->streams[i].view);
	(void)pthread_cond_destroy(&a->work);
	(void)pthread_mutex_destroy(&a->lock);
}

/* The stream with most left to do: the one whose reader waits. NULL: none. */
static struct ahead_stream *next_work(struct ahead *a)
{
	struct ahead_stream *best = NULL;

	for (size_t i = 0; i < AHEAD_N_STREAMS; i++) {
		struct ahead_stream *s = &a->streams[i];

		if (s->decoded < s->wanted &&
		    (best == NULL ||
		     s->wanted - s->decoded > best->wanted - best->decoded))
			best = s;
	}
	return best;
}

static void decode_piece(struct incr_view *view, uint64_t place, uint64_t off,
			 uint64_t size)
{
	struct incr_node file = INCR_NODE_INIT;

	if (incr_view_at(view, place, 0, &file, NULL) == 0)
		(void)incr_file_prefetch(view, &file, off, (size_t)size, NULL);
	incr_node_release(&file);
}

static void *ahead_thread(void *arg)
{
	struct ahead *a = arg;

	(void)pthread_mutex_lock(&a->lock);
	while (!a->has_ended) {
		struct ahead_stream *s = next_work(a);
		struct incr_view *view;
		uint64_t off, size, place;

		if (s == NULL) {
			(void)pthread_cond_wait(&a->work, &a->lock);
			continue;
		}
		view = incr_view_ref(s->view);
		place = s->place;
		off = s->decoded;
		size = s->wanted - off < PIECE ? s->wanted - off : PIECE;
		s->decoded += size;
		(void)pthread_mutex_unlock(&a->lock);
		decode_piece(view, place, off, size);
		incr_view_unref(view);
		(void)pthread_mutex_lock(&a->lock);
	}
	(void)pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* One for each processor; fewer, even none, will do. */
static void start_threads(struct ahead *a)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	sigset_t all, old;

	a->has_started = true;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	while (a->n_threads < AHEAD_MAX_THREADS && (long)a->n_threads < n &&
	       pthread_create(&a->threads[a->n_threads], NULL, ahead_thread,
			      a) == 0)
		a->n_threads++;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static bool goes_on(const struct ahead_stream *s, const struct incr_view *view,
		    uint64_t place, uint64_t off)
{
	return s->view == view && s->place == place && off <= s->next + SLACK &&
	       off + SLACK >= s->next;
}

/* The stream that a read at @off goes on with; else the one not used longest. */
static struct ahead_stream *find_stream(struct ahead *a,
					const struct incr_view *view,
					uint64_t place, uint64_t off)
{
	struct ahead_stream *oldest = &a->streams[0];

	for (size_t i = 0; i < AHEAD_N_STREAMS; i++) {
		struct ahead_stream *s = &a->streams[i];

		if (goes_on(s, view, place, off))
			return s;
		if (s->stamp < oldest->stamp)
			oldest = s;
	}
	return oldest;
}

bool ahead_note(struct ahead *a, struct incr_view *view,
		const struct incr_node *file, uint64_t off, uint64_t size)
{
	uint64_t end = off + size;
	struct ahead_stream *s;
	bool is_in_order;

	(void)pthread_mutex_lock(&a->lock);
	s = find_stream(a, view, file->place, off);
	is_in_order = goes_on(s, view, file->place, off);
	if (!is_in_order) {
		incr_view_unref(s->view);
		*s = (struct ahead_stream){
			.view = incr_view_ref(view),
			.place = file->place,
			.next = end,
			.decoded = end,
			.wanted = end,
		};
	} else if (end > s->next) {
		s->next = end;
		s->window = s->window == 0 ? FIRST_WINDOW : 2 * s->window;
		if (s->window > MAX_WINDOW)
			s->window = MAX_WINDOW;
		if (s->decoded < end)
			s->decoded = end;
		s->wanted = end + s->window;
		if (s->wanted > file->size)
			s->wanted = file->size;
		if (!a->has_started)
			start_threads(a);
		(void)pthread_cond_broadcast(&a->work);
	}
	s->stamp = ++a->stamp;
	(void)pthread_mutex_unlock(&a->lock);
	return is_in_order;
}
