/*
 * From a failure to an exit status and a message.
 */
#include "config.h"

#include "exit.h"

#include "cleanup.h"
#include "out.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	enum incr_err code;
	const char *word; /* only with this word; NULL: any */
	enum exit_status status;
} table[] = {
	/* An output is about to lose its files: a conflict with what is there. */
	{ INCR_E_REFUSED, "empty-replace", EXIT_CONFLICT },
	{ INCR_E_INVALID, NULL, EXIT_USAGE },
	{ INCR_E_NOTFOUND, NULL, EXIT_NOTFOUND },
	{ INCR_E_CONFLICT, NULL, EXIT_CONFLICT },
	{ INCR_E_EXISTS, NULL, EXIT_CONFLICT },
	{ INCR_E_REFUSED, NULL, EXIT_REFUSED },
	{ INCR_E_CORRUPT, NULL, EXIT_CORRUPT },
	{ INCR_E_BUSY, NULL, EXIT_BUSY },
};

int exit_status_of(const struct cli *cli, const struct incr_error *err)
{
	if (cli->verb && cli->verb->failure)
		return cli->verb->failure;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == err->code &&
		    (!table[i].word || strcmp(table[i].word, err->word) == 0))
			return table[i].status;
	return EXIT_FAILED;
}

/* The path at *@at, and on to the next one. */
static const char *next_path(const struct incr_error *err, size_t *at)
{
	const char *path = err->paths + *at;

	*at += strlen(path) + 1;
	return path;
}

/* Of damage the library knows no more than the place. */
static const char *hint_of(const struct incr_error *err)
{
	if (err->hint[0] || err->code != INCR_E_CORRUPT ||
	    !strcmp(err->word, "damaged-format"))
		return err->hint;
	return "incrctl verify --data names all damage; a copy of the file "
	       "mends it, incrctl repair goes on without";
}

json_t *exit_error_json(const struct incr_error *err)
{
	json_t *json = json_object();

	out_put(json, "code", out_text(err->word[0] ? err->word : "failed"));
	out_put(json, "message",
		out_text(err->message[0] ? err->message :
					   incr_strerror(err->code)));
	out_put(json, "thing", out_text_or_null(err->thing));
	out_put(json, "hint", out_text_or_null(hint_of(err)));
	if (err->sys_errno)
		out_put(json, "errno", json_integer(err->sys_errno));
	if (err->n_paths > 0) {
		json_t *paths = json_array();
		size_t at = 0;

		for (size_t i = 0; i < err->n_paths; i++) {
			const char *path = next_path(err, &at);
			json_t *entry = json_object();

			out_put_path(entry, path, strlen(path));
			(void)json_array_append_new(paths, entry);
		}
		out_put(json, "paths", paths);
	}
	return json;
}

/* A terminal full of paths hides what went wrong: JSON has all of them. */
#define PATHS_SHOWN 20

static void print_text(const struct incr_error *err)
{
	size_t n_shown = err->n_paths > PATHS_SHOWN ? PATHS_SHOWN :
						      err->n_paths;
	size_t at = 0;

	fprintf(stderr, "incrctl: %s%s%s\n",
		err->message[0] ? err->message : incr_strerror(err->code),
		err->thing[0] ? ": " : "", err->thing);
	for (size_t i = 0; i < n_shown; i++) {
		const char *path = next_path(err, &at);
		_cleanup_free_ char *quoted = text_quote(path, strlen(path));

		fprintf(stderr, "  %s\n", quoted ? quoted : "?");
	}
	if (n_shown < err->n_paths)
		fprintf(stderr, "  and %zu more; --json lists all\n",
			err->n_paths - n_shown);
	if (*hint_of(err))
		fprintf(stderr, "hint: %s\n", hint_of(err));
}

int exit_print(const struct cli *cli, const struct incr_error *err)
{
	if (cli->common.is_json) {
		_cleanup_json_ json_t *line = json_object();

		out_put(line, "error", exit_error_json(err));
		out_json(stderr, line);
	} else {
		print_text(err);
	}
	return exit_status_of(cli, err);
}

static void print_line(const char *format, va_list ap)
	__attribute__((format(printf, 1, 0)));

static void print_line(const char *format, va_list ap)
{
	_cleanup_free_ char *line = NULL;

	if (vasprintf(&line, format, ap) < 0)
		line = NULL;
	fprintf(stderr, "incrctl: %s\n", line ? line : "out of memory");
}

void exit_note(const struct cli *cli, const char *format, ...)
{
	va_list ap;

	if (cli->common.is_json)
		return;
	va_start(ap, format);
	print_line(format, ap);
	va_end(ap);
}

void exit_info(const struct cli *cli, const char *format, ...)
{
	va_list ap;

	if (cli->common.is_json || cli->common.is_quiet)
		return;
	va_start(ap, format);
	print_line(format, ap);
	va_end(ap);
}

void exit_hint(const struct cli *cli, const char *format, ...)
{
	va_list ap;

	if (cli->common.is_json)
		return;
	va_start(ap, format);
	fputs("hint: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}
