/*
 * One record of the log, applied to the index.  Replaying the log from its
 * beginning through this file gives the same index as any checkpoint does.
 */
#include "config.h"

#include "apply_content.h"
#include "apply_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "manifest_source.h"
#include "name.h"

int apply_bad_fact(struct apply *a, const char *why)
{
	return incr_fail(a->err, INCR_E_CORRUPT, "bad-fact", NULL,
			 "the log record at position %" PRIu64 " (type %u): %s",
			 a->record->header.position, a->record->header.type,
			 why);
}

static struct cursor payload_of(const struct apply *a)
{
	return cursor_over(a->record->payload, a->record->header.payload_size);
}

/* A fact is all of its record's payload: more would be of a newer format. */
static bool is_whole(const struct cursor *c)
{
	return !c->is_bad && !cursor_left(c);
}

static void saw(uint64_t *next, uint64_t number)
{
	if (number >= *next)
		*next = number + 1;
}

int apply_put_id(struct apply *a, const struct state_key *k, uint64_t id)
{
	_cleanup_buf_ struct buf value = BUF_INIT;

	if (buf_put_varint(&value, id) < 0)
		return incr_fail_nomem(a->err);
	return index_put(a->ix, k->bytes, k->size, value.data, value.size,
			 a->err);
}

struct state_key apply_dataset_key(struct text name)
{
	struct state_key k;

	state_key_start(&k, STATE_DATASET_NAME);
	state_key_bytes(&k, name.data, name.size);
	return k;
}

struct state_key apply_branch_key(uint64_t dataset_id, struct text name)
{
	struct state_key k = state_key_of(STATE_BRANCH_NAME, dataset_id);

	state_key_bytes(&k, name.data, name.size);
	return k;
}

/* A branch that must be there; 1: what made it is lost. */
static int need_branch(struct apply *a, uint64_t id, struct buf *storage,
		       struct state_branch *out)
{
	int r = state_branch(a->ix, id, storage, out, a->err);

	return r > 0 ? apply_excuse(a, "it names a branch that does not "
				       "exist") :
		       r;
}

/* The branch of a transaction. */
static int need_branch_of(struct apply *a, const struct fact_txn *f,
			  struct buf *storage, struct state_branch *out)
{
	int r = need_branch(a, f->branch_id, storage, out);

	return r > 0 ? apply_lost_branch(a, f, storage, out) : r;
}

static int need_dataset(struct apply *a, uint64_t id, struct buf *storage,
			struct state_dataset *out)
{
	int r = state_dataset(a->ix, id, storage, out, a->err);

	return r > 0 ? apply_excuse(a, "it names a dataset that does not "
				       "exist") :
		       r;
}

