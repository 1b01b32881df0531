/*
 * Writing a pack.  Few frames are gathered into writes of 4 MiB; one fdatasync of
 * the file and one fsync of packs/ at the end make it durable.  Nothing refers
 * to a pack before that, so an unfinished one is simply removed.
 *
 * While a long pack is being written, a helper thread syncs what is there, so
 * that the disk works at the same time as the processors and the last sync
 * finds little left.  A sync that fails there fails the pack: the kernel tells
 * of a lost page only once.
 */
#include "config.h"

#include "pack.h"

#include "bytes.h"
#include "error.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PACK_VERSION 1
#define WRITE_SIZE ((size_t)4 << 20)
#define DIRECT_SIZE ((size_t)256 << 10) /* from here on not gathered */
#define SYNC_EVERY (UINT64_C(64) << 20) /* bytes between early syncs */
#define N_NAME_TRIES 16

static const uint8_t pack_magic[8] = "INCRPACK";

struct pack_writer {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	int fd; /* owned */
	uint64_t id;
	char path[PACK_PATH_SIZE];
	struct claim claim; /* owned: of its name */
	/* Changed by the writing thread alone, with @reading held. */
	struct buf pending; /* bytes not yet written */
	uint64_t written; /* bytes in the file */
	pthread_mutex_t reading;
	bool is_failed; /* a write or sync failed: nothing more is tried */

	/* The early syncs; guarded by @lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t syncer;
	bool has_syncer;
	bool ends;
	uint64_t sync_to; /* bytes written that should be synced */
	int sync_result; /* 0 or -errno of the first failed early sync */
	uint64_t next_sync; /* of the writing thread alone */
};

void pack_path(uint64_t id, char out[PACK_PATH_SIZE])
{
	(void)snprintf(out, PACK_PATH_SIZE, "packs/%016" PRIx64 ".pack", id);
}

static void encode_pack_header(uint64_t id, const uint8_t uuid[16],
			       uint8_t out[PACK_HEADER_SIZE])
{
	memset(out, 0, PACK_HEADER_SIZE);
	memcpy(out, pack_magic, sizeof(pack_magic));
	put_u32(out + 8, PACK_VERSION);
	memcpy(out + 16, uuid, 16);
	put_u64(out + 32, id);
	put_u64(out + 56, hash64(out, 56));
}

int pack_check_header(const uint8_t bytes[PACK_HEADER_SIZE],
		      const uint8_t uuid[16], uint64_t id)
{
	uint8_t want[PACK_HEADER_SIZE];

	if (memcmp(bytes, pack_magic, sizeof(pack_magic)) != 0 ||
	    get_u64(bytes + 56) != hash64(bytes, 56))
		return INCR_E_CORRUPT;
	if (get_u32(bytes + 8) != PACK_VERSION)
		return INCR_E_UNSUPPORTED;

	encode_pack_header(id, uuid, want);
	return memcmp(bytes, want, sizeof(want)) == 0 ? 0 : INCR_E_CORRUPT;
}

