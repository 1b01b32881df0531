/*
 * A line on stderr that tells how far long work has come, redrawn at most ten
 * times a second.
 */
#include "config.h"

#include "progress.h"

#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS INT64_C(100000000)

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool can_redraw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void progress_init(struct progress *p, const struct cli *cli, const char *what)
{
	bool is_wanted = cli->progress == CLI_ALWAYS ||
			 (cli->progress == CLI_AUTO && can_redraw() &&
			  !cli->common.is_json && !cli->common.is_quiet);

	*p = (struct progress){
		.is_shown = is_wanted,
		.what = what,
		.started_ns = now_ns(),
	};
}

void progress_draw(void *closure, uint64_t n_files_done, uint64_t size_done,
		   uint64_t n_files_total, uint64_t size_total)
{
	struct progress *p = closure;
	struct text files, size, rate;
	int64_t now;
	double sec, left;

	if (!p->is_shown)
		return;
	now = now_ns();
	if (p->drawn_ns != 0 && now - p->drawn_ns < REDRAW_NS)
		return;
	p->drawn_ns = now;

	sec = (double)(now - p->started_ns) / 1e9;
	(void)text_size(sec > 0 ? (uint64_t)((double)size_done / sec) : 0,
			&rate);
	fprintf(stderr, "\r%s: %s", p->what,
		text_count(n_files_done, "file", "files", &files));
	if (n_files_total > 0)
		fprintf(stderr, " of %" PRIu64, n_files_total);
	fprintf(stderr, ", %s", text_size(size_done, &size));
	if (size_total > 0)
		fprintf(stderr, " of %s", text_size(size_total, &size));
	fprintf(stderr, ", %s/s", rate.str);
	if (size_total > size_done && size_done > 0) {
		left = sec * (double)(size_total - size_done) /
		       (double)size_done;
		fprintf(stderr, ", %.0f s left", left);
	}
	fputs("\033[K", stderr);
}

void progress_clear(struct progress *p)
{
	if (p->drawn_ns != 0)
		fputs("\r\033[K", stderr);
	p->drawn_ns = 0;
}
