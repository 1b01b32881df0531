/* Datasets: made, found, listed, renamed, deleted. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "name.h"
#include "store.h"

void incr_dataset_info_release(struct incr_dataset_info *info)
{
	free(info->name);
	free(info->description);
	incr_pairs_release(&info->meta);
	*info = (struct incr_dataset_info){ 0 };
}

static int info_of(const struct state_dataset *d, struct incr_dataset_info *out,
		   struct incr_error *err)
{
	struct incr_dataset_info info = { .id = d->fact.id,
					  .created_ns = d->fact.time_ns };
	int r = fact_pairs_decode(d->fact.pairs, &info.meta, err);

	if (r < 0)
		return r;
	info.name = text_dup(d->fact.name);
	info.description = text_dup(d->fact.description);
	if (!info.name || !info.description) {
		incr_dataset_info_release(&info);
		return incr_fail_nomem(err);
	}
	*out = info;
	return 0;
}

int incr_dataset_by_id(struct incr_store *st, uint64_t id,
		       struct incr_dataset_info *out_info,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset d;
	int r = store_find_dataset(st, id, &storage, &d, err);

	return r < 0 ? r : info_of(&d, out_info, err);
}

int incr_dataset_find(struct incr_store *st, const char *name,
		      struct incr_dataset_info *out_info,
		      struct incr_error *err)
{
	uint64_t id;
	int r = name_check_dataset(name, strlen(name), err);

	if (r < 0)
		return r;
	r = state_dataset_id(st->index, text_of(name), &id, err);
	if (r == 1) {
		incr_fail(err, INCR_E_NOTFOUND, "no-such-dataset", name,
			  "no such dataset");
		incr_hint(err,
			  "incrctl dataset create %s makes it, incrctl "
			  "dataset list shows what there is",
			  name);
		return INCR_E_NOTFOUND;
	}
	return r < 0 ? r : incr_dataset_by_id(st, id, out_info, err);
}

int incr_dataset_list(struct incr_store *st, incr_dataset_fn fn, void *closure,
		      struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	uint8_t kind = STATE_DATASET_NAME;
	/* @fn may write: it is given what there is now */
	int r = index_collect(st->index, &kind, 1, &it, err);

	if (r == 0)
		r = it->seek(it, "", 0, err);
	for (; r == 0; r = it->next(it, err)) {
		struct cursor c =
			cursor_over(it->entry.value, it->entry.value_size);
		struct incr_dataset_info info = { 0 };
		struct incr_error why = INCR_ERROR_INIT;

		r = incr_dataset_by_id(st, cursor_varint(&c), &info, &why);
		if (r == INCR_E_NOTFOUND) {
			incr_error_release(&why);
			continue; /* deleted by @fn */
		}
		if (r < 0)
			return incr_fail_with(err, r, &why);
		r = fn(closure, &info);
		incr_dataset_info_release(&info);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

static int check_name_is_free(struct incr_store *st, const char *name,
			      struct incr_error *err)
{
	uint64_t id;
	int r = state_dataset_id(st->index, text_of(name), &id, err);

	if (r == 0)
		return incr_fail(err, INCR_E_EXISTS, "dataset-exists", name,
				 "there is a dataset of this name already");
	return r < 0 ? r : 0;
}

int incr_dataset_create(struct incr_store *st, const char *name,
			const char *description, const struct incr_pairs *meta,
			uint64_t *out_id, struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, pairs = BUF_INIT;
	struct incr_pairs none = { 0 };
	struct fact_dataset f = { .name = text_of(name),
				  .description = text_of(description) };
	struct lock lock;
	char user[256];
	int r = name_check_new_dataset(name, strlen(name), err);

	if (r == 0)
		r = fact_check_text("the description", description, err);
	if (r == 0)
		r = fact_pairs_check(meta ? meta : &none, false, err);
	if (r < 0)
		return r;
	if (fact_pairs_encode(meta ? meta : &none, &pairs) < 0)
		return incr_fail_nomem(err);
	store_user(st, user, sizeof(user));
	f.user = text_of(user);
	f.pairs = (struct text){ (const char *)pairs.data, pairs.size };
	r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = check_name_is_free(st, name, err);
	f.id = index_counters(st->index)->next_dataset;
	f.branch_id = index_counters(st->index)->next_branch;
	f.line = index_counters(st->index)->next_line;
	f.time_ns = store_now(st);
	if (r == 0 && fact_encode_dataset(&f, &payload) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = store_append(st, FACT_DATASET_CREATED, &payload, NULL, err);
	r = store_end_append(st, &lock, r, err);
	if (r == 0 && out_id)
		*out_id = f.id;
	return r;
}

int incr_dataset_rename(struct incr_store *st, uint64_t id,
			const char *new_name, struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT;
	struct state_dataset d;
	struct lock lock;
	int r = name_check_new_dataset(new_name, strlen(new_name), err);

	if (r == 0 && (buf_put_varint(&payload, id) < 0 ||
		       buf_put_text(&payload, text_of(new_name)) < 0))
		r = incr_fail_nomem(err);
	if (r == 0)
		r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = store_find_dataset(st, id, &storage, &d, err);
	if (r == 0)
		r = check_name_is_free(st, new_name, err);
	if (r == 0)
		r = store_append(st, FACT_DATASET_RENAMED, &payload, NULL, err);
	return store_end_append(st, &lock, r, err);
}

/* A branch that a build, a commit or an OPEN transaction uses keeps its dataset. */
static int check_unused(void *closure, const struct incr_branch_info *info)
{
	struct incr_error *err = closure;
	char name[32];

	if (!info->open_txn)
		return 0;
	snprintf(name, sizeof(name), "t%" PRIu64, info->open_txn);
	return incr_fail(err, INCR_E_CONFLICT, "open-transaction", name,
			 "the dataset has an open transaction");
}

static int check_not_locked(struct incr_store *st,
			    const struct state_dataset *d,
			    struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key k = state_key_of(STATE_BRANCH_NAME, d->fact.id);
	char name[512];
	int r = index_collect(st->index, k.bytes, k.size, &it, err);

	snprintf(name, sizeof(name), "%.*s", (int)d->fact.name.size,
		 d->fact.name.data);
	if (r == 0)
		r = it->seek(it, "", 0, err);
	for (; r == 0; r = it->next(it, err)) {
		struct cursor c =
			cursor_over(it->entry.value, it->entry.value_size);

		if (lock_is_held(st->io, st->dirfd,
				 LOCK_BRANCH(cursor_varint(&c))))
			return incr_fail(
				err, INCR_E_BUSY, "busy", name,
				"a build or commit is using the dataset");
	}
	return r < 0 ? r : 0;
}

int incr_dataset_delete(struct incr_store *st, uint64_t id,
			struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT;
	struct state_dataset d;
	struct lock lock;
	int r;

	if (buf_put_varint(&payload, id) < 0)
		return incr_fail_nomem(err);
	r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = store_find_dataset(st, id, &storage, &d, err);
	if (r == 0)
		r = incr_branch_list(st, id, check_unused, err, err);
	if (r == 0)
		r = check_not_locked(st, &d, err);
	if (r == 0)
		r = store_append(st, FACT_DATASET_DELETED, &payload, NULL, err);
	return store_end_append(st, &lock, r, err);
}

static struct incr_pair *find_pair(struct incr_pairs *pairs, const char *key)
{
	for (size_t i = 0; i < pairs->n; i++)
		if (!strcmp(pairs->items[i].key, key))
			return &pairs->items[i];
	return NULL;
}

static int set_pair(struct incr_pairs *pairs, const struct incr_pair *change)
{
	struct incr_pair *p = find_pair(pairs, change->key);
	struct incr_pair *grown;
	char *value;

	if (!change->value) {
		if (!p)
			return 0;
		free(p->key);
		free(p->value);
		pairs->n--;
		memmove(p, p + 1,
			(size_t)(pairs->items + pairs->n - p) * sizeof(*p));
		return 0;
	}
	value = strdup(change->value);
	if (!value)
		return INCR_E_NOMEM;
	if (p) {
		free(p->value);
		p->value = value;
		return 0;
	}
	grown = realloc(pairs->items, (pairs->n + 1) * sizeof(*grown));
	if (grown) {
		pairs->items = grown;
		grown[pairs->n].key = strdup(change->key);
	}
	if (!grown || !grown[pairs->n].key) {
		free(value);
		return INCR_E_NOMEM;
	}
	grown[pairs->n++].value = value;
	return 0;
}

int incr_dataset_set_meta(struct incr_store *st, uint64_t id,
			  const struct incr_pairs *meta, struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, encoded = BUF_INIT;
	struct incr_dataset_info info = { 0 };
	struct lock lock;
	int r = fact_pairs_check(meta, true, err);

	if (r == 0)
		r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = incr_dataset_by_id(st, id, &info, err);
	for (size_t i = 0; r == 0 && i < meta->n; i++)
		if (set_pair(&info.meta, &meta->items[i]) < 0)
			r = incr_fail_nomem(err);
	if (r == 0)
		r = fact_pairs_check(&info.meta, false, err);
	if (r == 0 &&
	    (fact_pairs_encode(&info.meta, &encoded) < 0 ||
	     buf_put_varint(&payload, id) < 0 ||
	     buf_put_string(&payload, encoded.data, encoded.size) < 0))
		r = incr_fail_nomem(err);
	if (r == 0)
		r = store_append(st, FACT_DATASET_META, &payload, NULL, err);
	incr_dataset_info_release(&info);
	return store_end_append(st, &lock, r, err);
}
