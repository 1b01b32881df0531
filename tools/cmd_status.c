/*
 * incrctl status: which transforms are fresh, stale or were never built.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

struct status_options {
	bool wants_status;
};

static const struct args_option table[] = {
	{ "exit-code", 0, ARGS_FLAG,
	  offsetof(struct status_options, wants_status), NULL,
	  "exit 10 unless all are fresh" },
	ARGS_END,
};

static const char *state_name(enum incr_freshness freshness)
{
	switch (freshness) {
	case INCR_FRESH:
		return "fresh";
	case INCR_STALE:
		return "stale";
	case INCR_NEVER:
		return "never";
	}
	return NULL;
}

static void print_json(const struct incr_status *status)
{
	json_t *json = json_object(), *behind = json_object();

	for (size_t i = 0; i < status->n_behind; i++) {
		const struct incr_behind *input = &status->behind[i];
		json_t *row = json_object();

		out_put(row, "transactions", out_u64(input->n_txns));
		out_put(row, "files", out_u64(input->n_files));
		out_put(row, "bytes", out_u64(input->size));
		out_put(behind, input->alias, row);
	}
	out_put(json, "transform", out_text(status->transform));
	out_put(json, "fresh", json_boolean(status->freshness == INCR_FRESH));
	out_put(json, "state", out_text(state_name(status->freshness)));
	out_put(json, "behind", behind);
	out_line(json);
}

static void print_text(const struct incr_status *status)
{
	struct text txns, files, size;

	printf("%s: %s\n", status->transform, state_name(status->freshness));
	for (size_t i = 0; i < status->n_behind; i++) {
		const struct incr_behind *input = &status->behind[i];

		if (input->n_txns == 0)
			continue;
		printf("    %s: %s behind (%s, %s)\n", input->alias,
		       text_count(input->n_txns, "transaction", "transactions",
				  &txns),
		       text_count(input->n_files, "file", "files", &files),
		       text_size(input->size, &size));
	}
}

/* Returns 1 if it is not fresh. */
static int print_status(struct cli *cli, const char *transform)
{
	_cleanup_(incr_status_release) struct incr_status status = { 0 };
	int r;

	r = incr_status_get(cli->store, transform, &status, &cli->err);
	if (r < 0)
		return r;
	if (cli->common.is_json)
		print_json(&status);
	else
		print_text(&status);
	return status.freshness != INCR_FRESH;
}

/* One of many that does not resolve, its input deleted say, hides no other. */
static int print_broken(struct cli *cli, const char *transform)
{
	if (cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "transform", out_text(transform));
		out_put(json, "fresh", json_false());
		out_put(json, "state", out_text("error"));
		out_put(json, "behind", json_object());
		out_put(json, "error", exit_error_json(&cli->err));
		out_line(json);
	} else {
		printf("%s: error: %s: %s\n", transform, cli->err.message,
		       cli->err.thing);
	}
	incr_error_release(&cli->err);
	return 1;
}

struct names {
	size_t n;
	char **items;
};

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

static int add_name(void *closure, const char *name)
{
	struct names *names = closure;
	char **items = reallocarray(names->items, names->n + 1, sizeof(*items));

	if (!items)
		return INCR_E_NOMEM;
	names->items = items;
	items[names->n] = strdup(name);
	if (!items[names->n])
		return INCR_E_NOMEM;
	names->n++;
	return 0;
}

static int run_status(struct cli *cli, void *options)
{
	const struct status_options *o = options;
	_cleanup_(names_release) struct names names = { 0 };
	bool is_stale = false;
	int r;

	r = find_store(cli);
	if (r == 0 && cli->n_args > 0)
		r = add_name(&names, cli->args[0]);
	else if (r == 0)
		r = incr_transform_list(cli->store, add_name, &names,
					&cli->err);
	if (r == INCR_E_NOMEM)
		return fail_nomem(&cli->err);
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		r = print_status(cli, names.items[i]);
		if (r == INCR_E_NOTFOUND && cli->n_args == 0)
			r = print_broken(cli, names.items[i]);
		is_stale |= r > 0;
	}
	if (r < 0)
		return r;
	return o->wants_status && is_stale ? EXIT_DIFFERENT : 0;
}

const struct verb verb_status = {
	.name = "status",
	.summary = "Say which transforms are fresh, stale or were never built.",
	.synopsis = "[TRANSFORM] [--exit-code]",
	.tables = { table },
	.options_size = sizeof(struct status_options),
	.max_args = 1,
	.run = run_status,
};
