/*
 * A transaction, as text and as JSON.
 */
#include "config.h"

#include "out_txn.h"

#include "cleanup.h"
#include "out.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

json_t *out_txn_json(const struct cli *cli, const struct incr_txn_info *info)
{
	json_t *json = json_object();

	out_put(json, "transaction", out_id('t', info->number));
	out_put(json, "rid", out_rid(cli->store, "transaction", info->number));
	out_put(json, "dataset", out_text(info->dataset));
	out_put(json, "branch", out_text(info->branch));
	out_put(json, "type", out_text(incr_txn_type_name(info->type)));
	out_put(json, "status", out_text(incr_txn_status_name(info->status)));
	out_put(json, "origin", out_text(info->origin));
	out_put(json, "time",
		out_time(info->closed_ns ? info->closed_ns : info->opened_ns));
	out_put(json, "files", out_u64(info->n_files));
	out_put(json, "removed", out_u64(info->n_removed));
	out_put(json, "bytes", out_u64(info->size));
	out_put(json, "message", out_text_or_null(info->message));
	out_put(json, "meta", out_pairs(&info->meta));
	out_put(json, "build", out_id('b', info->build));
	out_put(json, "user", out_text(info->user));
	out_put(json, "parent", out_id('t', info->parent));
	return json;
}

char *out_txn_counts(enum incr_txn_type type, uint64_t n_files, uint64_t size,
		     uint64_t n_removed)
{
	struct text files, bytes, removed;
	char *counts;
	int r;

	(void)text_count(n_files, "file", "files", &files);
	(void)text_size(size, &bytes);
	if (type == INCR_DELETE)
		r = asprintf(&counts, "%s removed",
			     text_count(n_removed, "file", "files", &removed));
	else if (n_removed > 0)
		r = asprintf(&counts, "%s, %s, %s removed", files.str,
			     bytes.str,
			     text_count(n_removed, "file", "files", &removed));
	else
		r = asprintf(&counts, "%s, %s", files.str, bytes.str);
	return r < 0 ? NULL : counts;
}

void out_txn(const struct cli *cli, const struct incr_txn_info *info)
{
	_cleanup_free_ char *counts = NULL;

	if (cli->common.is_json) {
		out_line(out_txn_json(cli, info));
		return;
	}
	if (cli->common.is_quiet)
		return;
	counts = out_txn_counts(info->type, info->n_files, info->size,
				info->n_removed);
	printf("t%" PRIu64 " %s %s: %s\n", info->number,
	       incr_txn_type_name(info->type), info->dataset,
	       counts ? counts : "");
}
