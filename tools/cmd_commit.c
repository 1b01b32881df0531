/*
 * incrctl commit: read files and commit them as one transaction.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "out_txn.h"
#include "progress.h"
#include "txn_args.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct commit_options {
	struct txn_args txn;
	const char *prefix, *name;
	struct args_number expect;
	bool skips_empty, skips_special, rewrites;
};

#define OPTION(field) offsetof(struct commit_options, field)

static const struct args_option table[] = {
	{ "prefix", 0, ARGS_TEXT, OPTION(prefix), "DIR",
	  "put everything below this directory of the dataset" },
	{ "name", 0, ARGS_TEXT, OPTION(name), "PATH",
	  "path in the dataset of a single file or of -" },
	{ "expect", 0, ARGS_TXN, OPTION(expect), "tN",
	  "commit only if the branch still ends in this transaction" },
	{ "skip-empty", 0, ARGS_FLAG, OPTION(skips_empty), NULL,
	  "commit nothing if there is nothing to record" },
	{ "skip-special", 0, ARGS_FLAG, OPTION(skips_special), NULL,
	  "leave out links, devices, sockets and FIFOs" },
	{ "rewrite", 0, ARGS_FLAG, OPTION(rewrites), NULL,
	  "record files that equal the dataset's too (update)" },
	ARGS_END,
};

/* Without the slashes at its end, which a shell adds. Owned; NULL: none. */
static char *trim_prefix(const char *prefix)
{
	size_t length = prefix ? strlen(prefix) : 0;

	while (length > 1 && prefix[length - 1] == '/')
		length--;
	return prefix ? strndup(prefix, length) : NULL;
}

/* One source an argument. Owned; NULL with @err filled. */
static struct incr_source *make_sources(struct cli *cli,
					const struct commit_options *o,
					const char *prefix)
{
	size_t n = cli->n_args - 1;
	struct incr_source *sources = calloc(n, sizeof(*sources));
	bool has_stream = false;

	if (!sources) {
		(void)fail_nomem(&cli->err);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		const char *arg = cli->args[i + 1];
		bool is_stream = strcmp(arg, "-") == 0;

		sources[i] = (struct incr_source){
			.kind = is_stream ? INCR_SOURCE_STREAM :
					    INCR_SOURCE_PATH,
			.path = arg,
			.fd = is_stream ? STDIN_FILENO : -1,
			.name = o->name,
			.prefix = prefix,
		};
		has_stream = has_stream || is_stream;
	}
	if (o->name && n > 1)
		(void)fail_usage(&cli->err, o->name,
				 "--name goes with a single source");
	else if (has_stream && !o->name)
		(void)fail_usage(&cli->err, NULL,
				 "standard input needs --name PATH");
	else
		return sources;
	free(sources);
	return NULL;
}

static void say_nothing(const struct cli *cli, const char *dataset)
{
	if (cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "transaction", NULL);
		out_put(json, "dataset", out_text(dataset));
		out_put(json, "files", out_u64(0));
		out_put(json, "bytes", out_u64(0));
		out_line(json);
	} else if (!cli->common.is_quiet) {
		printf("%s: nothing to commit\n", dataset);
	}
}

static int run_commit(struct cli *cli, void *options)
{
	const struct commit_options *o = options;
	_cleanup_found_branch_ struct found_branch found = { 0 };
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	_cleanup_free_ struct incr_source *sources = NULL;
	_cleanup_free_ char *prefix = trim_prefix(o->prefix);
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	struct incr_txn_options txn = { 0 };
	struct progress progress;
	int r;

	if (o->prefix && !prefix)
		return fail_nomem(&cli->err);
	sources = make_sources(cli, o, prefix);
	if (!sources)
		return cli->err.code;
	r = txn_args_read(cli, &o->txn, INCR_APPEND, &meta, &txn);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = find_branch(cli, cli->args[0], o->txn.branch, &found);
	if (r < 0)
		return r;

	progress_init(&progress, cli, "commit");
	txn.dataset_id = found.dataset.id;
	txn.branch = found.branch;
	txn.has_expect = o->expect.is_set;
	txn.expect = o->expect.value;
	txn.skips_empty = o->skips_empty;
	txn.skips_special = o->skips_special;
	txn.rewrites = o->rewrites;
	txn.progress = progress_draw;
	txn.progress_closure = &progress;
	r = incr_commit(cli->store, &txn, sources, cli->n_args - 1, &info,
			&cli->err);
	progress_clear(&progress);
	if (r < 0)
		return r;

	if (r == 1)
		say_nothing(cli, found.dataset.name);
	else
		out_txn(cli, &info);
	return 0;
}

const struct verb verb_commit = {
	.name = "commit",
	.summary = "Commit files to a dataset, as one transaction.",
	.synopsis = "DATASET SOURCE... [OPTION]...",
	.details = "A directory gives its files at their paths relative to it, "
		   "a file its base name,\n"
		   "- standard input, which needs --name.",
	.tables = { txn_args_table, table },
	.options_size = sizeof(struct commit_options),
	.min_args = 2,
	.max_args = CLI_ANY,
	.run = run_commit,
};
