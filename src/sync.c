/*
 * `sync`: a folder to the smallest transaction.
 *
 * The folder is walked once, in path order, with the branch's view and the
 * cache of the last sync beside it.  What the cache knows is not read; of the
 * rest, what equals the view byte for byte is left out.  UPDATE and DELETE of
 * a mirror land in one record.  Whatever is interrupted before that record is
 * on disk changed nothing.
 */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "error.h"
#include "name.h"
#include "sync_cache.h"
#include "view.h"

#define RACES_MAX 5

struct sync {
	struct incr_store *st;
	const struct incr_sync_options *options;
	struct incr_sync_result *result;
	struct incr_view
		*view; /* owned: of the head that the folder is compared with */
	struct view_walk walk; /* over it, beside the folder */
	int walk_state; /* of its last move */
	struct sync_cache *cache; /* owned */
	bool cache_counts; /* its head is on the path of ours */
	struct memtable
		*gone; /* owned: paths of the view that the folder lacks */
	uint64_t n_present; /* paths that would be in a SNAPSHOT */
	int64_t now_ns;
};

static bool matches_any(const char *const *globs, size_t n, const char *path,
			size_t length)
{
	for (size_t i = 0; i < n; i++)
		if (name_glob_match(globs[i], path, length))
			return true;
	return false;
}

/* Globs are about the path below the folder. */
static bool takes_part(const struct sync *s, const char *path, size_t length)
{
	const struct incr_sync_options *o = s->options;

	if (o->n_includes &&
	    !matches_any(o->includes, o->n_includes, path, length))
		return false;
	return !matches_any(o->excludes, o->n_excludes, path, length);
}

static int note_gone(struct sync *s, struct incr_error *err)
{
	if (!takes_part(s, s->walk.path, s->walk.path_length))
		return 0;
	if (memtable_put(s->gone, s->walk.path, s->walk.path_length, "", 0) < 0)
		return incr_fail_nomem(err);
	return 0;
}

/* Move the walk to @path; what it passes is not in the folder. 0: the view has the path, 1: not. */
static int walk_to(struct sync *s, const char *path, size_t length,
		   struct incr_error *err)
{
	while (s->walk_state == 0) {
		int order = table_key_compare(s->walk.path, s->walk.path_length,
					      path, length);
		int r;

		if (order >= 0)
			return order > 0;
		r = note_gone(s, err);
		if (r < 0)
			return r;
		s->walk_state = view_walk_next(&s->walk, err);
	}
	return s->walk_state;
}

/* Does the view have the path, or did it once? 0: yes, 1: no. */
static int view_had(struct incr_view *v, const char *path, size_t length,
		    struct incr_error *err)
{
	struct view_walk w;
	int r = view_walk_init(&w, v, err);

	if (r == 0)
		r = view_walk_find(&w, path, length, err);
	if (r == 1 && w.removed_by)
		r = 0;
	view_walk_release(&w);
	return r;
}

/* The same for all views of the branch before this one. */
static int was_ever(struct sync *s, const char *path, size_t length,
		    struct incr_error *err)
{
	uint64_t start = s->view->start;

	while (start) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct incr_view *older;
		struct state_txn t;
		int r = store_find_txn(s->st, start, &storage, &t, err);

		if (r < 0 || !t.fact.parent)
			return r < 0 ? r : 1;
		r = incr_view_open(s->st, s->view->dataset_id, t.fact.parent,
				   &older, err);
		if (r < 0)
			return r;
		start = older->start;
		r = view_had(older, path, length, err);
		incr_view_unref(older);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Is the view's version the one that the cache's entry is about, and may it stand as it is? */
static int is_known(struct sync *s, const char *path, size_t length,
		    const struct io_stat *st, bool *out_is_known,
		    struct incr_error *err)
{
	struct version v;
	int r;

	*out_is_known = false;
	if (!s->cache_counts || !sync_cache_knows(s->cache, path, length, st) ||
	    s->walk.txn > sync_cache_head(s->cache))
		return 0;
	r = view_walk_version(&s->walk, &v, err);
	if (r < 0)
		return r;
	/* what a repair gave up can be had again from the folder */
	r = state_lost_file(s->st->index, s->walk.key_txn,
			    (struct text){ path, length }, err);
	*out_is_known = r == 1 && v.mode == (st->mode & 0777) &&
			v.content.size == st->size;
	version_release(&v);
	return r < 0 ? r : 0;
}

static int judge_new(struct sync *s, const char *path, size_t length,
		     enum ingest_verdict *out_verdict, struct incr_error *err)
{
	int r = 1;

