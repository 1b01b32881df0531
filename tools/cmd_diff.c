/*
 * incrctl diff: what changed from one point of a dataset to another.
 */
#include "config.h"

#include "changes.h"
#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "find.h"

struct diff_options {
	bool wants_names, wants_letters, wants_status;
};

#define OPTION(field) offsetof(struct diff_options, field)

static const struct args_option table[] = {
	{ "name-only", 0, ARGS_FLAG, OPTION(wants_names), NULL,
	  "print paths alone" },
	{ "name-status", 0, ARGS_FLAG, OPTION(wants_letters), NULL,
	  "print A (added), M (modified), R (removed) and the path" },
	{ "exit-code", 0, ARGS_FLAG, OPTION(wants_status), NULL,
	  "exit 10 if there is a difference" },
	ARGS_END,
};

static int run_diff(struct cli *cli, void *options)
{
	const struct diff_options *o = options;
	_cleanup_found_point_ struct found_point found = { 0 };
	struct changes_print print = { .cli = cli, .form = CHANGES_LONG };
	uint64_t from, to;
	int r;

	if (o->wants_names)
		print.form = CHANGES_NAMES;
	else if (o->wants_letters)
		print.form = CHANGES_LETTERS;
	r = find_store(cli);
	if (r == 0)
		r = find_range(cli, cli->args[0], cli->args[1], &found, &from,
			       &to);
	if (r == 0)
		r = changes_walk(cli, found.dataset.id, from, to, changes_print,
				 &print);
	if (r == 0 && o->wants_status && print.n_printed > 0)
		return EXIT_DIFFERENT;
	return r;
}

const struct verb verb_diff = {
	.name = "diff",
	.summary = "List what changed in a dataset between two points.",
	.synopsis =
		"DATASET[:BRANCH] FROM..TO [--name-only|--name-status] [-z] "
		"[--exit-code]",
	.details = "FROM and TO are transactions or times; left out they are "
		   "the beginning and the head.",
	.tables = { table },
	.options_size = sizeof(struct diff_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_diff,
};
