/*
 * What a command is told: environment variables and placeholders.
 */
#ifndef INCR_TOOLS_RUN_ENV_H
#define INCR_TOOLS_RUN_ENV_H

#include "incr.h"
#include "placeholder.h"

/*
 * Set INCR_BUILD and so on in the environment of this process, and fill
 * @placeholders.
 *
 * @number  of the build; 0 in a preview
 * @top     the mount point
 */
int run_env_set(const struct incr_plan *plan, uint64_t number, const char *top,
		struct placeholders *placeholders, struct incr_error *err);

#endif
