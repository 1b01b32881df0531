/*
 * Definition errors: what makes a transform wrong before anything is looked up.
 */
#include "config.h"

#include "error.h"
#include "name.h"
#include "transform.h"

#include <inttypes.h>
#include <string.h>

/* In ASCII only, whatever the locale: an alias holds nothing else. */
static char variable_char(char c)
{
	if (c >= 'a' && c <= 'z')
		return (char)(c - 'a' + 'A');
	return c == '-' ? '_' : c;
}

static bool same_variable(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (variable_char(*a) != variable_char(*b))
			return false;
	return *a == *b;
}

static const char *alias_at(const struct incr_transform *t, size_t idx)
{
	return idx < t->n_inputs ? t->inputs[idx].alias :
				   t->outputs[idx - t->n_inputs].alias;
}

static int check_aliases(const struct incr_transform *t, struct incr_error *err)
{
	size_t n = t->n_inputs + t->n_outputs;

	for (size_t i = 0; i < n; i++) {
		const char *alias = alias_at(t, i);
		int r = name_check_alias(alias, strlen(alias), err);

		if (r < 0)
			return r;
		for (size_t j = 0; j < i; j++)
			if (same_variable(alias, alias_at(t, j)))
				return incr_fail(
					err, INCR_E_INVALID, "duplicate-alias",
					alias,
					"two inputs or outputs have the same "
					"alias (upper and lower case, '-' and "
					"'_' count as equal)");
	}
	return 0;
}

static int check_input(const struct incr_transform *t,
		       const struct incr_transform_input *in,
		       struct incr_error *err)
{
	int r = name_check_dataset(in->dataset, strlen(in->dataset), err);

	if (r == 0 && in->branch)
		r = name_check_branch(in->branch, strlen(in->branch), err);
	if (r < 0 || !in->transaction_limit)
		return r;

	if (in->transaction_limit > INT64_MAX)
		return incr_fail(err, INCR_E_INVALID, "bad-limit", in->alias,
				 "a transaction limit is a number from 1 to "
				 "%" PRId64,
				 INT64_MAX);
	if (in->is_snapshot)
		return incr_fail(err, INCR_E_INVALID, "limit-on-snapshot-input",
				 in->alias,
				 "a snapshot input is read whole and cannot "
				 "have a transaction limit");
	if (!t->v2_semantics)
		return incr_fail(err, INCR_E_INVALID, "needs-v2", in->alias,
				 "a transaction limit needs v2_semantics");
	return 0;
}

static int check_output(const struct incr_transform *t, size_t idx,
			struct incr_error *err)
{
	const struct incr_transform_output *out = &t->outputs[idx];
	int r = name_check_dataset(out->dataset, strlen(out->dataset), err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < idx; i++)
		if (strcmp(out->dataset, t->outputs[i].dataset) == 0)
			return incr_fail(err, INCR_E_INVALID,
					 "duplicate-output", out->dataset,
					 "two outputs name the same dataset");
	for (size_t i = 0; i < t->n_inputs; i++)
		if (strcmp(out->dataset, t->inputs[i].dataset) == 0)
			return incr_fail(err, INCR_E_INVALID, "input-is-output",
					 out->dataset,
					 "a dataset is both input and output");
	if (t->strict_append && out->write_mode == INCR_MODE_REPLACE)
		return incr_fail(err, INCR_E_INVALID, "strict-append-replace",
				 out->alias,
				 "strict_append and write mode replace "
				 "contradict each other");
	return 0;
}

static int check_branches(const struct incr_transform *t,
			  struct incr_error *err)
{
	int r = t->branch ?
			name_check_branch(t->branch, strlen(t->branch), err) :
			0;

	for (size_t i = 0; i < t->n_fallbacks && r == 0; i++)
		r = name_check_branch(t->fallbacks[i], strlen(t->fallbacks[i]),
				      err);
	return r;
}

static int check_counts(const struct incr_transform *t, struct incr_error *err)
{
	if (!t->n_inputs)
		return incr_fail(err, INCR_E_INVALID, "no-input", t->name,
				 "a transform needs at least one input");
	if (!t->n_outputs)
		return incr_fail(err, INCR_E_INVALID, "no-output", t->name,
				 "a transform needs at least one output");
	if (t->n_inputs > TRANSFORM_INPUTS_MAX ||
	    t->n_outputs > TRANSFORM_OUTPUTS_MAX ||
	    t->n_command > TRANSFORM_ARGS_MAX ||
	    t->n_fallbacks > TRANSFORM_ARGS_MAX)
		return incr_fail(err, INCR_E_INVALID, "too-many", t->name,
				 "too many inputs, outputs or arguments");
	return 0;
}

int transform_check(const struct incr_transform *t, struct incr_error *err)
{
	int r = name_check_transform(t->name, strlen(t->name), err);

	if (r == 0)
		r = check_counts(t, err);
	if (r == 0)
		r = check_aliases(t, err);
	if (r == 0 && t->allow_user_deletes && !t->v2_semantics)
		r = incr_fail(err, INCR_E_INVALID, "needs-v2", t->name,
			      "allow_user_deletes needs v2_semantics");
	if (r == 0)
		r = check_branches(t, err);
	for (size_t i = 0; i < t->n_inputs && r == 0; i++)
		r = check_input(t, &t->inputs[i], err);
	for (size_t i = 0; i < t->n_outputs && r == 0; i++)
		r = check_output(t, i, err);
	return r;
}
