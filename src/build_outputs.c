/*
 * The outputs of a build on their way into the log: each is read once, all are
 * checked, and one record holds the transactions of all of them and the build.
 */
#include "config.h"

#include "build.h"
#include "commit.h"
#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The io table, but it notes when a lease could not be had at all. */
struct lease_watch {
	struct incr_io io; /* first: what ingest is given */
	const struct incr_io *base; /* borrowed */
	bool *is_without; /* borrowed */
};

/* One output on its way. */
struct part {
	size_t idx; /* of the output */
	struct lease_watch watch;
	bool is_without_leases;
	struct incr_view *head; /* shared(ref): the view it lands on */
	struct ingest_options ingest;
	struct ingest_result content; /* owned */
	char message[256];
};

struct committing {
	struct incr_build *b;
	const struct incr_commit_build_options *options;
	size_t n; /* outputs that are kept */
	struct part *parts; /* owned */
	struct commit_item *items; /* owned; one a part */
	char user[256];
};

static void committing_release(struct committing *c)
{
	for (size_t i = 0; i < c->n; i++) {
		ingest_result_release(&c->parts[i].content);
		incr_view_unref(c->parts[i].head);
	}
	free(c->parts);
	free(c->items);
}

/* ---- reading what was staged ---- */

static int watched_lease(const struct incr_io *io, int fd, bool is_on)
{
	const struct lease_watch *watch = (const void *)io;
	int r = watch->base->lease(watch->base, fd, is_on);

	if (is_on && r < 0 && r != -EAGAIN)
		__atomic_store_n(watch->is_without, true, __ATOMIC_RELAXED);
	return r;
}

static void watch_leases(struct part *p)
{
	p->watch = (struct lease_watch){ .io = *p->ingest.io,
					 .base = p->ingest.io,
					 .is_without = &p->is_without_leases };
	p->watch.io.lease = watched_lease;
	p->ingest.io = &p->watch.io;
	p->ingest.leases = true;
}

static void set_ingest_options(struct committing *c, struct part *p)
{
	const struct incr_plan_output *out = &c->b->info.plan.outputs[p->idx];
	bool compares = out->txn_type != INCR_APPEND && out->head;

	commit_ingest_options(c->b->st, compares ? p->head : NULL,
			      out->txn_type == INCR_UPDATE, &p->ingest);
	watch_leases(p);
	p->ingest.skips_special = c->b->skips_special ||
				  c->options->skips_special;
	p->ingest.progress = c->options->progress;
	p->ingest.progress_closure = c->options->progress_closure;
}

/* Say who holds the file, rather than that somebody does. */
static int explain_busy(struct committing *c, const char *alias,
			struct incr_error *err)
{
	struct incr_error who = INCR_ERROR_INIT;

	if (staging_check_writers(&c->b->staging, alias, &who) ==
	    INCR_E_CONFLICT) {
		incr_error_release(err);
		*err = who;
	} else {
		incr_error_release(&who);
	}
	return INCR_E_CONFLICT;
}

static int read_part(struct committing *c, struct part *p,
		     struct incr_error *err)
{
	const struct incr_plan_output *out = &c->b->info.plan.outputs[p->idx];
	char path[STAGING_PATH_MAX];
	struct commit_base base = { 0 };
	bool is_empty;
	struct ingest *g = NULL;
	int r;

	/* Also checks that the directory is still a directory. */
	r = staging_is_empty(&c->b->staging, out->alias, true, &is_empty, err);
	if (r == 0)
		r = incr_view_open(c->b->st, out->dataset_id, out->head,
				   &p->head, err);
	if (r < 0)
		return r;
	set_ingest_options(c, p);
	if (out->txn_type == INCR_SNAPSHOT)
		r = commit_base_init(&base, c->b->st, p->head, &p->ingest, err);
	if (r == 0)
		r = ingest_new(&p->ingest, &g, err);
	if (r < 0) {
		commit_base_release(&base);
		return r;
	}
	staging_path(&c->b->staging, out->alias, true, path);
	r = ingest_add_tree(g, c->b->st->dirfd, path, NULL, err);
	if (r == 0)
		r = ingest_run(g, &p->content, err);
	ingest_free(g);
	commit_base_release(&base);
	if (r == INCR_E_CONFLICT && strcmp(err->word, "staging-busy") == 0)
		return explain_busy(c, out->alias, err);
	/* Without leases (file system, owner) the descriptors must tell. */
	if (r == 0 && p->is_without_leases)
		r = staging_check_writers(&c->b->staging, out->alias, err);
	return r;
}

