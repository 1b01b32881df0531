/*
 * From a failure to an exit status and a message: the one table.
 */
#ifndef INCR_TOOLS_EXIT_H
#define INCR_TOOLS_EXIT_H

#include "cli.h"
#include "incr.h"

#include <jansson.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOTFOUND = 3,
	EXIT_CONFLICT = 4,
	EXIT_REFUSED = 5,
	EXIT_CORRUPT = 6,
	EXIT_BUSY = 7,
	EXIT_DIFFERENT = 10, /* only with --exit-code */
	EXIT_RUN = 125, /* of `run`: any failure of its own */
	EXIT_NOEXEC = 126, /* the command cannot be executed */
	EXIT_NOCOMMAND = 127, /* there is no such command */
	EXIT_SIGNAL = 128, /* plus the signal that ended the command */
};

/* Exit status of a failure of @cli's verb. */
int exit_status_of(const struct cli *cli, const struct incr_error *err);
/* The object behind "error": code, message, thing, hint, paths. New. */
json_t *exit_error_json(const struct incr_error *err);
/* Print it on stderr, as text or JSON; returns its exit status. */
int exit_print(const struct cli *cli, const struct incr_error *err);

/* A line on stderr, `incrctl: ...`, unless there is --json. */
void exit_note(const struct cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same, also silenced by -q. */
void exit_info(const struct cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A line `hint: ...`, unless there is --json. */
void exit_hint(const struct cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
