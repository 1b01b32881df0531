/*
 * The store handle and what every writing call does: lock, catch up, append,
 * sync.  Internal; the public side is incr.h.
 */
#ifndef INCR_STORE_H
#define INCR_STORE_H

#include "apply.h"
#include "content.h"
#include "index.h"
#include "io.h"
#include "lock.h"
#include "log.h"
#include "lost.h"
#include "manifest_source.h"
#include "state.h"

#include <sys/types.h>

#define STORE_LOCK_FILE "lock"
#define STORE_LOCK_FILE_SIZE 4096

struct incr_store {
	const struct incr_io *io;
	char *path; /* absolute */
	int dirfd;
	uint8_t uuid[16];
	char uuid_text[37];
	uint64_t tag; /* hash of the uuid, in records and tables */
	bool is_readonly;
	bool is_damaged; /* opened although it is: for verify and repair */
	uint64_t wait_ms;
	struct log *log;
	struct block_cache *blocks;
	struct frame_cache *frames;
	struct pack_set *packs;
	struct content_reader *reader;
	struct index *index;
	uint64_t n_changes_in_memory; /* entries of a change set; more are in a table */
	uint64_t verify_alone_size; /* content; more is read by threads */
	uint64_t n_appended; /* records that this handle has written */
	uint64_t appended_to; /* end of the one that is not applied yet; 0: none */
	bool must_read_back; /* its list of files */
	bool is_broken; /* a record could not be applied after it was appended: reopen */
	bool is_appending; /* holds the append lock: nothing slow is done */
	char user[256]; /* name of user_id; empty: not looked up yet */
	uid_t user_id;
};

/* With another io table than the real one: tests. */
int store_init_with(const struct incr_io *io, const char *path,
		    struct incr_error *err);
int store_open_with(const struct incr_io *io, const char *path,
		    const struct incr_store_options *options,
		    struct incr_store **out_store, struct incr_error *err);

int store_repair_with(const struct incr_io *io, const char *path,
		      const struct incr_repair_options *options,
		      incr_repair_fn done, incr_finding_fn finding,
		      void *closure, struct incr_repair_result *out_result,
		      struct incr_error *err);

/* Apply what was appended since; readers need no lock. */
int store_catch_up(struct incr_store *st, struct incr_error *err);
/* Only what stands before @until. */
int store_catch_up_to(struct incr_store *st, uint64_t until,
		      struct incr_error *err);
/* store_catch_up() after opening; the checkpoint is compared with the log. */
int store_first_catch_up(struct incr_store *st, bool allows_damage,
			 struct incr_error *err);
/* INCR_E_DEAD after a failure that left the index behind the log. */
int store_check_not_broken(const struct incr_store *st, struct incr_error *err);
/* Start again from the log: the index is empty, then holds what the log says. */
int store_rebuild(struct incr_store *st, struct incr_error *err);
/*
 * For repair: st->index becomes one in memory that holds what the log says, the
 * caller's to close and to put the old one back.  On failure it stays.
 */
int store_replay_aside(struct incr_store *st, struct incr_error *err);
/* The numbers that come next. */
struct lost_numbers store_next_numbers(struct incr_store *st);

/*
 * The append lock, with the index caught up to the end of the log: whatever
 * is looked at now stays true until store_end_append().
 */
int store_begin_append(struct incr_store *st, struct lock *out_lock,
		       struct incr_error *err);
/* INCR_E_RANGE when the index could not hold it: such a record would make the store unreadable. */
int store_check_fact(struct incr_store *st, const struct buf *payload,
		     struct incr_error *err);
/* Append one record; at most one between begin and end. */
int store_append(struct incr_store *st, enum fact_type type,
		 const struct buf *head, const struct buf *frames,
		 struct incr_error *err);
/*
 * Release the lock, make everything appended durable, apply it: what is looked
 * up shows it then.  @r: result so far; passed on.
 */
int store_end_append(struct incr_store *st, struct lock *lock, int r,
		     struct incr_error *err);
/* begin, append, end for a fact that needs nothing checked under the lock. */
int store_append_fact(struct incr_store *st, enum fact_type type,
		      const struct buf *payload, struct incr_error *err);

int64_t store_now(const struct incr_store *st);
/* Name of the calling user, at most @size bytes; looked up once. */
void store_user(struct incr_store *st, char *out, size_t size);

/* ---- finding things, with errors for people ---- */

/* INCR_E_NOTFOUND "no-such-dataset". */
int store_find_dataset(struct incr_store *st, uint64_t id, struct buf *storage,
		       struct state_dataset *out, struct incr_error *err);
/* INCR_E_NOTFOUND "no-such-branch"; @name NULL: main. */
int store_find_branch(struct incr_store *st, uint64_t dataset_id,
		      const char *name, struct buf *storage,
		      struct state_branch *out, struct incr_error *err);
/* INCR_E_NOTFOUND "no-such-transaction". */
int store_find_txn(struct incr_store *st, uint64_t number, struct buf *storage,
		   struct state_txn *out, struct incr_error *err);
/* Take LOCK_BRANCH; builds exclusively, commits shared. */
int store_lock_branch(struct incr_store *st, const struct state_branch *branch,
		      bool is_exclusive, struct lock *out_lock,
		      struct incr_error *err);
/* INCR_E_CONFLICT "open-transaction" when the branch has one other than @but. */
int store_check_no_open(const struct state_branch *branch, uint64_t but,
			struct incr_error *err);
/* Both: the branch, when nothing holds it. */
int store_find_free_branch(struct incr_store *st, uint64_t dataset_id,
			   const char *name, struct buf *storage,
			   struct state_branch *out, struct incr_error *err);
/* The manifest of a committed transaction, read from its log record. */
int store_manifest(struct incr_store *st, const struct state_txn *txn,
		   struct manifest_source *out, struct incr_error *err);
/* Can all of it be read?  0: yes, 1: it is damaged. */
int store_try_manifest(struct incr_store *st, uint64_t txn,
		       struct incr_error *err);

#endif
