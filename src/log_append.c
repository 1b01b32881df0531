/*
 * Appending to the log: under the append lock, one pwrite at its end.
 *
 * A file that grows makes each sync write its inode too, which takes as long as
 * the bytes.  So a log that is used much has zeros behind its end, for records
 * to be written over; they are cut off before the next segment is made.
 *
 * A torn tail is kept aside and cut, and the cut is synced before anything is
 * written over it: otherwise a crash could bring back a whole record of the
 * old tail behind the new one.  A full segment is followed by a new one, made
 * in this order: sync of the old one, header, fdatasync, fsync of log/.
 */
#include "config.h"

#include "log.h"

#include "error.h"
#include "hash.h"
#include "log_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Room behind the end for records that free space; at least half of it is there. */
#define RESERVE_SIZE UINT64_C(16384)
/* Bytes of a segment from which on the room is zeros in the file. */
#define BLANKS_FROM UINT64_C(4096)
#define OUT_KEEP ((size_t)1 << 20) /* a larger buffer is given back */

/* Cut off what stands at the end, if log_read() finds it torn. */
static int cut_tail(struct log *log, struct segment *segment, uint64_t position,
		    struct incr_error *err)
{
	struct log_record record;
	char name[LOG_NAME_SIZE];
	uint64_t next, size;
	int r = log_read(log, position, &record, &next, err);

	if (r == 0)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "log position %" PRIu64 " is not its end",
				 position);
	if (r < 0)
		return r;
	r = log_keep(log, segment->fd, position - segment->base, UINT64_MAX,
		     "torn", position, &size, err);
	if (r < 0)
		return r;

	log_segment_name(segment->base, name);
	log->reserved_to = 0;
	r = log->io->truncate(log->io, segment->fd, position - segment->base);
	if (r < 0)
		return incr_fail_errno(err, r, name, "cannot cut a torn tail");
	r = io_sync_file(log->io, segment->fd, name, err);
	if (r < 0)
		log_poison(log, position);
	return r;
}

/* Put the leftover of a segment that was never finished out of the way. */
static int keep_torn_segment(struct log *log, uint64_t base,
			     struct incr_error *err)
{
	char name[LOG_NAME_SIZE], lost[64];
	int r;

	log_segment_name(base, name);
	for (unsigned n = 0;; n++) {
		(void)snprintf(lost, sizeof(lost),
			       "lost/torn-segment-%016" PRIx64 "-%u", base, n);
		r = log->io->rename_at(log->io, log->store_dirfd, name,
				       log->store_dirfd, lost,
				       RENAME_NOREPLACE);
		if (r != -EEXIST)
			break;
	}
	if (r < 0)
		return incr_fail_errno(err, r, name, "cannot move aside");
	return log_sync_lost(log, err);
}

/* Make the header and the name of the newest segment durable. */
static int settle_segment(struct log *log, struct segment *segment,
			  struct incr_error *err)
{
	char name[LOG_NAME_SIZE];
	int r = log->io->fdatasync(log->io, segment->fd);

	log_segment_name(segment->base, name);
	if (r < 0)
		r = incr_fail_errno(err, r, name, "cannot sync the file");
	else
		r = io_sync_dir(log->io, log->dirfd, "log", err);
	if (r < 0)
		log_poison(log, segment->base);
	else
		log_note_durable(log, segment->base + LOG_SEGMENT_HEADER_SIZE);
	return r;
}

/*
 * Cut the zeros behind @base, the end of the log: where the file of a segment
 * ends is where the next begins.
 */
static int cut_blanks(struct log *log, struct segment *segment, uint64_t base,
		      struct incr_error *err)
{
	char name[LOG_NAME_SIZE];
	int r = log->io->truncate(log->io, segment->fd, base - segment->base);

	log_segment_name(segment->base, name);
	if (r < 0)
		return incr_fail_errno(err, r, name, "cannot cut the zeros");
	r = io_sync_file(log->io, segment->fd, name, err);
	if (r < 0)
		log_poison(log, base);
	return r;
}

/* Begin a new segment at @base, the end of the log in @segment. */
static int begin_segment(struct log *log, struct segment *segment,
			 uint64_t base, uint64_t sequence,
			 struct incr_error *err)
{
	int r = log_sync(log, base, err);

	if (r == 0 && log->blank_to > base)
		r = cut_blanks(log, segment, base, err);
	if (r < 0)
		return r;
	log->reserved_to = 0; /* of the segment before */
	r = log_segment_create(log, base, sequence, err);
	if (r == SEGMENT_TORN) {
		r = keep_torn_segment(log, base, err);
		if (r < 0)
			return r;
		r = log_segment_create(log, base, sequence, err);
	}
	if (r < 0)
		return r;
	r = log_segment_find(log, base, err);
	if (r > 0)
		r = log_fail_corrupt(err, base, base,
				     "the new segment does not read back");
	return r;
}

/*
 * What the segment's file has beyond @position: *out_torn bytes of a torn tail,
 * or zeros, or nothing; log->blank_to tells of those.  The file is read, and
 * not asked for its size: after a stat, kernels give the next write a time of
 * its own, and the sync has an inode to write again.
 */
