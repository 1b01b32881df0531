/*
 * Strategy.  Who makes a file of the store holds a lock from before it is there
 * until the log tells of it, or it is gone again (lock.h): that of its name, of
 * its build, of the append, or of the index.  So what is in a directory, and
 * whose lock is free after that, was finished or given up before; and if the
 * log that is read after that does not tell of it, it never will.  Nobody has
 * to be stopped to find that out, and it stays true.
 */
#include "config.h"

#include "leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "source_tree.h"

#define PATH_SIZE 320 /* "spool/" and a name */

struct names {
	size_t n;
	char **items; /* owned, and each of them */
};

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
	*names = (struct names){ 0 };
}

static int add_name(void *closure, const char *name, enum io_kind kind)
{
	struct names *names = closure;
	char **grown = reallocarray(names->items, names->n + 1, sizeof(*grown));

	(void)kind;
	if (!grown)
		return -ENOMEM;
	names->items = grown;
	grown[names->n] = strdup(name);
	if (!grown[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

/* What stands in a directory of the store; one that is missing is empty. */
static int each_name(struct incr_store *st, const char *dir, io_readdir_fn fn,
		     void *closure, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { st->io, -1 };
	int r;

	file.fd = st->io->open_at(st->io, st->dirfd, dir,
				  O_RDONLY | O_DIRECTORY, 0);
	if (file.fd == -ENOENT)
		return 0;
	r = file.fd < 0 ? file.fd :
			  st->io->readdir(st->io, file.fd, fn, closure);
	return r < 0 ? incr_fail_errno(err, r, dir,
				       "cannot list the directory") :
		       0;
}

/* Does @name read @before, 16 hexadecimal digits, and @after? */
static bool has_form(const char *name, const char *before, const char *after,
		     uint64_t *out_number)
{
	size_t n = strlen(before);
	char again[64];

	if (strncmp(name, before, n) != 0 ||
	    sscanf(name + n, "%16" SCNx64, out_number) != 1)
		return false;
	(void)snprintf(again, sizeof(again), "%s%016" PRIx64 "%s", before,
		       *out_number, after);
	return !strcmp(name, again);
}

/* "t7", "b7" */
static bool has_number(const char *name, uint64_t *out_number)
{
	char again[32];

	if ((*name != 't' && *name != 'b') ||
	    sscanf(name + 1, "%" SCNu64, out_number) != 1)
		return false;
	(void)snprintf(again, sizeof(again), "%c%" PRIu64, *name, *out_number);
	return !strcmp(name, again);
}

/* ---- how much it is ---- */

static int size_of_tree(struct incr_store *st, const char *path,
			uint64_t *out_size, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct source_tree *tree;
	struct source_entry e;
	struct io_stat s;
	int r = source_tree_new(st->io, true, st->dirfd, path, "", &tree);

	if (r < 0)
		return incr_fail_nomem(err);
	while ((r = source_tree_next(tree, &e, &why)) == 0)
		if (st->io->stat_at(st->io, e.dirfd, e.name, &s) == 0)
			*out_size += s.size;
	source_tree_free(tree);
	/* of what cannot be listed the size is not known */
	incr_error_release(&why);
	return r == INCR_E_NOMEM ? incr_fail_nomem(err) : 0;
}

/* Tell of it, unless it is gone meanwhile. */
static int tell(struct incr_store *st, enum leftover_kind kind,
		const char *path, leftover_fn fn, void *closure,
		struct incr_error *err)
{
	struct io_stat s;
	uint64_t size = 0;
	int r = st->io->stat_at(st->io, st->dirfd, path, &s);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return incr_fail_errno(err, r, path, "cannot look at it");
	if (s.kind == IO_DIR)
		r = size_of_tree(st, path, &size, err);
	else
		size = s.size;
	return r < 0 ? r : fn(closure, kind, path, size);
}

/* ---- the spool ---- */

/* What becomes of staging that the log does not tell of. */
static int unknown_use(struct incr_store *st, enum leftover_kind *out_kind,
		       struct incr_error *err)
{
	int r = state_has_losses(st->index, err);

	*out_kind = r == 1 ? LEFTOVER_OF_LOST : LEFTOVER_STAGING;
	return r < 0 ? r : 0;
}

/* Each of these: 0, or 1 when it is in use. */
static int txn_use(struct incr_store *st, uint64_t number,
		   enum leftover_kind *out_kind, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn txn;
	int r = state_txn(st->index, number, &storage, &txn, err);

	if (r < 0)
		return r;
	if (r == 1 || txn.status == INCR_LOST)
		return unknown_use(st, out_kind, err);
	*out_kind = LEFTOVER_STAGING;
	/* who ends it holds the branch until it is gone */
	return txn.status == INCR_OPEN ||
	       !lock_is_free(st->io, st->dirfd,
			     LOCK_BRANCH(txn.fact.branch_id));
}

static int build_use(struct incr_store *st, uint64_t number,
		     enum leftover_kind *out_kind, struct incr_error *err)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct fact_build build;
	int r = state_build(st->index, number, &storage, &build, err);

	if (r < 0)
		return r;
	if (r == 1)
		return unknown_use(st, out_kind, err);
	*out_kind = LEFTOVER_STAGING;
	return build.status == INCR_BUILD_OPEN;
}

/* Is somebody making it?  Before the log is read. */
static bool is_being_made(struct incr_store *st, const char *name,
			  const char *path)
{
	uint64_t number;

	if (!has_number(name, &number))
		return !lock_is_free(st->io, st->dirfd, claim_of(path));
	if (*name == 'b')
		return !lock_is_free(st->io, st->dirfd, LOCK_BUILD(number));
	/* its spool is made before its record, within one append */
	return !st->is_appending &&
	       !lock_is_free(st->io, st->dirfd, LOCK_APPEND);
}

static int spool_use(struct incr_store *st, const char *name,
		     enum leftover_kind *out_kind, struct incr_error *err)
{
	uint64_t number;

	if (has_number(name, &number))
		return *name == 't' ? txn_use(st, number, out_kind, err) :
				      build_use(st, number, out_kind, err);
	*out_kind = *name == 'p' ? LEFTOVER_STAGING : LEFTOVER_FILE;
	return 0;
}

static bool is_of_spool(const char *name)
{
	uint64_t number;

	return has_number(name, &number) || has_form(name, "p", "", &number) ||
	       !strncmp(name, "changes-", strlen("changes-"));
}

/* Before the log is read: what nobody is making. */
static int list_spool(struct incr_store *st, struct names *out,
		      struct incr_error *err)
{
	size_t n = 0;
	int r = each_name(st, "spool", add_name, out, err);

	for (size_t i = 0; i < out->n; i++) {
		char *name = out->items[i], path[PATH_SIZE];

		(void)snprintf(path, sizeof(path), "spool/%s", name);
		if (r == 0 && is_of_spool(name) &&
		    !is_being_made(st, name, path))
			out->items[n++] = name;
		else
			free(name);
	}
	out->n = n;
	return r;
}

static int tell_spool(struct incr_store *st, const struct names *names,
		      leftover_fn fn, void *closure, struct incr_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < names->n; i++) {
		enum leftover_kind kind;
		char path[PATH_SIZE];
		int use = spool_use(st, names->items[i], &kind, err);

		if (use < 0)
			return use;
		(void)snprintf(path, sizeof(path), "spool/%s", names->items[i]);
		if (use == 0)
			r = tell(st, kind, path, fn, closure, err);
	}
	return r;
}

/* ---- the rest ---- */

/* What a sync will know the next time, while it is written. */
static int each_of_sync(struct incr_store *st, leftover_fn fn, void *closure,
			struct incr_error *err)
{
	struct names names = { 0 };
	int r = each_name(st, "sync", add_name, &names, err);
	uint64_t number;

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		char path[PATH_SIZE];

		(void)snprintf(path, sizeof(path), "sync/%s", names.items[i]);
		if (has_form(names.items[i], "", ".next", &number) &&
		    lock_is_free(st->io, st->dirfd, claim_of(path)))
			r = tell(st, LEFTOVER_FILE, path, fn, closure, err);
	}
	names_release(&names);
	return r;
}

