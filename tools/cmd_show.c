/*
 * incrctl show: one transaction and its files.
 */
#include "config.h"

#include "changes.h"
#include "cleanup.h"
#include "cli.h"
#include "find.h"
#include "out.h"
#include "out_txn.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

static int add_entry(void *closure, enum incr_change change,
		     const struct incr_node *node, uint64_t txn)
{
	json_t *entries = closure, *entry = out_node(node);

	(void)txn;
	out_put(entry, "status", json_string(out_change_name(change)));
	(void)json_array_append_new(entries, entry);
	return 0;
}

static int print_json(struct cli *cli, const struct incr_txn_info *info)
{
	json_t *json = out_txn_json(cli, info);
	int r = 0;

	if (info->status == INCR_COMMITTED) {
		json_t *entries = json_array();

		r = changes_walk(cli, info->dataset_id, info->parent,
				 info->number, add_entry, entries);
		out_put(json, "entries", entries);
	} else {
		out_put(json, "entries", NULL);
	}
	if (r < 0)
		json_decref(json);
	else
		out_line(json);
	return r;
}

static void print_head(const struct cli *cli, const struct incr_txn_info *info)
{
	_cleanup_free_ char *counts = out_txn_counts(
		info->type, info->n_files, info->size, info->n_removed);
	struct text time;

	if (info->status == INCR_LOST) {
		printf("transaction: t%" PRIu64 " LOST\n", info->number);
		printf("dataset:     %s:%s\n", info->dataset, info->branch);
		return;
	}
	printf("transaction: t%" PRIu64 " %s %s\n", info->number,
	       incr_txn_type_name(info->type),
	       incr_txn_status_name(info->status));
	printf("rid:         ri.incr.%s.transaction.%" PRIu64 "\n",
	       incr_store_uuid(cli->store), info->number);
	printf("dataset:     %s:%s\n", info->dataset, info->branch);
	printf("time:        %s\n",
	       text_time(info->closed_ns ? info->closed_ns : info->opened_ns,
			 &time));
	printf("by:          %s (%s)\n", info->user, info->origin);
	if (info->build)
		printf("build:       b%" PRIu64 "\n", info->build);
	printf("files:       %s\n", counts ? counts : "");
	for (size_t i = 0; i < info->meta.n; i++)
		printf("meta:        %s=%s\n", info->meta.items[i].key,
		       info->meta.items[i].value);
	if (info->message && *info->message)
		printf("\n%s\n", info->message);
}

static int run_show(struct cli *cli, void *options)
{
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	struct changes_print print = { .cli = cli, .form = CHANGES_LONG };
	uint64_t number;
	int r;

	(void)options;
	r = find_txn_number(cli, cli->args[0], &number);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = incr_txn_find(cli->store, number, &info, &cli->err);
	if (r < 0)
		return r;
	if (cli->common.is_json)
		return print_json(cli, &info);

	if (!cli->common.is_nul)
		print_head(cli, &info);
	if (info.status != INCR_COMMITTED)
		return 0;
	if (!cli->common.is_nul && info.n_files + info.n_removed > 0)
		(void)putchar('\n');
	return changes_walk(cli, info.dataset_id, info.parent, info.number,
			    changes_print, &print);
}

const struct verb verb_show = {
	.name = "show",
	.summary = "Show one transaction and the files that it changed.",
	.synopsis = "tN [-z]",
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};
