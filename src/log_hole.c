/*
 * Stretches of the log that a repair has given up, and reading on behind
 * damage.
 *
 * A repair changes no byte of the log: it appends a record that says from
 * where to where nothing is to be had.  A reader that meets damage looks behind
 * it for such a record, and goes on where that says.  So a log without damage
 * is read without a look aside, and bytes that are put back from a copy count
 * again.
 */
#include "config.h"

#include "log.h"

#include "error.h"
#include "log_impl.h"
#include "lost.h"

#include <stdlib.h>

/* The first whole record in the segment of @position; 1: none. */
static int scan_segment(struct log *log, uint64_t position,
			uint64_t *out_position, struct incr_error *err)
{
	struct segment *segment;
	uint64_t off;
	int r = log_segment_get(log, position, &segment, err);

	if (r < 0)
		return r;
	off = position - segment->base;
	if (off < LOG_SEGMENT_HEADER_SIZE)
		off = LOG_SEGMENT_HEADER_SIZE;
	off = (off + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
	r = log_scan(log, segment->fd, segment->base, off, 0, out_position,
		     err);
	log_segment_put(log, segment);
	return r;
}

/* Damage counts as nothing found, also what the disk does not give; other errors do not. */
static int pass(const struct log *log, int r, struct incr_error *why,
		struct incr_error *err)
{
	bool is_damage = r == INCR_E_CORRUPT ||
			 (log->allows_damage && incr_is_unreadable(why));

	if (!is_damage)
		return incr_fail_with(err, r, why);
	incr_error_release(why);
	return 1;
}

int log_next_whole(struct log *log, uint64_t position,
		   struct log_record *out_record, uint64_t *out_next,
		   struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint64_t newest, at = 0;
	int r = pass(log, log_load(log, position, out_record, out_next, &why),
		     &why, err);

	if (r <= 0)
		return r;
	r = pass(log, log_segment_list(log, &newest, &why), &why, err);
	while (r >= 0) {
		r = pass(log, scan_segment(log, position, &at, &why), &why,
			 err);
		if (r == 0)
			r = pass(log,
				 log_load(log, at, out_record, out_next, &why),
				 &why, err);
		if (r <= 0)
			break;
		if (!log_next_segment(log, position, &position))
			return 1;
	}
	return r;
}

int log_add_hole(struct log *log, struct log_hole hole, struct incr_error *err)
{
	struct log_hole *grown =
		reallocarray(log->holes, log->n_holes + 1, sizeof(*grown));

	if (!grown)
		return incr_fail_nomem(err);
	log->holes = grown;
	grown[log->n_holes++] = hole;
	return 0;
}

void log_forget_holes(struct log *log)
{
	free(log->holes);
	log->holes = NULL;
	log->n_holes = 0;
}

static int add_lost(struct log *log, const struct log_record *record,
		    struct incr_error *err)
{
	struct fact_lost fact;
	int r = fact_decode_lost(record->payload, record->header.payload_size,
				 &fact);

	if (r < 0)
		return r == INCR_E_NOMEM ? incr_fail_nomem(err) : 0;
	for (size_t i = 0; r == 0 && i < fact.n_ranges; i++) {
		const struct lost_range *range = &fact.ranges[i];
		struct log_hole hole = { range->from, range->to,
					 range->last_sequence,
					 fact.next.build };

		/* what is not before the record was not there to be lost */
		if (range->to <= record->header.position)
			r = log_add_hole(log, hole, err);
	}
	fact_lost_release(&fact);
	return r;
}

static bool find_known(const struct log *log, uint64_t position,
		       struct log_hole *out_hole)
{
	const struct log_hole *best = NULL;

	for (size_t i = 0; i < log->n_holes; i++) {
		const struct log_hole *hole = &log->holes[i];

		if (hole->from <= position && position < hole->to &&
		    (!best || hole->to > best->to))
			best = hole;
	}
	if (best)
		*out_hole = *best;
	return best != NULL;
}

int log_find_hole(struct log *log, uint64_t position, struct log_hole *out_hole,
		  struct incr_error *err)
{
	struct log_record record;
	uint64_t at = position;
	int r;

	if (find_known(log, position, out_hole))
		return 0;
	while ((r = log_next_whole(log, at, &record, &at, err)) == 0) {
		if (record.header.type == FACT_LOST)
			r = add_lost(log, &record, err);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return find_known(log, position, out_hole) ? 0 : 1;
}
