/* Committing: preconditions under the append lock, numbers, one record. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit.h"
#include "error.h"
#include "view.h"

/* Everything of one item that a look at the store gives. */
struct landing {
	struct buf storage; /* owned */
	struct state_branch
		branch; /* texts in storage; of a new branch only head and line */
	struct buf
		manifest; /* owned: the encoded descriptor of a manifest in a pack */
};

static void landings_release(struct landing *landings, size_t n)
{
	for (size_t i = 0; landings && i < n; i++) {
		buf_release(&landings[i].storage);
		buf_release(&landings[i].manifest);
	}
	free(landings);
}

int commit_branch_moved(uint64_t expect, uint64_t head, struct incr_error *err)
{
	char name[32];

	snprintf(name, sizeof(name), "t%" PRIu64, head);
	return incr_fail(err, INCR_E_CONFLICT, "branch-moved",
			 head ? name : "an empty branch",
			 "the branch is not at t%" PRIu64 " any more", expect);
}

/* The branch as it is now, or as it will be made. */
static int find_landing(struct incr_store *st, const struct commit_item *item,
			struct landing *landing, struct incr_error *err)
{
	struct state_branch *b = &landing->branch;
	uint64_t id;
	int r;

	if (!item->branch_id) {
		r = state_branch_id(st->index, item->dataset_id,
				    item->new_branch.name, &id, err);
		if (r == 0)
			return incr_fail(
				err, INCR_E_CONFLICT, "branch-moved", NULL,
				"the branch was made by somebody else meanwhile");
		*b = (struct state_branch){ .fact = item->new_branch,
					    .head = item->new_branch.at };
		return r < 0 ? r : 0;
	}
	r = state_branch(st->index, item->branch_id, &landing->storage, b, err);
	if (r == 1 || (r == 0 && b->is_deleted))
		return incr_fail(err, INCR_E_CONFLICT, "branch-moved", NULL,
				 "the branch was deleted meanwhile");
	if (r == 0)
		r = store_check_no_open(b, item->open_number, err);
	return r;
}

static int check_item(struct incr_store *st, struct commit_item *item,
		      struct landing *landing, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset d;
	int r = store_find_dataset(st, item->dataset_id, &storage, &d, err);

	if (r == 0)
		r = find_landing(st, item, landing, err);
	if (r < 0)
		return r;
	if (item->has_expect && landing->branch.head != item->expect)
		return commit_branch_moved(item->expect, landing->branch.head,
					   err);
	if (item->content->relative_to &&
	    item->content->relative_to != landing->branch.head)
		return commit_branch_moved(item->content->relative_to,
					   landing->branch.head, err);
	if (item->effect.is_known && item->effect.head == landing->branch.head)
		return 0;
	return commit_check(st, item, landing->branch.head, err);
}

static int check_items(struct incr_store *st, struct commit_request *request,
		       struct landing *landings, struct incr_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->n_items; i++)
		r = check_item(st, &request->items[i], &landings[i], err);
	return r;
}

static int view_start_of(struct incr_store *st, const struct commit_item *item,
			 uint64_t head, uint64_t *out_start,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r;

	if (item->type == INCR_SNAPSHOT || !head) {
		*out_start = item->number;
		return 0;
	}
	r = store_find_txn(st, head, &storage, &t, err);
	if (r == 0)
		*out_start = t.fact.view_start;
	return r;
}

static int fill_fact(struct incr_store *st,
		     const struct commit_request *request,
		     const struct commit_item *item, struct landing *landing,
		     struct fact_txn *f, struct incr_error *err)
{
	const struct ingest_result *content = item->content;
	int r;

