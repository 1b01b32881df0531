/*
 * Making a plan: outputs first, since they hold the record of the last run,
 * then inputs against that record, then the decision and what follows from it.
 */
#include "config.h"

#include "plan.h"

#include "build_record.h"
#include "error.h"
#include "name.h"
#include "transform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void views_release(struct plan_views *v)
{
	incr_changes_free(v->changes);
	incr_view_unref(v->from);
	incr_view_unref(v->to);
	for (size_t i = 0; i < 3; i++)
		free(v->paths[i]);
}

void plan_work_release(struct plan_work *w)
{
	for (size_t i = 0; w->views && i < w->transform->n_inputs; i++)
		views_release(&w->views[i]);
	free(w->views);
	free(w->inputs);
	free(w->outputs);
	incr_plan_release(&w->plan);
	incr_build_info_release(&w->previous);
	*w = (struct plan_work){ 0 };
}

const char *plan_build_branch(const struct plan_work *w)
{
	return w->transform->branch ? w->transform->branch : "main";
}

int plan_find_dataset(struct plan_work *w, const char *name, uint64_t *out_id,
		      struct incr_error *err)
{
	int r = state_dataset_id(w->st->index, text_of(name), out_id, err);

	return r == 1 ? incr_fail(err, INCR_E_NOTFOUND, "no-such-dataset", name,
				  "there is no such dataset") :
			r;
}

int plan_find_branch(struct plan_work *w, uint64_t dataset_id, const char *name,
		     struct buf *storage, struct state_branch *out,
		     struct incr_error *err)
{
	uint64_t id;
	int r = state_branch_id(w->st->index, dataset_id, text_of(name), &id,
				err);

	return r ? r : state_branch(w->st->index, id, storage, out, err);
}

int plan_find_build_branch(struct plan_work *w, uint64_t dataset_id,
			   struct buf *storage, struct state_branch *out,
			   struct incr_error *err)
{
	const struct incr_transform *t = w->transform;
	int r = plan_find_branch(w, dataset_id, plan_build_branch(w), storage,
				 out, err);

	for (size_t i = 0; i < t->n_fallbacks && r == 1; i++)
		r = plan_find_branch(w, dataset_id, t->fallbacks[i], storage,
				     out, err);
	return r;
}

int plan_find_lost(struct plan_work *w, uint64_t head, uint64_t build,
		   uint64_t *out_txn, struct incr_error *err)
{
	uint64_t unknown, first = UINT64_MAX;
	int r = head ? state_unknown(w->st->index, head, &unknown, err) : 1;

	*out_txn = 0;
	if (r == 0)
		r = state_given_up(w->st->index, unknown, &first, err);
	else if (r == 1)
		return 0;
	if (r >= 0 && build < first)
		*out_txn = unknown;
	return r < 0 ? r : 0;
}

int build_load(struct incr_store *st, uint64_t number,
	       struct incr_build_info *out, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct fact_build fact;
	char name[32];
	int r = number ? state_build(st->index, number, &storage, &fact, err) :
			 1;

	(void)snprintf(name, sizeof(name), "b%" PRIu64, number);
	if (r == 1)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-build", name,
				 "there is no such build");
	if (r == 0)
		r = build_record_decode(fact.payload.data, fact.payload.size,
					out, err);
	if (r < 0)
		return r;

	out->number = number;
	out->status = fact.status;
	return 0;
}

/* Room for everything there is one of for each input and output. */
static int make_room(struct plan_work *w, struct incr_error *err)
{
	const struct incr_transform *t = w->transform;
	struct incr_plan *p = &w->plan;

	w->views = calloc(t->n_inputs, sizeof(*w->views));
	w->inputs = calloc(t->n_inputs, sizeof(*w->inputs));
	w->outputs = calloc(t->n_outputs, sizeof(*w->outputs));
	p->inputs = calloc(t->n_inputs, sizeof(*p->inputs));
	p->outputs = calloc(t->n_outputs, sizeof(*p->outputs));
	if (!w->views || !w->inputs || !w->outputs || !p->inputs || !p->outputs)
		return incr_fail_nomem(err);

	p->n_inputs = t->n_inputs;
	p->n_outputs = t->n_outputs;
	return 0;
}

