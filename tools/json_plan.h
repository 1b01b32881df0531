/*
 * Plans and builds as JSON: what `plan --json`, `build show --json`,
 * .incr/build.json and `run --result` print.
 */
#ifndef INCR_TOOLS_JSON_PLAN_H
#define INCR_TOOLS_JSON_PLAN_H

#include "incr.h"

#include <jansson.h>

/* New references. */
json_t *json_plan(const struct incr_plan *plan);
/* A plan with the keys of a build; one that began nothing. */
json_t *json_plan_unbuilt(const struct incr_plan *plan);
json_t *json_build(const struct incr_build_info *info);
/* The row of `build list`. */
json_t *json_build_row(const struct incr_build_info *info);

#endif