static int each_of_index(struct incr_store *st, leftover_fn fn, void *closure,
			 struct incr_error *err)
{
	struct names names = { 0 };
	int r = each_name(st, "index", add_name, &names, err);

	/* who writes there is done before the checkpoint is read */
	if (r == 0 && lock_is_free(st->io, st->dirfd, LOCK_MAINTENANCE))
		r = index_keep_strays(st->index, &names.n, names.items, err);
	else
		r = r < 0 ? r : 1;
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		char path[PATH_SIZE];

		(void)snprintf(path, sizeof(path), "index/%s", names.items[i]);
		if (!lock_is_free(st->io, st->dirfd, claim_of(path)))
			continue;
		r = tell(st, LEFTOVER_FILE, path, fn, closure, err);
	}
	names_release(&names);
	return r == 1 ? 0 : r;
}

/* Of an `init` that was killed: once there is a store, no other is made here. */
static int each_of_top(struct incr_store *st, leftover_fn fn, void *closure,
		       struct incr_error *err)
{
	struct names names = { 0 };
	int r = each_name(st, ".", add_name, &names, err);
	uint64_t number;

	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (has_form(names.items[i], "format.", ".tmp", &number))
			r = tell(st, LEFTOVER_FILE, names.items[i], fn, closure,
				 err);
	names_release(&names);
	return r;
}

