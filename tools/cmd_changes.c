/*
 * incrctl changes: what changed in an input since a transform last read it.
 */
#include "config.h"

#include "changes.h"
#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"

#include <string.h>

struct changes_options {
	bool wants_added, wants_removed, wants_modified, wants_all;
};

#define OPTION(field) offsetof(struct changes_options, field)

static const struct args_option table[] = {
	{ "added", 0, ARGS_FLAG, OPTION(wants_added), NULL, "new paths" },
	{ "removed", 0, ARGS_FLAG, OPTION(wants_removed), NULL,
	  "paths that are gone" },
	{ "modified", 0, ARGS_FLAG, OPTION(wants_modified), NULL,
	  "paths with another version" },
	{ "all", 0, ARGS_FLAG, OPTION(wants_all), NULL,
	  "all three, with letters (default)" },
	ARGS_END,
};

static const struct incr_plan_input *find_alias(const struct incr_plan *plan,
						const char *alias)
{
	for (size_t i = 0; i < plan->n_inputs; i++)
		if (strcmp(plan->inputs[i].alias, alias) == 0)
			return &plan->inputs[i];
	return NULL;
}

static int run_changes(struct cli *cli, void *options)
{
	const struct changes_options *o = options;
	_cleanup_transform_ struct incr_transform transform = { 0 };
	_cleanup_plan_ struct incr_plan plan = { 0 };
	struct incr_plan_options plan_options = { .ignores_command = true };
	struct changes_print print = {
		.cli = cli,
		.wants_added = o->wants_added,
		.wants_modified = o->wants_modified,
		.wants_removed = o->wants_removed,
	};
	const struct incr_plan_input *input;
	int r;

	print.has_wish = !o->wants_all && (o->wants_added || o->wants_removed ||
					   o->wants_modified);
	print.form = print.has_wish ? CHANGES_NAMES : CHANGES_LETTERS;
	r = find_store(cli);
	if (r == 0)
		r = incr_transform_recorded(cli->store, cli->args[0],
					    &transform, &cli->err);
	if (r == 0)
		r = incr_plan_make(cli->store, &transform, &plan_options, &plan,
				   &cli->err);
	if (r < 0)
		return r;
	input = find_alias(&plan, cli->args[1]);
	if (!input)
		return fail(&cli->err, INCR_E_NOTFOUND, "no-such-alias",
			    cli->args[1], "%s has no such input", cli->args[0]);
	return changes_walk(cli, input->dataset_id, input->last_read,
			    input->view_end, changes_print, &print);
}

const struct verb verb_changes = {
	.name = "changes",
	.summary = "List what changed in an input since the transform read it.",
	.synopsis = "TRANSFORM ALIAS [--added|--removed|--modified|--all] [-z]",
	.tables = { table },
	.options_size = sizeof(struct changes_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_changes,
};
