/*
 * incrctl cat: the bytes of files, to stdout.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE_SIZE ((size_t)1 << 20)

static int write_all(struct cli *cli, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(STDOUT_FILENO, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(&cli->err, "standard output",
					  "cannot write");
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int print_file(struct cli *cli, struct incr_view *view, const char *path,
		      char *buffer)
{
	_cleanup_node_ struct incr_node node = INCR_NODE_INIT;
	uint64_t off = 0;
	size_t n;
	int r;

	r = incr_view_find(view, path, strlen(path), &node, &cli->err);
	if (r < 0)
		return r;
	if (r == 1)
		return fail(&cli->err, INCR_E_NOTFOUND, "no-such-path", path,
			    "no such file");
	if (node.is_dir)
		return fail_usage(&cli->err, path, "is a directory");

	do {
		r = incr_file_read(view, &node, off, buffer, PIECE_SIZE, &n,
				   &cli->err);
		if (r == 0)
			r = write_all(cli, buffer, n);
		off += n;
	} while (r == 0 && n == PIECE_SIZE);
	return r;
}

static int run_cat(struct cli *cli, void *options)
{
	_cleanup_found_point_ struct found_point found = { 0 };
	_cleanup_view_ struct incr_view *view = NULL;
	_cleanup_free_ char *buffer = malloc(PIECE_SIZE);
	int r;

	(void)options;
	if (!buffer)
		return fail_nomem(&cli->err);
	r = find_store(cli);
	if (r == 0)
		r = find_point(cli, cli->args[0], &found);
	if (r == 0)
		r = find_view(cli, &found, &view);
	for (size_t i = 1; r == 0 && i < cli->n_args; i++)
		r = print_file(cli, view, cli->args[i], buffer);
	return r;
}

const struct verb verb_cat = {
	.name = "cat",
	.summary = "Print files of a dataset, one after the other.",
	.synopsis = "DATASET[:BRANCH][@POINT] PATH...",
	.min_args = 2,
	.max_args = CLI_ANY,
	.run = run_cat,
};
