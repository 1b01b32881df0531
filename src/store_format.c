/* The format file, written once, last, when a store is made. */
#include "config.h"

#include "store_format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hash.h"

static const char *const store_dirs[] = { "log", "packs", "index", "spool",
					  "lost" };

static void format_encode(const uint8_t uuid[16], int64_t created_ns,
			  uint8_t out[STORE_FORMAT_SIZE])
{
	memset(out, 0, STORE_FORMAT_SIZE);
	memcpy(out, STORE_FORMAT_MAGIC, 8);
	put_u32(out + 8, STORE_FORMAT_VERSION);
	/* 12: zero; 16, 24, 32: feature flags, incompatible, read-compatible, compatible */
	memcpy(out + 40, uuid, 16);
	put_u64(out + 56, (uint64_t)created_ns);
	put_u64(out + STORE_FORMAT_SIZE - 8,
		hash64(out, STORE_FORMAT_SIZE - 8));
}

static int newer(const char *path, const char *what, struct incr_error *err)
{
	incr_fail(err, INCR_E_UNSUPPORTED, "newer-format", path,
		  "the store was written by a newer version (%s)", what);
	incr_hint(err, "use a version of incrctl that knows it");
	return INCR_E_UNSUPPORTED;
}

static int format_decode(struct incr_store *st, const uint8_t *bytes,
			 size_t size, struct incr_error *err)
{
	uint64_t incompatible, read_compatible;
	uint32_t version;

	if (size < 12 || memcmp(bytes, STORE_FORMAT_MAGIC, 8) != 0)
		return incr_fail(err, INCR_E_NOTFOUND, "not-a-store", st->path,
				 "the directory is not a store");
	version = get_u32(bytes + 8);
	if (version > STORE_FORMAT_VERSION)
		return newer(st->path, "format version", err);
	if (size != STORE_FORMAT_SIZE || version != STORE_FORMAT_VERSION ||
	    get_u32(bytes + 12) ||
	    get_u64(bytes + STORE_FORMAT_SIZE - 8) !=
		    hash64(bytes, STORE_FORMAT_SIZE - 8))
		return incr_fail(
			err, INCR_E_CORRUPT, "damaged-format", st->path,
			"the store's format file does not match its checksum");
	for (size_t i = 64; i < STORE_FORMAT_SIZE - 8; i++)
		if (bytes[i])
			return incr_fail(
				err, INCR_E_CORRUPT, "damaged-format", st->path,
				"the store's format file has bytes where none belong");
	incompatible = get_u64(bytes + 16);
	read_compatible = get_u64(bytes + 24);
	if (incompatible & ~STORE_KNOWN_INCOMPATIBLE)
		return newer(st->path, "unknown features", err);
	if (read_compatible & ~STORE_KNOWN_READ_COMPATIBLE)
		st->is_readonly = true;
	memcpy(st->uuid, bytes + 40, 16);
	return 0;
}

static void set_uuid(struct incr_store *st)
{
	const uint8_t *u = st->uuid;
	size_t at = 0;

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			st->uuid_text[at++] = '-';
		snprintf(st->uuid_text + at, 3, "%02x", u[i]);
		at += 2;
	}
	st->tag = hash64(st->uuid, sizeof(st->uuid));
}

int store_format_open(struct incr_store *st, const char *path,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_error why = INCR_ERROR_INIT;
	char absolute[PATH_MAX];
	int r;

	r = st->io->real_path(st->io, path, absolute, sizeof(absolute));
	if (r == -ENOENT || r == -ENOTDIR) {
		incr_fail(err, INCR_E_NOTFOUND, "no-store", path,
			  "there is no store");
		incr_hint(err, "incrctl init %s", path);
		return INCR_E_NOTFOUND;
	}
	if (r < 0)
		return incr_fail_errno(err, -r, path, "cannot open the store");
	st->path = strdup(absolute);
	if (!st->path)
		return incr_fail_nomem(err);
	st->dirfd = st->io->open_at(st->io, AT_FDCWD, st->path,
				    O_RDONLY | O_DIRECTORY, 0);
	if (st->dirfd == -ENOTDIR)
		return incr_fail(err, INCR_E_NOTFOUND, "not-a-store", st->path,
				 "it is not a directory, so it is not a store");
	if (st->dirfd < 0)
		return incr_fail_errno(err, -st->dirfd, st->path,
				       "cannot open the store");
	r = io_read_file(st->io, st->dirfd, STORE_FORMAT_FILE, 4096, &bytes,
			 &why);
	if (r < 0) {
		int sys_errno = why.sys_errno;

		incr_error_release(&why);
		if (r == INCR_E_NOMEM)
			return incr_fail_nomem(err);
		if (r == INCR_E_NOTFOUND) {
			incr_fail(err, INCR_E_NOTFOUND, "not-a-store", st->path,
				  "the directory is not a store");
			incr_hint(
				err,
				"incrctl init makes one in an empty directory");
			return INCR_E_NOTFOUND;
		}
		if (r == INCR_E_CORRUPT)
			return incr_fail(err, INCR_E_CORRUPT, "damaged-format",
					 st->path,
					 "the store's format file is too long");
		return incr_fail_errno(err, sys_errno ? sys_errno : EIO,
				       st->path,
				       "cannot read the store's format file");
	}
	r = format_decode(st, bytes.data, bytes.size, err);
	if (r == 0)
		set_uuid(st);
	return r;
}

