/*
 * Filling struct incr_error, and the one table from errno to code.
 */
#include "config.h"

#include "error.h"

#include "name.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	enum incr_err code;
	const char *word;
	const char *sentence;
} codes[] = {
	{ INCR_E_NOMEM, "out-of-memory", "out of memory" },
	{ INCR_E_IO, "io-error", "the operating system reports an error" },
	{ INCR_E_NOSPC, "no-space", "no space left on disk or in the quota" },
	{ INCR_E_EXISTS, "exists", "it exists already" },
	{ INCR_E_NOTFOUND, "not-found", "there is no such thing" },
	{ INCR_E_BUSY, "busy", "it is in use" },
	{ INCR_E_CONFLICT, "conflict", "it conflicts with the present state" },
	{ INCR_E_REFUSED, "refused", "a rule forbids it" },
	{ INCR_E_CORRUPT, "corrupt", "data on disk is damaged" },
	{ INCR_E_UNSUPPORTED, "unsupported", "it is not supported here" },
	{ INCR_E_INVALID, "invalid", "it is not valid" },
	{ INCR_E_READONLY, "read-only", "the store is read-only" },
	{ INCR_E_RANGE, "out-of-range", "a number is out of range" },
	{ INCR_E_DEAD, "handle-dead",
	  "an earlier write failed; the store must be opened again" },
};

static const struct {
	int sys_errno;
	enum incr_err code;
	const char *word; /* NULL: the word of the code */
} errnos[] = {
	{ ENOMEM, INCR_E_NOMEM, NULL },
	{ ENOSPC, INCR_E_NOSPC, NULL },
	{ EDQUOT, INCR_E_NOSPC, NULL },
	{ EROFS, INCR_E_READONLY, NULL },
	{ ENOENT, INCR_E_NOTFOUND, NULL },
	{ EEXIST, INCR_E_EXISTS, NULL },
	{ EACCES, INCR_E_IO, "permission-denied" },
	{ EPERM, INCR_E_IO, "permission-denied" },
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *word_of_code(enum incr_err code)
{
	for (size_t i = 0; i < N_OF(codes); i++)
		if (codes[i].code == code)
			return codes[i].word;
	return "unknown";
}

const char *incr_strerror(enum incr_err code)
{
	for (size_t i = 0; i < N_OF(codes); i++)
		if (codes[i].code == code)
			return codes[i].sentence;
	return "unknown error";
}

void incr_error_release(struct incr_error *err)
{
	if (!err)
		return;
	free(err->paths);
	*err = INCR_ERROR_INIT;
}

/* @message is cut, and made one printable line, by name_escape(). */
static void fill(struct incr_error *err, enum incr_err code, const char *word,
		 const char *thing, const char *message)
{
	incr_error_release(err);
	err->code = code;
	(void)snprintf(err->word, sizeof(err->word), "%s",
		       word ? word : word_of_code(code));
	if (thing)
		name_escape(thing, strlen(thing), err->thing,
			    sizeof(err->thing));
	name_escape(message, strlen(message), err->message,
		    sizeof(err->message));
}

int incr_fail(struct incr_error *err, enum incr_err code, const char *word,
	      const char *thing, const char *format, ...)
{
	char message[sizeof(err->message) + 8];
	va_list args;

	if (!err)
		return code;

	va_start(args, format);
	(void)vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	fill(err, code, word, thing, message);
	return code;
}

int incr_fail_errno(struct incr_error *err, int sys_errno, const char *thing,
		    const char *format, ...)
{
	int positive = sys_errno < 0 ? -sys_errno : sys_errno;
	enum incr_err code = incr_err_from_errno(positive);
	char what[sizeof(err->message) / 2], text[128];
	char message[sizeof(what) + sizeof(text) + 2];
	const char *word = NULL;
	va_list args;

	if (!err)
		return code;

	for (size_t i = 0; i < N_OF(errnos); i++)
		if (errnos[i].sys_errno == positive)
			word = errnos[i].word;
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	(void)snprintf(message, sizeof(message), "%s: %s", what,
		       strerror_r(positive, text, sizeof(text)));
	fill(err, code, word, thing, message);
	err->sys_errno = positive;
	return code;
}

int incr_fail_nomem(struct incr_error *err)
{
	return incr_fail(err, INCR_E_NOMEM, NULL, NULL, "out of memory");
}

int incr_fail_with(struct incr_error *err, int r, struct incr_error *why)
{
	if (r < 0 && err) {
		*err = *why;
		*why = INCR_ERROR_INIT;
	} else {
		incr_error_release(why);
	}
	return r;
}

void incr_error_at(struct incr_error *err, uint64_t off)
{
	if (err)
		err->off = off;
}

void incr_hint(struct incr_error *err, const char *format, ...)
{
	char hint[sizeof(err->hint) + 8];
	va_list args;

	if (!err)
		return;

	va_start(args, format);
	(void)vsnprintf(hint, sizeof(hint), format, args);
	va_end(args);
	name_escape(hint, strlen(hint), err->hint, sizeof(err->hint));
}

void incr_fail_add_path(struct incr_error *err, const char *path, size_t length)
{
	char *paths;

	if (!err)
		return;

	/* Out of memory: the failure itself is worth more than its list. */
	paths = realloc(err->paths, err->paths_size + length + 1);
	if (!paths)
		return;

	memcpy(paths + err->paths_size, path, length);
	paths[err->paths_size + length] = '\0';
	err->paths = paths;
	err->paths_size += length + 1;
	err->n_paths++;
}

bool incr_is_unreadable(const struct incr_error *err)
{
	return err->code == INCR_E_IO &&
	       (err->sys_errno == EIO || err->sys_errno == EREMOTEIO ||
		err->sys_errno == EBADMSG || err->sys_errno == EUCLEAN);
}

enum incr_err incr_err_from_errno(int sys_errno)
{
	int positive = sys_errno < 0 ? -sys_errno : sys_errno;

	for (size_t i = 0; i < N_OF(errnos); i++)
		if (errnos[i].sys_errno == positive)
			return errnos[i].code;
	return INCR_E_IO;
}
