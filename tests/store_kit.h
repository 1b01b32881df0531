/*
 * A store in the directory of the running test, with transactions written as
 * short texts:
 *
 *   store_kit_commit(&k, INCR_APPEND, NULL, "a=1 dir/b=22 c")
 *
 * commits three files; the text behind '=' is the content, and a path alone
 * gives an empty file (in a DELETE: a path to remove).  Views are compared as
 * texts too: "a=1@t3 dir/b=22@t3".
 */
#ifndef INCR_STORE_KIT_H
#define INCR_STORE_KIT_H

#include "store.h"

struct store_kit {
	struct incr_store *st; /* owned */
	const struct incr_io *io; /* of the last open */
	char path[512]; /* of the store */
	uint64_t dataset; /* "data" */
	struct incr_error err; /* of the last call that took it */
	char *text; /* owned: what the last call returned */
};

/* Make the store with one dataset; false: noted as a failure. */
bool store_kit_init(struct store_kit *k);
/* The same over another io table. */
bool store_kit_init_with(struct store_kit *k, const struct incr_io *io);
void store_kit_release(struct store_kit *k);
/* Close and open again, with the same io table; a code. */
int store_kit_reopen(struct store_kit *k);
int store_kit_reopen_with(struct store_kit *k, const struct incr_io *io,
			  const struct incr_store_options *options);
/* &k->err, empty. */
struct incr_error *store_kit_err(struct store_kit *k);

/* The number of the transaction, or 0: k->err says why. */
uint64_t store_kit_commit(struct store_kit *k, enum incr_txn_type type,
			  const char *branch, const char *files);
/* The same with all options; a code, 0 or 1. */
int store_kit_commit_with(struct store_kit *k,
			  const struct incr_txn_options *options,
			  const char *files, uint64_t *out_number);
/* Open a transaction on main: its number. */
uint64_t store_kit_begin(struct store_kit *k, enum incr_txn_type type);
int store_kit_txn_commit(struct store_kit *k, uint64_t txn);
int store_kit_txn_abort(struct store_kit *k, uint64_t txn);
/* From a transaction of main. */
int store_kit_make_branch(struct store_kit *k, const char *name, uint64_t at);
int store_kit_reset(struct store_kit *k, const char *name, uint64_t to);
bool store_kit_is_on_path(struct store_kit *k, uint64_t txn, uint64_t head);
/* One file of an OPEN transaction. */
int store_kit_put(struct store_kit *k, uint64_t txn, const char *path,
		  const char *content, bool overwrites);
/* A descriptor to read @content from. */
int store_kit_stream(const void *content, size_t size);
struct incr_source store_kit_source(int fd, const char *path);

/* Head of a branch of the dataset; 0: none. */
uint64_t store_kit_head(struct store_kit *k, const char *branch);
/* The view at a transaction; borrowed until the next call. */
const char *store_kit_view(struct store_kit *k, uint64_t txn);
const char *store_kit_view_text(struct store_kit *k, struct incr_view *v);
/* Its net change: "+a@t3 ~b@t4 -c@t5". */
const char *store_kit_changes(struct store_kit *k, uint64_t from, uint64_t to);

/* APPENDs of one file each: d<i % 10>/f<i> for i from @from up to but without @to. */
void store_kit_commit_n(struct store_kit *k, int from, int to);
/* The head of main has @want files, counted in every way; noted if not. */
void store_kit_check_n_files(struct store_kit *k, uint64_t want);

/* A source tree below the test's directory; owned path. */
char *store_kit_path(const char *name);
/* Remove a tree below the test's directory. */
void store_kit_remove(const char *name);
void store_kit_write(const char *path, const void *data, size_t size);

/* Bytes of all files in a directory of the store, and their number. */
uint64_t store_kit_size(struct store_kit *k, const char *dir, size_t *out_n);

/* An io table that counts what changes the disk; one thread at a time. */
struct store_calls {
	unsigned n_pwrite, n_fdatasync, n_fsync, n_fsync_dir, n_lock;
	unsigned n_change; /* everything else that writes */
	uint64_t size_pwrite;
};
extern struct store_calls store_calls;
const struct incr_io *store_kit_counting_io(void);

/* An io table that leaves out every sync: for tests that are about something else. */
const struct incr_io *store_kit_quick_io(void);

/* Seed of a random test, printed: INCR_TEST_SEED or the time. */
uint64_t store_kit_seed(void);
/* Next number below @n. */
uint64_t store_kit_random(uint64_t *state, uint64_t n);
double store_kit_seconds(void);

#endif
