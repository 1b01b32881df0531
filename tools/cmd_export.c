/*
 * incrctl export: write the files of a dataset below a directory.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "progress.h"
#include "text.h"
#include "tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE_SIZE ((size_t)1 << 20)

struct export_options {
	const char *view;
	struct args_number since;
};

static const struct args_option table[] = {
	{ "view", 0, ARGS_TEXT, offsetof(struct export_options, view),
	  "added|removed|modified", "only these files; needs --since" },
	{ "since", 0, ARGS_TXN, offsetof(struct export_options, since), "tN",
	  "what the files are compared with" },
	ARGS_END,
};

struct export
{
	struct cli *cli;
	struct incr_view *view; /* borrowed */
	struct tree tree;
	struct progress progress;
	char *buffer; /* owned */
	uint64_t n_files, size;
};

static void export_release(struct export *x)
{
	tree_close(&x->tree);
	free(x->buffer);
}

static int write_all(struct export *x, int fd, const char *path, size_t size)
{
	const char *at = x->buffer;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(&x->cli->err, path, "cannot write");
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_content(struct export *x, const struct incr_node *node, int fd)
{
	uint64_t off = 0;
	size_t n;
	int r;

	do {
		r = incr_file_read(x->view, node, off, x->buffer, PIECE_SIZE,
				   &n, &x->cli->err);
		if (r == 0)
			r = write_all(x, fd, node->path, n);
		off += n;
		progress_draw(&x->progress, x->n_files, x->size + off,
			      incr_view_n_files(x->view),
			      incr_view_size(x->view));
	} while (r == 0 && n == PIECE_SIZE);
	return r;
}

static int set_attributes(struct export *x, const struct incr_node *node,
			  int fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	int64_t sec = node->mtime_ns / 1000000000;
	int64_t ns = node->mtime_ns % 1000000000;

	if (ns < 0) {
		ns += 1000000000;
		sec--;
	}
	times[1] = (struct timespec){ .tv_sec = (time_t)sec, .tv_nsec = ns };
	if (fchmod(fd, node->mode & 0777) != 0 || futimens(fd, times) != 0)
		return fail_errno(&x->cli->err, node->path,
				  "cannot set mode and time");
	return 0;
}

static int write_file(struct export *x, const struct incr_node *node)
{
	int fd, r;

	r = tree_create(&x->tree, node->path, node->path_length, &fd,
			&x->cli->err);
	if (r < 0)
		return r;
	r = write_content(x, node, fd);
	if (r == 0)
		r = set_attributes(x, node, fd);
	/* A network file system reports a full disk as late as here. */
	if (close(fd) != 0 && r == 0)
		r = fail_errno(&x->cli->err, node->path, "cannot write");
	if (r < 0)
		return r;
	x->n_files++;
	x->size += node->size;
	return 0;
}

static int write_view(struct export *x, const char *dir)
{
	_cleanup_view_iter_ struct incr_view_iter *it = NULL;
	_cleanup_node_ struct incr_node node = INCR_NODE_INIT;
	int r;

	x->buffer = malloc(PIECE_SIZE);
	if (!x->buffer)
		return fail_nomem(&x->cli->err);
	r = tree_open(&x->tree, dir, &x->cli->err);
	if (r == 0)
		r = incr_view_iter_new(x->view, NULL, 0, &it, &x->cli->err);
	while (r == 0) {
		r = incr_view_iter_next(it, &node, &x->cli->err);
		if (r == 0)
			r = write_file(x, &node);
	}
	return r < 0 ? r : 0;
}

static void print_result(const struct cli *cli, const struct export *x)
{
	struct text files, size;

	if (cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "directory", out_text(cli->args[1]));
		out_put(json, "files", out_u64(x->n_files));
		out_put(json, "bytes", out_u64(x->size));
		out_line(json);
	} else if (!cli->common.is_quiet) {
		printf("%s, %s in ",
		       text_count(x->n_files, "file", "files", &files),
		       text_size(x->size, &size));
		out_quoted(cli->args[1], strlen(cli->args[1]));
		(void)putchar('\n');
	}
}

static enum incr_change which_change(const char *view)
{
	switch (view[0]) {
	case 'a':
		return INCR_ADDED;
	case 'm':
		return INCR_MODIFIED;
	default:
		return INCR_REMOVED;
	}
}

static int run_export(struct cli *cli, void *options)
{
	const struct export_options *o = options;
	_cleanup_found_point_ struct found_point found = { 0 };
	_cleanup_view_ struct incr_view *view = NULL, *old = NULL;
	_cleanup_changes_ struct incr_changes *changes = NULL;
	_cleanup_(export_release) struct export x = { .cli = cli };
	struct point since = { .kind = POINT_TXN, .txn = o->since.value };
	uint64_t from;
	int r;

	if (!o->view != !o->since.is_set)
		return fail_usage(&cli->err, NULL,
				  "--view and --since go together");
	r = find_store(cli);
	if (r == 0)
		r = find_point(cli, cli->args[0], &found);
	if (r == 0)
		r = find_view(cli, &found, &view);
	if (r < 0)
		return r;
	x.view = view;
	if (o->view) {
		r = find_point_of(cli, &found, &since, &from);
		if (r == 0)
			r = incr_view_open(cli->store, found.dataset.id, from,
					   &old, &cli->err);
		if (r == 0)
			r = incr_changes_new(old, view, &changes, &cli->err);
		if (r < 0)
			return r;
		x.view = incr_changes_view(changes, which_change(o->view));
	}
	progress_init(&x.progress, cli, "export");
	r = write_view(&x, cli->args[1]);
	progress_clear(&x.progress);
	if (r == 0)
		print_result(cli, &x);
	return r;
}

const struct verb verb_export = {
	.name = "export",
	.summary =
		"Write the files of a dataset into a new or empty directory.",
	.synopsis = "DATASET[:BRANCH][@POINT] DIR\n"
		    "DATASET[:BRANCH][@POINT] DIR --view "
		    "added|removed|modified --since tN",
	.tables = { table },
	.options_size = sizeof(struct export_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_export,
};
