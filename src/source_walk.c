/*
 * Merging sources by path.  Trees and the sorted list of single sources are
 * feeders in a heap; the one with the smallest path gives the next entry.
 *
 * Files below a file are found without memory of what was given: in byte order
 * all paths that begin with the bytes of `x` come right after `x`, so it is
 * enough to keep the lengths of those earlier paths that are a prefix of the
 * current one.
 */
#include "config.h"

#include "source_walk.h"

#include "error.h"
#include "name.h"
#include "source_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THING_SIZE 512

struct single {
	enum source_kind kind;
	char *path; /* owned; in the store */
	size_t path_length;
	int dirfd; /* borrowed */
	char *name; /* owned; NULL: not a file */
	int fd; /* borrowed */
};

struct feeder {
	struct source_tree *tree; /* owned; NULL: the list */
	struct source_entry entry;
};

struct source_walk {
	const struct incr_io *io; /* borrowed */
	bool skips_special;
	bool leaves_out;
	struct io_stat left_out; /* a directory */
	bool is_started;
	struct single *singles; /* owned */
	size_t n_singles, singles_capacity, next_single;
	struct feeder *feeders; /* owned; those of @heap stand first */
	size_t n_feeders, feeders_capacity;
	size_t *heap; /* owned; numbers of feeders, smallest path first */
	size_t n_heap;
	char last[NAME_PATH_MAX + 1]; /* path of the entry given last */
	size_t last_length;
	bool has_last;
	uint16_t file_lengths[NAME_PATH_MAX]; /* prefixes of @last: files */
	size_t n_file_lengths;
};

void source_entry_describe(const struct source_entry *e, char *out,
			   size_t out_size)
{
	size_t length = e->root ? strlen(e->root) : 0;
	const char *slash = length > 0 && e->root[length - 1] == '/' ? "" : "/";

	if (!e->root)
		(void)snprintf(out, out_size, "%s",
			       e->name ? e->name : e->path);
	else if (!*e->rel)
		(void)snprintf(out, out_size, "%s", e->root);
	else
		(void)snprintf(out, out_size, "%s%s%s", e->root, slash, e->rel);
}

int source_fail_special(struct incr_error *err, const char *thing,
			enum io_kind kind)
{
	const char *what = kind == IO_SYMLINK ? "a symbolic link" :
						"a device, socket or FIFO";
	int r = incr_fail(err, INCR_E_INVALID, "special-file", thing,
			  "%s cannot be stored", what);

	incr_hint(err, "--skip-special leaves such entries out");
	return r;
}

int source_fail_changed(struct incr_error *err, const char *thing,
			const char *what)
{
	return incr_fail(err, INCR_E_CONFLICT, "source-changed", thing,
			 "the source changed while it was read: %s", what);
}

int source_walk_new(const struct incr_io *io, bool skips_special,
		    struct source_walk **out_walk)
{
	struct source_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return INCR_E_NOMEM;

	w->io = io;
	w->skips_special = skips_special;
	*out_walk = w;
	return 0;
}

void source_walk_leave_out(struct source_walk *w, const struct io_stat *st)
{
	w->leaves_out = true;
	w->left_out = *st;
}

void source_walk_free(struct source_walk *w)
{
	if (!w)
		return;

	for (size_t i = 0; i < w->n_singles; i++) {
		free(w->singles[i].path);
		free(w->singles[i].name);
	}
	for (size_t i = 0; i < w->n_feeders; i++)
		source_tree_free(w->feeders[i].tree);
	free(w->singles);
	free(w->feeders);
	free(w->heap);
	free(w);
}

/* Room for one more element of @size bytes; 0 or INCR_E_NOMEM. */
static int grow(void **array, size_t n, size_t *capacity, size_t size)
{
	size_t want = *capacity ? 2 * *capacity : 8;
	void *grown;

	if (n < *capacity)
		return 0;

	grown = reallocarray(*array, want, size);
	if (!grown)
		return INCR_E_NOMEM;
	*array = grown;
	*capacity = want;
	return 0;
}