	*out_verdict = INGEST_READ;
	if (s->options->mode != INCR_SYNC_APPEND)
		return 0;
	/* deleted here, or of an older view: synced once, never again */
	r = view_had(s->view, path, length, err);
	if (r == 1)
		r = was_ever(s, path, length, err);
	if (r < 0)
		return r;
	if (r == 0)
		*out_verdict = INGEST_LEAVE_OUT;
	return 0;
}

static int judge_present(struct sync *s, const char *path, size_t length,
			 const struct io_stat *st,
			 enum ingest_verdict *out_verdict,
			 struct incr_error *err)
{
	bool known = false;
	int r = 0;

	if (s->options->mode == INCR_SYNC_APPEND) {
		*out_verdict = INGEST_LEAVE_OUT;
		return 0;
	}
	if (!s->options->txn.rewrites)
		r = is_known(s, path, length, st, &known, err);
	s->result->n_known += known;
	*out_verdict = known ? INGEST_KNOWN : INGEST_READ;
	return r;
}

static bool is_young(const struct sync *s, const struct io_stat *st)
{
	return s->options->settle_ns > 0 &&
	       (s->now_ns - st->mtime_ns < s->options->settle_ns ||
		s->now_ns - st->ctime_ns < s->options->settle_ns);
}

static int judge(void *closure, const char *path, size_t length,
		 const struct io_stat *st, enum ingest_verdict *out_verdict,
		 struct incr_error *err)
{
	struct sync *s = closure;
	int r = walk_to(s, path, length, err);
	bool is_present = r == 0;

	if (r < 0)
		return r;
	*out_verdict = INGEST_LEAVE_OUT;
	if (takes_part(s, path, length)) {
		if (!is_young(s, st)) {
			r = is_present ? judge_present(s, path, length, st,
						       out_verdict, err) :
					 judge_new(s, path, length, out_verdict,
						   err);
		} else {
			s->result->n_young++;
			/* a SNAPSHOT keeps the version that is there */
			if (is_present)
				*out_verdict = INGEST_KNOWN;
		}
	}
	if (r >= 0 && is_present)
		s->walk_state = view_walk_next(&s->walk, err);
	if (r < 0 || s->walk_state < 0)
		return r < 0 ? r : s->walk_state;
	s->n_present += *out_verdict != INGEST_LEAVE_OUT;
	if (*out_verdict == INGEST_LEAVE_OUT || is_young(s, st))
		return 0;
	return sync_cache_add(s->cache, path, length, st, err);
}

/* ---- one try ---- */

static int find_stored(void *closure, const char *path, size_t length,
		       struct manifest_entry *out_entry, struct incr_error *err)
{
	const struct sync *s = closure;

	return commit_find_stored(s->view, path, length, out_entry, err);
}

static int ingest_folder(struct sync *s, struct ingest_options *options,
			 struct ingest_result *out_content,
			 struct incr_error *err)
{
	struct commit_base base = { 0 };
	struct ingest *g;
	int r = 0;

	commit_ingest_options(s->st, s->view,
			      s->options->mode != INCR_SYNC_SNAPSHOT &&
				      !s->options->txn.rewrites,
			      options);
	options->judge = judge;
	options->find_stored = find_stored;
	options->closure = s;
	options->skips_special = s->options->txn.skips_special;
	options->progress = s->options->txn.progress;
	options->progress_closure = s->options->txn.progress_closure;
	/* --rewrite counts every file: then the list must hold them all */
	if (s->options->mode == INCR_SYNC_SNAPSHOT && !s->options->txn.rewrites)
		r = commit_base_init(&base, s->st, s->view, options, err);
	if (r == 0)
		r = ingest_new(options, &g, err);
	if (r) {
		commit_base_release(&base);
		return r;
	}
	r = ingest_add_tree(g, AT_FDCWD, s->options->directory, NULL, err);
	if (r == 0)
		r = ingest_run(g, out_content, err);
	ingest_free(g);
	commit_base_release(&base);
	/* what stands behind the folder's last path */
	while (r == 0 && s->walk_state == 0) {
		r = note_gone(s, err);
		if (r == 0)
			s->walk_state = view_walk_next(&s->walk, err);
	}
	if (r == 0 && s->walk_state < 0)
		r = s->walk_state;
	return r;
}

static void tell(const struct sync *s, enum incr_change change,
		 const char *path, size_t length)
{
	if (s->options->changed)
		s->options->changed(s->options->changed_closure, change, path,
				    length);
}

/* Is an entry of the manifest another version than the view's? */
static int count_entry(struct sync *s, struct view_walk *w,
		       const struct manifest_entry *e, struct incr_error *err)
{
	struct version old;
	bool is_same;
	int r;

	if (e->op == MANIFEST_REMOVE)
		return 0; /* among those that are gone */
	r = view_walk_find(w, e->path, e->path_length, err);
	if (r < 0)
		return r;
	if (r == 1) {
		s->result->n_added++;
		s->result->size += e->content.size;
		tell(s, INCR_ADDED, e->path, e->path_length);
		return 0;
	}
	r = view_walk_version(w, &old, err);
	if (r < 0)
		return r;
	/* one that cannot be read was stored anew */
	is_same = content_equals(&old.content, &e->content) &&
		  old.mode == e->mode &&
		  !memcmp(old.hash, e->hash, sizeof(old.hash));
	version_release(&old);
	if (is_same && !s->options->txn.rewrites)
		return 0;
	s->result->n_modified++;
	s->result->size += e->content.size;
	tell(s, INCR_MODIFIED, e->path, e->path_length);
	return 0;
}

static int count_changes(struct sync *s, const struct ingest_result *content,
			 struct incr_error *err)
{
	const struct manifest_entry *e;
	struct manifest_reader *m;
	struct view_walk w;
	int r = ingest_result_entries(content, s->st->reader, &m, err);

