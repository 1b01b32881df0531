/*
 * incrctl schema: set and show the schema of a dataset.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "schema_json.h"

#include <stdio.h>

struct set_options {
	const char *branch;
};

static const struct args_option set_table[] = {
	{ "branch", 0, ARGS_TEXT, offsetof(struct set_options, branch), "B",
	  "the branch; main unless said otherwise" },
	ARGS_END,
};

static int run_set(struct cli *cli, void *options)
{
	const struct set_options *o = options;
	_cleanup_found_branch_ struct found_branch found = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	int r;

	r = find_store(cli);
	if (r == 0)
		r = find_branch(cli, cli->args[0], o->branch, &found);
	if (r == 0)
		r = schema_read(cli->args[1], &text, &length, &cli->err);
	if (r < 0)
		return r;
	return incr_schema_set(cli->store, found.dataset.id, found.branch, text,
			       length, &cli->err);
}

static int run_show(struct cli *cli, void *options)
{
	_cleanup_found_point_ struct found_point found = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	int r;

	(void)options;
	r = find_store(cli);
	if (r == 0)
		r = find_point(cli, cli->args[0], &found);
	if (r == 0)
		r = incr_schema_get(cli->store, found.dataset.id, found.txn,
				    &text, &length, &cli->err);
	if (r < 0)
		return r;
	if (r == 1)
		return fail(&cli->err, INCR_E_NOTFOUND, "no-schema",
			    cli->args[0], "the dataset has no schema");
	if (cli->common.is_json) {
		json_t *schema = json_loadb(text, length, 0, NULL);

		if (schema) {
			out_line(schema);
			return 0;
		}
	}
	(void)fwrite(text, 1, length, stdout);
	if (length == 0 || text[length - 1] != '\n')
		(void)putchar('\n');
	return 0;
}

static const struct verb schema_set = {
	.name = "schema set",
	.summary = "Set the schema of a dataset from now on.",
	.synopsis = "DATASET[:BRANCH] FILE [--branch B]",
	.details = "FILE (- is standard input) holds JSON: {\"columns\": "
		   "[{\"name\": ..., \"type\": ...}, ...]};\n"
		   "a column may have \"nullable\", \"description\" and "
		   "\"type_classes\" too.",
	.tables = { set_table },
	.options_size = sizeof(struct set_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_set,
};

static const struct verb schema_show = {
	.name = "schema show",
	.summary = "Print the schema of a dataset at a point.",
	.synopsis = "DATASET[:BRANCH][@POINT]",
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

static const struct verb *const subs[] = { &schema_set, &schema_show, NULL };

const struct verb verb_schema = {
	.name = "schema",
	.summary = "Set and show the schema of a dataset.",
	.subs = subs,
};
