/*
 * Errors of the mount: the one table from library codes to errno, and the one
 * place of fuse/ that fills struct incr_error.
 */
#include "config.h"

#include "error_map.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_map_errno(int code)
{
	switch ((enum incr_err)code) {
	case INCR_E_NOMEM:
		return ENOMEM;
	case INCR_E_NOSPC:
		return ENOSPC;
	case INCR_E_EXISTS:
		return EEXIST;
	case INCR_E_NOTFOUND:
		return ENOENT;
	case INCR_E_BUSY:
		return EBUSY;
	case INCR_E_CONFLICT:
	case INCR_E_RANGE: /* a place that the view never gave */
		return ESTALE;
	case INCR_E_REFUSED:
		return EPERM;
	case INCR_E_UNSUPPORTED:
		return EOPNOTSUPP;
	case INCR_E_INVALID:
		return EINVAL;
	case INCR_E_READONLY:
		return EROFS;
	case INCR_E_IO: /* its errno is about a file of the store */
	case INCR_E_CORRUPT:
	case INCR_E_DEAD:
		return EIO;
	}
	return EIO;
}

int mount_fail(struct incr_error *err, enum incr_err code, const char *word,
	       int sys_errno, const char *thing, const char *format, ...)
{
	size_t used;
	va_list args;

	if (err == NULL)
		return code;
	*err = INCR_ERROR_INIT;
	err->code = code;
	err->sys_errno = sys_errno;
	(void)snprintf(err->word, sizeof(err->word), "%s", word);
	(void)snprintf(err->thing, sizeof(err->thing), "%s",
		       thing == NULL ? "" : thing);
	va_start(args, format);
	(void)vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);

	used = strlen(err->message);
	if (sys_errno != 0)
		(void)snprintf(err->message + used, sizeof(err->message) - used,
			       ": %s", strerrordesc_np(sys_errno));
	return code;
}

int mount_fail_nomem(struct incr_error *err)
{
	return mount_fail(err, INCR_E_NOMEM, "no-memory", 0, NULL,
			  "out of memory");
}