/* A file of a new name; *out_fd is valid after 0. */
static int create_file(struct pack_writer *w, struct incr_error *err)
{
	int r = -EEXIST;

	for (int i = 0; i < N_NAME_TRIES && r == -EEXIST; i++) {
		r = w->io->random(w->io, &w->id, sizeof(w->id));
		if (r < 0)
			return incr_fail_errno(err, -r, "random number",
					       "no name for a new pack");

		if (w->id == PACK_LOG || w->id == PACK_SELF) {
			r = -EEXIST;
			continue;
		}
		pack_path(w->id, w->path);
		claim_release(&w->claim);
		r = claim_take(w->io, w->store_dirfd, w->path, &w->claim, err);
		if (r < 0)
			return r;
		do {
			r = w->io->open_at(
				w->io, w->store_dirfd, w->path,
				O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		} while (r == -EINTR);
	}
	if (r < 0)
		return incr_fail_errno(err, -r, w->path,
				       "cannot create a pack");

	w->fd = r;
	return 0;
}

int pack_writer_open(const struct incr_io *io, int store_dirfd,
		     const uint8_t uuid[16], struct pack_writer **out_writer,
		     struct incr_error *err)
{
	struct pack_writer *w = calloc(1, sizeof(*w));
	uint8_t header[PACK_HEADER_SIZE];
	int r;

	if (!w)
		return incr_fail_nomem(err);

	w->io = io;
	w->store_dirfd = store_dirfd;
	w->fd = -1;
	w->next_sync = SYNC_EVERY;
	(void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
	(void)pthread_mutex_init(&w->reading, NULL);
	(void)pthread_cond_init(&w->wake, NULL);
	r = create_file(w, err);
	if (r < 0) {
		pack_writer_free(w);
		return r;
	}

	encode_pack_header(w->id, uuid, header);
	if (buf_put(&w->pending, header, sizeof(header)) < 0) {
		pack_writer_discard(w);
		return incr_fail_nomem(err);
	}
	*out_writer = w;
	return 0;
}

uint64_t pack_writer_id(const struct pack_writer *w)
{
	return w->id;
}

static void *run_syncer(void *closure)
{
	struct pack_writer *w = closure;
	uint64_t synced = 0;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->ends && w->sync_result == 0) {
		uint64_t goal = w->sync_to;
		int r;

		if (goal == synced) {
			(void)pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&w->lock);
		r = w->io->fdatasync(w->io, w->fd);
		(void)pthread_mutex_lock(&w->lock);
		synced = goal;
		if (r < 0 && r != -EINTR)
			w->sync_result = r;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int fail_sync(struct pack_writer *w, int sys_errno,
		     struct incr_error *err)
{
	w->is_failed = true;
	return incr_fail_errno(err, sys_errno, w->path, "cannot sync");
}

/* Have the bytes so far written to the disk in the background. */
static int sync_early(struct pack_writer *w, struct incr_error *err)
{
	int failed;

	if (w->written < w->next_sync)
		return 0;

	w->next_sync = w->written + SYNC_EVERY;
	(void)pthread_mutex_lock(&w->lock);
	w->sync_to = w->written;
	failed = w->sync_result;
	(void)pthread_cond_signal(&w->wake);
	(void)pthread_mutex_unlock(&w->lock);
	if (failed < 0)
		return fail_sync(w, -failed, err);

	/* Without the thread the last sync does it all. */
	if (!w->has_syncer &&
	    pthread_create(&w->syncer, NULL, run_syncer, w) == 0)
		w->has_syncer = true;
	return 0;
}

/* End the helper thread; 0 or -errno of an early sync. */
static int stop_syncer(struct pack_writer *w)
{
	if (!w->has_syncer)
		return 0;

	(void)pthread_mutex_lock(&w->lock);
	w->ends = true;
	(void)pthread_cond_signal(&w->wake);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->syncer, NULL);
	w->has_syncer = false;
	return w->sync_result;
}

/* Write at the end of the file, with nothing pending before it. */
static int write_bytes(struct pack_writer *w, const uint8_t *bytes, size_t size,
		       struct incr_error *err)
{
	int r = io_write_all(w->io, w->fd, bytes, size, w->written, w->path,
			     err);

	if (r < 0) {
		w->is_failed = true;
		return r;
	}
	(void)pthread_mutex_lock(&w->reading);
	w->written += size;
	buf_reset(&w->pending);
	(void)pthread_mutex_unlock(&w->reading);
	return sync_early(w, err);
}

static int write_pending(struct pack_writer *w, struct incr_error *err)
{
	return write_bytes(w, w->pending.data, w->pending.size, err);
}

static int fail_dead(struct pack_writer *w, struct incr_error *err)
{
	return incr_fail(err, INCR_E_DEAD, "handle-dead", w->path,
			 "an earlier write or sync of this pack failed");
}

/* Bind frames to their places from @off on. */
static void place_frames(const struct pack_writer *w, uint8_t *at, size_t size,
			 uint64_t off)
{
	uint8_t *end = at + size;
	struct frame_place place = { w->id, off };

	while (end - at >= FRAME_HEADER_SIZE) {
		uint64_t span = FRAME_HEADER_SIZE + (uint64_t)get_u32(at + 12);

		frame_place(at, place);
		if (span > (uint64_t)(end - at))
			break;
		at += span;
		place.off += span;
	}
}

static int put_pending(struct pack_writer *w, const uint8_t *frames,
		       size_t size, struct incr_error *err)
{
	int r;

	(void)pthread_mutex_lock(&w->reading);
	r = buf_put(&w->pending, frames, size);
	(void)pthread_mutex_unlock(&w->reading);
	if (r < 0)
		return incr_fail_nomem(err);
	return w->pending.size >= WRITE_SIZE ? write_pending(w, err) : 0;
}

int pack_writer_put(struct pack_writer *w, uint8_t *frames, size_t size,
		    uint64_t *out_off, struct incr_error *err)
{
	uint64_t off = w->written + w->pending.size;
	int r = 0;

	if (w->is_failed)
		return fail_dead(w, err);

	place_frames(w, frames, size, off);
	if (size < DIRECT_SIZE) {
		r = put_pending(w, frames, size, err);
	} else {
		if (w->pending.size > 0)
			r = write_pending(w, err);
		if (r == 0)
			r = write_bytes(w, frames, size, err);
	}
	if (r < 0)
		return r;
	*out_off = off;
	return 0;
}

int pack_writer_read(struct pack_writer *w, uint64_t off, void *data,
		     size_t size, struct incr_error *err)
{
	uint8_t *to = data;
	size_t in_file = 0, n = 0;
	uint64_t end;
	int r = 0;

	(void)pthread_mutex_lock(&w->reading);
	if (!add_ok(off, size, &end) || end > w->written + w->pending.size)
		r = INCR_E_RANGE;
	else if (off < w->written)
		in_file = end < w->written ? size : (size_t)(w->written - off);
	if (r == 0 && in_file < size)
		memcpy(to + in_file,
		       w->pending.data + (off + in_file - w->written),
		       size - in_file);
	(void)pthread_mutex_unlock(&w->reading);
	if (r < 0)
		return incr_fail(err, INCR_E_RANGE, NULL, w->path,
				 "the pack is not so long yet");

	if (in_file > 0)
		r = io_read_upto(w->io, w->fd, to, in_file, off, &n, w->path,
				 err);
	if (r == 0 && n < in_file)
		r = incr_fail(err, INCR_E_RANGE, NULL, w->path,
			      "the pack ends");
	return r;
}

static int sync_packs_dir(struct pack_writer *w, struct incr_error *err)
{
	int fd, r;

	r = io_open(w->io, w->store_dirfd, "packs",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, &fd, err);
	if (r < 0)
		return r;

	r = io_sync_dir(w->io, fd, "packs", err);
	(void)io_close(w->io, fd); /* nothing was written through it */
	return r;
}

int pack_writer_finish(struct pack_writer *w, uint64_t *out_size,
		       struct incr_error *err)
{
	int r;

	if (w->is_failed)
		return fail_dead(w, err);

	r = write_pending(w, err);
	if (r < 0)
		return r;

	r = stop_syncer(w);
	if (r < 0)
		return fail_sync(w, -r, err);

	w->is_failed = true; /* until all of the rest has worked */
	r = w->io->fdatasync(w->io, w->fd);
	if (r < 0)
		return fail_sync(w, -r, err);

	r = io_close(w->io, w->fd);
	w->fd = -1;
	if (r < 0)
		return incr_fail_errno(err, -r, w->path, "cannot close");

	r = sync_packs_dir(w, err);
	if (r < 0)
		return r;

	w->is_failed = false;
	*out_size = w->written;
	return 0;
}

void pack_writer_take_claim(struct pack_writer *w, struct claim *out_claim)
{
	*out_claim = w->claim;
	w->claim = (struct claim){ 0 };
}

void pack_writer_discard(struct pack_writer *w)
{
	if (!w)
		return;

	/* What cannot be removed is no one's: a repair takes it. */
	(void)w->io->unlink_at(w->io, w->store_dirfd, w->path, 0);
	pack_writer_free(w);
}

void pack_writer_free(struct pack_writer *w)
{
	if (!w)
		return;

	(void)stop_syncer(w);
	if (w->fd >= 0)
		(void)io_close(w->io, w->fd); /* an unfinished pack */
	claim_release(&w->claim);
	buf_release(&w->pending);
	(void)pthread_cond_destroy(&w->wake);
	(void)pthread_mutex_destroy(&w->reading);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}
