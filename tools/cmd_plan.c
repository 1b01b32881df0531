/*
 * incrctl plan: what a run would do, and why.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "find.h"
#include "json_plan.h"
#include "out.h"
#include "plan_text.h"
#include "transform_args.h"

struct plan_options {
	struct transform_args transform;
	bool is_forced;
};

static const struct args_option table[] = {
	{ "force", 0, ARGS_FLAG, offsetof(struct plan_options, is_forced), NULL,
	  "as if nothing were fresh" },
	ARGS_END,
};

static int run_plan(struct cli *cli, void *options)
{
	const struct plan_options *o = options;
	_cleanup_transform_ struct incr_transform transform = { 0 };
	_cleanup_plan_ struct incr_plan plan = { 0 };
	struct incr_plan_options plan_options =
		transform_args_plan(&o->transform, o->is_forced);
	int r;

	plan_options.ignores_command = cli->n_command == 0;
	r = find_store(cli);
	if (r == 0)
		r = transform_args_read(cli, &o->transform, cli->args[0],
					&transform);
	if (r == 0)
		r = incr_plan_make(cli->store, &transform, &plan_options, &plan,
				   &cli->err);
	if (r < 0)
		return r;

	if (cli->common.is_json)
		out_line(json_plan(&plan));
	else
		plan_text_print(&plan);
	if (plan.decision == INCR_DECISION_REFUSED ||
	    plan.decision == INCR_DECISION_ERROR)
		return EXIT_REFUSED;
	return 0;
}

const struct verb verb_plan = {
	.name = "plan",
	.summary = "Say what a run would do and why; changes nothing.",
	.synopsis = "TRANSFORM [OPTION]... [-- COMMAND [ARGUMENT]...]",
	.details = "Without -i and -o the transform is the one of its last "
		   "build.",
	.tables = { transform_args_table, table },
	.options_size = sizeof(struct plan_options),
	.min_args = 1,
	.max_args = 1,
	.takes_command = true,
	.run = run_plan,
};
