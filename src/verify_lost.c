/*
 * Numbers of transactions that no whole record names.
 *
 * A number is given once, and the next is one more; so below the largest that
 * a whole record names, those that none names stood in records that are
 * damaged.  The same holds for a parent that no whole record commits.
 */
#include "config.h"

#include "verify_lost.h"

#include <stdlib.h>
#include <string.h>

#include "commit_record.h"
#include "lost.h"

#define NUMBERS_MAX (UINT64_C(1) << 26) /* memory is not a file's to ask for */

enum {
	IS_NAMED = 1,
	IS_COMMITTED = 2,
	IS_PARENT = 4,
	IS_TOLD = 8,
};

void verify_lost_release(struct verify_lost *lost)
{
	free(lost->flags);
	*lost = (struct verify_lost){ 0 };
}

static int set(struct verify_lost *lost, uint64_t number, uint8_t flags)
{
	if (number >= NUMBERS_MAX)
		return 0;
	if (number >= lost->n) {
		/* room by halves, so that ascending numbers cost little */
		uint64_t n = number + number / 2 + 64;
		uint8_t *grown = realloc(lost->flags, (size_t)n);

		if (!grown)
			return INCR_E_NOMEM;
		memset(grown + lost->n, 0, (size_t)(n - lost->n));
		lost->flags = grown;
		lost->n = n;
	}
	lost->flags[number] |= flags;
	return 0;
}

static int note_commit(struct verify_lost *lost,
		       const struct log_record *record)
{
	struct commit_record commit;
	int r = commit_record_decode(record->payload,
				     record->header.payload_size, &commit);

	if (r < 0)
		return r == INCR_E_NOMEM ? r : 0;
	for (size_t i = 0; r == 0 && i < commit.n_txns; i++) {
		r = set(lost, commit.txns[i].number, IS_NAMED | IS_COMMITTED);
		if (r == 0)
			r = set(lost, commit.txns[i].parent, IS_PARENT);
	}
	commit_record_release(&commit);
	return r;
}

static int note_opened(struct verify_lost *lost,
		       const struct log_record *record)
{
	struct cursor c =
		cursor_over(record->payload, record->header.payload_size);
	struct fact_txn f;

	return fact_decode_txn(&c, &f) < 0 ? 0 : set(lost, f.number, IS_NAMED);
}

static int note_aborted(struct verify_lost *lost,
			const struct log_record *record)
{
	struct cursor c =
		cursor_over(record->payload, record->header.payload_size);

	return set(lost, cursor_varint(&c), IS_NAMED);
}

static int note_given_up(struct verify_lost *lost,
			 const struct log_record *record)
{
	struct fact_lost f;
	int r = fact_decode_lost(record->payload, record->header.payload_size,
				 &f);

	if (r < 0)
		return r == INCR_E_NOMEM ? r : 0;
	if (f.n_ranges && f.next.txn > lost->n_given_up)
		lost->n_given_up = f.next.txn;
	fact_lost_release(&f);
	return 0;
}

int verify_lost_note(struct verify_lost *lost, const struct log_record *record)
{
	switch (record->header.type) {
	case FACT_COMMIT:
		return note_commit(lost, record);
	case FACT_TXN_OPENED:
		return note_opened(lost, record);
	case FACT_TXN_ABORTED:
		return note_aborted(lost, record);
	case FACT_LOST:
		return note_given_up(lost, record);
	default:
		return 0;
	}
}

int verify_lost_told(struct verify_lost *lost, uint64_t txn)
{
	return set(lost, txn, IS_TOLD);
}

uint64_t verify_lost_next(const struct verify_lost *lost, uint64_t from)
{
	uint64_t end = lost->n, i;

	while (end > 0 && !(lost->flags[end - 1] & (IS_NAMED | IS_PARENT)))
		end--;
	for (i = from > lost->n_given_up ? from : lost->n_given_up; i < end;
	     i++) {
		uint8_t flags = lost->flags[i];

		if (i == 0 || flags & (IS_TOLD | IS_COMMITTED))
			continue;
		if (!(flags & IS_NAMED) || flags & IS_PARENT)
			return i;
	}
	return 0;
}
