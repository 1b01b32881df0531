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
#include "verify_left.h"
#include "verify_lost.h"

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
	struct verify_lost lost; /* owned */
	struct verify_left left; /* owned */
	bool is_log_damaged;
	/* where we are, for findings */
	char dataset[4096];
	uint64_t txn;
};

/* Has a repair said so?  1: yes, 0: no. */
static int is_given_up(struct verify *v, const struct incr_finding *f)
{
	struct text path = { f->path, f->path_length };
	uint64_t build;
	int r = 1;

	/* while records are damaged, all that is known of a repair may be old */
	if (v->st->is_damaged || v->st->is_broken || !f->txn)
		return 0;
	if (f->path)
		r = state_lost_file(v->st->index, f->txn, path, NULL);
	if (r == 1)
		r = state_given_up(v->st->index, f->txn, &build, NULL);
	/* of a damaged index nothing is known */
	return r == INCR_E_NOMEM ? incr_fail_nomem(v->err) : r == 0;
}

static int give(struct verify *v, struct incr_finding *f)
{
	*(f->is_given_up ? &v->result->n_given_up : &v->result->n_findings) +=
		1;
	return v->fn ? v->fn(v->closure, f) : 0;
}

/* Report; a non-zero return of the caller's function ends the walk. */
static int report(struct verify *v, const char *file,
		  const struct manifest_entry *e, const struct incr_error *why)
{
	char segment[LOG_NAME_SIZE];
	struct incr_finding f = {
		.word = incr_is_unreadable(why) ? "read-error" : why->word,
		.file = why->thing[0] ? why->thing : file,
		.off = why->off,
		.dataset = v->dataset[0] ? v->dataset : NULL,
		.txn = v->txn,
		.path = e ? e->path : NULL,
		.path_length = e ? e->path_length : 0,
		.message = why->message,
	};
	int r = is_given_up(v, &f);

	if (r < 0)
		return r;
	f.is_given_up = r == 1;
	/* a frame in the log is known by its position */
	if (f.file && !strcmp(f.file, "log") && why->off) {
		f.off -= log_segment_of(v->st->log, why->off, segment);
		f.file = segment;
	}
	return give(v, &f);
}

static int report_text(struct verify *v, const char *word, const char *file,
		       const struct manifest_entry *e, const char *message)
{
	struct incr_error why = INCR_ERROR_INIT;

	(void)incr_fail(&why, INCR_E_CORRUPT, word, file, "%s", message);
	return report(v, file, e, &why);
}

/* Bytes that the disk does not give are as bad as wrong ones. */
static bool is_damage(int r, const struct incr_error *why)
{
	return r == INCR_E_CORRUPT || (r < 0 && incr_is_unreadable(why));
}

/* Damage is a finding; anything else ends the verification. */
static int judge(struct verify *v, int r, const char *file,
		 const struct manifest_entry *e, struct incr_error *why)
{
	if (is_damage(r, why)) {
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

/* judge() of what may have named packs. */
static int judge_manifest(struct verify *v, int r, const char *file,
			  struct incr_error *why)
{
	verify_left_doubt(&v->left);
	return judge(v, r, file, NULL, why);
}

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
	verify_left_doubt(&v->left);
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
		verify_left_name(&v->left, &e->content);
		if (!v->is_again)
			v->result->n_files++;
		r = check_content(v, e);
		if (r)
			return r;
	}
	if (v->is_again && is_damage(r, &why)) {
		incr_error_release(&why); /* reported by the first walk */
		return 0;
	}
	return r < 0 ? judge_manifest(v, r, "packs", &why) : 0;
}

static int set_place(struct verify *v, const struct fact_txn *t)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_error why = INCR_ERROR_INIT;
	struct state_dataset d;
	int r = state_dataset(v->st->index, t->dataset_id, &storage, &d, &why);

	/* of a damaged index only the name is missing */
	if (r < 0 && !is_damage(r, &why))
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
		return judge_manifest(v, r, "log", &why);
	verify_left_name(&v->left, &m.content);
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
	if (r < 0) {
		verify_left_doubt(&v->left);
		return report_text(v, "bad-fact", "log", NULL,
				   "a commit record does not parse");
	}
	frames_position = record->header.position + RECORD_HEADER_SIZE +
			  commit.frames_off;
	r = 0;
	for (size_t i = 0; r == 0 && i < commit.n_txns; i++)
		r = check_txn(v, &commit.txns[i], frames_position);
	commit_record_release(&commit);
	return r;
}

/* ---- the log ---- */

static int report_lost(struct verify *v, uint64_t txn, const char *file,
		       uint64_t off)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r = verify_lost_told(&v->lost, txn);

	if (r < 0)
		return incr_fail_nomem(v->err);
	(void)incr_fail(&why, INCR_E_CORRUPT, "lost-transaction", NULL,
			"the transaction's record is damaged");
	incr_error_at(&why, off);
	return report(v, file, NULL, &why);
}

/* The transactions of records in [from, to), as far as the index knows. */
static int name_lost(struct verify *v, uint64_t from, uint64_t to)
{
	uint64_t end = index_counters(v->st->index)->next_txn;
	char segment[LOG_NAME_SIZE];

	for (uint64_t number = 1; number < end; number++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_txn t;
		uint64_t base;
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
		base = log_segment_of(v->st->log, t.record_position, segment);
		r = report_lost(v, number, segment, t.record_position - base);
		if (r)
			return r;
	}
	return 0;
}

