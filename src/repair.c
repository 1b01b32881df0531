/*
 * `repair`: what can be mended without losing anything that is whole, and
 * giving up what cannot.
 *
 * In this order: damaged records are passed over from now on (repair_log.c); a
 * torn tail goes to lost/, staging of nothing that is open goes, a damaged
 * index is made again, as the next append or open would do anyway; and what
 * cannot be read is noted (repair_note.c).  The log is judged under the append
 * lock, so that nothing is that somebody is just making.  No byte of a record
 * or pack is changed: a copy of the file is right in every byte that both have.
 */
#include "config.h"

#include "repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "error.h"

int repair_tell(struct repair *p, enum incr_repair_action action,
		const char *what, uint64_t size)
{
	p->result->n_done++;
	return p->done ? p->done(p->closure, action, what, size) : 0;
}

int repair_tell_finding(struct repair *p, const struct incr_finding *f)
{
	p->result->n_given_up += f->is_given_up;
	return p->finding ? p->finding(p->closure, f) : 0;
}

/* ---- the log ---- */

static int mend_tail(struct repair *p)
{
	uint64_t position = index_position(p->st->index)->position, size = 0;
	char name[LOG_NAME_SIZE];
	int r = p->options->is_dry_run ?
			log_torn_size(p->st->log, position, &size, p->err) :
			log_cut_tail(p->st->log, position, &size, p->err);

	(void)log_segment_of(p->st->log, position, name);
	if (r < 0 || size == 0)
		return r;
	return repair_tell(p, INCR_REPAIR_TAIL, name, size);
}

/* ---- the index ---- */

/* Is every block of every table whole?  0, 1: no. */
static int walk_index(struct repair *p)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct incr_error why = INCR_ERROR_INIT;
	int r = index_iter(p->st->index, &it, &why);

	if (r == 0)
		r = it->seek(it, "", 0, &why);
	while (r == 0)
		r = it->next(it, &why);
	if (r < 0 && r != INCR_E_CORRUPT)
		return incr_fail_with(p->err, r, &why);
	incr_error_release(&why);
	return r == INCR_E_CORRUPT;
}

static int mend_index(struct repair *p)
{
	int r = walk_index(p);

	if (r <= 0)
		return r;
	if (!p->options->is_dry_run) {
		index_note_damage(p->st->index);
		r = store_catch_up(p->st, p->err);
		if (r == 0)
			r = index_flush(p->st->index, p->err);
		if (r < 0)
			return r;
	}
	return repair_tell(p, INCR_REPAIR_INDEX, "index", 0);
}

/* ---- the spool ---- */

enum use {
	IN_USE, /* also what is not known */
	OF_NOTHING,
	OF_LOST, /* the record that tells of it may be lost */
};

/* What becomes of staging that the log does not tell of. */
static int unknown_use(struct repair *p, enum use *out_use)
{
	int r = state_has_losses(p->st->index, p->err);

	*out_use = r == 1 ? OF_LOST : OF_NOTHING;
	return r < 0 ? r : 0;
}

static int txn_use(struct repair *p, uint64_t number, enum use *out_use)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn txn;
	int r = state_txn(p->st->index, number, &storage, &txn, p->err);

	if (r < 0)
		return r;
	if (r == 1 || txn.status == INCR_LOST)
		return unknown_use(p, out_use);
	*out_use = txn.status == INCR_OPEN ? IN_USE : OF_NOTHING;
	return 0;
}

static int build_use(struct repair *p, uint64_t number, enum use *out_use)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct fact_build build;
	int r = state_build(p->st->index, number, &storage, &build, p->err);

	if (r < 0)
		return r;
	if ((r == 0 && build.status == INCR_BUILD_OPEN) ||
	    lock_is_held(p->st->io, p->st->dirfd, LOCK_BUILD(number)))
		*out_use = IN_USE;
	else if (r == 1)
		return unknown_use(p, out_use);
	else
		*out_use = OF_NOTHING;
	return 0;
}

static int find_use(struct repair *p, const char *name, enum use *out_use)
{
	uint64_t number;
	char end;

	*out_use = IN_USE;
	if (sscanf(name + (*name != '\0'), "%" SCNu64 "%c", &number, &end) != 1)
		return 0;
	if (*name == 't')
		return txn_use(p, number, out_use);
	return *name == 'b' ? build_use(p, number, out_use) : 0;
}

