/*
 * Creating, opening and closing a store, and the steps of every append.
 *
 * A directory is a store when it has a `format` file; init writes that last,
 * so that a half-made store is none.  Order of an append: content is durable
 * (its pack) -> append lock -> catch up and check -> one pwrite of the record
 * -> lock released -> fdatasync of the log, shared with other waiters.
 */
#include "config.h"

#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "change_table.h"
#include "error.h"
#include "hash.h"
#include "store_format.h"
#include "verify_data.h"

#define FRAME_CACHE_DEFAULT ((size_t)32 << 20)
#define BLOCK_CACHE_DEFAULT ((size_t)16 << 20)
#define FACT_SIZE_MAX (TABLE_VALUE_MAX / 2)

int64_t store_now(const struct incr_store *st)
{
	return st->io->now_ns(st->io);
}

void store_user(struct incr_store *st, char *out, size_t size)
{
	char text[1024];
	struct passwd entry, *found = NULL;
	uid_t id = geteuid();

	if (!st->user[0] || st->user_id != id) {
		snprintf(st->user, sizeof(st->user), "%lu", (unsigned long)id);
		if (getpwuid_r(id, &entry, text, sizeof(text), &found) == 0 &&
		    found && found->pw_name[0])
			snprintf(st->user, sizeof(st->user), "%s",
				 found->pw_name);
		st->user_id = id;
	}
	snprintf(out, size, "%s", st->user);
}

int incr_store_init(const char *path, struct incr_error *err)
{
	return store_init_with(&io_posix, path, err);
}

int incr_store_open(const char *path, const struct incr_store_options *options,
		    struct incr_store **out_store, struct incr_error *err)
{
	return store_open_with(&io_posix, path, options, out_store, err);
}

void incr_store_close(struct incr_store *st)
{
	struct incr_error ignored = INCR_ERROR_INIT;

	if (!st)
		return;
	if (st->index && index_is_damaged(st->index) && !st->is_damaged)
		/* so that the next open starts from the log */
		(void)index_reset(st->index, &ignored);
	else if (st->index && !st->is_broken && !incr_store_is_readonly(st) &&
		 index_is_due(st->index) &&
		 log_durable_to(st->log) >= index_position(st->index)->position)
		/* derived: what is not written now is replayed by the next open */
		(void)index_flush(st->index, &ignored);
	incr_error_release(&ignored);
	index_close(st->index);
	content_reader_free(st->reader);
	pack_set_free(st->packs);
	frame_cache_free(st->frames);
	block_cache_free(st->blocks);
	log_close(st->log);
	if (st->dirfd >= 0)
		(void)io_close(st->io, st->dirfd); /* only read from */
	free(st->path);
	free(st);
}

/* Read-only media, or no permission to write: everything but writing works. */
static bool can_write(const struct incr_store *st)
{
	int fd = st->io->open_at(st->io, st->dirfd, STORE_LOCK_FILE, O_RDWR, 0);

	if (fd < 0)
		return false;
	(void)io_close(st->io, fd);
	return true;
}

static int rebuild_index(void *closure, struct incr_error *err)
{
	return store_rebuild(closure, err);
}

static int open_parts(struct incr_store *st,
		      const struct incr_store_options *options,
		      struct incr_error *err)
{
	struct log_options log_options = { .io = st->io,
					   .store_dirfd = st->dirfd,
					   .is_writable = !st->is_readonly,
					   .allows_damage =
						   options->allows_damage };
	struct index_options index_options = { .io = st->io,
					       .store_dirfd = st->dirfd,
					       .tag = st->tag,
					       .is_writable =
						       !st->is_readonly };
	int r;

