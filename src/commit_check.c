/*
 * What a transaction does to the view it lands on: collisions of an APPEND,
 * paths that cannot stand beside each other, and the new totals.  Costs a few
 * look-ups for each path of the transaction, whatever the size of the view.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit.h"
#include "error.h"
#include "view.h"

struct check {
	struct incr_store *st;
	struct commit_item *item;
	struct incr_error *err;
	struct incr_view *view;
	struct view_walk walk;
	uint64_t files, size; /* of the view, as it becomes */
	char good_dir[NAME_PATH_MAX +
		      1]; /* no file stands where this directory does */
	size_t good_length;
	size_t n_collisions;
};

static void note_collision(struct check *c, const struct manifest_entry *e)
{
	const char *word = c->item->collision_word;

	if (!c->n_collisions++) {
		incr_fail(c->err, INCR_E_CONFLICT,
			  word ? word : "append-collision", NULL,
			  "an append may not touch paths that exist");
		incr_hint(c->err, "use --type update to replace them");
	}
	incr_fail_add_path(c->err, e->path, e->path_length);
}

static int path_conflict(struct check *c, const struct manifest_entry *e)
{
	char path[512];

	name_escape(e->path, e->path_length, path, sizeof(path));
	return incr_fail(c->err, INCR_E_CONFLICT, "path-conflict", path,
			 "a path may not be a file and a directory at once");
}

/* A file that an earlier part of the same commit removes is in nobody's way. */
static bool is_gone(const struct check *c, const char *path, size_t length)
{
	struct table_entry e;

	return c->item->gone &&
	       memtable_get(c->item->gone, path, length, &e) == 0;
}

/* Is there a file where the path needs a directory? */
static int check_parents(struct check *c, const struct manifest_entry *e)
{
	size_t dir = e->path_length;

	while (dir && e->path[dir - 1] != '/')
		dir--;
	if (!dir ||
	    (dir == c->good_length && !memcmp(c->good_dir, e->path, dir)))
		return 0;
	for (size_t i = 1; i < dir; i++) {
		int r;

		if (e->path[i] != '/')
			continue;
		r = view_walk_find(&c->walk, e->path, i, c->err);
		if (r < 0 || (r == 0 && !is_gone(c, e->path, i)))
			return r < 0 ? r : path_conflict(c, e);
	}
	memcpy(c->good_dir, e->path, dir);
	c->good_length = dir;
	return 0;
}

/* Is there a directory where the path needs a file? */
static int check_below(struct check *c, const struct manifest_entry *e)
{
	char below[NAME_PATH_MAX + 1];
	int r;

	memcpy(below, e->path, e->path_length);
	below[e->path_length] = '/';
	r = view_walk_seek(&c->walk, below, e->path_length + 1, c->err);
	while (r == 0 && c->walk.path_length > e->path_length &&
	       !memcmp(c->walk.path, below, e->path_length + 1)) {
		if (!is_gone(c, c->walk.path, c->walk.path_length))
			return path_conflict(c, e);
		r = view_walk_next(&c->walk, c->err);
	}
	return r < 0 ? r : 0;
}

static int check_put(struct check *c, const struct manifest_entry *e)
{
	struct version old;
	int r = view_walk_find(&c->walk, e->path, e->path_length, c->err);

	if (r < 0)
		return r;
	if (r == 1) {
		c->files++;
		c->size += e->content.size;
		r = check_parents(c, e);
		return r < 0 ? r : check_below(c, e);
	}
	if (c->item->type == INCR_APPEND) {
		note_collision(c, e);
		return 0;
	}
	r = view_walk_version(&c->walk, &old, c->err);
	if (r < 0)
		return r;
	c->size += e->content.size - old.content.size;
	version_release(&old);
	return 0;
}

static int check_remove(struct check *c, const struct manifest_entry *e)
{
	struct version old;
	int r = view_walk_find(&c->walk, e->path, e->path_length, c->err);

	if (r)
		return r < 0 ? r :
			       0; /* a path that is not there: nothing to take away */
	r = view_walk_version(&c->walk, &old, c->err);
	if (r < 0)
		return r;
	c->files--;
	c->size -= old.content.size;
	version_release(&old);
	return 0;
}

static int check_entries(struct check *c)
{
	const struct ingest_result *content = c->item->content;
	struct manifest_reader *m;
	const struct manifest_entry *e;
	int r = ingest_result_entries(content, c->st->reader, &m, c->err);

	if (r < 0)
		return r;
	while ((r = manifest_reader_next(m, &e, c->err)) == 0) {
		r = e->op == MANIFEST_PUT ? check_put(c, e) :
					    check_remove(c, e);
		if (r < 0)
			break;
	}
	manifest_reader_free(m);
	return r < 0 ? r : 0;
}

int commit_check(struct incr_store *st, struct commit_item *item, uint64_t head,
		 struct incr_error *err)
{
	struct check c = { .st = st, .item = item, .err = err };
	int r;

	/* where there is nothing, nothing collides either */
	if (item->type == INCR_SNAPSHOT || (!head && !item->before)) {
		item->effect = (struct commit_effect){ true, head,
						       item->content->n_put,
						       item->content->size };
		return 0;
	}
	r = incr_view_open(st, item->dataset_id, head, &c.view, err);
	if (r < 0)
		return r;
	c.files = c.view->n_files;
	c.size = c.view->size;
	r = view_walk_init(&c.walk, c.view, err);
	if (r == 0)
		r = check_entries(&c);
	if (r == 0 && c.n_collisions)
		r = INCR_E_CONFLICT;
	if (item->before) {
		/* the paths are disjoint: what both do adds up */
		c.files += item->before->effect.view_files - c.view->n_files;
		c.size += item->before->effect.view_size - c.view->size;
	}
	view_walk_release(&c.walk);
	incr_view_unref(c.view);
	if (r == 0)
		item->effect =
			(struct commit_effect){ true, head, c.files, c.size };
	return r;
}
