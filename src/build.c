/*
 * Beginning, adopting, aborting and closing builds.
 *
 * Order of beginning: branches of the outputs locked -> planned on what is
 * there now -> staging made and durable under a name of its own -> append lock
 * -> numbered, owner's lock, staging renamed -> record appended -> synced.
 * Killed on the way it leaves at most a directory in the spool that no record
 * names.  From the record on it is an open build; when its owner dies the
 * kernel frees all locks, and the build is an orphan that holds nothing.
 */
#include "config.h"

#include "build.h"

#include "build_record.h"
#include "error.h"
#include "transform.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Branches made or deleted by others between looking and locking. */
#define RACES_MAX 20

struct build_name build_name_of(uint64_t number)
{
	struct build_name name;

	(void)snprintf(name.text, sizeof(name.text), "b%" PRIu64, number);
	return name;
}

int build_encode(const struct incr_build_info *info, struct buf *out,
		 struct incr_error *err)
{
	if (build_record_encode(info, out) < 0)
		return incr_fail_nomem(err);
	if (out->size > BUILD_PAYLOAD_MAX)
		return incr_fail(err, INCR_E_INVALID, "too-large",
				 info->plan.transform.name,
				 "the definition of the transform is too large "
				 "for a record");
	return 0;
}

static struct fact_build fact_of(const struct incr_build *b,
				 const struct buf *payload)
{
	return (struct fact_build){
		.number = b->info.number,
		.status = b->info.status,
		.transform = text_of(b->info.plan.transform.name),
		.payload = { (const char *)payload->data, payload->size },
	};
}

/* The record of the build as it is now. */
static int encode_fact(const struct incr_build *b, struct buf *out,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct fact_build fact;
	int r = build_encode(&b->info, &payload, err);

	if (r < 0)
		return r;
	fact = fact_of(b, &payload);
	return fact_encode_build(&fact, out) < 0 ? incr_fail_nomem(err) : 0;
}

int build_append_end(struct incr_build *b, struct incr_error *err)
{
	_cleanup_buf_ struct buf fact = BUF_INIT;
	int r = encode_fact(b, &fact, err);

	return r < 0 ? r :
		       store_append_fact(b->st, FACT_BUILD_ENDED, &fact, err);
}

int build_copy_info(const struct incr_build *b, struct incr_build_info *out,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	int r = build_encode(&b->info, &bytes, err);

	if (r == 0)
		r = build_record_decode(bytes.data, bytes.size, out, err);
	if (r < 0)
		return r;

	out->number = b->info.number;
	out->status = b->info.status;
	out->is_preview = b->info.is_preview;
	return 0;
}

/* ---- locks ---- */

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int build_lock_branches(struct incr_build *b, uint64_t *branch_ids, size_t n,
			struct incr_error *err)
{
	qsort(branch_ids, n, sizeof(*branch_ids), compare_ids);
	b->branch_locks = calloc(n, sizeof(*b->branch_locks));
	if (!b->branch_locks)
		return incr_fail_nomem(err);
	for (size_t i = 0; i < n; i++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_branch branch;
		int r;

		if (!branch_ids[i])
			continue;
		r = state_branch(b->st->index, branch_ids[i], &storage, &branch,
				 err);
		if (r == 1)
			r = incr_fail(err, INCR_E_CONFLICT, "branch-moved",
				      NULL, "the branch was deleted meanwhile");
		if (r == 0)
			r = store_lock_branch(
				b->st, &branch, true,
				&b->branch_locks[b->n_branch_locks], err);
		if (r < 0)
			return r;
		b->n_branch_locks++;
	}
	return 0;
}

void build_unlock_branches(struct incr_build *b)
{
	for (size_t i = 0; i < b->n_branch_locks; i++)
		lock_release(&b->branch_locks[i]);
	free(b->branch_locks);
	b->branch_locks = NULL;
	b->n_branch_locks = 0;
}

/* The branches that the outputs go to, as they are now; 0: not made yet. */
static int find_branches(struct incr_build *b, const struct incr_transform *t,
			 uint64_t *out_ids, struct incr_error *err)
{
	struct plan_work w = { .st = b->st, .transform = t };

	for (size_t i = 0; i < t->n_outputs; i++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_branch branch;
		uint64_t id;
		int r = plan_find_dataset(&w, t->outputs[i].dataset, &id, err);

		if (r == 0)
			r = plan_find_branch(&w, id, plan_build_branch(&w),
					     &storage, &branch, err);
		if (r < 0)
			return r;
		out_ids[i] = r == 0 ? branch.fact.id : 0;
	}
	return 0;
}

/* Are the branches still those that were locked? */
static bool is_locked(const struct plan_work *w, const uint64_t *sorted_ids)
{
	_cleanup_free_ uint64_t *ids = calloc(w->plan.n_outputs, sizeof(*ids));

	if (!ids)
		return false;
	for (size_t i = 0; i < w->plan.n_outputs; i++)
		ids[i] = w->plan.outputs[i].branch_id;
	qsort(ids, w->plan.n_outputs, sizeof(*ids), compare_ids);
	return memcmp(ids, sorted_ids, w->plan.n_outputs * sizeof(*ids)) == 0;
}

