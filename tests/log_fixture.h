/*
 * A log in the directory of the running test, with records whose content
 * follows from their number, and an io table that counts and fails.
 */
#ifndef INCR_LOG_FIXTURE_H
#define INCR_LOG_FIXTURE_H

#include "io.h"
#include "log.h"

struct log_fixture {
	int dirfd; /* of the store; owned */
	struct log_options options;
	struct log *log; /* owned */
	/* As log_fixture_read() and log_fixture_append() left them. */
	uint64_t end;
	uint64_t sequence; /* of the next record */
};

/* Make the store and open it; @segment_size 0: the default. */
int log_fixture_create(struct log_fixture *f, uint64_t segment_size);
/* A further handle on the same store, opened but not read. */
int log_fixture_open(struct log_fixture *f, uint64_t segment_size);
void log_fixture_close(struct log_fixture *f);

/* Read on to the end, checking each record; the number read, or a code. */
int log_fixture_read(struct log_fixture *f, struct incr_error *err);
/* Append the next record at the end last seen. */
int log_fixture_append(struct log_fixture *f, struct incr_error *err);
/* Close, open and read all: the number of records, or a code. */
int log_fixture_reread(struct log_fixture *f, struct incr_error *err);
/* Bytes of the payload of record @sequence. */
size_t log_fixture_payload_size(uint64_t sequence);

/* A file below the store: its size, a change of its bytes, its end. */
uint64_t log_fixture_file_size(struct log_fixture *f, const char *path);
void log_fixture_write(struct log_fixture *f, const char *path, uint64_t off,
		       const void *data, size_t size);
void log_fixture_flip(struct log_fixture *f, const char *path, uint64_t bit);
void log_fixture_cut(struct log_fixture *f, const char *path, uint64_t size);
/* Forget how far the log is synced, as a reboot and the loss of the lock file do. */
void log_fixture_reboot(struct log_fixture *f);
/* Entries of a directory. */
int log_fixture_count(struct log_fixture *f, const char *path);

#define FIRST_SEGMENT "log/0000000000000000.log"

/* The io table of all fixtures.  One thread at a time. */
struct log_faults {
	unsigned n_fdatasync, n_fsync, n_fsync_dir, n_pwrite; /* calls so far */
	unsigned n_pread;
	size_t pread_size; /* bytes asked for by them */
	int fdatasync_errno, fsync_dir_errno; /* fail every call; 0: do not */
	/* Write that much of the next large pwrite, then fail once. */
	int pwrite_errno;
	size_t pwrite_part;
};

extern struct log_faults log_faults;

#endif
