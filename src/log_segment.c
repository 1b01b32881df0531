/*
 * The log's segment files: finding, opening, checking and making them.
 *
 * Strategy.  Segments tile the position space: the base of one is the end of
 * the one before, so the name of the next is known without listing, and a
 * missing one shows.  A segment is made only after the one before it is
 * durable whole; therefore a later segment proves that earlier bytes were on
 * disk, and only the newest can have a torn tail.  A new segment counts when
 * its header is whole; before that it is a leftover of a crash, which readers
 * take for absent.  It is durable (header, then name) before its first record.
 */
#include "config.h"

#include "log.h"

#include "bytes.h"
#include "error.h"
#include "hash.h"
#include "log_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEGMENT_MAGIC "INCRLOG1"
#define SEGMENT_VERSION 1
#define SEGMENT_HASHED_SIZE 56
#define N_OPEN_MAX 32

void log_segment_name(uint64_t base, char out[LOG_NAME_SIZE])
{
	(void)snprintf(out, LOG_NAME_SIZE, "log/%016" PRIx64 ".log", base);
}

static void encode_header(const uint8_t uuid[16], uint64_t base,
			  uint64_t first_sequence,
			  uint8_t out[LOG_SEGMENT_HEADER_SIZE])
{
	memset(out, 0, LOG_SEGMENT_HEADER_SIZE);
	memcpy(out, SEGMENT_MAGIC, 8);
	put_u32(out + 8, SEGMENT_VERSION);
	memcpy(out + 16, uuid, 16);
	put_u64(out + 32, base);
	put_u64(out + 40, first_sequence);
	put_u64(out + SEGMENT_HASHED_SIZE, hash64(out, SEGMENT_HASHED_SIZE));
}

/* INCR_E_CORRUPT: not a whole header of this segment of this store. */
static int decode_header(const uint8_t bytes[LOG_SEGMENT_HEADER_SIZE],
			 const uint8_t uuid[16], uint64_t base,
			 uint64_t *out_first_sequence)
{
	uint8_t want[LOG_SEGMENT_HEADER_SIZE];
	uint64_t first_sequence = get_u64(bytes + 40);

	if (memcmp(bytes, SEGMENT_MAGIC, 8) != 0 ||
	    get_u64(bytes + SEGMENT_HASHED_SIZE) !=
		    hash64(bytes, SEGMENT_HASHED_SIZE))
		return INCR_E_CORRUPT;
	if (get_u32(bytes + 8) != SEGMENT_VERSION)
		return INCR_E_UNSUPPORTED;
	encode_header(uuid, base, first_sequence, want);
	if (memcmp(bytes, want, sizeof(want)) != 0)
		return INCR_E_CORRUPT;

	*out_first_sequence = first_sequence;
	return 0;
}

/* Decode the header of an open segment file; INCR_E_CORRUPT fills no @err. */
static int read_header(struct log *log, int fd, uint64_t base,
		       uint64_t *out_first_sequence, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint8_t bytes[LOG_SEGMENT_HEADER_SIZE];
	char name[LOG_NAME_SIZE];
	size_t size;
	int r;

	log_segment_name(base, name);
	r = io_read_upto(log->io, fd, bytes, sizeof(bytes), 0, &size, name,
			 &why);
	if (r < 0 && log->allows_damage && incr_is_unreadable(&why)) {
		incr_error_release(&why);
		return INCR_E_CORRUPT;
	}
	if (r < 0)
		return incr_fail_with(err, r, &why);
	if (size < sizeof(bytes))
		return INCR_E_CORRUPT;
	r = decode_header(bytes, log->uuid, base, out_first_sequence);
	if (r == INCR_E_UNSUPPORTED)
		return incr_fail(err, r, NULL, name,
				 "the log segment has a newer format");
	return r;
}

static int open_for(struct log *log, const char *name, int flags)
{
	int fd;

	do
		fd = log->io->open_at(log->io, log->store_dirfd, name, flags,
				      0);
	while (fd == -EINTR);
	return fd;
}

