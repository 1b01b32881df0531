/*
 * `verify`: every record of the log, every manifest, every place that a
 * manifest names, and on request every byte of content.
 *
 * The log is read record by record with its checksums, and behind damage from
 * the next whole record on.  What a record says is compared with what its
 * manifest holds; a place is proved by reading its last byte, content by its
 * frames' checksums and the file's own hash (verify_data.c).  The index names
 * the transactions whose records are damaged.  It is walked once: it is
 * derived, so damage there costs nobody anything, but people want to know.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "store.h"
#include "verify_data.h"

#define PROGRESS_NS INT64_C(100000000)

struct verify {
	struct incr_store *st;
	const struct incr_verify_options *options;
	incr_finding_fn fn;
	void *closure;
	struct incr_verify_result *result;
	struct incr_error *err;
	int64_t deadline_ns; /* 0: none */
	int64_t last_progress_ns;
	struct verify_data *data; /* owned; NULL: places only */
	bool is_again; /* the second walk: only files with damaged content */
	/* where we are, for findings */
	char dataset[4096];
	uint64_t txn;
};

/* Report; a non-zero return of the caller's function ends the walk. */
static int report(struct verify *v, const char *file,
		  const struct manifest_entry *e, const struct incr_error *why)
{
	char segment[LOG_NAME_SIZE];
	struct incr_finding f = {
		.word = why->word,
		.file = why->thing[0] ? why->thing : file,
		.off = why->off,
		.dataset = v->dataset[0] ? v->dataset : NULL,
		.txn = v->txn,
		.path = e ? e->path : NULL,
		.path_length = e ? e->path_length : 0,
		.message = why->message,
	};

	/* a frame in the log is known by its position */
	if (!strcmp(f.file, "log") && why->off) {
		f.off -= log_segment_of(v->st->log, why->off, segment);
		f.file = segment;
	}
	v->result->n_findings++;
	return v->fn ? v->fn(v->closure, &f) : 0;
}

static int report_text(struct verify *v, const char *word, const char *file,
		       const struct manifest_entry *e, const char *message)
{
	struct incr_error why = INCR_ERROR_INIT;

	(void)incr_fail(&why, INCR_E_CORRUPT, word, file, "%s", message);
	return report(v, file, e, &why);
}

/* Damage is a finding; anything else ends the verification. */
static int judge(struct verify *v, int r, const char *file,
		 const struct manifest_entry *e, struct incr_error *why)
{
	if (r == INCR_E_CORRUPT) {
		r = report(v, file, e, why);
		incr_error_release(why);
		return r;
	}
	return incr_fail_with(v->err, r, why);
}

static bool is_out_of_time(struct verify *v)
{
	int64_t now = store_now(v->st);

	if (v->options->progress && now - v->last_progress_ns >= PROGRESS_NS) {
		v->last_progress_ns = now;
		v->options->progress(v->options->progress_closure,
				     v->result->n_files,
				     v->data ? verify_data_size(v->data) : 0, 0,
				     0);
	}
	if (!v->deadline_ns || now < v->deadline_ns)
		return false;
	v->result->is_complete = false;
	return true;
}

/* ---- content ---- */

/* A file of any transaction that was given to verify_data_check(). */
static int report_failure(void *closure, const struct verify_failure *f)
{
	struct verify *v = closure;
	char here[sizeof(v->dataset)];
	uint64_t txn = v->txn;
	int r;

	memcpy(here, v->dataset, sizeof(here));
	(void)snprintf(v->dataset, sizeof(v->dataset), "%s", f->dataset);
	v->txn = f->txn;
	r = report(v, "packs", f->entry, f->why);
	memcpy(v->dataset, here, sizeof(here));
	v->txn = txn;
	return r;
}

static int check_byte(struct verify *v, uint64_t container, uint64_t end,
		      const struct manifest_entry *e)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint8_t byte;
	int r = pack_set_read(v->st->packs, container, end - 1, &byte, 1, &why);

	return r < 0 ? judge(v, r, "packs", e, &why) : 0;
}

/* Is everything the descriptor names there?  Decoding checked that the sums do not overflow. */
static int check_place(struct verify *v, const struct manifest_entry *e)
{
	const struct content *c = &e->content;
	int r = 0;

	if (c->kind == CONTENT_PART)
		return check_byte(v, c->container,
				  c->frame_off + c->frame_stored, e);
	for (size_t i = 0; r == 0 && i < c->n_extents; i++)
		r = check_byte(v, c->extents[i].container,
			       c->extents[i].index_off + FRAME_HEADER_SIZE, e);
	return r;
}

