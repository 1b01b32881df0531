/*
 * Names of the write modes.
 */
#ifndef INCR_TOOLS_WRITE_MODE_H
#define INCR_TOOLS_WRITE_MODE_H

#include "incr.h"

#include <stdbool.h>

/* "modify", "replace", "append", or "default". */
const char *write_mode_name(enum incr_write_mode mode);
/* Whether @name is one of the first three. */
bool write_mode_parse(const char *name, enum incr_write_mode *out_mode);

#endif
