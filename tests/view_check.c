/* A store compared with its model, in everything that reading calls give. */
#include "config.h"

#include "view_check.h"

#include "testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 1: reading failed as a damaged index may make it; noted otherwise. */
bool view_check_failed(struct world *w, int r, const char *what)
{
	struct incr_error *err = &w->kit.err;

	if (r >= 0)
		return false;
	if (w->may_be_damaged && r == INCR_E_CORRUPT &&
	    !strcmp(err->word, "damaged-table")) {
		w->was_damaged = true;
		return true;
	}
	testing_err_eq(0, r, what, err->message, __FILE__, __LINE__);
	return true;
}

bool view_check_expect(struct world *w, bool holds, const char *what)
{
	if (!holds)
		printf("seed %" PRIu64 ", %zu transactions: %s\n", w->seed,
		       w->model.n, what);
	return testing_true(holds, what, __FILE__, __LINE__);
}

/* ---- one file ---- */

static bool check_content(struct world *w, struct incr_view *v,
			  const struct incr_node *node, size_t path,
			  size_t writer)
{
	static char data[MODEL_CONTENT_MAX + 1];
	size_t size, got;
	char *want = model_content(&w->model, path, writer, &size);
	int r = incr_file_read(v, node, 0, data, sizeof(data), &got,
			       store_kit_err(&w->kit));
	bool same = r == 0 && got == size && !memcmp(data, want, size);

	free(want);
	if (r < 0)
		return !view_check_failed(w, r, "reading");
	return view_check_expect(w, same, "content is the writer's");
}

static bool check_node(struct world *w, const struct incr_node *node,
		       size_t path, size_t t)
{
	const struct model_txn *txn = &w->model.txns[t];
	size_t writer = txn->writer[path];

	return view_check_expect(w,
				 !strcmp(node->path, model_paths[path]) &&
					 node->path_length ==
						 strlen(model_paths[path]),
				 "path") &&
	       view_check_expect(w, !node->is_dir && node->depth == 0,
				 "is a file") &&
	       view_check_expect(w, node->txn == w->model.txns[writer].number,
				 "writer") &&
	       view_check_expect(w,
				 node->size == model_content_size(&w->model,
								  path, writer),
				 "size") &&
	       view_check_expect(w, node->place < UINT64_C(1) << 40,
				 "place fits");
}

static bool check_at(struct world *w, struct incr_view *v,
		     const struct incr_node *want)
{
	struct incr_node node = INCR_NODE_INIT;
	int r = incr_view_at(v, want->place, want->depth, &node,
			     store_kit_err(&w->kit));
	bool is_good =
		!view_check_failed(w, r, "place") &&
		view_check_expect(w,
				  !strcmp(node.path, want->path) &&
					  node.is_dir == want->is_dir &&
					  node.txn == want->txn &&
					  node.size == want->size &&
					  node.stable_id == want->stable_id &&
					  node.place == want->place,
				  "place leads back");

	incr_node_release(&node);
	return is_good;
}

/* ---- a whole view ---- */

static bool check_files(struct world *w, struct incr_view *v, size_t t)
{
	const struct model_txn *txn = &w->model.txns[t];
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	uint64_t n = 0, size = 0;
	bool is_good;
	int r = incr_view_iter_new(v, NULL, 0, &it, store_kit_err(&w->kit));

	if (view_check_failed(w, r, "iterating"))
		return false;
	is_good = true;
	for (size_t i = 0; is_good && i < MODEL_PATHS; i++) {
		if (!txn->writer[i])
			continue;
		r = incr_view_iter_next(it, &node, &w->kit.err);
		is_good = !view_check_failed(w, r, "next") &&
			  view_check_expect(w, r == 0, "as many files") &&
			  check_node(w, &node, i, t) && check_at(w, v, &node) &&
			  check_content(w, v, &node, i, txn->writer[i]);
		n++;
		size += node.size;
	}
	if (is_good) {
		r = incr_view_iter_next(it, &node, &w->kit.err);
		is_good = !view_check_failed(w, r, "end") &&
			  view_check_expect(w, r == 1, "no more files");
	}
	incr_view_iter_free(it);
	incr_node_release(&node);
	return is_good &&
	       view_check_expect(w, incr_view_n_files(v) == n,
				 "number of files") &&
	       view_check_expect(w, incr_view_size(v) == size,
				 "size of the view") &&
	       view_check_expect(w,
				 incr_view_start(v) ==
					 w->model.txns[txn->start].number,
				 "start");
}

