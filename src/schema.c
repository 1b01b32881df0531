/* Schemas: texts that belong to a view, versioned with it. */
#include "config.h"

#include <string.h>

#include "error.h"
#include "store.h"

#define SCHEMA_SIZE_MAX (UINT32_C(1) << 20)

int incr_schema_set(struct incr_store *st, uint64_t dataset_id,
		    const char *branch, const char *text, size_t length,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT;
	struct fact_schema f = { .dataset_id = dataset_id,
				 .text = { text, length } };
	struct state_branch b;
	struct state_txn t;
	struct lock lock;
	int r;

	if (length > SCHEMA_SIZE_MAX)
		return incr_fail(err, INCR_E_RANGE, "schema-too-large", NULL,
				 "a schema may have 1 MiB at most");
	r = store_begin_append(st, &lock, err);
	if (r < 0)
		return r;
	r = store_find_branch(st, dataset_id, branch, &storage, &b, err);
	if (r == 0) {
		/* the view's, not the branch's: a branch at the same head has the same view */
		f.line = b.fact.line;
		f.after = b.head;
	}
	if (r == 0 && b.head) {
		r = store_find_txn(st, b.head, &storage, &t, err);
		f.line = r == 0 ? t.fact.line : 0;
	}
	if (r == 0 && fact_encode_schema(&f, &payload) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = store_append(st, FACT_SCHEMA, &payload, NULL, err);
	return store_end_append(st, &lock, r, err);
}

/* Newest schema that was set on @line at or before @up_to. */
static int find_on_line(struct incr_store *st, uint64_t dataset_id,
			struct lineage_part part, char **out_text,
			size_t *out_length, struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_SCHEMA, dataset_id);
	size_t fixed;
	int r;

	state_key_number(&k, part.line);
	fixed = k.size;
	state_key_number(&k, ~part.up_to);
	r = index_first(st->index, k.bytes, k.size, fixed, &value, err);
	if (r)
		return r;
	*out_text =
		text_dup((struct text){ (const char *)value.data, value.size });
	if (!*out_text)
		return incr_fail_nomem(err);
	*out_length = value.size;
	return 0;
}

int incr_schema_get(struct incr_store *st, uint64_t dataset_id, uint64_t txn,
		    char **out_text, size_t *out_length, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct lineage lineage = { 0 };
	struct state_txn t = { 0 };
	int r;

	if (txn) {
		r = store_find_txn(st, txn, &storage, &t, err);
		if (r < 0)
			return r;
	} else {
		/* a dataset without transactions may have a schema already */
		struct state_branch b;

		r = store_find_branch(st, dataset_id, NULL, &storage, &b, err);
		if (r < 0)
			return r;
		t.fact.line = b.fact.line;
	}
	r = lineage_of(st->index, t.fact.line, txn, 0, &lineage, err);
	if (r < 0)
		return r;
	r = 1;
	for (size_t i = 0; r == 1 && i < lineage.n; i++)
		r = find_on_line(st, dataset_id, lineage.parts[i], out_text,
				 out_length, err);
	lineage_release(&lineage);
	return r;
}
