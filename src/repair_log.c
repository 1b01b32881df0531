/*
 * Damaged records: giving them up.
 *
 * A stretch without a whole record is copied to lost/, and a record of type
 * FACT_LOST is appended that says from where to where it goes; readers pass
 * over it (log_hole.c).  No byte before that record changes, so a crash leaves
 * the store as it was, or mended.  Before it is written, the log is applied
 * once with the stretches left out: facts that contradict each other then are
 * more than damage, and the store stays as it is.
 */
#include "config.h"

#include "repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "verify_lost.h"

/* A lost record takes so many bytes at least, for each transaction in it. */
#define RECORD_SIZE_MIN 32

/* Of a version's key: kind, dataset, root; then path, NUL and number follow. */
#define VERSION_PREFIX 17

struct log_repair {
	struct repair *p;
	struct lost_range *ranges; /* owned */
	size_t n_ranges;
	uint64_t end, last_sequence; /* where the walk has come to */
	uint64_t tail_from; /* of a stretch with nothing behind it; 0: none */
	struct lost_numbers next;
	struct verify_lost
		lost; /* owned: transactions that no whole record names */
	struct index *after; /* owned: what the log amounts to without them */
};

/* ---- headers ---- */

static int mend_header(struct repair *p, uint64_t base)
{
	struct log *log = p->st->log;
	struct log_record record;
	char name[LOG_NAME_SIZE];
	uint64_t next, size = 0, begin = base + LOG_SEGMENT_HEADER_SIZE;
	int r = log_next_whole(log, begin, &record, &next, p->err);
	/* behind damage, no reader compares the number */
	uint64_t sequence = r != 0 ? 1 :
			    record.header.position == begin ?
				     record.header.sequence :
				     record.header.sequence - 1;

	if (r < 0)
		return r;
	(void)log_segment_of(log, base, name);
	if (!p->options->is_dry_run) {
		r = log_keep_damage(log, base, begin, &size, p->err);
		if (r == 0)
			r = log_write_header(log, base, sequence, p->err);
		if (r < 0)
			return r;
	}
	return repair_tell(p, INCR_REPAIR_HEADER, name, size);
}

static int mend_headers(struct repair *p)
{
	uint64_t base = 0;
	int r = 0;

	for (; r == 0; base++) {
		r = log_next_headless(p->st->log, base, &base, p->err);
		if (r)
			break;
		r = mend_header(p, base);
	}
	return r == 1 ? 0 : r;
}

/* ---- stretches ---- */

static int add_range(struct log_repair *l, uint64_t from, uint64_t to,
		     uint64_t last_sequence)
{
	struct log_hole hole = { from, to, last_sequence, 0 };
	struct lost_range *grown;

	if (from >= to || !last_sequence)
		return 1;
	grown = reallocarray(l->ranges, l->n_ranges + 1, sizeof(*grown));
	if (!grown)
		return incr_fail_nomem(l->p->err);
	l->ranges = grown;
	grown[l->n_ranges++] = (struct lost_range){ from, to, last_sequence };
	return log_add_hole(l->p->st->log, hole, l->p->err);
}

