/*
 * The options of a new transaction, shared by `commit`, `rm` and `txn begin`.
 */
#ifndef INCR_TOOLS_TXN_ARGS_H
#define INCR_TOOLS_TXN_ARGS_H

#include "cli.h"
#include "incr.h"

/* The first member of the options of a verb that uses a table below. */
struct txn_args {
	const char *branch, *origin, *message;
	struct args_list meta;
	const char *type;
};

extern const struct args_option txn_args_table[]; /* with --type, no delete */
extern const struct args_option txn_args_begin_table[]; /* with --type */
extern const struct args_option txn_args_untyped_table[];

/*
 * Fill what the options say. @meta is filled too, to be released by the
 * caller; @out borrows it.
 */
int txn_args_read(struct cli *cli, const struct txn_args *args,
		  enum incr_txn_type default_type, struct incr_pairs *meta,
		  struct incr_txn_options *out);

#endif
