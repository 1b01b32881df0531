/*
 * Making the log durable, once for all who wait.
 *
 * Strategy.  LOCK_SYNC is held around each sync; the hint in the lock file
 * tells the processes of this boot how far the log is synced.  A waiter looks
 * at the hint while it waits, and is done as soon as someone has synced for
 * it.  The holder first reads on to the last whole record there is, so that
 * one sync serves all appends before it.  The hint is never synced itself.
 *
 * That bytes were synced stays true for ever, so the hint is also what proves
 * the last record when no later one does: it says so in two forms.  One names
 * the boot, because a failed sync is forgotten with the page cache; the other,
 * the mark, does not, so that damage to the last record is told from a torn
 * tail after a reboot too.  Both name the inode of the lock file: in a copy of
 * the store they are void, which costs one sync and that proof.
 *
 * A failed sync.  The kernel drops the error, and perhaps the bytes, so that a
 * second sync proves nothing.  The handle is dead, failed_from is put into the
 * hint, and who waits for bytes behind it fails too: none of those records was
 * acknowledged.  Before the next append, a live handle (every other process,
 * or this one with the store opened again) reads the doubtful records back,
 * checks them, writes the same bytes to the same place, which makes the kernel
 * owe them to the disk again, and syncs; then failed_from is cleared.  If they
 * do not read back whole, that handle is dead as well; one opened after it
 * finds the shorter log and cuts the rest as a torn tail.  Where the hint
 * cannot be had (no boot id), only the failing process knows of the failure.
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
#include <string.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define HINT_OFF 64
#define HINT_SIZE 64
#define MARK_OFF 32 /* of the mark in the hint */
#define WAIT_MS 60000
#define WAIT_US (UINT64_C(1000) * WAIT_MS)
/* How much of what others appended one sync looks at. */
#define AHEAD_RECORDS 256
#define AHEAD_SIZE (UINT64_C(4) << 20)
#define COPY_SIZE ((size_t)1 << 20)

/* Keys of the hint; @boot empty: of the mark alone. */
static int make_keys(struct log *log, const struct buf *boot,
		     const struct io_stat *st, struct incr_error *err)
{
	_cleanup_buf_ struct buf key = BUF_INIT;
	uint8_t mark[16];

	put_u64(mark, log->store_tag);
	put_u64(mark + 8, st->inode);
	log->mark_key = hash64(mark, sizeof(mark)) | 1; /* never 0 */
	if (boot->size == 0)
		return 0;
	if (buf_put(&key, boot->data, boot->size) < 0 ||
	    buf_put_u64(&key, st->device) < 0 ||
	    buf_put_u64(&key, st->inode) < 0)
		return incr_fail_nomem(err);
	log->hint_key = hash64(key.data, key.size) | 1;
	return 0;
}

int log_hint_open(struct log *log, struct incr_error *err)
{
	_cleanup_buf_ struct buf boot = BUF_INIT;
	struct io_stat st;
	int fd;

	/* on failure it stays empty */
	if (io_read_file(log->io, AT_FDCWD, BOOT_ID, 256, &boot, NULL) ==
	    INCR_E_NOMEM)
		return incr_fail_nomem(err);
	fd = log->io->open_at(log->io, log->store_dirfd, "lock",
			      log->is_writable ? O_RDWR : O_RDONLY, 0);
	if (fd < 0)
		return 0;
	log->lock_fd = fd;
	if (log->io->stat_at(log->io, fd, "", &st) < 0)
		return 0;
	return make_keys(log, &boot, &st, err);
}

static bool is_valid(const uint8_t bytes[32], uint64_t key)
{
	return key && get_u64(bytes) == key &&
	       get_u64(bytes + 24) == hash64(bytes, 24);
}

struct log_hint log_hint_read(struct log *log)
{
	struct log_hint hint = { 0, 0 };
	uint8_t bytes[HINT_SIZE];
	const uint8_t *mark = bytes + MARK_OFF;
	size_t size;

	if (log->mark_key == 0 ||
	    io_read_upto(log->io, log->lock_fd, bytes, sizeof(bytes), HINT_OFF,
			 &size, "lock", NULL) < 0 ||
	    size < sizeof(bytes))
		return hint;
	if (is_valid(bytes, log->hint_key)) {
		hint.synced_to = get_u64(bytes + 8);
		hint.failed_from = get_u64(bytes + 16);
	}
	if (is_valid(mark, log->mark_key) && get_u64(mark + 8) > hint.synced_to)
		hint.synced_to = get_u64(mark + 8);
	return hint;
}

