/* The handle of the log: opening and closing it. */
#include "config.h"

#include "log.h"

#include "error.h"
#include "hash.h"
#include "log_impl.h"

#include <fcntl.h>
#include <string.h>

struct log *log_new(const struct log_options *options)
{
	struct log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	if (pthread_mutex_init(&log->lock, NULL) != 0) {
		free(log);
		return NULL;
	}

	log->io = options->io;
	log->store_dirfd = options->store_dirfd;
	log->dirfd = -1;
	log->lock_fd = -1;
	log->locks = LOCK_FILE_INIT(options->io, options->store_dirfd);
	memcpy(log->uuid, options->uuid, sizeof(log->uuid));
	log->store_tag = hash64(options->uuid, sizeof(options->uuid));
	log->segment_size = options->segment_size ? options->segment_size :
						    LOG_SEGMENT_SIZE;
	log->is_writable = options->is_writable;
	log->allows_damage = options->allows_damage;
	return log;
}

void log_close(struct log *log)
{
	if (!log)
		return;
	/* Appended bytes were synced by log_sync(), or nobody was told of them. */
	for (size_t i = 0; i < log->n_segments; i++) {
		(void)io_close(log->io, log->segments[i]->fd);
		free(log->segments[i]);
	}
	free(log->segments);
	log_forget_holes(log);
	(void)io_close(log->io, log->dirfd);
	(void)io_close(log->io, log->lock_fd);
	lock_file_release(&log->locks);
	buf_release(&log->window);
	buf_release(&log->out);
	(void)pthread_mutex_destroy(&log->lock);
	free(log);
}

static int open_all(struct log *log, struct incr_error *err)
{
	uint64_t newest;
	int r;

	r = io_open(log->io, log->store_dirfd, "log", O_RDONLY | O_DIRECTORY, 0,
		    &log->dirfd, err);
	if (r < 0)
		return r;
	r = log_segment_list(log, &newest, err);
	if (r < 0)
		return r;
	/* missing, it is damage like any other, found when it is read */
	if (log->n_segments == 0 || log->segments[0]->base != 0)
		r = log_segment_insert(log, 0, err);
	if (r < 0)
		return r;
	r = log_hint_open(log, err);
	if (r < 0)
		return r;

	/* The newest segment was made when all before it was durable. */
	log_note_durable(log, log_newest_base(log));
	return 0;
}

int log_open(const struct log_options *options, struct log **out_log,
	     struct incr_error *err)
{
	struct log *log = log_new(options);
	int r;

	if (!log)
		return incr_fail_nomem(err);
	log->is_opening = true;
	r = open_all(log, err);
	log->is_opening = false;
	if (r < 0) {
		log_close(log);
		return r;
	}

	*out_log = log;
	return 0;
}

uint64_t log_begin(const struct log *log)
{
	(void)log;
	return LOG_BEGIN;
}

struct lock_file *log_locks(struct log *log)
{
	return &log->locks;
}

bool log_is_writable(const struct log *log)
{
	return log->is_writable;
}

uint64_t log_durable_to(const struct log *log)
{
	return log->durable_to;
}
