/*
 * The part of verify that finds what killed processes left in the store: it is
 * no damage, and takes nothing but room.
 */
#ifndef INCR_VERIFY_LEFT_H
#define INCR_VERIFY_LEFT_H

#include "leftover.h"

/* Zeroed: nothing is looked for. */
struct verify_left {
	struct incr_store *st; /* borrowed */
	struct leftover_packs packs; /* owned */
	struct left_file {
		char *path; /* owned */
		uint64_t size;
	} * files; /* owned: all but packs */
	size_t n_files;
	bool is_unsure; /* something that names packs cannot be read */
	struct incr_error *err; /* borrowed */
};

/* Before the log is walked.  @err is kept for the calls below. */
int verify_left_init(struct verify_left *left, struct incr_store *st,
		     struct incr_error *err);
void verify_left_release(struct verify_left *left);
/* A manifest of the log stands there, or a file of one. */
void verify_left_name(struct verify_left *left, const struct content *place);
/* What is read may have named any pack. */
void verify_left_doubt(struct verify_left *left);

/* After the walk.  @is_whole: all of the log and its manifests was read. */
typedef int (*verify_left_fn)(void *closure, const char *path, uint64_t size);
int verify_left_report(struct verify_left *left, bool is_whole,
		       verify_left_fn fn, void *closure);

#endif
