/*
 * Pushing neighbours into the page cache.
 *
 * Storing pages waits for a page that a reader has locked, until the read is
 * answered.  So the thread that pushes never holds the token (another one reads
 * and answers), and only one thread pushes at a time: two that push could each
 * wait for a page whose request the other one has yet to answer.
 *
 * A run starts at the file that was asked for and goes on in path order.  All
 * that lies in the same frame is pushed, since it is decoded anyway.  When the
 * file is the one at which the last run of the view stopped, somebody reads the
 * files in order: the window grows, over following frames.
 */
#include "config.h"

#include "fs.h"
#include "push.h"

#include <errno.h>

#define FIRST_WINDOW 8
#define MAX_WINDOW 256
#define MAX_UNKNOWN 4 /* in a row: nobody listed this directory */

void push_init(struct push *p)
{
	(void)pthread_mutex_init(&p->lock, NULL);
}

void push_release(struct push *p)
{
	(void)pthread_mutex_destroy(&p->lock);
}

static unsigned int next_window(struct view_slot *slot,
				const struct incr_node *file)
{
	unsigned int window = FIRST_WINDOW;

	if (atomic_load(&slot->next_place) == file->place) {
		window = 2 * atomic_load(&slot->window);
		if (window > MAX_WINDOW)
			window = MAX_WINDOW;
	}
	atomic_store(&slot->window, window);
	return window;
}

bool push_begin(struct push_run *run, struct incr_mount *m,
		struct view_slot *slot, const struct incr_node *file)
{
	if (pthread_mutex_trylock(&m->push.lock) != 0)
		return false;
	*run = (struct push_run){ .mount = m, .slot = slot };
	run->node = INCR_NODE_INIT;
	if (incr_view_iter_new(slot->view, file->path, file->path_length,
			       &run->iter, NULL) < 0) {
		(void)pthread_mutex_unlock(&m->push.lock);
		return false;
	}
	run->window = next_window(slot, file);
	serve_yield(&m->serve);
	/* The file itself is answered, not pushed. */
	if (incr_view_iter_next(run->iter, &run->node, NULL) != 0 ||
	    incr_file_frame(slot->view, &run->node, &run->frame, NULL) != 0) {
		push_end(run);
		return false;
	}
	run->has_frame = true;
	return true;
}

/* Have run->frame be the frame of run->node.  False: the run ends before it. */
static bool turn_frame(struct push_run *run)
{
	uint64_t id;
	uint32_t off;

	if (incr_file_frame_id(&run->node, &id, &off) != 0)
		return false;
	if (run->has_frame && run->frame.id == id) {
		run->frame.off = off;
		return run->n_pushed < MAX_WINDOW;
	}
	if (run->n_pushed >= run->window)
		return false;
	if (run->has_frame)
		incr_frame_put(run->slot->view, &run->frame);
	/* What is damaged is not pushed: whoever reads it learns it. */
	run->has_frame = incr_file_frame(run->slot->view, &run->node,
					 &run->frame, NULL) == 0;
	return run->has_frame;
}

/* Push run->node.  False: the kernel takes no more. */
static bool push_node(struct push_run *run)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(run->node.size);
	fuse_ino_t id = inode_pack(run->slot->idx, run->node.place, 0);
	int r;

	if (run->frame.off > run->frame.raw_size ||
	    run->node.size > run->frame.raw_size - run->frame.off)
		return false;
	data.buf[0].mem = (void *)(run->frame.data + run->frame.off);
	r = fuse_lowlevel_notify_store(run->mount->se, id, 0, &data, 0);
	if (r == -ENOENT)
		return ++run->n_unknown < MAX_UNKNOWN;
	run->n_unknown = 0;
	return r == 0;
}

bool push_some(struct push_run *run, unsigned int n)
{
	while (run->n_pushed < n) {
		if (incr_view_iter_next(run->iter, &run->node, NULL) != 0)
			return false;
		if (run->node.size == 0)
			continue;
		if (!turn_frame(run)) {
			atomic_store(&run->slot->next_place, run->node.place);
			return false;
		}
		if (!push_node(run))
			return false;
		run->n_pushed++;
	}
	return true;
}

void push_end(struct push_run *run)
{
	if (run->has_frame)
		incr_frame_put(run->slot->view, &run->frame);
	incr_view_iter_free(run->iter);
	incr_node_release(&run->node);
	(void)pthread_mutex_unlock(&run->mount->push.lock);
}
