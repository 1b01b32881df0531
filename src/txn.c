/* Transactions as facts: found, listed, followed along a path. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "store.h"

const char *incr_txn_type_name(enum incr_txn_type type)
{
	static const char *const names[] = { [INCR_SNAPSHOT] = "SNAPSHOT",
					     [INCR_APPEND] = "APPEND",
					     [INCR_UPDATE] = "UPDATE",
					     [INCR_DELETE] = "DELETE" };

	return type >= INCR_SNAPSHOT && type <= INCR_DELETE ? names[type] :
							      "unknown";
}

const char *incr_txn_status_name(enum incr_txn_status status)
{
	static const char *const names[] = { [INCR_OPEN] = "OPEN",
					     [INCR_COMMITTED] = "COMMITTED",
					     [INCR_ABORTED] = "ABORTED",
					     [INCR_LOST] = "LOST" };

	return status >= INCR_OPEN && status <= INCR_LOST ? names[status] :
							    "unknown";
}

void incr_txn_info_release(struct incr_txn_info *info)
{
	free(info->dataset);
	free(info->branch);
	free(info->origin);
	free(info->user);
	free(info->message);
	incr_pairs_release(&info->meta);
	*info = (struct incr_txn_info){ 0 };
}

/* Names as they are now; those of deleted things are still known. */
static int add_names(struct incr_store *st, struct incr_txn_info *info,
		     struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset d;
	struct state_branch b;
	int r = state_dataset(st->index, info->dataset_id, &storage, &d, err);

	if (r < 0)
		return r;
	info->dataset = text_dup(r == 0 ? d.fact.name : text_of("?"));
	r = state_branch(st->index, info->branch_id, &storage, &b, err);
	if (r < 0)
		return r;
	info->branch = text_dup(r == 0 ? b.fact.name : text_of("?"));
	if (!info->dataset || !info->branch)
		return incr_fail_nomem(err);
	return 0;
}

static int info_of(struct incr_store *st, const struct state_txn *t,
		   struct incr_txn_info *out, struct incr_error *err)
{
	const struct fact_txn *f = &t->fact;
	struct incr_txn_info info = {
		.number = f->number,
		.dataset_id = f->dataset_id,
		.branch_id = f->branch_id,
		.type = f->type,
		.status = t->status,
		.opened_ns = f->opened_ns,
		.closed_ns = f->closed_ns,
		.parent = f->parent,
		.view_start = f->view_start,
		.n_files = f->n_files,
		.n_removed = f->n_removed,
		.size = f->size,
		.view_files = f->view_files,
		.view_size = f->view_size,
		.build = f->build,
	};
	int r = fact_pairs_decode(f->pairs, &info.meta, err);

	if (r == 0) {
		info.origin = text_dup(f->origin);
		info.user = text_dup(f->user);
		info.message = text_dup(f->message);
		if (!info.origin || !info.user || !info.message)
			r = incr_fail_nomem(err);
	}
	if (r == 0)
		r = add_names(st, &info, err);
	if (r < 0) {
		incr_txn_info_release(&info);
		return r;
	}
	*out = info;
	return 0;
}

int incr_txn_find(struct incr_store *st, uint64_t number,
		  struct incr_txn_info *out_info, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r = store_find_txn(st, number, &storage, &t, err);

	return r < 0 ? r : info_of(st, &t, out_info, err);
}

int incr_txn_log(struct incr_store *st, uint64_t head, uint64_t after,
		 incr_txn_fn fn, void *closure, struct incr_error *err)
{
	int r = 0;

	while (r == 0 && head && head != after) {
		struct incr_txn_info info = { 0 };

		r = incr_txn_find(st, head, &info, err);
		if (r < 0)
			return r;
		/* parents have smaller numbers: checked when the record was decoded */
		head = info.parent;
		r = fn(closure, &info);
		incr_txn_info_release(&info);
	}
	return r;
}

int incr_txn_list_open(struct incr_store *st, incr_txn_fn fn, void *closure,
		       struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	uint8_t kind = STATE_OPEN;
	/* @fn may write: it is given what there is now */
	int r = index_collect(st->index, &kind, 1, &it, err);

	if (r == 0)
		r = it->seek(it, "", 0, err);
	for (; r == 0; r = it->next(it, err)) {
		struct incr_txn_info info = { 0 };

		r = incr_txn_find(st, get_be64(it->entry.key + 1), &info, err);
		if (r < 0)
			return r;
		r = fn(closure, &info);
		incr_txn_info_release(&info);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

struct at_time {
	int64_t time_ns;
	uint64_t number;
};

static int stop_at_time(void *closure, const struct incr_txn_info *info)
{
	struct at_time *a = closure;

	/* when one that is lost was committed, nobody knows */
	if (info->closed_ns > a->time_ns || info->status == INCR_LOST)
		return 0;
	a->number = info->number;
	return 1;
}

int incr_txn_at_time(struct incr_store *st, uint64_t head, int64_t time_ns,
		     uint64_t *out_number, struct incr_error *err)
{
	struct at_time a = { .time_ns = time_ns };
	int r = incr_txn_log(st, head, 0, stop_at_time, &a, err);

	if (r < 0)
		return r;
	*out_number = a.number;
	return 0;
}

int incr_txn_is_on_path(struct incr_store *st, uint64_t number, uint64_t head,
			bool *out_is_on_path, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct lineage lineage = { 0 };
	struct state_txn t, h;
	uint64_t line, head_line, dataset_id;
	int r;

	if (!number || !head) {
		*out_is_on_path = false;
		return 0;
	}
	r = store_find_txn(st, number, &storage, &t, err);
	if (r < 0)
		return r;
	line = t.fact.line;
	dataset_id = t.fact.dataset_id;
	r = store_find_txn(st, head, &storage, &h, err);
	if (r < 0)
		return r;
	head_line = h.fact.line;
	/* what is not committed lies on no path */
	if (h.fact.dataset_id != dataset_id || t.status != INCR_COMMITTED ||
	    h.status != INCR_COMMITTED) {
		*out_is_on_path = false;
		return 0;
	}
	r = lineage_of(st->index, head_line, head, 0, &lineage, err);
	if (r < 0)
		return r;
	*out_is_on_path = lineage_holds(&lineage, line, number);
	lineage_release(&lineage);
	return 0;
}