/* Move it to lost/, under the first name that is free. */
static int keep_staging(struct repair *p, const char *path, const char *name)
{
	const struct incr_io *io = p->st->io;
	char lost[320];
	int r;

	for (unsigned n = 0;; n++) {
		snprintf(lost, sizeof(lost), "lost/spool-%s-%u", name, n);
		r = io->rename_at(io, p->st->dirfd, path, p->st->dirfd, lost,
				  RENAME_NOREPLACE);
		if (r != -EEXIST)
			break;
	}
	if (r < 0)
		return incr_fail_errno(p->err, r, path, "cannot move aside");
	return 0;
}

static int mend_entry(void *closure, const char *name, enum io_kind kind)
{
	struct repair *p = closure;
	char path[300];
	enum use use;
	int r = find_use(p, name, &use);

	(void)kind;
	if (r < 0 || use == IN_USE)
		return r;
	snprintf(path, sizeof(path), "spool/%s", name);
	if (!p->options->is_dry_run)
		r = use == OF_LOST ? keep_staging(p, path, name) :
				     io_remove_tree(p->st->io, p->st->dirfd,
						    path, p->err);
	return r < 0 ? r :
		       repair_tell(p,
				   use == OF_LOST ? INCR_REPAIR_LOST_STAGING :
						    INCR_REPAIR_STAGING,
				   path, 0);
}

static int mend_spool(struct repair *p)
{
	_cleanup_io_file_ struct io_file dir = { p->st->io, -1 };
	struct incr_error why = INCR_ERROR_INIT;
	int r = io_open(p->st->io, p->st->dirfd, "spool",
			O_RDONLY | O_DIRECTORY, 0, &dir.fd, &why);

	if (r == INCR_E_NOTFOUND) {
		incr_error_release(&why);
		return 0;
	}
	if (r < 0)
		return incr_fail_with(p->err, r, &why);
	r = p->st->io->readdir(p->st->io, dir.fd, mend_entry, p);
	if (r < 0 && !p->err->code)
		return incr_fail_errno(p->err, r, "spool",
				       "cannot list the directory");
	return r;
}

/* ---- all ---- */

/* With the append lock; 1: the log has more than damage, and all stays. */
static int mend_under_lock(struct repair *p)
{
	int r = repair_log(p);

	/* a dry run of damage leaves the index as it is, short of the end */
	if (r || p->st->is_broken)
		return r;
	r = mend_tail(p);
	return r ? r : mend_spool(p);
}

/* store_begin_append() without the look at the log, which repair_log() takes. */
static int mend_locked(struct repair *p)
{
	struct lock lock;
	int r = lock_take(log_locks(p->st->log), LOCK_APPEND, true,
			  p->options->wait_ms, "the log", &lock, p->err);

	if (r < 0)
		return r;
	p->st->is_appending = true;
	r = p->st->is_damaged ? 0 : store_catch_up(p->st, p->err);
	if (r == 0)
		r = mend_under_lock(p);
	p->st->is_appending = false;
	lock_release(&lock);
	if (r == 0)
		r = log_sync(p->st->log, index_position(p->st->index)->position,
			     p->err);
	return r;
}

static int mend(struct repair *p)
{
	int r = p->options->is_dry_run ? mend_under_lock(p) : mend_locked(p);

	if (r == 1)
		p->st->is_damaged = true;
	/* not under the lock: it may take long */
	if (r == 0 && !p->st->is_broken)
		r = mend_index(p);
	return r < 0 ? r : repair_note(p);
}

int store_repair_with(const struct incr_io *io, const char *path,
		      const struct incr_repair_options *options,
		      incr_repair_fn done, incr_finding_fn finding,
		      void *closure, struct incr_repair_result *out_result,
		      struct incr_error *err)
{
	struct incr_store_options open = { .wait_ms = options->wait_ms,
					   .is_readonly = options->is_dry_run,
					   .allows_damage = true };
	struct incr_repair_result result = { 0 };
	struct incr_error why = INCR_ERROR_INIT;
	struct repair p = { .options = options,
			    .done = done,
			    .finding = finding,
			    .closure = closure,
			    .result = &result,
			    .err = &why };
	int r = store_open_with(io, path, &open, &p.st, &why);

	if (r == 0 && !options->is_dry_run && p.st->is_readonly)
		r = incr_fail(&why, INCR_E_READONLY, NULL, path,
			      "the store cannot be written");
	else if (r == 0)
		r = mend(&p);
	incr_store_close(p.st);
	if (r == 0)
		*out_result = result;
	return incr_fail_with(err, r, &why);
}

int incr_repair(const char *path, const struct incr_repair_options *options,
		incr_repair_fn done, incr_finding_fn finding, void *closure,
		struct incr_repair_result *out_result, struct incr_error *err)
{
	return store_repair_with(&io_posix, path, options, done, finding,
				 closure, out_result, err);
}
