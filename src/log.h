/*
 * The append-only log: segment files of records.  A position is a byte offset
 * in the log as a whole; each segment's header says where it begins.
 *
 * Strategy (docs/durability.md): a record is one pwrite at the end of the last
 * segment, under the append lock; it is acknowledged after a fdatasync that
 * began after it.  Readers take no lock and stop at the last whole record.
 * A writer, under the lock, keeps a torn tail aside in lost/ and cuts it off.
 */
#ifndef INCR_LOG_H
#define INCR_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "io.h"
#include "record.h"

#define LOG_SEGMENT_HEADER_SIZE 64
#define LOG_SEGMENT_SIZE \
	(UINT64_C(64)    \
	 << 20) /* a segment that has reached it is followed by a new one */

struct log;

struct log_options {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed; log/, lost/ and lock lie below it */
	uint8_t uuid[16];
	bool is_writable;
	/* For verify and repair: segments with damaged headers are read too. */
	bool allows_damage;
	uint64_t segment_size; /* 0: LOG_SEGMENT_SIZE; small in tests */
};

/* A stretch that a repair has given up: readers go on at its end. */
struct log_hole {
	uint64_t from, to; /* to 0: none */
	uint64_t last_sequence; /* number of the last record in it */
	uint64_t next_build; /* number of the first build after the repair */
};

struct log_record {
	struct record_header header;
	const uint8_t *
		payload; /* borrowed from the log's read buffer until the next call */
	struct log_hole hole; /* what was passed over to come to it */
};

/* The directories log/ and lost/ and the first segment of a new store; durable on return. */
int log_create(const struct log_options *options, struct incr_error *err);
int log_open(const struct log_options *options, struct log **out_log,
	     struct incr_error *err);
void log_close(struct log *log);
/* The locks of the store, for whoever uses the log. */
struct lock_file *log_locks(struct log *log);
/* False also when its newest segment may only be read. */
bool log_is_writable(const struct log *log);

/*
 * Read the record at @position.  Returns 0, 1 at the end of the log (nothing
 * there, or a torn tail), INCR_E_CORRUPT with the word "corrupt-log" naming
 * segment and offset when a bad record stands before the largest durable_to of
 * any later whole record.  Next position = position + record_span(), or the
 * next segment's base: use *out_next.  Damage that a later record says was
 * given up is passed over.
 */
int log_read(struct log *log, uint64_t position, struct log_record *out_record,
	     uint64_t *out_next, struct incr_error *err);
/*
 * The first whole record at or behind @position, in any segment; 1: there is
 * none.  For verify and repair, which lose nothing that is whole.
 */
int log_next_whole(struct log *log, uint64_t position,
		   struct log_record *out_record, uint64_t *out_next,
		   struct incr_error *err);
/* Pass over a stretch from now on, as if a record said so. */
int log_add_hole(struct log *log, struct log_hole hole, struct incr_error *err);
/* Know only what the log itself says. */
void log_forget_holes(struct log *log);
/* The first segment from base @from on whose header is damaged; 1: there is none. */
int log_next_headless(struct log *log, uint64_t from, uint64_t *out_base,
		      struct incr_error *err);
/* Name and base of the segment that @position lies in. */
#define LOG_NAME_SIZE 32 /* of "log/<16 hex digits>.log" and the NUL */
uint64_t log_segment_of(struct log *log, uint64_t position,
			char out_name[LOG_NAME_SIZE]);
/* Where the first record stands. */
uint64_t log_begin(const struct log *log);

/*
 * Append one record.  The caller holds LOCK_APPEND and has read up to the end
 * of the log: @position is the end it saw and @sequence the next number.  A
 * torn tail at @position is kept aside and cut first (a file
 * lost/torn-<position>-<n>).  Payload is given in two parts so that content
 * frames need no copy.  *out_position: where the record stands; *out_next: the
 * new end.  The bytes are visible to readers, not yet durable.
 * A failed write leaves a torn tail and the handle usable; INCR_E_NOSPC says so.
 * Room for a few more records is kept behind each, for those that may use it:
 * where the file system can, and as zeros in the file of a log that is used
 * much, which makes the next syncs faster.
 * INCR_E_INVALID: @position is not the end.  INCR_E_RANGE: payload too large.
 */
struct log_append {
	uint16_t type;
	uint64_t position;
	uint64_t sequence;
	const void *payload[2];
	size_t payload_size[2];
	bool may_use_reserve; /* it makes room: an abort works on a full disk */
};
int log_append(struct log *log, const struct log_append *a,
	       uint64_t *out_position, uint64_t *out_next,
	       struct incr_error *err);

/*
 * Bytes of a torn tail at @position, the end of the log; 0: there is none.
 */
int log_torn_size(struct log *log, uint64_t position, uint64_t *out_size,
		  struct incr_error *err);

/*
 * Keep a torn tail at @position aside and cut it, as an append does.  The caller
 * holds LOCK_APPEND and has read up to @position, the end.  *out_size: bytes
 * that were moved to lost/; 0: there was none.
 */
int log_cut_tail(struct log *log, uint64_t position, uint64_t *out_size,
		 struct incr_error *err);

/*
 * For repair, under LOCK_APPEND.  Copy the bytes in [@from, @to), as far as
 * there are any, to lost/damaged-<position>-<n>, durably.  *out_size: bytes.
 */
int log_keep_damage(struct log *log, uint64_t from, uint64_t to,
		    uint64_t *out_size, struct incr_error *err);
/* The end of the newest segment's bytes that are not 0, or of what is known to have been on disk. */
int log_file_end(struct log *log, uint64_t *out_position,
		 struct incr_error *err);
/* Let the newest segment's file reach to @position, so that a record can stand there. */
int log_extend(struct log *log, uint64_t position, struct incr_error *err);
/* Write the header of the segment at @base again, durably, over a damaged one. */
int log_write_header(struct log *log, uint64_t base, uint64_t first_sequence,
		     struct incr_error *err);

/*
 * Return once everything before @position is durable.  Takes LOCK_SYNC, and
 * finds in the lock file's hint whether another process has synced that far
 * already.  A failed sync poisons the handle: every later append or sync fails
 * with the word "handle-dead", and other waiters of that sync fail too.
 */
int log_sync(struct log *log, uint64_t position, struct incr_error *err);
/* Log position known durable by this handle (no system call). */
uint64_t log_durable_to(const struct log *log);
/* Raw bytes at a position inside one record's payload (frames of small files). */
int log_read_bytes(struct log *log, uint64_t position, void *data, size_t size,
		   struct incr_error *err);

#endif