static bool check_find(struct world *w, struct incr_view *v, size_t t)
{
	const struct model_txn *txn = &w->model.txns[t];

	for (size_t i = 0; i < MODEL_PATHS; i++) {
		struct incr_node node = INCR_NODE_INIT;
		size_t length = strlen(model_paths[i]);
		bool is_dir = false, is_good;
		int r = incr_view_find(v, model_paths[i], length, &node,
				       store_kit_err(&w->kit));

		for (size_t j = 0; j < MODEL_PATHS; j++)
			is_dir = is_dir || (txn->writer[j] &&
					    !strncmp(model_paths[j],
						     model_paths[i], length) &&
					    model_paths[j][length] == '/');
		is_good = !view_check_failed(w, r, "find");
		if (is_good && txn->writer[i])
			is_good = view_check_expect(w, r == 0, "found") &&
				  check_node(w, &node, i, t);
		else if (is_good)
			is_good = view_check_expect(w, r == !is_dir,
						    "directory or none") &&
				  (r || view_check_expect(w, node.is_dir,
							  "is directory"));
		incr_node_release(&node);
		if (!is_good)
			return false;
	}
	return true;
}

/* ---- directories ---- */

struct listing {
	size_t n;
	struct incr_node nodes[MODEL_PATHS]; /* owned */
};

static void listing_release(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		incr_node_release(&l->nodes[i]);
	l->n = 0;
}

static bool list(struct world *w, struct incr_view *v, const char *dir,
		 const struct incr_node *after, struct listing *out)
{
	struct incr_dir_iter *it;
	int r = incr_dir_iter_new(v, dir, strlen(dir),
				  after ? after->place : UINT64_MAX,
				  after ? after->depth : 0, &it,
				  store_kit_err(&w->kit));

	out->n = 0;
	if (view_check_failed(w, r, dir))
		return false;
	while (r == 0 && out->n < MODEL_PATHS) {
		out->nodes[out->n] = INCR_NODE_INIT;
		r = incr_dir_iter_next(it, &out->nodes[out->n], &w->kit.err);
		if (r == 0)
			out->n++;
		else
			incr_node_release(&out->nodes[out->n]);
	}
	incr_dir_iter_free(it);
	return !view_check_failed(w, r, dir) &&
	       view_check_expect(w, r == 1, "listing ends");
}

/* The next entry of @dir at or after path @i of the model; false: none. */
static bool next_entry(const struct model_txn *txn, const char *dir, size_t *i,
		       char out[128], size_t *out_first)
{
	size_t length = strlen(dir);

	for (; *i < MODEL_PATHS; (*i)++) {
		const char *path = model_paths[*i];
		const char *rest = path + length + (length > 0);
		size_t end;

		if (!txn->writer[*i] || strncmp(path, dir, length) != 0 ||
		    (length && path[length] != '/'))
			continue;
		*out_first = *i;
		end = (size_t)(rest - path) + strcspn(rest, "/");
		snprintf(out, 128, "%.*s", (int)end, path);
		/* all that lies below it */
		do
			(*i)++;
		while (path[end] == '/' && *i < MODEL_PATHS &&
		       !strncmp(model_paths[*i], path, end + 1));
		return true;
	}
	return false;
}

static bool check_dir(struct world *w, struct incr_view *v, size_t t,
		      const char *dir, unsigned depth);

static bool check_entry(struct world *w, struct incr_view *v, size_t t,
			const struct incr_node *node, const char *want,
			size_t first, unsigned depth)
{
	if (!view_check_expect(w, !strcmp(want, node->path),
			       "entry of a directory") ||
	    !check_at(w, v, node))
		return false;
	if (!strcmp(want, model_paths[first]))
		return check_node(w, node, first, t);
	return view_check_expect(w, node->is_dir && node->depth == depth + 1,
				 "subdirectory") &&
	       check_dir(w, v, t, want, depth + 1);
}

/* Going on behind each entry gives the rest. */
static bool check_resumed(struct world *w, struct incr_view *v, const char *dir,
			  const struct listing *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct listing rest;
		bool is_good =
			list(w, v, dir, &all->nodes[i], &rest) &&
			view_check_expect(w, rest.n == all->n - i - 1,
					  "resumed listing has the rest");

		for (size_t j = 0; is_good && j < rest.n; j++)
			is_good = view_check_expect(
				w,
				!strcmp(rest.nodes[j].path,
					all->nodes[i + 1 + j].path),
				"resumed entry");
		listing_release(&rest);
		if (!is_good)
			return false;
	}
	return true;
}

static bool check_dir(struct world *w, struct incr_view *v, size_t t,
		      const char *dir, unsigned depth)
{
	struct listing all;
	bool is_good = list(w, v, dir, NULL, &all);
	char want[128];
	size_t i = 0, n = 0, first;

	while (is_good &&
	       next_entry(&w->model.txns[t], dir, &i, want, &first)) {
		is_good =
			view_check_expect(w, n < all.n, "as many entries") &&
			check_entry(w, v, t, &all.nodes[n], want, first, depth);
		n++;
	}
	is_good = is_good &&
		  view_check_expect(w, n == all.n, "no more entries") &&
		  check_resumed(w, v, dir, &all);
	listing_release(&all);
	return is_good;
}

