/*
 * The options that describe a transform.
 */
#include "config.h"

#include "transform_args.h"

#include "cleanup.h"
#include "fail.h"
#include "find.h"
#include "schema_json.h"
#include "text.h"
#include "write_mode.h"

#include <string.h>

#define OPTION(field) offsetof(struct transform_args, field)

const struct args_option transform_args_table[] = {
	{ "input", 'i', ARGS_LIST, OPTION(inputs), "ALIAS=DATASET[:BRANCH]",
	  "an input; at least one" },
	{ "output", 'o', ARGS_LIST, OPTION(outputs), "ALIAS=DATASET",
	  "an output; at least one" },
	{ "semantic-version", 0, ARGS_SIGNED, OPTION(semantic_version), "N",
	  "version of what the command does (1)" },
	{ "require-incremental", 0, ARGS_FLAG, OPTION(require_incremental),
	  NULL, "fail instead of running on everything" },
	{ "snapshot-input", 0, ARGS_LIST, OPTION(snapshot_inputs), "ALIAS",
	  "always read this input whole; may be repeated" },
	{ "allow-retention", 0, ARGS_FLAG, OPTION(allow_retention), NULL,
	  "ignore what retention removed" },
	{ "allow-user-deletes", 0, ARGS_FLAG, OPTION(allow_user_deletes), NULL,
	  "ignore what users removed; needs --v2-semantics" },
	{ "strict-append", 0, ARGS_FLAG, OPTION(strict_append), NULL,
	  "an incremental run may not overwrite its output" },
	{ "v2-semantics", 0, ARGS_FLAG, OPTION(v2_semantics), NULL,
	  "needed by some of the others" },
	{ "transaction-limit", 0, ARGS_LIST, OPTION(limits), "ALIAS=N",
	  "read at most N transactions; needs --v2-semantics" },
	{ "write-mode", 0, ARGS_LIST, OPTION(write_modes), "ALIAS=MODE",
	  "modify, replace or append this output" },
	{ "branch", 0, ARGS_TEXT, OPTION(branch), "B",
	  "the branch to build on; main unless said otherwise" },
	{ "fallback", 0, ARGS_LIST, OPTION(fallbacks), "B",
	  "read from this where there is no such branch; repeatable" },
	{ "abort-if-empty", 0, ARGS_FLAG, OPTION(abort_if_empty), NULL,
	  "commit nothing if nothing was written" },
	{ "allow-empty", 0, ARGS_FLAG, OPTION(allow_empty), NULL,
	  "let a replace empty an output that is not empty" },
	{ "schema", 0, ARGS_LIST, OPTION(schemas), "ALIAS=FILE",
	  "the columns that an output must have (JSON)" },
	{ "empty-previous", 0, ARGS_TEXT, OPTION(empty_previous), "csv|none",
	  "what an empty `previous` holds (none)" },
	{ "skip", 0, ARGS_FLAG, OPTION(is_skip), NULL,
	  "run nothing, and count all inputs as read" },
	{ "force-snapshot", 0, ARGS_FLAG, OPTION(forces_snapshot), NULL,
	  "run on everything, this one time" },
	{ "all-unbuilt", 0, ARGS_FLAG, OPTION(needs_all_unbuilt), NULL,
	  "--require-incremental lets a first build of all outputs pass, not "
	  "of one" },
	ARGS_END,
};

static int set_text(char **slot, const char *text, struct incr_error *err)
{
	char *copy = strdup(text);

	if (!copy)
		return fail_nomem(err);
	free(*slot);
	*slot = copy;
	return 0;
}

/* "students=examples/students:dev" */
static int read_input(const char *text, struct incr_transform_input *input,
		      struct incr_error *err)
{
	const char *value = NULL, *colon;

	input->alias = args_split_pair(text, &value);
	if (!input->alias || !*value)
		return fail_usage(err, text,
				  "an input is ALIAS=DATASET[:BRANCH]");
	colon = strrchr(value, ':');
	if (colon && !colon[1])
		return fail_usage(err, text,
				  "an input is ALIAS=DATASET[:BRANCH]");
	if (colon) {
		input->branch = strdup(colon + 1);
		input->dataset = strndup(value, (size_t)(colon - value));
	} else {
		input->dataset = strdup(value);
	}
	return input->dataset && (!colon || input->branch) ? 0 :
							     fail_nomem(err);
}

