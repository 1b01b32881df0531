/*
 * Pushing: when a frame of small files was decoded for one of them, the others
 * go into the kernel's page cache too, before anybody asks.
 */
#ifndef INCR_PUSH_H
#define INCR_PUSH_H

#include "incr.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct incr_mount;
struct view_slot;

struct push {
	pthread_mutex_t lock; /* held by the only thread that pushes */
};

/* Somebody who reads the files of a view in order. */
struct push_stream {
	uint64_t next; /* place where the last run ended */
	uint64_t mark; /* place of the file that it left out; UINT64_MAX: none */
	unsigned int window; /* files to push at once */
	uint64_t stamp; /* of the last use; 0: never */
};

#define PUSH_N_STREAMS 4

struct push_streams { /* of a view; guarded by push.lock */
	struct push_stream items[PUSH_N_STREAMS];
	uint64_t stamp;
};

/* One run of files behind a file that was read. */
struct push_run {
	struct incr_mount *mount;
	struct view_slot *slot;
	struct push_stream *stream;
	bool is_ahead; /* of the reader: the answer need not wait for it */
	struct incr_view_iter *iter;
	struct incr_node node;
	struct incr_frame_ref frame; /* of the file before; has_frame */
	bool has_frame;
	unsigned int n_pushed, n_unknown, n_to_leap;
};

void push_init(struct push *p);
void push_release(struct push *p);

/*
 * Begin a run behind @file.  False: another thread is pushing, or there is
 * nothing to push.  Gives the reader's token away.
 */
bool push_begin(struct push_run *run, struct incr_mount *m,
		struct view_slot *slot, const struct incr_node *file);
/* Push until @n files of this run were pushed.  False: the run is at its end. */
bool push_some(struct push_run *run, unsigned int n);
void push_end(struct push_run *run);

/*
 * Push the rest of the frame @frame of the large file @file, of which @size
 * bytes at @off were just answered, unless another thread is pushing.  Gives
 * the reader's token away.
 */
void push_around(struct incr_mount *m, struct view_slot *slot,
		 const struct incr_node *file,
		 const struct incr_frame_ref *frame, uint64_t off, size_t size);

#endif
