/*
 * The spool of an open build: where programs write, and what is to become of
 * it.  Layout, below the store (docs/format.md, "The spool"):
 *
 *   spool/b7/staging/<alias>/   one directory an output, full POSIX
 *   spool/b7/sealed/            the same, renamed while it is being committed
 *   spool/b7/abort              marker: throw everything away
 *   spool/b7/abort-<alias>      marker: throw this output away
 *   spool/b7/result             why the last try to commit failed
 *
 * Sealing is one rename of `staging`: nothing opens a file through its old
 * path afterwards.  Who has a file open already is found by leases while it is
 * read (ingest.h), and named by staging_check_writers().
 *
 * Nothing here is a lock, and nothing but the bytes below `staging` is worth
 * keeping: the log says what a build is.
 */
#ifndef INCR_STAGING_H
#define INCR_STAGING_H

#include "io.h"

#define STAGING_SPOOL "spool"
#define STAGING_PATH_MAX 160 /* of any path of the spool, below the store */

struct staging {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	char dir[40]; /* "spool/b7" */
};

void staging_of_build(const struct incr_io *io, int store_dirfd, uint64_t build,
		      struct staging *out);
/* A name that no build has: of a preview, or of a build without a number yet. */
int staging_of_preview(const struct incr_io *io, int store_dirfd,
		       struct staging *out, struct incr_error *err);

/* Empty directories for @aliases; durable after staging_sync(). */
int staging_create(const struct staging *s, const char *const *aliases,
		   size_t n, struct incr_error *err);
/* Rename it to that of @build, in place of whatever is left over there. */
int staging_name_build(struct staging *s, uint64_t build,
		       struct incr_error *err);
int staging_sync(const struct staging *s, struct incr_error *err);
/* All of it; a missing one is no error. */
int staging_remove(const struct staging *s, struct incr_error *err);

enum staging_state { STAGING_MISSING, STAGING_OPEN, STAGING_SEALED };
int staging_state(const struct staging *s, enum staging_state *out,
		  struct incr_error *err);
/* Both do nothing when it is so already.  INCR_E_NOTFOUND "no-staging". */
int staging_seal(const struct staging *s, struct incr_error *err);
int staging_unseal(const struct staging *s, struct incr_error *err);

/* Is there no file in an output? INCR_E_NOTFOUND "no-staging". */
int staging_is_empty(const struct staging *s, const char *alias, bool is_sealed,
		     bool *out_is_empty, struct incr_error *err);

/* The directory of an output, below the store. */
void staging_path(const struct staging *s, const char *alias, bool is_sealed,
		  char out[STAGING_PATH_MAX]);

/* @alias NULL: the whole build. */
int staging_mark_abort(const struct staging *s, const char *alias,
		       struct incr_error *err);
int staging_is_marked(const struct staging *s, const char *alias,
		      bool *out_is_marked, struct incr_error *err);

/* Informational: not synced, and a damaged one counts as none. */
int staging_write_result(const struct staging *s,
			 const struct incr_error *result,
			 struct incr_error *err);
/* 0, or 1 when there is none. @out is owned by the caller. */
int staging_read_result(const struct staging *s, struct incr_error *out);

/*
 * Can any process still write a file of the sealed output?  Looks at the open
 * descriptors and shared mappings of all processes that this one may look at.
 * 0, or INCR_E_CONFLICT "staging-busy": the message names path, process and
 * program of the first in path order, err->paths lists all.
 */
int staging_check_writers(const struct staging *s, const char *alias,
			  struct incr_error *err);

#endif
