/*
 * Filling struct incr_error: once, by the function that knows what went wrong.
 */
#ifndef INCR_ERROR_H
#define INCR_ERROR_H

#include "incr.h"

/*
 * Fill @err (may be NULL) and return @code, so that a failing function ends in
 * `return incr_fail(err, INCR_E_X, "word", thing, "what went wrong");`.
 *
 * @word   stable code word of the JSON error form ("append-collision"); a
 *         static string, or NULL for the default word of @code.
 * @thing  which thing: a path, a name, a transaction; copied; may be NULL.
 */
int incr_fail(struct incr_error *err, enum incr_err code, const char *word,
	      const char *thing, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * The same for a failed system call: the code comes from the one errno table.
 * @sys_errno may be negated, as struct incr_io returns it.
 */
int incr_fail_errno(struct incr_error *err, int sys_errno, const char *thing,
		    const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Out of memory: fills @err without allocating. */
int incr_fail_nomem(struct incr_error *err);

/* Pass on @r with what was filled aside: *why goes to @err if @r < 0, else it is released. */
int incr_fail_with(struct incr_error *err, int r, struct incr_error *why);

/* Where in its thing the damage is; call after incr_fail(). */
void incr_error_at(struct incr_error *err, uint64_t off);

/* A line that says what to do; call after incr_fail(). */
void incr_hint(struct incr_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Add one path to the list of @err (all collisions are listed); call after incr_fail(). */
void incr_fail_add_path(struct incr_error *err, const char *path,
			size_t length);

/* Did the disk, or the file system on it, not give bytes that are there? */
bool incr_is_unreadable(const struct incr_error *err);

/* The one errno -> code table. */
enum incr_err incr_err_from_errno(int sys_errno);

#endif
