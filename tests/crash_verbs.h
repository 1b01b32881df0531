/*
 * What the crash simulation does to a store: verbs, recorded on a file system
 * in memory, with what the store said each time one was acknowledged.
 */
#ifndef INCR_CRASH_VERBS_H
#define INCR_CRASH_VERBS_H

#include "simio.h"
#include "store.h"
#include "store_text.h"

#define CRASH_STORE "store"
#define CRASH_ACKS_MAX 64

enum crash_verb {
	CRASH_SNAPSHOT,
	CRASH_APPEND,
	CRASH_UPDATE,
	CRASH_DELETE,
	CRASH_LARGE, /* an UPDATE with a pack */
	CRASH_ABORT, /* begin, put, abort */
	CRASH_STAGED, /* begin, put, commit */
	CRASH_BRANCH,
	CRASH_RESET,
	CRASH_RENAME,
	CRASH_SYNC, /* of a folder, which removes too */
	CRASH_BUILD, /* commits two outputs */
	CRASH_BUILD_ABORT,
	CRASH_FLUSH, /* the index to disk */
	CRASH_N_VERBS,
};

struct crash_run {
	struct sim *sim; /* owned by who made the run */
	struct incr_store *st;
	uint64_t dataset;
	bool has_kept; /* the source of what stays is made */
	bool has_known; /* that of what comes again and again too */
	unsigned n_files; /* made so far: names and contents differ */
	size_t staged_at; /* operations when a put into @staged was acknowledged */
	uint64_t staged; /* 0: none */
	uint64_t staged_hash; /* as in a text of the store */
	size_t last_at; /* operations before the last verb */
	size_t n_acks;
	struct crash_ack {
		size_t at; /* operations when it was acknowledged */
		struct store_text description;
	} acks[CRASH_ACKS_MAX];
};

/* The workload, recorded: every verb succeeds, the disk is whole. */
void crash_run_record(struct crash_run *run, const enum crash_verb *verbs,
		      size_t n_verbs);
void crash_run_release(struct crash_run *run);

/* What the store says now, builds too. */
void crash_describe(struct incr_store *st, struct store_text *out);
/* One file of this size; no APPEND rewrites "always/here" as well. */
int crash_commit(struct crash_run *run, uint64_t dataset,
		 enum incr_txn_type type, const char *name, size_t size,
		 struct incr_error *err);

#endif
