/*
 * Facts about the inputs: their branch, what the last run recorded of them,
 * and the net change since; then read ends and counts.
 */
#include "config.h"

#include "error.h"
#include "plan.h"
#include "plan_path.h"
#include "transform.h"

#include <stdlib.h>
#include <string.h>

static int set_branch(struct plan_work *w, struct incr_plan_input *in,
		      const struct state_branch *b, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r;

	in->branch = text_dup(b->fact.name);
	if (!in->branch)
		return incr_fail_nomem(err);
	if (!b->head)
		return 0;
	r = store_find_txn(w->st, b->head, &storage, &t, err);
	if (r < 0)
		return r;
	in->view_end = b->head;
	in->view_start = t.fact.view_start;
	return 0;
}

static int resolve(struct plan_work *w, size_t idx, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	const struct incr_transform_input *of = &w->transform->inputs[idx];
	struct incr_plan_input *in = &w->plan.inputs[idx];
	const char *branch = of->branch ? of->branch : plan_build_branch(w);
	struct state_branch b;
	int r = plan_find_dataset(w, of->dataset, &in->dataset_id, err);

	if (r < 0)
		return r;
	in->alias = strdup(of->alias);
	in->dataset = strdup(of->dataset);
	if (!in->alias || !in->dataset)
		return incr_fail_nomem(err);
	in->kind = of->is_snapshot	 ? INCR_INPUT_SNAPSHOT :
		   of->transaction_limit ? INCR_INPUT_LIMITED :
					   INCR_INPUT_NORMAL;
	in->transaction_limit = of->transaction_limit;

	/* R33: a branch named for this input stands for itself. */
	r = of->branch ? plan_find_branch(w, in->dataset_id, branch, &storage,
					  &b, err) :
			 plan_find_build_branch(w, in->dataset_id, &storage, &b,
						err);
	if (r == 1)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-branch", branch,
				 "input %s: dataset %s has no such branch",
				 of->alias, of->dataset);
	return r < 0 ? r : set_branch(w, in, &b, err);
}

/* What the last run recorded under this alias. */
static const struct incr_plan_input *record_of(const struct plan_work *w,
					       size_t idx)
{
	return w->has_previous ? plan_input(&w->previous.plan,
					    w->plan.inputs[idx].alias) :
				 NULL;
}

static void set_record(struct plan_work *w, size_t idx)
{
	const struct incr_plan_input *record = record_of(w, idx);
	struct incr_plan_input *in = &w->plan.inputs[idx];
	struct decide_input *d = &w->inputs[idx];

	*d = (struct decide_input){ .alias = in->alias,
				    .dataset = in->dataset,
				    .dataset_id = in->dataset_id,
				    .kind = in->kind,
				    .view_start = in->view_start,
				    .head = in->view_end,
				    .read_end = in->view_end };
	in->is_new = true;
	if (!record)
		return;
	d->has_record = true;
	d->record_dataset_id = record->dataset_id;
	d->record_kind = record->kind;
	d->record_start = record->view_start;
	d->last_read = record->read_end;
	if (record->dataset_id == in->dataset_id && record->read_end) {
		in->is_new = false;
		in->previous_end = record->view_end;
		in->last_read = record->read_end;
	}
}

/* What the last run read, or would have, and is lost since (semantics.md, "Losses"). */
static int set_lost(struct plan_work *w, size_t idx, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct decide_input *d = &w->inputs[idx];
	struct state_txn t;
	int r = d->head ? state_unknown(w->st->index, d->head, &d->unknown_txn,
					err) :
			  0;

	if (r < 0 || !d->last_read)
		return r < 0 ? r : 0;
	r = state_txn(w->st->index, d->last_read, &storage, &t, err);
	if (r < 0)
		return r;
	if (r == 1 || t.status == INCR_LOST) {
		d->lost_txn = d->last_read;
		return 0;
	}
	return plan_find_lost(w, d->head, w->previous.number, &d->lost_txn,
			      err);
}

