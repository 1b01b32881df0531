/* Keys and values of the index: what the log amounts to. */
#include "config.h"

#include "state.h"

#include <string.h>

#include "error.h"

#define TRY(call)                            \
	do {                                 \
		if ((call) < 0)              \
			return INCR_E_NOMEM; \
	} while (0)

void state_key_start(struct state_key *k, enum state_kind kind)
{
	k->bytes[0] = (uint8_t)kind;
	k->size = 1;
}

void state_key_bytes(struct state_key *k, const void *data, size_t size)
{
	if (size > sizeof(k->bytes) - k->size)
		size = sizeof(k->bytes) - k->size;
	if (size)
		memcpy(k->bytes + k->size, data, size);
	k->size += size;
}

void state_key_number(struct state_key *k, uint64_t v)
{
	uint8_t bytes[8];

	put_be64(bytes, v);
	state_key_bytes(k, bytes, sizeof(bytes));
}

struct state_key state_key_of(enum state_kind kind, uint64_t number)
{
	struct state_key k;

	state_key_start(&k, kind);
	state_key_number(&k, number);
	return k;
}

static int get(struct index *ix, const struct state_key *k, struct buf *storage,
	       struct cursor *out_cursor, struct incr_error *err)
{
	int r = index_get(ix, k->bytes, k->size, storage, err);

	if (r == 0)
		*out_cursor = cursor_over(storage->data, storage->size);
	return r;
}

/* A value whose bytes passed the table's checksum and still do not parse: our index is wrong. */
static int bad_value(const struct state_key *k, struct incr_error *err)
{
	return incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
			 "an index entry of kind '%c' does not parse",
			 k->bytes[0]);
}

static int put(struct index *ix, const struct state_key *k,
	       const struct buf *value, struct incr_error *err)
{
	return index_put(ix, k->bytes, k->size, value->data, value->size, err);
}

/* ---- datasets ---- */

int state_dataset(struct index *ix, uint64_t id, struct buf *storage,
		  struct state_dataset *out, struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_DATASET, id);
	struct state_dataset d = { 0 };
	struct cursor c;
	int r = get(ix, &k, storage, &c, err);

	if (r != 0)
		return r;
	d.is_deleted = cursor_u8(&c) != 0;
	if (fact_decode_dataset(&c, &d.fact) < 0)
		return bad_value(&k, err);
	*out = d;
	return 0;
}

int state_put_dataset(struct index *ix, const struct state_dataset *d,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_DATASET, d->fact.id);

	if (buf_put_u8(&value, d->is_deleted) < 0 ||
	    fact_encode_dataset(&d->fact, &value) < 0)
		return incr_fail_nomem(err);
	return put(ix, &k, &value, err);
}

static int get_id(struct index *ix, const struct state_key *k, uint64_t *out_id,
		  struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct cursor c;
	uint64_t id;
	int r = get(ix, k, &storage, &c, err);

	if (r != 0)
		return r;
	id = cursor_varint(&c);
	if (c.is_bad)
		return bad_value(k, err);
	*out_id = id;
	return 0;
}

int state_dataset_id(struct index *ix, struct text name, uint64_t *out_id,
		     struct incr_error *err)
{
	struct state_key k;

	state_key_start(&k, STATE_DATASET_NAME);
	state_key_bytes(&k, name.data, name.size);
	return get_id(ix, &k, out_id, err);
}

/* ---- branches and lines ---- */

int state_branch(struct index *ix, uint64_t id, struct buf *storage,
		 struct state_branch *out, struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_BRANCH, id);
	struct state_branch b = { 0 };
	struct cursor c;
	int r = get(ix, &k, storage, &c, err);

	if (r != 0)
		return r;
	b.is_deleted = cursor_u8(&c) != 0;
	b.head = cursor_varint(&c);
	b.open_txn = cursor_varint(&c);
	if (fact_decode_branch(&c, &b.fact) < 0)
		return bad_value(&k, err);
	*out = b;
	return 0;
}

int state_put_branch(struct index *ix, const struct state_branch *b,
		     struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_BRANCH, b->fact.id);

	if (buf_put_u8(&value, b->is_deleted) < 0 ||
	    buf_put_varint(&value, b->head) < 0 ||
	    buf_put_varint(&value, b->open_txn) < 0 ||
	    fact_encode_branch(&b->fact, &value) < 0)
		return incr_fail_nomem(err);
	return put(ix, &k, &value, err);
}

int state_branch_id(struct index *ix, uint64_t dataset_id, struct text name,
		    uint64_t *out_id, struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_BRANCH_NAME, dataset_id);

	state_key_bytes(&k, name.data, name.size);
	return get_id(ix, &k, out_id, err);
}

int state_line(struct index *ix, uint64_t line, struct state_line *out,
	       struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_key k = state_key_of(STATE_LINE, line);
	struct state_line l;
	struct cursor c;
	int r = get(ix, &k, &storage, &c, err);

	if (r != 0)
		return r;
	l.parent = cursor_varint(&c);
	l.at = cursor_varint(&c);
	if (c.is_bad || l.parent >= line)
		return bad_value(&k, err);
	*out = l;
	return 0;
}

int state_put_line(struct index *ix, uint64_t line, struct state_line l,
		   struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_LINE, line);

	if (buf_put_varint(&value, l.parent) < 0 ||
	    buf_put_varint(&value, l.at) < 0)
		return incr_fail_nomem(err);
	return put(ix, &k, &value, err);
}

void lineage_release(struct lineage *l)
{
	free(l->parts);
	*l = (struct lineage){ 0 };
}