static int tail_size(struct log *log, struct segment *segment,
		     uint64_t position, uint64_t *out_torn,
		     struct incr_error *err)
{
	uint8_t bytes[RECORD_ALIGN + 4096];
	uint64_t off = position - segment->base - RECORD_ALIGN, end;
	size_t n, skip = RECORD_ALIGN; /* what must stand before */
	char name[LOG_NAME_SIZE];
	bool is_blank = true;

	*out_torn = 0;
	if (log_is_still_blank(log, segment, position))
		return 0;
	log->blank_from = 0;
	log_segment_name(segment->base, name);
	do {
		int r = io_read_upto(log->io, segment->fd, bytes, sizeof(bytes),
				     off, &n, name, err);

		if (r < 0)
			return r;
		if (n < skip)
			return incr_fail(err, INCR_E_INVALID, NULL, name,
					 "log position %" PRIu64
					 " is beyond its end",
					 position);
		is_blank = is_blank && log_is_blank(bytes + skip, n - skip);
		off += n;
		skip = 0;
	} while (n == sizeof(bytes));

	end = segment->base + off;
	log->blank_from = position;
	log->blank_to = is_blank ? end : position;
	*out_torn = is_blank ? 0 : end - position;
	return 0;
}

/*
 * Make @position, in @segment, a place to append to.  1: the log goes on in
 * another segment, now known; look again.
 */
static int prepare_in(struct log *log, struct segment *segment,
		      uint64_t position, uint64_t sequence,
		      struct incr_error *err)
{
	uint64_t torn = 0, off = position - segment->base;
	int r, found = SEGMENT_ABSENT;

	if (off < LOG_SEGMENT_HEADER_SIZE)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "no record can stand at log position %" PRIu64,
				 position);
	r = tail_size(log, segment, position, &torn, err);

	if (r == 0 && torn)
		r = cut_tail(log, segment, position, err);
	if (r < 0)
		return r;
	/* behind zeros no segment begins */
	if (off > LOG_SEGMENT_HEADER_SIZE && log->blank_to == position)
		found = log_segment_find(log, position, err);
	if (found <= SEGMENT_FOUND)
		return found < 0 ? found : 1;

	r = log_heal(log, position, err);
	if (r < 0)
		return r;
	if (off == LOG_SEGMENT_HEADER_SIZE)
		return settle_segment(log, segment, err);
	if (found == SEGMENT_ABSENT && off < log->segment_size)
		return 0;
	r = begin_segment(log, segment, position, sequence, err);
	return r < 0 ? r : 1;
}

static int end_log(struct log *log, uint64_t position, bool cuts,
		   uint64_t *out_size, struct incr_error *err)
{
	struct segment *segment;
	uint64_t size = 0;
	int r = log_segment_get(log, position, &segment, err);

	if (r < 0)
		return r;
	if (position == segment->base)
		position += LOG_SEGMENT_HEADER_SIZE;
	r = tail_size(log, segment, position, &size, err);
	if (r == 0 && size && cuts)
		r = cut_tail(log, segment, position, err);
	log_segment_put(log, segment);
	if (r == 0)
		*out_size = size;
	return r;
}

int log_torn_size(struct log *log, uint64_t position, uint64_t *out_size,
		  struct incr_error *err)
{
	return end_log(log, position, false, out_size, err);
}

static int check_writable(const struct log *log, struct incr_error *err)
{
	if (!log->is_writable)
		return incr_fail(err, INCR_E_READONLY, NULL, NULL,
				 "the log was opened for reading");
	return log->is_dead ? log_fail_dead(err) : 0;
}

int log_cut_tail(struct log *log, uint64_t position, uint64_t *out_size,
		 struct incr_error *err)
{
	int r = check_writable(log, err);

	return r < 0 ? r : end_log(log, position, true, out_size, err);
}

/* The segment to append to, and where; the caller puts it back. */
static int prepare(struct log *log, uint64_t position, uint64_t sequence,
		   struct segment **out_segment, uint64_t *out_position,
		   struct incr_error *err)
{
	for (;;) {
		struct segment *segment;
		int r = log_segment_get(log, position, &segment, err);

		if (r < 0)
			return r;
		if (position == segment->base)
			position += LOG_SEGMENT_HEADER_SIZE;
		r = prepare_in(log, segment, position, sequence, err);
		if (r == 0) {
			*out_segment = segment;
			*out_position = position;
			return 0;
		}
		log_segment_put(log, segment);
		if (r < 0)
			return r;
	}
}

