/*
 * incrctl verify: compare the store with its checksums.
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

#include <inttypes.h>
#include <stdio.h>

struct verify_options {
	bool reads_data;
	struct args_number limit_sec;
};

static const struct args_option table[] = {
	{ "data", 0, ARGS_FLAG, offsetof(struct verify_options, reads_data),
	  NULL, "read every file and check its hash too" },
	{ "time-limit", 0, ARGS_NUMBER,
	  offsetof(struct verify_options, limit_sec), "SECONDS",
	  "stop after this time" },
	ARGS_END,
};

struct walk {
	struct cli *cli;
	struct progress progress;
	json_t *findings, *left_over; /* borrowed; NULL: print text */
};

static int print_finding(void *closure, const struct incr_finding *finding)
{
	struct walk *walk = closure;

	if (finding->is_left_over) {
		if (walk->left_over || !walk->cli->common.is_quiet)
			left_over_out(walk->left_over, &walk->progress,
				      finding);
		return 0;
	}
	/* what a repair has told of is counted */
	if (walk->findings || !finding->is_given_up)
		finding_out(walk->findings, &walk->progress, finding);
	return 0;
}

static void print_json(const struct incr_verify_result *result,
		       const struct walk *walk)
{
	json_t *json = json_object();

	out_put(json, "ok", json_boolean(result->n_findings == 0));
	out_put(json, "complete", json_boolean(result->is_complete));
	out_put(json, "records", out_u64(result->n_records));
	out_put(json, "transactions", out_u64(result->n_txns));
	out_put(json, "files", out_u64(result->n_files));
	out_put(json, "bytes", out_u64(result->size));
	out_put(json, "given_up", out_u64(result->n_given_up));
	out_put(json, "findings", json_incref(walk->findings));
	out_put(json, "left_over", json_incref(walk->left_over));
	out_put(json, "left_over_bytes", out_u64(result->left_over_size));
	out_line(json);
}

static void print_result(const struct incr_verify_result *result,
			 bool reads_data)
{
	struct text txns, files, size, count, given_up;

	printf("checked %s, %s",
	       text_count(result->n_txns, "transaction", "transactions", &txns),
	       text_count(result->n_files, "file", "files", &files));
	/* without --data, content is not read */
	if (reads_data)
		printf(", %s", text_size(result->size, &size));
	if (!result->is_complete)
		printf(" (stopped at the time limit)");
	printf(": %s", result->n_findings == 0 ?
			       "no damage" :
			       text_count(result->n_findings, "damage",
					  "damages", &count));
	if (result->n_given_up)
		printf("; %s by an earlier repair",
		       text_count(result->n_given_up, "loss given up",
				  "losses given up", &given_up));
	putchar('\n');
	if (result->n_left_over)
		printf("%" PRIu64
		       " left over by processes that are gone, %s: incrctl repair removes them\n",
		       result->n_left_over,
		       text_size(result->left_over_size, &size));
}

static int run_verify(struct cli *cli, void *options)
{
	const struct verify_options *o = options;
	_cleanup_json_ json_t *findings = cli->common.is_json ? json_array() :
								NULL;
	_cleanup_json_ json_t *left_over = cli->common.is_json ? json_array() :
								 NULL;
	_cleanup_dataset_ struct incr_dataset_info dataset = { 0 };
	struct walk walk = { .cli = cli,
			     .findings = findings,
			     .left_over = left_over };
	struct incr_verify_options verify = {
		.reads_data = o->reads_data,
		.progress = progress_draw,
		.progress_closure = &walk.progress,
	};
	struct incr_verify_result result;
	int r;

	if (o->limit_sec.is_set &&
	    (o->limit_sec.value == 0 ||
	     __builtin_mul_overflow(o->limit_sec.value, 1000,
				    &verify.time_limit_ms)))
		return fail_usage(&cli->err, "--time-limit",
				  "not a useful number of seconds");
	r = find_store_damaged(cli);
	if (r == 0 && cli->n_args > 0)
		r = find_dataset(cli, cli->args[0], &dataset);
	if (r < 0)
		return r;

	verify.dataset_id = dataset.id;
	progress_init(&walk.progress, cli, "verify");
	r = incr_verify(cli->store, &verify, print_finding, &walk, &result,
			&cli->err);
	progress_clear(&walk.progress);
	if (r < 0)
		return r;
	if (cli->common.is_json)
		print_json(&result, &walk);
	else if (!cli->common.is_quiet)
		print_result(&result, o->reads_data);
	return result.n_findings > 0 ? EXIT_CORRUPT : 0;
}

const struct verb verb_verify = {
	.name = "verify",
	.summary = "Check the store against its checksums; exit 6 on damage.",
	.synopsis = "[DATASET] [--data] [--time-limit SECONDS]",
	.tables = { table },
	.options_size = sizeof(struct verify_options),
	.max_args = 1,
	.run = run_verify,
};