static bool check_view(struct world *w, size_t t)
{
	struct incr_view *v;
	bool is_good;
	int r = incr_view_open(w->kit.st, w->kit.dataset,
			       w->model.txns[t].number, &v,
			       store_kit_err(&w->kit));

	if (view_check_failed(w, r, "opening a view"))
		return false;
	is_good = check_files(w, v, t) && check_find(w, v, t) &&
		  check_dir(w, v, t, "", 0);
	incr_view_unref(v);
	return is_good;
}

/* ---- changes ---- */

static enum incr_change change_of(const struct model *m, size_t from, size_t to,
				  size_t path)
{
	size_t a = m->txns[from].writer[path], b = m->txns[to].writer[path];

	return a == b ? 0 : !a ? INCR_ADDED : !b ? INCR_REMOVED : INCR_MODIFIED;
}

/* Who made the change; 0: not defined. */
static uint64_t changer(const struct model *m, size_t from, size_t to,
			size_t path)
{
	const struct model_txn *txn = &m->txns[to];

	if (txn->writer[path])
		return m->txns[txn->writer[path]].number;
	if (txn->remover[path])
		return m->txns[txn->remover[path]].number;
	return m->txns[from].start != txn->start ? m->txns[txn->start].number :
						   0;
}

static bool check_change_list(struct world *w, struct incr_changes *c,
			      size_t from, size_t to)
{
	struct incr_node node = INCR_NODE_INIT;
	bool is_good = true;
	uint64_t n[4] = { 0 };
	int r = 0;

	for (size_t i = 0; is_good && i < MODEL_PATHS; i++) {
		enum incr_change want = change_of(&w->model, from, to, i), got;
		uint64_t txn, by = changer(&w->model, from, to, i);

		if (!want)
			continue;
		n[want]++;
		r = incr_changes_next(c, &got, &node, &txn, &w->kit.err);
		is_good = !view_check_failed(w, r, "changes") &&
			  view_check_expect(w, r == 0, "as many changes") &&
			  view_check_expect(w, got == want, "kind of change") &&
			  view_check_expect(w, !by || txn == by,
					    "who changed it") &&
			  check_node(w, &node, i,
				     want == INCR_REMOVED ? from : to);
	}
	if (is_good) {
		enum incr_change got;
		uint64_t txn;

		r = incr_changes_next(c, &got, &node, &txn, &w->kit.err);
		is_good = view_check_expect(w, r == 1, "no more changes");
	}
	for (int i = 1; is_good && i < 4; i++)
		is_good = view_check_expect(w,
					    incr_view_n_files(incr_changes_view(
						    c, (enum incr_change)i)) ==
						    n[i],
					    "number of changes");
	incr_node_release(&node);
	return is_good;
}

static bool check_changes(struct world *w, size_t from, size_t to)
{
	struct incr_view *a, *b;
	struct incr_changes *c = NULL;
	bool is_good;
	int r = incr_view_open(w->kit.st, w->kit.dataset,
			       w->model.txns[from].number, &a,
			       store_kit_err(&w->kit));

	if (view_check_failed(w, r, "opening a view"))
		return false;
	r = incr_view_open(w->kit.st, w->kit.dataset, w->model.txns[to].number,
			   &b, &w->kit.err);
	if (r == 0) {
		/* in memory, in a table, or first the one and then the other */
		w->kit.st->n_changes_in_memory =
			store_kit_random(&w->model.random, 4);
		if (w->kit.st->n_changes_in_memory == 3)
			w->kit.st->n_changes_in_memory = UINT64_MAX;
		r = incr_changes_new(a, b, &c, &w->kit.err);
		incr_view_unref(b);
	}
	incr_view_unref(a);
	if (view_check_failed(w, r, "changes"))
		return false;
	is_good = check_change_list(w, c, from, to);
	if (is_good) {
		incr_changes_rewind(c);
		is_good = check_change_list(w, c, from, to);
	}
	incr_changes_free(c);
	return is_good;
}

static bool check_path(struct world *w, size_t t, size_t head)
{
	bool is_on_path;
	int r = incr_txn_is_on_path(w->kit.st, w->model.txns[t].number,
				    w->model.txns[head].number, &is_on_path,
				    store_kit_err(&w->kit));

	return !view_check_failed(w, r, "path") &&
	       view_check_expect(
		       w, is_on_path == model_is_on_path(&w->model, t, head),
		       "on the path");
}

/* Everything about two random transactions. */
bool view_check_some(struct world *w)
{
	size_t a = store_kit_random(&w->model.random, w->model.n + 1);
	size_t b = store_kit_random(&w->model.random, w->model.n + 1);

	return check_view(w, a) && check_changes(w, a, b) &&
	       check_changes(w, b, a) && check_path(w, a, b);
}

bool view_check_all(struct world *w)
{
	for (size_t i = 0; i <= w->model.n; i++)
		if (!check_view(w, i) ||
		    !check_changes(w, i,
				   store_kit_random(&w->model.random,
						    w->model.n + 1)))
			return false;
	return true;
}