	index_options.filtered = STATE_CONTENT;
	index_options.rebuild = rebuild_index;
	index_options.closure = st;
	memcpy(log_options.uuid, st->uuid, sizeof(st->uuid));
	r = log_open(&log_options, &st->log, err);
	if (r < 0)
		return r;
	if (!log_is_writable(st->log))
		st->is_readonly = true;
	index_options.is_writable = !st->is_readonly;
	st->blocks = block_cache_new(options->block_cache_size ?
					     options->block_cache_size :
					     BLOCK_CACHE_DEFAULT);
	st->frames = frame_cache_new(options->frame_cache_size ?
					     options->frame_cache_size :
					     FRAME_CACHE_DEFAULT);
	if (!st->blocks || !st->frames ||
	    pack_set_new(st->io, st->dirfd, st->uuid, st->log, &st->packs) <
		    0 ||
	    content_reader_new(st->packs, st->frames, &st->reader) < 0)
		return incr_fail_nomem(err);
	index_options.cache = st->blocks;
	return index_open(&index_options, &st->index, err);
}

int store_open_with(const struct incr_io *io, const char *path,
		    const struct incr_store_options *options,
		    struct incr_store **out_store, struct incr_error *err)
{
	struct incr_store_options defaults = { 0 };
	struct incr_error why = INCR_ERROR_INIT;
	struct incr_store *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return incr_fail_nomem(err);
	if (!options)
		options = &defaults;
	st->io = io;
	st->dirfd = -1;
	st->wait_ms = options->wait_ms;
	st->n_changes_in_memory = CHANGE_TABLE_IN_MEMORY;
	st->verify_alone_size = VERIFY_ALONE_SIZE;
	r = store_format_open(st, path, err);
	if (r == 0) {
		st->is_readonly = st->is_readonly || options->is_readonly ||
				  !can_write(st);
		r = open_parts(st, options, err);
	}
	if (r == 0)
		r = store_first_catch_up(st, options->allows_damage, &why);
	if (r < 0)
		st->is_broken = true;
	if ((r == INCR_E_CORRUPT || incr_is_unreadable(&why)) &&
	    options->allows_damage && st->index) {
		incr_error_release(&why);
		st->is_damaged = true;
		r = 0;
	}
	if (r < 0) {
		incr_store_close(st);
		return why.code ? incr_fail_with(err, r, &why) : r;
	}
	*out_store = st;
	return 0;
}

const char *incr_store_uuid(const struct incr_store *st)
{
	return st->uuid_text;
}

const char *incr_store_path(const struct incr_store *st)
{
	return st->path;
}

bool incr_store_is_readonly(const struct incr_store *st)
{
	return st->is_readonly || st->is_damaged;
}

int incr_store_refresh(struct incr_store *st, struct incr_error *err)
{
	return store_catch_up(st, err);
}

/* ---- appending ---- */

int store_begin_append(struct incr_store *st, struct lock *out_lock,
		       struct incr_error *err)
{
	struct incr_error ignored = INCR_ERROR_INIT;
	int r;

	if (incr_store_is_readonly(st))
		return incr_fail(err, INCR_E_READONLY, NULL, st->path,
				 "the store cannot be written");
	if (index_is_due(st->index) &&
	    log_durable_to(st->log) >= index_position(st->index)->position) {
		/*
		 * Before the lock, so that no other writer waits for it.  A
		 * large merge is done when the handle is closed.
		 */
		(void)index_flush_short(st->index, &ignored);
		incr_error_release(&ignored);
	}
	r = lock_take(log_locks(st->log), LOCK_APPEND, true, st->wait_ms,
		      "the log", out_lock, err);
	if (r < 0)
		return r;
	st->is_appending = true;
	r = store_catch_up(st, err);
	if (r < 0) {
		st->is_appending = false;
		lock_release(out_lock);
	}
	return r;
}

int store_check_fact(struct incr_store *st, const struct buf *payload,
		     struct incr_error *err)
{
	if (payload->size > FACT_SIZE_MAX)
		return incr_fail(err, INCR_E_RANGE, "fact-too-large", st->path,
				 "a record of %zu bytes is too large",
				 payload->size);
	return 0;
}