/* One try: 0 planned under the locks, 1 somebody was in between. */
static int try_plan(struct incr_build *b, const struct incr_transform *t,
		    const struct incr_plan_options *options,
		    struct plan_work *w, struct incr_error *err)
{
	_cleanup_free_ uint64_t *ids = calloc(t->n_outputs, sizeof(*ids));
	int r = ids ? find_branches(b, t, ids, err) : incr_fail_nomem(err);

	if (r == 0)
		r = build_lock_branches(b, ids, t->n_outputs, err);
	if (r == 0)
		r = store_catch_up(b->st, err);
	if (r == 0)
		r = plan_make(b->st, t, options, w, err);
	if (r < 0)
		return r;
	return is_locked(w, ids) ? 0 : 1;
}

static int plan_locked(struct incr_build *b, const struct incr_transform *t,
		       const struct incr_plan_options *options,
		       struct plan_work *w, struct incr_error *err)
{
	for (int i = 0; i < RACES_MAX; i++) {
		int r = try_plan(b, t, options, w, err);

		if (r <= 0)
			return r;
		plan_work_release(w);
		build_unlock_branches(b);
	}
	return incr_fail(err, INCR_E_BUSY, "busy", t->name,
			 "the branches of its outputs do not stand still");
}

/* A transaction that was begun by hand blocks its branch. */
static int check_no_open(struct incr_build *b, struct incr_error *err)
{
	for (size_t i = 0; i < b->info.plan.n_outputs; i++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct state_branch branch;
		uint64_t id = b->info.plan.outputs[i].branch_id;
		int r = id ? state_branch(b->st->index, id, &storage, &branch,
					  err) :
			     1;

		if (r == 0)
			r = store_check_no_open(&branch, 0, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- beginning ---- */

int build_set_paths(struct incr_build *b, struct incr_error *err)
{
	const char *top = b->scratch ? b->scratch : b->st->path;
	char path[STAGING_PATH_MAX];

	free(b->spool);
	if (asprintf(&b->spool, "%s/%s", top, b->staging.dir) < 0) {
		b->spool = NULL;
		return incr_fail_nomem(err);
	}
	for (size_t i = 0; i < b->info.plan.n_outputs; i++) {
		struct build_output *out = &b->outputs[i];

		staging_path(&b->staging, b->info.plan.outputs[i].alias, false,
			     path);
		free(out->staging);
		if (asprintf(&out->staging, "%s/%s", top, path) < 0) {
			out->staging = NULL;
			return incr_fail_nomem(err);
		}
	}
	return 0;
}

/* A spool outside of the store, which is not written then. */
static int open_scratch(struct incr_build *b, const char *path,
			struct incr_error *err)
{
	const struct incr_io *io = b->st->io;
	int fd = io->open_at(io, AT_FDCWD, path,
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return incr_fail_errno(err, fd, path, "cannot open it");
	b->scratch = strdup(path);
	if (!b->scratch) {
		(void)io->close(io, fd);
		return incr_fail_nomem(err);
	}
	b->scratch_fd = fd;
	return io_mkdir(io, fd, STAGING_SPOOL, err);
}

static int make_staging(struct incr_build *b,
			const struct incr_build_options *options,
			struct incr_error *err)
{
	_cleanup_free_ const char **aliases = NULL;
	size_t n = b->info.plan.n_outputs;
	int r = 0;

	if (options->is_preview && options->scratch)
		r = open_scratch(b, options->scratch, err);
	if (r == 0)
		r = staging_of_preview(
			b->st->io, b->scratch ? b->scratch_fd : b->st->dirfd,
			&b->staging, err);
	if (r < 0)
		return r;
	aliases = calloc(n, sizeof(*aliases));
	if (!aliases)
		return incr_fail_nomem(err);
	for (size_t i = 0; i < n; i++)
		aliases[i] = b->info.plan.outputs[i].alias;
	if (!b->scratch)
		r = claim_take(b->st->io, b->st->dirfd, b->staging.dir,
			       &b->unnumbered, err);
	return r < 0 ? r : staging_create(&b->staging, aliases, n, err);
}

/* Under the append lock. */
static int append_opened(struct incr_build *b, struct incr_error *err)
{
	_cleanup_buf_ struct buf fact = BUF_INIT;
	struct build_name name;
	int r;

	b->info.number = index_counters(b->st->index)->next_build;
	name = build_name_of(b->info.number);
	r = encode_fact(b, &fact, err);
	if (r == 0)
		r = lock_take(log_locks(b->st->log), LOCK_BUILD(b->info.number),
			      true, b->st->wait_ms, name.text, &b->owner, err);
	if (r == 0)
		r = staging_name_build(&b->staging, b->info.number, err);
	return r < 0 ? r :
		       store_append(b->st, FACT_BUILD_OPENED, &fact, NULL, err);
}

static int open_record(struct incr_build *b, struct incr_error *err)
{
	struct lock lock;
	int r = store_begin_append(b->st, &lock, err);

	if (r < 0)
		return r;
	r = append_opened(b, err);
	r = store_end_append(b->st, &lock, r, err);
	if (r == 0)
		claim_release(&b->unnumbered); /* its number is locked now */
	return r < 0 ? r : staging_sync(&b->staging, err);
}

static int fill_provenance(struct incr_build *b,
			   const struct incr_build_options *options,
			   struct incr_error *err)
{
	char user[256], host[256] = "";

	store_user(b->st, user, sizeof(user));
	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	b->info.user = strdup(user);
	b->info.host = strdup(host);
	b->info.cwd = strdup(options->cwd ? options->cwd : "");
	if (!b->info.user || !b->info.host || !b->info.cwd ||
	    incr_pairs_copy(&options->environment, &b->info.environment) < 0)
		return incr_fail_nomem(err);

	b->info.status = INCR_BUILD_OPEN;
	b->info.exit_code = -1;
	b->info.started_ns = store_now(b->st);
	b->info.is_preview = options->is_preview;
	b->skips_special = options->skips_special;
	return 0;
}

/* The plan allows it: make everything that a running build has. */
static int start(struct incr_build *b, const struct incr_build_options *options,
		 struct plan_work *w, struct incr_error *err)
{
	int r = fill_provenance(b, options, err);

	if (r == 0 && !options->is_preview)
		r = check_no_open(b, err);
	if (r == 0)
		r = build_check_schemas(b, err);
	if (r == 0)
		r = build_open_views(b, w->views, err);
	if (r == 0)
		r = build_make_empty_previous(b, err);
	if (r == 0)
		r = make_staging(b, options, err);
	if (r == 0 && !options->is_preview)
		r = open_record(b, err);
	return r < 0 ? r : build_set_paths(b, err);
}

/* Room for inputs and outputs, and the plan, which is copied for the caller. */
static int take_plan(struct incr_build *b, struct plan_work *w,
		     struct incr_plan *out_plan, struct incr_error *err)
{
	struct incr_build_info copy = { 0 };
	int r;

	b->info.plan = w->plan;
	w->plan = (struct incr_plan){ 0 };
	b->inputs = calloc(b->info.plan.n_inputs, sizeof(*b->inputs));
	b->outputs = calloc(b->info.plan.n_outputs, sizeof(*b->outputs));
	if (!b->inputs || !b->outputs)
		return incr_fail_nomem(err);
	r = build_copy_info(b, &copy, err);
	if (r < 0)
		return r;

	*out_plan = copy.plan;
	copy.plan = (struct incr_plan){ 0 };
	incr_build_info_release(&copy);
	return 0;
}

static bool may_run(const struct incr_plan *plan)
{
	return plan->decision == INCR_DECISION_INCREMENTAL ||
	       plan->decision == INCR_DECISION_SNAPSHOT;
}

/* What the caller asked for. */
struct request {
	const struct incr_transform *transform;
	const struct incr_plan_options *plan;
	const struct incr_build_options *build;
};

/* 0 begun, 1 nothing may run. */
static int begin(struct incr_build *b, const struct request *request,
		 struct plan_work *w, struct incr_plan *out_plan,
		 struct incr_error *err)
{
	const struct incr_transform *t = request->transform;
	struct incr_plan plan = { 0 };
	int r = store_catch_up(b->st, err);

	if (r == 0)
		r = transform_check(t, err);
	if (r == 0)
		r = request->build->is_preview ?
			    plan_make(b->st, t, request->plan, w, err) :
			    plan_locked(b, t, request->plan, w, err);
	if (r < 0)
		return r;
	if (!may_run(&w->plan)) {
		*out_plan = w->plan;
		w->plan = (struct incr_plan){ 0 };
		return 1;
	}
	r = take_plan(b, w, &plan, err);
	if (r == 0)
		r = start(b, request->build, w, err);
	if (r < 0)
		incr_plan_release(&plan);
	else
		*out_plan = plan;
	return r;
}

/* What start() made before it failed. */
static void undo_start(struct incr_build *b)
{
	/* Nothing was staged yet; the caller has the error that counts. */
	if (b->staging.io)
		(void)staging_remove(&b->staging, NULL);
}

int incr_build_begin(struct incr_store *st,
		     const struct incr_transform *transform,
		     const struct incr_plan_options *plan_options,
		     const struct incr_build_options *options,
		     struct incr_build **out_build, struct incr_plan *out_plan,
		     struct incr_error *err)
{
	static const struct incr_plan_options no_plan_options = { 0 };
	static const struct incr_build_options no_options = { 0 };
	const struct request request = {
		.transform = transform,
		.plan = plan_options ? plan_options : &no_plan_options,
		.build = options ? options : &no_options,
	};
	struct incr_build *b = calloc(1, sizeof(*b));
	struct plan_work w = { 0 };
	int r;

	if (!b)
		return incr_fail_nomem(err);
	b->st = st;
	r = begin(b, &request, &w, out_plan, err);
	plan_work_release(&w);
	if (r == 0) {
		*out_build = b;
		return 0;
	}
	undo_start(b);
	incr_build_close(b);
	if (r < 0)
		return r;
	*out_build = NULL;
	return 0;
}
