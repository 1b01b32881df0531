/*
 * Walking and printing the changes between two views.
 */
#ifndef INCR_TOOLS_CHANGES_H
#define INCR_TOOLS_CHANGES_H

#include "cli.h"
#include "incr.h"

#include <stdbool.h>

/* Returns 0 to go on, or anything else, which ends the walk and is returned. */
typedef int (*changes_fn)(void *closure, enum incr_change change,
			  const struct incr_node *node, uint64_t txn);

/* Each change of a dataset from one transaction to another, in path order. */
int changes_walk(struct cli *cli, uint64_t dataset_id, uint64_t from,
		 uint64_t to, changes_fn fn, void *closure);

enum changes_form {
	CHANGES_LETTERS, /* "A", a tab, the path */
	CHANGES_NAMES, /* "path" */
	CHANGES_LONG, /* "A size path" */
};

struct changes_print {
	const struct cli *cli;
	enum changes_form form;
	bool has_wish; /* only some of the changes */
	bool wants_added, wants_modified, wants_removed;
	uint64_t n_printed;
};
/* A changes_fn that prints; the closure is a struct changes_print. */
int changes_print(void *closure, enum incr_change change,
		  const struct incr_node *node, uint64_t txn);

#endif