static int set_relation(struct plan_work *w, struct decide_input *d,
			struct incr_error *err)
{
	bool is_on_path = false, is_behind = false;
	int r = incr_txn_is_on_path(w->st, d->last_read, d->head, &is_on_path,
				    err);

	if (r < 0 || is_on_path)
		return r;
	r = incr_txn_is_on_path(w->st, d->head, d->last_read, &is_behind, err);
	if (r < 0)
		return r;
	d->relation = is_behind ? DECIDE_HEAD_BEHIND : DECIDE_OFF_PATH;
	return 0;
}

/*
 * A limited build found the view free of bad transactions up to its head then:
 * only what came after that is to be looked at.
 */
static int known_good(struct plan_work *w, size_t idx, uint64_t *out_txn,
		      struct incr_error *err)
{
	const struct incr_plan_input *record = record_of(w, idx);
	const struct decide_input *d = &w->inputs[idx];
	bool is_on_path = false;
	int r;

	*out_txn = 0;
	if (!record || record->kind != INCR_INPUT_LIMITED ||
	    record->dataset_id != d->dataset_id ||
	    record->view_start != d->view_start)
		return 0;
	r = incr_txn_is_on_path(w->st, record->view_end, d->head, &is_on_path,
				err);
	if (r == 0 && is_on_path)
		*out_txn = record->view_end;
	return r;
}

static int set_limit(struct plan_work *w, size_t idx, struct incr_error *err)
{
	const struct incr_plan_input *in = &w->plan.inputs[idx];
	struct decide_input *d = &w->inputs[idx];
	uint64_t after = decide_input_state(d) == DECIDE_INPUT_COMPARABLE ?
				 d->last_read :
				 0;
	struct plan_path path = { d->head, d->view_start };
	uint64_t good = 0;
	int r = known_good(w, idx, &good, err);

	if (r == 0)
		r = plan_path_find_bad(w->st, path, good, &d->bad_txn,
				       &d->bad_type, err);
	if (r == 0)
		r = plan_path_batch_end(w->st, path, after,
					in->transaction_limit, &d->read_end,
					err);
	return r;
}

/* ---- the net change ---- */

static int is_by_retention(struct plan_work *w, uint64_t txn,
			   bool *out_is_retention, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r = store_find_txn(w->st, txn, &storage, &t, err);

	if (r == 0)
		*out_is_retention = t.fact.type == INCR_DELETE &&
				    text_equals(t.fact.origin, "retention");
	return r;
}

/* Walking the changes of one input. */
struct tally {
	struct plan_work *w;
	size_t idx;
	uint64_t last_remover; /* whose origin is known: */
	bool is_retention;
};

static int note(struct tally *t, struct decide_change *change, size_t path_idx,
		const struct incr_node *node, uint64_t txn,
		struct incr_error *err)
{
	char *copy;

	if (change->count++)
		return 0;
	copy = malloc(node->path_length + 1);
	if (!copy)
		return incr_fail_nomem(err);
	memcpy(copy, node->path, node->path_length);
	copy[node->path_length] = '\0';
	t->w->views[t->idx].paths[path_idx] = copy;
	change->path = copy;
	change->path_length = node->path_length;
	change->txn = txn;
	return 0;
}

static int note_removed(struct tally *t, const struct incr_node *node,
			uint64_t txn, struct incr_error *err)
{
	struct decide_input *d = &t->w->inputs[t->idx];

	if (txn != t->last_remover) {
		int r = is_by_retention(t->w, txn, &t->is_retention, err);

		if (r < 0)
			return r;
		t->last_remover = txn;
	}
	return t->is_retention ?
		       note(t, &d->removed_by_retention, 2, node, txn, err) :
		       note(t, &d->removed_by_user, 1, node, txn, err);
}

static int tally_changes(struct tally *t, struct incr_changes *changes,
			 struct incr_node *node, struct incr_error *err)
{
	enum incr_change which;
	uint64_t txn;
	int r;

