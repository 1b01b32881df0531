/*
 * incrctl build: list, show, commit, abort and report builds.
 */
#include "config.h"

#include "build_text.h"
#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"
#include "json_plan.h"
#include "out.h"
#include "progress.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void cleanup_build(struct incr_build **b)
{
	incr_build_close(*b);
}

#define _cleanup_build_ _cleanup_(cleanup_build)

static int print_row(void *closure, const struct incr_build_info *info)
{
	const struct cli *cli = closure;
	struct text time;

	if (cli->common.is_json) {
		out_line(json_build_row(info));
		return 0;
	}
	printf("b%-5" PRIu64 " %s  %-9s  %-11s  %s%s\n", info->number,
	       text_time_short(info->started_ns, &time),
	       incr_build_status_name(info->status),
	       incr_decision_name(info->plan.decision),
	       info->plan.transform.name, info->is_orphaned ? " (orphan)" : "");
	return 0;
}

static int run_list(struct cli *cli, void *options)
{
	int r;

	(void)options;
	r = find_store(cli);
	if (r < 0)
		return r;
	return incr_build_list(cli->store,
			       cli->n_args > 0 ? cli->args[0] : NULL, print_row,
			       cli, &cli->err);
}

static int find_build(struct cli *cli, struct incr_build_info *out_info)
{
	uint64_t number;
	int r = find_build_number(cli, cli->args[0], &number);

	if (r == 0)
		r = find_store(cli);
	if (r < 0)
		return r;
	return incr_build_find(cli->store, number, out_info, &cli->err);
}

static int run_show(struct cli *cli, void *options)
{
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	int r;

	(void)options;
	r = find_build(cli, &info);
	if (r < 0)
		return r;
	if (cli->common.is_json)
		out_line(json_build(&info));
	else
		report_text(stdout, &info);
	return 0;
}

struct report_options {
	const char *html;
};

static const struct args_option report_table[] = {
	{ "html", 0, ARGS_TEXT, offsetof(struct report_options, html), "FILE",
	  "write a page of HTML to this file" },
	ARGS_END,
};

static int run_report(struct cli *cli, void *options)
{
	const struct report_options *o = options;
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	int r;

	r = find_build(cli, &info);
	if (r < 0)
		return r;
	if (o->html)
		return report_html(o->html, &info, &cli->err);
	if (cli->common.is_json)
		out_line(json_build(&info));
	else
		report_text(stdout, &info);
	return 0;
}

struct commit_options {
	bool allows_empty, skips_special;
};

static const struct args_option commit_table[] = {
	{ "allow-empty", 0, ARGS_FLAG,
	  offsetof(struct commit_options, allows_empty), NULL,
	  "let a replace empty an output that is not empty" },
	{ "skip-special", 0, ARGS_FLAG,
	  offsetof(struct commit_options, skips_special), NULL,
	  "leave out links, devices, sockets and FIFOs" },
	ARGS_END,
};

static int adopt(struct cli *cli, struct incr_build **out_build)
{
	uint64_t number;
	int r = find_build_number(cli, cli->args[0], &number);

	if (r == 0)
		r = find_store(cli);
	if (r < 0)
		return r;
	return incr_build_adopt(cli->store, number, out_build, &cli->err);
}

static void print_end(const struct cli *cli, const struct incr_build_info *info)
{
	if (cli->common.is_json)
		out_line(json_build(info));
	else if (!cli->common.is_quiet)
		build_text_result(stdout, info);
}

static int run_commit(struct cli *cli, void *options)
{
	const struct commit_options *o = options;
	_cleanup_build_ struct incr_build *b = NULL;
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	struct progress progress;
	struct incr_commit_build_options commit = {
		.exit_code = -1,
		.allows_empty = o->allows_empty,
		.skips_special = o->skips_special,
		.progress = progress_draw,
		.progress_closure = &progress,
	};
	int r = adopt(cli, &b);

	if (r < 0)
		return r;
	progress_init(&progress, cli, "commit");
	r = incr_build_commit(b, &commit, &info, &cli->err);
	progress_clear(&progress);
	if (r < 0)
		build_text_hint(&cli->err, incr_build_number(b));
	else
		print_end(cli, &info);
	return r;
}

struct abort_options {
	const char *output;
};

static const struct args_option abort_table[] = {
	{ "output", 0, ARGS_TEXT, offsetof(struct abort_options, output),
	  "ALIAS", "throw away this output alone; the build stays open" },
	ARGS_END,
};

static int abort_output(struct cli *cli, struct incr_build *b,
			const char *alias)
{
	const struct incr_plan *plan = incr_build_plan(b);

	for (size_t i = 0; i < plan->n_outputs; i++)
		if (strcmp(plan->outputs[i].alias, alias) == 0)
			return incr_build_abort_output(b, i, &cli->err);
	return fail(&cli->err, INCR_E_NOTFOUND, "no-such-alias", alias,
		    "the build has no such output");
}

static int run_abort(struct cli *cli, void *options)
{
	const struct abort_options *o = options;
	_cleanup_build_ struct incr_build *b = NULL;
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	int r = adopt(cli, &b);

	if (r < 0)
		return r;
	if (o->output)
		return abort_output(cli, b, o->output);
	r = incr_build_abort(b, false, -1, &info, &cli->err);
	if (r == 0)
		print_end(cli, &info);
	return r;
}

static const struct verb build_list = {
	.name = "build list",
	.summary = "List builds, newest first.",
	.synopsis = "[TRANSFORM]",
	.max_args = 1,
	.run = run_list,
};

static const struct verb build_show = {
	.name = "build show",
	.summary = "Show one build: decision, reasons, inputs and outputs.",
	.synopsis = "bN",
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

static const struct verb build_commit = {
	.name = "build commit",
	.summary = "Commit an open build that no process owns any more.",
	.synopsis = "bN [--allow-empty] [--skip-special]",
	.tables = { commit_table },
	.options_size = sizeof(struct commit_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_commit,
};

static const struct verb build_abort = {
	.name = "build abort",
	.summary = "Throw away what an open build, or one output of it, wrote.",
	.synopsis = "bN [--output ALIAS]",
	.tables = { abort_table },
	.options_size = sizeof(struct abort_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_abort,
};

static const struct verb build_report = {
	.name = "build report",
	.summary = "Report one build, as text or as a page of HTML.",
	.synopsis = "bN [--html FILE]",
	.tables = { report_table },
	.options_size = sizeof(struct report_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_report,
};

static const struct verb *const subs[] = {
	&build_list,  &build_show,   &build_commit,
	&build_abort, &build_report, NULL,
};

const struct verb verb_build = {
	.name = "build",
	.summary = "List, show, commit, abort and report builds.",
	.subs = subs,
};
