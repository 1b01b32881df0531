/* `rm`: one DELETE of the paths that names and globs stand for. */
#include "config.h"

#include "remove.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "name.h"
#include "view.h"

static int add(struct removal *m, const char *path, size_t length)
{
	if (memtable_put(m->paths, path, length, "", 0) < 0)
		return incr_fail_nomem(m->err);
	return 0;
}

/* Every file below a directory. */
static int add_below(struct removal *m, const char *dir, size_t length)
{
	struct view_walk w;
	int r = view_walk_init(&w, m->view, m->err);

	if (r == 0)
		r = view_walk_seek(&w, dir, length, m->err);
	for (; r == 0; r = view_walk_next(&w, m->err)) {
		/* "dir.x" sorts between "dir" and "dir/y" */
		if (w.path_length < length || memcmp(w.path, dir, length) != 0)
			break;
		if (w.path_length > length && w.path[length] != '/')
			continue;
		r = add(m, w.path, w.path_length);
		if (r < 0)
			break;
	}
	view_walk_release(&w);
	return r < 0 ? r : 0;
}

int removal_add(struct removal *m, const char *path, size_t length)
{
	struct incr_node node = INCR_NODE_INIT;
	int r = incr_view_find(m->view, path, length, &node, m->err);
	bool is_dir = node.is_dir;

	incr_node_release(&node);
	if (r)
		return r < 0 ? r : 0;
	return is_dir ? add_below(m, path, length) : add(m, path, length);
}

/* The part of a glob before its first special character: where a walk may begin. */
static size_t literal_prefix(const char *glob)
{
	return strcspn(glob, "*?[\\");
}

static int add_matches(struct removal *m, const char *glob, bool *out_found)
{
	size_t literal = literal_prefix(glob);
	struct view_walk w;
	int r = view_walk_init(&w, m->view, m->err);

	if (r == 0)
		r = view_walk_seek(&w, glob, literal, m->err);
	for (; r == 0; r = view_walk_next(&w, m->err)) {
		if (w.path_length < literal ||
		    memcmp(w.path, glob, literal) != 0)
			break;
		if (!name_glob_match(glob, w.path, w.path_length))
			continue;
		*out_found = true;
		r = add(m, w.path, w.path_length);
		if (r < 0)
			break;
	}
	view_walk_release(&w);
	return r < 0 ? r : 0;
}

static int no_such_path(struct removal *m, const char *pattern)
{
	incr_fail(m->err, INCR_E_NOTFOUND, "no-such-path", pattern,
		  "nothing in the view has this path or matches it");
	incr_hint(m->err, "--ignore-missing leaves such arguments out");
	return INCR_E_NOTFOUND;
}

static int add_pattern(struct removal *m, const char *pattern)
{
	struct incr_node node = INCR_NODE_INIT;
	size_t length = strlen(pattern);
	bool is_dir, found = false;
	int r;

	while (length > 1 && pattern[length - 1] == '/')
		length--;
	r = length ? incr_view_find(m->view, pattern, length, &node, m->err) :
		     1;
	is_dir = node.is_dir;
	incr_node_release(&node);
	if (r < 0)
		return r;
	if (r == 0 && is_dir && !m->flags.is_recursive) {
		incr_fail(m->err, INCR_E_INVALID, "is-directory", pattern,
			  "it is a directory");
		incr_hint(m->err, "--recursive removes everything below it");
		return INCR_E_INVALID;
	}
	if (r == 0)
		return is_dir ? add_below(m, pattern, length) :
				add(m, pattern, length);
	r = add_matches(m, pattern, &found);
	if (r == 0 && !found && !m->flags.ignores_missing)
		return no_such_path(m, pattern);
	return r;
}

int removal_ingest(struct removal *m, struct ingest_result *out_content)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct ingest_options options;
	struct ingest *g;
	int r;

	commit_ingest_options(m->st, NULL, false, &options);
	r = ingest_new(&options, &g, m->err);
	if (r < 0)
		return r;
	if (memtable_iter_new(m->paths, &it) < 0)
		r = incr_fail_nomem(m->err);
	if (r == 0)
		r = it->seek(it, "", 0, m->err);
	while (r == 0) {
		r = ingest_add_removal(g, (const char *)it->entry.key,
				       it->entry.key_size, m->err);
		if (r == 0)
			r = it->next(it, m->err);
	}
	if (r == 1)
		r = ingest_run(g, out_content, m->err);
	ingest_free(g);
	return r;
}

static int remove_from(struct removal *m,
		       const struct incr_txn_options *options,
		       const char *const *patterns, size_t n_patterns,
		       struct commit_item *item)
{
	struct commit_request request = { .n_items = 1, .items = item };
	struct ingest_result content = { 0 };
	struct ingest_options ingest_options;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_patterns; i++)
		r = add_pattern(m, patterns[i]);
	if (r < 0)
		return r;
	if (!memtable_n_entries(m->paths) && options->skips_empty)
		return 1;
	r = removal_ingest(m, &content);
	if (r < 0)
		return r;
	item->content = &content;
	r = commit_append(m->st, &request, m->err);
	if (r < 0) {
		commit_ingest_options(m->st, NULL, false, &ingest_options);
		ingest_result_discard(&ingest_options, &content);
	}
	ingest_result_release(&content);
	item->content = NULL;
	return r;
}

static int remove_locked(struct incr_store *st,
			 const struct incr_txn_options *options,
			 const char *const *patterns, size_t n_patterns,
			 struct incr_remove_flags flags,
			 struct commit_item *item, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct removal m = { .st = st, .flags = flags, .err = err };
	struct state_branch branch = { 0 };
	int r = store_catch_up(st, err);

	if (r == 0)
		r = store_find_free_branch(st, options->dataset_id,
					   options->branch, &storage, &branch,
					   err);
	if (r == 0)
		r = incr_view_open(st, options->dataset_id, branch.head,
				   &m.view, err);
	if (r < 0)
		return r;
	item->branch_id = branch.fact.id;
	/* what a glob matched is only right against the head it was matched with */
	item->has_expect = true;
	item->expect = options->has_expect ? options->expect : branch.head;
	r = memtable_new(&m.paths) < 0 ?
		    incr_fail_nomem(err) :
		    remove_from(&m, options, patterns, n_patterns, item);
	memtable_unref(m.paths);
	incr_view_unref(m.view);
	return r;
}

int incr_remove(struct incr_store *st, const struct incr_txn_options *options,
		const char *const *patterns, size_t n_patterns,
		struct incr_remove_flags flags, struct incr_txn_info *out_info,
		struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct commit_texts texts = { .pairs = BUF_INIT };
	struct commit_item item = { .dataset_id = options->dataset_id,
				    .type = INCR_DELETE,
				    .opened_ns = store_now(st) };
	struct state_branch branch;
	struct lock lock;
	int r = store_catch_up(st, err);

	if (r == 0)
		r = commit_fill_texts(st, options, &texts, &item, err);
	if (r == 0)
		r = store_find_free_branch(st, options->dataset_id,
					   options->branch, &storage, &branch,
					   err);
	/* exclusive: a commit in between would make the list of paths wrong */
	if (r == 0)
		r = store_lock_branch(st, &branch, true, &lock, err);
	if (r == 0) {
		r = remove_locked(st, options, patterns, n_patterns, flags,
				  &item, err);
		lock_release(&lock);
	}
	buf_release(&texts.pairs);
	if (r == 0 && out_info)
		r = incr_txn_find(st, item.number, out_info, err);
	return r;
}
