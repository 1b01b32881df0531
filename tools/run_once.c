/*
 * One pass of `incrctl run`.
 *
 * Signals are blocked from before the mount until it is gone, so that it is
 * never left behind. During the commit they act as usual: a build that is
 * killed there stays open with its staging.
 */
#include "config.h"

#include "run_once.h"

#include "build_text.h"
#include "cleanup.h"
#include "exit.h"
#include "fail.h"
#include "plan_text.h"
#include "progress.h"
#include "run_child.h"
#include "run_env.h"
#include "run_mount.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void run_outcome_release(struct run_outcome *outcome)
{
	incr_plan_release(&outcome->plan);
	incr_build_info_release(&outcome->info);
	*outcome = (struct run_outcome){ 0 };
}

static void cleanup_build(struct incr_build **b)
{
	incr_build_close(*b);
}

static void free_argv(char ***argv)
{
	for (char **arg = *argv; arg && *arg; arg++)
		free(*arg);
	free(*argv);
}

/* The arguments of the command, replaced. Owned; NULL: no memory. */
static char **make_argv(const struct run_settings *settings,
			const struct placeholders *placeholders)
{
	const struct incr_transform *t = &settings->transform;
	char **argv = calloc(t->n_command + 1, sizeof(*argv));

	for (size_t i = 0; argv && i < t->n_command; i++) {
		argv[i] = settings->replaces ?
				  placeholders_replace(placeholders,
						       t->command[i]) :
				  strdup(t->command[i]);
		if (!argv[i]) {
			free_argv(&argv);
			return NULL;
		}
	}
	return argv;
}

static int start_command(struct cli *cli, const struct run_settings *settings,
			 const struct incr_build *b, const char *top,
			 const sigset_t *old, struct run_result *out_result)
{
	_cleanup_(
		placeholders_release) struct placeholders placeholders = { 0 };
	_cleanup_(free_argv) char **argv = NULL;
	int r;

	r = run_env_set(incr_build_plan(b), incr_build_number(b), top,
			&placeholders, &cli->err);
	if (r < 0)
		return r;
	argv = make_argv(settings, &placeholders);
	if (!argv)
		return fail_nomem(&cli->err);
	return run_child(argv, old, out_result, &cli->err);
}

static int lost_mount(struct cli *cli, uint64_t number)
{
	int r = fail(&cli->err, INCR_E_IO, "mount-lost", NULL,
		     "the mount ended while the command ran");

	build_text_hint(&cli->err, number);
	return r;
}

/* Mount or copy, run, unmount. */
static int run_on_views(struct cli *cli, const struct run_settings *settings,
			struct incr_build *b, struct run_result *out_result)
{
	_cleanup_free_ char *json = NULL;
	struct run_mount_options options = {
		.is_copy = settings->is_copy,
		.staging = settings->staging,
	};
	struct run_mount mount;
	bool is_lost;
	sigset_t old;
	int r;

	json = build_text_json(incr_build_store(b), incr_build_number(b),
			       incr_build_plan(b), &cli->err);
	if (!json)
		return cli->err.code;
	options.build_json = json;

	run_signals_block(&old);
	r = run_mount_start(&mount, b, &options, &cli->err);
	if (r == 0)
		r = start_command(cli, settings, b, mount.dir, &old,
				  out_result);
	run_mount_stop(cli, &mount, &is_lost);
	if (r == 0 && is_lost)
		r = lost_mount(cli, incr_build_number(b));
	run_signals_restore(&old);
	return r;
}

/* Who asks us to end now is told what was committed first. */
static void hold_signals(void *closure)
{
	struct run_outcome *outcome = closure;

	run_signals_block(&outcome->mask);
	outcome->holds_signals = true;
}

static int commit(struct cli *cli, const struct run_settings *settings,
		  struct incr_build *b, int exit_code,
		  struct run_outcome *outcome)
{
	struct progress progress;
	struct incr_commit_build_options options = {
		.exit_code = exit_code,
		.allows_empty = settings->allows_empty,
		.skips_special = settings->build.skips_special,
		.progress = progress_draw,
		.progress_closure = &progress,
		.recording = hold_signals,
		.recording_closure = outcome,
	};
	int r;

