/*
 * Listing directories of views.
 *
 * A request brings a buffer of entries and the next one goes on behind the last
 * of them.  The listing is kept between the two, for the few directories that
 * are listed at the moment; one that was dropped is found again by its cookie.
 */
#include "config.h"

#include "fs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void dir_cache_init(struct dir_cache *c)
{
	*c = (struct dir_cache){ 0 };
	(void)pthread_mutex_init(&c->lock, NULL);
}

static void free_cursor(struct dir_cursor *cur)
{
	if (cur == NULL)
		return;
	incr_dir_iter_free(cur->iter);
	incr_node_release(&cur->node);
	free(cur);
}

void dir_cache_release(struct dir_cache *c)
{
	for (size_t i = 0; i < DIR_CACHE_SIZE; i++)
		free_cursor(c->items[i]);
	(void)pthread_mutex_destroy(&c->lock);
}

void dir_cache_purge(struct dir_cache *c, const struct view_slot *slot)
{
	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < DIR_CACHE_SIZE; i++) {
		if (c->items[i] != NULL && c->items[i]->slot == slot) {
			free_cursor(c->items[i]);
			c->items[i] = NULL;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
}

static struct dir_cursor *take_cursor(struct dir_cache *c, fuse_ino_t id,
				      uint64_t cookie)
{
	struct dir_cursor *found = NULL;

	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < DIR_CACHE_SIZE && found == NULL; i++) {
		if (c->items[i] != NULL && c->items[i]->id == id &&
		    c->items[i]->cookie == cookie) {
			found = c->items[i];
			c->items[i] = NULL;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

/* Keep @cur, which is taken, in place of the one that was used longest ago. */
static void put_cursor(struct dir_cache *c, struct dir_cursor *cur)
{
	struct dir_cursor *old;
	size_t at = 0;

	(void)pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < DIR_CACHE_SIZE && c->items[at] != NULL; i++) {
		if (c->items[i] == NULL ||
		    c->items[i]->stamp < c->items[at]->stamp)
			at = i;
	}
	old = c->items[at];
	cur->stamp = ++c->stamp;
	c->items[at] = cur;
	(void)pthread_mutex_unlock(&c->lock);
	free_cursor(old);
}

static int new_cursor(struct view_slot *slot, fuse_ino_t id,
		      const struct incr_node *dir, uint64_t cookie,
		      struct dir_cursor **out_cursor, struct incr_error *err)
{
	struct dir_cursor *cur = calloc(1, sizeof(*cur));
	uint64_t place = UINT64_MAX;
	uint8_t depth = 0;
	int r;

	if (cur == NULL)
		return INCR_E_NOMEM;
	cur->slot = slot;
	cur->id = id;
	cur->cookie = cookie;
	cur->dir_length = dir->path_length == 0 ? 0 : dir->path_length + 1;
	if (cookie >= INODE_COOKIE_FIRST)
		inode_from_cookie(cookie, &place, &depth);
	r = incr_dir_iter_new(slot->view, dir->path, dir->path_length, place,
			      depth, &cur->iter, err);
	if (r == INCR_E_NOTFOUND && dir->path_length == 0) {
		cur->is_at_end = true; /* a view without files */
		r = 0;
	}
	if (r < 0) {
		free(cur);
		return r;
	}
	*out_cursor = cur;
	return 0;
}

/* The cursor that goes on behind @cookie. */
static int get_cursor(struct incr_mount *m, struct view_slot *slot,
		      struct inode ino, uint64_t cookie,
		      struct dir_cursor **out_cursor, struct incr_error *err)
{
	fuse_ino_t id = inode_pack(slot->idx, ino.place, ino.depth);
	struct incr_node dir = INCR_NODE_INIT;
	int r;

	*out_cursor = take_cursor(&m->dirs, id, cookie);
	if (*out_cursor != NULL)
		return 0;
	r = view_fs_node(slot, ino, &dir, err);
	if (r == 0)
		r = new_cursor(slot, id, &dir, cookie, out_cursor, err);
	incr_node_release(&dir);
	return r;
}

/* Have cur->node be the next entry.  0, or 1 at the end. */
static int next_entry(struct dir_cursor *cur, struct incr_error *err)
{
	int r;

	if (cur->has_node)
		return 0;
	if (cur->is_at_end)
		return 1;
	r = incr_dir_iter_next(cur->iter, &cur->node, err);
	cur->has_node = r == 0;
	cur->is_at_end = r == 1;
	return r;
}

/* Fill @b; the number of entries goes to *out_n. */
static int fill(struct incr_mount *m, struct dir_cursor *cur,
		struct dir_buffer *b, uint64_t *out_n, struct incr_error *err)
{
	struct fuse_entry_param e;
	uint64_t cookie;
	int r;

	*out_n = 0;
	for (;;) {
		r = next_entry(cur, err);
		if (r != 0)
			break;
		view_fs_entry(m, cur->slot, &cur->node, &e);
		cookie = inode_cookie(cur->node.place,
				      inode_unpack(e.ino).depth);
		if (!dir_buffer_add(b, cur->node.path + cur->dir_length, &e,
				    cookie))
			break;
		cur->cookie = cookie;
		cur->has_node = false;
		++*out_n;
	}
	/* What was found before an error is told; the next request meets it. */
	return r > 0 || b->used > 0 ? 0 : r;
}

void view_fs_readdir(struct incr_mount *m, fuse_req_t req,
		     struct view_slot *slot, struct inode ino,
		     const struct dir_request *dr)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct dir_cursor *cur = NULL;
	struct dir_buffer b;
	uint64_t n = 0, self = inode_pack(slot->idx, ino.place, ino.depth);
	int r;

	r = dir_buffer_init(&b, req, dr);
	if (r == 0)
		r = get_cursor(m, slot, ino, dr->off, &cur, &err);
	if (r == 0 && dir_buffer_add_dots(&b, dr->off, self))
		r = fill(m, cur, &b, &n, &err);
	if (r == 0) {
		if (dr->has_attrs)
			view_slot_get(m, slot, n);
		if (cur->cookie < INODE_COOKIE_DOTDOT && b.used > 0)
			cur->cookie = INODE_COOKIE_DOTDOT;
		put_cursor(&m->dirs, cur);
		dir_buffer_reply(&b);
	} else {
		free_cursor(cur);
		fs_reply_error(m, req, r, &err);
	}
	dir_buffer_release(&b);
	incr_error_release(&err);
}
