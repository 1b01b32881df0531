/*
 * Applying facts when some before them are lost.
 *
 * A fact may then lean on what nothing says: a dataset, a branch, a parent, a
 * line.  What can be told from the fact itself is put in its place: a branch
 * goes on from the parent that its next commit names, and that parent stands
 * in the index as LOST, so that every path leads on to what is known before.
 * A view with such a transaction in it lacks what it changed, and says so.
 */
#include "config.h"

#include "apply_impl.h"

#include <inttypes.h>
#include <stdio.h>

#include "error.h"
#include "lost.h"

/* Under number 0 of STATE_GIVEN_UP: the first build after all repairs of the log. */
#define ALL_HOLES 0

int apply_hole(struct index *ix, const struct log_hole *hole,
	       struct incr_error *err)
{
	uint64_t build = 0;
	int r = state_given_up(ix, ALL_HOLES, &build, err);

	if (r >= 0 && (r == 1 || build < hole->next_build))
		r = state_put_given_up(ix, ALL_HOLES, hole->next_build, err);
	if (r >= 0)
		r = state_put_hole(ix, hole->from, hole->to, err);
	if (r < 0)
		return r;
	index_position(ix)->sequence = hole->last_sequence;
	return 0;
}

/* Are records before this one lost?  1: yes, 0: no. */
static int has_lost_records(struct apply *a)
{
	uint64_t build;
	int r = state_given_up(a->ix, ALL_HOLES, &build, a->err);

	return r < 0 ? r : !r;
}

int apply_excuse(struct apply *a, const char *why)
{
	int r = has_lost_records(a);

	return r == 0 ? apply_bad_fact(a, why) : r;
}

/* ---- names ---- */

struct lost_name {
	char bytes[64];
};

static struct text lost_name(struct lost_name *name, const char *what,
			     uint64_t id, unsigned n)
{
	if (n)
		snprintf(name->bytes, sizeof(name->bytes),
			 "lost-%s-%" PRIu64 "-%u", what, id, n);
	else
		snprintf(name->bytes, sizeof(name->bytes), "lost-%s-%" PRIu64,
			 what, id);
	return text_of(name->bytes);
}

static int name_dataset(struct apply *a, uint64_t id, struct lost_name *name)
{
	uint64_t other;
	int r = 0;

	for (unsigned n = 0; r == 0; n++)
		r = state_dataset_id(a->ix, lost_name(name, "dataset", id, n),
				     &other, a->err);
	return r < 0 ? r : 0;
}

static int name_branch(struct apply *a, uint64_t dataset_id, uint64_t id,
		       struct lost_name *name)
{
	uint64_t other;
	int r = 0;

	for (unsigned n = 0; r == 0; n++)
		r = state_branch_id(a->ix, dataset_id,
				    lost_name(name, "branch", id, n), &other,
				    a->err);
	return r < 0 ? r : 0;
}

int apply_free_dataset_name(struct apply *a, struct text name, uint64_t id)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct lost_name other_name;
	struct state_dataset d;
	struct state_key k;
	uint64_t other;
	int r = state_dataset_id(a->ix, name, &other, a->err);

	if (r || other == id)
		return r < 0 ? r : 0;
	r = apply_excuse(a, "the dataset's name is in use");
	if (r == 1)
		r = state_dataset(a->ix, other, &storage, &d, a->err);
	if (r == 0)
		r = name_dataset(a, other, &other_name);
	if (r)
		return r < 0 ? r : 0;
	d.fact.name = text_of(other_name.bytes);
	k = apply_dataset_key(d.fact.name);
	r = apply_put_id(a, &k, other);
	return r < 0 ? r : state_put_dataset(a->ix, &d, a->err);
}

int apply_free_branch_name(struct apply *a, uint64_t dataset_id,
			   struct text name, uint64_t id)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct lost_name other_name;
	struct state_branch b;
	struct state_key k;
	uint64_t other;
	int r = state_branch_id(a->ix, dataset_id, name, &other, a->err);

	if (r || other == id)
		return r < 0 ? r : 0;
	r = apply_excuse(a, "the branch's name is in use");
	if (r == 1)
		r = state_branch(a->ix, other, &storage, &b, a->err);
	if (r == 0)
		r = name_branch(a, dataset_id, other, &other_name);
	if (r)
		return r < 0 ? r : 0;
	b.fact.name = text_of(other_name.bytes);
	k = apply_branch_key(dataset_id, b.fact.name);
	r = apply_put_id(a, &k, other);
	return r < 0 ? r : state_put_branch(a->ix, &b, a->err);
}

