/*
 * Reading the log, and telling its torn tail from damage.
 *
 * Strategy.  Reads go through a window of bytes read ahead.  The window is
 * trusted only for a record that proves whole; anything else is read afresh,
 * because a writer may have completed it, or cut it off and appended anew.
 *
 * Where no whole record stands, the log ends, unless something proves that
 * bytes there had been on disk (zeros are room for later records, and prove
 * nothing either): a later whole record whose durable_to is
 * larger, a later segment, the hint of this boot, or what this handle knows.
 * Each proof is gathered first and the record read again after it, since a
 * writer at work can make both true one after the other.
 *
 * Who commits looks at the end of the log again and again.  Where it was found,
 * with zeros behind it, the first bytes tell whether it still is there.
 */
#include "config.h"

#include "log.h"

#include "bytes.h"
#include "error.h"
#include "log_impl.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW_SIZE ((size_t)256 << 10)
#define WINDOW_KEEP ((size_t)1 << 20) /* a larger one is given back */
#define UNREADABLE_STEP UINT64_C(4096) /* a disk gives a page, or it does not */

int log_fail_corrupt(struct incr_error *err, uint64_t base, uint64_t position,
		     const char *what)
{
	char name[LOG_NAME_SIZE];

	log_segment_name(base, name);
	(void)incr_fail(err, INCR_E_CORRUPT, "corrupt-log", name,
			"%s, at byte %" PRIu64 " (log position %" PRIu64 ")",
			what, position - base, position);
	incr_error_at(err, position - base);
	return INCR_E_CORRUPT;
}

static bool window_has(const struct log *log, uint64_t position, size_t size)
{
	uint64_t skip = position - log->window_position;

	return position >= log->window_position && skip <= log->window.size &&
	       size <= log->window.size - skip;
}

/* As far as its first bytes tell. */
static bool window_has_record(const struct log *log, uint64_t position)
{
	return window_has(log, position, RECORD_HEADER_SIZE) &&
	       get_u32(log->window.data + (position - log->window_position)) ==
		       RECORD_MAGIC;
}

/*
 * @size bytes at @position of @segment, in the window; 1: the file ends
 * before.  @is_fresh: do not trust what the window holds.
 */
static int window_get(struct log *log, struct segment *segment,
		      uint64_t position, size_t size, bool is_fresh,
		      const uint8_t **out_bytes, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct buf *window = &log->window;
	size_t want = size > WINDOW_SIZE ? size : WINDOW_SIZE, got;
	uint64_t off = position - segment->base;
	char name[LOG_NAME_SIZE];
	int r;

	if (!is_fresh && window_has(log, position, size)) {
		*out_bytes = window->data + (position - log->window_position);
		return 0;
	}

	if (window->capacity > WINDOW_KEEP && want <= WINDOW_KEEP)
		buf_release(window);
	buf_reset(window);
	if (buf_reserve(window, want) < 0)
		return incr_fail_nomem(err);
	log_segment_name(segment->base, name);
	r = io_read_upto(log->io, segment->fd, window->data, want, off, &got,
			 name, &why);
	/* the bytes before those that the disk does not give are good */
	if (r < 0 && (!incr_is_unreadable(&why) || why.off - off < size))
		return incr_fail_with(err, r, &why);
	if (r < 0)
		got = (size_t)(why.off - off);
	incr_error_release(&why);

	window->size = got;
	log->window_position = position;
	log->window_ends = r == 0 && got < want;
	if (got < size)
		return 1;
	*out_bytes = window->data;
	return 0;
}

/* Does a header that decoded belong where it stands? */
static bool is_in_place(const struct log *log, const struct record_header *h,
			uint64_t position)
{
	return h->position == position && h->store_tag == log->store_tag;
}

static int load_at(struct log *log, struct segment *segment, uint64_t position,
		   bool is_fresh, struct log_record *out_record,
		   struct incr_error *err)
{
	const uint8_t *bytes;
	struct record_header h;
	char name[LOG_NAME_SIZE];
	uint64_t span;
	int r;

	r = window_get(log, segment, position, RECORD_HEADER_SIZE, is_fresh,
		       &bytes, err);
	if (r != 0)
		return r;
	r = record_decode_header(bytes, &h);
	log_segment_name(segment->base, name);
	if (r == INCR_E_UNSUPPORTED)
		return incr_fail(err, r, NULL, name,
				 "the record at log position %" PRIu64
				 " has a newer format",
				 position);
	if (r < 0 || !is_in_place(log, &h, position))
		return 1;

