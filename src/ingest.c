/*
 * Ingest from the outside: collect sources, run the pipeline, hand out what
 * came of it.  A failure at any point leaves no pack behind; a pack that is
 * handed out is durable.
 */
#include "config.h"

#include "ingest.h"

#include "error.h"
#include "ingest_parts.h"

#include <stdlib.h>

struct ingest {
	struct ingest_options options;
	struct source_walk *walk; /* owned */
	bool leaves_out; /* the store, of trees */
};

int ingest_new(const struct ingest_options *options, struct ingest **out_ingest,
	       struct incr_error *err)
{
	struct ingest *g;

	g = calloc(1, sizeof(*g));
	if (!g)
		return incr_fail_nomem(err);

	g->options = *options;
	g->options.seen = ingest_seen_new();
	if (!g->options.seen ||
	    source_walk_new(options->io, options->skips_special, &g->walk) <
		    0) {
		ingest_seen_free(g->options.seen);
		free(g);
		return incr_fail_nomem(err);
	}
	*out_ingest = g;
	return 0;
}

void ingest_free(struct ingest *g)
{
	if (!g)
		return;

	source_walk_free(g->walk);
	ingest_seen_free(g->options.seen);
	free(g);
}

int ingest_add_tree(struct ingest *g, int dirfd, const char *path,
		    const char *prefix, struct incr_error *err)
{
	const struct ingest_options *o = &g->options;
	struct io_stat store;
	int r;

	if (!g->leaves_out) {
		r = o->io->stat_at(o->io, o->store_dirfd, "", &store);
		if (r < 0)
			return incr_fail_errno(err, -r, NULL,
					       "cannot stat the store");
		source_walk_leave_out(g->walk, &store);
		g->leaves_out = true;
	}
	return source_walk_add_tree(g->walk, dirfd, path, prefix, err);
}

int ingest_add_file(struct ingest *g, int dirfd, const char *path,
		    const char *name, struct incr_error *err)
{
	return source_walk_add_file(g->walk, dirfd, path, name, err);
}

int ingest_add_stream(struct ingest *g, int fd, const char *name,
		      struct incr_error *err)
{
	return source_walk_add_stream(g->walk, fd, name, err);
}

int ingest_add_removal(struct ingest *g, const char *path, size_t length,
		       struct incr_error *err)
{
	return source_walk_add_removal(g->walk, path, length, err);
}

static int read_sources(struct ingest *g, struct ingest_reader *reader,
			struct incr_error *err)
{
	const struct source_entry *e;
	int r;

	while ((r = source_walk_next(g->walk, &e, err)) == 0) {
		r = ingest_reader_add(reader, e, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : ingest_reader_flush(reader);
}

static int run_pipe(struct ingest *g, struct ingest_sink *sink,
		    struct incr_error *err)
{
	struct incr_error own = INCR_ERROR_INIT;
	struct ingest_reader reader = { .options = &g->options };
	int r = ingest_pipe_new(&g->options, sink, &reader.pipe);

	if (r < 0)
		return incr_fail_nomem(err);

	r = read_sources(g, &reader, &own);
	if (r < 0)
		ingest_pipe_fail(reader.pipe, r, &own);
	r = ingest_pipe_finish(reader.pipe, err);
	ingest_pipe_free(reader.pipe);
	ingest_reader_release(&reader);
	return r;
}

int ingest_run(struct ingest *g, struct ingest_result *out_result,
	       struct incr_error *err)
{
	struct ingest_sink sink = { .options = &g->options };
	int r = ingest_sink_start(&sink, err);

	if (r == 0)
		r = run_pipe(g, &sink, err);
	if (r == 0)
		r = ingest_sink_finish(&sink, out_result, err);
	ingest_sink_release(&sink);
	return r;
}

int ingest_result_entries(const struct ingest_result *r,
			  struct content_reader *reader,
			  struct manifest_reader **out_entries,
			  struct incr_error *err)
{
	int result;

	if (r->is_inline)
		result = manifest_reader_new_memory(
			r->manifest.data, r->manifest.size, 0, out_entries);
	else
		result = manifest_reader_new_content(
			reader, &r->manifest_content, out_entries);
	return result < 0 ? incr_fail_nomem(err) : 0;
}

void ingest_result_release(struct ingest_result *r)
{
	buf_release(&r->manifest);
	buf_release(&r->inline_frames);
	content_release(&r->manifest_content);
	claim_release(&r->pack_claim);
}

void ingest_result_discard(const struct ingest_options *options,
			   struct ingest_result *r)
{
	char path[PACK_PATH_SIZE];

	if (!r->is_inline && r->pack_id && !r->is_recorded) {
		/* What cannot be removed is no one's: a repair takes it. */
		pack_path(r->pack_id, path);
		(void)options->io->unlink_at(options->io, options->store_dirfd,
					     path, 0);
	}
	ingest_result_release(r);
	*r = (struct ingest_result){ .is_inline = true };
}
