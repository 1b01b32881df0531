/*
 * The browser: finding datasets, branches and transactions.
 *
 * What leads to a view may change any time and is looked up again after a short
 * while; `current` each time, so that a commit that returned is seen by whoever
 * looks next.  That costs a request for each path that is walked through it, so
 * the answer is kept until somebody writes to the store.  All below a view
 * stays.
 */
#include "config.h"

#include "browse_fs.h"
#include "error_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_TIMEOUT 1.0 /* seconds that the name of a dataset is kept */

static const struct node_ops browse_dir_ops, browse_view_ops;

enum key_kind { KEY_DIR = 'd', KEY_VIEW = 'v' };

uint64_t browse_dir_ino(const char *path, const char *branch)
{
	uint64_t ino = inode_hash(path, strlen(path));

	return inode_mix(
		ino, branch == NULL ? 0 : inode_hash(branch, strlen(branch)));
}

uint64_t browse_view_ino(uint64_t dataset_id, uint64_t txn)
{
	return inode_mix(inode_mix(dataset_id, KEY_VIEW), txn);
}

/* Nodes */

static void browse_dir_free(struct incr_mount *m, struct node *n)
{
	struct browse_dir *d = (struct browse_dir *)n;

	(void)m;
	free(d->path);
	free(d->branch);
	(void)pthread_mutex_destroy(&d->lock);
	free(d);
}

static struct browse_dir *new_dir(const char *path, const char *branch)
{
	struct browse_dir *d = calloc(1, sizeof(*d));
	char *key = NULL;
	int size;

	if (d == NULL)
		return NULL;
	d->node.ops = &browse_dir_ops;
	(void)pthread_mutex_init(&d->lock, NULL);
	d->path = strdup(path);
	d->branch = branch == NULL ? NULL : strdup(branch);
	size = asprintf(&key, "%c%s:%s", KEY_DIR, path,
			branch == NULL ? "" : branch);
	if (d->path == NULL || (branch != NULL && d->branch == NULL) ||
	    size < 0 || node_set_key(&d->node, key, (size_t)size) < 0) {
		browse_dir_free(NULL, &d->node);
		d = NULL;
	}
	if (size >= 0)
		free(key);
	return d;
}

static void browse_view_free(struct incr_mount *m, struct node *n)
{
	struct browse_view *v = (struct browse_view *)n;

	if (v->slot != NULL)
		view_slot_put(m, v->slot, 1);
	free(v);
}

static struct browse_view *new_view(uint64_t dataset_id, uint64_t txn,
				    struct timespec time)
{
	struct browse_view *v = calloc(1, sizeof(*v));
	uint64_t key[3] = { KEY_VIEW, dataset_id, txn };

	if (v == NULL)
		return NULL;
	v->node.ops = &browse_view_ops;
	v->dataset_id = dataset_id;
	v->txn = txn;
	v->time = time;
	if (node_set_key(&v->node, key, sizeof(key)) < 0) {
		free(v);
		return NULL;
	}
	return v;
}

/* Entries */

static void fill_dir(const struct incr_mount *m, const struct browse_dir *d,
		     struct stat *st)
{
	fs_fill_stat(m, st, browse_dir_ino(d->path, d->branch), S_IFDIR | 0555,
		     0, m->started);
}

static void fill_view(const struct incr_mount *m, const struct browse_view *v,
		      struct stat *st)
{
	fs_fill_stat(m, st, browse_view_ino(v->dataset_id, v->txn),
		     S_IFDIR | 0555, 0, v->time);
}

static void reply_node(struct incr_mount *m, fuse_req_t req, struct node *n,
		       double entry_timeout)
{
	struct fuse_entry_param e;

	if (n == NULL) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	n = node_table_intern(&m->nodes, n);
	e = (struct fuse_entry_param){
		.ino = n->id,
		.entry_timeout = entry_timeout,
		.attr_timeout = FOREVER,
	};
	if (n->ops == &browse_dir_ops)
		fill_dir(m, (struct browse_dir *)n, &e.attr);
	else
		fill_view(m, (struct browse_view *)n, &e.attr);
	if (fuse_reply_entry(req, &e) != 0)
		node_table_forget(&m->nodes, n->id, 1);
}

/* What the store holds; store_lock is held. */

int browse_head(struct incr_mount *m, uint64_t dataset_id, const char *branch,
		uint64_t *out_head, struct incr_error *err)
{
	struct incr_branch_info info;
	int r;

	r = incr_branch_find(m->store, dataset_id, branch, &info, err);
	if (r == INCR_E_NOTFOUND)
		return 1;
	if (r < 0)
		return r;
	*out_head = info.head;
	incr_branch_info_release(&info);
	if (m->at_ns == 0 || *out_head == 0)
		return 0;
	return incr_txn_at_time(m->store, *out_head, m->at_ns, out_head, err);
}

struct below {
	const char *path;
	size_t length;
	browse_child_fn fn;
	void *closure;
};

