/*
 * What the program of a build is shown: the five views of each input, and
 * `previous` and the base of `current` of each output.  All are fixed when the
 * build begins.
 */
#include "config.h"

#include "build.h"

#include <stdlib.h>

static int open_view(struct incr_build *b, uint64_t dataset_id, uint64_t txn,
		     struct incr_view **out_view, struct incr_error *err)
{
	return incr_view_open(b->st, dataset_id, txn, out_view, err);
}

/* Go on from the last run: the views that judged the input are shown. */
static void show_changes(struct build_input *in, struct plan_views *opened)
{
	in->changes = opened->changes;
	opened->changes = NULL;
	in->views[INCR_VIEW_PREVIOUS] = incr_view_ref(opened->from);
	in->views[INCR_VIEW_CURRENT] = incr_view_ref(opened->to);
	in->views[INCR_VIEW_ADDED] =
		incr_view_ref(incr_changes_view(in->changes, INCR_ADDED));
	in->views[INCR_VIEW_MODIFIED] =
		incr_view_ref(incr_changes_view(in->changes, INCR_MODIFIED));
	in->views[INCR_VIEW_REMOVED] =
		incr_view_ref(incr_changes_view(in->changes, INCR_REMOVED));
}

static int show_whole(struct incr_build *b, const struct incr_plan_input *plan,
		      struct build_input *in, struct incr_error *err)
{
	struct incr_view **views = in->views;
	int r = open_view(b, plan->dataset_id, plan->read_end,
			  &views[INCR_VIEW_CURRENT], err);

	if (r == 0)
		r = open_view(b, plan->dataset_id, 0,
			      &views[INCR_VIEW_PREVIOUS], err);
	if (r < 0)
		return r;
	views[INCR_VIEW_ADDED] = incr_view_ref(views[INCR_VIEW_CURRENT]);
	views[INCR_VIEW_MODIFIED] = incr_view_ref(views[INCR_VIEW_PREVIOUS]);
	views[INCR_VIEW_REMOVED] = incr_view_ref(views[INCR_VIEW_PREVIOUS]);
	return 0;
}

static int show_output(struct incr_build *b,
		       const struct incr_plan_output *plan,
		       struct build_output *out, struct incr_error *err)
{
	bool is_replaced = plan->write_mode == INCR_MODE_REPLACE;
	int r = open_view(b, plan->dataset_id,
			  b->info.plan.is_incremental ? plan->head : 0,
			  &out->previous, err);

	return r < 0 ? r :
		       open_view(b, plan->dataset_id,
				 is_replaced ? 0 : plan->head, &out->base, err);
}

int build_open_views(struct incr_build *b, struct plan_views *opened,
		     struct incr_error *err)
{
	const struct incr_plan *p = &b->info.plan;
	int r = 0;

	for (size_t i = 0; i < p->n_inputs && r == 0; i++) {
		if (p->is_incremental && opened[i].changes)
			show_changes(&b->inputs[i], &opened[i]);
		else
			r = show_whole(b, &p->inputs[i], &b->inputs[i], err);
	}
	for (size_t i = 0; i < p->n_outputs && r == 0; i++)
		r = show_output(b, &p->outputs[i], &b->outputs[i], err);
	return r;
}

void build_close_views(struct incr_build *b)
{
	for (size_t i = 0; b->inputs && i < b->info.plan.n_inputs; i++) {
		for (size_t k = 0; k < INCR_N_VIEW_KINDS; k++)
			incr_view_unref(b->inputs[i].views[k]);
		incr_changes_free(b->inputs[i].changes);
	}
	for (size_t i = 0; b->outputs && i < b->info.plan.n_outputs; i++) {
		incr_view_unref(b->outputs[i].previous);
		incr_view_unref(b->outputs[i].base);
	}
}

struct incr_view *incr_build_input_view(struct incr_build *b, size_t idx,
					enum incr_view_kind kind)
{
	return b->inputs[idx].views[kind];
}

struct incr_view *incr_build_output_previous(struct incr_build *b, size_t idx)
{
	return b->outputs[idx].previous;
}

struct incr_view *incr_build_output_base(struct incr_build *b, size_t idx)
{
	return b->outputs[idx].base;
}

const char *incr_build_empty_previous(struct incr_build *b, size_t idx,
				      size_t *out_size)
{
	if (b->outputs[idx].empty_previous)
		*out_size = b->outputs[idx].empty_previous_size;
	return b->outputs[idx].empty_previous;
}