	span = record_span(h.payload_size);
	r = window_get(log, segment, position, (size_t)span, false, &bytes,
		       err);
	if (r != 0)
		return r;
	bytes += RECORD_HEADER_SIZE;
	if (record_check_payload(&h, bytes,
				 (size_t)(span - RECORD_HEADER_SIZE)) < 0)
		return 1;
	*out_record = (struct log_record){ .header = h, .payload = bytes };
	return 0;
}

/* The numbering breaks only if whole records were lost or exchanged. */
static int check_sequence(const struct segment *segment,
			  const struct record_header *h, struct incr_error *err)
{
	if (!segment->is_headless &&
	    h->position == segment->base + LOG_SEGMENT_HEADER_SIZE &&
	    h->sequence != segment->first_sequence)
		return log_fail_corrupt(
			err, segment->base, h->position,
			"a record has not the number its segment promises");
	return 0;
}

/* log_load() in one segment; out_is_end: the file ends at @position. */
static int load_in(struct log *log, struct segment *segment, uint64_t position,
		   struct log_record *out_record, bool *out_is_end,
		   struct incr_error *err)
{
	bool is_fresh = !window_has(log, position, RECORD_HEADER_SIZE);
	int r = load_at(log, segment, position, is_fresh, out_record, err);

	if (r == 1 && !is_fresh)
		r = load_at(log, segment, position, true, out_record, err);
	*out_is_end = r == 1 && log->window_position == position &&
		      log->window.size == 0;
	return r == 0 ? check_sequence(segment, &out_record->header, err) : r;
}

int log_load(struct log *log, uint64_t position, struct log_record *out_record,
	     uint64_t *out_next, struct incr_error *err)
{
	for (;;) {
		struct segment *segment;
		uint64_t at = position;
		bool is_end;
		int r = log_segment_get(log, position, &segment, err);

		if (r < 0)
			return r;
		/* The end of a segment is the base of the next. */
		if (at == segment->base)
			at += LOG_SEGMENT_HEADER_SIZE;
		r = load_in(log, segment, at, out_record, &is_end, err);
		log_segment_put(log, segment);
		if (r < 0)
			return r;
		if (r == 0) {
			*out_next =
				at +
				record_span(out_record->header.payload_size);
			return 0;
		}

		/* A segment without records is not followed by another. */
		if (!is_end || at != position ||
		    position == segment->base + LOG_SEGMENT_HEADER_SIZE)
			return 1;
		r = log_segment_find(log, position, err);
		if (r != SEGMENT_FOUND)
			return r < 0 ? r : 1;
	}
}

/* Is there a whole record with this header at @position of the file? */
static int is_whole(struct log *log, int fd, uint64_t off,
		    const struct record_header *h, struct buf *scratch,
		    const char *name, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	size_t size =
		(size_t)(record_span(h->payload_size) - RECORD_HEADER_SIZE);
	size_t got;
	int r;

	buf_reset(scratch);
	if (buf_reserve(scratch, size + 1) < 0)
		return incr_fail_nomem(err);
	r = io_read_upto(log->io, fd, scratch->data, size,
			 off + RECORD_HEADER_SIZE, &got, name, &why);
	if (r < 0 && log->allows_damage && incr_is_unreadable(&why))
		got = 0;
	else if (r < 0)
		return incr_fail_with(err, r, &why);
	incr_error_release(&why);
	return got == size && record_check_payload(h, scratch->data, size) == 0;
}

/*
 * A chunk of a segment.  Of a damaged one, what the disk does not give is
 * passed over: *out_next is where to go on, behind it.
 */
static int read_chunk(struct log *log, int fd, const char *name, uint64_t off,
		      struct buf *chunk, size_t *out_size, uint64_t *out_next,
		      struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct io_stat st;
	int r = io_read_upto(log->io, fd, chunk->data, WINDOW_SIZE, off,
			     out_size, name, &why);

	*out_next = 0;
	if (r == 0 || !log->allows_damage || !incr_is_unreadable(&why))
		return incr_fail_with(err, r, &why);
	*out_size = (size_t)(why.off - off);
	*out_next = (why.off / UNREADABLE_STEP + 1) * UNREADABLE_STEP;
	incr_error_release(&why);
	/* a disk that gives nothing at all tells no end either */
	r = log->io->stat_at(log->io, fd, "", &st);
	if (r < 0)
		return incr_fail_errno(err, r, name, "cannot look at it");
	if (*out_next >= st.size)
		*out_next = 0;
	return 0;
}

