/*
 * `verify`: every record of the log, every manifest, every place that a
 * manifest names, and on request every byte of content.
 *
 * The log is read record by record with its checksums; what a record says is
 * compared with what its manifest holds; a place is proved by reading its last
 * byte, content by its frames' checksums and the file's own hash.  The index
 * is walked once: it is derived, so damage there costs nobody anything, but
 * people want to know.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "hash.h"
#include "store.h"

#define READ_SIZE ((size_t)1 << 20)
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
	struct hasher *hasher; /* owned */
	uint8_t *data; /* owned: READ_SIZE bytes */
	/* where we are, for findings */
	char dataset[512];
	uint64_t txn;
};

/* Report; a non-zero return of the caller's function ends the walk. */
static int report(struct verify *v, const char *file,
		  const struct manifest_entry *e, const struct incr_error *why)
{
	struct incr_finding f = {
		.word = why->word,
		.file = why->thing[0] ? why->thing : file,
		.dataset = v->dataset[0] ? v->dataset : NULL,
		.txn = v->txn,
		.path = e ? e->path : NULL,
		.path_length = e ? e->path_length : 0,
		.message = why->message,
	};

	if (e && e->content.kind == CONTENT_PART)
		f.off = e->content.frame_off;
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
	if (v->err)
		*v->err = *why;
	else
		incr_error_release(why);
	return r;
}

static bool is_out_of_time(struct verify *v)
{
	int64_t now = store_now(v->st);

	if (v->options->progress && now - v->last_progress_ns >= PROGRESS_NS) {
		v->last_progress_ns = now;
		v->options->progress(v->options->progress_closure,
				     v->result->n_files, v->result->size, 0, 0);
	}
	if (!v->deadline_ns || now < v->deadline_ns)
		return false;
	v->result->is_complete = false;
	return true;
}

/* ---- content ---- */

static int read_content(struct verify *v, const struct manifest_entry *e,
			uint64_t *out_size, struct incr_error *why)
{
	uint64_t off = 0;
	size_t n;

	do {
		int r = content_read(v->st->reader, &e->content, off, v->data,
				     READ_SIZE, &n, why);

		if (r < 0)
			return r;
		hasher_update(v->hasher, v->data, n);
		off += n;
	} while (n == READ_SIZE);
	*out_size = off;
	return 0;
}

static int check_data(struct verify *v, const struct manifest_entry *e)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint8_t hash[INCR_HASH_SIZE];
	uint64_t size = 0;
	int r;

	hasher_reset(v->hasher);
	r = read_content(v, e, &size, &why);
	if (r < 0)
		return judge(v, r, "packs", e, &why);
	v->result->size += size;
	hasher_digest(v->hasher, hash);
	if (size != e->content.size)
		return report_text(
			v, "wrong-size", "packs", e,
			"the file's content is not as long as recorded");
	if (memcmp(hash, e->hash, sizeof(hash)) != 0)
		return report_text(
			v, "wrong-hash", "packs", e,
			"the file's content does not match its hash");
	return 0;
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

/* ---- transactions ---- */

static int check_counts(struct verify *v, const struct fact_txn *t,
			const struct fact_txn *seen)
{
	if (t->n_files == seen->n_files && t->n_removed == seen->n_removed &&
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
		v->result->n_files++;
		r = v->options->reads_data ? check_data(v, e) :
					     check_place(v, e);
		if (r)
			return r;
	}
	return r < 0 ? judge(v, r, "packs", NULL, &why) : 0;
}

static int set_place(struct verify *v, const struct fact_txn *t)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset d;
	int r = state_dataset(v->st->index, t->dataset_id, &storage, &d,
			      v->err);

	if (r < 0)
		return r;
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
	int r;

	if (v->options->dataset_id && v->options->dataset_id != t->dataset_id)
		return 0;
	r = set_place(v, t);
	if (r < 0)
		return r;
	v->result->n_txns++;
	r = manifest_source_open(t, frames_position, v->st->reader, &m, &why);
	if (r < 0)
		return judge(v, r, "log", NULL, &why);
	r = check_entries(v, m.entries, &seen);
	manifest_source_release(&m);
	return r ? r : check_counts(v, t, &seen);
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

/*
 * The records' payloads are borrowed from the log's buffer, which reading
 * inline frames does not touch (log_read_bytes() has its own way).
 */
static int check_log(struct verify *v)
{
	uint64_t position = log_begin(v->st->log), next;
	struct log_record record;
	int r;

	for (;;) {
		struct incr_error why = INCR_ERROR_INIT;

		v->dataset[0] = '\0';
		v->txn = 0;
		r = log_read(v->st->log, position, &record, &next, &why);
		if (r == 1)
			return 0;
		if (r < 0)
			return judge(v, r, "log", NULL, &why);
		v->result->n_records++;
		if (record.header.type == FACT_COMMIT)
			r = check_commit(v, &record);
		if (r)
			return r;
		if (is_out_of_time(v))
			return 1;
		position = next;
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
	int r;

	if (options->time_limit_ms)
		v.deadline_ns = store_now(st) +
				(int64_t)options->time_limit_ms * 1000000;
	v.hasher = hasher_new();
	v.data = malloc(READ_SIZE);
	if (!v.hasher || !v.data)
		r = incr_fail_nomem(err);
	else
		r = check_log(&v);
	if (r == 0)
		r = check_index(&v);
	hasher_free(v.hasher);
	free(v.data);
	if (r < 0)
		return r;
	*out_result = result;
	return 0;
}
