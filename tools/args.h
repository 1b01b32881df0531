/*
 * Options by table: parsing with getopt_long, and the usage text.
 */
#ifndef INCR_TOOLS_ARGS_H
#define INCR_TOOLS_ARGS_H

#include "incr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum args_kind {
	ARGS_FLAG, /* bool */
	ARGS_TEXT, /* const char *, borrowed from argv */
	ARGS_LIST, /* struct args_list: the option may be repeated */
	ARGS_NUMBER, /* struct args_number */
	ARGS_SIGNED, /* struct args_signed */
	ARGS_TXN, /* struct args_number: t42 */
};

struct args_list {
	size_t n;
	const char **items; /* owned array, borrowed strings */
};

struct args_number {
	bool is_set;
	uint64_t value;
};

struct args_signed {
	bool is_set;
	int64_t value;
};

struct args_option {
	const char *name; /* NULL ends a table */
	char letter; /* 0: none */
	enum args_kind kind;
	size_t off; /* of the field, in the options struct */
	const char *
		value; /* what the usage calls the value; "a|b|c": just these */
	const char *help;
};

/* clang-format off */
#define ARGS_END { NULL, 0, ARGS_FLAG, 0, NULL, NULL }
/* clang-format on */

/* A table and the struct that it fills. */
struct args_target {
	const struct args_option *table;
	void *options;
};

enum args_order {
	ARGS_STOP, /* stop at the first argument that is no option */
	ARGS_MIXED, /* options may stand anywhere before `--` */
};

struct args_result {
	char **args; /* owned array of borrowed strings: no options */
	size_t n_args;
	char **rest; /* where parsing stopped: a pointer into argv */
	size_t n_rest;
	bool has_dashes; /* it stopped at `--` */
};

/*
 * Parse argv[1] and on.  Returns 0, or INCR_E_INVALID with @err filled.
 * args_release() frees the lists of a target.
 */
int args_parse(int argc, char **argv, const struct args_target *targets,
	       size_t n_targets, enum args_order order,
	       struct args_result *out_result, struct incr_error *err);
void args_release(const struct args_target *targets, size_t n_targets);

/* Was none of the options of the table given? */
bool args_is_empty(const struct args_option *table, const void *options);

/* Print one aligned line (or more) per option. */
void args_print_help(const struct args_option *table);

/*
 * Split KEY=VALUE at the first '='; returns a copy of the key, owned, and the
 * value as a pointer into @text, or NULL if there is no '=' or no key.
 */
char *args_split_pair(const char *text, const char **out_value);
/* KEY=VALUE texts as pairs, which args_pairs_release() frees. */
int args_pairs(const struct args_list *list, struct incr_pairs *out_pairs,
	       struct incr_error *err);
void args_pairs_release(struct incr_pairs *pairs);

#endif