	if (r < 0)
		return r;
	r = view_walk_init(&w, s->view, err);
	while (r == 0 && (r = manifest_reader_next(m, &e, err)) == 0)
		r = count_entry(s, &w, e, err);
	view_walk_release(&w);
	manifest_reader_free(m);
	return r < 0 ? r : 0;
}

static bool removes(const struct sync *s)
{
	return s->options->mode == INCR_SYNC_MIRROR ||
	       s->options->mode == INCR_SYNC_SNAPSHOT;
}

static int count_gone(struct sync *s, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	int r;

	if (!removes(s))
		return 0;
	if (memtable_iter_new(s->gone, &it) < 0)
		return incr_fail_nomem(err);
	for (r = it->seek(it, "", 0, err); r == 0; r = it->next(it, err)) {
		s->result->n_removed++;
		tell(s, INCR_REMOVED, (const char *)it->entry.key,
		     it->entry.key_size);
	}
	return r < 0 ? r : 0;
}

static int ingest_gone(struct sync *s, struct ingest_result *out_content,
		       struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct ingest_options options;
	struct ingest *g;
	int r;

	commit_ingest_options(s->st, NULL, false, &options);
	r = ingest_new(&options, &g, err);
	if (r < 0)
		return r;
	if (memtable_iter_new(s->gone, &it) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = it->seek(it, "", 0, err);
	while (r == 0) {
		r = ingest_add_removal(g, (const char *)it->entry.key,
				       it->entry.key_size, err);
		if (r == 0)
			r = it->next(it, err);
	}
	if (r == 1)
		r = ingest_run(g, out_content, err);
	ingest_free(g);
	return r;
}

static enum incr_txn_type type_of(enum incr_sync_mode mode)
{
	if (mode == INCR_SYNC_SNAPSHOT)
		return INCR_SNAPSHOT;
	return mode == INCR_SYNC_APPEND ? INCR_APPEND : INCR_UPDATE;
}

/* The parts of a mirror: removals first, so that `x` may become `x/y`. */
static int commit_changes(struct sync *s, const struct commit_item *like,
			  struct ingest_result *content, struct incr_error *err)
{
	struct commit_item items[2] = { *like, *like };
	struct commit_request request = { .items = items };
	struct ingest_result gone = { .is_inline = true };
	struct ingest_options options;
	bool has_delete = s->options->mode == INCR_SYNC_MIRROR &&
			  s->result->n_removed;
	int r = has_delete ? ingest_gone(s, &gone, err) : 0;

	if (r < 0)
		return r;
	if (has_delete) {
		items[0].type = INCR_DELETE;
		items[0].content = &gone;
		items[1].before = &items[0];
		items[1].gone = s->gone;
		request.n_items = 1;
	}
	if (!has_delete || content->n_put) {
		items[request.n_items].type = type_of(s->options->mode);
		items[request.n_items].content = content;
		request.n_items++;
	}
	r = commit_append(s->st, &request, err);
	for (size_t i = 0; r == 0 && i < request.n_items; i++)
		s->result->txns[s->result->n_txns++] = items[i].number;
	if (r < 0) {
		commit_ingest_options(s->st, NULL, false, &options);
		ingest_result_discard(&options, &gone);
	}
	ingest_result_release(&gone);
	return r;
}

static bool is_nothing(const struct sync *s)
{
	const struct incr_sync_result *n = s->result;

	return !n->n_added && !n->n_modified && !(removes(s) && n->n_removed);
}

static int run(struct sync *s, const struct commit_item *like, uint64_t head,
	       struct incr_error *err)
{
	struct ingest_options options;
	struct ingest_result content = { 0 };
	int r = ingest_folder(s, &options, &content, err);

	if (r < 0)
		return r;
	r = count_changes(s, &content, err);
	if (r == 0)
		r = count_gone(s, err);
	if (r == 0 && (is_nothing(s) || s->options->is_dry_run)) {
		r = 1;
		if (is_nothing(s))
			sync_cache_publish(s->cache, head);
	}
	if (r == 0) {
		r = commit_changes(s, like, &content, err);
		if (r == 0)
			sync_cache_publish(
				s->cache,
				s->result->txns[s->result->n_txns - 1]);
	}
	if (r)
		ingest_result_discard(&options, &content);
	ingest_result_release(&content);
	return r;
}

static void sync_release(struct sync *s)
{
	view_walk_release(&s->walk);
	sync_cache_close(s->cache);
	memtable_unref(s->gone);
	incr_view_unref(s->view);
}

static int open_cache(struct sync *s, const struct state_branch *branch,
		      struct incr_error *err)
{
	const struct incr_io *io = s->st->io;
	char directory[PATH_MAX];
	int r = io->real_path(io, s->options->directory, directory,
			      sizeof(directory));

	if (r < 0)
		return incr_fail_errno(err, -r, s->options->directory,
				       "cannot open the folder");
	r = sync_cache_open(s->st, branch->fact.id, directory, &s->cache, err);
	if (r < 0 || !sync_cache_head(s->cache))
		return r;
	/* after a rollback, what the cache is about may be no longer there */
	return incr_txn_is_on_path(s->st, sync_cache_head(s->cache),
				   branch->head, &s->cache_counts, err);
}

static int try_once(struct incr_store *st,
		    const struct incr_sync_options *options,
		    struct commit_item *item, struct incr_sync_result *result,
		    struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct sync s = { .st = st, .options = options, .result = result };
	struct state_branch branch = { 0 };
	int r = store_catch_up(st, err);

	*result = (struct incr_sync_result){ 0 };
	if (r == 0)
		r = store_find_free_branch(st, options->txn.dataset_id,
					   options->txn.branch, &storage,
					   &branch, err);
	if (r == 0)
		r = incr_view_open(st, options->txn.dataset_id, branch.head,
				   &s.view, err);
	if (r < 0)
		return r;
	item->branch_id = branch.fact.id;
	/* what differs from a head only differs from that one */
	item->has_expect = true;
	item->expect = options->txn.has_expect ? options->txn.expect :
						 branch.head;
	s.now_ns = store_now(st);
	r = view_walk_init(&s.walk, s.view, err);
	if (r == 0 && memtable_new(&s.gone) < 0)
		r = incr_fail_nomem(err);
	if (r == 0)
		r = open_cache(&s, &branch, err);
	if (r == 0) {
		s.walk_state = view_walk_seek(&s.walk, NULL, 0, err);
		r = s.walk_state < 0 ? s.walk_state : 0;
	}
	if (r == 0)
		r = run(&s, item, branch.head, err);
	sync_release(&s);
	return r;
}

static int sync_locked(struct incr_store *st,
		       const struct incr_sync_options *options,
		       struct commit_item *item,
		       struct incr_sync_result *result, struct incr_error *err)
{
	for (int i = 0;; i++) {
		struct incr_error why = INCR_ERROR_INIT;
		int r = try_once(st, options, item, result, &why);

		if (r == INCR_E_CONFLICT && !strcmp(why.word, "branch-moved") &&
		    !options->txn.has_expect && i < RACES_MAX) {
			incr_error_release(&why);
			continue;
		}
		return incr_fail_with(err, r, &why);
	}
}

int incr_sync(struct incr_store *st, const struct incr_sync_options *options,
	      struct incr_sync_result *out_result, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct commit_texts texts = { .pairs = BUF_INIT };
	struct commit_item item = { .dataset_id = options->txn.dataset_id,
				    .opened_ns = store_now(st) };
	struct incr_sync_result result = { 0 };
	struct state_branch branch;
	struct lock lock;
	int r = store_catch_up(st, err);

	if (r == 0)
		r = commit_fill_texts(st, &options->txn, &texts, &item, err);
	if (r == 0)
		r = store_find_branch(st, options->txn.dataset_id,
				      options->txn.branch, &storage, &branch,
				      err);
	if (r == 0)
		r = store_lock_branch(st, &branch, false, &lock, err);
	if (r == 0) {
		r = sync_locked(st, options, &item, &result, err);
		lock_release(&lock);
	}
	buf_release(&texts.pairs);
	if (r >= 0)
		*out_result = result;
	return r;
}