/* ---- datasets, branches and lines that nothing tells of ---- */

static int make_dataset(struct apply *a, const struct fact_txn *f)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset d = { .fact = { .id = f->dataset_id,
					     .description = text_of(NULL),
					     .pairs = text_of(NULL),
					     .user = text_of(NULL),
					     .branch_id = f->branch_id,
					     .line = f->line } };
	struct lost_name name;
	struct state_key k;
	int r = state_dataset(a->ix, f->dataset_id, &storage, &d, a->err);

	if (r != 1)
		return r;
	r = name_dataset(a, f->dataset_id, &name);
	if (r < 0)
		return r;
	d.fact.name = text_of(name.bytes);
	k = apply_dataset_key(d.fact.name);
	r = apply_put_id(a, &k, d.fact.id);
	return r < 0 ? r : state_put_dataset(a->ix, &d, a->err);
}

/* It grew out of the parent, if that is known and stands on an earlier one. */
static int make_line(struct apply *a, const struct fact_txn *f)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct index_counters *n = index_counters(a->ix);
	struct state_line line = { 0 };
	struct state_txn parent;
	int r = state_line(a->ix, f->line, &line, a->err);

	if (r != 1)
		return r;
	if (f->line >= n->next_line)
		n->next_line = f->line + 1;
	line = (struct state_line){ 0 };
	if (f->parent) {
		r = state_txn(a->ix, f->parent, &storage, &parent, a->err);
		if (r < 0)
			return r;
		if (r == 0 && parent.fact.line < f->line &&
		    parent.fact.dataset_id == f->dataset_id)
			line = (struct state_line){ parent.fact.line,
						    f->parent };
	}
	return state_put_line(a->ix, f->line, line, a->err);
}

int apply_lost_branch(struct apply *a, const struct fact_txn *f,
		      struct buf *storage, struct state_branch *out)
{
	struct index_counters *n = index_counters(a->ix);
	struct state_branch b = { .fact = { .id = f->branch_id,
					    .dataset_id = f->dataset_id,
					    .line = f->line,
					    .name = text_of("main"),
					    .parent = text_of(NULL) } };
	struct lost_name name;
	struct state_key k;
	uint64_t other;
	int r = make_dataset(a, f);

	if (r == 0)
		r = make_line(a, f);
	if (r == 0)
		r = state_branch_id(a->ix, f->dataset_id, b.fact.name, &other,
				    a->err);
	if (r == 0) {
		r = name_branch(a, f->dataset_id, f->branch_id, &name);
		b.fact.name = text_of(name.bytes);
	}
	if (r < 0)
		return r;
	if (f->branch_id >= n->next_branch)
		n->next_branch = f->branch_id + 1;
	k = apply_branch_key(f->dataset_id, b.fact.name);
	r = apply_put_id(a, &k, b.fact.id);
	if (r == 0)
		r = state_put_branch(a->ix, &b, a->err);
	return r < 0 ? r : state_branch(a->ix, b.fact.id, storage, out, a->err);
}

/* ---- transactions that nothing tells of ---- */

static int put_lost(struct apply *a, struct state_txn *t)
{
	uint64_t number = t->fact.number, build = 0;
	int r = state_given_up(a->ix, ALL_HOLES, &build, a->err);

	t->status = INCR_LOST;
	t->record_position = 0;
	if (r >= 0)
		r = state_put_txn(a->ix, t, a->err);
	if (r == 0)
		r = state_put_unknown(a->ix, number, number, a->err);
	return r < 0 ? r : state_put_given_up(a->ix, number, build, a->err);
}

