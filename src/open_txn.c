/*
 * OPEN transactions: begun, filled, committed and aborted by hand, perhaps by
 * several processes over days.
 *
 * Staged files lie in spool/t<N>/put/<path>, paths to remove in files of
 * spool/t<N>/remove/, each named by the hash of the path.  The branch is locked exclusively for each step.
 */
#include "config.h"

#include "open_txn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "name.h"
#include "remove.h"
#include "view.h"

static void spool_path(uint64_t number, char out[48])
{
	snprintf(out, 48, "spool/t%" PRIu64, number);
}

static int make_spool(struct incr_store *st, uint64_t number,
		      struct incr_error *err)
{
	char path[48], sub[80];
	int fd = -1, r;

	spool_path(number, path);
	/* left over from a transaction that a power cut undid before it was acknowledged */
	r = io_remove_tree(st->io, st->dirfd, path, err);
	if (r == 0)
		r = io_mkdir(st->io, st->dirfd, path, err);
	snprintf(sub, sizeof(sub), "%s/%s", path, PUT_DIR);
	if (r == 0)
		r = io_mkdir(st->io, st->dirfd, sub, err);
	snprintf(sub, sizeof(sub), "%s/%s", path, REMOVE_DIR);
	if (r == 0)
		r = io_mkdir(st->io, st->dirfd, sub, err);
	if (r == 0)
		r = io_open(st->io, st->dirfd, path, O_RDONLY | O_DIRECTORY, 0,
			    &fd, err);
	if (r < 0)
		return r;
	r = io_sync_dir(st->io, fd, path, err);
	(void)io_close(st->io, fd); /* only read from */
	if (r == 0)
		r = io_open(st->io, st->dirfd, "spool", O_RDONLY | O_DIRECTORY,
			    0, &fd, err);
	if (r < 0)
		return r;
	r = io_sync_dir(st->io, fd, "spool", err);
	(void)io_close(st->io, fd);
	return r;
}

static int append_opened(struct incr_store *st,
			 const struct incr_txn_options *options,
			 const struct commit_item *item, uint64_t *out_number,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, storage = BUF_INIT;
	struct fact_txn f = { .dataset_id = options->dataset_id,
			      .type = options->type,
			      .origin = item->origin,
			      .user = item->user,
			      .message = item->message,
			      .pairs = item->pairs,
			      .manifest = text_of(NULL) };
	struct state_branch branch;
	int r = store_find_free_branch(st, options->dataset_id, options->branch,
				       &storage, &branch, err);

	/* nothing else can move the branch while the transaction is open */
	if (r == 0 && options->has_expect && branch.head != options->expect)
		r = commit_branch_moved(options->expect, branch.head, err);
	if (r < 0)
		return r;
	f.number = index_counters(st->index)->next_txn;
	f.branch_id = branch.fact.id;
	f.line = branch.fact.line;
	f.parent = branch.head;
	f.opened_ns = store_now(st);
	if (fact_encode_txn(&f, &payload) < 0)
		return incr_fail_nomem(err);
	r = make_spool(st, f.number, err);
	if (r == 0)
		r = store_append(st, FACT_TXN_OPENED, &payload, NULL, err);
	if (r == 0)
		*out_number = f.number;
	return r;
}

int incr_txn_begin(struct incr_store *st,
		   const struct incr_txn_options *options, uint64_t *out_number,
		   struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct commit_texts texts = { .pairs = BUF_INIT };
	struct commit_item item = { 0 };
	struct state_branch branch;
	struct lock branch_lock, lock;
	uint64_t number = 0;
	int r = options->type >= INCR_SNAPSHOT && options->type <= INCR_DELETE ?
			store_catch_up(st, err) :
			incr_fail(err, INCR_E_INVALID, "bad-type", NULL,
				  "no such type of transaction");

	if (r == 0)
		r = commit_fill_texts(st, options, &texts, &item, err);
	if (r == 0)
		r = commit_find_branch(st, options, &storage, &branch, err);
	if (r == 0)
		r = store_lock_branch(st, &branch, true, &branch_lock, err);
	if (r == 0) {
		r = store_begin_append(st, &lock, err);
		if (r == 0) {
			r = append_opened(st, options, &item, &number, err);
			r = store_end_append(st, &lock, r, err);
		}
		lock_release(&branch_lock);
	}
	buf_release(&texts.pairs);
	if (r == 0)
		*out_number = number;
	return r;
}

/* ---- one open transaction, with its branch locked ---- */

void open_txn_release(struct open_txn *o)
{
	lock_release(&o->lock);
	buf_release(&o->storage);
	buf_release(&o->branch_storage);
}

static int check_is_open(const struct open_txn *o, struct incr_error *err)
{
	char name[32];

	if (o->txn.status == INCR_OPEN)
		return 0;
	snprintf(name, sizeof(name), "t%" PRIu64, o->txn.fact.number);
	return incr_fail(err, INCR_E_CONFLICT, "not-open", name,
			 "the transaction is %s already",
			 o->txn.status == INCR_COMMITTED ? "committed" :
							   "aborted");
}

static int load(struct open_txn *o, uint64_t number, struct incr_error *err)
{
	int r = store_catch_up(o->st, err);

	if (r == 0)
		r = store_find_txn(o->st, number, &o->storage, &o->txn, err);
	if (r == 0)
		r = check_is_open(o, err);
	if (r == 0)
		r = state_branch(o->st->index, o->txn.fact.branch_id,
				 &o->branch_storage, &o->branch, err);
	if (r == 1)
		r = incr_fail(err, INCR_E_CORRUPT, "damaged-table", NULL,
			      "a branch is missing from the index");
	return r;
}

int open_txn_take(struct incr_store *st, uint64_t number, struct open_txn *o,
		  struct incr_error *err)
{
	int r;

