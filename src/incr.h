/*
 * libincr: incremental computation over datasets of files.
 *
 * The only public header.  Conventions: functions return 0 or a negative enum
 * incr_err; positive values only where the comment says so.  Outputs come
 * last, are named out_* and are untouched on failure.  Pointers are borrowed
 * for the call unless the comment says owned or taken.  A handle may be used
 * by one thread at a time unless said otherwise.
 */
#ifndef INCR_H
#define INCR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INCR_API __attribute__((visibility("default")))

/* ------------------------------------------------------------------ */
/* Errors                                                             */
/* ------------------------------------------------------------------ */

/* What the caller can do about it. */
enum incr_err {
	INCR_E_NOMEM = -1, /* out of memory */
	INCR_E_IO = -2, /* the operating system refused; sys_errno says how */
	INCR_E_NOSPC = -3, /* disk or quota full; nothing is lost, try again with space */
	INCR_E_EXISTS = -4, /* the thing is already there */
	INCR_E_NOTFOUND = -5, /* no such store, dataset, branch, transaction, build or path */
	INCR_E_BUSY = -6, /* a lock did not come free in time */
	INCR_E_CONFLICT = -7, /* branch moved, append names an existing path, open transaction */
	INCR_E_REFUSED = -8, /* require_incremental, or a hard rule of incremental resolution */
	INCR_E_CORRUPT = -9, /* bytes on disk do not match their checksums */
	INCR_E_UNSUPPORTED = -10, /* a store of a newer format, or a feature this machine lacks */
	INCR_E_INVALID = -11, /* the caller's mistake: bad name, bad option, bad source */
	INCR_E_READONLY = -12, /* the store cannot be written */
	INCR_E_RANGE = -13, /* a number outside its limits */
	INCR_E_DEAD = -14, /* a sync failed on this handle: reopen the store */
};

/* Details of a failure: filled once, by the function that knows them. */
struct incr_error {
	enum incr_err code;
	int sys_errno; /* 0 when no system call failed */
	char word[40]; /* stable code word, as in the JSON error form */
	char thing[512]; /* which thing; may be empty; printable */
	char message[1024]; /* what went wrong, without the thing; one line */
	char hint[512]; /* what to do; may be empty */
	char *paths; /* owned: NUL-terminated paths back to back, all collisions */
	size_t paths_size; /* bytes in paths */
	size_t n_paths;
};

#define INCR_ERROR_INIT ((struct incr_error){ 0 })

INCR_API void incr_error_release(struct incr_error *err);
/* One lower-case sentence for a code; static. */
INCR_API const char *incr_strerror(enum incr_err code);

#define INCR_HASH_SIZE 16 /* XXH3-128, canonical */

/* Called now and then during long work. @done of @total; total 0: not known. Never from two threads at once. */
typedef void (*incr_progress_fn)(void *closure, uint64_t n_files_done, uint64_t size_done,
				 uint64_t n_files_total, uint64_t size_total);

#ifdef __cplusplus
}
#endif

#endif
