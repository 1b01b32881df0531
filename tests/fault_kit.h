/*
 * What the fault sweeps share: a store in memory with some history, workloads
 * over it, and the checks of what a fault left.
 */
#ifndef INCR_FAULT_KIT_H
#define INCR_FAULT_KIT_H

#include "fault_table.h"
#include "simio.h"
#include "store.h"
#include "store_text.h"

#define FAULT_STORE "store"
#define FAULT_ACKS_MAX 8

struct fault_run {
	struct sim *sim; /* owned */
	const struct incr_io *io; /* borrowed: what the code under test uses */
	struct incr_store *st; /* owned; NULL: not open */
	struct incr_error err; /* of the step that failed */
	bool is_clean; /* nothing fails: note what is acknowledged */
	size_t n_acks;
	struct store_text acks
		[FAULT_ACKS_MAX]; /* of a clean run; else where it may differ */
};

struct fault_workload {
	const char *name;
	/* How the store lies there when it begins. */
	enum {
		FAULT_IS_OPEN, /* opened without faults */
		FAULT_IS_CLOSED,
		FAULT_IS_TORN, /* closed; a torn tail behind the last record */
		FAULT_IS_UNSYNCED, /* closed; a sync failed before */
	} start;
	int (*run)(struct fault_run *run);
	/* What cannot be read to be compared is stored anew: more than without a fault. */
	bool may_store_more;
};
extern const struct fault_workload fault_workloads[]; /* ends with a NULL name */

/* The store that all workloads begin with. */
struct sim *fault_base(void);
/* A copy of it as @w needs it, opened if so. */
void fault_run_init(struct fault_run *run, const struct fault_workload *w,
		    struct sim *base);
void fault_run_release(struct fault_run *run);
/* Close the store, and count allocations no more. NULL, or what leaks. */
const char *fault_close(struct fault_run *run);
/* The texts of a run without faults, in @out_clean. */
void fault_run_clean(const struct fault_workload *w, struct sim *base,
		     struct fault_run *out_clean);

/*
 * Is the store in @sim whole, and what the clean run had after as many steps as
 * @run acknowledged, or, where that is allowed, one more?  NULL, or what is
 * wrong.  @has_after: and fault_commit_after() has succeeded.
 */
const char *fault_check(struct sim *sim, const struct fault_run *clean,
			const struct fault_run *run, bool may_be_ahead,
			bool has_after);
/* One more commit, to another dataset: 0 or its error. */
int fault_commit_after(struct incr_store *st, struct incr_error *err);

#endif