/* Those that the index does not know, by the numbers that are missing. */
static int name_missing(struct verify *v)
{
	uint64_t number = 0;
	int r = 0;

	if (!v->is_log_damaged || v->options->dataset_id)
		return 0;
	while (r == 0 && (number = verify_lost_next(&v->lost, number + 1))) {
		v->dataset[0] = '\0';
		v->txn = number;
		r = report_lost(v, number, NULL, 0);
	}
	return r;
}

/* Damage at @position: name it, and find what stands behind it; 1: nothing. */
static int pass_damage(struct verify *v, uint64_t position, int r,
		       struct incr_error *why, struct log_record *out_record,
		       uint64_t *out_next)
{
	int end;

	if (!is_damage(r, why))
		return incr_fail_with(v->err, r, why);
	v->is_log_damaged = true;
	verify_left_doubt(&v->left);
	r = v->is_again ? 0 : judge(v, r, "log", NULL, why);
	incr_error_release(why);
	if (r)
		return r;
	end = log_next_whole(v->st->log, position + RECORD_ALIGN, out_record,
			     out_next, v->err);
	if (end < 0 || v->is_again)
		return end;
	r = name_lost(v, position,
		      end ? UINT64_MAX : out_record->header.position);
	if (r || end)
		return r ? r : end;
	/* looking at the index may have read elsewhere */
	position = out_record->header.position;
	return log_next_whole(v->st->log, position, out_record, out_next,
			      v->err);
}

static int check_record(struct verify *v, const struct log_record *record)
{
	if (!v->is_again) {
		v->result->n_records++;
		if (verify_lost_note(&v->lost, record) < 0)
			return incr_fail_nomem(v->err);
	}
	return record->header.type == FACT_COMMIT ? check_commit(v, record) : 0;
}

/*
 * The records' payloads are borrowed from the log's buffer, which reading
 * inline frames does not touch (log_read_bytes() has its own way).
 */
static int check_log(struct verify *v)
{
	uint64_t position = log_begin(v->st->log);
	struct log_record record;
	int r;

	for (;;) {
		struct incr_error why = INCR_ERROR_INIT;

		v->dataset[0] = '\0';
		v->txn = 0;
		r = log_read(v->st->log, position, &record, &position, &why);
		if (r < 0)
			r = pass_damage(v, position, r, &why, &record,
					&position);
		if (r)
			return r == 1 ? 0 : r;
		r = check_record(v, &record);
		if (r)
			return r;
		if (is_out_of_time(v))
			return 1;
	}
}

/* Headers of segments, which the walk passes over. */
static int check_headers(struct verify *v)
{
	uint64_t base = 0;
	int r;

	for (;; base++) {
		struct incr_error why = INCR_ERROR_INIT;
		char segment[LOG_NAME_SIZE];

		r = log_next_headless(v->st->log, base, &base, v->err);
		if (r)
			return r < 0 ? r : 0;
		(void)log_segment_of(v->st->log, base, segment);
		(void)incr_fail(&why, INCR_E_CORRUPT, "corrupt-log", segment,
				"the segment's header is damaged");
		r = report(v, segment, NULL, &why);
		if (r)
			return r;
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

static int walk_all(struct verify *v)
{
	int r = check_headers(v), finished;

	if (r == 0)
		r = check_log(v);
	/* what is under way is of use also when the time is up */
	finished = v->data && r >= 0 ? verify_data_finish(v->data, v->err) : 0;
	if (r == 0)
		r = finished;
	if (r == 0 && v->data && verify_data_has_shared(v->data)) {
		v->is_again = true;
		r = check_log(v);
		v->is_again = false;
	}
	if (r == 0)
		r = name_missing(v);
	if (v->data)
		v->result->size = verify_data_size(v->data);
	return r;
}

static int report_left(void *closure, const char *path, uint64_t size)
{
	struct verify *v = closure;
	struct incr_finding f = { .word = "left-over",
				  .file = path,
				  .message = "the process that made it is gone",
				  .is_left_over = true,
				  .size = size };

	v->result->n_left_over++;
	v->result->left_over_size += size;
	return v->fn ? v->fn(v->closure, &f) : 0;
}

/*
 * The index comes first: it names what is lost.  A damaged one is made again
 * if it can be, and not while records are looked at, which reading the log
 * elsewhere would take away.
 */
static int check_all(struct verify *v)
{
	struct incr_error ignored = INCR_ERROR_INIT;
	uint64_t n_findings = v->result->n_findings;
	int r = check_index(v);

	if (r)
		return r;
	if (v->result->n_findings != n_findings && !v->st->is_damaged)
		(void)store_rebuild(v->st, &ignored);
	incr_error_release(&ignored);
	r = verify_left_init(&v->left, v->st, v->err);
	if (r < 0)
		return r;
	index_set_replaying(v->st->index, true);
	r = walk_all(v);
	index_set_replaying(v->st->index, false);
	/* the caller, or a failure, has ended it */
	if (r && v->result->is_complete)
		return r;
	return verify_left_report(&v->left, r == 0 && !v->options->dataset_id,
				  report_left, v);
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
		r = verify_data_new(st->reader, st->verify_alone_size,
				    report_failure, &v, &v.data, err);
	if (r == 0)
		r = check_all(&v);
	verify_data_free(v.data);
	verify_lost_release(&v.lost);
	verify_left_release(&v.left);
	if (r < 0)
		return r;
	*out_result = result;
	return 0;
}
