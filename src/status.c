/*
 * Is a transform fresh, and how far behind is it?  The same plan that a run
 * would make, by the definition that its last committed build recorded.
 */
#include "config.h"

#include "build.h"
#include "error.h"
#include "plan_path.h"

#include <stdlib.h>
#include <string.h>

static int add_sizes(struct incr_store *st, const struct incr_plan_input *in,
		     uint64_t after, struct incr_behind *out,
		     struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t number = in->view_end;

	while (number && number != after) {
		struct state_txn t;
		int r = store_find_txn(st, number, &storage, &t, err);

		if (r < 0)
			return r;
		out->n_txns++;
		out->n_files += t.fact.n_files;
		out->size += t.fact.size;
		number = t.fact.parent;
	}
	return 0;
}

/* What came after the last transaction read, or, where that is not on the path, the view. */
static int measure(struct incr_store *st, const struct incr_plan_input *in,
		   struct incr_behind *out, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t after = in->last_read;
	bool is_on_path = false;
	struct state_txn t;
	int r = incr_txn_is_on_path(st, in->last_read, in->view_end,
				    &is_on_path, err);

	out->alias = strdup(in->alias);
	if (!out->alias)
		return incr_fail_nomem(err);
	if (r == 0 && !is_on_path && in->view_start) {
		r = store_find_txn(st, in->view_start, &storage, &t, err);
		after = r == 0 ? t.fact.parent : 0;
	}
	return r < 0 ? r : add_sizes(st, in, after, out, err);
}

static int fill(struct incr_store *st, const struct incr_plan *plan,
		struct incr_status *s, struct incr_error *err)
{
	int r = 0;

	s->freshness = plan->decision == INCR_DECISION_FRESH ? INCR_FRESH :
							       INCR_STALE;
	s->behind = calloc(plan->n_inputs, sizeof(*s->behind));
	if (!s->behind)
		return incr_fail_nomem(err);
	for (size_t i = 0; i < plan->n_inputs && r == 0; i++)
		r = measure(st, &plan->inputs[i], &s->behind[s->n_behind++],
			    err);
	return r;
}

/* By the definition @t, which the store recorded. */
static int compare(struct incr_store *st, const struct incr_transform *t,
		   struct incr_status *s, struct incr_error *err)
{
	struct incr_plan_options options = { .ignores_command = true };
	struct plan_work w = { 0 };
	int r = store_catch_up(st, err);

	if (r == 0)
		r = plan_make(st, t, &options, &w, err);
	if (r == 0)
		r = fill(st, &w.plan, s, err);
	/* The record may have gone with a branch that was reset or deleted. */
	if (r == 0 && !w.has_previous)
		s->freshness = INCR_NEVER;
	plan_work_release(&w);
	return r;
}

static int get(struct incr_store *st, const char *transform,
	       struct incr_status *s, struct incr_error *err)
{
	struct incr_transform t = { 0 };
	int r = build_find_recorded(st, transform, &t, err);

	if (r < 0)
		return r;
	s->transform = strdup(transform);
	if (!s->transform)
		r = incr_fail_nomem(err);
	else if (r == 0)
		r = compare(st, &t, s, err);
	else
		s->freshness = INCR_NEVER;
	incr_transform_release(&t);
	return r < 0 ? r : 0;
}

int incr_status_get(struct incr_store *st, const char *transform,
		    struct incr_status *out, struct incr_error *err)
{
	struct incr_status s = { 0 };
	int r = get(st, transform, &s, err);

	if (r < 0)
		incr_status_release(&s);
	else
		*out = s;
	return r;
}
