/*
 * The question before something is destroyed, and its options.
 */
#ifndef INCR_TOOLS_CONFIRM_H
#define INCR_TOOLS_CONFIRM_H

#include "cli.h"

#include <stdbool.h>

struct confirm_options {
	bool is_yes, is_dry_run;
};

/* Rows of an option table; @off: where the struct confirm_options lies. */
#define CONFIRM_OPTIONS(off)                                                  \
	{ "yes",     0,                                                       \
	  ARGS_FLAG, (off) + offsetof(struct confirm_options, is_yes),        \
	  NULL,	     "do not ask" },                                          \
	{                                                                     \
		"dry-run", 'n', ARGS_FLAG,                                    \
			(off) + offsetof(struct confirm_options, is_dry_run), \
			NULL, "say what would be done, and do nothing"        \
	}

/*
 * Say what is about to happen and ask. Returns 1 to go on, 0 to do nothing
 * (--dry-run, or the answer is no), or INCR_E_INVALID when nobody can be asked.
 */
int confirm(struct cli *cli, const struct confirm_options *options,
	    const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
