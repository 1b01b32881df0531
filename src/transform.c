/*
 * Copies of transforms, and comparing them.
 */
#include "config.h"

#include "transform.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

static void release_texts(size_t n, char **texts)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

void incr_transform_release(struct incr_transform *t)
{
	free(t->name);
	for (size_t i = 0; i < t->n_inputs; i++) {
		free(t->inputs[i].alias);
		free(t->inputs[i].dataset);
		free(t->inputs[i].branch);
	}
	free(t->inputs);
	for (size_t i = 0; i < t->n_outputs; i++) {
		free(t->outputs[i].alias);
		free(t->outputs[i].dataset);
		free(t->outputs[i].schema);
	}
	free(t->outputs);
	free(t->branch);
	release_texts(t->n_fallbacks, t->fallbacks);
	release_texts(t->n_command, t->command);
	*t = (struct incr_transform){ 0 };
}

/* NULL stays NULL; true unless memory ran out. */
static bool copy_text(const char *from, char **out)
{
	*out = from ? strdup(from) : NULL;
	return !from || *out;
}

static bool copy_texts(size_t n, char *const *from, size_t *out_n, char ***out)
{
	if (!n)
		return true;
	*out = calloc(n, sizeof(**out));
	if (!*out)
		return false;

	*out_n = n;
	for (size_t i = 0; i < n; i++)
		if (!copy_text(from[i], &(*out)[i]))
			return false;
	return true;
}

static bool copy_inputs(const struct incr_transform *from,
			struct incr_transform *to)
{
	if (!from->n_inputs)
		return true;
	to->inputs = calloc(from->n_inputs, sizeof(*to->inputs));
	if (!to->inputs)
		return false;

	to->n_inputs = from->n_inputs;
	for (size_t i = 0; i < to->n_inputs; i++) {
		const struct incr_transform_input *a = &from->inputs[i];
		struct incr_transform_input *b = &to->inputs[i];

		b->is_snapshot = a->is_snapshot;
		b->transaction_limit = a->transaction_limit;
		if (!copy_text(a->alias, &b->alias) ||
		    !copy_text(a->dataset, &b->dataset) ||
		    !copy_text(a->branch, &b->branch))
			return false;
	}
	return true;
}

static bool copy_outputs(const struct incr_transform *from,
			 struct incr_transform *to)
{
	if (!from->n_outputs)
		return true;
	to->outputs = calloc(from->n_outputs, sizeof(*to->outputs));
	if (!to->outputs)
		return false;

	to->n_outputs = from->n_outputs;
	for (size_t i = 0; i < to->n_outputs; i++) {
		const struct incr_transform_output *a = &from->outputs[i];
		struct incr_transform_output *b = &to->outputs[i];

		b->write_mode = a->write_mode;
		if (!copy_text(a->alias, &b->alias) ||
		    !copy_text(a->dataset, &b->dataset) ||
		    !copy_text(a->schema, &b->schema))
			return false;
	}
	return true;
}

static void copy_settings(const struct incr_transform *from,
			  struct incr_transform *to)
{
	to->semantic_version = from->semantic_version;
	to->require_incremental = from->require_incremental;
	to->allow_retention = from->allow_retention;
	to->allow_user_deletes = from->allow_user_deletes;
	to->strict_append = from->strict_append;
	to->v2_semantics = from->v2_semantics;
	to->abort_if_empty = from->abort_if_empty;
	to->empty_previous_csv = from->empty_previous_csv;
}

int incr_transform_copy(const struct incr_transform *from,
			struct incr_transform *out, struct incr_error *err)
{
	struct incr_transform t = { 0 };

	copy_settings(from, &t);
	if (!copy_text(from->name, &t.name) || !copy_inputs(from, &t) ||
	    !copy_outputs(from, &t) || !copy_text(from->branch, &t.branch) ||
	    !copy_texts(from->n_fallbacks, from->fallbacks, &t.n_fallbacks,
			&t.fallbacks) ||
	    !copy_texts(from->n_command, from->command, &t.n_command,
			&t.command)) {
		incr_transform_release(&t);
		return incr_fail_nomem(err);
	}