static int check_content(struct verify *v, const struct manifest_entry *e)
{
	if (!v->data)
		return check_place(v, e);
	return v->is_again ? verify_data_again(v->data, e, v->dataset, v->txn,
					       v->err) :
			     verify_data_check(v->data, e, v->dataset, v->txn,
					       v->err);
}

/* ---- transactions ---- */

static int check_counts(struct verify *v, const struct fact_txn *t,
			const struct fact_txn *seen)
{
	/* what a relative manifest does not repeat stands in those before it */
	if (t->is_relative ? !t->n_removed && t->n_files == t->view_files &&
				     t->size == t->view_size :
			     t->n_files == seen->n_files &&
				     t->n_removed == seen->n_removed &&
				     t->size == seen->size)
		return 0;
	return report_text(
		v, "wrong-counts", "log", NULL,
		"the manifest does not hold what the transaction says it does");
}

static int check_entries(struct verify *v, struct manifest_reader *m,
			 struct fact_txn *seen)
{
	struct incr_error why = INCR_ERROR_INIT;
	const struct manifest_entry *e;
	int r;

	while ((r = manifest_reader_next(m, &e, &why)) == 0) {
		if (is_out_of_time(v))
			return 1;
		if (e->op == MANIFEST_REMOVE) {
			seen->n_removed++;
			continue;
		}
		seen->n_files++;
		seen->size += e->content.size;
		if (!v->is_again)
			v->result->n_files++;
		r = check_content(v, e);
		if (r)
			return r;
	}
	if (r < 0 && v->is_again && r == INCR_E_CORRUPT) {
		incr_error_release(&why); /* reported by the first walk */
		return 0;
	}
	return r < 0 ? judge(v, r, "packs", NULL, &why) : 0;
}

static int set_place(struct verify *v, const struct fact_txn *t)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_error why = INCR_ERROR_INIT;
	struct state_dataset d;
	int r = state_dataset(v->st->index, t->dataset_id, &storage, &d, &why);

	/* of a damaged index only the name is missing */
	if (r < 0 && r != INCR_E_CORRUPT)
		return incr_fail_with(v->err, r, &why);
	incr_error_release(&why);
	v->txn = t->number;
	snprintf(v->dataset, sizeof(v->dataset), "%.*s",
		 r == 0 ? (int)d.fact.name.size : 1,
		 r == 0 ? d.fact.name.data : "?");
	return 0;
}

static int check_txn(struct verify *v, const struct fact_txn *t,
		     uint64_t frames_position)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct fact_txn seen = { 0 };
	struct manifest_source m;
	uint64_t n_findings;
	int r;

	if (v->options->dataset_id && v->options->dataset_id != t->dataset_id)
		return 0;
	r = set_place(v, t);
	if (r < 0)
		return r;
	if (!v->is_again)
		v->result->n_txns++;
	r = manifest_source_open(t, frames_position, v->st->reader, &m, &why);
	if (r < 0)
		return judge(v, r, "log", NULL, &why);
	n_findings = v->result->n_findings;
	r = check_entries(v, m.entries, &seen);
	manifest_source_release(&m);
	/* a manifest that broke off is reported as such */
	if (r || v->is_again || v->result->n_findings != n_findings)
		return r;
	return check_counts(v, t, &seen);
}

static int check_commit(struct verify *v, const struct log_record *record)
{
	struct commit_record commit;
	uint64_t frames_position;
	int r = commit_record_decode(record->payload,
				     record->header.payload_size, &commit);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(v->err);
	if (r < 0)
		return report_text(v, "bad-fact", "log", NULL,
				   "a commit record does not parse");
	frames_position = record->header.position + RECORD_HEADER_SIZE +
			  commit.frames_off;
	r = 0;
	for (size_t i = 0; r == 0 && i < commit.n_txns; i++)
		r = check_txn(v, &commit.txns[i], frames_position);
	commit_record_release(&commit);
	return r;
}

/* ---- the log ---- */