/* A descriptor or -errno.  While opening, a segment that may only be read makes a log for reading. */
static int open_segment_file(struct log *log, uint64_t base)
{
	char name[LOG_NAME_SIZE];
	int fd;

	log_segment_name(base, name);
	if (!log->is_writable)
		return open_for(log, name, O_RDONLY);
	fd = open_for(log, name, O_RDWR);
	if (!log->is_opening || (fd != -EACCES && fd != -EPERM && fd != -EROFS))
		return fd;
	log->is_writable = false;
	return open_for(log, name, O_RDONLY);
}

/* Close the descriptor used longest ago, if there are too many. */
static void limit_open(struct log *log)
{
	struct segment *oldest = NULL;

	if (log->n_open < N_OPEN_MAX)
		return;
	for (size_t i = 0; i < log->n_segments; i++) {
		struct segment *s = log->segments[i];

		if (s->fd >= 0 && s->n_users == 0 &&
		    (!oldest || s->last_use < oldest->last_use))
			oldest = s;
	}
	if (!oldest)
		return;
	/* What was written through it and not synced is the kernel's to write. */
	(void)io_close(log->io, oldest->fd);
	oldest->fd = -1;
	log->n_open--;
}

static int segment_open(struct log *log, struct segment *segment,
			struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { log->io, -1 };
	char name[LOG_NAME_SIZE];
	int r;

	limit_open(log);
	log_segment_name(segment->base, name);
	file.fd = open_segment_file(log, segment->base);
	if (file.fd == -ENOENT)
		return log_fail_corrupt(err, segment->base, segment->base,
					"the segment is missing");
	if (file.fd < 0)
		return incr_fail_errno(err, file.fd, name, "cannot open");
	r = read_header(log, file.fd, segment->base, &segment->first_sequence,
			err);
	segment->is_headless = r == INCR_E_CORRUPT;
	if (r == INCR_E_CORRUPT && log->allows_damage)
		r = 0;
	if (r == INCR_E_CORRUPT)
		return log_fail_corrupt(err, segment->base, segment->base,
					"the segment's header is damaged");
	if (r < 0)
		return r;

	segment->fd = file.fd;
	file.fd = -1;
	log->n_open++;
	return 0;
}

/* Index of the last segment with base <= @position, or n_segments. */
static size_t segment_index(const struct log *log, uint64_t position)
{
	size_t low = 0, high = log->n_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (log->segments[middle]->base <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : log->n_segments;
}

static int segment_get(struct log *log, uint64_t position,
		       struct segment **out_segment, struct incr_error *err)
{
	size_t i = segment_index(log, position);
	struct segment *segment;
	int r;

	if (i == log->n_segments)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "the log has no position %" PRIu64, position);
	segment = log->segments[i];
	if (segment->fd < 0) {
		r = segment_open(log, segment, err);
		if (r < 0)
			return r;
	}

	segment->n_users++;
	segment->last_use = ++log->n_uses;
	*out_segment = segment;
	return 0;
}

int log_segment_get(struct log *log, uint64_t position,
		    struct segment **out_segment, struct incr_error *err)
{
	int r;

	(void)pthread_mutex_lock(&log->lock); /* a plain mutex cannot fail */
	r = segment_get(log, position, out_segment, err);
	(void)pthread_mutex_unlock(&log->lock);
	return r;
}

void log_segment_put(struct log *log, struct segment *segment)
{
	(void)pthread_mutex_lock(&log->lock);
	segment->n_users--;
	(void)pthread_mutex_unlock(&log->lock);
}

