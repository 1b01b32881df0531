/* `commit`: sources to one transaction. */
#include "config.h"

#include "commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "name.h"
#include "view.h"

/* Lost races against other commits on the branch before the caller is told. */
#define RACES_MAX 20

int commit_find_stored(void *closure, const char *path, size_t length,
		       struct manifest_entry *out_entry, struct incr_error *err)
{
	struct incr_view *view = closure;
	struct view_walk w;
	int r = view_walk_init(&w, view, err);

	if (r == 0)
		r = view_walk_find(&w, path, length, err);
	if (r == 0)
		r = commit_version_entry(&w, out_entry, err);
	view_walk_release(&w);
	if (r == 0)
		out_entry->path = path;
	return r;
}

static int find_content(void *closure, const uint8_t *hash, uint64_t front,
			uint64_t size, struct content *out_content,
			struct incr_error *err)
{
	struct incr_store *st = closure;
	struct state_content_key k = hash ? state_content_small(hash) :
					    state_content_large(front, size);

	return state_find_content(st->index, k, size, out_content, err);
}

void commit_ingest_options(struct incr_store *st, struct incr_view *view,
			   bool drops_unchanged, struct ingest_options *out)
{
	*out = (struct ingest_options){
		.io = st->io,
		.store_dirfd = st->dirfd,
		.find_stored = view ? commit_find_stored : NULL,
		.closure = view,
		.find_content = find_content,
		.content_closure = st,
		.reader = st->reader,
		.drops_unchanged = drops_unchanged,
	};
	memcpy(out->uuid, st->uuid, sizeof(out->uuid));
}

int commit_find_branch(struct incr_store *st,
		       const struct incr_txn_options *options,
		       struct buf *storage, struct state_branch *out,
		       struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	bool is_main = !options->branch || !strcmp(options->branch, "main");
	int r = store_find_free_branch(st, options->dataset_id, options->branch,
				       storage, out, &why);

	if (r == INCR_E_NOTFOUND && is_main &&
	    !strcmp(why.word, "no-such-branch")) {
		incr_error_release(&why);
		r = incr_branch_create(st, options->dataset_id, "main", NULL, 0,
				       &why);
		if (r == 0 || r == INCR_E_EXISTS) {
			incr_error_release(&why);
			r = store_find_free_branch(st, options->dataset_id,
						   "main", storage, out, &why);
		}
	}
	return incr_fail_with(err, r, &why);
}

int commit_fill_texts(struct incr_store *st,
		      const struct incr_txn_options *options,
		      struct commit_texts *texts, struct commit_item *item,
		      struct incr_error *err)
{
	const char *origin = options->origin ? options->origin : "user";
	int r = name_check_origin(origin, strlen(origin), err);

	if (r == 0)
		r = fact_check_text("the message", options->message, err);
	if (r == 0)
		r = fact_pairs_check(&options->meta, false, err);
	if (r < 0)
		return r;
	store_user(st, texts->user, sizeof(texts->user));
	if (fact_pairs_encode(&options->meta, &texts->pairs) < 0)
		return incr_fail_nomem(err);
	item->origin = text_of(origin);
	item->user = text_of(texts->user);
	item->message = text_of(options->message);
	item->pairs = (struct text){ (const char *)texts->pairs.data,
				     texts->pairs.size };
	return 0;
}

static const char *base_name(const char *path)
{
	const char *end = path + strlen(path);
	const char *start;

	while (end > path && end[-1] == '/')
		end--;
	start = end;
	while (start > path && start[-1] != '/')
		start--;
	return start;
}

/* prefix/name, owned by @out. */
static int join(const char *prefix, const char *name, struct buf *out,
		struct incr_error *err)
{
	bool has_prefix = prefix && *prefix;

	if ((has_prefix && (buf_put(out, prefix, strlen(prefix)) < 0 ||
			    buf_put(out, "/", 1) < 0)) ||
	    buf_put(out, name, strlen(name) + 1) < 0)
		return incr_fail_nomem(err);
	return 0;
}

