/*
 * An open build of this process: what its files share.
 *
 * Locks: LOCK_BUILD of its number tells that the build has an owner; the
 * branches of its outputs are locked exclusively, so that nobody else writes
 * to them meanwhile.  An adopted build takes the latter only to commit.
 */
#ifndef INCR_BUILD_H
#define INCR_BUILD_H

#include "plan.h"
#include "staging.h"

#define BUILD_PAYLOAD_MAX (UINT32_C(8) << 20)

struct build_input {
	/* shared(ref); NULL in an adopted build */
	struct incr_view *views[INCR_N_VIEW_KINDS];
	struct incr_changes *changes; /* owned: some of the views are its */
};

struct build_output {
	struct incr_view *previous, *base; /* shared(ref) */
	char *staging; /* owned: absolute path */
	char *empty_previous; /* owned; NULL: none */
	size_t empty_previous_size;
	bool is_aborted;
};

struct incr_build {
	struct incr_store *st; /* borrowed */
	struct incr_build_info info; /* owned; its plan is the build's */
	struct staging staging;
	char *spool; /* owned: absolute path */
	char *scratch; /* owned: where the spool is; NULL: in the store */
	int scratch_fd; /* owned; of scratch */
	bool skips_special;
	struct lock owner;
	struct claim unnumbered; /* owned: of its spool, while it has no number */
	size_t n_branch_locks;
	struct lock *branch_locks; /* owned */
	struct build_input *inputs; /* owned */
	struct build_output *outputs; /* owned */
};

/* "b7", for messages. */
struct build_name {
	char text[24];
};
struct build_name build_name_of(uint64_t number);

/* Payload of the record for what @info says now; INCR_E_INVALID "too-large". */
int build_encode(const struct incr_build_info *info, struct buf *out,
		 struct incr_error *err);
/* b->spool and the staging paths, from b->staging. */
int build_set_paths(struct incr_build *b, struct incr_error *err);
/* Append FACT_BUILD_ENDED with what b->info says now. */
int build_append_end(struct incr_build *b, struct incr_error *err);
/* A copy of b->info for the caller. */
int build_copy_info(const struct incr_build *b, struct incr_build_info *out,
		    struct incr_error *err);

/*
 * Lock the branches of outputs exclusively, in one order for everybody.
 * @branch_ids is sorted by this call; 0: no branch yet.
 */
int build_lock_branches(struct incr_build *b, uint64_t *branch_ids, size_t n,
			struct incr_error *err);
void build_unlock_branches(struct incr_build *b);

/* What the program is shown; takes the views that planning opened. build_views.c */
int build_open_views(struct incr_build *b, struct plan_views *opened,
		     struct incr_error *err);
void build_close_views(struct incr_build *b);

/*
 * Read the sealed outputs that are kept and commit them; build_outputs.c.
 * b->info says what was committed.  On failure nothing was, b->info is as it
 * was, and the error lists the collisions of all outputs.
 */
int build_commit_outputs(struct incr_build *b,
			 const struct incr_commit_build_options *options,
			 struct incr_error *err);

/* The definition in the newest committed record: 0, 1 when none was committed; INCR_E_NOTFOUND. */
int build_find_recorded(struct incr_store *st, const char *transform,
			struct incr_transform *out, struct incr_error *err);

/* R159: does the schema given for each output fit the stored one? build_schema.c */
int build_check_schemas(struct incr_build *b, struct incr_error *err);
/* `empty.csv`, where it was asked for. */
int build_make_empty_previous(struct incr_build *b, struct incr_error *err);

#endif