static int add_feeder(struct source_walk *w, struct source_tree *tree)
{
	void *array = w->feeders;
	int r = grow(&array, w->n_feeders, &w->feeders_capacity,
		     sizeof(*w->feeders));

	w->feeders = array;
	if (r < 0)
		return r;

	w->feeders[w->n_feeders++] = (struct feeder){ .tree = tree };
	return 0;
}

int source_walk_add_tree(struct source_walk *w, int dirfd, const char *path,
			 const char *prefix, struct incr_error *err)
{
	struct source_tree *tree;
	int r;

	if (!prefix)
		prefix = "";
	if (*prefix) {
		r = name_check_path(prefix, strlen(prefix), err);
		if (r < 0)
			return r;
	}
	r = source_tree_new(w->io, w->skips_special, dirfd, path, prefix,
			    &tree);
	if (r < 0)
		return incr_fail_nomem(err);
	if (w->leaves_out)
		source_tree_leave_out(tree, &w->left_out);

	r = add_feeder(w, tree);
	if (r < 0) {
		source_tree_free(tree);
		return incr_fail_nomem(err);
	}
	return 0;
}

/* @name: NULL or copied; @path: checked and copied. */
static int add_single(struct source_walk *w, const struct single *s,
		      const char *path, const char *name,
		      struct incr_error *err)
{
	struct single added = *s;
	void *array = w->singles;
	int r = name_check_path(path, s->path_length, err);

	if (r < 0)
		return r;

	r = grow(&array, w->n_singles, &w->singles_capacity,
		 sizeof(*w->singles));
	w->singles = array;
	added.path = strndup(path, s->path_length);
	added.name = name ? strdup(name) : NULL;
	if (r < 0 || !added.path || (name && !added.name)) {
		free(added.path);
		free(added.name);
		return incr_fail_nomem(err);
	}
	w->singles[w->n_singles++] = added;
	return 0;
}

int source_walk_add_file(struct source_walk *w, int dirfd, const char *path,
			 const char *name, struct incr_error *err)
{
	const struct single s = { .kind = SOURCE_FILE,
				  .path_length = strlen(name),
				  .dirfd = dirfd,
				  .fd = -1 };

	return add_single(w, &s, name, path, err);
}

int source_walk_add_stream(struct source_walk *w, int fd, const char *name,
			   struct incr_error *err)
{
	const struct single s = { .kind = SOURCE_STREAM,
				  .path_length = strlen(name),
				  .dirfd = -1,
				  .fd = fd };

	return add_single(w, &s, name, NULL, err);
}

int source_walk_add_removal(struct source_walk *w, const char *path,
			    size_t length, struct incr_error *err)
{
	const struct single s = { .kind = SOURCE_REMOVAL,
				  .path_length = length,
				  .dirfd = -1,
				  .fd = -1 };

	return add_single(w, &s, path, NULL, err);
}

static int compare_paths(const char *a, size_t a_length, const char *b,
			 size_t b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	if (order != 0)
		return order;
	return a_length < b_length ? -1 : a_length > b_length;
}

static int compare_singles(const void *a, const void *b)
{
	const struct single *x = a, *y = b;

	return compare_paths(x->path, x->path_length, y->path, y->path_length);
}

/* 0: to be given; 1: a special file that is left out. */
static int check_single(struct source_walk *w, const struct single *s,
			struct incr_error *err)
{
	struct io_stat st;
	int r;

	if (s->kind != SOURCE_FILE)
		return 0;

	/* Before it is opened: opening a device can do something. */
	r = w->io->stat_at(w->io, s->dirfd, s->name, &st);
	if (r < 0)
		return incr_fail_errno(err, -r, s->name, "cannot open");
	if (st.kind == IO_DIR)
		return incr_fail(err, INCR_E_INVALID, NULL, s->name,
				 "a directory where a file is wanted");
	if (st.kind == IO_FILE)
		return 0;
	return w->skips_special ? 1 :
				  source_fail_special(err, s->name, st.kind);
}

static int next_single(struct source_walk *w, struct source_entry *out_entry,
		       struct incr_error *err)
{
	while (w->next_single < w->n_singles) {
		const struct single *s = &w->singles[w->next_single++];
		int r = check_single(w, s, err);

		if (r < 0)
			return r;
		if (r == 1)
			continue;
		*out_entry = (struct source_entry){
			.kind = s->kind,
			.path = s->path,
			.path_length = s->path_length,
			.dirfd = s->dirfd,
			.name = s->name,
			.fd = s->fd,
		};
		return 0;
	}
	return 1;
}

