/*
 * The question before something is destroyed.
 */
#include "config.h"

#include "confirm.h"

#include "cleanup.h"
#include "exit.h"
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static bool is_answer_yes(void)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	fputs("Go on? [y/N] ", stderr);
	if (getline(&line, &size, stdin) < 0)
		return false;
	return line[0] == 'y' || line[0] == 'Y';
}

int confirm(struct cli *cli, const struct confirm_options *options,
	    const char *format, ...)
{
	_cleanup_free_ char *what = NULL;
	va_list ap;
	int r;

	va_start(ap, format);
	r = vasprintf(&what, format, ap);
	va_end(ap);
	if (r < 0) {
		what = NULL;
		return fail_nomem(&cli->err);
	}

	if (options->is_dry_run) {
		if (!cli->common.is_json)
			printf("would %s\n", what);
		return 0;
	}
	if (options->is_yes)
		return 1;
	if (!isatty(STDIN_FILENO)) {
		r = fail(&cli->err, INCR_E_INVALID, "needs-yes", NULL,
			 "this would %s", what);
		fail_hint(&cli->err, "--yes does it, --dry-run only shows it");
		return r;
	}
	fprintf(stderr, "incrctl: this will %s\n", what);
	if (is_answer_yes())
		return 1;
	exit_info(cli, "nothing was done");
	return 0;
}
