/*
 * A real store for tests of plans and builds: inputs `in` and `in2`, outputs
 * `out` and `out2`, and a transform that reads `in` and writes `out`.
 */
#ifndef INCR_BUILD_FIXTURE_H
#define INCR_BUILD_FIXTURE_H

#include "history.h"
#include "io.h"

struct fixture {
	char dir[256]; /* of its own: the store, and sources */
	struct incr_io
		io; /* the real one, but nothing is synced: these tests pull no plug */
	struct incr_store *st;
	struct incr_transform t; /* a test changes it as it likes */
	struct incr_transform_input inputs[2];
	struct incr_transform_output outputs[2];
	struct incr_plan_options plan_options;
	struct incr_build_options build_options;
	struct incr_commit_build_options commit_options;
	struct incr_error err; /* of the last call below that failed */
	unsigned n_written; /* makes each content another */
};

void fixture_set_up(struct fixture *f);
void fixture_tear_down(struct fixture *f);
/* Close and open again, as another process would find it. */
void fixture_reopen(struct fixture *f);

uint64_t fixture_dataset(struct fixture *f, const char *name);
uint64_t fixture_head(struct fixture *f, const char *name, const char *branch);

/* One transaction by hand; its number, 0 when it failed. */
uint64_t fixture_commit(struct fixture *f, const char *dataset,
			const char *branch, const struct history_txn *txn);
/* "S{a,b} A{c}" on main, in order; the last number. */
uint64_t fixture_history(struct fixture *f, const char *dataset,
			 const char *text);

/* Write files of one letter each into an output's staging. */
void fixture_stage(struct fixture *f, const struct incr_build *b, size_t idx,
		   const char *letters);
void fixture_stage_text(const struct incr_build *b, size_t idx,
			const char *name, const char *text);
/*
 * Begin a build; NULL when nothing may run (*out_decision says why) or it
 * failed (f->err, *out_decision 0).
 */
struct incr_build *fixture_begin(struct fixture *f,
				 enum incr_decision *out_decision);
/* Commit and close; 0 or the code. @out_info may be NULL. */
int fixture_end(struct fixture *f, struct incr_build *b,
		struct incr_build_info *out_info);
/* Begin, stage into the first output, end; the decision, or 0 when it failed. */
enum incr_decision fixture_run(struct fixture *f, const char *letters);
/* As above, and the decision must be @want. */
void fixture_check_run(struct fixture *f, enum incr_decision want,
		       const char *letters);
/* Plan and compare decision and codes; NULL codes: any. */
void fixture_check_plan(struct fixture *f, enum incr_decision want,
			const char *codes);

/* The paths of a view must be these letters, in order. */
void fixture_check_view(struct incr_view *v, const char *letters);
void fixture_check_dataset(struct fixture *f, const char *dataset,
			   const char *letters);
/* Type of the newest transaction of a dataset. */
void fixture_check_type(struct fixture *f, const char *dataset,
			enum incr_txn_type want);

#endif
