/*
 * Walks along the path of an input with a transaction limit.
 */
#ifndef INCR_PLAN_PATH_H
#define INCR_PLAN_PATH_H

#include "store.h"

/* Transactions after @after (0: all) up to @head; ends before those of older views unless @start is 0. */
int plan_path_count(struct incr_store *st, uint64_t head, uint64_t start,
		    uint64_t after, uint64_t *out_n, struct incr_error *err);

/*
 * The end of the batch of the @limit oldest transactions after @after (0: from
 * @start on, which counts as one).  @after when there is nothing to read.
 */
int plan_path_batch_end(struct incr_store *st, uint64_t head, uint64_t start,
			uint64_t after, uint64_t limit, uint64_t *out_end,
			struct incr_error *err);

/*
 * The first transaction of the view from @start to @head that a limit forbids:
 * not an APPEND, but for a SNAPSHOT at @start.  *out_txn 0: none.
 * @good: nothing up to here needs a look; 0: look at all.
 */
int plan_path_find_bad(struct incr_store *st, uint64_t head, uint64_t start,
		       uint64_t good, uint64_t *out_txn,
		       enum incr_txn_type *out_type, struct incr_error *err);

#endif
