/*
 * Committing a build.
 *
 * Order: markers read -> staging sealed -> each output read once, its content
 * made durable -> checked (empty replace, collisions of all outputs) -> one
 * record with the transactions of all outputs and the build, under the append
 * lock, which checks again that each head is the one that was pinned -> synced
 * -> staging removed.  On any failure staging is unsealed and kept, the reason
 * is written beside it, and the build stays open.
 */
#include "config.h"

#include "build.h"
#include "error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was aborted ---- */

static int read_markers(struct incr_build *b, bool *out_is_aborted,
			struct incr_error *err)
{
	bool is_all = true;
	int r = staging_is_marked(&b->staging, NULL, out_is_aborted, err);

	for (size_t i = 0; i < b->info.plan.n_outputs && r == 0; i++) {
		struct build_output *out = &b->outputs[i];
		bool is_marked = false;

		r = staging_is_marked(&b->staging,
				      b->info.plan.outputs[i].alias, &is_marked,
				      err);
		out->is_aborted |= is_marked;
		is_all &= out->is_aborted;
	}
	*out_is_aborted |= is_all;
	return r;
}

/* abort_if_empty: is there any file in an output that is kept? */
static int look_for_files(struct incr_build *b, bool *out_has_files,
			  struct incr_error *err)
{
	*out_has_files = false;
	for (size_t i = 0; i < b->info.plan.n_outputs; i++) {
		bool is_empty = true;
		int r;

		if (b->outputs[i].is_aborted)
			continue;
		r = staging_is_empty(&b->staging, b->info.plan.outputs[i].alias,
				     true, &is_empty, err);
		if (r < 0)
			return r;
		*out_has_files |= !is_empty;
	}
	return 0;
}

/* ---- the whole of it ---- */

/* An adopted build has no locks on its outputs yet. */
static int lock_outputs(struct incr_build *b, struct incr_error *err)
{
	size_t n = b->info.plan.n_outputs;
	_cleanup_free_ uint64_t *ids = NULL;

	if (b->branch_locks)
		return 0;
	ids = calloc(n, sizeof(*ids));
	if (!ids)
		return incr_fail_nomem(err);
	for (size_t i = 0; i < n; i++)
		ids[i] = b->info.plan.outputs[i].branch_id;
	return build_lock_branches(b, ids, n, err);
}

static int branch_moved(const struct incr_plan_output *out, uint64_t head,
			struct incr_error *err)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "t%" PRIu64, head);
	return incr_fail(
		err, INCR_E_CONFLICT, "branch-moved", head ? name : out->branch,
		"output %s: its branch has moved since the build began",
		out->alias);
}

/* Is the branch of an output where it was pinned? */
static int check_head(struct incr_build *b, const struct incr_plan_output *out,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch branch = { 0 };
	uint64_t id = out->branch_id;
	int r = 0;

	if (!out->branch_exists) {
		r = state_branch_id(b->st->index, out->dataset_id,
				    text_of(out->branch), &id, err);
		if (r)
			return r < 0 ? r : 0; /* still to be made */
	}
	r = state_branch(b->st->index, id, &storage, &branch, err);
	if (r < 0)
		return r;
	if (r == 0)
		r = store_check_no_open(&branch, 0, err);
	if (r < 0)
		return r;
	if (r == 1 || branch.is_deleted || !out->branch_exists ||
	    branch.head != out->head)
		return branch_moved(out, branch.head, err);
	return 0;
}

/* Before anything is read; the append lock will see to it again. */
static int check_heads(struct incr_build *b, struct incr_error *err)
{
	int r = store_catch_up(b->st, err);

	for (size_t i = 0; i < b->info.plan.n_outputs && r == 0; i++)
		if (!b->outputs[i].is_aborted)
			r = check_head(b, &b->info.plan.outputs[i], err);
	return r;
}

/* 0 committed, 1 nothing to commit. */
static int commit_sealed(struct incr_build *b,
			 const struct incr_commit_build_options *options,
			 struct incr_error *err)
{
	bool has_files = true;
	int r = staging_seal(&b->staging, err);

	if (r == 0 && b->info.plan.transform.abort_if_empty &&
	    !b->info.plan.is_skip)
		r = look_for_files(b, &has_files, err);
	if (r < 0)
		return r;
	if (!has_files)
		return 1;
	r = build_check_schemas(b, err);
	return r < 0 ? r : build_commit_outputs(b, options, err);
}

/* What was sealed is back where it was staged when somebody reads the message. */
static void name_staged(const struct incr_build *b, struct incr_error *why)
{
	static const char sealed[] = "/sealed/";
	char thing[sizeof(why->thing)];
	size_t length = strlen(b->staging.dir);

	if (strncmp(why->thing, b->staging.dir, length) != 0 ||
	    strncmp(why->thing + length, sealed, strlen(sealed)) != 0)
		return;
	(void)snprintf(thing, sizeof(thing), "%s/staging/%s", b->staging.dir,
		       why->thing + length + strlen(sealed));
	memcpy(why->thing, thing, sizeof(thing));
}

static void note_failure(struct incr_build *b, struct incr_error *why)
{
	struct build_name name = build_name_of(b->info.number);

	name_staged(b, why);
	if (strcmp(why->word, "special-file") == 0)
		incr_hint(why,
			  "incrctl build commit %s --skip-special leaves such "
			  "entries out; or incrctl build abort %s",
			  name.text, name.text);
	else if (strcmp(why->word, "empty-replace") != 0) /* has its own */
		incr_hint(why,
			  "incrctl build commit %s, or incrctl build abort %s",
			  name.text, name.text);
	/* Both are for people; the failure itself is in @why. */
	(void)staging_unseal(&b->staging, NULL);
	(void)staging_write_result(&b->staging, why, NULL);
}

static int try_commit(struct incr_build *b,
		      const struct incr_commit_build_options *options,
		      struct incr_build_info *out_info, struct incr_error *err)
{
	bool is_aborted = false;
	int r = read_markers(b, &is_aborted, err);

	if (r == 0 && is_aborted)
		return incr_build_abort(b, false, options->exit_code, out_info,
					err);
	if (r == 0)
		r = lock_outputs(b, err);
	if (r == 0)
		r = check_heads(b, err);
	if (r == 0)
		r = commit_sealed(b, options, err);
	if (r == 1)
		return incr_build_abort(b, false, options->exit_code, out_info,
					err);
	if (r < 0) {
		note_failure(b, err);
		return r;
	}
	/* The record is durable: what is left costs space only. */
	(void)staging_remove(&b->staging, NULL);
	return out_info ? build_copy_info(b, out_info, err) : 0;
}

int incr_build_commit(struct incr_build *b,
		      const struct incr_commit_build_options *options,
		      struct incr_build_info *out_info, struct incr_error *err)
{
	struct build_name name = build_name_of(b->info.number);
	struct incr_error why = INCR_ERROR_INIT;
	int r;

	if (b->info.is_preview)
		return incr_fail(err, INCR_E_INVALID, "preview", NULL,
				 "a preview commits nothing");
	if (b->info.status != INCR_BUILD_OPEN)
		return incr_fail(err, INCR_E_CONFLICT, "not-open", name.text,
				 "the build is %s already",
				 incr_build_status_name(b->info.status));
	r = try_commit(b, options, out_info, &why);
	if (r < 0 && err) {
		incr_error_release(err);
		*err = why;
	} else {
		incr_error_release(&why);
	}
	return r;
}
