/*
 * Filling struct incr_error for what the tools find out themselves.
 */
#include "config.h"

#include "fail.h"

#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int fill(struct incr_error *err, enum incr_err code, const char *word,
		const char *thing)
{
	incr_error_release(err);
	*err = INCR_ERROR_INIT;
	err->code = code;
	(void)snprintf(err->word, sizeof(err->word), "%s", word);
	if (thing)
		text_printable(thing, strlen(thing), err->thing,
			       sizeof(err->thing));
	return code;
}

static void fill_message(struct incr_error *err, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* A message that is too long is cut. */
static void fill_message(struct incr_error *err, const char *format, va_list ap)
{
	char raw[sizeof(err->message)];

	(void)vsnprintf(raw, sizeof(raw), format, ap);
	text_printable(raw, strlen(raw), err->message, sizeof(err->message));
}

int fail(struct incr_error *err, enum incr_err code, const char *word,
	 const char *thing, const char *format, ...)
{
	va_list ap;

	(void)fill(err, code, word, thing);
	va_start(ap, format);
	fill_message(err, format, ap);
	va_end(ap);
	return code;
}

int fail_errno(struct incr_error *err, const char *thing, const char *format,
	       ...)
{
	int sys_errno = errno;
	bool is_full = sys_errno == ENOSPC || sys_errno == EDQUOT;
	size_t length;
	va_list ap;
	int r;

	if (sys_errno == ENOMEM)
		r = fill(err, INCR_E_NOMEM, "no-memory", thing);
	else if (is_full)
		r = fill(err, INCR_E_NOSPC, "no-space", thing);
	else
		r = fill(err, INCR_E_IO, "io", thing);
	err->sys_errno = sys_errno;

	va_start(ap, format);
	fill_message(err, format, ap);
	va_end(ap);
	length = strlen(err->message);
	(void)snprintf(err->message + length, sizeof(err->message) - length,
		       ": %s", strerror(sys_errno));
	return r;
}

int fail_usage(struct incr_error *err, const char *thing, const char *format,
	       ...)
{
	va_list ap;

	(void)fill(err, INCR_E_INVALID, "usage", thing);
	va_start(ap, format);
	fill_message(err, format, ap);
	va_end(ap);
	return INCR_E_INVALID;
}

int fail_nomem(struct incr_error *err)
{
	return fail(err, INCR_E_NOMEM, "no-memory", NULL, "out of memory");
}

void fail_hint(struct incr_error *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(err->hint, sizeof(err->hint), format, ap);
	va_end(ap);
}
