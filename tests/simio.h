/*
 * A file system in memory that records every mutation, so that the state after
 * a power cut at any moment can be built and looked at.
 *
 * What is durable is the least that POSIX and Linux promise: fsync of a file
 * makes its earlier writes and its size durable, fsync of a directory its
 * earlier entries, and nothing else makes anything durable.  In particular
 * fsync of a file does not save its name.
 */
#ifndef INCR_SIMIO_H
#define INCR_SIMIO_H

#include "io.h"

struct sim; /* one file system */

struct sim *sim_new(void);
void sim_free(struct sim *sim);
/* The io table over it; valid as long as the file system. Thread-safe. */
const struct incr_io *sim_io(struct sim *sim);

/* The live tree of @from, with nothing open and nothing recorded. */
struct sim *sim_copy(const struct sim *from);
/* Descriptors that are open now. */
size_t sim_n_open(const struct sim *sim);

/* A file of the tree: its bytes, borrowed until it changes; NULL: no such file. */
uint8_t *sim_file(struct sim *sim, const char *path, size_t *out_size);
void sim_set_file(struct sim *sim, const char *path, const void *data,
		  size_t size);
/* The same with @n_random bytes that do not compress, and others that do. */
void sim_make_file(struct sim *sim, const char *path, size_t size,
		   size_t n_random, uint64_t seed);
void sim_remove_file(struct sim *sim, const char *path);
typedef void (*sim_file_fn)(void *closure, const char *path);
/* All files below directory @path, with their whole paths, in no order; @fn may remove the file. */
void sim_each_file(struct sim *sim, const char *path, sim_file_fn fn,
		   void *closure);

/* The next of a sequence of random numbers. */
uint64_t sim_random(uint64_t *state);

/* What is there now becomes durable, and the recording starts here. */
void sim_start(struct sim *sim);
/* Number of recorded operations so far: a crash point is a number up to this. */
size_t sim_n_ops(const struct sim *sim);

/* One of the ways in which the operations that were not durable may have reached the disk. */
enum sim_family {
	SIM_ALL, /* all of them */
	SIM_NONE,
	SIM_ALL_BUT_ONE, /* @x: which */
	SIM_ONLY_ONE, /* @x: which */
	SIM_METADATA_ORDERED, /* names in order up to the @x-th, data at random */
	SIM_TORN_LAST, /* all; the last write is cut at @x * 512 bytes */
	SIM_ZERO_TAIL, /* sizes are kept, bytes of unsynced writes are zero */
	SIM_GARBAGE, /* the same with random bytes */
	SIM_RANDOM, /* @x: seed; a random subset, torn pieces among it */
	SIM_UNDELETE, /* removals and renames are undone, all else is kept */
	SIM_N_FAMILIES,
};

/* How many values @x of a family has at crash point @k. */
size_t sim_n_variants(const struct sim *sim, size_t k, enum sim_family family);
/*
 * The file system after a crash at point @k.  Returns NULL when the state
 * equals one that this function gave before for @sim (by hash), or when out of
 * memory.
 */
struct sim *sim_crash(struct sim *sim, size_t k, enum sim_family family,
		      size_t x);
/* Write the tree as a real directory, to look at it. */
int sim_export(struct sim *sim, const char *directory);

#endif
