/*
 * `repair`: what can be mended without losing anything that is whole.
 *
 * All of it is what the next append, or the next open, would do anyway, done
 * at once and told: a torn tail goes to lost/, a damaged index is made again,
 * staging of nothing that is open goes.  It happens under the append lock, so
 * that nothing is judged that somebody is just making.  A log or a pack that
 * is damaged stays as it is: no byte of it is worse than before, and a copy of
 * the file is right in every byte that both have.
 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "error.h"
#include "store.h"

struct repair {
	struct incr_store *st;
	const struct incr_repair_options *options;
	incr_repair_fn done;
	void *closure;
	struct incr_repair_result *result;
	struct incr_error *err;
};

/* Tell; a non-zero return of the caller's function ends the repair. */
static int tell(struct repair *p, enum incr_repair_action action,
		const char *what, uint64_t size)
{
	p->result->n_done++;
	return p->done ? p->done(p->closure, action, what, size) : 0;
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
	return tell(p, INCR_REPAIR_TAIL, name, size);
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

/* Can the index be made again?  0, 1: no, the log is damaged. */
static int walk_log(struct repair *p)
{
	uint64_t position = log_begin(p->st->log);
	struct incr_error why = INCR_ERROR_INIT;
	struct log_record record;
	int r;

	do
		r = log_read(p->st->log, position, &record, &position, &why);
	while (r == 0);
	if (r < 0 && r != INCR_E_CORRUPT)
		return incr_fail_with(p->err, r, &why);
	incr_error_release(&why);
	return r < 0;
}

static int mend_index(struct repair *p)
{
	int r = walk_index(p);

	if (r <= 0)
		return r;
	/* a damaged index is better than none that can be made */
	r = walk_log(p);
	if (r)
		return r < 0 ? r : 0;
	if (!p->options->is_dry_run) {
		index_note_damage(p->st->index);
		r = store_catch_up(p->st, p->err);
		if (r == 0)
			r = index_flush(p->st->index, p->err);
		if (r < 0)
			return r;
	}
	return tell(p, INCR_REPAIR_INDEX, "index", 0);
}

/* ---- the spool ---- */

/* Does the name belong to a transaction or build that is open?  True also for what is not known. */
static int is_in_use(struct repair *p, const char *name, bool *out_is_used)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct fact_build build;
	struct state_txn txn;
	uint64_t number;
	char end;
	int r;

	*out_is_used = true;
	if (sscanf(name + (*name != '\0'), "%" SCNu64 "%c", &number, &end) != 1)
		return 0;
	if (*name == 't') {
		r = state_txn(p->st->index, number, &storage, &txn, p->err);
		*out_is_used = r == 0 && txn.status == INCR_OPEN;
		return r < 0 ? r : 0;
	}
	if (*name != 'b')
		return 0;
	r = state_build(p->st->index, number, &storage, &build, p->err);
	*out_is_used =
		(r == 0 && build.status == INCR_BUILD_OPEN) ||
		lock_is_held(p->st->io, p->st->dirfd, LOCK_BUILD(number));
	return r < 0 ? r : 0;
}

static int mend_entry(void *closure, const char *name, enum io_kind kind)
{
	struct repair *p = closure;
	char path[300];
	bool is_used;
	int r = is_in_use(p, name, &is_used);

	(void)kind;
	if (r < 0 || is_used)
		return r;
	snprintf(path, sizeof(path), "spool/%s", name);
	if (!p->options->is_dry_run)
		r = io_remove_tree(p->st->io, p->st->dirfd, path, p->err);
	return r < 0 ? r : tell(p, INCR_REPAIR_STAGING, path, 0);
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

static int mend(struct repair *p)
{
	struct lock lock;
	int r;

	if (p->options->is_dry_run) {
		r = mend_tail(p);
		if (r == 0)
			r = mend_index(p);
		return r ? r : mend_spool(p);
	}
	r = store_begin_append(p->st, &lock, p->err);
	if (r < 0)
		return r;
	r = mend_tail(p);
	if (r == 0)
		r = mend_spool(p);
	r = store_end_append(p->st, &lock, r, p->err);
	/* not under the lock: it may take long */
	return r ? r : mend_index(p);
}

static int look_at_rest(struct repair *p, incr_finding_fn finding)
{
	struct incr_verify_options verify = {
		.reads_data = true,
		.progress = p->options->progress,
		.progress_closure = p->options->progress_closure,
	};
	struct incr_verify_result result;
	int r = incr_verify(p->st, &verify, finding, p->closure, &result,
			    p->err);

	if (r == 0)
		p->result->n_left = result.n_findings;
	return r;
}

int store_repair_with(const struct incr_io *io, const char *path,
		      const struct incr_repair_options *options,
		      incr_repair_fn done, incr_finding_fn finding,
		      void *closure, struct incr_repair_result *out_result,
		      struct incr_error *err)
{
	struct incr_store_options open = { .wait_ms = options->wait_ms,
					   .is_readonly = options->is_dry_run };
	struct incr_repair_result result = { 0 };
	struct incr_error why = INCR_ERROR_INIT;
	struct repair p = { .options = options,
			    .done = done,
			    .closure = closure,
			    .result = &result,
			    .err = &why };
	int r = store_open_with(io, path, &open, &p.st, &why);

	if (r == INCR_E_CORRUPT) {
		/* nothing to mend: say what is damaged */
		open.is_readonly = true;
		open.allows_damage = true;
		incr_error_release(&why);
		r = store_open_with(io, path, &open, &p.st, &why);
	} else if (r == 0 && !options->is_dry_run && p.st->is_readonly) {
		r = incr_fail(&why, INCR_E_READONLY, NULL, path,
			      "the store cannot be written");
	} else if (r == 0) {
		r = mend(&p);
	}
	if (r == 0)
		r = look_at_rest(&p, finding);
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
