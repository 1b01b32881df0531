/*
 * incrctl txn: transactions by hand: begin, put, rm, commit, abort, list.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "find.h"
#include "out.h"
#include "out_txn.h"
#include "text.h"
#include "txn_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* With JSON the whole transaction, else "t42". */
static int print_number(struct cli *cli, uint64_t number)
{
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	int r;

	if (!cli->common.is_json) {
		printf("t%" PRIu64 "\n", number);
		return 0;
	}
	r = incr_txn_find(cli->store, number, &info, &cli->err);
	if (r == 0)
		out_line(out_txn_json(cli, &info));
	return r;
}

static int run_begin(struct cli *cli, void *options)
{
	const struct txn_args *o = options;
	_cleanup_found_branch_ struct found_branch found = { 0 };
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	struct incr_txn_options txn = { 0 };
	uint64_t number;
	int r;

	r = txn_args_read(cli, o, INCR_APPEND, &meta, &txn);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = find_branch(cli, cli->args[0], o->branch, &found);
	if (r < 0)
		return r;
	txn.dataset_id = found.dataset.id;
	txn.branch = found.branch;
	r = incr_txn_begin(cli->store, &txn, &number, &cli->err);
	return r < 0 ? r : print_number(cli, number);
}

struct put_options {
	bool overwrites;
};

static const struct args_option put_table[] = {
	{ "overwrite", 0, ARGS_FLAG, offsetof(struct put_options, overwrites),
	  NULL, "replace what was put there before" },
	ARGS_END,
};

static int run_put(struct cli *cli, void *options)
{
	const struct put_options *o = options;
	const char *path = cli->args[1], *from = cli->args[2];
	bool is_stream = strcmp(from, "-") == 0;
	struct incr_source source = {
		.kind = is_stream ? INCR_SOURCE_STREAM : INCR_SOURCE_PATH,
		.path = from,
		.fd = is_stream ? STDIN_FILENO : -1,
		.name = path,
	};
	uint64_t number;
	int r;

	r = find_txn_number(cli, cli->args[0], &number);
	if (r == 0)
		r = find_store(cli);
	if (r < 0)
		return r;
	return incr_txn_put(cli->store, number, path, &source, o->overwrites,
			    &cli->err);
}

static int run_txn_rm(struct cli *cli, void *options)
{
	uint64_t number;
	int r;

	(void)options;
	r = find_txn_number(cli, cli->args[0], &number);
	if (r == 0)
		r = find_store(cli);
	if (r < 0)
		return r;
	return incr_txn_remove(cli->store, number, cli->args[1], &cli->err);
}

struct commit_options {
	bool rewrites;
};

static const struct args_option commit_table[] = {
	{ "rewrite", 0, ARGS_FLAG, offsetof(struct commit_options, rewrites),
	  NULL, "record files that equal the dataset's too (update)" },
	ARGS_END,
};

static int run_txn_commit(struct cli *cli, void *options)
{
	const struct commit_options *o = options;
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	uint64_t number;
	int r;

	r = find_txn_number(cli, cli->args[0], &number);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = incr_txn_commit(cli->store, number, o->rewrites, &info,
				    &cli->err);
	if (r == 0)
		out_txn(cli, &info);
	return r;
}

static int run_abort(struct cli *cli, void *options)
{
	uint64_t number;
	int r;

	(void)options;
	r = find_txn_number(cli, cli->args[0], &number);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = incr_txn_abort(cli->store, number, &cli->err);
	if (r < 0)
		return r;
	return cli->common.is_json ? print_number(cli, number) : 0;
}

static int print_open(void *closure, const struct incr_txn_info *info)
{
	struct cli *cli = closure;
	struct text time;

	if (cli->common.is_json)
		out_line(out_txn_json(cli, info));
	else
		printf("t%-5" PRIu64 " %s  %-8s %s:%s\n", info->number,
		       text_time_short(info->opened_ns, &time),
		       incr_txn_type_name(info->type), info->dataset,
		       info->branch);
	return 0;
}

static int run_list(struct cli *cli, void *options)
{
	int r;

	(void)options;
	r = find_store(cli);
	if (r < 0)
		return r;
	return incr_txn_list_open(cli->store, print_open, cli, &cli->err);
}

static const struct verb txn_begin = {
	.name = "txn begin",
	.summary = "Open a transaction and print its number.",
	.synopsis = "DATASET [OPTION]...",
	.details = "It stays open, whatever happens, until it is committed or "
		   "aborted; meanwhile nothing\n"
		   "else can be written to its branch.",
	.tables = { txn_args_begin_table },
	.options_size = sizeof(struct txn_args),
	.min_args = 1,
	.max_args = 1,
	.run = run_begin,
};

static const struct verb txn_put = {
	.name = "txn put",
	.summary = "Stage a file in an open transaction.",
	.synopsis = "tN PATH SOURCE [--overwrite]",
	.details = "SOURCE - is standard input.",
	.tables = { put_table },
	.options_size = sizeof(struct put_options),
	.min_args = 3,
	.max_args = 3,
	.run = run_put,
};

static const struct verb txn_rm = {
	.name = "txn rm",
	.summary = "Unstage a file, or in a DELETE stage its removal.",
	.synopsis = "tN PATH",
	.min_args = 2,
	.max_args = 2,
	.run = run_txn_rm,
};

static const struct verb txn_commit = {
	.name = "txn commit",
	.summary = "Commit an open transaction.",
	.synopsis = "tN [--rewrite]",
	.tables = { commit_table },
	.options_size = sizeof(struct commit_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_txn_commit,
};

static const struct verb txn_abort = {
	.name = "txn abort",
	.summary = "Abort an open transaction; what was staged is dropped.",
	.synopsis = "tN",
	.min_args = 1,
	.max_args = 1,
	.run = run_abort,
};

static const struct verb txn_list = {
	.name = "txn list",
	.summary = "List open transactions.",
	.run = run_list,
};

static const struct verb *const subs[] = {
	&txn_begin, &txn_put, &txn_rm, &txn_commit, &txn_abort, &txn_list, NULL,
};

const struct verb verb_txn = {
	.name = "txn",
	.summary = "Build a transaction step by step.",
	.subs = subs,
};