int log_scan(struct log *log, int fd, uint64_t base, uint64_t off,
	     uint64_t durable_min, uint64_t *out_position,
	     struct incr_error *err)
{
	_cleanup_buf_ struct buf chunk = BUF_INIT, scratch = BUF_INIT;
	char name[LOG_NAME_SIZE];
	uint64_t next;
	size_t size;

	log_segment_name(base, name);
	if (buf_reserve(&chunk, WINDOW_SIZE) < 0)
		return incr_fail_nomem(err);
	do {
		size_t i;
		int r = read_chunk(log, fd, name, off, &chunk, &size, &next,
				   err);

		if (r < 0)
			return r;
		for (i = 0; i + RECORD_HEADER_SIZE <= size; i += RECORD_ALIGN) {
			struct record_header h;

			if (get_u32(chunk.data + i) != RECORD_MAGIC ||
			    record_decode_header(chunk.data + i, &h) < 0 ||
			    !is_in_place(log, &h, base + off + i) ||
			    h.durable_to < durable_min)
				continue;
			r = is_whole(log, fd, off + i, &h, &scratch, name, err);
			if (r < 0)
				return r;
			if (r) {
				*out_position = base + off + i;
				return 0;
			}
		}
		off = next ? next : off + i;
	} while (next || size == WINDOW_SIZE);
	return 1;
}

/*
 * No whole record stands at @position.  Was there one on disk?  1: yes, 0: no,
 * as far as anything tells.
 */
static int was_durable(struct log *log, uint64_t position,
		       struct incr_error *err)
{
	uint64_t newest, later;
	struct segment *segment;
	int r;

	r = log_segment_list(log, &newest, err);
	if (r < 0)
		return r;
	if (newest > position)
		return 1;
	r = log_segment_get(log, position, &segment, err);
	if (r < 0)
		return r;
	r = log_scan(log, segment->fd, segment->base,
		     position - segment->base + RECORD_ALIGN, position + 1,
		     &later, err);
	log_segment_put(log, segment);
	return r < 0 ? r : r == 0;
}

static int fail_at(struct log *log, uint64_t position, const char *what,
		   struct incr_error *err)
{
	struct segment *segment;
	uint64_t base;
	int r = log_segment_get(log, position, &segment, err);

	if (r < 0)
		return r;
	base = segment->base;
	log_segment_put(log, segment);
	return log_fail_corrupt(err, base, position, what);
}

