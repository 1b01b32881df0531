/*
 * Filling struct incr_error for what the tools find out themselves.
 */
#ifndef INCR_TOOLS_FAIL_H
#define INCR_TOOLS_FAIL_H

#include "incr.h"

/*
 * Fill @err and return @code. @word: stable code word of the JSON form;
 * @thing: which thing, copied, may be NULL.
 */
int fail(struct incr_error *err, enum incr_err code, const char *word,
	 const char *thing, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The same for a failed system call, with the errno of now. */
int fail_errno(struct incr_error *err, const char *thing, const char *format,
	       ...) __attribute__((format(printf, 3, 4)));

/* Bad use of the command line. */
int fail_usage(struct incr_error *err, const char *thing, const char *format,
	       ...) __attribute__((format(printf, 3, 4)));

int fail_nomem(struct incr_error *err);

/* What to do about it; after one of the above. */
void fail_hint(struct incr_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
