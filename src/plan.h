/*
 * Plans: the facts that a decision needs, gathered from the store, and what
 * follows from the decision.  plan, run, mount and status share plan_make().
 */
#ifndef INCR_PLAN_H
#define INCR_PLAN_H

#include "decide.h"
#include "store.h"

/* The views of an input that were opened to judge it; all NULL where none were. */
struct plan_views {
	struct incr_view *from, *to; /* shared(ref): View(Pend), View(E) */
	struct incr_changes *changes; /* owned: between the two */
	char *paths[3]; /* owned: of the changes in the facts */
};

/* A plan being made. */
struct plan_work {
	struct incr_store *st; /* borrowed */
	const struct incr_transform *transform; /* borrowed */
	const struct incr_plan_options *options; /* borrowed */
	struct incr_plan plan; /* owned */
	struct plan_views *views; /* owned: one an input */
	struct incr_build_info previous; /* owned: the last run */
	bool has_previous;
	struct decide_input *inputs; /* owned */
	struct decide_output *outputs; /* owned */
};
void plan_work_release(struct plan_work *w);

/*
 * Make @w->plan, and keep the views that were opened on the way.  The caller
 * has caught up with the log.  Release @w whatever the result.
 */
int plan_make(struct incr_store *st, const struct incr_transform *transform,
	      const struct incr_plan_options *options, struct plan_work *w,
	      struct incr_error *err);

/* Steps of plan_make(), one file each. */
int plan_gather_outputs(struct plan_work *w, struct incr_error *err);
int plan_gather_inputs(struct plan_work *w, struct incr_error *err);
/* Read ends and counts, when the decision is known. */
int plan_finish_inputs(struct plan_work *w, struct incr_error *err);

/*
 * A transaction of the view that @head ends whose changes are lost, unless
 * build @build ran when that was known.  *out_txn: 0: none.
 */
int plan_find_lost(struct plan_work *w, uint64_t head, uint64_t build,
		   uint64_t *out_txn, struct incr_error *err);
/* A branch by name: 0, or 1 when there is none. */
int plan_find_branch(struct plan_work *w, uint64_t dataset_id, const char *name,
		     struct buf *storage, struct state_branch *out,
		     struct incr_error *err);
/* The build branch, else the first fallback that exists. */
int plan_find_build_branch(struct plan_work *w, uint64_t dataset_id,
			   struct buf *storage, struct state_branch *out,
			   struct incr_error *err);
/* INCR_E_NOTFOUND "no-such-dataset". */
int plan_find_dataset(struct plan_work *w, const char *name, uint64_t *out_id,
		      struct incr_error *err);
/* "main" unless the transform says otherwise. */
const char *plan_build_branch(const struct plan_work *w);

/* A build's record, with number and status; INCR_E_NOTFOUND "no-such-build". */
int build_load(struct incr_store *st, uint64_t number,
	       struct incr_build_info *out, struct incr_error *err);

#endif
