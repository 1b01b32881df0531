/*
 * The options that describe a transform, shared by `plan`, `run` and `mount`.
 */
#ifndef INCR_TOOLS_TRANSFORM_ARGS_H
#define INCR_TOOLS_TRANSFORM_ARGS_H

#include "cli.h"
#include "incr.h"

/* The first member of the options of a verb that uses the table. */
struct transform_args {
	struct args_list inputs, outputs, snapshot_inputs, limits, write_modes,
		fallbacks, schemas;
	struct args_signed semantic_version;
	bool require_incremental, allow_retention, allow_user_deletes,
		strict_append, v2_semantics, abort_if_empty;
	bool allow_empty, is_skip, forces_snapshot, needs_all_unbuilt;
	const char *branch, *empty_previous;
};

extern const struct args_option transform_args_table[];

/*
 * The definition that the options give, or without any -i and -o the recorded
 * one of that name, changed by the options. The command is cli->command, if
 * there is one.
 */
int transform_args_read(struct cli *cli, const struct transform_args *args,
			const char *name, struct incr_transform *out);
/* What the options say about planning. */
struct incr_plan_options transform_args_plan(const struct transform_args *args,
					     bool is_forced);
/* Was anything said about the transform? */
bool transform_args_is_empty(const struct transform_args *args);

#endif