/* Nothing whole stands behind @from: up to what is or was in the file. */
static int add_tail(struct log_repair *l, uint64_t from)
{
	uint64_t to;
	int r = log_file_end(l->p->st->log, &to, l->p->err);

	if (r < 0)
		return r;
	if (to < from + RECORD_ALIGN)
		to = from + RECORD_ALIGN;
	to = (to + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
	l->tail_from = from;
	/* of the records in it only one is sure */
	l->last_sequence++;
	l->end = to;
	return add_range(l, from, to, l->last_sequence);
}

static int pass_damage(struct log_repair *l, uint64_t from)
{
	struct log_record record;
	uint64_t next;
	int r = log_next_whole(l->p->st->log, from, &record, &next, l->p->err);

	if (r == 1)
		return add_tail(l, from);
	if (r < 0)
		return r;
	/* it is whole, and yet not what belongs there */
	if (record.header.sequence <= l->last_sequence)
		return 1;
	return add_range(l, from, record.header.position,
			 record.header.sequence - 1);
}

/* All stretches; 1: there is more than damage. */
static int find_ranges(struct log_repair *l)
{
	struct log *log = l->p->st->log;
	uint64_t at = log_begin(log);
	int r = 0;

	while (r == 0) {
		struct incr_error why = INCR_ERROR_INIT;
		struct log_record record;

		r = log_read(log, at, &record, &at, &why);
		if (r == 0)
			l->last_sequence = record.header.sequence;
		if (r == 0 && verify_lost_note(&l->lost, &record) < 0)
			return incr_fail_nomem(l->p->err);
		if (r == 1 && !l->tail_from)
			l->end = at;
		if (r != INCR_E_CORRUPT) {
			r = incr_fail_with(l->p->err, r, &why);
			continue;
		}
		incr_error_release(&why);
		r = l->tail_from ? 1 : pass_damage(l, at);
		if (r)
			return r;
		/* the one behind is read over the new hole */
	}
	return r < 0 ? r : 0;
}

/* ---- what the log amounts to without them ---- */

static void raise(uint64_t *number, uint64_t to)
{
	if (*number < to)
		*number = to;
}

static void raise_all(struct lost_numbers *n, const struct index_counters *c,
		      uint64_t by)
{
	raise(&n->txn, c->next_txn + by);
	raise(&n->build, c->next_build + by);
	raise(&n->dataset, c->next_dataset + by);
	raise(&n->branch, c->next_branch + by);
	raise(&n->line, c->next_line + by);
}

/* 1: facts contradict each other, which is more than damage. */
static int try_without(struct log_repair *l)
{
	struct incr_store *st = l->p->st;
	struct incr_error why = INCR_ERROR_INIT;
	struct index *old = st->index;
	uint64_t by = 0;
	int r = store_replay_aside(st, &why);

	if (l->tail_from && index_position(old)->position <= l->tail_from)
		by = (l->end - l->tail_from) / RECORD_SIZE_MIN + 1;
	if (r == 0) {
		raise_all(&l->next, index_counters(old), 0);
		raise_all(&l->next, index_counters(st->index), by);
		l->after = st->index;
		st->index = old;
	}
	if (r == INCR_E_CORRUPT) {
		incr_error_release(&why);
		return 1;
	}
	return incr_fail_with(l->p->err, r, &why);
}

/* ---- telling what is lost ---- */

static int tell_file(struct log_repair *l, const struct incr_finding *like,
		     const struct table_entry *e)
{
	struct incr_finding f = *like;
	enum manifest_op op;
	uint64_t line;

	f.path = (const char *)e->key + VERSION_PREFIX;
	f.path_length = e->key_size - VERSION_PREFIX - 9;
	if (version_peek(e->value, e->value_size, &op, &line) < 0)
		return 0;
	f.word = "lost-change";
	f.message = op == MANIFEST_PUT ?
			    "what the transaction put here is lost" :
			    "that the transaction removed it is lost";
	return repair_tell_finding(l->p, &f);
}

/* What a lost transaction changed, as far as the index knows. */
static int tell_changes(struct log_repair *l, const struct state_txn *t,
			const struct incr_finding *like)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key k = state_key_of(STATE_VERSION, t->fact.dataset_id);
	struct incr_error why = INCR_ERROR_INIT;
	int r;

	state_key_number(&k, t->root);
	r = index_iter(l->p->st->index, &it, &why);
	if (r == 0)
		r = it->seek(it, k.bytes, k.size, &why);
	for (; r == 0; r = it->next(it, &why)) {
		const struct table_entry *e = &it->entry;

		if (e->key_size < VERSION_PREFIX + 9 ||
		    memcmp(e->key, k.bytes, k.size) != 0)
			break;
		if (get_be64(e->key + e->key_size - 8) == ~t->fact.number)
			r = tell_file(l, like, e);
		if (r)
			break;
	}
	/* a damaged index knows less */
	if (r == INCR_E_CORRUPT || r == 1)
		r = 0;
	incr_error_release(&why);
	return r;
}

static int tell_txn(struct log_repair *l, uint64_t number,
		    const struct state_txn *t)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	_cleanup_free_ char *dataset = NULL;
	struct incr_finding f = { .word = "lost-transaction",
				  .txn = number,
				  .message = "its record is damaged",
				  .is_given_up = true };
	char segment[LOG_NAME_SIZE];
	struct state_dataset d;

	if (t && state_dataset(l->p->st->index, t->fact.dataset_id, &storage,
			       &d, NULL) == 0) {
		dataset = text_dup(d.fact.name);
		f.dataset = dataset;
	}
	if (t && t->record_position) {
		f.off = t->record_position - log_segment_of(l->p->st->log,
							    t->record_position,
							    segment);
		f.file = segment;
	}
	return repair_tell_finding(l->p, &f);
}

