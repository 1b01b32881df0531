/*
 * Looking at an open build, adopting one, aborting and closing.
 */
#include "config.h"

#include "build.h"
#include "error.h"

#include <fcntl.h>
#include <stdlib.h>

uint64_t incr_build_number(const struct incr_build *b)
{
	return b->info.number;
}

const struct incr_plan *incr_build_plan(const struct incr_build *b)
{
	return &b->info.plan;
}

struct incr_store *incr_build_store(const struct incr_build *b)
{
	return b->st;
}

const char *incr_build_spool(const struct incr_build *b)
{
	return b->spool;
}

const char *incr_build_staging(const struct incr_build *b, size_t idx)
{
	return b->outputs[idx].staging;
}

static int check_is_open(const struct incr_build *b, struct incr_error *err)
{
	struct build_name name = build_name_of(b->info.number);

	if (b->info.status == INCR_BUILD_OPEN)
		return 0;
	return incr_fail(err, INCR_E_CONFLICT, "not-open", name.text,
			 "the build is %s already",
			 incr_build_status_name(b->info.status));
}

/* With the owner's lock: nobody else ends the build now. */
static int load_owned(struct incr_build *b, uint64_t number,
		      struct incr_error *err)
{
	int r = store_catch_up(b->st, err);

	if (r == 0)
		r = build_load(b->st, number, &b->info, err);
	return r < 0 ? r : check_is_open(b, err);
}

static int adopt(struct incr_build *b, uint64_t number, struct incr_error *err)
{
	struct build_name name = build_name_of(number);
	enum staging_state state;
	int r = load_owned(b, number, err);

	incr_build_info_release(&b->info);
	if (r == 0 && b->st->is_readonly)
		r = incr_fail(err, INCR_E_READONLY, NULL, b->st->path,
			      "the store cannot be written");
	if (r == 0)
		r = lock_take(log_locks(b->st->log), LOCK_BUILD(number), true,
			      b->st->wait_ms, name.text, &b->owner, err);
	if (r == 0)
		r = load_owned(b, number, err);
	if (r < 0)
		return r;
	b->inputs = calloc(b->info.plan.n_inputs, sizeof(*b->inputs));
	b->outputs = calloc(b->info.plan.n_outputs, sizeof(*b->outputs));
	if (!b->inputs || !b->outputs)
		return incr_fail_nomem(err);
	staging_of_build(b->st->io, b->st->dirfd, number, &b->staging);
	r = build_set_paths(b, err);
	if (r == 0)
		r = staging_state(&b->staging, &state, err);
	/* Killed during a commit: what is staged can be mended again. */
	if (r == 0 && state == STAGING_SEALED)
		r = staging_unseal(&b->staging, err);
	return r;
}

int incr_build_adopt(struct incr_store *st, uint64_t number,
		     struct incr_build **out_build, struct incr_error *err)
{
	struct incr_build *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return incr_fail_nomem(err);
	b->st = st;
	r = adopt(b, number, err);
	if (r < 0) {
		incr_build_close(b);
		return r;
	}
	*out_build = b;
	return 0;
}

int incr_build_abort_output(struct incr_build *b, size_t idx,
			    struct incr_error *err)
{
	int r = staging_mark_abort(&b->staging, b->info.plan.outputs[idx].alias,
				   err);

	if (r == 0)
		b->outputs[idx].is_aborted = true;
	return r;
}

int incr_build_abort(struct incr_build *b, bool is_failure, int exit_code,
		     struct incr_build_info *out_info, struct incr_error *err)
{
	struct incr_build_info before = b->info;
	int r = check_is_open(b, err);

	if (r < 0)
		return r;
	b->info.status = is_failure ? INCR_BUILD_FAILED : INCR_BUILD_ABORTED;
	b->info.exit_code = exit_code;
	b->info.ended_ns = store_now(b->st);
	if (!b->info.is_preview)
		r = build_append_end(b, err);
	if (r < 0) {
		b->info.status = before.status;
		b->info.exit_code = before.exit_code;
		b->info.ended_ns = before.ended_ns;
		return r;
	}
	/* The record says that the build is over: what is left costs space only. */
	(void)staging_remove(&b->staging, NULL);
	return out_info ? build_copy_info(b, out_info, err) : 0;
}

static void close_scratch(struct incr_build *b)
{
	const struct incr_io *io = b->st->io;

	(void)io->unlink_at(io, b->scratch_fd, STAGING_SPOOL, AT_REMOVEDIR);
	(void)io->close(io, b->scratch_fd);
	free(b->scratch);
}

static void free_parts(struct incr_build *b)
{
	for (size_t i = 0; b->outputs && i < b->info.plan.n_outputs; i++) {
		free(b->outputs[i].staging);
		free(b->outputs[i].empty_previous);
	}
	free(b->outputs);
	free(b->inputs);
	free(b->spool);
}

void incr_build_close(struct incr_build *b)
{
	if (!b)
		return;
	if (b->info.is_preview && b->staging.io)
		(void)staging_remove(&b->staging,
				     NULL); /* nothing counts on it */
	if (b->scratch)
		close_scratch(b);
	build_close_views(b);
	build_unlock_branches(b);
	lock_release(&b->owner);
	claim_release(&b->unnumbered);
	free_parts(b);
	incr_build_info_release(&b->info);
	free(b);
}
