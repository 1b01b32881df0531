/*
 * Fixed directories and links.  They never change, so the kernel keeps them.
 */
#include "config.h"

#include "layout.h"

#include <stdlib.h>
#include <string.h>

/* What a directory holds: a node, or a view. */
struct child {
	char *name; /* owned */
	struct node *node; /* borrowed from the node table; or */
	struct view_slot *slot; /* borrowed */
};

struct layout_dir {
	struct node node;
	size_t n_children;
	struct child *children; /* owned */
};

struct layout_link {
	struct node node;
	char *target; /* owned */
};

static const struct node_ops dir_ops, link_ops;

static int child_entry(struct incr_mount *m, const struct child *c,
		       bool is_lookup, struct fuse_entry_param *e)
{
	if (c->slot != NULL) {
		view_fs_root_entry(m, c->slot, e);
		return 0;
	}
	return c->node->ops->entry(m, c->node, is_lookup, e);
}

static int dir_entry(struct incr_mount *m, struct node *n, bool is_lookup,
		     struct fuse_entry_param *e)
{
	(void)is_lookup;
	*e = (struct fuse_entry_param){
		.ino = n->id,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	fs_fill_stat(m, &e->attr, n->id, S_IFDIR | 0555, 0, m->started);
	return 0;
}

static int link_entry(struct incr_mount *m, struct node *n, bool is_lookup,
		      struct fuse_entry_param *e)
{
	const struct layout_link *l = (const struct layout_link *)n;

	(void)is_lookup;
	*e = (struct fuse_entry_param){
		.ino = n->id,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	fs_fill_stat(m, &e->attr, n->id, S_IFLNK | 0777, strlen(l->target),
		     m->started);
	return 0;
}

static void entry_getattr(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	struct fuse_entry_param e;

	(void)n->ops->entry(m, n, false, &e);
	(void)fuse_reply_attr(req, &e.attr, FOREVER);
}

static void dir_lookup(struct incr_mount *m, fuse_req_t req, struct node *n,
		       const char *name)
{
	const struct layout_dir *d = (const struct layout_dir *)n;
	struct fuse_entry_param e = { .entry_timeout = FOREVER };
	int r = 0;

	for (size_t i = 0; i < d->n_children; i++) {
		if (strcmp(d->children[i].name, name) == 0) {
			r = child_entry(m, &d->children[i], true, &e);
			break;
		}
	}
	if (r == 0)
		(void)fuse_reply_entry(req, &e);
	else
		fs_reply_error(m, req, r, &INCR_ERROR_INIT);
}

static void dir_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
			const struct dir_request *dr)
{
	const struct layout_dir *d = (const struct layout_dir *)n;
	struct dir_buffer b;
	struct fuse_entry_param e;
	uint64_t first = 0;
	int r;

	if (dr->off > INODE_COOKIE_DOTDOT)
		first = dr->off - INODE_COOKIE_DOTDOT;
	r = dir_buffer_init(&b, req, dr);
	if (r < 0) {
		fs_reply_error(m, req, r, &INCR_ERROR_INIT);
		return;
	}
	(void)dir_buffer_add_dots(&b, dr->off, n->id);
	for (uint64_t i = first; i < d->n_children; i++) {
		r = child_entry(m, &d->children[i], false, &e);
		if (r == 0 && !dir_buffer_add(&b, d->children[i].name, &e,
					      INODE_COOKIE_FIRST + i))
			break;
	}
	dir_buffer_reply(&b);
	dir_buffer_release(&b);
}

static void dir_free(struct incr_mount *m, struct node *n)
{
	struct layout_dir *d = (struct layout_dir *)n;

	(void)m;
	for (size_t i = 0; i < d->n_children; i++)
		free(d->children[i].name);
	free(d->children);
	free(d);
}

static const struct node_ops dir_ops = {
	.entry = dir_entry,
	.getattr = entry_getattr,
	.lookup = dir_lookup,
	.readdir = dir_readdir,
	.free = dir_free,
};

static void link_readlink(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	(void)m;
	(void)fuse_reply_readlink(req, ((struct layout_link *)n)->target);
}

static void link_free(struct incr_mount *m, struct node *n)
{
	(void)m;
	free(((struct layout_link *)n)->target);
	free(n);
}

static const struct node_ops link_ops = {
	.entry = link_entry,
	.getattr = entry_getattr,
	.readlink = link_readlink,
	.free = link_free,
};

static int add_child(struct layout_dir *dir, const char *name,
		     const struct child *child)
{
	struct child *children = reallocarray(
		dir->children, dir->n_children + 1, sizeof(*children));
	char *copy = strdup(name);

	if (children != NULL)
		dir->children = children;
	if (children == NULL || copy == NULL) {
		free(copy);
		return INCR_E_NOMEM;
	}
	children[dir->n_children] = *child;
	children[dir->n_children++].name = copy;
	return 0;
}

int layout_add_node(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, struct node *n)
{
	struct child child = { .node = n };

	node_table_add_fixed(&m->nodes, n);
	return add_child(dir, name, &child);
}

int layout_add_view(struct layout_dir *dir, const char *name,
		    struct view_slot *slot)
{
	struct child child = { .slot = slot };

	return add_child(dir, name, &child);
}

int layout_add_dir(struct incr_mount *m, struct layout_dir *parent,
		   const char *name, struct layout_dir **out_dir)
{
	struct layout_dir *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return INCR_E_NOMEM;
	d->node.ops = &dir_ops;
	*out_dir = d;
	if (parent != NULL)
		return layout_add_node(m, parent, name, &d->node);
	node_table_add_fixed(&m->nodes, &d->node);
	return 0;
}

int layout_add_link(struct incr_mount *m, struct layout_dir *dir,
		    const char *name, const char *target)
{
	struct layout_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return INCR_E_NOMEM;
	l->node.ops = &link_ops;
	l->target = strdup(target);
	if (l->target == NULL) {
		free(l);
		return INCR_E_NOMEM;
	}
	return layout_add_node(m, dir, name, &l->node);
}
