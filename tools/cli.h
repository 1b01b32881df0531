/*
 * One invocation of incrctl, and what a verb is.
 */
#ifndef INCR_TOOLS_CLI_H
#define INCR_TOOLS_CLI_H

#include "args.h"
#include "incr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

#define CLI_MAX_TABLES 3
#define CLI_ANY SIZE_MAX

struct verb {
	const char *name; /* as typed: "commit"; of a sub-verb: "txn begin" */
	const char *summary; /* one sentence */
	const char *synopsis; /* after the name; NULL: no arguments */
	const char *details; /* lines below the options; may be NULL */
	/* either sub-verbs, ended by NULL, or the rest */
	const struct verb *const *subs;
	const struct args_option *tables[CLI_MAX_TABLES];
	size_t options_size; /* of the struct that the tables fill */
	size_t min_args, max_args;
	bool takes_command; /* what follows `--` is a command */
	int failure; /* exit status of every failure of its own; 0: the table */
	/*
	 * Returns 0, a positive exit status for which all has been said, or
	 * a negative code with cli->err filled, which the caller prints.
	 */
	int (*run)(struct cli *cli, void *options);
};

enum cli_when { CLI_AUTO, CLI_ALWAYS, CLI_NEVER };

/* Options of every verb. */
struct cli_common {
	const char *store;
	bool is_json, is_nul, is_quiet, wants_help, wants_version;
	const char *progress;
	struct args_number wait_sec;
};

struct cli {
	const struct verb *verb;
	struct cli_common common;
	enum cli_when progress;
	char **args; /* owned array, borrowed strings */
	size_t n_args;
	char **command; /* borrowed, ended by NULL; what follows `--` */
	size_t n_command;
	bool has_command;
	struct incr_store *store; /* owned; NULL until store_open() */
	struct incr_error err;
};

extern const struct args_option cli_common_options[];

/* Print the usage of @verb to stdout. */
void cli_help(const struct verb *verb);

/* All verbs, ended by NULL. */
extern const struct verb verb_branch, verb_build, verb_cat, verb_changes,
	verb_commit, verb_dataset, verb_diff, verb_export, verb_init, verb_log,
	verb_ls, verb_mount, verb_plan, verb_repair, verb_rm, verb_run,
	verb_schema, verb_show, verb_status, verb_sync, verb_txn, verb_unmount,
	verb_verify;

#endif
