/*
 * The index and the log: applying what was appended, starting again where the
 * index is damaged or older than a repair.
 */
#include "config.h"

#include "store.h"

#include <string.h>

#include "error.h"

/* Records between two looks at how much memory the index takes. */
#define REPLAY_STEP 64

/* Write the index while it is caught up, so that a long log does not fill the memory. */
static void flush_midway(struct incr_store *st)
{
	struct incr_error ignored = INCR_ERROR_INIT;

	if (incr_store_is_readonly(st) || st->is_appending ||
	    !index_is_full(st->index))
		return;
	/* on failure the entries stay in memory */
	if (log_sync(st->log, index_position(st->index)->position, &ignored) ==
	    0)
		(void)index_flush(st->index, &ignored);
	incr_error_release(&ignored);
}

/*
 * What a repair has given up must not be in the index: one that was made before
 * has to forget it.  Bytes that were put back since count again.
 */
static int check_range(struct incr_store *st, const struct lost_range *range,
		       struct incr_error *err)
{
	struct log_record there;
	uint64_t next;
	int r = state_find_hole(st->index, range->from, range->to, err);

	if (r <= 0)
		return r;
	r = log_read(st->log, range->from, &there, &next, err);
	return r == 0 && there.hole.to ? 1 : r;
}

static int check_manifest(struct incr_store *st, uint64_t txn,
			  struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	uint64_t unknown;
	int r = state_unknown(st->index, txn, &unknown, err);

	if (r <= 0)
		return r;
	r = state_txn(st->index, txn, &storage, &t, err);
	if (r || t.status != INCR_COMMITTED)
		return r < 0 ? r : 0;
	return store_try_manifest(st, txn, err);
}

static int check_lost(struct incr_store *st, const struct log_record *record,
		      struct incr_error *err)
{
	struct fact_lost fact;
	int r = fact_decode_lost(record->payload, record->header.payload_size,
				 &fact);

	/* what is wrong with it, applying it says */
	if (r < 0)
		return r == INCR_E_NOMEM ? incr_fail_nomem(err) : 0;
	for (size_t i = 0; r == 0 && i < fact.n_ranges; i++)
		r = check_range(st, &fact.ranges[i], err);
	for (size_t i = 0; r == 0 && i < fact.n_manifests; i++)
		r = check_manifest(st, fact.manifests[i], err);
	fact_lost_release(&fact);
	if (r <= 0)
		return r;
	index_note_damage(st->index);
	return incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
			 "it holds what is lost");
}

/* Read the record at @position, ready to be applied. */
static int read_record(struct incr_store *st, uint64_t position,
		       struct log_record *record, uint64_t *out_next,
		       struct incr_error *err)
{
	int r = log_read(st->log, position, record, out_next, err);

	if (r == 0 && record->hole.to)
		r = apply_hole(st->index, &record->hole, err);
	if (r || record->header.type != FACT_LOST)
		return r;
	r = check_lost(st, record, err);
	/* it looked elsewhere, and the payload is the log's */
	return r < 0 ? r : log_read(st->log, position, record, out_next, err);
}

/* Apply the records behind the index's position; those at @until or behind it may wait. */
static int replay(struct incr_store *st, uint64_t until, struct incr_error *err)
{
	struct index_position *at = index_position(st->index);
	struct log_record record;
	uint64_t next;
	int r = 0;

	if (!at->position)
		at->position = log_begin(st->log);
	index_set_replaying(st->index, true);
	for (unsigned n = 1;
	     at->position < until &&
	     (r = read_record(st, at->position, &record, &next, err)) == 0;
	     n++) {
		r = apply_record(st->index, &record, st->reader, err);
		if (r < 0) {
			st->is_broken = true;
			break;
		}
		at->position = next;
		if (n % REPLAY_STEP == 0)
			flush_midway(st);
	}
	index_set_replaying(st->index, false);
	return r < 0 ? r : 0;
}

int store_rebuild(struct incr_store *st, struct incr_error *err)
{
	int r;

	/* until all of it is there, what is missing would look like absent */
	st->is_broken = true;
	r = index_reset(st->index, err);
	if (r == 0)
		r = replay(st, UINT64_MAX, err);
	st->is_broken = r < 0;
	return r;
}

int store_replay_aside(struct incr_store *st, struct incr_error *err)
{
	struct index_options options = { .io = st->io,
					 .store_dirfd = st->dirfd,
					 .tag = st->tag,
					 .cache = st->blocks };
	struct index *old = st->index, *aside;
	bool is_broken = st->is_broken;
	int r = index_open(&options, &aside, err);

	if (r < 0)
		return r;
	st->index = aside;
	r = store_rebuild(st, err);
	st->is_broken = is_broken;
	if (r < 0) {
		index_close(aside);
		st->index = old;
	}
	return r;
}

struct lost_numbers store_next_numbers(struct incr_store *st)
{
	const struct index_counters *n = index_counters(st->index);

	return (struct lost_numbers){ n->next_txn, n->next_build,
				      n->next_dataset, n->next_branch,
				      n->next_line };
}

/*
 * Does the checkpoint belong to this log?  A power cut can take records that
 * were never acknowledged; a checkpoint is only written for durable ones, but
 * it costs one read to be sure.
 */
static int check_checkpoint(struct incr_store *st, bool allows_damage,
			    struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	const struct index_position *at = index_position(st->index);
	struct log_record record;
	bool is_damaged;
	uint64_t next;
	int r;

	if (!at->last_position)
		return at->position ? index_reset(st->index, err) : 0;
	r = log_read(st->log, at->last_position, &record, &next, &why);
	/* From the beginning one would meet the same damage; the index knows what it was. */
	is_damaged = r == INCR_E_CORRUPT || incr_is_unreadable(&why);
	if (is_damaged && !allows_damage)
		return incr_fail_with(err, r, &why);
	incr_error_release(&why);
	if (is_damaged ||
	    (r == 0 && record.header.payload_hash == at->last_hash &&
	     record.header.sequence == at->sequence))
		return 0;
	return index_reset(st->index, err);
}

int store_check_not_broken(const struct incr_store *st, struct incr_error *err)
{
	if (!st->is_broken)
		return 0;
	return incr_fail(err, INCR_E_DEAD, NULL, st->path,
			 "an earlier failure left this handle behind the log");
}

int store_catch_up(struct incr_store *st, struct incr_error *err)
{
	return store_catch_up_to(st, UINT64_MAX, err);
}

/* A damaged table is found when it is read: once, start again from the log. */
int store_catch_up_to(struct incr_store *st, uint64_t until,
		      struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint64_t before = index_position(st->index)->position;
	int r = store_check_not_broken(st, err);

	if (r < 0)
		return r;
	if (index_is_damaged(st->index))
		return store_rebuild(st, err);
	r = replay(st, until, &why);
	if (r == INCR_E_CORRUPT && (index_is_damaged(st->index) ||
				    !strcmp(why.word, "damaged-table"))) {
		incr_error_release(&why);
		return store_rebuild(st, err);
	}
	r = incr_fail_with(err, r, &why);
	if (r == 0 && !st->is_appending && index_is_due(st->index) &&
	    index_position(st->index)->position != before)
		r = index_adopt(st->index, err);
	return r < 0 ? r : 0;
}

int store_first_catch_up(struct incr_store *st, bool allows_damage,
			 struct incr_error *err)
{
	int r = check_checkpoint(st, allows_damage, err);

	return r < 0 ? r : store_catch_up(st, err);
}
