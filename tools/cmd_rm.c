/*
 * incrctl rm: one DELETE transaction.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "find.h"
#include "out_txn.h"
#include "txn_args.h"

struct rm_options {
	struct txn_args txn;
	struct args_number expect;
	bool is_recursive, ignores_missing;
};

#define OPTION(field) offsetof(struct rm_options, field)

static const struct args_option table[] = {
	{ "recursive", 'r', ARGS_FLAG, OPTION(is_recursive), NULL,
	  "remove what is below a directory" },
	{ "ignore-missing", 0, ARGS_FLAG, OPTION(ignores_missing), NULL,
	  "an argument that matches nothing is no error" },
	{ "expect", 0, ARGS_TXN, OPTION(expect), "tN",
	  "commit only if the branch still ends in this transaction" },
	ARGS_END,
};

static int run_rm(struct cli *cli, void *options)
{
	const struct rm_options *o = options;
	_cleanup_found_branch_ struct found_branch found = { 0 };
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	struct incr_txn_options txn = { 0 };
	struct incr_remove_flags flags = {
		.is_recursive = o->is_recursive,
		.ignores_missing = o->ignores_missing,
	};
	int r;

	r = txn_args_read(cli, &o->txn, INCR_DELETE, &meta, &txn);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = find_branch(cli, cli->args[0], o->txn.branch, &found);
	if (r < 0)
		return r;

	txn.dataset_id = found.dataset.id;
	txn.branch = found.branch;
	txn.has_expect = o->expect.is_set;
	txn.expect = o->expect.value;
	r = incr_remove(cli->store, &txn, (const char *const *)(cli->args + 1),
			cli->n_args - 1, flags, &info, &cli->err);
	if (r == 0)
		out_txn(cli, &info);
	return r;
}

const struct verb verb_rm = {
	.name = "rm",
	.summary = "Remove files from a dataset, as one DELETE transaction.",
	.synopsis = "DATASET PATH|GLOB... [OPTION]...",
	.details = "An argument that equals a path is that path, any other is "
		   "a glob: * and ? do not\n"
		   "cross a slash, ** does. Earlier views keep the files.",
	.tables = { txn_args_untyped_table, table },
	.options_size = sizeof(struct rm_options),
	.min_args = 2,
	.max_args = CLI_ANY,
	.run = run_rm,
};
