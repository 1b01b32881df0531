/*
 * How a build ended, for people and as JSON.
 */
#ifndef INCR_TOOLS_BUILD_TEXT_H
#define INCR_TOOLS_BUILD_TEXT_H

#include "cli.h"
#include "incr.h"

#include <stdio.h>

/* One line for each output, or that nothing was committed. */
void build_text_result(FILE *to, const struct incr_build_info *info);
/* Append `incrctl build commit bN, or incrctl build abort bN` to the hint. */
void build_text_hint(struct incr_error *err, uint64_t number);
/*
 * The object of build @number, or of a @plan that began none. Owned; NULL
 * with @err filled.
 */
char *build_text_json(struct incr_store *st, uint64_t number,
		      const struct incr_plan *plan, struct incr_error *err);

#endif