	while ((r = incr_changes_next(changes, &which, node, &txn, err)) == 0) {
		if (which == INCR_MODIFIED)
			r = note(t, &t->w->inputs[t->idx].modified, 0, node,
				 txn, err);
		else if (which == INCR_REMOVED)
			r = note_removed(t, node, txn, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int set_changes(struct plan_work *w, size_t idx, struct incr_error *err)
{
	struct incr_node node = INCR_NODE_INIT;
	struct plan_views *v = &w->views[idx];
	struct decide_input *d = &w->inputs[idx];
	struct tally t = { .w = w, .idx = idx };
	int r = incr_view_open(w->st, d->dataset_id, d->last_read, &v->from,
			       err);

	if (r == 0)
		r = incr_view_open(w->st, d->dataset_id, d->read_end, &v->to,
				   err);
	if (r == 0)
		r = incr_changes_new(v->from, v->to, &v->changes, err);
	if (r < 0)
		return r;
	/* Mostly there are only additions, and those need no look. */
	if (!incr_view_n_files(incr_changes_view(v->changes, INCR_MODIFIED)) &&
	    !incr_view_n_files(incr_changes_view(v->changes, INCR_REMOVED)))
		return 0;
	r = tally_changes(&t, v->changes, &node, err);
	incr_changes_rewind(v->changes);
	incr_node_release(&node);
	return r;
}

int plan_gather_inputs(struct plan_work *w, struct incr_error *err)
{
	for (size_t i = 0; i < w->plan.n_inputs; i++) {
		struct decide_input *d = &w->inputs[i];
		int r = resolve(w, i, err);

		if (r < 0)
			return r;
		set_record(w, i);
		r = set_lost(w, i, err);
		if (r < 0)
			return r;
		if (decide_input_state(d) == DECIDE_INPUT_COMPARABLE)
			r = set_relation(w, d, err);
		if (r == 0 && d->kind == INCR_INPUT_LIMITED)
			r = set_limit(w, i, err);
		if (r == 0 && decide_input_state(d) == DECIDE_INPUT_COMPARABLE)
			r = set_changes(w, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- what follows from the decision ---- */

static void count_view(struct incr_view *v, uint64_t *out_files,
		       uint64_t *out_size)
{
	*out_files = incr_view_n_files(v);
	*out_size = incr_view_size(v);
}

static void count_changes(const struct plan_views *v,
			  struct incr_plan_input *in)
{
	count_view(incr_changes_view(v->changes, INCR_ADDED), &in->files.added,
		   &in->bytes.added);
	count_view(incr_changes_view(v->changes, INCR_MODIFIED),
		   &in->files.modified, &in->bytes.modified);
	count_view(incr_changes_view(v->changes, INCR_REMOVED),
		   &in->files.removed, &in->bytes.removed);
	count_view(v->from, &in->files.previous, &in->bytes.previous);
	count_view(v->to, &in->files.current, &in->bytes.current);
}

/* The whole view up to the read end is added. */
static int count_whole(struct plan_work *w, struct incr_plan_input *in,
		       struct incr_error *err)
{
	struct incr_view *v;
	int r = incr_view_open(w->st, in->dataset_id, in->read_end, &v, err);

	if (r < 0)
		return r;
	count_view(v, &in->files.added, &in->bytes.added);
	count_view(v, &in->files.current, &in->bytes.current);
	incr_view_unref(v);
	return 0;
}

int plan_finish_inputs(struct plan_work *w, struct incr_error *err)
{
	for (size_t i = 0; i < w->plan.n_inputs; i++) {
		struct incr_plan_input *in = &w->plan.inputs[i];
		const struct decide_input *d = &w->inputs[i];
		int r = 0;

		in->read_end = d->read_end;
		if (w->plan.is_incremental && w->views[i].changes) {
			count_changes(&w->views[i], in);
			continue;
		}
		/* R134: from the start of the view. */
		if (in->kind == INCR_INPUT_LIMITED)
			r = plan_path_batch_end(
				w->st,
				(struct plan_path){ in->view_end,
						    in->view_start },
				0, in->transaction_limit, &in->read_end, err);
		if (r == 0)
			r = count_whole(w, in, err);
		if (r < 0)
			return r;
	}
	return 0;
}