/* A failure costs others a sync, or the proof, or (failed_from) the warning. */
static void hint_write(struct log *log, struct log_hint hint)
{
	uint8_t bytes[HINT_SIZE] = { 0 };
	uint8_t *mark = bytes + MARK_OFF;

	if (log->mark_key == 0)
		return;
	if (log->hint_key) {
		put_u64(bytes, log->hint_key);
		put_u64(bytes + 8, hint.synced_to);
		put_u64(bytes + 16, hint.failed_from);
		put_u64(bytes + 24, hash64(bytes, 24));
	}
	put_u64(mark, log->mark_key);
	put_u64(mark + 8, hint.synced_to);
	put_u64(mark + 24, hash64(mark, 24));
	(void)io_write_all(log->io, log->lock_fd, bytes, sizeof(bytes),
			   HINT_OFF, "lock", NULL);
}

int log_fail_dead(struct incr_error *err)
{
	int r = incr_fail(err, INCR_E_DEAD, "handle-dead", NULL,
			  "a sync of the log failed");

	incr_hint(err, "open the store again");
	return r;
}

void log_poison(struct log *log, uint64_t from)
{
	struct log_hint hint = log_hint_read(log);

	log->is_dead = true;
	if (hint.failed_from == 0 || from < hint.failed_from)
		hint.failed_from = from;
	hint_write(log, hint);
}

/* From where bytes are not known to be on disk; never 0. */
static uint64_t doubtful_from(struct log *log)
{
	uint64_t from = log_newest_base(log);

	if (from < log->durable_to)
		from = log->durable_to;
	return from < LOG_BEGIN ? LOG_BEGIN : from;
}

/* fdatasync of all segments with bytes in [from, to]. */
static int sync_segments(struct log *log, uint64_t from, uint64_t to,
			 struct incr_error *err)
{
	for (uint64_t at = to;;) {
		struct segment *segment;
		char name[LOG_NAME_SIZE];
		uint64_t base;
		int r = log_segment_get(log, at, &segment, err);

		if (r < 0)
			return r;
		base = segment->base;
		r = log->io->fdatasync(log->io, segment->fd);
		log_segment_put(log, segment);
		log_segment_name(base, name);
		if (r < 0)
			return incr_fail_errno(err, r, name,
					       "cannot sync the file");
		if (base <= from)
			return 0;
		at = base - 1;
	}
}

/* The end of the whole records from @position on, as far as is cheap. */
static int read_ahead(struct log *log, uint64_t position, uint64_t *out_end,
		      struct incr_error *err)
{
	uint64_t end = position;

	for (unsigned n = 0; n < AHEAD_RECORDS; n++) {
		struct log_record record;
		struct segment *segment;
		uint64_t next;
		int r = log_segment_get(log, end, &segment, err);

		if (r < 0)
			return r;
		if (log_is_still_blank(log, segment, end))
			r = 1;
		log_segment_put(log, segment);
		if (r == 0)
			r = log_load(log, end, &record, &next, err);
		if (r < 0)
			return r;
		if (r > 0)
			break;
		end = next;
		if (end - position > AHEAD_SIZE)
			break;
	}
	*out_end = end;
	return 0;
}

/*
 * Is a sync up to @position needed?  1: no, someone did it.  A handle whose
 * bytes a failed sync covers is dead.
 */
static int look_at_hint(struct log *log, uint64_t position,
			struct incr_error *err)
{
	struct log_hint hint = log_hint_read(log);

	if (hint.failed_from != 0 && hint.failed_from < position) {
		log->is_dead = true;
		return log_fail_dead(err);
	}
	log_note_durable(log, hint.synced_to);
	return log->durable_to >= position;
}