int store_append(struct incr_store *st, enum fact_type type,
		 const struct buf *head, const struct buf *frames,
		 struct incr_error *err)
{
	struct index_position *at = index_position(st->index);
	struct log_append a = {
		.type = (uint16_t)type,
		.position = at->position,
		.sequence = at->sequence + 1,
		.payload = { head->data, frames ? frames->data : NULL },
		.payload_size = { head->size, frames ? frames->size : 0 },
		.may_use_reserve = type == FACT_TXN_ABORTED ||
				   type == FACT_BUILD_ENDED,
	};
	uint64_t position;
	int had_losses = state_has_losses(st->index, err), r = 0;

	if (had_losses < 0)
		return had_losses;
	/* of a commit, the parts are checked where they are made */
	if (type != FACT_COMMIT)
		r = store_check_fact(st, head, err);
	if (r == 0)
		r = log_append(st->log, &a, &position, &st->appended_to, err);
	if (r < 0)
		return r;
	st->n_appended++;
	st->must_read_back = type == FACT_COMMIT && !had_losses;
	/* a new segment may have begun: the record stands where the log says */
	at->position = position;
	return 0;
}

/* The index follows, with no lock held: a record can have very many files. */
static int apply_appended(struct incr_store *st, uint64_t to,
			  struct incr_error *err)
{
	int r = store_catch_up_to(st, to, err);

	if (r == 0 && st->must_read_back &&
	    state_has_losses(st->index, err) == 1)
		r = incr_fail(err, INCR_E_CORRUPT, "damaged-manifest", NULL,
			      "what was just written does not read back");
	/* it stands in the log, though the caller is told that it failed */
	if (r < 0)
		st->is_broken = true;
	return r;
}

int store_end_append(struct incr_store *st, struct lock *lock, int r,
		     struct incr_error *err)
{
	struct incr_error late = INCR_ERROR_INIT;
	uint64_t to = st->appended_to;
	int applied = 0;

	st->appended_to = 0;
	st->is_appending = false;
	lock_release(lock);
	if (r == 0)
		r = log_sync(st->log,
			     to ? to : index_position(st->index)->position,
			     err);
	if (to)
		applied = apply_appended(st, to, &late);
	if (r == 0)
		return incr_fail_with(err, applied, &late);
	incr_error_release(&late);
	return r;
}

int store_append_fact(struct incr_store *st, enum fact_type type,
		      const struct buf *payload, struct incr_error *err)
{
	struct lock lock;
	int r = store_begin_append(st, &lock, err);

	if (r < 0)
		return r;
	r = store_append(st, type, payload, NULL, err);
	return store_end_append(st, &lock, r, err);
}

/* ---- finding things ---- */

int store_find_dataset(struct incr_store *st, uint64_t id, struct buf *storage,
		       struct state_dataset *out, struct incr_error *err)
{
	int r = store_check_not_broken(st, err);

	if (r < 0)
		return r;
	r = state_dataset(st->index, id, storage, out, err);
	if (r < 0)
		return r;
	if (r == 1 || out->is_deleted)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-dataset", NULL,
				 "no dataset with id %" PRIu64, id);
	return 0;
}

int store_find_branch(struct incr_store *st, uint64_t dataset_id,
		      const char *name, struct buf *storage,
		      struct state_branch *out, struct incr_error *err)
{
	struct text branch = text_of(name ? name : "main");
	struct state_dataset dataset;
	uint64_t id;
	/* a deleted dataset takes its branches with it */
	int r = store_find_dataset(st, dataset_id, storage, &dataset, err);

	if (r == 0)
		r = state_branch_id(st->index, dataset_id, branch, &id, err);
	if (r == 0)
		r = state_branch(st->index, id, storage, out, err);
	if (r == 1)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-branch",
				 branch.data, "the dataset has no such branch");
	return r;
}

int store_find_txn(struct incr_store *st, uint64_t number, struct buf *storage,
		   struct state_txn *out, struct incr_error *err)
{
	char name[32];
	int r = store_check_not_broken(st, err);

	if (r < 0)
		return r;
	r = number ? state_txn(st->index, number, storage, out, err) : 1;
	if (r != 1)
		return r;
	snprintf(name, sizeof(name), "t%" PRIu64, number);
	return incr_fail(err, INCR_E_NOTFOUND, "no-such-transaction", name,
			 "no such transaction");
}