static int lineage_add(struct lineage *l, uint64_t line, uint64_t up_to)
{
	struct lineage_part *parts =
		realloc(l->parts, (l->n + 1) * sizeof(*parts));

	if (!parts)
		return INCR_E_NOMEM;
	parts[l->n++] = (struct lineage_part){ line, up_to };
	l->parts = parts;
	return 0;
}

int lineage_of(struct index *ix, uint64_t line, uint64_t txn, uint64_t from_txn,
	       struct lineage *out, struct incr_error *err)
{
	struct lineage l = { 0 };
	int r = 0;

	/*
	 * The line's own beginning tells whether from_txn can stand on it.  A line
	 * grows out of one with a smaller number: this ends.
	 */
	while (line && r == 0) {
		struct state_line parent;

		if (lineage_add(&l, line, txn) < 0) {
			r = incr_fail_nomem(err);
			break;
		}
		r = state_line(ix, line, &parent, err);
		if (r > 0)
			r = incr_fail(err, INCR_E_CORRUPT, "damaged-table",
				      NULL,
				      "line %llu is missing from the index",
				      (unsigned long long)line);
		if (r < 0)
			break;
		line = parent.at >= from_txn && parent.at ? parent.parent : 0;
		txn = parent.at < txn ? parent.at : txn;
	}
	if (r < 0) {
		lineage_release(&l);
		return r;
	}
	*out = l;
	return 0;
}

bool lineage_holds(const struct lineage *l, uint64_t line, uint64_t txn)
{
	size_t low = 0, high = l->n;

	/* lines descend */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->parts[mid].line == line)
			return txn <= l->parts[mid].up_to;
		if (l->parts[mid].line > line)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* ---- transactions and builds ---- */

int state_txn(struct index *ix, uint64_t number, struct buf *storage,
	      struct state_txn *out, struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_TXN, number);
	struct state_txn t = { 0 };
	struct cursor c;
	int r = get(ix, &k, storage, &c, err);

	if (r != 0)
		return r;
	t.status = (enum incr_txn_status)cursor_u8(&c);
	t.record_position = cursor_varint(&c);
	t.root = cursor_varint(&c);
	t.n_entries = cursor_varint(&c);
	if (fact_decode_txn(&c, &t.fact) < 0)
		return bad_value(&k, err);
	*out = t;
	return 0;
}

int state_put_txn(struct index *ix, const struct state_txn *t,
		  struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = state_key_of(STATE_TXN, t->fact.number);
	struct fact_txn fact = t->fact;

	fact.manifest = text_of(NULL);
	if (buf_put_u8(&value, (uint8_t)t->status) < 0 ||
	    buf_put_varint(&value, t->record_position) < 0 ||
	    buf_put_varint(&value, t->root) < 0 ||
	    buf_put_varint(&value, t->n_entries) < 0 ||
	    fact_encode_txn(&fact, &value) < 0)
		return incr_fail_nomem(err);
	return put(ix, &k, &value, err);
}

int state_build(struct index *ix, uint64_t number, struct buf *storage,
		struct fact_build *out, struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_BUILD, ~number);
	struct cursor c;
	int r = get(ix, &k, storage, &c, err);

	if (r != 0)
		return r;
	if (fact_decode_build(&c, out) < 0)
		return bad_value(&k, err);
	return 0;
}

/* ---- file versions ---- */

void version_release(struct version *v)
{
	content_release(&v->content);
}

int version_encode(const struct version *v, struct buf *out)
{
	TRY(buf_put_u8(out, (uint8_t)v->op));
	TRY(buf_put_varint(out, v->line));
	TRY(buf_put_varint(out, v->change_txn));
	if (v->op == MANIFEST_REMOVE)
		return 0;
	TRY(buf_put_varint(out, v->mode));
	TRY(buf_put_zigzag(out, v->mtime_ns));
	TRY(buf_put(out, v->hash, sizeof(v->hash)));
	return content_encode(&v->content, out);
}

int version_peek(const uint8_t *value, size_t size, enum manifest_op *out_op,
		 uint64_t *out_line)
{
	struct cursor c = cursor_over(value, size);
	uint8_t op = cursor_u8(&c);
	uint64_t line = cursor_varint(&c);

	if (c.is_bad || (op != MANIFEST_PUT && op != MANIFEST_REMOVE))
		return INCR_E_CORRUPT;
	*out_op = (enum manifest_op)op;
	*out_line = line;
	return 0;
}

int version_decode(const uint8_t *value, size_t size, struct version *out)
{
	struct cursor c = cursor_over(value, size);
	struct version v = { 0 };
	const uint8_t *hash;
	int r;

	if (version_peek(value, size, &v.op, &v.line) < 0)
		return INCR_E_CORRUPT;
	(void)cursor_u8(&c); /* read by the peek */
	(void)cursor_varint(&c);
	v.change_txn = cursor_varint(&c);
	if (v.op == MANIFEST_PUT) {
		v.mode = (uint32_t)cursor_varint(&c);
		v.mtime_ns = cursor_zigzag(&c);
		hash = cursor_bytes(&c, sizeof(v.hash));
		if (!hash)
			return INCR_E_CORRUPT;
		memcpy(v.hash, hash, sizeof(v.hash));
		r = content_decode(&c, &v.content);
		if (r < 0)
			return r;
	}
	if (c.is_bad || cursor_left(&c)) {
		version_release(&v);
		return INCR_E_CORRUPT;
	}
	*out = v;
	return 0;
}