static int make_branch(struct apply *a, const struct fact_branch *f)
{
	struct index_counters *n = index_counters(a->ix);
	struct state_branch b = { .fact = *f, .head = f->at };
	struct state_line line = { f->parent_line, f->at };
	struct state_key k = apply_branch_key(f->dataset_id, f->name);
	int r = apply_free_branch_name(a, f->dataset_id, f->name, f->id);

	saw(&n->next_branch, f->id);
	saw(&n->next_line, f->line);
	if (r == 0)
		r = apply_put_id(a, &k, f->id);
	if (r == 0)
		r = state_put_line(a->ix, f->line, line, a->err);
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

static int apply_dataset_created(struct apply *a)
{
	struct cursor c = payload_of(a);
	struct state_dataset d = { 0 };
	struct fact_branch main = { .name = text_of("main"),
				    .parent = text_of(NULL) };
	struct state_key k;
	int r;

	if (fact_decode_dataset(&c, &d.fact) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	saw(&index_counters(a->ix)->next_dataset, d.fact.id);
	r = apply_free_dataset_name(a, d.fact.name, d.fact.id);
	k = apply_dataset_key(d.fact.name);
	if (r == 0)
		r = apply_put_id(a, &k, d.fact.id);
	if (r == 0)
		r = state_put_dataset(a->ix, &d, a->err);
	main.id = d.fact.branch_id;
	main.dataset_id = d.fact.id;
	main.line = d.fact.line;
	main.time_ns = d.fact.time_ns;
	return r < 0 ? r : make_branch(a, &main);
}

static int apply_dataset_renamed(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	uint64_t id = cursor_varint(&c);
	struct text name = cursor_text(&c);
	struct state_dataset d;
	struct state_key k;
	int r;

	if (!is_whole(&c) || name_check_dataset(name.data, name.size, NULL) < 0)
		return apply_bad_fact(a, "it does not parse");
	r = need_dataset(a, id, &storage, &d);
	if (r == 0)
		r = apply_free_dataset_name(a, name, id);
	if (r)
		return r < 0 ? r : 0;
	k = apply_dataset_key(d.fact.name);
	r = index_delete(a->ix, k.bytes, k.size, a->err);
	if (r < 0)
		return r;
	d.fact.name = name;
	k = apply_dataset_key(name);
	r = apply_put_id(a, &k, id);
	return r < 0 ? r : state_put_dataset(a->ix, &d, a->err);
}

static int apply_dataset_deleted(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	uint64_t id = cursor_varint(&c);
	struct state_dataset d;
	struct state_key k;
	int r;

	if (!is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	r = need_dataset(a, id, &storage, &d);
	if (r)
		return r < 0 ? r : 0;
	k = apply_dataset_key(d.fact.name);
	r = index_delete(a->ix, k.bytes, k.size, a->err);
	d.is_deleted = true;
	return r < 0 ? r : state_put_dataset(a->ix, &d, a->err);
}

static int apply_dataset_meta(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	uint64_t id = cursor_varint(&c);
	struct text pairs = cursor_text(&c);
	struct state_dataset d;
	int r;

	if (!is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	r = need_dataset(a, id, &storage, &d);
	if (r)
		return r < 0 ? r : 0;
	d.fact.pairs = pairs;
	return state_put_dataset(a->ix, &d, a->err);
}

static int apply_branch_created(struct apply *a)
{
	struct cursor c = payload_of(a);
	struct fact_branch f;

	if (fact_decode_branch(&c, &f) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	return make_branch(a, &f);
}

/* A child of the branch that was deleted becomes one of its parent. */
static int hand_on(struct apply *a, uint64_t id,
		   const struct fact_branch *deleted)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch b;
	int r = need_branch(a, id, &storage, &b);

	if (r || b.fact.parent.size != deleted->name.size ||
	    memcmp(b.fact.parent.data, deleted->name.data,
		   deleted->name.size) != 0)
		return r < 0 ? r : 0;
	b.fact.parent = deleted->parent;
	return state_put_branch(a->ix, &b, a->err);
}

static int hand_children_on(struct apply *a, const struct fact_branch *deleted)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key k =
		state_key_of(STATE_BRANCH_NAME, deleted->dataset_id);
	int r = index_collect(a->ix, k.bytes, k.size, &it, a->err);

	if (r == 0)
		r = it->seek(it, "", 0, a->err);
	while (r == 0) {
		struct cursor c =
			cursor_over(it->entry.value, it->entry.value_size);

		r = hand_on(a, cursor_varint(&c), deleted);
		if (r == 0)
			r = it->next(it, a->err);
	}
	return r < 0 ? r : 0;
}

static int apply_branch_deleted(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	uint64_t id = cursor_varint(&c);
	struct state_branch b;
	struct state_key k;
	int r;

	if (!is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	r = need_branch(a, id, &storage, &b);
	if (r)
		return r < 0 ? r : 0;
	k = apply_branch_key(b.fact.dataset_id, b.fact.name);
	r = index_delete(a->ix, k.bytes, k.size, a->err);
	if (r == 0)
		r = hand_children_on(a, &b.fact);
	b.is_deleted = true;
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

static int apply_branch_reset(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	struct fact_reset f;
	struct state_branch b;
	struct state_line line;
	int r, missing;

	if (fact_decode_reset(&c, &f) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	missing = need_branch(a, f.branch_id, &storage, &b);
	if (missing < 0)
		return missing;
	saw(&index_counters(a->ix)->next_line, f.line);
	line = (struct state_line){ f.parent_line, f.to };
	r = state_put_line(a->ix, f.line, line, a->err);
	if (missing)
		return r;
	b.fact.line = f.line;
	b.head = f.to;
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

static int apply_txn_opened(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c = payload_of(a);
	struct state_txn t = { .status = INCR_OPEN };
	struct state_branch b;
	struct state_key k;
	int r;

	if (fact_decode_txn(&c, &t.fact) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	r = need_branch_of(a, &t.fact, &storage, &b);
	if (r == 0 && b.open_txn)
		r = apply_lost_end(a, &b);
	if (r < 0)
		return r;
	saw(&index_counters(a->ix)->next_txn, t.fact.number);
	b.open_txn = t.fact.number;
	k = state_key_of(STATE_OPEN, t.fact.number);
	r = index_put(a->ix, k.bytes, k.size, "", 0, a->err);
	if (r == 0)
		r = state_put_txn(a->ix, &t, a->err);
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

int apply_close_open(struct apply *a, uint64_t number)
{
	struct state_key k = state_key_of(STATE_OPEN, number);

	return index_delete(a->ix, k.bytes, k.size, a->err);
}

static int apply_txn_aborted(struct apply *a)
{
	_cleanup_buf_ struct buf storage = BUF_INIT, branch_storage = BUF_INIT;
	struct cursor c = payload_of(a);
	uint64_t number = cursor_varint(&c);
	int64_t time_ns = cursor_zigzag(&c);
	struct state_txn t;
	struct state_branch b;
	int r;

	if (!is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	r = state_txn(a->ix, number, &storage, &t, a->err);
	if (r > 0 || (r == 0 && t.status != INCR_OPEN))
		r = apply_excuse(a, "it aborts a transaction that is not open");
	if (r == 0)
		r = need_branch(a, t.fact.branch_id, &branch_storage, &b);
	if (r)
		return r < 0 ? r : 0;
	t.status = INCR_ABORTED;
	t.fact.closed_ns = time_ns;
	r = state_put_txn(a->ix, &t, a->err);
	if (r == 0)
		r = apply_close_open(a, number);
	if (b.open_txn == number)
		b.open_txn = 0;
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

/*
 * Where the view's entries begin: what a relative SNAPSHOT puts stands among
 * the versions that it takes over.
 */
static int find_root(struct apply *a, struct state_txn *t)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	const struct fact_txn *f = &t->fact;
	struct state_txn parent;
	int r;

	t->root = f->number;
	if (!f->parent || (f->type == INCR_SNAPSHOT && !f->is_relative))
		return 0;
	r = state_txn(a->ix, f->parent, &storage, &parent, a->err);
	if (r > 0 || (r == 0 && parent.status != INCR_COMMITTED &&
		      parent.status != INCR_LOST))
		return apply_bad_fact(a,
				      "its parent is no committed transaction");
	if (r < 0)
		return r;
	t->root = parent.root;
	t->n_entries = parent.n_entries;
	return 0;
}

static int put_version(struct apply *a, const struct state_txn *txn,
		       const struct manifest_entry *e, struct buf *value)
{
	const struct fact_txn *t = &txn->fact;
	struct version v = { .op = e->op, .line = t->line };
	struct state_key k = state_key_of(STATE_VERSION, t->dataset_id);

	state_key_number(&k, txn->root);
	state_key_bytes(&k, e->path, e->path_length);
	state_key_bytes(&k, "", 1);
	state_key_number(&k, ~t->number);
	v.mode = e->mode;
	v.mtime_ns = e->mtime_ns;
	memcpy(v.hash, e->hash, sizeof(v.hash));
	v.content = e->content; /* borrowed: not released here */
	buf_reset(value);
	if (version_encode(&v, value) < 0)
		return incr_fail_nomem(a->err);
	return index_put(a->ix, k.bytes, k.size, value->data, value->size,
			 a->err);
}

static int put_versions(struct apply *a, struct state_txn *t,
			uint64_t frames_position)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct apply_content fresh;
	struct manifest_source m;
	const struct manifest_entry *e;
	int r = manifest_source_open(&t->fact, frames_position, a->reader, &m,
				     a->err);

	if (r < 0)
		return r;
	apply_content_init(&fresh, &m, frames_position);
	while ((r = manifest_reader_next(m.entries, &e, a->err)) == 0) {
		r = put_version(a, t, e, &value);
		if (r == 0)
			r = apply_content_add(&fresh, a->ix, e, a->err);
		if (r < 0)
			break;
		t->n_entries++;
	}
	if (r >= 0)
		r = apply_content_put(&fresh, a->ix, a->err);
	apply_content_release(&fresh);
	manifest_source_release(&m);
	return r;
}

/* One that cannot be read leaves its views without what it says, and nothing else. */
static int put_manifest(struct apply *a, struct state_txn *t,
			uint64_t frames_position)
{
	int r = put_versions(a, t, frames_position);

	if (r < 0 && r != INCR_E_CORRUPT)
		return r;
	if (r < 0)
		incr_error_release(a->err);
	return apply_unknown(a, &t->fact, r < 0);
}

static int apply_committed_txn(struct apply *a, const struct fact_txn *f,
			       uint64_t frames_position)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t = { .fact = *f,
			       .status = INCR_COMMITTED,
			       .record_position = a->record->header.position };
	struct state_branch b;
	int r = need_branch_of(a, f, &storage, &b);

	if (r < 0)
		return r;
	if (b.fact.dataset_id != f->dataset_id)
		return apply_bad_fact(a, "its branch is of another dataset");
	if (b.head != f->parent || b.fact.line != f->line)
		r = apply_gap(a, f, &b);
	if (r == 0 && b.open_txn && b.open_txn != f->number)
		r = apply_lost_end(a, &b);
	if (r < 0)
		return r;
	saw(&index_counters(a->ix)->next_txn, f->number);
	r = find_root(a, &t);
	if (r == 0)
		r = put_manifest(a, &t, frames_position);
	if (r == 0)
		r = state_put_txn(a->ix, &t, a->err);
	if (r == 0 && b.open_txn == f->number) {
		b.open_txn = 0;
		r = apply_close_open(a, f->number);
	}
	b.head = f->number;
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

static int put_build(struct apply *a, const struct fact_build *f)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_BUILD, ~f->number);
	uint8_t status = (uint8_t)f->status;
	int r;

	saw(&index_counters(a->ix)->next_build, f->number);
	if (fact_encode_build(f, &value) < 0)
		return incr_fail_nomem(a->err);
	r = index_put(a->ix, k.bytes, k.size, value.data, value.size, a->err);
	if (r < 0)
		return r;
	state_key_start(&k, STATE_TRANSFORM);
	state_key_bytes(&k, f->transform.data, f->transform.size);
	state_key_bytes(&k, "", 1);
	state_key_number(&k, ~f->number);
	return index_put(a->ix, k.bytes, k.size, &status, 1, a->err);
}

static int apply_commit(struct apply *a)
{
	struct commit_record record;
	uint64_t frames_position;
	int r = commit_record_decode(a->record->payload,
				     a->record->header.payload_size, &record);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(a->err);
	if (r < 0)
		return apply_bad_fact(a, "it does not parse");
	frames_position = a->record->header.position + RECORD_HEADER_SIZE +
			  record.frames_off;
	for (size_t i = 0; r == 0 && i < record.n_branches; i++)
		r = make_branch(a, &record.branches[i]);
	for (size_t i = 0; r == 0 && i < record.n_txns; i++)
		r = apply_committed_txn(a, &record.txns[i], frames_position);
	if (r == 0 && record.has_build)
		r = put_build(a, &record.build);
	commit_record_release(&record);
	return r;
}

static int apply_schema(struct apply *a)
{
	struct cursor c = payload_of(a);
	struct fact_schema f;
	struct state_key k;

	if (fact_decode_schema(&c, &f) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	k = state_key_of(STATE_SCHEMA, f.dataset_id);
	state_key_number(&k, f.line);
	state_key_number(&k, ~f.after);
	state_key_number(&k, ~a->record->header.sequence);
	return index_put(a->ix, k.bytes, k.size, f.text.data, f.text.size,
			 a->err);
}

static int apply_build(struct apply *a)
{
	struct cursor c = payload_of(a);
	struct fact_build f;

	if (fact_decode_build(&c, &f) < 0 || !is_whole(&c))
		return apply_bad_fact(a, "it does not parse");
	return put_build(a, &f);
}

static int apply_nothing(struct apply *a)
{
	(void)a; /* the store's first record says who made it, for people */
	return 0;
}

int apply_record(struct index *ix, const struct log_record *record,
		 struct content_reader *reader, struct incr_error *err)
{
	static int (*const appliers[])(struct apply *) = {
		[FACT_STORE_CREATED] = apply_nothing,
		[FACT_DATASET_CREATED] = apply_dataset_created,
		[FACT_DATASET_RENAMED] = apply_dataset_renamed,
		[FACT_DATASET_DELETED] = apply_dataset_deleted,
		[FACT_DATASET_META] = apply_dataset_meta,
		[FACT_BRANCH_CREATED] = apply_branch_created,
		[FACT_BRANCH_DELETED] = apply_branch_deleted,
		[FACT_BRANCH_RESET] = apply_branch_reset,
		[FACT_TXN_OPENED] = apply_txn_opened,
		[FACT_TXN_ABORTED] = apply_txn_aborted,
		[FACT_COMMIT] = apply_commit,
		[FACT_SCHEMA] = apply_schema,
		[FACT_BUILD_OPENED] = apply_build,
		[FACT_BUILD_ENDED] = apply_build,
		[FACT_LOST] = apply_lost,
	};
	struct apply a = { ix, record, reader, err };
	uint16_t type = record->header.type;
	struct index_position *at = index_position(ix);
	int r;

	if (type >= sizeof(appliers) / sizeof(appliers[0]) || !appliers[type])
		return incr_fail(
			err, INCR_E_UNSUPPORTED, "newer-format", NULL,
			"the log has a record of type %u, which this version does not know",
			type);
	if (record->header.sequence != at->sequence + 1)
		return apply_bad_fact(&a,
				      "its sequence number does not follow");
	r = appliers[type](&a);
	if (r < 0)
		return r;
	at->sequence = record->header.sequence;
	at->last_position = record->header.position;
	at->last_hash = record->header.payload_hash;
	return 0;
}