	progress_init(&progress, cli, "commit");
	r = incr_build_commit(b, &options, &outcome->info, &cli->err);
	progress_clear(&progress);
	if (r < 0) {
		build_text_hint(&cli->err, outcome->number);
		return r;
	}
	outcome->has_info = true;
	for (size_t i = 0; i < outcome->info.plan.n_outputs; i++)
		outcome->has_committed |= outcome->info.plan.outputs[i].txn !=
					  0;
	if (!cli->common.is_json && !cli->common.is_quiet)
		build_text_result(stderr, &outcome->info);
	return 0;
}

/* The command could not be started, failed, or was told to end. */
static int give_up(struct cli *cli, const struct run_settings *settings,
		   struct incr_build *b, const struct run_result *result,
		   struct run_outcome *outcome)
{
	const char *name = settings->transform.command[0];
	int status = result->exit_code, r;

	if (result->exec_errno == ENOENT)
		status = EXIT_NOCOMMAND;
	else if (result->exec_errno)
		status = EXIT_NOEXEC;
	else if (status == 0)
		status = EXIT_SIGNAL + result->signo;

	if (settings->keeps_failed && !result->exec_errno) {
		exit_note(cli,
			  "the command failed (exit %d): b%" PRIu64
			  " stays open",
			  status, outcome->number);
		exit_hint(cli,
			  "incrctl build commit b%" PRIu64
			  ", or incrctl build abort b%" PRIu64,
			  outcome->number, outcome->number);
	} else {
		r = incr_build_abort(b, true, status, &outcome->info,
				     &cli->err);
		if (r < 0)
			return r;
		outcome->has_info = true;
	}
	if (result->exec_errno) {
		errno = result->exec_errno;
		(void)fail_errno(&cli->err, name, "cannot run the command");
		(void)snprintf(cli->err.word, sizeof(cli->err.word), "%s",
			       status == EXIT_NOCOMMAND ? "no-command" :
							  "not-executable");
		if (!cli->common.is_json)
			(void)exit_print(cli, &cli->err);
	}
	return status;
}

static int finish(struct cli *cli, const struct run_settings *settings,
		  struct incr_build *b, const struct run_result *result,
		  struct run_outcome *outcome)
{
	int r;

	if (result->exec_errno || result->exit_code != 0 || result->signo)
		return give_up(cli, settings, b, result, outcome);
	if (!settings->build.is_preview)
		return commit(cli, settings, b, result->exit_code, outcome);
	r = incr_build_abort(b, false, result->exit_code, &outcome->info,
			     &cli->err);
	if (r < 0)
		return r;
	exit_info(cli, "preview: nothing was committed");
	return 0;
}

/* No number, no mount: the decision alone. Returns as run_once() does. */
static int run_nothing(struct cli *cli, struct run_outcome *outcome)
{
	if (outcome->plan.decision != INCR_DECISION_FRESH)
		return plan_text_fail(&outcome->plan, &cli->err);
	outcome->is_fresh = true;
	exit_info(cli, "%s is fresh: nothing to do",
		  outcome->plan.transform.name);
	return 0;
}

int run_once(struct cli *cli, const struct run_settings *settings,
	     struct run_outcome *out_outcome)
{
	_cleanup_(cleanup_build) struct incr_build *b = NULL;
	struct run_result result = { 0 };
	_cleanup_error_ struct incr_error ignored = INCR_ERROR_INIT;
	int r;

	r = incr_build_begin(cli->store, &settings->transform, &settings->plan,
			     &settings->build, &b, &out_outcome->plan,
			     &cli->err);
	if (r < 0)
		return r;
	if (!b || out_outcome->plan.decision != INCR_DECISION_FRESH)
		plan_text_say(cli, &out_outcome->plan);
	if (!b)
		return run_nothing(cli, out_outcome);
	out_outcome->number = incr_build_number(b);
	if (settings->plan.is_skip)
		return commit(cli, settings, b, -1, out_outcome);

	r = run_on_views(cli, settings, b, &result);
	if (r == 0)
		return finish(cli, settings, b, &result, out_outcome);
	/* Nothing ran, so nothing is lost: leave no open build behind. */
	if (strcmp(cli->err.word, "mount-lost") != 0 &&
	    incr_build_abort(b, true, EXIT_RUN, &out_outcome->info, &ignored) ==
		    0)
		out_outcome->has_info = true;
	return r;
}
