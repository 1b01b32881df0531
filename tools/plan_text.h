/*
 * Plans and builds for people.
 */
#ifndef INCR_TOOLS_PLAN_TEXT_H
#define INCR_TOOLS_PLAN_TEXT_H

#include "cli.h"
#include "incr.h"

/* The whole plan, to stdout. */
void plan_text_print(const struct incr_plan *plan);
/*
 * On stderr: `incrctl: not running incrementally: ...` for each reason that
 * holds, and the warnings. Nothing with --json.
 */
void plan_text_say(const struct cli *cli, const struct incr_plan *plan);
/* A plan that is refused or an error, as a failure; returns its code. */
int plan_text_fail(const struct incr_plan *plan, struct incr_error *err);
/* "t7 SNAPSHOT examples/brown: 1 file, 3.0 KiB"; owned, NULL: no memory. */
char *plan_text_output(const struct incr_plan_output *output);

#endif
