/*
 * Listing one directory of a view.  Files come one by one; of a subdirectory
 * the first file is looked at and the rest is jumped over, so that a listing
 * costs what the directory holds, not what lies below it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "view.h"

struct incr_dir_iter {
	struct view_walk walk;
	char prefix[NAME_PATH_MAX +
		    2]; /* the directory and a slash; empty for the root */
	size_t prefix_length;
	int state; /* what the last move of the walk returned */
	bool is_fresh; /* the walk stands at an entry that was not given yet */
	size_t skip_length; /* the last entry was a directory with a path of this length; 0: a file */
};

/* Where a listing goes on behind the entry @path. */
static int seek_behind(struct incr_dir_iter *it, const char *path,
		       size_t length, bool is_dir, struct incr_error *err)
{
	char from[NAME_PATH_MAX + 2];

	memcpy(from, path, length);
	/* '0' follows '/'; and no path has a byte below 1 */
	from[length] = is_dir ? '0' : '\1';
	return view_walk_seek(&it->walk, from, length + 1, err);
}

static int start(struct incr_dir_iter *it, uint64_t after_place,
		 uint8_t after_depth, struct incr_error *err)
{
	struct incr_node node = INCR_NODE_INIT;
	int r;

	if (after_place == UINT64_MAX) {
		it->state = view_walk_seek(&it->walk, it->prefix,
					   it->prefix_length, err);
		return it->state;
	}
	r = incr_view_at(it->walk.view, after_place, after_depth, &node, err);
	if (r == 0)
		it->state = r = seek_behind(it, node.path, node.path_length,
					    node.is_dir, err);
	incr_node_release(&node);
	return r;
}

static bool is_below(const struct incr_dir_iter *it)
{
	return it->walk.path_length > it->prefix_length &&
	       !memcmp(it->walk.path, it->prefix, it->prefix_length);
}

int incr_dir_iter_new(struct incr_view *v, const char *dir, size_t length,
		      uint64_t after_place, uint8_t after_depth,
		      struct incr_dir_iter **out_iter, struct incr_error *err)
{
	struct incr_dir_iter *it;
	int r;

	if (length > NAME_PATH_MAX)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-path", NULL,
				 "no such directory");
	it = calloc(1, sizeof(*it));
	if (!it)
		return incr_fail_nomem(err);
	memcpy(it->prefix, dir, length);
	it->prefix_length = length;
	if (length)
		it->prefix[it->prefix_length++] = '/';
	r = view_walk_init(&it->walk, v, err);
	if (r < 0) {
		free(it);
		return r;
	}
	incr_view_ref(v);
	r = start(it, after_place, after_depth, err);
	if (r >= 0 && after_place == UINT64_MAX && length &&
	    (r == 1 || !is_below(it)))
		r = incr_fail(err, INCR_E_NOTFOUND, "no-such-path", dir,
			      "no such directory");
	if (r < 0) {
		incr_dir_iter_free(it);
		return r;
	}
	it->is_fresh = true;
	*out_iter = it;
	return 0;
}

static int advance(struct incr_dir_iter *it, struct incr_error *err)
{
	if (!it->skip_length)
		return view_walk_next(&it->walk, err);
	/* the walk's path is gone once it moves: its last_path is a copy */
	return seek_behind(it, (const char *)it->walk.last_path,
			   it->skip_length, true, err);
}

int incr_dir_iter_next(struct incr_dir_iter *it, struct incr_node *node,
		       struct incr_error *err)
{
	const char *slash;

	if (it->state)
		return it->state;
	if (!it->is_fresh)
		it->state = advance(it, err);
	it->is_fresh = false;
	if (it->state)
		return it->state;
	if (!is_below(it)) {
		it->state = 1;
		return 1;
	}
	slash = memchr(it->walk.path + it->prefix_length, '/',
		       it->walk.path_length - it->prefix_length);
	it->skip_length = slash ? (size_t)(slash - it->walk.path) : 0;
	if (slash)
		return view_walk_directory(&it->walk, it->skip_length, node,
					   err);
	return view_walk_node(&it->walk, node, err);
}

void incr_dir_iter_free(struct incr_dir_iter *it)
{
	if (!it)
		return;
	incr_view_unref(it->walk.view);
	view_walk_release(&it->walk);
	free(it);
}