/* With LOCK_SYNC held. */
static int sync_locked(struct log *log, uint64_t position,
		       struct incr_error *err)
{
	struct log_hint hint;
	uint64_t end = position;
	int r = look_at_hint(log, position, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = read_ahead(log, position, &end, err);
	if (r < 0)
		return r;
	r = sync_segments(log, doubtful_from(log), end, err);
	if (r < 0) {
		log_poison(log, doubtful_from(log));
		return r;
	}

	log_note_durable(log, end);
	hint = log_hint_read(log);
	hint.synced_to = log->durable_to;
	hint_write(log, hint);
	return 0;
}

/* With LOCK_SYNC held by another: 1: look for it again. */
static int wait_for_sync(struct log *log, uint64_t position,
			 uint64_t *io_waited_us, struct incr_error *err)
{
	int r = look_at_hint(log, position, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (*io_waited_us >= WAIT_US)
		return incr_fail(err, INCR_E_BUSY, NULL, "the log",
				 "another process holds the lock");
	lock_pause(log->io, WAIT_US, io_waited_us);
	return 1;
}

int log_sync(struct log *log, uint64_t position, struct incr_error *err)
{
	uint64_t waited_us = 0;
	int r;

	if (!log->is_writable)
		return incr_fail(err, INCR_E_READONLY, NULL, NULL,
				 "the log was opened for reading");
	if (log->is_dead)
		return log_fail_dead(err);
	if (position <= log->durable_to)
		return 0;

	do {
		struct incr_error why = INCR_ERROR_INIT;
		struct lock lock = { 0 };

		r = lock_take(&log->locks, LOCK_SYNC, true, 0, "the log", &lock,
			      &why);
		if (r == 0) {
			r = sync_locked(log, position, err);
			lock_release(&lock);
			return r;
		}
		if (r != INCR_E_BUSY)
			return incr_fail_with(err, r, &why);
		incr_error_release(&why);
		r = wait_for_sync(log, position, &waited_us, err);
	} while (r == 1);
	return r;
}

/* Write @size bytes at @position of one segment over themselves. */
static int rewrite(struct log *log, struct segment *segment, uint64_t position,
		   uint64_t size, struct incr_error *err)
{
	_cleanup_buf_ struct buf chunk = BUF_INIT;
	uint64_t off = position - segment->base;
	char name[LOG_NAME_SIZE];

	log_segment_name(segment->base, name);
	if (buf_reserve(&chunk, COPY_SIZE) < 0)
		return incr_fail_nomem(err);
	while (size) {
		size_t n = size < COPY_SIZE ? (size_t)size : COPY_SIZE;
		int r = io_read_exact(log->io, segment->fd, chunk.data, n, off,
				      name, err);

		if (r == 0)
			r = io_write_all(log->io, segment->fd, chunk.data, n,
					 off, name, err);
		if (r < 0)
			return r;
		off += n;
		size -= n;
	}
	return 0;
}

/* The records in [from, to) are whole, and end at @to. */
static int check_records(struct log *log, uint64_t from, uint64_t to,
			 struct incr_error *err)
{
	struct log_record record;

	/* A segment without records has a header only. */
	if (from == log_newest_base(log))
		from += LOG_SEGMENT_HEADER_SIZE;
	buf_reset(&log->window); /* read what the kernel has now */
	while (from < to) {
		struct log_hole hole;
		int r = log_load(log, from, &record, &from, err);

		if (r == 0)
			continue;
		if (r < 0 && r != INCR_E_CORRUPT)
			return r;
		incr_error_release(err);
		if (log_find_hole(log, from, &hole, NULL) != 0)
			return log_fail_dead(err);
		from = hole.to;
	}
	return from == to ? 0 : log_fail_dead(err);
}

/* [from, to) again to the disk: the segments from the last to the first. */
static int rewrite_all(struct log *log, uint64_t from, uint64_t to,
		       struct incr_error *err)
{
	uint64_t base, end = to;

	do {
		struct segment *segment;
		int r = log_segment_get(log, end - 1, &segment, err);

		if (r < 0)
			return r;
		base = segment->base;
		r = rewrite(log, segment, from > base ? from : base,
			    end - (from > base ? from : base), err);
		log_segment_put(log, segment);
		if (r < 0)
			return r;
		end = base;
	} while (from < base);
	return sync_segments(log, from, to - 1, err);
}

static int heal_locked(struct log *log, uint64_t position,
		       struct incr_error *err)
{
	uint64_t from = log_hint_read(log).failed_from;
	int r = 0;

	if (from == 0) /* healed by another */
		return 0;
	if (from < position) {
		r = check_records(log, from, position, err);
		if (r == 0)
			r = rewrite_all(log, from, position, err);
	}
	if (r == 0)
		r = io_sync_dir(log->io, log->dirfd, "log", err);
	if (r < 0) {
		log_poison(log, from);
		return r;
	}

	log_note_durable(log, position);
	hint_write(log, (struct log_hint){ log->durable_to, 0 });
	return 0;
}

int log_heal(struct log *log, uint64_t position, struct incr_error *err)
{
	struct log_hint hint = log_hint_read(log);
	struct lock lock = { 0 };
	int r;

	log_note_durable(log, hint.synced_to);
	if (hint.failed_from == 0)
		return 0;
	r = lock_take(&log->locks, LOCK_SYNC, true, WAIT_MS, "the log", &lock,
		      err);
	if (r < 0)
		return r;
	r = heal_locked(log, position, err);
	lock_release(&lock);
	return r;
}
