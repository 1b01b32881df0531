/*
 * Whether a store was written to, without reading it.
 */
#ifndef INCR_WATCH_H
#define INCR_WATCH_H

#include <pthread.h>
#include <stdint.h>

struct watch {
	pthread_mutex_t lock; /* guards what follows */
	int fd; /* an inotify of the log; -1: nothing tells of writes */
	uint64_t generation;
};

/* Until watch_open() works, everything counts as written to at each look. */
void watch_init(struct watch *w);
void watch_open(struct watch *w, const char *store_path);
void watch_release(struct watch *w);

/*
 * A number that stays the same as long as nothing was written; never 0.  A
 * write whose system call has returned changes it.
 */
uint64_t watch_generation(struct watch *w);

#endif
