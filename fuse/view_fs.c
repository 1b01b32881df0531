/*
 * Read-only views: lookup, attributes, reading.
 *
 * Since a view never changes, the kernel may keep all it was told: attributes,
 * entries, absent names, directories and pages.
 */
#include "config.h"

#include "fs.h"
#include "view_fs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PUSH_FIRST 16 /* neighbours pushed before the answer */
#define MAX_AROUND 16384 /* bytes of a read whose frame is pushed */
#define DIR_MODE (S_IFDIR | 0555)

int view_fs_node(struct view_slot *slot, struct inode ino,
		 struct incr_node *out_node, struct incr_error *err)
{
	int r;

	if (ino.depth != INODE_ROOT_DEPTH)
		return incr_view_at(slot->view, ino.place, ino.depth, out_node,
				    err);
	r = incr_view_find(slot->view, "", 0, out_node, err);
	if (r <= 0)
		return r;
	/* A view without files has no root; we show one. */
	*out_node = INCR_NODE_INIT;
	out_node->is_dir = true;
	out_node->path = strdup("");
	return out_node->path == NULL ? INCR_E_NOMEM : 0;
}

/*
 * A file has the same number in all views; a directory has not, since programs
 * that compare two trees take directories of one number for equal.
 */
static void fill_stat(const struct incr_mount *m, const struct view_slot *slot,
		      const struct incr_node *node, struct stat *st)
{
	if (node->is_dir)
		fs_fill_stat(m, st, inode_mix(node->stable_id, slot->salt),
			     DIR_MODE, 0, slot->dir_time);
	else
		fs_fill_stat(m, st, node->stable_id,
			     S_IFREG | (node->mode & 0777), node->size,
			     fs_timespec(node->mtime_ns));
}