static int match_below(void *closure, const struct incr_dataset_info *info)
{
	const struct below *b = closure;

	if (b->length == 0)
		return b->fn(b->closure, info->name);
	if (strncmp(info->name, b->path, b->length) != 0 ||
	    info->name[b->length] != '/')
		return 0;
	return b->fn(b->closure, info->name + b->length + 1);
}

int browse_each_below(struct incr_mount *m, const char *path,
		      browse_child_fn fn, void *closure, struct incr_error *err)
{
	struct below b = {
		.path = path,
		.length = strlen(path),
		.fn = fn,
		.closure = closure,
	};

	return incr_dataset_list(m->store, match_below, &b, err);
}

static int stop(void *closure, const char *rest)
{
	(void)closure;
	(void)rest;
	return 1;
}

/* 0, or 1 if no dataset has this name or lies below it. */
static int find_dir(struct incr_mount *m, const char *path,
		    struct incr_error *err)
{
	struct incr_dataset_info info;
	int r;

	r = incr_dataset_find(m->store, path, &info, err);
	if (r == 0)
		incr_dataset_info_release(&info);
	if (r != INCR_E_NOTFOUND && r != INCR_E_INVALID)
		return r;
	incr_error_release(err);
	r = browse_each_below(m, path, stop, NULL, err);
	return r < 0 ? r : !r;
}

/* The transaction that @name, `current` or `@t42`, stands for: 0, or 1. */
static int find_point(struct incr_mount *m, uint64_t dataset_id,
		      const char *branch, const char *name, uint64_t *out_txn,
		      struct incr_error *err)
{
	struct incr_txn_info info;
	char *end;
	int r;

	if (strcmp(name, "current") == 0)
		return browse_head(m, dataset_id, branch, out_txn, err);
	if (strncmp(name, "@t", 2) != 0 || name[2] < '1' || name[2] > '9')
		return 1;
	*out_txn = strtoull(name + 2, &end, 10);
	if (*end != '\0')
		return 1;
	r = incr_txn_find(m->store, *out_txn, &info, err);
	if (r == INCR_E_NOTFOUND)
		return 1;
	if (r < 0)
		return r;
	r = info.dataset_id != dataset_id || info.status != INCR_COMMITTED ||
	    (m->at_ns != 0 && info.closed_ns > m->at_ns);
	incr_txn_info_release(&info);
	return r;
}

static struct timespec view_time(struct incr_mount *m, uint64_t txn)
{
	struct timespec time = m->started;
	struct incr_txn_info info;

	if (txn != 0 && incr_txn_find(m->store, txn, &info, NULL) == 0) {
		time = fs_timespec(info.closed_ns);
		incr_txn_info_release(&info);
	}
	return time;
}

struct found {
	struct node *node; /* owned; NULL: no memory */
	double timeout;
	bool is_head; /* a struct browse_view that `current` leads to */
};

/* Look for @name in the dataset that @d is, or in its branch: 0, or 1. */
static int find_in_dataset(struct incr_mount *m, const struct browse_dir *d,
			   const char *name, struct found *out,
			   struct incr_error *err)
{
	const char *branch = d->branch == NULL ? "main" : d->branch;
	struct incr_dataset_info info;
	struct browse_view *v;
	struct browse_dir *dir;
	uint64_t id, txn = 0;
	int r;

	r = incr_dataset_find(m->store, d->path, &info, err);
	if (r < 0)
		return r == INCR_E_NOTFOUND || r == INCR_E_INVALID ? 1 : r;
	id = info.id;
	incr_dataset_info_release(&info);

	if (*name == ':' && d->branch == NULL) {
		r = browse_head(m, id, name + 1, &txn, err);
		if (r != 0)
			return r == INCR_E_INVALID ? 1 : r;
		dir = new_dir(d->path, name + 1);
		out->node = dir == NULL ? NULL : &dir->node;
		out->timeout = NAME_TIMEOUT;
		return 0;
	}
	r = find_point(m, id, branch, name, &txn, err);
	if (r == 1 && strcmp(name, "current") == 0 && d->branch == NULL)
		r = 0; /* a dataset that was never written to */
	if (r != 0)
		return r;
	v = new_view(id, txn, view_time(m, txn));
	out->node = v == NULL ? NULL : &v->node;
	out->timeout = *name == '@' ? NAME_TIMEOUT : 0;
	out->is_head = *name != '@';
	return 0;
}

/* The directory @name of @d, of a longer dataset name: 0, or 1. */
static int find_part(struct incr_mount *m, const struct browse_dir *d,
		     const char *name, struct found *out,
		     struct incr_error *err)
{
	struct browse_dir *dir;
	char *path;
	int r;

	if (d->branch != NULL)
		return 1;
	if (asprintf(&path, "%s%s%s", d->path, *d->path == '\0' ? "" : "/",
		     name) < 0)
		return INCR_E_NOMEM;
	r = find_dir(m, path, err);
	if (r == 0) {
		dir = new_dir(path, NULL);
		out->node = dir == NULL ? NULL : &dir->node;
		out->timeout = NAME_TIMEOUT;
	}
	free(path);
	return r;
}

/* Answer from what is known.  False: the store has to be read. */
static bool reply_known(struct incr_mount *m, fuse_req_t req,
			struct browse_dir *d, uint64_t generation)
{
	struct browse_head head;
	struct browse_view *v;

