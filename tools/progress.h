/*
 * A line on stderr that tells how far long work has come.
 */
#ifndef INCR_TOOLS_PROGRESS_H
#define INCR_TOOLS_PROGRESS_H

#include "cli.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;
	const char *what; /* "commit" */
	int64_t started_ns, drawn_ns;
};

/* @what is static. */
void progress_init(struct progress *p, const struct cli *cli, const char *what);
/* An incr_progress_fn; the closure is the struct progress. */
void progress_draw(void *closure, uint64_t n_files_done, uint64_t size_done,
		   uint64_t n_files_total, uint64_t size_total);
/* Wipe the line, before anything else is printed. */
void progress_clear(struct progress *p);

#endif
