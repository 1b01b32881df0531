/*
 * incrctl repair: mend what can be mended, say what cannot.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "finding.h"
#include "out.h"
#include "progress.h"
#include "text.h"

#include <stdio.h>

struct repair_options {
	bool is_dry_run;
};

static const struct args_option table[] = {
	{ "dry-run", 0, ARGS_FLAG, offsetof(struct repair_options, is_dry_run),
	  NULL, "say what would be done" },
	ARGS_END,
};

struct walk {
	struct progress progress;
	bool is_dry_run, is_quiet;
	/* borrowed; NULL: print text */
	json_t *done, *findings, *left_over;
};

static const char *action_name(enum incr_repair_action action)
{
	switch (action) {
	case INCR_REPAIR_TAIL:
		return "torn-tail";
	case INCR_REPAIR_INDEX:
		return "index";
	case INCR_REPAIR_STAGING:
		return "staging";
	case INCR_REPAIR_LOST_STAGING:
		return "lost-staging";
	case INCR_REPAIR_HEADER:
		return "header";
	case INCR_REPAIR_LOG:
		return "log";
	case INCR_REPAIR_LEFT_OVER:
		return "left-over";
	}
	return "unknown";
}

static const char *action_text(enum incr_repair_action action, bool is_dry_run)
{
	switch (action) {
	case INCR_REPAIR_TAIL:
		return is_dry_run ? "would move its torn tail to lost/" :
				    "moved its torn tail to lost/";
	case INCR_REPAIR_INDEX:
		return is_dry_run ? "would make it again from the log" :
				    "made it again from the log";
	case INCR_REPAIR_HEADER:
		return is_dry_run ? "would write its header again" :
				    "wrote its header again, the old one is in "
				    "lost/";
	case INCR_REPAIR_LOG:
		return is_dry_run ? "would give up its damaged records" :
				    "gave up its damaged records, a copy is in "
				    "lost/";
	case INCR_REPAIR_LOST_STAGING:
		return is_dry_run ? "would move it to lost/" :
				    "moved it to lost/: what it was of may be "
				    "lost";
	case INCR_REPAIR_STAGING:
		return is_dry_run ? "would remove it: it is of nothing open" :
				    "removed it: it was of nothing open";
	case INCR_REPAIR_LEFT_OVER:
		return is_dry_run ?
			       "would remove it: the process that made it is gone" :
			       "removed it: the process that made it is gone";
	}
	return "";
}

static int note_done(void *closure, enum incr_repair_action action,
		     const char *what, uint64_t size)
{
	struct walk *walk = closure;
	struct text text;

	if (walk->done) {
		json_t *json = json_object();

		out_put(json, "action", out_text(action_name(action)));
		out_put(json, "file", out_text(what));
		out_put(json, "bytes", out_u64(size));
		(void)json_array_append_new(walk->done, json);
		return 0;
	}
	if (walk->is_quiet)
		return 0;
	progress_clear(&walk->progress);
	printf("%s: %s", what, action_text(action, walk->is_dry_run));
	if (size)
		printf(" (%s)", text_size(size, &text));
	putchar('\n');
	return 0;
}

static int note_finding(void *closure, const struct incr_finding *finding)
{
	struct walk *walk = closure;

	if (!finding->is_left_over)
		finding_out(walk->findings, &walk->progress, finding);
	else if (walk->left_over || !walk->is_quiet)
		left_over_out(walk->left_over, &walk->progress, finding);
	return 0;
}

static void print_result(const struct cli *cli, const struct walk *walk,
			 const struct incr_repair_result *result)
{
	struct text done, given_up, left;

	if (cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "ok", json_boolean(result->n_left == 0));
		out_put(json, "done", json_incref(walk->done));
		out_put(json, "given_up", out_u64(result->n_given_up));
		out_put(json, "findings", json_incref(walk->findings));
		out_put(json, "left_over", json_incref(walk->left_over));
		out_line(json);
		return;
	}
	if (cli->common.is_quiet)
		return;
	printf("%s %s; ", text_count(result->n_done, "thing", "things", &done),
	       walk->is_dry_run ? "to mend" : "mended");
	if (result->n_given_up)
		printf("%s; ",
		       text_count(result->n_given_up, "loss noted in the log",
				  "losses noted in the log", &given_up));
	printf("%s\n", result->n_left == 0 ?
			       "no damage is left" :
			       text_count(result->n_left, "damage is left",
					  "damages are left", &left));
}

static int run_repair(struct cli *cli, void *options)
{
	const struct repair_options *o = options;
	_cleanup_json_ json_t *done = cli->common.is_json ? json_array() : NULL;
	_cleanup_json_ json_t *findings = cli->common.is_json ? json_array() :
								NULL;
	_cleanup_json_ json_t *left_over = cli->common.is_json ? json_array() :
								 NULL;
	struct walk walk = { .is_dry_run = o->is_dry_run,
			     .is_quiet = cli->common.is_quiet,
			     .done = done,
			     .findings = findings,
			     .left_over = left_over };
	struct incr_repair_options repair = {
		.is_dry_run = o->is_dry_run,
		.wait_ms = find_wait_ms(cli),
		.progress = progress_draw,
		.progress_closure = &walk.progress,
	};
	struct incr_repair_result result;
	int r;

	r = find_store_damaged(cli);
	if (r < 0)
		return r;
	progress_init(&walk.progress, cli, "repair");
	r = incr_repair(incr_store_path(cli->store), &repair, note_done,
			note_finding, &walk, &result, &cli->err);
	progress_clear(&walk.progress);
	if (r < 0)
		return r;
	print_result(cli, &walk, &result);
	return result.n_left > 0 ? EXIT_CORRUPT : 0;
}

const struct verb verb_repair = {
	.name = "repair",
	.summary =
		"Mend what can be mended, say what cannot; exit 6 if damage is left.",
	.synopsis = "[--dry-run]",
	.tables = { table },
	.options_size = sizeof(struct repair_options),
	.run = run_repair,
};
