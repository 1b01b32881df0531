/*
 * The text of a schema: reading it from a file, and what makes it one.
 */
#ifndef INCR_TOOLS_SCHEMA_JSON_H
#define INCR_TOOLS_SCHEMA_JSON_H

#include "incr.h"

#include <stddef.h>

/*
 * Is it an object with an array "columns" of objects, each with a "name" and
 * a "type"? 0, or INCR_E_INVALID "bad-schema"; @thing is named in the error.
 */
int schema_check(const char *text, size_t length, const char *thing,
		 struct incr_error *err);
/* A whole file, or standard input for "-", checked. *out_text owned, ended by NUL. */
int schema_read(const char *path, char **out_text, size_t *out_length,
		struct incr_error *err);

#endif