static int assemble(struct log *log, const struct log_append *a,
		    uint64_t position, struct incr_error *err)
{
	struct record_header h = {
		.type = a->type,
		.payload_size =
			(uint32_t)(a->payload_size[0] + a->payload_size[1]),
		.sequence = a->sequence,
		.position = position,
		.durable_to = log->durable_to < position ? log->durable_to :
							   position,
		.store_tag = log->store_tag,
		.payload_hash = hash64_two(a->payload[0], a->payload_size[0],
					   a->payload[1], a->payload_size[1]),
	};
	size_t span = (size_t)record_span(h.payload_size);
	struct buf *out = &log->out;

	if (out->capacity > OUT_KEEP && span <= OUT_KEEP)
		buf_release(out);
	buf_reset(out);
	if (buf_reserve(out, span) < 0)
		return incr_fail_nomem(err);
	record_encode_header(&h, out->data);
	out->size = RECORD_HEADER_SIZE;
	/* Cannot fail: there is room. */
	(void)buf_put(out, a->payload[0], a->payload_size[0]);
	(void)buf_put(out, a->payload[1], a->payload_size[1]);
	(void)buf_put_zeros(out, span - out->size);
	return 0;
}

/*
 * Keep room behind @end, in @segment, so that on a full disk a transaction can
 * still be aborted.  Only a full disk is an error: not every file system can.
 * *out_n_blanks: zeros to write behind the record.
 */
static int keep_reserve(struct log *log, struct segment *segment, uint64_t end,
			size_t *out_n_blanks, struct incr_error *err)
{
	bool blanks = end - segment->base >= BLANKS_FROM &&
		      end + RESERVE_SIZE / 2 > log->blank_to;
	char name[LOG_NAME_SIZE];
	int r;

	*out_n_blanks = blanks ? RESERVE_SIZE : 0;
	if (log->reserved_to < log->blank_to)
		log->reserved_to = log->blank_to;
	if (end + (blanks ? RESERVE_SIZE : RESERVE_SIZE / 2) <=
	    log->reserved_to)
		return 0;
	log_segment_name(segment->base, name);
	r = log->io->fallocate(log->io, segment->fd, end - segment->base,
			       RESERVE_SIZE);
	if (r == -ENOSPC || r == -EDQUOT)
		return incr_fail_errno(err, r, name,
				       "no room for another record");
	if (r == 0)
		log->reserved_to = end + RESERVE_SIZE;
	return 0;
}

static int write_record(struct log *log, const struct log_append *a,
			struct segment *segment, uint64_t position,
			uint64_t *out_end, struct incr_error *err)
{
	uint64_t off = position - segment->base, end;
	char name[LOG_NAME_SIZE];
	size_t n_blanks = 0;
	int r = assemble(log, a, position, err);

	if (r < 0)
		return r;
	end = position + log->out.size;
	if (!a->may_use_reserve) {
		r = keep_reserve(log, segment, end, &n_blanks, err);
		if (r == 0 && buf_put_zeros(&log->out, n_blanks) < 0)
			r = incr_fail_nomem(err);
		if (r < 0)
			return r;
	}
	log_segment_name(segment->base, name);
	r = io_write_all(log->io, segment->fd, log->out.data, log->out.size,
			 off, name, err);
	if (r < 0) {
		/* If this fails too, the next append cuts the torn tail. */
		(void)log->io->truncate(log->io, segment->fd, off);
		log->reserved_to = 0;
		log->blank_from = 0;
		return r;
	}
	log->blank_from = end;
	if (log->blank_to < end + n_blanks)
		log->blank_to = end + n_blanks;
	*out_end = end;
	return 0;
}

/* Who reads the record back finds it in the window. */
static void show_written(struct log *log, uint64_t position)
{
	struct buf window = log->window;

	log->window = log->out;
	log->out = window;
	log->window_position = position;
	log->window_ends = false;
}

static int check_append(const struct log *log, const struct log_append *a,
			struct incr_error *err)
{
	int r = check_writable(log, err);

	if (r < 0)
		return r;
	if (log->is_newer)
		return incr_fail(err, INCR_E_UNSUPPORTED, NULL, NULL,
				 "the log holds records that this version may "
				 "read, and must not append to");
	if (a->payload_size[0] > RECORD_PAYLOAD_MAX ||
	    a->payload_size[1] > RECORD_PAYLOAD_MAX - a->payload_size[0])
		return incr_fail(err, INCR_E_RANGE, NULL, NULL,
				 "a log record of more than %u bytes",
				 (unsigned)RECORD_PAYLOAD_MAX);
	if (a->position == log->next_position &&
	    a->sequence != log->next_sequence)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "the next log record has number %" PRIu64,
				 log->next_sequence);
	return 0;
}

int log_append(struct log *log, const struct log_append *a,
	       uint64_t *out_position, uint64_t *out_next,
	       struct incr_error *err)
{
	struct segment *segment;
	uint64_t position, end;
	int r = check_append(log, a, err);

	if (r < 0)
		return r;
	r = prepare(log, a->position, a->sequence, &segment, &position, err);
	if (r < 0)
		return r;
	r = write_record(log, a, segment, position, &end, err);
	log_segment_put(log, segment);
	if (r < 0)
		return r;

	show_written(log, position);
	log->next_position = end;
	log->next_sequence = a->sequence + 1;
	*out_position = position;
	*out_next = log->next_position;
	return 0;
}