static void fill_settings(const struct plan_work *w, struct decide_settings *s)
{
	const struct incr_transform *t = w->transform;

	*s = (struct decide_settings){
		.semantic_version = t->semantic_version,
		.require_incremental = t->require_incremental,
		.allow_retention = t->allow_retention,
		.allow_user_deletes = t->allow_user_deletes,
		.strict_append = t->strict_append,
		.v2_semantics = t->v2_semantics,
		.is_forced = w->options->is_forced,
		.forces_snapshot = w->options->forces_snapshot,
		.is_skip = w->options->is_skip,
		.needs_all_unbuilt = w->options->needs_all_unbuilt,
	};
}

static void fill_previous(const struct plan_work *w, struct decide_previous *p)
{
	const struct incr_plan *last = &w->previous.plan;

	if (!w->has_previous)
		return;
	*p = (struct decide_previous){
		.exists = true,
		.has_semantic_version = true,
		.semantic_version = last->transform.semantic_version,
		.v2_semantics = last->transform.v2_semantics,
		.n_inputs = last->n_inputs,
		.has_same_settings =
			transform_same_settings(&last->transform, w->transform),
		.has_same_outputs = plan_same_outputs(last, &w->plan),
		.has_same_command =
			w->options->ignores_command ||
			transform_same_command(&last->transform, w->transform),
	};
}

static void finish_outputs(struct plan_work *w,
			   const struct decide_facts *facts)
{
	for (size_t i = 0; i < w->plan.n_outputs; i++) {
		struct decide_write write =
			decide_write(&facts->settings, w->plan.is_incremental,
				     w->transform->outputs[i].write_mode);

		w->plan.outputs[i].write_mode = write.mode;
		w->plan.outputs[i].txn_type = write.type;
	}
}

static int conclude(struct plan_work *w, struct incr_error *err)
{
	struct decide_facts facts = { .n_inputs = w->plan.n_inputs,
				      .inputs = w->inputs,
				      .n_outputs = w->plan.n_outputs,
				      .outputs = w->outputs };
	struct incr_plan *p = &w->plan;
	struct decide_result result;
	int r;

	fill_settings(w, &facts.settings);
	fill_previous(w, &facts.previous);
	r = decide(&facts, &result, err);
	if (r < 0)
		return r;

	p->decision = result.decision;
	p->is_incremental = result.is_incremental;
	p->n_reasons = result.n_reasons;
	p->reasons = result.reasons;
	p->n_warnings = result.n_warnings;
	p->warnings = result.warnings;
	p->is_forced = w->options->is_forced;
	p->is_skip = w->options->is_skip;
	finish_outputs(w, &facts);
	return plan_finish_inputs(w, err);
}

int plan_make(struct incr_store *st, const struct incr_transform *transform,
	      const struct incr_plan_options *options, struct plan_work *w,
	      struct incr_error *err)
{
	int r;

	*w = (struct plan_work){ .st = st,
				 .transform = transform,
				 .options = options };
	r = transform_check(transform, err);
	if (r == 0)
		r = make_room(w, err);
	if (r == 0)
		r = incr_transform_copy(transform, &w->plan.transform, err);
	if (r == 0)
		r = plan_gather_outputs(w, err);
	if (r == 0 && !w->has_previous)
		r = name_check_new_transform(transform->name,
					     strlen(transform->name), err);
	if (r == 0)
		r = plan_gather_inputs(w, err);
	return r < 0 ? r : conclude(w, err);
}

int incr_plan_make(struct incr_store *st,
		   const struct incr_transform *transform,
		   const struct incr_plan_options *options,
		   struct incr_plan *out_plan, struct incr_error *err)
{
	static const struct incr_plan_options defaults = { 0 };
	struct plan_work w = { 0 };
	int r = store_catch_up(st, err);

	if (r < 0)
		return r;
	r = plan_make(st, transform, options ? options : &defaults, &w, err);
	if (r == 0) {
		*out_plan = w.plan;
		w.plan = (struct incr_plan){ 0 };
	}
	plan_work_release(&w);
	return r;
}
