/*
 * Errors of the mount: from the library to the kernel, and for the programs.
 */
#ifndef INCR_ERROR_MAP_H
#define INCR_ERROR_MAP_H

#include "incr.h"

/* The errno that tells a program about @code; positive. */
int error_map_errno(int code);

/*
 * Fill @err (may be NULL) and return @code.
 *
 * @sys_errno  0, or the cause; its text ends the message.
 * @thing      copied; may be NULL.
 */
int mount_fail(struct incr_error *err, enum incr_err code, const char *word,
	       int sys_errno, const char *thing, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

int mount_fail_nomem(struct incr_error *err);

#endif
