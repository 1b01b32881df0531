/*
 * A transaction, as text and as JSON.
 */
#ifndef INCR_TOOLS_OUT_TXN_H
#define INCR_TOOLS_OUT_TXN_H

#include "cli.h"
#include "incr.h"

#include <jansson.h>

/* The keys that `log`, `show`, `commit`, `rm` and `txn` share. */
json_t *out_txn_json(const struct cli *cli, const struct incr_txn_info *info);
/* "3 files, 11.2 KiB", "2 files removed"; owned. */
char *out_txn_counts(enum incr_txn_type type, uint64_t n_files, uint64_t size,
		     uint64_t n_removed);
/* "t42 APPEND examples/students: 3 files, 11.2 KiB", or JSON, to stdout. */
void out_txn(const struct cli *cli, const struct incr_txn_info *info);

#endif
