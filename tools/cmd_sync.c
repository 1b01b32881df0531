/*
 * incrctl sync: turn a folder into the smallest transaction.
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
#include <sys/stat.h>

struct sync_options {
	struct txn_args txn;
	const char *mode;
	struct args_list includes, excludes;
	struct args_number settle, expect;
	bool is_dry_run, skips_special;
};

#define OPTION(field) offsetof(struct sync_options, field)

static const struct args_option table[] = {
	{ "mode", 0, ARGS_TEXT, OPTION(mode), "mirror|append|update|snapshot",
	  "what becomes of files that changed or are gone" },
	{ "include", 0, ARGS_LIST, OPTION(includes), "GLOB",
	  "only paths that match; may be repeated" },
	{ "exclude", 0, ARGS_LIST, OPTION(excludes), "GLOB",
	  "no paths that match; may be repeated" },
	{ "settle", 0, ARGS_NUMBER, OPTION(settle), "SECONDS",
	  "leave files for next time that changed less than this ago (0)" },
	{ "expect", 0, ARGS_TXN, OPTION(expect), "tN",
	  "commit only if the branch still ends in this transaction" },
	{ "dry-run", 'n', ARGS_FLAG, OPTION(is_dry_run), NULL,
	  "list what would be committed" },
	{ "skip-special", 0, ARGS_FLAG, OPTION(skips_special), NULL,
	  "leave out links, devices, sockets and FIFOs" },
	ARGS_END,
};

#define SETTLE_MAX (UINT64_C(100) * 365 * 24 * 3600)

static int read_mode(struct cli *cli, const char *text,
		     enum incr_sync_mode *out_mode)
{
	static const char *const names[] = {
		[INCR_SYNC_MIRROR] = "mirror",
		[INCR_SYNC_APPEND] = "append",
		[INCR_SYNC_UPDATE] = "update",
		[INCR_SYNC_SNAPSHOT] = "snapshot",
	};

	if (!text)
		return fail_usage(&cli->err, NULL,
				  "--mode is needed: mirror, append, update "
				  "or snapshot");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0)
			*out_mode = (enum incr_sync_mode)i;
	return 0; /* the table let no other word through */
}

/* In a dry run each path is printed, otherwise the transactions tell. */
static void print_change(void *closure, enum incr_change change,
			 const char *path, size_t length)
{
	const struct cli *cli = closure;
	json_t *json;

	if (cli->common.is_json) {
		json = json_object();
		out_put_path(json, path, length);
		out_put(json, "status", out_text(out_change_name(change)));
		out_line(json);
	} else if (cli->common.is_nul) {
		out_path(cli, path, length);
	} else {
		printf("%c\t", out_change_letter(change));
		out_quoted(path, length);
		putchar('\n');
	}
}

static void print_nothing(const struct cli *cli, const char *dataset,
			  const struct incr_sync_result *result)
{
	json_t *json;

	if (cli->common.is_json) {
		json = json_object();
		out_put(json, "transaction", NULL);
		out_put(json, "dataset", out_text(dataset));
		out_put(json, "files", out_u64(0));
		out_put(json, "bytes", out_u64(0));
		out_put(json, "young", out_u64(result->n_young));
		out_line(json);
		return;
	}
	if (cli->common.is_quiet)
		return;
	printf("%s: nothing changed", dataset);
	if (result->n_young)
		printf(", %llu left for next time",
		       (unsigned long long)result->n_young);
	putchar('\n');
}

static int print_txns(struct cli *cli, const struct incr_sync_result *result)
{
	for (size_t i = 0; i < result->n_txns; i++) {
		_cleanup_txn_ struct incr_txn_info info = { 0 };
		int r = incr_txn_find(cli->store, result->txns[i], &info,
				      &cli->err);

		if (r < 0)
			return r;
		out_txn(cli, &info);
	}
	return 0;
}

/* What is missing is told by who opens it. */
static int check_folder(struct cli *cli, const char *folder)
{
	struct stat st;

	if (stat(folder, &st) < 0 || S_ISDIR(st.st_mode))
		return 0;
	(void)fail_usage(&cli->err, folder, "this is no folder");
	fail_hint(&cli->err, "incrctl commit takes files");
	return INCR_E_INVALID;
}

static int run_sync(struct cli *cli, void *options)
{
	const struct sync_options *o = options;
	_cleanup_found_branch_ struct found_branch found = { 0 };
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	struct incr_sync_options sync = { 0 };
	struct incr_sync_result result;
	struct progress progress;
	int r = read_mode(cli, o->mode, &sync.mode);

	if (r == 0 && o->settle.value > SETTLE_MAX)
		r = fail_usage(&cli->err, NULL, "--settle is out of range");
	if (r == 0)
		r = txn_args_read(cli, &o->txn, INCR_UPDATE, &meta, &sync.txn);
	if (r == 0)
		r = check_folder(cli, cli->args[1]);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = find_branch(cli, cli->args[0], o->txn.branch, &found);
	if (r < 0)
		return r;

	progress_init(&progress, cli, "sync");
	sync.txn.dataset_id = found.dataset.id;
	sync.txn.branch = found.branch;
	sync.txn.has_expect = o->expect.is_set;
	sync.txn.expect = o->expect.value;
	sync.txn.skips_special = o->skips_special;
	sync.txn.progress = progress_draw;
	sync.txn.progress_closure = &progress;
	sync.directory = cli->args[1];
	sync.n_includes = o->includes.n;
	sync.includes = o->includes.items;
	sync.n_excludes = o->excludes.n;
	sync.excludes = o->excludes.items;
	sync.settle_ns = (int64_t)o->settle.value * 1000000000;
	sync.is_dry_run = o->is_dry_run;
	sync.changed = o->is_dry_run ? print_change : NULL;
	sync.changed_closure = cli;
	r = incr_sync(cli->store, &sync, &result, &cli->err);
	progress_clear(&progress);
	if (r < 0)
		return r;
	if (r == 0)
		return print_txns(cli, &result);
	if (!o->is_dry_run)
		print_nothing(cli, found.dataset.name, &result);
	return 0;
}

const struct verb verb_sync = {
	.name = "sync",
	.summary = "Turn a folder into the smallest transaction.",
	.synopsis = "DATASET DIR --mode mirror|append|update|snapshot "
		    "[OPTION]...",
	.details =
		"mirror    the dataset becomes the folder\n"
		"append    only paths that the dataset never had\n"
		"update    new and changed paths; nothing is removed\n"
		"snapshot  replace everything, if anything changed\n"
		"Nothing is committed when nothing changed.  Files whose size, "
		"times and inode are as\n"
		"they were at the last sync are not read again.",
	.tables = { txn_args_untyped_table, table },
	.options_size = sizeof(struct sync_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_sync,
};