static int add_source(struct incr_store *st, struct ingest *g,
		      const struct incr_source *s, struct incr_error *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	int fd, r;

	if (s->kind == INCR_SOURCE_STREAM) {
		r = join(s->prefix, s->name ? s->name : "", &name, err);
		return r < 0 ? r :
			       ingest_add_stream(g, s->fd,
						 (const char *)name.data, err);
	}
	/* a link given by name is followed, as cp and tar do with their arguments */
	fd = st->io->open_at(st->io, AT_FDCWD, s->path,
			     O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	if (fd >= 0) {
		(void)io_close(st->io, fd); /* only looked at */
		return ingest_add_tree(g, AT_FDCWD, s->path, s->prefix, err);
	}
	if (fd != -ENOTDIR)
		return incr_fail_errno(err, -fd, s->path,
				       "cannot open the source");
	r = join(s->prefix, s->name ? s->name : base_name(s->path), &name, err);
	return r < 0 ? r :
		       ingest_add_file(g, AT_FDCWD, s->path,
				       (const char *)name.data, err);
}

/* Does any path of the sources stand in the view?  If not, nothing was left out. */
struct comparison {
	struct incr_view *view;
	bool has_found; /* atomic */
};

static int find_and_note(void *closure, const char *path, size_t length,
			 struct manifest_entry *out_entry,
			 struct incr_error *err)
{
	struct comparison *c = closure;
	int r = commit_find_stored(c->view, path, length, out_entry, err);

	if (r == 0)
		__atomic_store_n(&c->has_found, true, __ATOMIC_RELAXED);
	return r;
}

/* What is to be committed. */
struct wanted {
	const struct incr_txn_options *options;
	const struct incr_source *sources;
	size_t n_sources;
	bool may_be_relative; /* a SNAPSHOT, to the head that it is tried on */
};

static int ingest_sources(struct incr_store *st,
			  const struct ingest_options *options,
			  const struct wanted *wanted,
			  struct ingest_result *out_content,
			  struct incr_error *err)
{
	struct ingest *g;
	int r = ingest_new(options, &g, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < wanted->n_sources; i++)
		r = add_source(st, g, &wanted->sources[i], err);
	if (r == 0)
		r = ingest_run(g, out_content, err);
	ingest_free(g);
	return r;
}

/* The lock on the branch is held; its head may still move by other commits. */
static int commit_on(struct incr_store *st, const struct wanted *wanted,
		     const struct state_branch *branch,
		     struct commit_item *item, struct incr_error *err)
{
	const struct incr_txn_options *options = wanted->options;
	struct commit_request request = { .n_items = 1, .items = item };
	struct ingest_options ingest_options;
	struct ingest_result content = { 0 };
	struct comparison with = { 0 };
	struct commit_base base = { 0 };
	bool compares = options->type != INCR_APPEND && branch->head;
	bool drops = options->type == INCR_UPDATE && !options->rewrites;
	int r = 0;

	if (compares)
		r = incr_view_open(st, options->dataset_id, branch->head,
				   &with.view, err);
	if (r < 0)
		return r;
	commit_ingest_options(st, with.view, drops, &ingest_options);
	if (compares) {
		ingest_options.find_stored = find_and_note;
		ingest_options.closure = &with;
	}
	ingest_options.skips_special = options->skips_special;
	ingest_options.progress = options->progress;
	ingest_options.progress_closure = options->progress_closure;
	if (options->type == INCR_SNAPSHOT && wanted->may_be_relative)
		r = commit_base_init(&base, st, with.view, &ingest_options,
				     err);
	if (r == 0)
		r = ingest_sources(st, &ingest_options, wanted, &content, err);
	commit_base_release(&base);
	incr_view_unref(with.view);
	if (r < 0)
		return r;
	item->content = &content;
	/* files left out as unchanged are only unchanged against the head they were compared with */
	if (drops && with.has_found && !item->has_expect) {
		item->has_expect = true;
		item->expect = branch->head;
	}
	if (options->skips_empty && !content.n_put && !content.n_removed)
		r = 1;
	else
		r = commit_append(st, &request, err);
	if (r)
		ingest_result_discard(&ingest_options, &content);
	ingest_result_release(&content);
	item->content = NULL;
	return r;
}

/* One try, on the branch as it is now. */
static int commit_once(struct incr_store *st, const struct wanted *wanted,
		       struct commit_item *item, struct incr_error *err)
{
	const struct incr_txn_options *options = wanted->options;
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_branch branch = { 0 };
	int r = store_catch_up(st, err);

	if (r == 0)
		r = store_find_free_branch(st, options->dataset_id,
					   options->branch, &storage, &branch,
					   err);
	if (r < 0)
		return r;
	item->branch_id = branch.fact.id;
	item->has_expect = options->has_expect;
	item->expect = options->expect;
	item->effect.is_known = false;
	return commit_on(st, wanted, &branch, item, err);
}

/* Sources can be read again after a lost race or damage, unless one is a stream. */
static bool can_repeat(const struct wanted *wanted)
{
	for (size_t i = 0; i < wanted->n_sources; i++)
		if (wanted->sources[i].kind == INCR_SOURCE_STREAM)
			return false;
	return true;
}

static int commit_locked(struct incr_store *st, struct wanted *wanted,
			 struct commit_item *item, struct incr_error *err)
{
	bool repeats = can_repeat(wanted);

	for (int i = 0;; i++) {
		struct incr_error why = INCR_ERROR_INIT;
		int r;

		/* a whole one lands on any head: it cannot lose the next race */
		wanted->may_be_relative = repeats && i == 0;
		r = commit_once(st, wanted, item, &why);
		if (repeats && i < RACES_MAX &&
		    ((r == INCR_E_CONFLICT && !wanted->options->has_expect &&
		      !strcmp(why.word, "branch-moved")) ||
		     (r == INCR_E_CORRUPT && index_is_damaged(st->index)))) {
			incr_error_release(&why);
			continue;
		}
		return incr_fail_with(err, r, &why);
	}
}

int incr_commit(struct incr_store *st, const struct incr_txn_options *options,
		const struct incr_source *sources, size_t n_sources,
		struct incr_txn_info *out_info, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct commit_texts texts = { .pairs = BUF_INIT };
	struct wanted wanted = { .options = options,
				 .sources = sources,
				 .n_sources = n_sources };
	struct commit_item item = { .dataset_id = options->dataset_id,
				    .type = options->type,
				    .opened_ns = store_now(st) };
	struct state_branch branch;
	struct lock lock;
	int r = options->type == INCR_SNAPSHOT ||
				options->type == INCR_APPEND ||
				options->type == INCR_UPDATE ?
			store_catch_up(st, err) :
			incr_fail(err, INCR_E_INVALID, "bad-type", NULL,
				  "a commit is a SNAPSHOT, APPEND or UPDATE");

	if (r == 0)
		r = commit_fill_texts(st, options, &texts, &item, err);
	if (r == 0)
		r = commit_find_branch(st, options, &storage, &branch, err);
	if (r == 0)
		r = store_lock_branch(st, &branch, false, &lock, err);
	if (r == 0) {
		r = commit_locked(st, &wanted, &item, err);
		lock_release(&lock);
	}
	buf_release(&texts.pairs);
	if (r == 0 && out_info)
		r = incr_txn_find(st, item.number, out_info, err);
	return r;
}
