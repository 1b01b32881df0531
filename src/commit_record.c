/* The record of a commit, to bytes and back. */
#include "config.h"

#include "commit_record.h"

#include <stdlib.h>

/* No fact_branch or fact_txn is shorter: bounds counts before memory is taken. */
#define FACT_SIZE_MIN 8

void commit_record_release(struct commit_record *r)
{
	free(r->branches);
	free(r->txns);
	*r = (struct commit_record){ 0 };
}

int commit_record_encode(const struct commit_record *r, struct buf *out)
{
	size_t start = out->size;
	int e = buf_put_u32(out, 0);

	if (e == 0)
		e = buf_put_varint(out, r->n_branches);
	for (size_t i = 0; e == 0 && i < r->n_branches; i++)
		e = fact_encode_branch(&r->branches[i], out);
	if (e == 0)
		e = buf_put_varint(out, r->n_txns);
	for (size_t i = 0; e == 0 && i < r->n_txns; i++)
		e = fact_encode_txn(&r->txns[i], out);
	if (e == 0)
		e = buf_put_u8(out, r->has_build);
	if (e == 0 && r->has_build)
		e = fact_encode_build(&r->build, out);
	if (e < 0)
		return e;
	put_u32(out->data + start,
		(uint32_t)(out->size - start - COMMIT_RECORD_HEAD_OFF));
	return 0;
}

static int decode_head(struct cursor *c, struct commit_record *out)
{
	uint64_t n = cursor_varint(c);
	uint8_t has_build;

	if (c->is_bad || n > COMMIT_RECORD_TXNS_MAX ||
	    n > cursor_left(c) / FACT_SIZE_MIN)
		return INCR_E_CORRUPT;
	out->branches = calloc(n ? n : 1, sizeof(*out->branches));
	if (!out->branches)
		return INCR_E_NOMEM;
	for (; out->n_branches < n; out->n_branches++)
		if (fact_decode_branch(c, &out->branches[out->n_branches]) < 0)
			return INCR_E_CORRUPT;
	n = cursor_varint(c);
	if (c->is_bad || n > COMMIT_RECORD_TXNS_MAX ||
	    n > cursor_left(c) / FACT_SIZE_MIN)
		return INCR_E_CORRUPT;
	out->txns = calloc(n ? n : 1, sizeof(*out->txns));
	if (!out->txns)
		return INCR_E_NOMEM;
	for (; out->n_txns < n; out->n_txns++)
		if (fact_decode_txn(c, &out->txns[out->n_txns]) < 0)
			return INCR_E_CORRUPT;
	has_build = cursor_u8(c);
	if (has_build > 1)
		return INCR_E_CORRUPT;
	out->has_build = has_build;
	if (out->has_build && fact_decode_build(c, &out->build) < 0)
		return INCR_E_CORRUPT;
	return c->is_bad || cursor_left(c) ? INCR_E_CORRUPT : 0;
}

int commit_record_decode(const uint8_t *payload, size_t size,
			 struct commit_record *out)
{
	struct cursor c = cursor_over(payload, size);
	uint32_t head_size = cursor_u32(&c);
	const uint8_t *head = cursor_bytes(&c, head_size);
	struct commit_record record = { 0 };
	int r;

	if (!head)
		return INCR_E_CORRUPT;
	record.frames_off = COMMIT_RECORD_HEAD_OFF + head_size;
	record.frames_size = cursor_left(&c);
	c = cursor_over(head, head_size);
	r = decode_head(&c, &record);
	if (r < 0) {
		commit_record_release(&record);
		return r;
	}
	*out = record;
	return 0;
}