	*out = t;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_texts(size_t n_a, char *const *a, size_t n_b, char *const *b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!same_text(a[i], b[i]))
			return false;
	return true;
}

const struct incr_transform_input *transform_input(
	const struct incr_transform *t, const char *alias)
{
	for (size_t i = 0; i < t->n_inputs; i++)
		if (same_text(t->inputs[i].alias, alias))
			return &t->inputs[i];
	return NULL;
}

const struct incr_transform_output *transform_output(
	const struct incr_transform *t, const char *alias)
{
	for (size_t i = 0; i < t->n_outputs; i++)
		if (same_text(t->outputs[i].alias, alias))
			return &t->outputs[i];
	return NULL;
}

/* Datasets are compared by id in the facts: a rename is no change. */
static bool same_inputs(const struct incr_transform *a,
			const struct incr_transform *b)
{
	if (a->n_inputs != b->n_inputs)
		return false;
	for (size_t i = 0; i < a->n_inputs; i++) {
		const struct incr_transform_input *x = &a->inputs[i];
		const struct incr_transform_input *y =
			transform_input(b, x->alias);

		if (!y || x->is_snapshot != y->is_snapshot ||
		    x->transaction_limit != y->transaction_limit)
			return false;
	}
	return true;
}

static bool same_output_settings(const struct incr_transform *a,
				 const struct incr_transform *b)
{
	for (size_t i = 0; i < a->n_outputs; i++) {
		const struct incr_transform_output *x = &a->outputs[i];
		const struct incr_transform_output *y =
			transform_output(b, x->alias);

		if (y && (x->write_mode != y->write_mode ||
			  !same_text(x->schema, y->schema)))
			return false;
	}
	return true;
}

bool transform_same_settings(const struct incr_transform *a,
			     const struct incr_transform *b)
{
	return a->semantic_version == b->semantic_version &&
	       a->require_incremental == b->require_incremental &&
	       a->allow_retention == b->allow_retention &&
	       a->allow_user_deletes == b->allow_user_deletes &&
	       a->strict_append == b->strict_append &&
	       a->v2_semantics == b->v2_semantics &&
	       a->abort_if_empty == b->abort_if_empty &&
	       a->empty_previous_csv == b->empty_previous_csv &&
	       same_inputs(a, b) && same_output_settings(a, b);
}

bool transform_same_command(const struct incr_transform *a,
			    const struct incr_transform *b)
{
	return same_texts(a->n_command, a->command, b->n_command, b->command);
}

const struct incr_plan_input *plan_input(const struct incr_plan *p,
					 const char *alias)
{
	for (size_t i = 0; i < p->n_inputs; i++)
		if (same_text(p->inputs[i].alias, alias))
			return &p->inputs[i];
	return NULL;
}

const struct incr_plan_output *plan_output(const struct incr_plan *p,
					   const char *alias)
{
	for (size_t i = 0; i < p->n_outputs; i++)
		if (same_text(p->outputs[i].alias, alias))
			return &p->outputs[i];
	return NULL;
}

bool plan_same_ranges(const struct incr_plan *a, const struct incr_plan *b)
{
	if (a->n_inputs != b->n_inputs)
		return false;
	for (size_t i = 0; i < a->n_inputs; i++) {
		const struct incr_plan_input *x = &a->inputs[i];
		const struct incr_plan_input *y = plan_input(b, x->alias);

		if (!y || x->dataset_id != y->dataset_id ||
		    x->view_start != y->view_start ||
		    x->read_end != y->read_end)
			return false;
	}
	return true;
}

bool plan_same_outputs(const struct incr_plan *a, const struct incr_plan *b)
{
	if (a->n_outputs != b->n_outputs)
		return false;
	for (size_t i = 0; i < a->n_outputs; i++) {
		const struct incr_plan_output *x = &a->outputs[i];
		const struct incr_plan_output *y = plan_output(b, x->alias);

		if (!y || x->dataset_id != y->dataset_id)
			return false;
	}
	return true;
}