int apply_lost_end(struct apply *a, struct state_branch *b)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t number = b->open_txn;
	struct state_txn t;
	int r = has_lost_records(a);

	if (r <= 0)
		return r;
	r = state_txn(a->ix, number, &storage, &t, a->err);
	if (r)
		return r < 0 ? r : 0;
	t.fact.view_start = number;
	t.root = number;
	r = put_lost(a, &t);
	b->open_txn = 0;
	return r < 0 ? r : apply_close_open(a, number);
}

/* The parent that @f names, between the head that is known and @f. */
static int make_parent(struct apply *a, const struct fact_txn *f,
		       struct state_branch *b)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	bool is_start = (f->type == INCR_SNAPSHOT && !f->is_relative) ||
			f->view_start > f->parent;
	uint64_t root = f->parent, n_entries = 0;
	struct state_txn t;
	int r = b->head ? state_txn(a->ix, b->head, &storage, &t, a->err) : 1;

	/* its view is taken for the one before it */
	if (r == 0) {
		root = t.root;
		n_entries = t.n_entries;
	}
	if (r >= 0)
		r = f->parent ?
			    state_txn(a->ix, f->parent, &storage, &t, a->err) :
			    0;
	if (r == 0 && f->parent && t.status == INCR_ABORTED)
		return apply_bad_fact(a, "its parent was aborted");
	if (r == 0 && f->parent && t.status == INCR_OPEN) {
		/* a lost record committed it */
		t.fact.view_start = is_start ? f->parent : f->view_start;
		t.root = root;
		t.n_entries = n_entries;
		r = put_lost(a, &t);
		if (b->open_txn == f->parent)
			b->open_txn = 0;
		return r < 0 ? r : apply_close_open(a, f->parent);
	}
	if (r != 1)
		return r;
	t = (struct state_txn){
		.fact = { .number = f->parent,
			  .dataset_id = f->dataset_id,
			  .branch_id = f->branch_id,
			  .line = f->line,
			  .parent = b->head < f->parent ? b->head : 0,
			  .type = INCR_UPDATE,
			  .origin = text_of(NULL),
			  .user = text_of(NULL),
			  .message = text_of(NULL),
			  .pairs = text_of(NULL),
			  .view_start = is_start ? f->parent : f->view_start },
		.root = root,
		.n_entries = n_entries,
	};
	return put_lost(a, &t);
}

int apply_gap(struct apply *a, const struct fact_txn *f, struct state_branch *b)
{
	int r = apply_excuse(a, "its parent is not the head of its branch");

	if (r == 1)
		r = make_line(a, f);
	if (r == 0)
		r = make_parent(a, f, b);
	if (r < 0)
		return r;
	b->head = f->parent;
	b->fact.line = f->line;
	return 0;
}

int apply_unknown(struct apply *a, const struct fact_txn *f,
		  bool is_manifest_lost)
{
	uint64_t unknown = f->number;
	int r = 0;

	if (!is_manifest_lost &&
	    ((f->type == INCR_SNAPSHOT && !f->is_relative) || !f->parent))
		return 0;
	if (!is_manifest_lost)
		r = state_unknown(a->ix, f->parent, &unknown, a->err);
	if (r)
		return r < 0 ? r : 0;
	return state_put_unknown(a->ix, f->number, unknown, a->err);
}

/* ---- what a repair has said ---- */

static void raise(uint64_t *number, uint64_t to)
{
	if (*number < to)
		*number = to;
}

int apply_lost(struct apply *a)
{
	struct index_counters *n = index_counters(a->ix);
	struct fact_lost f;
	int r = fact_decode_lost(a->record->payload,
				 a->record->header.payload_size, &f);

	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(a->err);
	if (r < 0)
		return apply_bad_fact(a, "it does not parse");
	raise(&n->next_txn, f.next.txn);
	raise(&n->next_build, f.next.build);
	raise(&n->next_dataset, f.next.dataset);
	raise(&n->next_branch, f.next.branch);
	raise(&n->next_line, f.next.line);
	for (size_t i = 0; r == 0 && i < f.n_manifests; i++)
		r = state_put_given_up(a->ix, f.manifests[i], f.next.build,
				       a->err);
	for (size_t i = 0; r == 0 && i < f.n_files; i++)
		r = state_put_lost_file(a->ix, f.files[i].txn, f.files[i].path,
					a->err);
	fact_lost_release(&f);
	return r;
}