static int advance(struct source_walk *w, struct feeder *f,
		   struct incr_error *err)
{
	if (f->tree)
		return source_tree_next(f->tree, &f->entry, err);
	return next_single(w, &f->entry, err);
}

static bool is_less(const struct source_walk *w, size_t a, size_t b)
{
	const struct source_entry *x = &w->feeders[w->heap[a]].entry;
	const struct source_entry *y = &w->feeders[w->heap[b]].entry;

	return compare_paths(x->path, x->path_length, y->path, y->path_length) <
	       0;
}

static void sift_down(struct source_walk *w, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1, kept;

		if (child >= w->n_heap)
			return;
		if (child + 1 < w->n_heap && is_less(w, child + 1, child))
			child++;
		if (!is_less(w, child, at))
			return;
		kept = w->heap[at];
		w->heap[at] = w->heap[child];
		w->heap[child] = kept;
		at = child;
	}
}

static int start(struct source_walk *w, struct incr_error *err)
{
	if (w->n_singles > 1)
		qsort(w->singles, w->n_singles, sizeof(*w->singles),
		      compare_singles);
	if (w->n_singles > 0 && add_feeder(w, NULL) < 0)
		return incr_fail_nomem(err);

	w->is_started = true;
	w->heap = calloc(w->n_feeders + 1, sizeof(*w->heap));
	if (!w->heap)
		return incr_fail_nomem(err);

	for (size_t i = 0; i < w->n_feeders; i++) {
		int r = advance(w, &w->feeders[i], err);

		if (r < 0)
			return r;
		if (r == 0)
			w->heap[w->n_heap++] = i;
	}
	for (size_t i = w->n_heap / 2; i > 0; i--)
		sift_down(w, i - 1);
	return 0;
}

/* The feeder that gave the last entry goes on. */
static int step(struct source_walk *w, struct incr_error *err)
{
	int r = advance(w, &w->feeders[w->heap[0]], err);

	if (r < 0)
		return r;
	if (r == 1)
		w->heap[0] = w->heap[--w->n_heap];
	sift_down(w, 0);
	return 0;
}

static int check_unique(struct source_walk *w, const struct source_entry *e,
			struct incr_error *err)
{
	char file[NAME_PATH_MAX + 1];
	size_t length;

	if (w->has_last && w->last_length == e->path_length &&
	    memcmp(w->last, e->path, e->path_length) == 0)
		return incr_fail(err, INCR_E_INVALID, "duplicate-path", e->path,
				 "two sources give this path");

	while (w->n_file_lengths > 0) {
		length = w->file_lengths[w->n_file_lengths - 1];
		if (length < e->path_length &&
		    memcmp(w->last, e->path, length) == 0)
			break;
		w->n_file_lengths--;
	}
	if (e->kind == SOURCE_REMOVAL)
		return 0;

	for (size_t i = 0; i < w->n_file_lengths; i++) {
		length = w->file_lengths[i];
		if (e->path[length] != '/')
			continue;
		memcpy(file, w->last, length);
		file[length] = '\0';
		return incr_fail(err, INCR_E_INVALID, "path-conflict", e->path,
				 "`%s` is a file in another source", file);
	}
	w->file_lengths[w->n_file_lengths++] = (uint16_t)e->path_length;
	return 0;
}

int source_walk_next(struct source_walk *w,
		     const struct source_entry **out_entry,
		     struct incr_error *err)
{
	const struct source_entry *e;
	int r;

	r = w->is_started ? (w->n_heap > 0 ? step(w, err) : 0) : start(w, err);
	if (r < 0)
		return r;
	if (w->n_heap == 0)
		return 1;

	e = &w->feeders[w->heap[0]].entry;
	r = name_check_path(e->path, e->path_length, err);
	if (r == 0)
		r = check_unique(w, e, err);
	if (r < 0)
		return r;

	memcpy(w->last, e->path, e->path_length);
	w->last_length = e->path_length;
	w->has_last = true;
	*out_entry = e;
	return 0;
}