/* By the index there was: those whose records are in a stretch, with what they changed. */
static int tell_known(struct log_repair *l, uint64_t number)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_finding f = { .txn = number, .is_given_up = true };
	bool is_in = false;
	struct state_txn t;
	int r = state_txn(l->p->st->index, number, &storage, &t, NULL);

	if (r || t.status != INCR_COMMITTED)
		return r == INCR_E_NOMEM ? r : 0;
	for (size_t i = 0; i < l->n_ranges; i++)
		is_in = is_in || (t.record_position >= l->ranges[i].from &&
				  t.record_position < l->ranges[i].to);
	if (!is_in)
		return 0;
	if (verify_lost_told(&l->lost, number) < 0)
		return incr_fail_nomem(l->p->err);
	r = tell_txn(l, number, &t);
	return r ? r : tell_changes(l, &t, &f);
}

/* By the numbers: those that nothing whole tells of. */
static int tell_missing(struct log_repair *l, uint64_t number)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r = state_txn(l->after, number, &storage, &t, NULL);

	return r == INCR_E_NOMEM ? r : tell_txn(l, number, r ? NULL : &t);
}

static int tell_txns(struct log_repair *l)
{
	uint64_t end = index_counters(l->p->st->index)->next_txn, number;
	int r = 0;

	for (number = 1; r == 0 && number < end; number++)
		r = tell_known(l, number);
	for (number = 0;
	     r == 0 && (number = verify_lost_next(&l->lost, number + 1));)
		r = tell_missing(l, number);
	return r;
}

/* ---- giving them up ---- */

static int append(struct log_repair *l)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct incr_store *st = l->p->st;
	struct fact_lost fact = { .time_ns = store_now(st),
				  .next = l->next,
				  .n_ranges = l->n_ranges,
				  .ranges = l->ranges };
	struct log_append a = { .type = FACT_LOST,
				.position = l->end,
				.sequence = l->last_sequence + 1,
				.may_use_reserve = true };
	uint64_t position, next = 0;
	int r;

	if (fact_encode_lost(&fact, &payload) < 0)
		return incr_fail_nomem(l->p->err);
	a.payload[0] = payload.data;
	a.payload_size[0] = payload.size;
	r = l->tail_from ? log_extend(st->log, l->end, l->p->err) : 0;
	if (r == 0)
		r = log_append(st->log, &a, &position, &next, l->p->err);
	return r < 0 ? r : log_sync(st->log, next, l->p->err);
}

static int give_up(struct log_repair *l)
{
	struct repair *p = l->p;
	char segment[LOG_NAME_SIZE];
	uint64_t size = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_ranges; i++) {
		(void)log_segment_of(p->st->log, l->ranges[i].from, segment);
		if (!p->options->is_dry_run)
			r = log_keep_damage(p->st->log, l->ranges[i].from,
					    l->ranges[i].to, &size, p->err);
		if (r == 0)
			r = repair_tell(p, INCR_REPAIR_LOG, segment, size);
	}
	if (r == 0)
		r = tell_txns(l);
	if (r == 0 && !p->options->is_dry_run)
		r = append(l);
	if (r)
		return r;
	/* from here on the log itself says so */
	if (!p->options->is_dry_run) {
		log_forget_holes(p->st->log);
		r = store_rebuild(p->st, p->err);
	}
	return r;
}

int repair_log(struct repair *p)
{
	struct log_repair l = { .p = p };
	int r = mend_headers(p);

	if (r == 0)
		r = find_ranges(&l);
	if (r == 0 && l.n_ranges)
		r = try_without(&l);
	if (r == 0 && l.n_ranges)
		r = give_up(&l);
	if (r == 0)
		p->st->is_damaged = false;
	if (r == 1)
		log_forget_holes(p->st->log);
	index_close(l.after);
	verify_lost_release(&l.lost);
	free(l.ranges);
	return r;
}
