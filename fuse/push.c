/*
 * Pushing neighbours into the page cache.
 *
 * Storing pages waits for a page that a reader has locked, until the read is
 * answered.  So the thread that pushes never holds the token (another one reads
 * and answers), and only one thread pushes at a time: two that push could each
 * wait for a page whose request the other one has yet to answer.
 *
 * A run goes on in path order behind the file that was asked for.  All that
 * lies in the same frame is pushed, since it is decoded anyway.  Who reads the
 * files in order gets a longer run each time, over following frames.
 *
 * Two things keep a run ahead of its reader.  One file of each run, the mark, is
 * left out: when the reader asks for it, the next run begins while there is
 * still something left of this one.  And when the reader has caught up with a
 * run, it would stay beside it, asking for each file that is just being pushed;
 * then the run leaves out some files and gets ahead again.
 */
#include "config.h"

#include "fs.h"
#include "push.h"

#include <errno.h>

#define FIRST_WINDOW 8
#define MAX_WINDOW 256
#define MAX_UNKNOWN 4 /* in a row: nobody listed this directory */
#define LEAP 8 /* files left out to get ahead of the reader */

void push_init(struct push *p)
{
	(void)pthread_mutex_init(&p->lock, NULL);
}

void push_release(struct push *p)
{
	(void)pthread_mutex_destroy(&p->lock);
}

/* The stream that @place goes on with; else the one not used for longest. */
static struct push_stream *find_stream(struct push_streams *s, uint64_t place)
{
	struct push_stream *oldest = &s->items[0], *found = NULL;

	for (size_t i = 0; i < PUSH_N_STREAMS && found == NULL; i++) {
		struct push_stream *each = &s->items[i];

		if (each->stamp != 0 &&
		    (each->next == place || each->mark == place))
			found = each;
		if (each->stamp < oldest->stamp)
			oldest = each;
	}
	if (found == NULL) {
		found = oldest;
		*found = (struct push_stream){ .next = place };
	}
	found->stamp = ++s->stamp;
	return found;
}

/* From where the run goes on: behind @file, or where the last one ended. */
static int start_iter(struct push_run *run, const struct incr_node *file)
{
	struct incr_view *view = run->slot->view;
	int r = 0;

	if (!run->is_ahead)
		return incr_view_iter_new(view, file->path, file->path_length,
					  &run->iter, NULL);
	r = incr_view_at(view, run->stream->next, 0, &run->node, NULL);
	if (r == 0)
		r = incr_view_iter_new(view, run->node.path,
				       run->node.path_length, &run->iter, NULL);
	return r;
}

bool push_begin(struct push_run *run, struct incr_mount *m,
		struct view_slot *slot, const struct incr_node *file)
{
	struct push_stream *stream;
	int r;

	if (pthread_mutex_trylock(&m->push.lock) != 0) {
		atomic_store(&slot->asked, file->place);
		return false;
	}
	stream = find_stream(&slot->streams, file->place);
	stream->window = stream->window == 0 ? FIRST_WINDOW :
					       2 * stream->window;
	if (stream->window > MAX_WINDOW)
		stream->window = MAX_WINDOW;
	*run = (struct push_run){
		.mount = m,
		.slot = slot,
		.stream = stream,
		.is_ahead = stream->next != file->place,
		.node = INCR_NODE_INIT,
	};
	stream->mark = UINT64_MAX;
	serve_yield(&m->serve);
	r = start_iter(run, file);
	/* The file itself is answered, not pushed. */
	if (r == 0 && !run->is_ahead) {
		r = incr_view_iter_next(run->iter, &run->node, NULL);
		if (r == 0)
			r = incr_file_frame(slot->view, &run->node, &run->frame,
					    NULL);
		run->has_frame = r == 0;
	}
	if (r != 0)
		push_end(run);
	return r == 0;
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
	if (run->n_pushed >= run->stream->window)
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

/* Is run->node to be left out? */
static bool is_left_out(struct push_run *run)
{
	if (atomic_load(&run->slot->asked) == run->node.place)
		run->n_to_leap = LEAP + 1; /* with the one that was asked for */
	if (run->n_to_leap > 0) {
		run->n_to_leap--;
		return true;
	}
	if (run->stream->mark == UINT64_MAX &&
	    run->n_pushed >= run->stream->window / 2) {
		run->stream->mark = run->node.place;
		return true;
	}
	return false;
}

bool push_some(struct push_run *run, unsigned int n)
{
	while (run->n_pushed < n) {
		if (incr_view_iter_next(run->iter, &run->node, NULL) != 0)
			return false;
		if (run->node.size == 0)
			continue;
		if (!turn_frame(run)) {
			run->stream->next = run->node.place;
			return false;
		}
		if (!is_left_out(run) && !push_node(run))
			return false;
		/* Asked for while the page was waited for? */
		if (atomic_load(&run->slot->asked) == run->node.place)
			run->n_to_leap = LEAP;
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

/* Push @size bytes of a file at @off. */
static void push_bytes(struct incr_mount *m, fuse_ino_t id, uint64_t off,
		       const uint8_t *bytes, size_t size)
{
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(size);

	data.buf[0].mem = (void *)bytes;
	if (size > 0)
		(void)fuse_lowlevel_notify_store(m->se, id, (off_t)off, &data,
						 0);
}

void push_around(struct incr_mount *m, struct view_slot *slot,
		 const struct incr_node *file,
		 const struct incr_frame_ref *frame, uint64_t off, size_t size)
{
	fuse_ino_t id = inode_pack(slot->idx, file->place, 0);

	if (pthread_mutex_trylock(&m->push.lock) != 0)
		return;
	serve_yield(&m->serve);
	push_bytes(m, id, off - frame->off, frame->data, frame->off);
	push_bytes(m, id, off + size, frame->data + frame->off + size,
		   frame->raw_size - frame->off - size);
	(void)pthread_mutex_unlock(&m->push.lock);
}
