/*
 * The files of all sources of a commit, merged in byte order of their path in
 * the store.  Trees are walked as they are consumed: of a tree, only the names
 * of one directory per level are in memory.  Nothing is opened by following a
 * symbolic link, except the argument itself that names a tree.
 */
#ifndef INCR_SOURCE_WALK_H
#define INCR_SOURCE_WALK_H

#include "buf.h"
#include "io.h"

enum source_kind { SOURCE_FILE, SOURCE_STREAM, SOURCE_REMOVAL };

/* Borrowed, all of it, until the walk's next step. */
struct source_entry {
	enum source_kind kind;
	const char *path; /* in the store; NUL-terminated */
	size_t path_length;
	int dirfd; /* SOURCE_FILE: open @name at it */
	const char *name;
	int fd; /* SOURCE_STREAM */
	const char *root; /* the tree's argument; NULL: not from a tree */
	const char *rel; /* path below @root */
};

/* Bytes that name the source in messages; cut at @out_size. */
void source_entry_describe(const struct source_entry *e, char *out,
			   size_t out_size);
/* INCR_E_INVALID, word "special-file", for what is neither file nor directory. */
int source_fail_special(struct incr_error *err, const char *thing,
			enum io_kind kind);
/* INCR_E_CONFLICT, word "source-changed". */
int source_fail_changed(struct incr_error *err, const char *thing,
			const char *what);

struct source_walk;
int source_walk_new(const struct incr_io *io, bool skips_special,
		    struct source_walk **out_walk);
/* Trees that are added later leave this directory out. */
void source_walk_leave_out(struct source_walk *w, const struct io_stat *st);
void source_walk_free(struct source_walk *w);
/* As ingest_add_*(); paths are copied, descriptors borrowed. */
int source_walk_add_tree(struct source_walk *w, int dirfd, const char *path,
			 const char *prefix, struct incr_error *err);
int source_walk_add_file(struct source_walk *w, int dirfd, const char *path,
			 const char *name, struct incr_error *err);
int source_walk_add_stream(struct source_walk *w, int fd, const char *name,
			   struct incr_error *err);
int source_walk_add_removal(struct source_walk *w, const char *path,
			    size_t length, struct incr_error *err);
/*
 * 0 and an entry, 1 at the end.  Paths ascend strictly: the same path twice is
 * INCR_E_INVALID, word "duplicate-path"; a file `x` beside a file `x/y`,
 * "path-conflict".
 */
int source_walk_next(struct source_walk *w,
		     const struct source_entry **out_entry,
		     struct incr_error *err);

#endif