int store_lock_branch(struct incr_store *st, const struct state_branch *branch,
		      bool is_exclusive, struct lock *out_lock,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_error busy = INCR_ERROR_INIT;
	struct state_dataset d;
	char thing[512];
	int r;

	if (incr_store_is_readonly(st))
		return incr_fail(err, INCR_E_READONLY, NULL, st->path,
				 "the store cannot be written");
	r = lock_take(log_locks(st->log), LOCK_BRANCH(branch->fact.id),
		      is_exclusive, st->wait_ms, "a branch", out_lock, &busy);
	if (r != INCR_E_BUSY)
		return incr_fail_with(err, r, &busy);
	incr_error_release(&busy);
	r = store_find_dataset(st, branch->fact.dataset_id, &storage, &d, err);
	if (r < 0)
		return r;
	snprintf(thing, sizeof(thing), "%.*s:%.*s", (int)d.fact.name.size,
		 d.fact.name.data, (int)branch->fact.name.size,
		 branch->fact.name.data);
	return incr_fail(err, INCR_E_BUSY, NULL, thing,
			 "a build or another writer holds the branch");
}

int store_check_no_open(const struct state_branch *branch, uint64_t but,
			struct incr_error *err)
{
	char name[32];

	if (!branch->open_txn || branch->open_txn == but)
		return 0;
	snprintf(name, sizeof(name), "t%" PRIu64, branch->open_txn);
	incr_fail(err, INCR_E_CONFLICT, "open-transaction", name,
		  "the branch has an open transaction");
	incr_hint(err, "incrctl txn commit %s, or incrctl txn abort %s", name,
		  name);
	return INCR_E_CONFLICT;
}

int store_find_free_branch(struct incr_store *st, uint64_t dataset_id,
			   const char *name, struct buf *storage,
			   struct state_branch *out, struct incr_error *err)
{
	int r = store_find_branch(st, dataset_id, name, storage, out, err);

	return r == 0 ? store_check_no_open(out, 0, err) : r;
}

int store_manifest(struct incr_store *st, const struct state_txn *txn,
		   struct manifest_source *out, struct incr_error *err)
{
	struct log_record record;
	struct commit_record commit = { 0 };
	uint64_t next, frames_position;
	char name[32];
	int r = log_read(st->log, txn->record_position, &record, &next, err);

	snprintf(name, sizeof(name), "t%" PRIu64, txn->fact.number);
	if (r < 0)
		return r;
	if (r == 0 && record.header.type == FACT_COMMIT)
		r = commit_record_decode(record.payload,
					 record.header.payload_size, &commit);
	else
		r = INCR_E_CORRUPT;
	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0)
		return incr_fail(err, INCR_E_CORRUPT, "bad-fact", name,
				 "its log record cannot be read");
	frames_position =
		record.header.position + RECORD_HEADER_SIZE + commit.frames_off;
	r = 1;
	for (size_t i = 0; r == 1 && i < commit.n_txns; i++)
		if (commit.txns[i].number == txn->fact.number)
			r = manifest_source_open(&commit.txns[i],
						 frames_position, st->reader,
						 out, err);
	commit_record_release(&commit);
	if (r == 1)
		return incr_fail(err, INCR_E_CORRUPT, "bad-fact", name,
				 "its log record does not hold it");
	return r;
}

int store_try_manifest(struct incr_store *st, uint64_t txn,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct incr_error why = INCR_ERROR_INIT;
	const struct manifest_entry *e;
	struct manifest_source m;
	struct state_txn t;
	int r = store_find_txn(st, txn, &storage, &t, err);

	if (r < 0)
		return r;
	r = store_manifest(st, &t, &m, &why);
	if (r == 0) {
		do
			r = manifest_reader_next(m.entries, &e, &why);
		while (r == 0);
		manifest_source_release(&m);
	}
	if (r != INCR_E_CORRUPT)
		return r < 0 ? incr_fail_with(err, r, &why) : 0;
	incr_error_release(&why);
	return 1;
}