	(void)pthread_mutex_lock(&d->lock);
	head = d->head;
	(void)pthread_mutex_unlock(&d->lock);
	if (head.generation != generation)
		return false;
	v = new_view(head.dataset_id, head.txn, head.time);
	reply_node(m, req, v == NULL ? NULL : &v->node, 0);
	return true;
}

static void keep_head(struct browse_dir *d, const struct browse_view *v,
		      uint64_t generation)
{
	(void)pthread_mutex_lock(&d->lock);
	d->head = (struct browse_head){
		.generation = generation,
		.dataset_id = v->dataset_id,
		.txn = v->txn,
		.time = v->time,
	};
	(void)pthread_mutex_unlock(&d->lock);
}

static void browse_lookup(struct incr_mount *m, fuse_req_t req, struct node *n,
			  const char *name)
{
	struct browse_dir *d = (struct browse_dir *)n;
	struct incr_error err = INCR_ERROR_INIT;
	struct found found = { 0 };
	uint64_t generation = watch_generation(&m->watch);
	int r;

	if (strcmp(name, "current") == 0 && reply_known(m, req, d, generation))
		return;
	serve_yield(&m->serve);
	(void)pthread_mutex_lock(&m->store_lock);
	r = incr_store_refresh(m->store, &err);
	if (r == 0)
		r = *d->path == '\0' ?
			    1 :
			    find_in_dataset(m, d, name, &found, &err);
	if (r == 1)
		r = find_part(m, d, name, &found, &err);
	(void)pthread_mutex_unlock(&m->store_lock);
	if (r == 0 && found.is_head && found.node != NULL)
		keep_head(d, (struct browse_view *)found.node, generation);
	if (r == 0)
		reply_node(m, req, found.node, found.timeout);
	else if (r == 1)
		(void)fuse_reply_err(req, ENOENT);
	else
		fs_reply_error(m, req, r, &err);
	incr_error_release(&err);
}

static void browse_getattr(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	struct stat st;

	fill_dir(m, (struct browse_dir *)n, &st);
	(void)fuse_reply_attr(req, &st, FOREVER);
}

static const struct node_ops browse_dir_ops = {
	.getattr = browse_getattr,
	.lookup = browse_lookup,
	.opendir = browse_opendir,
	.readdir = browse_readdir,
	.releasedir = browse_releasedir,
	.free = browse_dir_free,
};

/* Views */

static int open_view(struct incr_mount *m, struct browse_view *v,
		     struct incr_error *err)
{
	struct incr_view *view;
	int r;

	r = incr_view_open(m->store, v->dataset_id, v->txn, &view, err);
	if (r < 0)
		return r;
	if (incr_view_unknown(view))
		fs_log(m,
		       "t%" PRIu64 " is lost, and the view of t%" PRIu64
		       " is as if it had not been",
		       incr_view_unknown(view), v->txn);
	r = view_slot_new(m, view, inode_mix(v->dataset_id, v->txn), true,
			  &v->slot);
	incr_view_unref(view);
	if (r == 0)
		v->slot->dir_time = v->time;
	return r;
}

/* The slot of a view; NULL: @req was answered. */
static struct view_slot *need_slot(struct incr_mount *m, fuse_req_t req,
				   struct node *n)
{
	struct browse_view *v = (struct browse_view *)n;
	struct incr_error err = INCR_ERROR_INIT;
	struct view_slot *slot;
	int r = 0;

	(void)pthread_mutex_lock(&m->store_lock);
	if (v->slot == NULL)
		r = open_view(m, v, &err);
	slot = v->slot;
	(void)pthread_mutex_unlock(&m->store_lock);
	if (r < 0)
		fs_reply_error(m, req, r, &err);
	incr_error_release(&err);
	return r < 0 ? NULL : slot;
}

static void view_lookup(struct incr_mount *m, fuse_req_t req, struct node *n,
			const char *name)
{
	struct view_slot *slot = need_slot(m, req, n);
	struct inode root = { .depth = INODE_ROOT_DEPTH };

	if (slot != NULL)
		view_fs_lookup(m, req, slot, root, name);
}

static void view_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
			 const struct dir_request *dr)
{
	struct view_slot *slot = need_slot(m, req, n);
	struct inode root = { .depth = INODE_ROOT_DEPTH };

	if (slot != NULL)
		view_fs_readdir(m, req, slot, root, dr);
}

static void view_getattr(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	struct stat st;

	fill_view(m, (struct browse_view *)n, &st);
	(void)fuse_reply_attr(req, &st, FOREVER);
}

static const struct node_ops browse_view_ops = {
	.getattr = view_getattr,
	.lookup = view_lookup,
	.readdir = view_readdir,
	.free = browse_view_free,
};

int browse_init(struct incr_mount *m, struct incr_error *err)
{
	struct browse_dir *root = new_dir("", NULL);

	if (root == NULL)
		return mount_fail_nomem(err);
	node_table_add_fixed(&m->nodes, &root->node);
	watch_open(&m->watch, incr_store_path(m->store));
	return 0;
}
