/*
 * Sources into jobs: opening, leasing, reading once, and making sure that what
 * was read is one state of the file.
 */
#include "config.h"

#include "ingest_parts.h"

#include "error.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define THING_SIZE 512
#define STREAM_MODE 0644

void ingest_reader_release(struct ingest_reader *r)
{
	hasher_free(r->hasher);
	buf_release(&r->mine);
	free(r->theirs);
}

int ingest_reader_flush(struct ingest_reader *r)
{
	if (!r->job)
		return 0;

	r->job = NULL;
	return ingest_pipe_push(r->pipe);
}

/* A job with room for one more item of @size bytes. */
static int need_job(struct ingest_reader *r, size_t path_length, size_t size)
{
	struct ingest_job *job = r->job;
	int result;

	if (job && (job->n_items == INGEST_JOB_ITEMS ||
		    job->raw_size + size > INGEST_JOB_SIZE ||
		    job->paths.size + path_length > INGEST_JOB_PATHS)) {
		result = ingest_reader_flush(r);
		if (result < 0)
			return result;
	}
	if (!r->job)
		r->job = ingest_pipe_take(r->pipe);
	return r->job ? 0 : INGEST_STOPPED;
}

int ingest_reader_item(struct ingest_reader *r,
		       const struct ingest_source *source, size_t size,
		       struct ingest_item **out_item, struct incr_error *err)
{
	const struct source_entry *e = source->e;
	struct ingest_item *item;
	int result = need_job(r, e->path_length, size);

	if (result < 0)
		return result;

	item = ingest_job_add(r->job, e->path, e->path_length);
	if (!item || ingest_job_reserve(r->job, size) < 0)
		return incr_fail_nomem(err);

	item->raw_off = (uint32_t)r->job->raw_size;
	item->entry.op = MANIFEST_PUT;
	item->entry.mode = source->st.mode & 0777;
	item->entry.mtime_ns = source->st.mtime_ns;
	*out_item = item;
	return 0;
}

