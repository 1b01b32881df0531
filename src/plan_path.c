/*
 * Walks from a head back to the start of its view.  They cost what is unread,
 * not the history: what was read before is where they end.
 */
#include "config.h"

#include "plan_path.h"

/* One step towards the start; false: @number is the last of the walk. */
static bool step(const struct fact_txn *t, uint64_t start, uint64_t *number)
{
	if (*number == start)
		return false;
	*number = t->parent;
	return *number != 0;
}

int plan_path_count(struct incr_store *st, struct plan_path path,
		    uint64_t after, uint64_t *out_n, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t n = 0, number = path.head;
	bool goes_on = path.head != 0;

	while (goes_on && number != after) {
		struct state_txn t;
		int r = store_find_txn(st, number, &storage, &t, err);

		if (r < 0)
			return r;
		n++;
		goes_on = step(&t.fact, path.start, &number);
	}
	*out_n = n;
	return 0;
}

int plan_path_batch_end(struct incr_store *st, struct plan_path path,
			uint64_t after, uint64_t limit, uint64_t *out_end,
			struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t n, number = path.head;
	int r = plan_path_count(st, path, after, &n, err);

	if (r < 0)
		return r;
	for (; n > limit; n--) {
		struct state_txn t;

		r = store_find_txn(st, number, &storage, &t, err);
		if (r < 0)
			return r;
		number = t.fact.parent;
	}
	*out_end = number;
	return 0;
}

int plan_path_find_bad(struct incr_store *st, struct plan_path path,
		       uint64_t good, uint64_t *out_txn,
		       enum incr_txn_type *out_type, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	uint64_t number = path.head;
	bool goes_on = path.head != 0;

	*out_txn = 0;
	while (goes_on && number != good) {
		struct state_txn t;
		int r = store_find_txn(st, number, &storage, &t, err);

		if (r < 0)
			return r;
		if (t.fact.type != INCR_APPEND &&
		    !(t.fact.type == INCR_SNAPSHOT && number == path.start)) {
			*out_txn = number;
			*out_type = t.fact.type;
		}
		goes_on = step(&t.fact, path.start, &number);
	}
	return 0;
}
