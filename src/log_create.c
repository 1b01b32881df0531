/* The log of a new store: its directories and its first segment, durable. */
#include "config.h"

#include "log.h"

#include "error.h"
#include "log_impl.h"

#include <errno.h>
#include <fcntl.h>

static int make_directory(const struct log_options *options, const char *path,
			  struct incr_error *err)
{
	int r = options->io->mkdir_at(options->io, options->store_dirfd, path,
				      0777);

	if (r < 0 && r != -EEXIST)
		return incr_fail_errno(err, r, path,
				       "cannot make the directory");
	return 0;
}

static int create_first(struct log *log, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { log->io, -1 };
	char name[LOG_NAME_SIZE];
	int r;

	log_segment_name(0, name);
	r = log_segment_create(log, 0, 1, err);
	if (r == SEGMENT_TORN)
		return incr_fail(err, INCR_E_EXISTS, NULL, name,
				 "the log exists already");
	if (r < 0)
		return r;
	r = io_open(log->io, log->store_dirfd, name, O_RDWR, 0, &file.fd, err);
	if (r < 0)
		return r;
	r = io_sync_file(log->io, file.fd, name, err);
	if (r < 0)
		return r;

	r = io_open(log->io, log->store_dirfd, "log", O_RDONLY | O_DIRECTORY, 0,
		    &log->dirfd, err);
	if (r < 0)
		return r;
	r = io_sync_dir(log->io, log->dirfd, "log", err);
	if (r < 0)
		return r;
	return io_sync_dir(log->io, log->store_dirfd, "the store's directory",
			   err);
}

int log_create(const struct log_options *options, struct incr_error *err)
{
	struct log *log;
	int r;

	r = make_directory(options, "log", err);
	if (r < 0)
		return r;
	r = make_directory(options, "lost", err);
	if (r < 0)
		return r;

	log = log_new(options);
	if (!log)
		return incr_fail_nomem(err);
	r = create_first(log, err);
	log_close(log);
	return r;
}
