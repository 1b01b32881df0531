/*
 * What the parts of the log share: log.c (segments), log_read.c, log_append.c
 * and log_sync.c.  Included by those files only.
 */
#ifndef INCR_LOG_IMPL_H
#define INCR_LOG_IMPL_H

#include <pthread.h>

#include "lock.h"
#include "log.h"

#define LOG_BEGIN ((uint64_t)LOG_SEGMENT_HEADER_SIZE)

struct segment {
	uint64_t base; /* position of its header */
	uint64_t first_sequence;
	int fd; /* -1: closed */
	unsigned n_users; /* the descriptor stays open while there are any */
	uint64_t last_use;
	bool is_headless; /* its header is damaged: allows_damage */
};

struct log {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	int dirfd; /* of log/ */
	int lock_fd; /* of the lock file, for the hint; -1: none */
	struct lock_file locks;
	uint8_t uuid[16];
	uint64_t store_tag;
	uint64_t hint_key; /* of this boot; 0: no hint */
	uint64_t mark_key; /* of this store; 0: no hint at all */
	uint64_t segment_size;
	bool is_writable;
	bool is_opening;
	bool allows_damage;

	pthread_mutex_t lock; /* guards the next five, and struct segment */
	struct segment **segments; /* owned; ascending */
	size_t n_segments;
	size_t n_open;
	uint64_t n_uses;

	/* One thread at a time from here on. */
	struct buf window; /* bytes of a segment, read ahead */
	uint64_t window_position;
	bool window_ends; /* it was read up to the end of the file */
	struct buf out; /* the record being appended */
	uint64_t next_position, next_sequence; /* after the last record seen */
	uint64_t durable_to;
	uint64_t reserved_to; /* there is room on disk up to here; 0: not known */
	/* The end of the log when it was seen last: zeros from there up to here. */
	uint64_t blank_from, blank_to; /* blank_from 0: not known */
	bool is_dead; /* a sync failed */
	bool is_newer; /* holds records only a newer program may append to */
	struct log_hole *holes; /* owned: those known, as they were found */
	size_t n_holes;
};

/* ---- log.c ---- */
struct log *log_new(const struct log_options *options); /* NULL: no memory */

/* ---- log_segment.c ---- */
void log_segment_name(uint64_t base, char out[LOG_NAME_SIZE]);
/* The segment that @position lies in, open until log_segment_put(). */
int log_segment_get(struct log *log, uint64_t position,
		    struct segment **out_segment, struct incr_error *err);
void log_segment_put(struct log *log, struct segment *segment);

enum { SEGMENT_FOUND = 0, SEGMENT_ABSENT = 1, SEGMENT_TORN = 2 };
/*
 * Look for a segment that begins at @base, and know it from now on.  TORN: a
 * file of that name without a whole header and without records, left over from
 * a crash while it was made.
 */
int log_segment_find(struct log *log, uint64_t base, struct incr_error *err);
/* Write a new segment file; not durable.  SEGMENT_TORN: the name is taken. */
int log_segment_create(struct log *log, uint64_t base, uint64_t first_sequence,
		       struct incr_error *err);
/* Know all segments there are; *out_newest: largest base, torn or not. */
int log_segment_list(struct log *log, uint64_t *out_newest,
		     struct incr_error *err);
/* Know one that is there by all evidence; opened when it is read. */
int log_segment_insert(struct log *log, uint64_t base, struct incr_error *err);
uint64_t log_newest_base(struct log *log);

/* ---- log_read.c ---- */
/*
 * The record at @position, or the first of the next segment, whole and
 * checked; 1: no such record.  No judgement of what that means.
 */
int log_load(struct log *log, uint64_t position, struct log_record *out_record,
	     uint64_t *out_next, struct incr_error *err);
/*
 * The first whole record in one segment file at or after offset @off whose
 * durable_to is at least @durable_min; 1: none.
 */
int log_scan(struct log *log, int fd, uint64_t base, uint64_t off,
	     uint64_t durable_min, uint64_t *out_position,
	     struct incr_error *err);
int log_fail_corrupt(struct incr_error *err, uint64_t base, uint64_t position,
		     const char *what);

/* Nothing but zeros, all there is of them: room for later records. */
bool log_is_blank(const uint8_t *bytes, size_t size);

/*
 * Nothing has come where this handle saw the end of the log, in @segment, and
 * zeros behind it: a writer begins a record there, or cuts them off first.
 */
bool log_is_still_blank(struct log *log, struct segment *segment,
			uint64_t position);

/* The first segment with a base above @position: its base; false: there is none. */
bool log_next_segment(struct log *log, uint64_t position, uint64_t *out_base);

/* ---- log_hole.c ---- */
/*
 * The stretch that @position lies in, as a record behind it says; 1: none says
 * so.  Looks through the log, unless it is known already.
 */
int log_find_hole(struct log *log, uint64_t position, struct log_hole *out_hole,
		  struct incr_error *err);

/* ---- log_lost.c ---- */
/*
 * Copy at most @size bytes at @off of a file to lost/<what>-<position>-<n>, for
 * the first n that is free; durable on return.  *out_size: bytes copied.
 */
int log_keep(struct log *log, int fd, uint64_t off, uint64_t size,
	     const char *what, uint64_t position, uint64_t *out_size,
	     struct incr_error *err);
int log_sync_lost(struct log *log, struct incr_error *err);

/* ---- log_sync.c ---- */
struct log_hint {
	uint64_t synced_to;
	uint64_t failed_from; /* 0: no sync has failed */
};

/* Find the hint in the lock file; a store without one works, with more syncs. */
int log_hint_open(struct log *log, struct incr_error *err);
/* Zeros when there is no valid hint; failed_from only of this boot. */
struct log_hint log_hint_read(struct log *log);
int log_fail_dead(struct incr_error *err);
/* Record that a sync of bytes at or after @from failed; the handle is dead. */
void log_poison(struct log *log, uint64_t from);
/*
 * After a failed sync of any process, before an append at @position: see the
 * strategy in log_sync.c.  The caller holds LOCK_APPEND.
 */
int log_heal(struct log *log, uint64_t position, struct incr_error *err);

static inline void log_note_durable(struct log *log, uint64_t position)
{
	if (position > log->durable_to)
		log->durable_to = position;
}

#endif
