/*
 * Histories of a dataset as short texts, and a model of what they amount to,
 * written from the rules alone:
 *
 *   "S{x,y} A{n} | U{x} D{y} Dr{n}"
 *
 * S, A, U and D are the four types, Dr a DELETE of origin retention; a path is
 * one letter; '|' stands behind the last transaction that was read before.
 * Transactions are numbered from 1.
 */
#ifndef INCR_HISTORY_H
#define INCR_HISTORY_H

#include "incr.h"

#define HISTORY_MAX 64

struct history_txn {
	enum incr_txn_type type;
	bool is_retention;
	char paths[16]; /* one letter each, NUL-terminated */
};

struct history {
	size_t n, n_read;
	struct history_txn txns[HISTORY_MAX];
};

/* false when the text makes no sense. Without '|' nothing was read. */
bool history_parse(const char *text, struct history *out);

/* The transaction that wrote each path of the view at @end; 0: absent. */
struct history_view {
	uint64_t start;
	uint64_t version[128];
	uint64_t removed_by[128]; /* the last that removed it */
};
void history_view(const struct history *h, uint64_t end,
		  struct history_view *out);

/* The first transaction of the view at @end that a limit forbids; 0: none. */
uint64_t history_bad_for_limit(const struct history *h, uint64_t end);

#endif