	*o = (struct open_txn){ .st = st };
	spool_path(number, o->spool);
	r = load(o, number, err);
	if (r == 0)
		r = store_lock_branch(st, &o->branch, true, &o->lock, err);
	if (r == 0) {
		/* again: another process may have closed it while we waited */
		r = load(o, number, err);
	}
	if (r < 0)
		open_txn_release(o);
	return r;
}

/* ---- ending ---- */

/* Staged removals, read back. */
struct staged_removals {
	struct removal removal;
	int dirfd; /* of remove/ */
};

static int add_staged(void *closure, const char *name, enum io_kind kind)
{
	_cleanup_buf_ struct buf path = BUF_INIT;
	struct staged_removals *s = closure;
	int r;

	(void)kind;
	if (strlen(name) != 2 * (size_t)INCR_HASH_SIZE)
		return 0; /* left by a crash, never acknowledged */
	r = io_read_file(s->removal.st->io, s->dirfd, name, NAME_PATH_MAX,
			 &path, s->removal.err);
	return r < 0 ? r :
		       removal_add(&s->removal, (const char *)path.data,
				   path.size);
}

static int ingest_removals(struct open_txn *o,
			   struct ingest_result *out_content,
			   struct incr_error *err)
{
	const struct incr_io *io = o->st->io;
	struct staged_removals s = { .removal = { .st = o->st, .err = err } };
	char path[80];
	int r = incr_view_open(o->st, o->txn.fact.dataset_id, o->branch.head,
			       &s.removal.view, err);

	if (r < 0)
		return r;
	if (memtable_new(&s.removal.paths) < 0)
		r = incr_fail_nomem(err);
	snprintf(path, sizeof(path), "%s/%s", o->spool, REMOVE_DIR);
	if (r == 0)
		r = io_open(io, o->st->dirfd, path, O_RDONLY | O_DIRECTORY, 0,
			    &s.dirfd, err);
	if (r == 0) {
		r = io->readdir(io, s.dirfd, add_staged, &s);
		(void)io_close(io, s.dirfd); /* only read from */
	}
	if (r == 0)
		r = removal_ingest(&s.removal, out_content);
	memtable_unref(s.removal.paths);
	incr_view_unref(s.removal.view);
	return r;
}

static int ingest_staged(struct open_txn *o,
			 const struct ingest_options *options,
			 struct ingest_result *out_content,
			 struct incr_error *err)
{
	struct ingest *g;
	char path[80];
	int r;

	if (o->txn.fact.type == INCR_DELETE)
		return ingest_removals(o, out_content, err);
	r = ingest_new(options, &g, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", o->spool, PUT_DIR);
	r = ingest_add_tree(g, o->st->dirfd, path, NULL, err);
	if (r == 0)
		r = ingest_run(g, out_content, err);
	ingest_free(g);
	return r;
}

static void drop_spool(struct open_txn *o)
{
	struct incr_error ignored = INCR_ERROR_INIT;

	/* the transaction is closed: what is left costs space only */
	(void)io_remove_tree(o->st->io, o->st->dirfd, o->spool, &ignored);
	incr_error_release(&ignored);
}

static int commit_open(struct open_txn *o, bool rewrites,
		       struct incr_error *err)
{
	const struct fact_txn *f = &o->txn.fact;
	struct ingest_options options;
	struct ingest_result content = { 0 };
	struct commit_item item = { .dataset_id = f->dataset_id,
				    .branch_id = f->branch_id,
				    .type = f->type,
				    .open_number = f->number,
				    .origin = f->origin,
				    .user = f->user,
				    .message = f->message,
				    .pairs = f->pairs,
				    .opened_ns = f->opened_ns,
				    .content = &content };
	struct commit_request request = { .n_items = 1, .items = &item };
	struct incr_view *view = NULL;
	struct commit_base base = { 0 };
	int r = 0;

	if (o->branch.head && f->type != INCR_APPEND && f->type != INCR_DELETE)
		r = incr_view_open(o->st, f->dataset_id, o->branch.head, &view,
				   err);
	if (r < 0)
		return r;
	commit_ingest_options(o->st, view, f->type == INCR_UPDATE && !rewrites,
			      &options);
	if (f->type == INCR_SNAPSHOT)
		r = commit_base_init(&base, o->st, view, &options, err);
	if (r == 0)
		r = ingest_staged(o, &options, &content, err);
	commit_base_release(&base);
	if (r == 0) {
		r = commit_append(o->st, &request, err);
		if (r < 0)
			ingest_result_discard(&options, &content);
		ingest_result_release(&content);
	}
	incr_view_unref(view);
	return r;
}

int incr_txn_commit(struct incr_store *st, uint64_t number, bool rewrites,
		    struct incr_txn_info *out_info, struct incr_error *err)
{
	struct open_txn o;
	int r = open_txn_take(st, number, &o, err);

	if (r < 0)
		return r;
	r = commit_open(&o, rewrites, err);
	if (r == 0)
		drop_spool(&o);
	open_txn_release(&o);
	if (r == 0 && out_info)
		r = incr_txn_find(st, number, out_info, err);
	return r;
}

int incr_txn_abort(struct incr_store *st, uint64_t number,
		   struct incr_error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct open_txn o;
	int r = open_txn_take(st, number, &o, err);

	if (r < 0)
		return r;
	if (buf_put_varint(&payload, number) < 0 ||
	    buf_put_zigzag(&payload, store_now(st)) < 0)
		r = incr_fail_nomem(err);
	else
		r = store_append_fact(st, FACT_TXN_ABORTED, &payload, err);
	if (r == 0)
		drop_spool(&o);
	open_txn_release(&o);
	return r;
}