/* ---- checks ---- */

/* Too many people have lost their history that way. */
static int check_replace(struct committing *c, const struct part *p,
			 struct incr_error *err)
{
	const struct incr_plan_output *out = &c->b->info.plan.outputs[p->idx];
	struct build_name name = build_name_of(c->b->info.number);

	if (out->txn_type != INCR_SNAPSHOT || p->content.n_put ||
	    c->options->allows_empty || !incr_view_n_files(p->head))
		return 0;
	(void)incr_fail(err, INCR_E_REFUSED, "empty-replace", out->dataset,
			"output %s: nothing was staged, and replacing would "
			"remove all of it (files: %" PRIu64 ")",
			out->alias, incr_view_n_files(p->head));
	incr_hint(err,
		  "incrctl build commit %s --allow-empty, or incrctl build "
		  "abort %s",
		  name.text, name.text);
	return INCR_E_REFUSED;
}

static void add_paths(struct incr_error *to, const struct incr_error *from)
{
	for (size_t at = 0; at < from->paths_size;) {
		size_t length = strlen(from->paths + at);

		incr_fail_add_path(to, from->paths + at, length);
		at += length + 1;
	}
}

/* All collisions of all outputs; the first failure of another kind ends it. */
static int check_parts(struct committing *c, struct incr_error *err)
{
	int result = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct incr_error why = INCR_ERROR_INIT;
		uint64_t head = c->items[i].expect;
		int r = check_replace(c, &c->parts[i], &why);

		if (r == 0)
			r = commit_check(c->b->st, &c->items[i], head, &why);
		if (r == 0)
			continue;
		if (result == 0) {
			*err = why;
			result = r;
		} else {
			add_paths(err, &why);
			incr_error_release(&why);
		}
		if (!err->n_paths)
			return result;
	}
	return result;
}

/* R111, 2.2: say in the log that whoever reads the output starts anew. */
static void set_message(struct committing *c, struct part *p,
			struct commit_item *item)
{
	const struct incr_build_info *info = &c->b->info;
	uint64_t n = incr_view_n_files(p->head) + p->content.n_put -
		     item->effect.view_files;
	int used = snprintf(p->message, sizeof(p->message),
			    "b%" PRIu64 " of %.100s", info->number,
			    info->plan.transform.name);

	if (item->type == INCR_UPDATE && n && used > 0 &&
	    (size_t)used < sizeof(p->message))
		(void)snprintf(p->message + used,
			       sizeof(p->message) - (size_t)used,
			       ": replaces %" PRIu64 " file%s of its own "
			       "output, so what reads it is not incremental",
			       n, n == 1 ? "" : "s");
	item->message = text_of(p->message);
}

/* ---- the record ---- */

static int parent_line(struct committing *c, const struct incr_plan_output *out,
		       uint64_t *out_line, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t;
	int r;

	*out_line = 0;
	if (!out->head)
		return 0;
	r = store_find_txn(c->b->st, out->head, &storage, &t, err);
	if (r == 0)
		*out_line = t.fact.line;
	return r;
}