void view_fs_entry(struct incr_mount *m, struct view_slot *slot,
		   const struct incr_node *node, struct fuse_entry_param *e)
{
	*e = (struct fuse_entry_param){
		.ino = inode_pack(slot->idx, node->place,
				  node->is_dir ? node->depth : 0),
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	fill_stat(m, slot, node, &e->attr);
}

void view_fs_root_entry(struct incr_mount *m, struct view_slot *slot,
			struct fuse_entry_param *e)
{
	struct incr_node root = { .is_dir = true };

	view_fs_entry(m, slot, &root, e);
	e->ino = inode_pack(slot->idx, 0, INODE_ROOT_DEPTH);
}

static void reply_entry(struct incr_mount *m, fuse_req_t req,
			struct view_slot *slot, const struct incr_node *node)
{
	struct fuse_entry_param e;

	view_fs_entry(m, slot, node, &e);
	view_slot_get(m, slot, 1);
	if (fuse_reply_entry(req, &e) != 0)
		view_slot_put(m, slot, 1);
}

static void reply_absent(fuse_req_t req)
{
	struct fuse_entry_param e = { .entry_timeout = FOREVER };

	(void)fuse_reply_entry(req, &e);
}

/* DIR/NAME, or NAME in the root; owned; NULL without memory. */
static char *join(const struct incr_node *dir, const char *name, size_t length)
{
	char *path = malloc(dir->path_length + 1 + length + 1), *at = path;

	if (path == NULL)
		return NULL;
	if (dir->path_length > 0) {
		memcpy(at, dir->path, dir->path_length);
		at += dir->path_length;
		*at++ = '/';
	}
	memcpy(at, name, length + 1);
	return path;
}

void view_fs_lookup(struct incr_mount *m, fuse_req_t req,
		    struct view_slot *slot, struct inode ino, const char *name)
{
	struct incr_node dir = INCR_NODE_INIT, node = INCR_NODE_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	size_t length = strlen(name);
	char *path = NULL;
	int r;

	if (length > NAME_MAX) {
		(void)fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	r = view_fs_node(slot, ino, &dir, &err);
	if (r == 0) {
		path = join(&dir, name, length);
		r = path == NULL ? INCR_E_NOMEM :
				   incr_view_find(slot->view, path,
						  strlen(path), &node, &err);
	}
	if (r == 0)
		reply_entry(m, req, slot, &node);
	else if (r > 0)
		reply_absent(req);
	else
		fs_reply_error(m, req, r, &err);
	free(path);
	incr_node_release(&dir);
	incr_node_release(&node);
	incr_error_release(&err);
}

void view_fs_getattr(struct incr_mount *m, fuse_req_t req,
		     struct view_slot *slot, struct inode ino)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	struct stat st;
	int r;

	r = view_fs_node(slot, ino, &node, &err);
	if (r == 0) {
		fill_stat(m, slot, &node, &st);
		(void)fuse_reply_attr(req, &st, FOREVER);
	} else {
		fs_reply_error(m, req, r, &err);
	}
	incr_node_release(&node);
	incr_error_release(&err);
}

/* Answer from the frame that holds the file, then push its neighbours. */
static void reply_frame(struct incr_mount *m, fuse_req_t req,
			struct view_slot *slot, const struct incr_node *node,
			const struct incr_frame_ref *frame,
			const struct read_request *rr)
{
	struct push_run run;
	bool is_pushing;
	size_t size = 0;

	if (rr->off < node->size)
		size = node->size - rr->off;
	if (size > rr->size)
		size = rr->size;
	is_pushing = push_begin(&run, m, slot, node);
	if (is_pushing && !run.is_ahead && !push_some(&run, PUSH_FIRST)) {
		push_end(&run);
		is_pushing = false;
	}
	(void)fuse_reply_buf(
		req, (const char *)frame->data + frame->off + rr->off, size);
	if (is_pushing) {
		while (push_some(&run, run.n_pushed + PUSH_FIRST))
			;
		push_end(&run);
	}
}

/*
 * A small read out of order in a large file: a whole frame was decoded for it,
 * so that what lies around goes to the kernel too.  False: not done.
 */
static bool reply_around(struct incr_mount *m, fuse_req_t req,
			 struct view_slot *slot, const struct incr_node *node,
			 const struct read_request *rr)
{
	struct incr_frame_ref frame;
	bool is_whole;

	if (rr->size > MAX_AROUND ||
	    incr_file_frame_at(slot->view, node, rr->off, &frame, NULL) != 0)
		return false;
	is_whole = rr->size <= frame.raw_size - frame.off;
	if (is_whole) {
		/* With the answer the kernel may forget the view. */
		view_slot_get(m, slot, 1);
		(void)fuse_reply_buf(req, (const char *)frame.data + frame.off,
				     rr->size);
		push_around(m, slot, node, &frame, rr->off, rr->size);
	}
	incr_frame_put(slot->view, &frame);
	if (is_whole)
		view_slot_put(m, slot, 1);
	return is_whole;
}

static void reply_bytes(struct incr_mount *m, fuse_req_t req,
			struct view_slot *slot, const struct incr_node *node,
			const struct read_request *rr)
{
	struct incr_error err = INCR_ERROR_INIT;
	size_t size;
	void *data;
	int r;

	serve_yield(&m->serve);
	if (!ahead_note(&m->ahead, slot->view, node, rr->off, rr->size) &&
	    reply_around(m, req, slot, node, rr))
		return;
	data = serve_buffer(&m->serve, rr->size);
	if (data == NULL) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	r = incr_file_read(slot->view, node, rr->off, data, rr->size, &size,
			   &err);
	if (r == 0)
		(void)fuse_reply_buf(req, data, size);
	else
		fs_reply_unreadable(m, req, node, r, &err);
	incr_error_release(&err);
}

void view_fs_read(struct incr_mount *m, fuse_req_t req, struct view_slot *slot,
		  struct inode ino, const struct read_request *rr)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_frame_ref frame;
	struct incr_error err = INCR_ERROR_INIT;
	int r;

	r = view_fs_node(slot, ino, &node, &err);
	if (r == 0 && node.is_dir) {
		(void)fuse_reply_err(req, EISDIR);
	} else if (r == 0) {
		r = incr_file_frame(slot->view, &node, &frame, &err);
		if (r == 0) {
			/* With the answer the kernel may forget the view. */
			view_slot_get(m, slot, 1);
			reply_frame(m, req, slot, &node, &frame, rr);
			incr_frame_put(slot->view, &frame);
			view_slot_put(m, slot, 1);
		} else if (r > 0) {
			reply_bytes(m, req, slot, &node, rr);
		} else {
			fs_reply_unreadable(m, req, &node, r, &err);
		}
	} else {
		fs_reply_error(m, req, r, &err);
	}
	incr_node_release(&node);
	incr_error_release(&err);
}
