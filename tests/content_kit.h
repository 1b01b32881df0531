/*
 * What the tests of the content layer share: a directory with packs, readers
 * over it, ingest into it, and an io table that counts and fails calls.
 */
#ifndef INCR_CONTENT_KIT_H
#define INCR_CONTENT_KIT_H

#include "ingest.h"

struct kit {
	int dirfd;
	struct pack_set *packs;
	struct frame_cache *cache;
	struct content_reader *reader;
	struct ingest_options options;
};

extern const uint8_t kit_uuid[16];

/* Below testing_tmpdir(); @io NULL: io_posix. */
void kit_open(struct kit *k, const struct incr_io *io);
void kit_close(struct kit *k);
/* Number of files in packs/. */
size_t kit_count_packs(const struct kit *k);

/* Bytes that compress about as text does, or not at all; the same for a seed. */
void kit_fill_text(uint8_t *data, size_t size, uint64_t seed);
void kit_fill_noise(uint8_t *data, size_t size, uint64_t seed);
/* Make a file, and the directories above it, below the temporary directory. */
void kit_write(const char *path, const void *data, size_t size);
char *kit_path(const char *path); /* owned; in the temporary directory */

/* All entries of a result, in order; inline frames are read as if from a log. */
struct kit_files {
	struct manifest_entry *entries; /* paths are owned */
	size_t n;
};
void kit_list(struct kit *k, const struct ingest_result *r,
	      struct kit_files *out);
void kit_files_release(struct kit_files *f);
const struct manifest_entry *kit_find(const struct kit_files *f,
				      const char *path);
/* Whether the entry's content is exactly @data; reads it in pieces of @step. */
bool kit_content_is(struct kit *k, const struct ingest_result *r,
		    const struct manifest_entry *e, const void *data,
		    size_t size, size_t step);

/* Ingest one tree (path below the temporary directory). */
int kit_ingest(struct kit *k, const char *tree, struct ingest_result *out,
	       struct incr_error *err);

/* An io table that fails the n-th call, and can do something at a pread. */
struct fault_io {
	struct incr_io io;
	long n_calls; /* so far; atomic */
	long fail_at; /* 0: never */
	int fail_with; /* -errno */
	int lease_result; /* of every lease that is taken */
	long n_leases_on, n_leases_off;
	uint64_t n_written; /* bytes; atomic */
	void (*at_pread)(void *closure, int fd);
	void *closure;
};
void fault_io_init(struct fault_io *f);

#endif