static int set_item(struct committing *c, size_t i, struct incr_error *err)
{
	const struct incr_plan *plan = &c->b->info.plan;
	const struct incr_plan_output *out = &plan->outputs[c->parts[i].idx];
	struct commit_item *item = &c->items[i];

	*item = (struct commit_item){
		.dataset_id = out->dataset_id,
		.branch_id = out->branch_exists ? out->branch_id : 0,
		.type = out->txn_type,
		.origin = text_of("build"),
		.user = text_of(c->user),
		.message = text_of(NULL),
		.pairs = text_of(NULL),
		.opened_ns = c->b->info.started_ns,
		.has_expect = true,
		.expect = out->head,
		.content = &c->parts[i].content,
	};
	if (plan->is_incremental && plan->transform.strict_append)
		item->collision_word = "strict-append-collision";
	if (out->branch_exists)
		return 0;
	item->new_branch = (struct fact_branch){
		.dataset_id = out->dataset_id,
		.name = text_of(out->branch),
		.parent = text_of(out->fork_parent),
		.at = out->head,
	};
	return parent_line(c, out, &item->new_branch.parent_line, err);
}

/* The plan as it is recorded: transactions and what they hold, or nothing. */
static void set_outputs(struct committing *c, bool is_done)
{
	struct incr_plan *plan = &c->b->info.plan;

	for (size_t i = 0; i < plan->n_outputs; i++)
		plan->outputs[i].is_aborted = is_done;
	for (size_t i = 0; i < c->n; i++) {
		struct incr_plan_output *out = &plan->outputs[c->parts[i].idx];

		out->is_aborted = false;
		out->txn = is_done ? c->items[i].number : 0;
		out->n_files = is_done ? c->parts[i].content.n_put : 0;
		out->size = is_done ? c->parts[i].content.size : 0;
	}
}

static int encode_build(void *closure, const struct commit_request *request,
			struct fact_build *out_build, struct buf *out_payload,
			struct incr_error *err)
{
	struct committing *c = closure;
	const struct incr_build_info *info = &c->b->info;

	(void)request;
	set_outputs(c, true);
	*out_build = (struct fact_build){
		.number = info->number,
		.status = info->status,
		.transform = text_of(info->plan.transform.name),
	};
	return build_encode(info, out_payload, err);
}

static int append(struct committing *c, struct incr_error *err)
{
	struct commit_request request = { .n_items = c->n,
					  .items = c->items,
					  .encode_build = encode_build,
					  .closure = c,
					  .build = c->b->info.number };
	struct incr_build_info *info = &c->b->info;
	int r;

	info->status = INCR_BUILD_COMMITTED;
	info->exit_code = c->options->exit_code;
	info->ended_ns = store_now(c->b->st);
	if (c->options->recording)
		c->options->recording(c->options->recording_closure);
	r = commit_append(c->b->st, &request, err);
	if (r < 0) {
		info->status = INCR_BUILD_OPEN;
		info->exit_code = -1;
		info->ended_ns = 0;
		set_outputs(c, false);
	}
	return r;
}

static int make_room(struct committing *c, struct incr_error *err)
{
	size_t n = c->b->info.plan.n_outputs;

	c->parts = calloc(n, sizeof(*c->parts));
	c->items = calloc(n, sizeof(*c->items));
	if (!c->parts || !c->items)
		return incr_fail_nomem(err);
	store_user(c->b->st, c->user, sizeof(c->user));
	for (size_t i = 0; i < n; i++)
		if (!c->b->outputs[i].is_aborted)
			c->parts[c->n++].idx = i;
	return 0;
}

static int commit_parts(struct committing *c, struct incr_error *err)
{
	int r = make_room(c, err);

	for (size_t i = 0; i < c->n && r == 0; i++) {
		r = set_item(c, i, err);
		if (r == 0)
			r = read_part(c, &c->parts[i], err);
	}
	if (r == 0)
		r = check_parts(c, err);
	for (size_t i = 0; i < c->n && r == 0; i++)
		set_message(c, &c->parts[i], &c->items[i]);
	if (r == 0)
		r = append(c, err);
	if (r < 0)
		for (size_t i = 0; i < c->n; i++)
			ingest_result_discard(&c->parts[i].ingest,
					      &c->parts[i].content);
	return r;
}

int build_commit_outputs(struct incr_build *b,
			 const struct incr_commit_build_options *options,
			 struct incr_error *err)
{
	struct committing c = { .b = b, .options = options };
	int r = commit_parts(&c, err);

	committing_release(&c);
	return r;
}
