/*
 * Entries of the index about what is lost: stretches of the log, transactions
 * whose changes are not known, files that cannot be read.
 */
#include "config.h"

#include "state.h"

#include "error.h"

/* Any entry of a kind? 0: yes, 1: no. */
static int has_kind(struct index *ix, enum state_kind kind,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	uint8_t key = (uint8_t)kind;

	return index_first(ix, &key, 1, 1, &value, err);
}

int state_has_losses(struct index *ix, struct incr_error *err)
{
	static const enum state_kind kinds[] = { STATE_HOLE, STATE_UNKNOWN,
						 STATE_GIVEN_UP,
						 STATE_LOST_FILE };
	int r = 1;

	if (*index_losses(ix) >= 0)
		return *index_losses(ix);
	for (size_t i = 0; r == 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		r = has_kind(ix, kinds[i], err);
	if (r < 0)
		return r;
	*index_losses(ix) = r == 0;
	return r == 0;
}

static int put(struct index *ix, const struct state_key *k,
	       const struct buf *value, struct incr_error *err)
{
	/* without bytes it would be a removal */
	const void *bytes = value->size ? (const void *)value->data : "";
	int r = index_put(ix, k->bytes, k->size, bytes, value->size, err);

	if (r == 0)
		*index_losses(ix) = 1;
	return r;
}

static int put_number(struct index *ix, const struct state_key *k, uint64_t v,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;

	if (buf_put_varint(&value, v) < 0)
		return incr_fail_nomem(err);
	return put(ix, k, &value, err);
}

static int number_of(const struct buf *value, const struct state_key *k,
		     uint64_t *out_number, struct incr_error *err)
{
	struct cursor c = cursor_over(value->data, value->size);
	uint64_t number = cursor_varint(&c);

	if (c.is_bad || cursor_left(&c))
		return incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
				 "an index entry of kind '%c' does not parse",
				 k->bytes[0]);
	*out_number = number;
	return 0;
}

/* 0 and the number, or 1. */
static int get_number(struct index *ix, const struct state_key *k,
		      uint64_t *out_number, struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	int r = state_has_losses(ix, err);

	if (r <= 0)
		return r < 0 ? r : 1;
	r = index_get(ix, k->bytes, k->size, &value, err);
	return r ? r : number_of(&value, k, out_number, err);
}

int state_put_hole(struct index *ix, uint64_t from, uint64_t to,
		   struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_HOLE, ~from);

	return put_number(ix, &k, to, err);
}

int state_find_hole(struct index *ix, uint64_t from, uint64_t to,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	/* the last one that begins at or before it */
	struct state_key k = state_key_of(STATE_HOLE, ~from);
	uint64_t end = 0;
	int r = state_has_losses(ix, err);

	if (r <= 0)
		return r < 0 ? r : 1;
	r = index_first(ix, k.bytes, k.size, 1, &value, err);
	if (r == 0)
		r = number_of(&value, &k, &end, err);
	return r ? r : end < to;
}

int state_unknown(struct index *ix, uint64_t txn, uint64_t *out_unknown,
		  struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_UNKNOWN, txn);

	return get_number(ix, &k, out_unknown, err);
}

int state_put_unknown(struct index *ix, uint64_t txn, uint64_t unknown,
		      struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_UNKNOWN, txn);

	return put_number(ix, &k, unknown, err);
}

int state_given_up(struct index *ix, uint64_t txn, uint64_t *out_build,
		   struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_GIVEN_UP, txn);

	return get_number(ix, &k, out_build, err);
}

int state_put_given_up(struct index *ix, uint64_t txn, uint64_t build,
		       struct incr_error *err)
{
	struct state_key k = state_key_of(STATE_GIVEN_UP, txn);

	return put_number(ix, &k, build, err);
}

static struct state_key file_key(uint64_t txn, struct text path)
{
	struct state_key k = state_key_of(STATE_LOST_FILE, txn);

	state_key_bytes(&k, path.data, path.size);
	return k;
}

int state_lost_file(struct index *ix, uint64_t txn, struct text path,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct state_key k = file_key(txn, path);
	int r = state_has_losses(ix, err);

	if (r <= 0)
		return r < 0 ? r : 1;
	return index_get(ix, k.bytes, k.size, &value, err);
}

int state_put_lost_file(struct index *ix, uint64_t txn, struct text path,
			struct incr_error *err)
{
	struct state_key k = file_key(txn, path);
	struct buf none = BUF_INIT;

	return put(ix, &k, &none, err);
}
