/*
 * incrctl log: the transactions of a dataset, newest first.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "out_txn.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct log_options {
	struct args_number limit;
	const char *range;
};

static const struct args_option table[] = {
	{ "limit", 'n', ARGS_NUMBER, offsetof(struct log_options, limit), "N",
	  "print at most this many" },
	{ "range", 0, ARGS_TEXT, offsetof(struct log_options, range),
	  "FROM..TO", "after FROM, up to and including TO" },
	ARGS_END,
};

struct walk {
	struct cli *cli;
	uint64_t n_left;
};

static void print_text(const struct incr_txn_info *info)
{
	_cleanup_free_ char *counts = out_txn_counts(
		info->type, info->n_files, info->size, info->n_removed);
	struct text time;

	if (info->status == INCR_LOST) {
		printf("t%-5" PRIu64 " lost: its record is damaged\n",
		       info->number);
		return;
	}
	printf("t%-5" PRIu64 " %s  %-8s  %s", info->number,
	       text_time_short(info->closed_ns, &time),
	       incr_txn_type_name(info->type), counts ? counts : "");
	if (info->build)
		printf("  b%" PRIu64, info->build);
	else if (strcmp(info->origin, "user") != 0)
		printf("  (%s)", info->origin);
	if (info->message && *info->message) {
		char line[200];

		text_printable(info->message, strcspn(info->message, "\n"),
			       line, sizeof(line));
		printf("  %s", line);
	}
	(void)putchar('\n');
}

static int print_txn(void *closure, const struct incr_txn_info *info)
{
	struct walk *walk = closure;

	if (walk->n_left == 0)
		return 1;
	walk->n_left--;
	if (walk->cli->common.is_json)
		out_line(out_txn_json(walk->cli, info));
	else
		print_text(info);
	return walk->n_left == 0;
}

static int run_log(struct cli *cli, void *options)
{
	const struct log_options *o = options;
	_cleanup_found_point_ struct found_point found = { 0 };
	struct walk walk = { .cli = cli, .n_left = UINT64_MAX };
	uint64_t from = 0, to;
	bool is_on_path = true;
	int r;

	if (o->limit.is_set)
		walk.n_left = o->limit.value;
	r = find_store(cli);
	if (r < 0)
		return r;
	if (o->range) {
		r = find_range(cli, cli->args[0], o->range, &found, &from, &to);
	} else {
		r = find_point(cli, cli->args[0], &found);
		to = found.txn;
	}
	if (r == 0 && from != 0)
		r = incr_txn_is_on_path(cli->store, from, to, &is_on_path,
					&cli->err);
	if (r < 0)
		return r;
	if (!is_on_path)
		return fail_usage(&cli->err, o->range,
				  "the range does not lie on one line of "
				  "transactions");
	if (to == 0)
		return 0;
	r = incr_txn_log(cli->store, to, from, print_txn, &walk, &cli->err);
	return r < 0 ? r : 0;
}

const struct verb verb_log = {
	.name = "log",
	.summary = "List the transactions of a dataset, newest first.",
	.synopsis = "DATASET[:BRANCH] [--limit N] [--range FROM..TO]",
	.tables = { table },
	.options_size = sizeof(struct log_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_log,
};
