/* OPEN transactions: what begin, put, remove, commit and abort share. */
#ifndef INCR_OPEN_TXN_H
#define INCR_OPEN_TXN_H

#include "commit.h"

/* Below the transaction's folder in the spool. */
#define PUT_DIR "put"
#define REMOVE_DIR "remove"

/* One OPEN transaction, with its branch locked. */
struct open_txn {
	struct incr_store *st;
	struct buf storage; /* owned */
	struct buf branch_storage; /* owned */
	struct state_txn txn;
	struct state_branch branch;
	struct lock lock;
	char spool[48];
};

/* INCR_E_CONFLICT "not-open", INCR_E_NOTFOUND. */
int open_txn_take(struct incr_store *st, uint64_t number, struct open_txn *o,
		  struct incr_error *err);
void open_txn_release(struct open_txn *o);

#endif