static int read_inputs(struct cli *cli, const struct args_list *list,
		       struct incr_transform *t)
{
	int r;

	if (list->n == 0)
		return 0;
	t->inputs = calloc(list->n, sizeof(*t->inputs));
	if (!t->inputs)
		return fail_nomem(&cli->err);
	for (size_t i = 0; i < list->n; i++) {
		t->n_inputs++;
		r = read_input(list->items[i], &t->inputs[i], &cli->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_outputs(struct cli *cli, const struct args_list *list,
			struct incr_transform *t)
{
	if (list->n == 0)
		return 0;
	t->outputs = calloc(list->n, sizeof(*t->outputs));
	if (!t->outputs)
		return fail_nomem(&cli->err);
	for (size_t i = 0; i < list->n; i++) {
		struct incr_transform_output *output = &t->outputs[i];
		const char *value = NULL;

		t->n_outputs++;
		output->alias = args_split_pair(list->items[i], &value);
		if (!output->alias || !*value)
			return fail_usage(&cli->err, list->items[i],
					  "an output is ALIAS=DATASET");
		output->dataset = strdup(value);
		if (!output->dataset)
			return fail_nomem(&cli->err);
	}
	return 0;
}

static int unknown_alias(struct cli *cli, const char *what, const char *text)
{
	return fail(&cli->err, INCR_E_INVALID, "unknown-alias", text,
		    "no %s has this alias", what);
}

/* Of an ALIAS or ALIAS=VALUE text: the input, and the value. */
static struct incr_transform_input *find_input(struct incr_transform *t,
					       const char *text,
					       const char **out_value)
{
	size_t length = strcspn(text, "=");

	for (size_t i = 0; i < t->n_inputs; i++) {
		const char *alias = t->inputs[i].alias;

		if (strlen(alias) != length || memcmp(alias, text, length) != 0)
			continue;
		*out_value = text[length] ? text + length + 1 : NULL;
		return &t->inputs[i];
	}
	return NULL;
}

static struct incr_transform_output *find_output(struct incr_transform *t,
						 const char *text,
						 const char **out_value)
{
	size_t length = strcspn(text, "=");

	for (size_t i = 0; i < t->n_outputs; i++) {
		const char *alias = t->outputs[i].alias;

		if (strlen(alias) != length || memcmp(alias, text, length) != 0)
			continue;
		*out_value = text[length] ? text + length + 1 : NULL;
		return &t->outputs[i];
	}
	return NULL;
}

static int set_inputs(struct cli *cli, const struct transform_args *args,
		      struct incr_transform *t)
{
	const char *value;

	for (size_t i = 0; i < args->snapshot_inputs.n; i++) {
		const char *text = args->snapshot_inputs.items[i];
		struct incr_transform_input *input =
			find_input(t, text, &value);

		if (!input || value)
			return unknown_alias(cli, "input", text);
		input->is_snapshot = true;
	}
	for (size_t i = 0; i < args->limits.n; i++) {
		const char *text = args->limits.items[i];
		struct incr_transform_input *input =
			find_input(t, text, &value);

		if (!strchr(text, '='))
			return fail_usage(&cli->err, text,
					  "a limit is ALIAS=N");
		if (!input)
			return unknown_alias(cli, "input", text);
		if (!text_parse_u64(value, &input->transaction_limit) ||
		    input->transaction_limit == 0)
			return fail(&cli->err, INCR_E_INVALID, "bad-limit",
				    text, "a limit is at least 1");
	}
	return 0;
}

static int set_outputs(struct cli *cli, const struct transform_args *args,
		       struct incr_transform *t)
{
	const char *value;
	size_t length;
	int r;

	for (size_t i = 0; i < args->write_modes.n; i++) {
		const char *text = args->write_modes.items[i];
		struct incr_transform_output *output =
			find_output(t, text, &value);

		if (!output)
			return unknown_alias(cli, "output", text);
		if (!value || !write_mode_parse(value, &output->write_mode))
			return fail_usage(&cli->err, text,
					  "a write mode is ALIAS="
					  "modify|replace|append");
	}
	for (size_t i = 0; i < args->schemas.n; i++) {
		const char *text = args->schemas.items[i];
		struct incr_transform_output *output =
			find_output(t, text, &value);

		if (!output || !value)
			return unknown_alias(cli, "output", text);
		free(output->schema);
		output->schema = NULL;
		r = schema_read(value, &output->schema, &length, &cli->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_fallbacks(struct cli *cli, const struct args_list *list,
			 struct incr_transform *t)
{
	if (list->n == 0)
		return 0;
	for (size_t i = 0; i < t->n_fallbacks; i++)
		free(t->fallbacks[i]);
	free(t->fallbacks);
	t->n_fallbacks = 0;
	t->fallbacks = calloc(list->n, sizeof(*t->fallbacks));
	if (!t->fallbacks)
		return fail_nomem(&cli->err);
	for (size_t i = 0; i < list->n; i++) {
		t->fallbacks[i] = strdup(list->items[i]);
		if (!t->fallbacks[i])
			return fail_nomem(&cli->err);
		t->n_fallbacks++;
	}
	return 0;
}

static int set_command(struct cli *cli, struct incr_transform *t)
{
	if (cli->n_command == 0)
		return 0;
	for (size_t i = 0; i < t->n_command; i++)
		free(t->command[i]);
	free(t->command);
	t->n_command = 0;
	t->command = calloc(cli->n_command, sizeof(*t->command));
	if (!t->command)
		return fail_nomem(&cli->err);
	for (size_t i = 0; i < cli->n_command; i++) {
		t->command[i] = strdup(cli->command[i]);
		if (!t->command[i])
			return fail_nomem(&cli->err);
		t->n_command++;
	}
	return 0;
}

static void set_flags(const struct transform_args *args,
		      struct incr_transform *t)
{
	t->require_incremental |= args->require_incremental;
	t->allow_retention |= args->allow_retention;
	t->allow_user_deletes |= args->allow_user_deletes;
	t->strict_append |= args->strict_append;
	t->v2_semantics |= args->v2_semantics;
	t->abort_if_empty |= args->abort_if_empty;
	if (args->semantic_version.is_set)
		t->semantic_version = args->semantic_version.value;
	if (args->empty_previous)
		t->empty_previous_csv = strcmp(args->empty_previous, "csv") ==
					0;
}

static int read_all(struct cli *cli, const struct transform_args *args,
		    const char *name, struct incr_transform *t)
{
	int r;

	if (args->inputs.n + args->outputs.n == 0) {
		r = incr_transform_recorded(cli->store, name, t, &cli->err);
		if (r == INCR_E_NOTFOUND)
			fail_hint(&cli->err,
				  "name its inputs with -i and its outputs "
				  "with -o the first time");
	} else {
		t->semantic_version = 1;
		r = set_text(&t->name, name, &cli->err);
		if (r == 0)
			r = read_inputs(cli, &args->inputs, t);
		if (r == 0)
			r = read_outputs(cli, &args->outputs, t);
	}
	if (r == 0)
		r = set_inputs(cli, args, t);
	if (r == 0)
		r = set_outputs(cli, args, t);
	if (r == 0 && args->branch)
		r = set_text(&t->branch, args->branch, &cli->err);
	if (r == 0)
		r = set_fallbacks(cli, &args->fallbacks, t);
	if (r == 0)
		r = set_command(cli, t);
	if (r == 0)
		set_flags(args, t);
	return r;
}

int transform_args_read(struct cli *cli, const struct transform_args *args,
			const char *name, struct incr_transform *out)
{
	struct incr_transform t = { 0 };
	int r = read_all(cli, args, name, &t);

	if (r < 0)
		incr_transform_release(&t);
	else
		*out = t;
	return r;
}

struct incr_plan_options transform_args_plan(const struct transform_args *args,
					     bool is_forced)
{
	return (struct incr_plan_options){
		.is_forced = is_forced,
		.forces_snapshot = args->forces_snapshot,
		.is_skip = args->is_skip,
		.needs_all_unbuilt = args->needs_all_unbuilt,
	};
}

bool transform_args_is_empty(const struct transform_args *args)
{
	return args_is_empty(transform_args_table, args);
}
