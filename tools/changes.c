/*
 * Walking and printing the changes between two views.
 */
#include "config.h"

#include "changes.h"

#include "cleanup.h"
#include "find.h"
#include "out.h"
#include "text.h"

#include <stdio.h>

static int walk(struct cli *cli, struct incr_changes *changes, changes_fn fn,
		void *closure)
{
	_cleanup_node_ struct incr_node node = INCR_NODE_INIT;
	enum incr_change change;
	uint64_t txn;
	int r;

	for (;;) {
		r = incr_changes_next(changes, &change, &node, &txn, &cli->err);
		if (r != 0)
			return r < 0 ? r : 0;
		r = fn(closure, change, &node, txn);
		if (r != 0)
			return r;
	}
}

int changes_walk(struct cli *cli, uint64_t dataset_id, uint64_t from,
		 uint64_t to, changes_fn fn, void *closure)
{
	_cleanup_view_ struct incr_view *old = NULL, *new = NULL;
	_cleanup_changes_ struct incr_changes *changes = NULL;
	int r;

	r = incr_view_open(cli->store, dataset_id, from, &old, &cli->err);
	if (r == 0)
		r = find_view_at(cli, dataset_id, to, &new);
	if (r == 0)
		r = incr_changes_new(old, new, &changes, &cli->err);
	return r < 0 ? r : walk(cli, changes, fn, closure);
}

static bool is_wanted(const struct changes_print *print,
		      enum incr_change change)
{
	if (!print->has_wish)
		return true;
	return (change == INCR_ADDED && print->wants_added) ||
	       (change == INCR_MODIFIED && print->wants_modified) ||
	       (change == INCR_REMOVED && print->wants_removed);
}

int changes_print(void *closure, enum incr_change change,
		  const struct incr_node *node, uint64_t txn)
{
	struct changes_print *print = closure;
	struct text size;

	if (!is_wanted(print, change))
		return 0;
	print->n_printed++;
	if (print->cli->common.is_json) {
		out_line(out_change(change, node, txn));
		return 0;
	}
	if (!print->cli->common.is_nul && print->form != CHANGES_NAMES)
		printf("%c%c", out_change_letter(change),
		       print->form == CHANGES_LONG ? ' ' : '\t');
	if (!print->cli->common.is_nul && print->form == CHANGES_LONG)
		printf("%10s ", change == INCR_REMOVED ?
					"-" :
					text_size(node->size, &size));
	out_path(print->cli, node->path, node->path_length);
	return 0;
}
