/*
 * incrctl run: run a command on what is new, and commit what it wrote.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "json_plan.h"
#include "out.h"
#include "run_child.h"
#include "run_once.h"
#include "scratch.h"
#include "transform_args.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct run_options {
	struct transform_args transform;
	bool is_forced, is_preview, until_fresh, keeps_failed, skips_special,
		no_replace;
	const char *view, *staging, *result;
};

#define OPTION(field) offsetof(struct run_options, field)

static const struct args_option table[] = {
	{ "force", 0, ARGS_FLAG, OPTION(is_forced), NULL,
	  "run also when nothing is new" },
	{ "preview", 0, ARGS_FLAG, OPTION(is_preview), NULL,
	  "run, and commit nothing" },
	{ "until-fresh", 0, ARGS_FLAG, OPTION(until_fresh), NULL,
	  "run again until nothing is new" },
	{ "keep-failed", 0, ARGS_FLAG, OPTION(keeps_failed), NULL,
	  "keep what a failed command wrote, in an open build" },
	{ "skip-special", 0, ARGS_FLAG, OPTION(skips_special), NULL,
	  "leave out links, devices, sockets and FIFOs" },
	{ "view", 0, ARGS_TEXT, OPTION(view), "mount|copy",
	  "how the command sees its files (mount)" },
	{ "staging", 0, ARGS_TEXT, OPTION(staging), "link|fuse",
	  "how it writes: the disk itself, or through the mount" },
	{ "no-replace", 0, ARGS_FLAG, OPTION(no_replace), NULL,
	  "leave {ALIAS.VIEW} in arguments as it is" },
	{ "result", 0, ARGS_TEXT, OPTION(result), "FILE",
	  "write how it went to this file, as JSON" },
	ARGS_END,
};

static bool is_equal(const char *text, const char *word)
{
	return text && strcmp(text, word) == 0;
}

static int check_options(struct cli *cli, const struct run_options *o)
{
	const char *clash = NULL;

	if (o->until_fresh && o->is_forced)
		clash = "--until-fresh with --force";
	else if (o->until_fresh && o->is_preview)
		clash = "--until-fresh with --preview";
	else if (o->is_preview && o->transform.is_skip)
		clash = "--preview with --skip";
	else if (is_equal(o->view, "copy") && is_equal(o->staging, "fuse"))
		clash = "--view=copy with --staging=fuse";
	if (clash)
		return fail_usage(&cli->err, clash,
				  "these options exclude each other");
	if (cli->has_command && cli->n_command == 0)
		return fail_usage(&cli->err, "--", "the command is missing");
	return 0;
}

/* What is kept of the environment with the record of a build. */
static int record_environment(struct incr_build_options *build,
			      struct incr_error *err)
{
	static const char *const names[] = { "PATH", "LANG", "LC_ALL", "TZ" };
	const size_t n = sizeof(names) / sizeof(names[0]);
	struct incr_pairs *pairs = &build->environment;

	pairs->items = calloc(n, sizeof(*pairs->items));
	if (!pairs->items)
		return fail_nomem(err);
	for (size_t i = 0; i < n; i++) {
		const char *value = getenv(names[i]);

		if (!value)
			continue;
		pairs->items[pairs->n++] = (struct incr_pair){
			.key = strdup(names[i]),
			.value = strdup(value),
		};
	}
	return 0;
}

static int read_settings(struct cli *cli, const struct run_options *o,
			 struct run_settings *settings)
{
	int r;

	r = transform_args_read(cli, &o->transform, cli->args[0],
				&settings->transform);
	if (r == 0)
		r = record_environment(&settings->build, &cli->err);
	if (r < 0)
		return r;
	if (settings->transform.n_command == 0 && !o->transform.is_skip) {
		r = fail_usage(&cli->err, NULL, "the command is missing");
		fail_hint(&cli->err, "it goes behind --");
		return r;
	}
	settings->plan = transform_args_plan(&o->transform, o->is_forced);
	if (o->is_preview)
		r = scratch_make(cli, &settings->scratch);
	settings->build.is_preview = o->is_preview;
	settings->build.scratch = settings->scratch;
	settings->build.skips_special = o->skips_special;
	settings->allows_empty = o->transform.allow_empty;
	settings->keeps_failed = o->keeps_failed;
	settings->is_copy = is_equal(o->view, "copy");
	settings->replaces = !o->no_replace;
	settings->staging = is_equal(o->staging, "fuse") ? INCR_STAGING_FUSE :
							   INCR_STAGING_LINK;
	return r;
}

