/*
 * An io table over another one that counts the calls and makes one of them
 * fail: once, from then on, or everything from then on.
 */
#ifndef INCR_FAULT_TABLE_H
#define INCR_FAULT_TABLE_H

#include "io.h"

enum fault_call {
	FAULT_OPEN_AT,
	FAULT_CLOSE,
	FAULT_PREAD,
	FAULT_READ,
	FAULT_PWRITE,
	FAULT_TRUNCATE,
	FAULT_FSYNC,
	FAULT_FDATASYNC,
	FAULT_FSYNC_DIR,
	FAULT_RENAME_AT,
	FAULT_LINK_AT,
	FAULT_SYMLINK_AT,
	FAULT_UNLINK_AT,
	FAULT_MKDIR_AT,
	FAULT_READDIR,
	FAULT_STAT_AT,
	FAULT_REAL_PATH,
	FAULT_FALLOCATE,
	FAULT_LEASE,
	FAULT_LOCK,
	FAULT_UNLOCK,
	FAULT_LOCK_TEST,
	FAULT_SET_TIMES,
	FAULT_CHMOD,
	FAULT_REFLINK,
	FAULT_RANDOM,
	FAULT_N_CALLS,
};
extern const char *const fault_call_names[FAULT_N_CALLS];

enum fault_mode {
	FAULT_ONCE,
	FAULT_FOR_GOOD, /* this call and all later ones of its kind */
	FAULT_EVERYTHING, /* all calls from then on */
	FAULT_N_MODES,
};
/* In place of an errno: half of what was asked for. */
#define FAULT_SHORT 0

struct fault_table {
	struct incr_io io; /* the table to use */
	const struct incr_io *below; /* borrowed */
	/* Run around every call below; may be NULL. */
	void (*enter)(void);
	void (*leave)(void);
	int only; /* count calls of this kind alone; -1: all */
	long n_calls; /* atomic; so far */
	/* What fails: */
	long fail_at; /* the call with this number, from 1; 0: none */
	int fail_errno;
	enum fault_mode mode;
	/* What came of it: */
	enum fault_call hit; /* kind of the call that failed first */
	long n_failed; /* atomic */
};

/* Counts from 0 again, and fails nothing. */
void fault_table_init(struct fault_table *f, const struct incr_io *below);
/* Can the call fail in this way?  Short counts are for reads and writes. */
bool fault_applies(enum fault_call call, int fail_errno);

#endif
