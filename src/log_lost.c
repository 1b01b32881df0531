/*
 * Putting bytes aside in lost/, and what a repair does to the files of the log.
 *
 * A copy is durable, with its name, before anything is done to what it was
 * copied from.  A repair adds to the log; the one thing it writes over is the
 * header of a segment, which follows from the segment's name and records.
 */
#include "config.h"

#include "log.h"

#include "error.h"
#include "log_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define COPY_SIZE ((size_t)1 << 20)

static int create_lost(struct log *log, const char *what, uint64_t position,
		       char name[64], int *out_fd, struct incr_error *err)
{
	for (unsigned n = 0;; n++) {
		int fd;

		(void)snprintf(name, 64, "lost/%s-%016" PRIx64 "-%u", what,
			       position, n);
		fd = log->io->open_at(log->io, log->store_dirfd, name,
				      O_WRONLY | O_CREAT | O_EXCL, 0666);
		if (fd >= 0) {
			*out_fd = fd;
			return 0;
		}
		if (fd != -EEXIST && fd != -EINTR)
			return incr_fail_errno(err, fd, name, "cannot create");
	}
}

int log_sync_lost(struct log *log, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file dir = { log->io, -1 };
	int r = io_open(log->io, log->store_dirfd, "lost",
			O_RDONLY | O_DIRECTORY, 0, &dir.fd, err);

	return r < 0 ? r : io_sync_dir(log->io, dir.fd, "lost", err);
}

static int copy(struct log *log, int from_fd, uint64_t off, uint64_t size,
		int to_fd, const char *name, uint64_t *out_size,
		struct incr_error *err)
{
	_cleanup_buf_ struct buf chunk = BUF_INIT;
	uint64_t done = 0;
	size_t want, got;

	if (buf_reserve(&chunk, COPY_SIZE) < 0)
		return incr_fail_nomem(err);
	do {
		int r;

		want = size - done < COPY_SIZE ? (size_t)(size - done) :
						 COPY_SIZE;
		r = io_read_upto(log->io, from_fd, chunk.data, want, off + done,
				 &got, name, err);
		if (r == 0)
			r = io_write_all(log->io, to_fd, chunk.data, got, done,
					 name, err);
		if (r < 0)
			return r;
		done += got;
	} while (got == want && done < size);
	*out_size = done;
	return io_sync_file(log->io, to_fd, name, err);
}

int log_keep(struct log *log, int fd, uint64_t off, uint64_t size,
	     const char *what, uint64_t position, uint64_t *out_size,
	     struct incr_error *err)
{
	char name[64];
	int to_fd = -1, closed;
	int r = create_lost(log, what, position, name, &to_fd, err);

	if (r < 0)
		return r;
	r = copy(log, fd, off, size, to_fd, name, out_size, err);
	closed = io_close(log->io, to_fd);
	if (r == 0 && closed < 0)
		r = incr_fail_errno(err, closed, name, "cannot close");
	if (r == 0)
		r = log_sync_lost(log, err);
	if (r < 0)
		(void)log->io->unlink_at(log->io, log->store_dirfd, name, 0);
	return r;
}

static int file_size(struct log *log, struct segment *segment,
		     uint64_t *out_size, struct incr_error *err)
{
	struct io_stat st;
	char name[LOG_NAME_SIZE];
	int r = log->io->stat_at(log->io, segment->fd, "", &st);

	log_segment_name(segment->base, name);
	if (r < 0)
		return incr_fail_errno(err, r, name, "cannot stat");
	*out_size = st.size;
	return 0;
}

/* The bytes in [*from, to) of one segment; *from: where the next one goes on. */
static int keep_part(struct log *log, uint64_t *from, uint64_t to,
		     uint64_t *out_size, struct incr_error *err)
{
	struct segment *segment;
	uint64_t next, size = 0, off;
	int r;

	if (!log_next_segment(log, *from, &next) || next > to)
		next = to;
	r = log_segment_get(log, *from, &segment, err);
	if (r == INCR_E_CORRUPT) {
		/* a segment that is missing has no bytes */
		incr_error_release(err);
		*from = next;
		return 0;
	}
	if (r < 0)
		return r;
	off = *from - segment->base;
	r = file_size(log, segment, &size, err);
	if (r == 0 && size > off)
		r = log_keep(log, segment->fd, off, next - *from, "damaged",
			     *from, &size, err);
	else
		size = 0;
	log_segment_put(log, segment);
	if (r < 0)
		return r;
	*out_size += size;
	*from = next;
	return 0;
}

int log_keep_damage(struct log *log, uint64_t from, uint64_t to,
		    uint64_t *out_size, struct incr_error *err)
{
	int r = 0;

	*out_size = 0;
	while (r == 0 && from < to)
		r = keep_part(log, &from, to, out_size, err);
	return r;
}

/* The end of the bytes of a segment's file, without zeros at its end. */
static int bytes_end(struct log *log, struct segment *segment, uint64_t size,
		     uint64_t *out_end, struct incr_error *err)
{
	uint8_t bytes[4096];
	char name[LOG_NAME_SIZE];
	size_t n = 0;

	log_segment_name(segment->base, name);
	while (size && n == 0) {
		size_t want = size < sizeof(bytes) ? (size_t)size :
						     sizeof(bytes);
		int r = io_read_exact(log->io, segment->fd, bytes, want,
				      size - want, name, err);

		if (r < 0)
			return r;
		for (n = want; n > 0 && bytes[n - 1] == 0; n--)
			size--;
	}
	*out_end = size;
	return 0;
}

int log_file_end(struct log *log, uint64_t *out_position,
		 struct incr_error *err)
{
	uint64_t base = log_newest_base(log), size = 0, synced;
	struct segment *segment;
	int r = log_segment_get(log, base, &segment, err);

	if (r < 0)
		return r;
	r = file_size(log, segment, &size, err);
	if (r == 0)
		r = bytes_end(log, segment, size, &size, err);
	log_segment_put(log, segment);
	if (r < 0)
		return r;
	synced = log_hint_read(log).synced_to;
	*out_position = base + size > synced ? base + size : synced;
	return 0;
}

int log_extend(struct log *log, uint64_t position, struct incr_error *err)
{
	struct segment *segment;
	char name[LOG_NAME_SIZE];
	uint64_t size = 0;
	int r = log_segment_get(log, position, &segment, err);

	if (r < 0)
		return r;
	log_segment_name(segment->base, name);
	r = file_size(log, segment, &size, err);
	if (r == 0 && size < position - segment->base) {
		r = log->io->truncate(log->io, segment->fd,
				      position - segment->base);
		if (r < 0)
			r = incr_fail_errno(err, r, name, "cannot extend");
	}
	log_segment_put(log, segment);
	return r;
}