static void settings_release(struct run_settings *settings)
{
	incr_transform_release(&settings->transform);
	args_pairs_release(&settings->build.environment);
	scratch_remove(settings->scratch);
}

/* The object of the run: its build, its plan, or just what went wrong. */
static json_t *result_json(struct cli *cli, struct run_outcome *outcome)
{
	json_t *json;

	if (!outcome->has_info && outcome->number != 0) {
		struct incr_error ignored = INCR_ERROR_INIT;

		outcome->has_info = incr_build_find(cli->store, outcome->number,
						    &outcome->info,
						    &ignored) == 0;
		incr_error_release(&ignored);
	}
	if (outcome->has_info)
		json = json_build(&outcome->info);
	else if (outcome->plan.decision != 0)
		json = json_plan_unbuilt(&outcome->plan);
	else
		json = json_object();
	if (cli->err.code != 0)
		out_put(json, "error", exit_error_json(&cli->err));
	return json;
}

/* Text or JSON on stderr, and --result. Returns the exit status. */
static int report(struct cli *cli, const struct run_options *o,
		  struct run_outcome *outcome, int r)
{
	_cleanup_json_ json_t *json = NULL;
	struct incr_error err = INCR_ERROR_INIT;
	FILE *file;

	if (cli->common.is_json || o->result)
		json = result_json(cli, outcome);
	if (r < 0 && !cli->common.is_json)
		(void)exit_print(cli, &cli->err);
	if (cli->common.is_json)
		out_json(stderr, json);
	if (r < 0)
		r = EXIT_RUN;
	if (!o->result)
		return r;

	file = fopen(o->result, "we");
	if (file)
		out_json(file, json);
	if (file && !ferror(file) && fclose(file) == 0)
		return r;
	(void)fail_errno(&err, o->result, "cannot write the result");
	(void)exit_print(cli, &err);
	return r == 0 ? EXIT_RUN : r;
}

/* Once, or until a pass is fresh; *outcome is the last that was not. */
static int run_all(struct cli *cli, const struct run_options *o,
		   struct run_settings *settings, struct run_outcome *outcome)
{
	for (;;) {
		struct run_outcome next = { 0 };
		int r = run_once(cli, settings, &next);
		bool is_last = r != 0 || !o->until_fresh || !next.has_committed;

		if (next.is_fresh && outcome->has_info) {
			run_outcome_release(&next);
			return r;
		}
		run_outcome_release(outcome);
		*outcome = next;
		if (is_last)
			return r;
		if (outcome->holds_signals)
			run_signals_restore(&outcome->mask);
		settings->plan.forces_snapshot = false; /* this one time */
	}
}

static int run_run(struct cli *cli, void *options)
{
	const struct run_options *o = options;
	_cleanup_(settings_release) struct run_settings settings = { 0 };
	_cleanup_(run_outcome_release) struct run_outcome outcome = { 0 };
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	int r;

	/* A reader that goes away must not leave a mount behind. */
	(void)signal(SIGPIPE, SIG_IGN);
	r = check_options(cli, o);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = read_settings(cli, o, &settings);
	if (r < 0)
		return report(cli, o, &outcome, r);
	settings.build.cwd = cwd ? cwd : "";

	r = run_all(cli, o, &settings, &outcome);
	return report(cli, o, &outcome, r);
}

const struct verb verb_run = {
	.name = "run",
	.summary = "Run a command on what is new, and commit what it wrote.",
	.synopsis = "TRANSFORM [OPTION]... -- COMMAND [ARGUMENT]...",
	.details =
		"In arguments {ALIAS.added}, {ALIAS.previous}, {ALIAS.current}, "
		"{ALIAS.staging},\n"
		"{build}, {transform} and {mount} are replaced; {{ALIAS.added} "
		"gives {ALIAS.added}.\n"
		"Exits as the command does; 125 for failures of its own, 126 "
		"if the command cannot\n"
		"be executed, 127 if it is not found.",
	.tables = { transform_args_table, table },
	.options_size = sizeof(struct run_options),
	.min_args = 1,
	.max_args = 1,
	.takes_command = true,
	.failure = EXIT_RUN,
	.run = run_run,
};
