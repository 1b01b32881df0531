/*
 * The definition of a transform: is it right, and are two of them the same?
 * Pure.
 */
#ifndef INCR_TRANSFORM_H
#define INCR_TRANSFORM_H

#include "incr.h"

#define TRANSFORM_INPUTS_MAX 1024
#define TRANSFORM_OUTPUTS_MAX 1024
#define TRANSFORM_ARGS_MAX 65536 /* arguments of a command, fallbacks */

/* INCR_E_INVALID with the word of the rule that is broken; see incr_plan_make(). */
int transform_check(const struct incr_transform *t, struct incr_error *err);

/*
 * For freshness: the settings of the transform and of each input and output,
 * in any order; not datasets (compared by id in the plans) and not the command.
 */
bool transform_same_settings(const struct incr_transform *a,
			     const struct incr_transform *b);
bool transform_same_command(const struct incr_transform *a,
			    const struct incr_transform *b);

/* NULL when there is none. */
const struct incr_transform_input *transform_input(
	const struct incr_transform *t, const char *alias);
const struct incr_transform_output *transform_output(
	const struct incr_transform *t, const char *alias);

/*
 * Do two build records hold the same ranges of the same inputs (R78)?  Aliases,
 * datasets, view starts and read ends are compared, in any order.
 */
bool plan_same_ranges(const struct incr_plan *a, const struct incr_plan *b);
/* The same aliases on the same datasets, in any order. */
bool plan_same_outputs(const struct incr_plan *a, const struct incr_plan *b);
/* NULL when there is none. */
const struct incr_plan_input *plan_input(const struct incr_plan *p,
					 const char *alias);
const struct incr_plan_output *plan_output(const struct incr_plan *p,
					   const char *alias);

#endif