int ingest_source_read(struct ingest_reader *r,
		       const struct ingest_source *source, uint64_t off,
		       uint8_t *data, size_t size, size_t *out_n,
		       struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	char thing[THING_SIZE];
	size_t done = 0;

	while (done < size) {
		int64_t n = source->is_stream ?
				    io->read(io, source->fd, data + done,
					     size - done) :
				    io->pread(io, source->fd, data + done,
					      size - done, off + done);

		if (n == -EINTR)
			continue;
		if (n < 0) {
			source_entry_describe(source->e, thing, sizeof(thing));
			return incr_fail_errno(err, (int)-n, thing,
					       "cannot read");
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*out_n = done;
	return 0;
}

static int fail_changed(const struct source_entry *e, const char *what,
			struct incr_error *err)
{
	char thing[THING_SIZE];

	source_entry_describe(e, thing, sizeof(thing));
	return source_fail_changed(err, thing, what);
}

int ingest_source_check(struct ingest_reader *r,
			const struct ingest_source *source,
			struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	const struct io_stat *st = &source->st;
	struct io_stat now;
	char thing[THING_SIZE];
	int result;

	if (source->is_stream)
		return 0;

	result = io->stat_at(io, source->fd, "", &now);
	if (result < 0) {
		source_entry_describe(source->e, thing, sizeof(thing));
		return incr_fail_errno(err, -result, thing, "cannot stat");
	}
	if (now.size != st->size)
		return fail_changed(source->e, "it has another size", err);
	if (now.mtime_ns != st->mtime_ns || now.ctime_ns != st->ctime_ns ||
	    now.inode != st->inode || now.device != st->device)
		return fail_changed(source->e, "it has another time", err);
	return 0;
}

/* Files of /proc have bytes but no size. */
static int check_empty(struct ingest_reader *r,
		       const struct ingest_source *source,
		       struct incr_error *err)
{
	char thing[THING_SIZE];
	uint8_t byte;
	size_t n;
	int result = ingest_source_read(r, source, 0, &byte, 1, &n, err);

	if (result < 0 || n == 0)
		return result;

	source_entry_describe(source->e, thing, sizeof(thing));
	result = incr_fail(err, INCR_E_INVALID, "no-size", thing,
			   "the file has bytes but does not tell its size");
	incr_hint(err, "cat %s | incrctl commit DATASET - --name PATH", thing);
	return result;
}

static int add_small(struct ingest_reader *r,
		     const struct ingest_source *source, struct incr_error *err)
{
	size_t size = (size_t)source->st.size, n = 0;
	struct ingest_item *item;
	int result;

	result = ingest_reader_item(r, source, size, &item, err);
	if (result < 0)
		return result;

	result = ingest_source_read(r, source, 0, r->job->raw + item->raw_off,
				    size, &n, err);
	if (result == 0 && n < size)
		return fail_changed(source->e, "it ends early", err);
	if (result == 0)
		result = ingest_source_check(r, source, err);
	if (result == 0 && size == 0)
		result = check_empty(r, source, err);
	if (result < 0)
		return result;

	item->entry.content.size = size;
	r->job->raw_size += size;
	return 0;
}

static int fail_open(const struct source_entry *e, int sys_errno,
		     struct incr_error *err)
{
	char thing[THING_SIZE];

	/* The walk saw a regular file here. */
	if (sys_errno == ELOOP || sys_errno == ENXIO ||
	    (sys_errno == ENOENT && e->root))
		return fail_changed(e, "it was replaced or removed", err);

	source_entry_describe(e, thing, sizeof(thing));
	return incr_fail_errno(err, sys_errno, thing, "cannot open");
}

/* A lease is a proof that no one can write the file while it is read. */
static int take_lease(struct ingest_reader *r, struct ingest_source *source,
		      struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	char thing[THING_SIZE];
	int result;

	if (!r->options->leases)
		return 0;

	result = io->lease(io, source->fd, true);
	if (result == -EAGAIN) {
		source_entry_describe(source->e, thing, sizeof(thing));
		return incr_fail(err, INCR_E_CONFLICT, "staging-busy", thing,
				 "a process can still write this file");
	}
	/* Without leases (file system, owner) the two stats must do. */
	source->has_lease = result == 0;
	return 0;
}

static int add_opened(struct ingest_reader *r, struct ingest_source *source,
		      struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	int result = io->stat_at(io, source->fd, "", &source->st);

	if (result < 0)
		return fail_open(source->e, -result, err);
	if (source->st.kind != IO_FILE)
		return fail_changed(source->e, "it was replaced", err);

	result = take_lease(r, source, err);
	if (result < 0)
		return result;

	result = source->st.size > INGEST_SMALL_MAX ?
			 ingest_reader_add_large(r, source, err) :
			 add_small(r, source, err);
	if (source->has_lease)
		(void)io->lease(io, source->fd, false); /* close does it too */
	return result;
}

static int add_file(struct ingest_reader *r, const struct source_entry *e,
		    struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	struct ingest_source source = { .e = e };
	int result;

	do {
		source.fd = io->open_at(io, e->dirfd, e->name,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
						O_NOCTTY | O_CLOEXEC,
					0);
	} while (source.fd == -EINTR);
	if (source.fd < 0)
		return fail_open(e, -source.fd, err);

	result = add_opened(r, &source, err);
	(void)io_close(io, source.fd); /* nothing was written */
	return result;
}

/* The stored version stands for a file that is known to equal it. */
static int add_known(struct ingest_reader *r, const struct source_entry *e,
		     const struct io_stat *st, struct incr_error *err)
{
	const struct ingest_source source = { .e = e, .fd = -1, .st = *st };
	struct manifest_entry stored;
	struct ingest_item *item;
	int result;

	if (r->options->drops_unchanged)
		return 0;

	result = r->options->find_stored(r->options->closure, e->path,
					 e->path_length, &stored, err);
	if (result)
		return result < 0 ? result : add_file(r, e, err);

	result = ingest_reader_item(r, &source, 0, &item, err);
	if (result < 0) {
		content_release(&stored.content);
		return result;
	}
	item->entry.content = stored.content;
	memcpy(item->entry.hash, stored.hash, sizeof(stored.hash));
	item->is_done = true;
	return 0;
}

static int add_judged(struct ingest_reader *r, const struct source_entry *e,
		      struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	enum ingest_verdict verdict;
	struct io_stat st;
	int result = io->stat_at(io, e->dirfd, e->name, &st);

	if (result < 0)
		return fail_open(e, -result, err);

	result = r->options->judge(r->options->closure, e->path, e->path_length,
				   &st, &verdict, err);
	if (result < 0 || verdict == INGEST_LEAVE_OUT)
		return result;
	return verdict == INGEST_KNOWN ? add_known(r, e, &st, err) :
					 add_file(r, e, err);
}

static int add_stream(struct ingest_reader *r, const struct source_entry *e,
		      struct incr_error *err)
{
	const struct incr_io *io = r->options->io;
	const struct ingest_source source = {
		.e = e,
		.fd = e->fd,
		.is_stream = true,
		.st = { .kind = IO_FILE,
			.mode = STREAM_MODE,
			.mtime_ns = io->now_ns(io) },
	};

	return ingest_reader_add_large(r, &source, err);
}

static int add_removal(struct ingest_reader *r, const struct source_entry *e,
		       struct incr_error *err)
{
	struct ingest_item *item;
	int result = need_job(r, e->path_length, 0);

	if (result < 0)
		return result;

	item = ingest_job_add(r->job, e->path, e->path_length);
	if (!item)
		return incr_fail_nomem(err);

	item->entry.op = MANIFEST_REMOVE;
	item->is_done = true;
	return 0;
}

int ingest_reader_add(struct ingest_reader *r, const struct source_entry *e,
		      struct incr_error *err)
{
	switch (e->kind) {
	case SOURCE_STREAM:
		return add_stream(r, e, err);
	case SOURCE_REMOVAL:
		return add_removal(r, e, err);
	default:
		return r->options->judge ? add_judged(r, e, err) :
					   add_file(r, e, err);
	}
}