int leftover_each(struct incr_store *st, leftover_fn fn, void *closure,
		  struct incr_error *err)
{
	struct names spool = { 0 };
	int r = list_spool(st, &spool, err);

	if (r == 0)
		r = store_catch_up(st, err);
	if (r == 0)
		r = tell_spool(st, &spool, fn, closure, err);
	if (r == 0)
		r = each_of_index(st, fn, closure, err);
	if (r == 0)
		r = each_of_sync(st, fn, closure, err);
	if (r == 0)
		r = each_of_top(st, fn, closure, err);
	names_release(&spool);
	return r;
}

/* ---- packs ---- */

static int add_pack(void *closure, const char *name, enum io_kind kind)
{
	struct leftover_packs *p = closure;
	struct leftover_pack *grown;
	uint64_t id;

	(void)kind;
	if (!has_form(name, "", ".pack", &id))
		return 0;
	grown = reallocarray(p->items, p->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->items = grown;
	grown[p->n++] = (struct leftover_pack){ .id = id };
	return 0;
}

static int compare_packs(const void *a, const void *b)
{
	const struct leftover_pack *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int leftover_packs_list(struct leftover_packs *p, struct incr_store *st,
			struct incr_error *err)
{
	size_t n = 0;
	int r = each_name(st, "packs", add_pack, p, err);

	for (size_t i = 0; i < p->n; i++) {
		char path[PACK_PATH_SIZE];

		pack_path(p->items[i].id, path);
		if (lock_is_free(st->io, st->dirfd, claim_of(path)))
			p->items[n++] = p->items[i];
	}
	p->n = n;
	if (n)
		qsort(p->items, n, sizeof(*p->items), compare_packs);
	return r;
}

static void name_pack(struct leftover_packs *p, uint64_t id)
{
	struct leftover_pack key = { .id = id };
	struct leftover_pack *found = p->n ? bsearch(&key, p->items, p->n,
						     sizeof(*p->items),
						     compare_packs) :
					     NULL;

	if (found)
		found->is_named = true;
}

void leftover_packs_name(struct leftover_packs *p, const struct content *c)
{
	if (c->kind == CONTENT_PART)
		name_pack(p, c->container);
	for (size_t i = 0; c->kind == CONTENT_EXTENTS && i < c->n_extents; i++)
		name_pack(p, c->extents[i].container);
}

int leftover_packs_each(const struct leftover_packs *p, struct incr_store *st,
			leftover_fn fn, void *closure, struct incr_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++) {
		char path[PACK_PATH_SIZE];

		pack_path(p->items[i].id, path);
		if (!p->items[i].is_named)
			r = tell(st, LEFTOVER_FILE, path, fn, closure, err);
	}
	return r;
}

void leftover_packs_release(struct leftover_packs *p)
{
	free(p->items);
	*p = (struct leftover_packs){ 0 };
}
