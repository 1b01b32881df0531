/*
 * What is a legal name: the only judge of dataset, branch, alias, origin and
 * file path.  Pure; every rule is in docs/format.md, "Names".
 */
#ifndef INCR_NAME_H
#define INCR_NAME_H

#include <stddef.h>

#include "incr.h"

#define NAME_PATH_MAX 4095 /* bytes of a path inside a dataset */
#define NAME_PART_MAX 255 /* bytes of one part */
#define NAME_DEPTH_MAX 250 /* parts of a path */

/*
 * Each returns 0, or INCR_E_INVALID with a message that says which rule is
 * broken and names the thing (bytes that are not UTF-8 escaped as \xNN).
 */
int name_check_dataset(const char *name, size_t length, struct incr_error *err);
int name_check_branch(const char *name, size_t length, struct incr_error *err);
int name_check_alias(const char *name, size_t length, struct incr_error *err);
int name_check_origin(const char *name, size_t length, struct incr_error *err);
int name_check_transform(const char *name, size_t length,
			 struct incr_error *err);
/*
 * The same for a name that is given now: no part ends in a space either.  Stores
 * may have such names from before that was refused.
 */
int name_check_new_dataset(const char *name, size_t length,
			   struct incr_error *err);
int name_check_new_branch(const char *name, size_t length,
			  struct incr_error *err);
int name_check_new_transform(const char *name, size_t length,
			     struct incr_error *err);
/* Relative, '/'-separated, no empty part, no "." or "..", no NUL, within the limits; any other bytes. */
int name_check_path(const char *path, size_t length, struct incr_error *err);

bool name_is_utf8(const char *bytes, size_t length);
/* Printable form of arbitrary bytes, cut at @out_size with "..."; always NUL-terminated. */
void name_escape(const char *bytes, size_t length, char *out, size_t out_size);

/* Shell-like glob over a whole path: `*` and `?` do not cross '/', `**` does, `[...]` sets, `\` escapes. */
bool name_glob_match(const char *glob, const char *path, size_t path_length);

#endif