	*f = (struct fact_txn){
		.number = item->number,
		.dataset_id = item->dataset_id,
		.branch_id = landing->branch.fact.id,
		.line = landing->branch.fact.line,
		.parent = item->before ? item->before->number :
					 landing->branch.head,
		.type = item->type,
		.origin = item->origin,
		.user = item->user,
		.message = item->message,
		.pairs = item->pairs,
		.opened_ns = item->opened_ns,
		.closed_ns = store_now(st),
		.n_files = content->n_put,
		.n_removed = content->n_removed,
		.size = content->size,
		.view_files = item->effect.view_files,
		.view_size = item->effect.view_size,
		.build = request->build,
		.is_relative = content->relative_to != 0,
	};
	r = view_start_of(st, item, landing->branch.head, &f->view_start, err);
	if (r < 0)
		return r;
	if (content->is_inline) {
		f->manifest_kind = FACT_MANIFEST_INLINE;
		f->manifest =
			(struct text){ (const char *)content->manifest.data,
				       content->manifest.size };
		return 0;
	}
	f->manifest_kind = FACT_MANIFEST_PACK;
	if (content_encode(&content->manifest_content, &landing->manifest) < 0)
		return incr_fail_nomem(err);
	f->manifest = (struct text){ (const char *)landing->manifest.data,
				     landing->manifest.size };
	return 0;
}

/* Numbers for transactions and for branches and lines that the commit makes. */
static void number_items(struct incr_store *st, struct commit_request *request,
			 struct landing *landings)
{
	struct index_counters next = *index_counters(st->index);

	for (size_t i = 0; i < request->n_items; i++) {
		struct commit_item *item = &request->items[i];

		item->number = item->open_number ? item->open_number :
						   next.next_txn++;
		if (item->branch_id)
			continue;
		landings[i].branch.fact.id = next.next_branch++;
		landings[i].branch.fact.line = next.next_line++;
		landings[i].branch.fact.dataset_id = item->dataset_id;
		landings[i].branch.fact.time_ns = store_now(st);
	}
}

static int append_record(struct incr_store *st, struct commit_request *request,
			 struct landing *landings, struct commit_record *record,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf head = BUF_INIT, frames = BUF_INIT,
				 payload = BUF_INIT;
	int r = 0;

	number_items(st, request, landings);
	for (size_t i = 0; r == 0 && i < request->n_items; i++) {
		const struct ingest_result *content = request->items[i].content;
		struct fact_txn *f = &record->txns[record->n_txns];

		r = fill_fact(st, request, &request->items[i], &landings[i], f,
			      err);
		if (r < 0)
			return r;
		record->n_txns++;
		f->frames_off = frames.size;
		if (!request->items[i].branch_id)
			record->branches[record->n_branches++] =
				landings[i].branch.fact;
		if (content->is_inline &&
		    buf_put(&frames, content->inline_frames.data,
			    content->inline_frames.size) < 0)
			return incr_fail_nomem(err);
	}
	if (request->encode_build) {
		record->has_build = true;
		r = request->encode_build(request->closure, request,
					  &record->build, &payload, err);
		if (r == 0)
			r = store_check_fact(st, &payload, err);
		if (r < 0)
			return r;
		record->build.payload =
			(struct text){ (const char *)payload.data,
				       payload.size };
	}
	if (commit_record_encode(record, &head) < 0)
		return incr_fail_nomem(err);
	return store_append(st, FACT_COMMIT, &head, &frames, err);
}

int commit_append(struct incr_store *st, struct commit_request *request,
		  struct incr_error *err)
{
	struct commit_record record = { 0 };
	struct landing *landings;
	uint64_t n_appended = st->n_appended;
	struct lock lock;
	int r;

	if (request->n_items > COMMIT_RECORD_TXNS_MAX)
		return incr_fail(err, INCR_E_RANGE, "too-many-outputs", NULL,
				 "one commit may have %d transactions",
				 COMMIT_RECORD_TXNS_MAX);
	landings = calloc(request->n_items + 1, sizeof(*landings));
	record.txns = calloc(request->n_items + 1, sizeof(*record.txns));
	record.branches =
		calloc(request->n_items + 1, sizeof(*record.branches));
	if (!landings || !record.txns || !record.branches) {
		r = incr_fail_nomem(err);
		goto undo;
	}
	/* once without the lock: most of the work is then done already */
	r = check_items(st, request, landings, err);
	if (r < 0)
		goto undo;
	r = store_begin_append(st, &lock, err);
	if (r < 0)
		goto undo;
	r = check_items(st, request, landings, err);
	if (r == 0)
		r = append_record(st, request, landings, &record, err);
	for (size_t i = 0; i < request->n_items; i++)
		request->items[i].content->is_recorded = st->n_appended !=
							 n_appended;
	r = store_end_append(st, &lock, r, err);
undo:
	landings_release(landings, request->n_items);
	commit_record_release(&record);
	return r;
}
