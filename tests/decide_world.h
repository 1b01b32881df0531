/*
 * Facts for tests of the decision: what a short history of one input and one
 * output built from it amount to, and the ways in which a test changes them.
 */
#ifndef INCR_DECIDE_WORLD_H
#define INCR_DECIDE_WORLD_H

#include "decide.h"

/* The settings under which each row of the tables is judged. */
enum column {
	NONE,
	RET, /* allow_retention */
	USR, /* allow_user_deletes */
	BOTH,
	SNAP, /* a snapshot input */
	LIM, /* an input limited to 2 transactions */
	REQUIRE, /* require_incremental */
	N_COLUMNS
};

/* Facts that a test may change. */
struct world {
	struct decide_facts facts;
	struct decide_input inputs[3];
	struct decide_output outputs[3];
};

/* @history: see history.h. */
void world_fill(const char *history, enum column column, struct world *w);
/*
 * Decide, and compare the decision (I incremental, F fresh, N snapshot,
 * R refused, E error) and the codes; NULL codes: any.
 */
void world_check(const struct world *w, char want, const char *codes);
void world_check_warnings(const struct world *w, size_t want);

typedef void (*world_fn)(struct world *w);

void world_off_path(struct world *w);
void world_off_path_restarted(struct world *w);
void world_behind(struct world *w);
void world_bump(struct world *w);
void world_off_path_bumped(struct world *w);
void world_behind_bumped(struct world *w);
void world_unbuilt(struct world *w);
void world_new_input(struct world *w);
void world_new_snapshot_input(struct world *w);
void world_lost_input(struct world *w);
void world_swapped(struct world *w);
void world_was_normal(struct world *w);
void world_was_snapshot(struct world *w);
void world_was_empty(struct world *w);
void world_add_output(struct world *w);
void world_second_unbuilt(struct world *w);
void world_inconsistent(struct world *w);
void world_foreign(struct world *w);
void world_foreign_bumped(struct world *w);
void world_only_foreign(struct world *w);
void world_user_delete(struct world *w);
void world_retention_delete(struct world *w);
void world_no_version(struct world *w);
void world_no_version_bumped(struct world *w);
void world_version_lower(struct world *w);
void world_v2_on(struct world *w);
void world_v2_off(struct world *w);
void world_other_settings(struct world *w);
void world_other_command(struct world *w);
void world_strict(struct world *w);
void world_forced(struct world *w);
void world_forced_snapshot(struct world *w);
void world_empty_input(struct world *w);

#endif
