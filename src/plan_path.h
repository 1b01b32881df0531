/*
 * Walks along the path of an input with a transaction limit.
 */
#ifndef INCR_PLAN_PATH_H
#define INCR_PLAN_PATH_H

#include "store.h"

/* From the head of a view back to its start. */
struct plan_path {
	uint64_t head, start; /* 0: empty */
};

/* Transactions of the view after @after; 0: all. */
int plan_path_count(struct incr_store *st, struct plan_path path,
		    uint64_t after, uint64_t *out_n, struct incr_error *err);

/*
 * The end of the batch of the @limit oldest transactions after @after (0: from
 * the start on, which counts as one).  @after when there is nothing to read.
 */
int plan_path_batch_end(struct incr_store *st, struct plan_path path,
			uint64_t after, uint64_t limit, uint64_t *out_end,
			struct incr_error *err);

/*
 * The first transaction of the view that a limit forbids: not an APPEND, but
 * for a SNAPSHOT at the start.  *out_txn 0: none.
 * @good: nothing up to here needs a look; 0: look at all.
 */
int plan_path_find_bad(struct incr_store *st, struct plan_path path,
		       uint64_t good, uint64_t *out_txn,
		       enum incr_txn_type *out_type, struct incr_error *err);

#endif