/* The transactions of records in [from, to), as far as the index knows. */
static int name_lost(struct verify *v, uint64_t from, uint64_t to)
{
	uint64_t end = index_counters(v->st->index)->next_txn;
	char segment[LOG_NAME_SIZE];

	for (uint64_t number = 1; number < end; number++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct incr_error why = INCR_ERROR_INIT;
		struct state_txn t;
		int r = state_txn(v->st->index, number, &storage, &t, NULL);

		if (r == INCR_E_NOMEM)
			return incr_fail_nomem(v->err);
		if (r || t.status != INCR_COMMITTED ||
		    t.record_position < from || t.record_position >= to ||
		    (v->options->dataset_id &&
		     v->options->dataset_id != t.fact.dataset_id))
			continue;
		r = set_place(v, &t.fact);
		if (r < 0)
			return r;
		(void)incr_fail(&why, INCR_E_CORRUPT, "lost-transaction", NULL,
				"the transaction's record is damaged");
		incr_error_at(&why, t.record_position -
					    log_segment_of(v->st->log,
							   t.record_position,
							   segment));
		r = report(v, segment, NULL, &why);
		if (r)
			return r;
	}
	return 0;
}

/* Where to go on behind the damage at @position; 1: nowhere. */
static int skip(struct verify *v, uint64_t position, uint64_t *out_next)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r = log_skip_damage(v->st->log, position, out_next, &why);

	if (r < 0 && r != INCR_E_CORRUPT)
		return incr_fail_with(v->err, r, &why);
	incr_error_release(&why);
	if (r == 0)
		return 0;
	return !log_next_segment(v->st->log, position, out_next);
}

/* Damage at @position: name it, and go on behind it. */
static int pass_damage(struct verify *v, uint64_t position, int r,
		       struct incr_error *why, uint64_t *out_next)
{
	bool is_again = v->is_again;
	int end;

	if (r != INCR_E_CORRUPT)
		return incr_fail_with(v->err, r, why);
	if (!is_again)
		r = judge(v, r, "log", NULL, why);
	else
		incr_error_release(why);
	if (r && !is_again)
		return r;
	end = skip(v, position, out_next);
	if (end < 0 || is_again)
		return end;
	r = name_lost(v, position, end ? UINT64_MAX : *out_next);
	return r ? r : end;
}

/*
 * The records' payloads are borrowed from the log's buffer, which reading
 * inline frames does not touch (log_read_bytes() has its own way).
 */
static int check_log(struct verify *v)
{
	uint64_t position = log_begin(v->st->log), next;
	struct log_record record;
	int r;

	for (;; position = next) {
		struct incr_error why = INCR_ERROR_INIT;

		v->dataset[0] = '\0';
		v->txn = 0;
		r = log_read(v->st->log, position, &record, &next, &why);
		if (r == 1)
			return 0;
		if (r < 0) {
			r = pass_damage(v, position, r, &why, &next);
			if (r)
				return r == 1 ? 0 : r;
			continue;
		}
		if (!v->is_again)
			v->result->n_records++;
		if (record.header.type == FACT_COMMIT)
			r = check_commit(v, &record);
		if (r)
			return r;
		if (is_out_of_time(v))
			return 1;
	}
}

static int check_index(struct verify *v)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct incr_error why = INCR_ERROR_INIT;
	int r = index_iter(v->st->index, &it, &why);

	v->dataset[0] = '\0';
	v->txn = 0;
	if (r == 0)
		r = it->seek(it, "", 0, &why);
	while (r == 0) {
		if (is_out_of_time(v))
			return 1;
		r = it->next(it, &why);
	}
	return r < 0 ? judge(v, r, "index", NULL, &why) : 0;
}

static int check_all(struct verify *v)
{
	int r = check_log(v), finished;

	/* what is under way is of use also when the time is up */
	finished = v->data && r >= 0 ? verify_data_finish(v->data, v->err) : 0;
	if (r == 0)
		r = finished;
	if (r == 0 && v->data && verify_data_has_shared(v->data)) {
		v->is_again = true;
		r = check_log(v);
		v->is_again = false;
	}
	if (v->data)
		v->result->size = verify_data_size(v->data);
	return r ? r : check_index(v);
}

int incr_verify(struct incr_store *st,
		const struct incr_verify_options *options, incr_finding_fn fn,
		void *closure, struct incr_verify_result *out_result,
		struct incr_error *err)
{
	struct incr_verify_result result = { .is_complete = true };
	struct verify v = { .st = st,
			    .options = options,
			    .fn = fn,
			    .closure = closure,
			    .result = &result,
			    .err = err };
	int r = 0;

	if (options->time_limit_ms)
		v.deadline_ns = store_now(st) +
				(int64_t)options->time_limit_ms * 1000000;
	if (options->reads_data)
		r = verify_data_new(st->reader, report_failure, &v, &v.data,
				    err);
	if (r == 0)
		r = check_all(&v);
	verify_data_free(v.data);
	if (r < 0)
		return r;
	*out_result = result;
	return 0;
}
