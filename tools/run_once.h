/*
 * One pass of `incrctl run`: begin a build, run the command, commit or abort.
 */
#ifndef INCR_TOOLS_RUN_ONCE_H
#define INCR_TOOLS_RUN_ONCE_H

#include "cli.h"
#include "incr.h"
#include "mount.h"

#include <signal.h>
#include <stdbool.h>

struct run_settings {
	struct incr_transform transform; /* owned */
	struct incr_plan_options plan;
	struct incr_build_options build; /* owns the items of environment */
	char *scratch; /* owned: build.scratch */
	bool allows_empty, keeps_failed, is_copy, replaces;
	enum incr_staging_mode staging;
};

/* What came of it; released by run_outcome_release(). */
struct run_outcome {
	struct incr_plan plan; /* decision 0: it did not come so far */
	uint64_t number; /* of the build; 0: none was begun */
	bool has_info;
	struct incr_build_info info;
	bool is_fresh; /* there was nothing to do */
	bool has_committed; /* at least one output */
	bool holds_signals; /* those that ask to end are blocked since: */
	sigset_t mask; /* the one before */
};
void run_outcome_release(struct run_outcome *outcome);

/*
 * Returns the exit status of the command or 0; or a negative code with
 * cli->err filled, which is a failure of our own. Prints what there is to say
 * on the way; @out_outcome is filled as far as it came, also on failure.
 */
int run_once(struct cli *cli, const struct run_settings *settings,
	     struct run_outcome *out_outcome);

#endif
