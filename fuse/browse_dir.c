/*
 * Listing the directories above views.
 */
#include "config.h"

#include "browse_fs.h"
#include "error_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a directory held when it was opened. */
struct listing {
	struct incr_mount *mount; /* while it is filled */
	size_t n_names;
	char **names; /* owned */
	bool is_dataset;
	uint64_t dataset_id, head;
	size_t n_txns, n_allocated;
	uint64_t *txns; /* newest first */
};

static void free_listing(struct listing *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->n_names; i++)
		free(l->names[i]);
	free(l->names);
	free(l->txns);
	free(l);
}

/* Add a name of @length bytes, with @prefix before it. */
static int add_name(struct listing *l, const char *prefix, const char *name,
		    size_t length)
{
	char **names = reallocarray(l->names, l->n_names + 1, sizeof(*names));
	char *text;

	if (names == NULL)
		return INCR_E_NOMEM;
	l->names = names;
	if (asprintf(&text, "%s%.*s", prefix, (int)length, name) < 0)
		return INCR_E_NOMEM;
	names[l->n_names++] = text;
	return 0;
}

/* Datasets come in name order, but "a" is not next to "a/b" if "a b" exists. */
static int add_part(void *closure, const char *rest)
{
	struct listing *l = closure;
	size_t length = strcspn(rest, "/");

	for (size_t i = l->n_names; i > 0; i--) {
		if (strncmp(l->names[i - 1], rest, length) == 0 &&
		    l->names[i - 1][length] == '\0')
			return 0;
		if (l->names[i - 1][0] != rest[0])
			break;
	}
	return add_name(l, "", rest, length);
}

static int add_branch(void *closure, const struct incr_branch_info *info)
{
	if (strcmp(info->name, "main") == 0)
		return 0;
	return add_name(closure, ":", info->name, strlen(info->name));
}

static int add_txn(void *closure, const struct incr_txn_info *info)
{
	struct listing *l = closure;

	if (l->mount->at_ns != 0 && info->closed_ns > l->mount->at_ns)
		return 0;
	if (l->n_txns == l->n_allocated) {
		size_t n = l->n_allocated == 0 ? 64 : 2 * l->n_allocated;
		uint64_t *txns = reallocarray(l->txns, n, sizeof(*txns));

		if (txns == NULL)
			return INCR_E_NOMEM;
		l->txns = txns;
		l->n_allocated = n;
	}
	l->txns[l->n_txns++] = info->number;
	return 0;
}

static int list_dataset(struct incr_mount *m, const struct browse_dir *d,
			struct listing *l, struct incr_error *err)
{
	const char *branch = d->branch == NULL ? "main" : d->branch;
	struct incr_dataset_info info;
	int r;

	r = incr_dataset_find(m->store, d->path, &info, err);
	if (r < 0)
		return r == INCR_E_NOTFOUND || r == INCR_E_INVALID ? 0 : r;
	l->is_dataset = true;
	l->dataset_id = info.id;
	incr_dataset_info_release(&info);
	if (d->branch == NULL) {
		r = incr_branch_list(m->store, l->dataset_id, add_branch, l,
				     err);
		if (r < 0)
			return r;
	}
	r = browse_head(m, l->dataset_id, branch, &l->head, err);
	if (r != 0 || l->head == 0)
		return r < 0 ? r : 0;
	return incr_txn_log(m->store, l->head, 0, add_txn, l, err);
}

static int read_listing(struct incr_mount *m, const struct browse_dir *d,
			struct listing *l, struct incr_error *err)
{
	int r;

	l->mount = m;
	r = incr_store_refresh(m->store, err);
	if (r == 0 && d->branch == NULL)
		r = browse_each_below(m, d->path, add_part, l, err);
	if (r == 0 && *d->path != '\0')
		r = list_dataset(m, d, l, err);
	return r;
}

void browse_opendir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    struct fuse_file_info *fi)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct incr_error err = INCR_ERROR_INIT;
	int r = INCR_E_NOMEM;

	serve_yield(&m->serve);
	(void)pthread_mutex_lock(&m->store_lock);
	if (l != NULL)
		r = read_listing(m, (struct browse_dir *)n, l, &err);
	(void)pthread_mutex_unlock(&m->store_lock);
	if (r < 0) {
		fs_reply_error(m, req, r, &err);
		free_listing(l);
	} else {
		fi->fh = (uint64_t)(uintptr_t)l;
		if (fuse_reply_open(req, fi) != 0)
			free_listing(l);
	}
	incr_error_release(&err);
}

void browse_releasedir(struct incr_mount *m, fuse_req_t req, struct node *n,
		       struct fuse_file_info *fi)
{
	(void)m;
	(void)n;
	free_listing((struct listing *)(uintptr_t)fi->fh);
	(void)fuse_reply_err(req, 0);
}

/* The number of a dataset's part or a branch, as a lookup tells it. */
static uint64_t name_ino(const struct browse_dir *d, const char *name)
{
	char path[4096];

	if (*name == ':')
		return browse_dir_ino(d->path, name + 1);
	(void)snprintf(path, sizeof(path), "%s%s%s", d->path,
		       *d->path == '\0' ? "" : "/", name);
	return browse_dir_ino(path, NULL);
}

/* Entry @i: datasets and branches, `current`, then transactions by number. */
static bool get_entry(const struct browse_dir *d, const struct listing *l,
		      size_t i, char *name, size_t size, uint64_t *out_ino)
{
	size_t n_fixed = l->n_names + l->is_dataset;

	if (i < l->n_names) {
		(void)snprintf(name, size, "%s", l->names[i]);
		*out_ino = name_ino(d, name);
		return true;
	}
	if (i < n_fixed) {
		(void)snprintf(name, size, "current");
		*out_ino = browse_view_ino(l->dataset_id, l->head);
		return true;
	}
	if (i - n_fixed >= l->n_txns)
		return false;
	*out_ino = l->txns[l->n_txns - 1 - (i - n_fixed)];
	(void)snprintf(name, size, "@t%llu", (unsigned long long)*out_ino);
	*out_ino = browse_view_ino(l->dataset_id, *out_ino);
	return true;
}

void browse_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    const struct dir_request *dr)
{
	const struct browse_dir *d = (const struct browse_dir *)n;
	const struct listing *l = (const struct listing *)(uintptr_t)dr->fi->fh;
	struct fuse_entry_param e = { .attr = { .st_mode = S_IFDIR } };
	struct dir_buffer b;
	char name[1024];
	uint64_t ino;
	size_t i = 0;

	if (dir_buffer_init(&b, req, dr) < 0) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	(void)m;
	if (dr->off > INODE_COOKIE_DOTDOT)
		i = dr->off - INODE_COOKIE_DOTDOT;
	(void)dir_buffer_add_dots(&b, dr->off, n->id);
	for (; get_entry(d, l, i, name, sizeof(name), &ino); i++) {
		e.attr.st_ino = ino;
		if (!dir_buffer_add(&b, name, &e, INODE_COOKIE_FIRST + i))
			break;
	}
	dir_buffer_reply(&b);
	dir_buffer_release(&b);
}
