/* Branches: named pointers to transactions of a dataset. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "name.h"
#include "store.h"

void incr_branch_info_release(struct incr_branch_info *info)
{
	free(info->name);
	free(info->parent);
	*info = (struct incr_branch_info){ 0 };
}

static int info_of(struct incr_store *st, const struct state_branch *b,
		   struct incr_branch_info *out, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_branch_info info = { .id = b->fact.id,
					 .dataset_id = b->fact.dataset_id,
					 .head = b->head,
					 .open_txn = b->open_txn };

	if (b->head) {
		struct state_txn t;
		int r = store_find_txn(st, b->head, &storage, &t, err);

		if (r < 0)
			return r;
		info.view_start = t.fact.view_start;
		info.view_files = t.fact.view_files;
		info.view_size = t.fact.view_size;
	}
	info.name = text_dup(b->fact.name);
	info.parent = b->fact.parent.size ? text_dup(b->fact.parent) : NULL;
	if (!info.name || (b->fact.parent.size && !info.parent)) {
		incr_branch_info_release(&info);
		return incr_fail_nomem(err);
	}
	*out = info;
	return 0;
}

int incr_branch_find(struct incr_store *st, uint64_t dataset_id,
		     const char *name, struct incr_branch_info *out_info,
		     struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch b = { 0 };
	int r = 0;

	if (name)
		r = name_check_branch(name, strlen(name), err);
	if (r == 0)
		r = store_find_branch(st, dataset_id, name, &storage, &b, err);
	return r < 0 ? r : info_of(st, &b, out_info, err);
}

int incr_branch_list(struct incr_store *st, uint64_t dataset_id,
		     incr_branch_fn fn, void *closure, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	_cleanup_buf_ struct buf dataset_storage = BUF_INIT;
	struct state_key k = state_key_of(STATE_BRANCH_NAME, dataset_id);
	struct state_dataset d;
	/* @fn may write: it is given what there is now */
	int r = store_find_dataset(st, dataset_id, &dataset_storage, &d, err);

	if (r == 0)
		r = index_collect(st->index, k.bytes, k.size, &it, err);
	if (r == 0)
		r = it->seek(it, "", 0, err);
	for (; r == 0; r = it->next(it, err)) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct cursor c =
			cursor_over(it->entry.value, it->entry.value_size);
		struct incr_branch_info info = { 0 };
		struct state_branch b = { 0 };

		r = state_branch(st->index, cursor_varint(&c), &storage, &b,
				 err);
		if (r == 1 || (r == 0 && b.is_deleted))
			continue; /* by @fn */
		if (r == 0)
			r = info_of(st, &b, &info, err);
		if (r < 0)
			return r;
		r = fn(closure, &info);
		incr_branch_info_release(&info);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

/* A transaction that a branch may stand at: committed, of this dataset. */
static int check_point(struct incr_store *st, uint64_t dataset_id, uint64_t at,
		       struct buf *storage, struct state_txn *out,
		       struct incr_error *err)
{
	char name[32];
	int r = store_find_txn(st, at, storage, out, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "t%llu", (unsigned long long)at);
	if (out->fact.dataset_id != dataset_id)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-transaction",
				 name,
				 "the transaction belongs to another dataset");
	if (out->status != INCR_COMMITTED)
		return incr_fail(err, INCR_E_CONFLICT, "not-committed", name,
				 "the transaction is not committed");
	return 0;
}

static int check_parent(struct incr_store *st, uint64_t dataset_id,
			const char *parent, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch b;

	return store_find_branch(st, dataset_id, parent, &storage, &b, err);
}

int incr_branch_create(struct incr_store *st, uint64_t dataset_id,
		       const char *name, const char *parent, uint64_t at,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT,
				 txn_storage = BUF_INIT;
	struct fact_branch f = { .dataset_id = dataset_id,
				 .name = text_of(name),
				 .parent = text_of(parent),
				 .at = at };
	struct state_dataset d;
	struct state_txn t;
	struct lock lock;
	uint64_t id;
	int r = name_check_new_branch(name, strlen(name), err);

	if (r == 0)
		r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = store_find_dataset(st, dataset_id, &storage, &d, err);
	if (r == 0) {
		r = state_branch_id(st->index, dataset_id, f.name, &id, err);
		r = r == 0 ? incr_fail(
				     err, INCR_E_EXISTS, "branch-exists", name,
				     "there is a branch of this name already") :
			     (r == 1 ? 0 : r);
	}
	if (r == 0 && parent)
		r = check_parent(st, dataset_id, parent, err);
	if (r == 0 && at) {
		r = check_point(st, dataset_id, at, &txn_storage, &t, err);
		f.parent_line = r == 0 ? t.fact.line : 0;
	}
	f.id = index_counters(st->index)->next_branch;
	f.line = index_counters(st->index)->next_line;
	f.time_ns = store_now(st);
	if (r == 0 && fact_encode_branch(&f, &payload) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = store_append(st, FACT_BRANCH_CREATED, &payload, NULL, err);
	return store_end_append(st, &lock, r, err);
}

int incr_branch_delete(struct incr_store *st, uint64_t dataset_id,
		       const char *name, struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT;
	struct state_branch b;
	struct lock branch_lock, lock;
	int r = store_find_branch(st, dataset_id, name, &storage, &b, err);

	if (r == 0)
		r = store_lock_branch(st, &b, true, &branch_lock, err);
	if (r < 0)
		return r;
	r = store_begin_append(st, &lock, err);
	if (r == 0) {
		r = store_find_free_branch(st, dataset_id, name, &storage, &b,
					   err);
		if (r == 0 && buf_put_varint(&payload, b.fact.id) < 0)
			r = incr_fail_nomem(err);
		if (r == 0)
			r = store_append(st, FACT_BRANCH_DELETED, &payload,
					 NULL, err);
		r = store_end_append(st, &lock, r, err);
	}
	lock_release(&branch_lock);
	return r;
}

static int reset_locked(struct incr_store *st, uint64_t dataset_id,
			const char *name, uint64_t to, struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT,
				 txn_storage = BUF_INIT;
	struct fact_reset f = { .to = to };
	struct state_branch b = { 0 };
	struct state_txn t = { 0 };
	int r = store_find_free_branch(st, dataset_id, name, &storage, &b, err);

	if (r == 0)
		r = check_point(st, dataset_id, to, &txn_storage, &t, err);
	if (r < 0)
		return r;
	f.branch_id = b.fact.id;
	f.line = index_counters(st->index)->next_line;
	f.parent_line = t.fact.line;
	f.time_ns = store_now(st);
	if (fact_encode_reset(&f, &payload) < 0)
		return incr_fail_nomem(err);
	return store_append(st, FACT_BRANCH_RESET, &payload, NULL, err);
}

int incr_branch_reset(struct incr_store *st, uint64_t dataset_id,
		      const char *name, uint64_t to, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch b;
	struct lock branch_lock, lock;
	int r = store_find_branch(st, dataset_id, name, &storage, &b, err);

	if (r == 0)
		r = store_lock_branch(st, &b, true, &branch_lock, err);
	if (r < 0)
		return r;
	r = store_begin_append(st, &lock, err);
	if (r == 0) {
		r = reset_locked(st, dataset_id, name, to, err);
		r = store_end_append(st, &lock, r, err);
	}
	lock_release(&branch_lock);
	return r;
}
