/*
 * A store in memory that is damaged on purpose, and what it may then say: for
 * fault_flips.
 */
#ifndef INCR_FLIPS_H
#define INCR_FLIPS_H

#include "simio.h"
#include "store_text.h"

#define FLIPS_STORE "store"
#define FLIPS_BOOT_ID "/proc/sys/kernel/random/boot_id"
#define FLIPS_LOCK FLIPS_STORE "/lock"
#define FLIPS_FILES_MAX 64

/* Of one process; sent to the first one when it ends. */
struct counts {
	size_t n_bits, n_cuts, n_writers, n_others;
	size_t n_refused; /* the store did not open */
	size_t n_found; /* something could not be read, or verify found it */
	size_t n_harmless;
	size_t n_failures;
};

struct flips {
	const char *only; /* the one case; NULL: all */
	struct sim *sim; /* owned */
	struct store_text want, found; /* owned */
	char *files[FLIPS_FILES_MAX]; /* owned */
	size_t n_files;
	size_t step; /* every so many-th bit, INCR_FLIPS_EVERY */
	struct counts n;
};

void flips_init(struct flips *f);
void flips_release(struct flips *f);
/*
 * Open, read and verify the store as it is now, with damage in @file: NULL, or
 * what is wrong.
 */
const char *flips_judge(struct flips *f, const char *file);
/*
 * A commit in a copy of the store as it is now.  @may_move: nothing proves the
 * last record, so that its bytes may go to lost/.
 */
const char *flips_judge_writer(struct flips *f, bool may_move);

#endif
