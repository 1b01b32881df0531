/*
 * `repair`: what can be mended without losing anything that is whole, and
 * giving up what cannot.
 *
 * In this order: damaged records are passed over from now on (repair_log.c); a
 * torn tail goes to lost/, what killed processes left goes, a damaged index is
 * made again, as the next append or open would do anyway; and what cannot be
 * read is noted (repair_note.c).  The log is judged under the append
 * lock, so that nothing is that somebody is just making.  No byte of a record
 * or pack is changed: a copy of the file is right in every byte that both have.
 */
#include "config.h"

#include "repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "leftover.h"

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

/* ---- what killed processes left ---- */

/* Move it to lost/, under the first name that is free. */
static int keep_staging(struct repair *p, const char *path)
{
	const struct incr_io *io = p->st->io;
	const char *name = path + strlen("spool/");
	char lost[360];
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

int repair_remove_file(struct repair *p, const char *path, uint64_t size)
{
	int r = p->options->is_dry_run ?
			0 :
			p->st->io->unlink_at(p->st->io, p->st->dirfd, path, 0);

	if (r < 0 && r != -ENOENT)
		return incr_fail_errno(p->err, r, path, "cannot remove it");
	return repair_tell(p, INCR_REPAIR_LEFT_OVER, path, size);
}

static int mend_leftover(void *closure, enum leftover_kind kind,
			 const char *path, uint64_t size)
{
	struct repair *p = closure;
	bool is_lost = kind == LEFTOVER_OF_LOST;
	int r = 0;

	if (kind == LEFTOVER_FILE)
		return repair_remove_file(p, path, size);
	if (!p->options->is_dry_run)
		r = is_lost ? keep_staging(p, path) :
			      io_remove_tree(p->st->io, p->st->dirfd, path,
					     p->err);
	return r < 0 ? r :
		       repair_tell(p,
				   is_lost ? INCR_REPAIR_LOST_STAGING :
					     INCR_REPAIR_STAGING,
				   path, size);
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
	return r ? r : leftover_each(p->st, mend_leftover, p, p->err);
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
