/*
 * Facts about the outputs: the branch they go to, the newest record of this
 * transform on its path, and what others put above it.
 *
 * The walk from the head ends at the record, usually the head itself; only
 * what others committed since makes it longer.
 */
#include "config.h"

#include "error.h"
#include "name.h"
#include "plan.h"
#include "transform.h"

#include <stdlib.h>
#include <string.h>

static int set_branch(struct plan_work *w, struct incr_plan_output *out,
		      const struct state_branch *b, struct incr_error *err)
{
	out->head = b->head;
	out->branch_exists = text_equals(b->fact.name, plan_build_branch(w));
	if (out->branch_exists) {
		out->branch_id = b->fact.id;
		return 0;
	}
	out->fork_parent = text_dup(b->fact.name);
	return out->fork_parent ? 0 : incr_fail_nomem(err);
}

static int resolve(struct plan_work *w, size_t idx, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	const struct incr_transform_output *of = &w->transform->outputs[idx];
	struct incr_plan_output *out = &w->plan.outputs[idx];
	struct state_branch b;
	int r = plan_find_dataset(w, of->dataset, &out->dataset_id, err);

	if (r < 0)
		return r;
	out->alias = strdup(of->alias);
	out->dataset = strdup(of->dataset);
	out->branch = strdup(plan_build_branch(w));
	if (!out->alias || !out->dataset || !out->branch)
		return incr_fail_nomem(err);

	/* R32: made off the first fallback that exists, else a root. */
	r = plan_find_build_branch(w, out->dataset_id, &storage, &b, err);
	if (r == 0)
		r = set_branch(w, out, &b, err);
	if (r >= 0 && !out->branch_exists)
		r = name_check_new_branch(out->branch, strlen(out->branch),
					  err);
	if (r < 0)
		return r;
	w->outputs[idx] =
		(struct decide_output){ .alias = out->alias,
					.dataset = out->dataset,
					.write_mode = of->write_mode };
	return 0;
}

/* Is @build one of this transform? */
static int is_own(struct plan_work *w, uint64_t build, bool *out_is_own,
		  struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct fact_build fact;
	int r;

	*out_is_own = false;
	if (!build)
		return 0;
	r = state_build(w->st->index, build, &storage, &fact, err);
	if (r == 0)
		*out_is_own = text_equals(fact.transform, w->transform->name);
	return r < 0 ? r : 0;
}

static void note_above(struct decide_output *out, const struct fact_txn *t)
{
	struct decide_above *above = &out->foreign;

	if (t->type == INCR_DELETE)
		above = text_equals(t->origin, "retention") ?
				&out->retention_deletes :
				&out->user_deletes;
	if (!above->count++)
		above->txn = t->number;
}

/* Is something of the view lost, and was not yet when build @build ran? */
static int find_lost(struct plan_work *w, size_t idx, uint64_t build,
		     struct incr_error *err)
{
	return plan_find_lost(w, w->plan.outputs[idx].head, build,
			      &w->outputs[idx].lost_txn, err);
}

/* *out_build: of the record; 0: none. */
static int find_record(struct plan_work *w, size_t idx, uint64_t *out_build,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct decide_output *out = &w->outputs[idx];
	uint64_t number = w->plan.outputs[idx].head;

	while (number) {
		bool is_found = false;
		struct state_txn t;
		int r = store_find_txn(w->st, number, &storage, &t, err);

		if (r == 0)
			r = is_own(w, t.fact.build, &is_found, err);
		if (r < 0)
			return r;
		if (is_found) {
			out->record_txn = number;
			*out_build = t.fact.build;
			return find_lost(w, idx, t.fact.build, err);
		}
		/* of one that is lost nobody knows what it did */
		if (t.status != INCR_LOST)
			note_above(out, &t.fact);
		number = t.fact.parent;
	}
	return 0;
}

/* R78: does the record that an output holds agree with the last run's? */
static int check_consistent(struct plan_work *w, const uint64_t *builds,
			    struct incr_error *err)
{
	for (size_t i = 0; i < w->plan.n_outputs; i++) {
		struct incr_build_info info = { 0 };
		int r;

		if (!builds[i] || builds[i] == w->previous.number)
			continue;
		r = build_load(w->st, builds[i], &info, err);
		if (r < 0)
			return r;
		w->outputs[i].is_inconsistent =
			!plan_same_ranges(&info.plan, &w->previous.plan);
		incr_build_info_release(&info);
	}
	return 0;
}

int plan_gather_outputs(struct plan_work *w, struct incr_error *err)
{
	_cleanup_free_ uint64_t *builds =
		calloc(w->plan.n_outputs, sizeof(*builds));
	uint64_t newest = 0;
	int r = 0;

	if (!builds)
		return incr_fail_nomem(err);
	for (size_t i = 0; i < w->plan.n_outputs; i++) {
		r = resolve(w, i, err);
		if (r == 0)
			r = find_record(w, i, &builds[i], err);
		if (r < 0)
			return r;
		if (builds[i] > newest)
			newest = builds[i];
	}
	if (!newest)
		return 0;

	r = build_load(w->st, newest, &w->previous, err);
	if (r < 0)
		return r;
	w->has_previous = true;
	return check_consistent(w, builds, err);
}