/* ---- init ---- */

static int count_foreign(void *closure, const char *name, enum io_kind kind)
{
	(void)kind;
	for (size_t i = 0; i < sizeof(store_dirs) / sizeof(store_dirs[0]); i++)
		if (!strcmp(name, store_dirs[i]))
			return 0;
	if (!strcmp(name, STORE_LOCK_FILE) ||
	    !strncmp(name, STORE_FORMAT_FILE ".", 7))
		return 0;
	(*(int *)closure)++;
	return 0;
}

/* Empty, or what a killed init left: our own names, and no format file. */
static int check_empty(const struct incr_io *io, int dirfd, const char *path,
		       struct incr_error *err)
{
	struct io_stat s;
	int n = 0;
	int r = io->stat_at(io, dirfd, STORE_FORMAT_FILE, &s);

	if (r == 0)
		return incr_fail(err, INCR_E_EXISTS, "store-exists", path,
				 "there is a store already");
	r = io->readdir(io, dirfd, count_foreign, &n);
	if (r < 0)
		return incr_fail_errno(err, -r, path,
				       "cannot list the directory");
	if (n)
		return incr_fail(err, INCR_E_EXISTS, "not-empty", path,
				 "the directory is not empty");
	return 0;
}

static int make_dirs(const struct incr_io *io, int dirfd,
		     struct incr_error *err)
{
	for (size_t i = 0; i < sizeof(store_dirs) / sizeof(store_dirs[0]);
	     i++) {
		int r = io_remove_tree(io, dirfd, store_dirs[i], err);

		if (r == 0)
			r = io_mkdir(io, dirfd, store_dirs[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_lock_file(const struct incr_io *io, int dirfd,
			  struct incr_error *err)
{
	static const uint8_t zeros[STORE_LOCK_FILE_SIZE];
	int fd, closed;
	int r = io_open(io, dirfd, STORE_LOCK_FILE, O_RDWR | O_CREAT | O_TRUNC,
			0644, &fd, err);

	if (r < 0)
		return r;
	r = io_write_all(io, fd, zeros, sizeof(zeros), 0, STORE_LOCK_FILE, err);
	if (r == 0)
		r = io_sync_file(io, fd, STORE_LOCK_FILE, err);
	closed = io_close(io, fd);
	if (r == 0 && closed < 0)
		r = incr_fail_errno(err, closed, STORE_LOCK_FILE,
				    "cannot close");
	return r;
}

static int init_in(const struct incr_io *io, int dirfd, const char *path,
		   struct incr_error *err)
{
	struct log_options log_options = { .io = io,
					   .store_dirfd = dirfd,
					   .is_writable = true };
	uint8_t bytes[STORE_FORMAT_SIZE];
	int r = check_empty(io, dirfd, path, err);

	if (r < 0)
		return r;
	r = io->random(io, log_options.uuid, sizeof(log_options.uuid));
	if (r < 0)
		return incr_fail_errno(err, -r, path, "no random numbers");
	/* RFC 4122, version 4 */
	log_options.uuid[6] = (uint8_t)((log_options.uuid[6] & 0x0f) | 0x40);
	log_options.uuid[8] = (uint8_t)((log_options.uuid[8] & 0x3f) | 0x80);
	r = make_dirs(io, dirfd, err);
	if (r == 0)
		r = make_lock_file(io, dirfd, err);
	if (r == 0)
		r = log_create(&log_options, err);
	if (r == 0)
		r = io_sync_dir(io, dirfd, path, err);
	if (r < 0)
		return r;
	format_encode(log_options.uuid, io->now_ns(io), bytes);
	return io_replace_file(io, dirfd, STORE_FORMAT_FILE, bytes,
			       sizeof(bytes), true, err);
}

/* The store's own name in its parent directory must survive a power cut too. */
static int sync_parent(const struct incr_io *io, int dirfd,
		       struct incr_error *err)
{
	int fd;
	int r = io_open(io, dirfd, "..", O_RDONLY | O_DIRECTORY, 0, &fd, err);

	if (r < 0)
		return r;
	r = io_sync_dir(io, fd, "..", err);
	(void)io_close(io, fd); /* only read from */
	return r;
}

int store_init_with(const struct incr_io *io, const char *path,
		    struct incr_error *err)
{
	int r = io->mkdir_at(io, AT_FDCWD, path, 0777);
	int fd;

	if (r < 0 && r != -EEXIST)
		return incr_fail_errno(err, -r, path,
				       "cannot make the store's directory");
	fd = io->open_at(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOTDIR)
		return incr_fail(err, INCR_E_EXISTS, "not-empty", path,
				 "it is a file");
	if (fd < 0)
		return incr_fail_errno(err, -fd, path,
				       "cannot open the store's directory");
	r = init_in(io, fd, path, err);
	if (r == 0)
		r = sync_parent(io, fd, err);
	(void)io_close(io, fd); /* only read from */
	return r;
}