bool log_is_blank(const uint8_t *bytes, size_t size)
{
	/* each byte equals the one before it, and the first is 0 */
	return size == 0 ||
	       (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

bool log_is_still_blank(struct log *log, struct segment *segment,
			uint64_t position)
{
	uint8_t bytes[RECORD_HEADER_SIZE];
	size_t n;

	if (position != log->blank_from ||
	    log->blank_to < position + sizeof(bytes))
		return false;
	/* what an error means, who reads all of it finds out */
	return io_read_upto(log->io, segment->fd, bytes, sizeof(bytes),
			    position - segment->base, &n, "log", NULL) == 0 &&
	       n == sizeof(bytes) && log_is_blank(bytes, n);
}

/* Nothing proves that bytes at @position or behind it had been on disk. */
static bool is_unproved(struct log *log, uint64_t position,
			struct log_hint hint)
{
	return hint.synced_to <= position && log->durable_to <= position &&
	       log_newest_base(log) <= position;
}

/* Nothing stands at @position, and nothing known before it was read says otherwise. */
static bool is_plain_end(struct log *log, uint64_t position,
			 struct log_hint hint)
{
	/* what is no record was read afresh, so the window begins with it */
	if (!log->window_ends || !is_unproved(log, position, hint) ||
	    !log_is_blank(log->window.data, log->window.size))
		return false;
	log->blank_from = log->window_position;
	log->blank_to = log->window_position + log->window.size;
	return true;
}

/* The end was here before, and still is: a look at few bytes. */
static bool is_still_end(struct log *log, uint64_t position)
{
	struct segment *segment;
	bool is_blank;

	if (position != log->blank_from ||
	    !is_unproved(log, position, log_hint_read(log)) ||
	    log_segment_get(log, position, &segment, NULL) < 0)
		return false;
	is_blank = log_is_still_blank(log, segment, position);
	log_segment_put(log, segment);
	return is_blank;
}

/* log_load() found nothing at @position: end of the log, or damage? */
static int judge(struct log *log, uint64_t position,
		 struct log_record *out_record, uint64_t *out_next,
		 struct incr_error *err)
{
	struct log_hint hint = log_hint_read(log);
	int r = log_load(log, position, out_record, out_next, err);

	if (r != 1)
		return r;

	if (is_plain_end(log, position, hint))
		return 1;
	if (is_unproved(log, position, hint)) {
		r = was_durable(log, position, err);
		if (r <= 0)
			return r < 0 ? r : 1;
		r = log_load(log, position, out_record, out_next, err);
		if (r != 1)
			return r;
	}

	return fail_at(log, position,
		       "a record that was on disk is damaged or missing", err);
}

/* The record at @position, or what the lack of one means. */
static int read_one(struct log *log, uint64_t position,
		    struct log_record *out_record, uint64_t *out_next,
		    struct incr_error *err)
{
	struct log_hint hint = { 0, 0 };
	/* at the usual end, to have the hint first saves a second read */
	bool has_hint = !window_has_record(log, position);
	int r;

	if (is_still_end(log, position))
		return 1;
	if (has_hint)
		hint = log_hint_read(log);
	r = log_load(log, position, out_record, out_next, err);
	if (r == 1 && !(has_hint && is_plain_end(log, position, hint)))
		r = judge(log, position, out_record, out_next, err);
	return r;
}

/* read_one() that passes over what was given up. */
static int read_over_holes(struct log *log, uint64_t position,
			   struct log_record *out_record, uint64_t *out_next,
			   struct incr_error *err)
{
	struct log_hole hole = { 0 };

	for (;;) {
		struct log_hole next;
		int r = read_one(log, position, out_record, out_next, err);

		if (r != INCR_E_CORRUPT) {
			if (r == 0)
				out_record->hole = hole;
			return r;
		}
		if (log_find_hole(log, position, &next, NULL) != 0)
			return r;
		incr_error_release(err);
		if (!hole.to)
			hole.from = next.from;
		hole.to = next.to;
		hole.last_sequence = next.last_sequence;
		if (next.next_build > hole.next_build)
			hole.next_build = next.next_build;
		position = next.to;
	}
}

/* Has the record the number that what came before it asks for? */
static bool is_next(const struct log *log, uint64_t position,
		    const struct log_record *record)
{
	if (record->hole.to)
		return record->header.sequence ==
		       record->hole.last_sequence + 1;
	return position != log->next_position ||
	       record->header.sequence == log->next_sequence;
}

int log_read(struct log *log, uint64_t position, struct log_record *out_record,
	     uint64_t *out_next, struct incr_error *err)
{
	struct log_record record;
	struct record_header *h = &record.header;
	uint64_t next;
	int r = read_over_holes(log, position, &record, &next, err);

	if (r != 0)
		return r;
	if (!is_next(log, position, &record))
		return fail_at(log, position, "the numbering of records breaks",
			       err);

	if (h->flags & RECORD_FLAGS_READ_ONLY & ~RECORD_FLAGS_KNOWN)
		log->is_newer = true;
	log_note_durable(log, h->durable_to);
	log->next_position = next;
	log->next_sequence = h->sequence + 1;
	*out_record = record;
	*out_next = next;
	return 0;
}

static int read_bytes(struct log *log, struct segment *segment,
		      uint64_t position, void *data, size_t size,
		      struct incr_error *err)
{
	char name[LOG_NAME_SIZE];
	size_t got;
	int r;

	log_segment_name(segment->base, name);
	r = io_read_upto(log->io, segment->fd, data, size,
			 position - segment->base, &got, name, err);
	return r < 0 ? r : got < size;
}

int log_read_bytes(struct log *log, uint64_t position, void *data, size_t size,
		   struct incr_error *err)
{
	for (bool is_listed = false;; is_listed = true) {
		struct segment *segment;
		uint64_t base, newest;
		int r = log_segment_get(log, position, &segment, err);

		if (r < 0)
			return r;
		base = segment->base;
		r = read_bytes(log, segment, position, data, size, err);
		log_segment_put(log, segment);
		if (r <= 0)
			return r;
		if (is_listed)
			return log_fail_corrupt(err, base, position,
						"the segment is too short");
		/* Another process may have begun a segment since. */
		r = log_segment_list(log, &newest, err);
		if (r < 0)
			return r;
	}
}
