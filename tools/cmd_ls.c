/*
 * incrctl ls: the files of a dataset at a point.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ls_options {
	bool is_long;
};

static const struct args_option table[] = {
	{ "long", 'l', ARGS_FLAG, offsetof(struct ls_options, is_long), NULL,
	  "with mode, size, time and transaction" },
	ARGS_END,
};

static void print_mode(uint32_t mode)
{
	static const char letters[] = "rwxrwxrwx";

	(void)putchar('-');
	for (int bit = 8; bit >= 0; bit--)
		(void)putchar(mode >> bit & 1 ? letters[8 - bit] : '-');
}

static void print_file(const struct cli *cli, bool is_long,
		       const struct incr_node *node)
{
	struct text size, time;

	if (cli->common.is_json) {
		out_line(out_node(node));
		return;
	}
	if (is_long && !cli->common.is_nul) {
		print_mode(node->mode);
		printf(" %10s  %s  t%-5" PRIu64 " ",
		       text_size(node->size, &size),
		       text_time_short(node->mtime_ns, &time), node->txn);
	}
	out_path(cli, node->path, node->path_length);
}

/* What to list: all, one file, what is below a directory, or a glob. */
struct wish {
	const char *text;
	size_t length;
	enum { WISH_ALL, WISH_FILE, WISH_BELOW, WISH_GLOB } kind;
};

static int read_wish(struct cli *cli, struct incr_view *view, struct wish *wish)
{
	_cleanup_node_ struct incr_node node = INCR_NODE_INIT;
	int r;

	wish->kind = WISH_ALL;
	if (cli->n_args < 2)
		return 0;
	wish->text = cli->args[1];
	wish->length = strlen(wish->text);
	while (wish->length > 1 && wish->text[wish->length - 1] == '/')
		wish->length--;
	r = incr_view_find(view, wish->text, wish->length, &node, &cli->err);
	if (r == INCR_E_INVALID || r == 1)
		wish->kind = WISH_GLOB;
	else if (r < 0)
		return r;
	else
		wish->kind = node.is_dir ? WISH_BELOW : WISH_FILE;
	return 0;
}

/* -1: not there yet, 0: no, 1: yes, 2: nothing more will come. */
static int judge(const struct wish *wish, const struct incr_node *node)
{
	int order;

	switch (wish->kind) {
	case WISH_ALL:
		return 1;
	case WISH_GLOB:
		return incr_glob_match(wish->text, node->path,
				       node->path_length);
	case WISH_FILE:
		return node->path_length == wish->length &&
				       memcmp(node->path, wish->text,
					      wish->length) == 0 ?
			       1 :
			       2;
	case WISH_BELOW:
		break;
	}
	if (node->path_length <= wish->length)
		return 0;
	order = memcmp(node->path, wish->text, wish->length);
	if (order != 0)
		return order > 0 ? 2 : 0;
	if (node->path[wish->length] == '/')
		return 1;
	return (unsigned char)node->path[wish->length] > '/' ? 2 : 0;
}

static int list(struct cli *cli, const struct ls_options *o,
		struct incr_view *view, const struct wish *wish)
{
	_cleanup_view_iter_ struct incr_view_iter *it = NULL;
	_cleanup_node_ struct incr_node node = INCR_NODE_INIT;
	bool starts_there = wish->kind == WISH_FILE || wish->kind == WISH_BELOW;
	uint64_t n_printed = 0;
	int r, verdict;

	r = incr_view_iter_new(view, starts_there ? wish->text : NULL,
			       starts_there ? wish->length : 0, &it, &cli->err);
	if (r < 0)
		return r;
	while ((r = incr_view_iter_next(it, &node, &cli->err)) == 0) {
		verdict = judge(wish, &node);
		if (verdict == 2)
			break;
		if (verdict == 0)
			continue;
		print_file(cli, o->is_long, &node);
		n_printed++;
	}
	if (r < 0)
		return r;
	if (n_printed == 0 && wish->kind == WISH_GLOB)
		return fail(&cli->err, INCR_E_NOTFOUND, "no-such-path",
			    wish->text, "no file matches");
	return 0;
}

static int run_ls(struct cli *cli, void *options)
{
	_cleanup_found_point_ struct found_point found = { 0 };
	_cleanup_view_ struct incr_view *view = NULL;
	struct wish wish = { 0 };
	int r;

	r = find_store(cli);
	if (r == 0)
		r = find_point(cli, cli->args[0], &found);
	if (r == 0)
		r = find_view(cli, &found, &view);
	if (r == 0)
		r = read_wish(cli, view, &wish);
	return r < 0 ? r : list(cli, options, view, &wish);
}

const struct verb verb_ls = {
	.name = "ls",
	.summary = "List the files of a dataset at a point, in byte order.",
	.synopsis = "DATASET[:BRANCH][@POINT] [GLOB] [-l] [-z]",
	.details = "GLOB may be a file or a directory too; in a glob * and ? "
		   "do not cross a slash, ** does.",
	.tables = { table },
	.options_size = sizeof(struct ls_options),
	.min_args = 1,
	.max_args = 2,
	.run = run_ls,
};
