/*
 * Reading ahead in large files: threads that decode what a reader who goes on
 * in order will ask for next, on all processors.
 */
#ifndef INCR_AHEAD_H
#define INCR_AHEAD_H

#include "incr.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define AHEAD_N_STREAMS 8
#define AHEAD_MAX_THREADS 8

/* Somebody who reads a file in order. */
struct ahead_stream {
	struct incr_view *view; /* held; NULL: the stream is not in use */
	uint64_t place; /* of the file */
	uint64_t next; /* where the next read will begin */
	uint64_t decoded; /* up to here, or being decoded */
	uint64_t wanted; /* up to here */
	uint64_t window; /* bytes; 0: read only once so far */
	uint64_t stamp; /* of the last use */
};

struct ahead {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work;
	struct ahead_stream streams[AHEAD_N_STREAMS];
	uint64_t stamp;
	unsigned int n_threads; /* that run: none before they are needed */
	pthread_t threads[AHEAD_MAX_THREADS];
	bool has_started, has_ended;
};

void ahead_init(struct ahead *a);
void ahead_release(struct ahead *a);

/*
 * @size bytes at @off of a large file are about to be read.  Whoever reads in
 * order will find what follows decoded.  True: the read goes on where another
 * one ended.
 */
bool ahead_note(struct ahead *a, struct incr_view *view,
		const struct incr_node *file, uint64_t off, uint64_t size);

#endif