/* Keep the list ascending; a closed segment is checked when it is opened. */
int log_segment_insert(struct log *log, uint64_t base, struct incr_error *err)
{
	struct segment **grown, *segment = calloc(1, sizeof(*segment));
	size_t at = log->n_segments;

	if (!segment)
		return incr_fail_nomem(err);
	grown = reallocarray(log->segments, at + 1, sizeof(*grown));
	if (!grown) {
		free(segment);
		return incr_fail_nomem(err);
	}

	segment->base = base;
	segment->fd = -1;
	log->segments = grown;
	for (; at > 0 && grown[at - 1]->base > base; at--)
		grown[at] = grown[at - 1];
	grown[at] = segment;
	log->n_segments++;
	return 0;
}

/* A file is there: is it a segment, or what a crash left of making one? */
static int judge_segment_file(struct log *log, int fd, uint64_t base,
			      struct incr_error *err)
{
	uint64_t sequence, position;
	int r = read_header(log, fd, base, &sequence, err);

	if (r != INCR_E_CORRUPT)
		return r;
	r = log_scan(log, fd, base, LOG_SEGMENT_HEADER_SIZE, 0, &position, err);
	if (r != 0)
		return r < 0 ? r : SEGMENT_TORN;

	/* Its writer may have finished between the two looks. */
	r = read_header(log, fd, base, &sequence, err);
	if (r == INCR_E_CORRUPT && log->allows_damage)
		return 0;
	if (r == INCR_E_CORRUPT)
		return log_fail_corrupt(err, base, base,
					"the segment's header is damaged");
	return r;
}

static int segment_find(struct log *log, uint64_t base, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { log->io, -1 };
	size_t i = segment_index(log, base);
	char name[LOG_NAME_SIZE];
	int r;

	if (i < log->n_segments && log->segments[i]->base == base)
		return SEGMENT_FOUND;

	file.fd = open_segment_file(log, base);
	if (file.fd == -ENOENT)
		return SEGMENT_ABSENT;
	if (file.fd < 0) {
		log_segment_name(base, name);
		return incr_fail_errno(err, file.fd, name, "cannot open");
	}
	r = judge_segment_file(log, file.fd, base, err);
	return r ? r : log_segment_insert(log, base, err);
}

int log_segment_find(struct log *log, uint64_t base, struct incr_error *err)
{
	int r;

	(void)pthread_mutex_lock(&log->lock);
	r = segment_find(log, base, err);
	(void)pthread_mutex_unlock(&log->lock);
	return r;
}

int log_segment_create(struct log *log, uint64_t base, uint64_t first_sequence,
		       struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { log->io, -1 };
	uint8_t header[LOG_SEGMENT_HEADER_SIZE];
	char name[LOG_NAME_SIZE];

	log_segment_name(base, name);
	file.fd = log->io->open_at(log->io, log->store_dirfd, name,
				   O_RDWR | O_CREAT | O_EXCL, 0666);
	if (file.fd == -EEXIST)
		return SEGMENT_TORN;
	if (file.fd < 0)
		return incr_fail_errno(err, file.fd, name, "cannot create");

	encode_header(log->uuid, base, first_sequence, header);
	/* Left as it is on failure: a torn segment is no harm. */
	return io_write_all(log->io, file.fd, header, sizeof(header), 0, name,
			    err);
}

/* Collects the bases of the names in log/. */
static int add_base(void *closure, const char *name, enum io_kind kind)
{
	struct buf *bases = closure;
	uint64_t base = 0;
	size_t i;

	(void)kind;
	for (i = 0; i < 16; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = name[i] ? strchr(digits, name[i]) : NULL;

		if (!digit)
			return 0;
		base = base << 4 | (uint64_t)(digit - digits);
	}
	if (strcmp(name + i, ".log") != 0)
		return 0;
	return buf_put(bases, &base, sizeof(base)) < 0 ? -ENOMEM : 0;
}

static int compare_bases(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

/* With log->lock held. */
static int segment_list(struct log *log, uint64_t *out_newest,
			struct incr_error *err)
{
	_cleanup_buf_ struct buf bases = BUF_INIT;
	size_t n, known;
	uint64_t base = 0;
	int r;

	r = log->io->readdir(log->io, log->dirfd, add_base, &bases);
	if (r < 0)
		return incr_fail_errno(err, r, "log",
				       "cannot list the directory");
	n = bases.size / sizeof(base);
	if (n)
		qsort(bases.data, n, sizeof(base), compare_bases);

	for (size_t i = 0; i < n; i++) {
		memcpy(&base, bases.data + i * sizeof(base), sizeof(base));
		known = segment_index(log, base);
		if (known < log->n_segments &&
		    log->segments[known]->base == base)
			continue;
		/* Only the newest can be torn; the others wait to be opened. */
		r = i + 1 < n ? log_segment_insert(log, base, err) :
				segment_find(log, base, err);
		if (r < 0)
			return r;
	}
	*out_newest = base;
	return 0;
}

int log_segment_list(struct log *log, uint64_t *out_newest,
		     struct incr_error *err)
{
	int r;

	(void)pthread_mutex_lock(&log->lock);
	r = segment_list(log, out_newest, err);
	(void)pthread_mutex_unlock(&log->lock);
	return r;
}

uint64_t log_newest_base(struct log *log)
{
	uint64_t base;

	(void)pthread_mutex_lock(&log->lock);
	base = log->segments[log->n_segments - 1]->base;
	(void)pthread_mutex_unlock(&log->lock);
	return base;
}

int log_next_headless(struct log *log, uint64_t from, uint64_t *out_base,
		      struct incr_error *err)
{
	bool is_headless = false;
	int r = 0;

	(void)pthread_mutex_lock(&log->lock);
	for (size_t i = 0; r == 0 && !is_headless && i < log->n_segments; i++) {
		struct incr_error why = INCR_ERROR_INIT;
		struct segment *s = log->segments[i];

		if (s->base < from)
			continue;
		if (s->fd < 0)
			r = segment_open(log, s, &why);
		is_headless = r == 0 && s->is_headless;
		if (is_headless)
			*out_base = s->base;
		/* one that is missing has no header to mend */
		r = r == INCR_E_CORRUPT ? 0 : incr_fail_with(err, r, &why);
		incr_error_release(&why);
	}
	(void)pthread_mutex_unlock(&log->lock);
	return r < 0 ? r : !is_headless;
}

int log_write_header(struct log *log, uint64_t base, uint64_t first_sequence,
		     struct incr_error *err)
{
	uint8_t header[LOG_SEGMENT_HEADER_SIZE];
	struct segment *segment;
	char name[LOG_NAME_SIZE];
	int r = log_segment_get(log, base, &segment, err);

	if (r < 0)
		return r;
	log_segment_name(base, name);
	encode_header(log->uuid, base, first_sequence, header);
	r = io_write_all(log->io, segment->fd, header, sizeof(header), 0, name,
			 err);
	if (r == 0)
		r = io_sync_file(log->io, segment->fd, name, err);
	if (r == 0) {
		segment->first_sequence = first_sequence;
		segment->is_headless = false;
	}
	log_segment_put(log, segment);
	return r;
}

bool log_next_segment(struct log *log, uint64_t position, uint64_t *out_base)
{
	bool is_found = false;

	(void)pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->n_segments && !is_found; i++) {
		is_found = log->segments[i]->base > position;
		if (is_found)
			*out_base = log->segments[i]->base;
	}
	(void)pthread_mutex_unlock(&log->lock);
	return is_found;
}

uint64_t log_segment_of(struct log *log, uint64_t position,
			char out_name[LOG_NAME_SIZE])
{
	uint64_t base = 0;
	size_t i;

	(void)pthread_mutex_lock(&log->lock);
	i = segment_index(log, position);
	if (i < log->n_segments)
		base = log->segments[i]->base;
	(void)pthread_mutex_unlock(&log->lock);
	log_segment_name(base, out_name);
	return base;
}
