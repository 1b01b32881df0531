/* A log to test with. */
#include "config.h"

#include "log_fixture.h"

#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct log_faults log_faults;

static int counting_fdatasync(const struct incr_io *io, int fd)
{
	(void)io;
	log_faults.n_fdatasync++;
	if (log_faults.fdatasync_errno)
		return -log_faults.fdatasync_errno;
	return io_posix.fdatasync(&io_posix, fd);
}

static int counting_fsync(const struct incr_io *io, int fd)
{
	(void)io;
	log_faults.n_fsync++;
	return io_posix.fsync(&io_posix, fd);
}

static int counting_fsync_dir(const struct incr_io *io, int fd)
{
	(void)io;
	log_faults.n_fsync_dir++;
	if (log_faults.fsync_dir_errno)
		return -log_faults.fsync_dir_errno;
	return io_posix.fsync_dir(&io_posix, fd);
}

static int64_t counting_pread(const struct incr_io *io, int fd, void *data,
			      size_t size, uint64_t off)
{
	(void)io;
	log_faults.n_pread++;
	log_faults.pread_size += size;
	return io_posix.pread(&io_posix, fd, data, size, off);
}

static int64_t failing_pwrite(const struct incr_io *io, int fd,
			      const void *data, size_t size, uint64_t off)
{
	(void)io;
	log_faults.n_pwrite++;
	if (log_faults.pwrite_errno && size > log_faults.pwrite_part) {
		int r = -log_faults.pwrite_errno;

		if (log_faults.pwrite_part == 0) {
			log_faults.pwrite_errno = 0;
			return r;
		}
		size = log_faults.pwrite_part;
		log_faults.pwrite_part = 0;
	}
	return io_posix.pwrite(&io_posix, fd, data, size, off);
}

/* Tests are one thread and one test at a time: the table may be global. */
static struct incr_io faulty_io;

int log_fixture_open(struct log_fixture *f, uint64_t segment_size)
{
	faulty_io = io_posix;
	faulty_io.fdatasync = counting_fdatasync;
	faulty_io.fsync = counting_fsync;
	faulty_io.fsync_dir = counting_fsync_dir;
	faulty_io.pread = counting_pread;
	faulty_io.pwrite = failing_pwrite;

	*f = (struct log_fixture){ .sequence = 1 };
	f->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dirfd < 0)
		abort();
	f->options = (struct log_options){
		.io = &faulty_io,
		.store_dirfd = f->dirfd,
		.uuid = "0123456789abcde",
		.is_writable = true,
		.segment_size = segment_size,
	};
	if (faccessat(f->dirfd, "lock", F_OK, 0) < 0)
		return 0; /* for log_fixture_create() */
	return log_open(&f->options, &f->log, NULL);
}

int log_fixture_create(struct log_fixture *f, uint64_t segment_size)
{
	int fd, r;

	log_faults = (struct log_faults){ 0 };
	r = log_fixture_open(f, segment_size);
	if (r < 0 || f->log)
		abort(); /* there is a store already */
	fd = openat(f->dirfd, "lock", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		abort();
	(void)close(fd);
	r = log_create(&f->options, NULL);
	if (r < 0)
		return r;
	r = log_open(&f->options, &f->log, NULL);
	if (r == 0)
		f->end = log_begin(f->log);
	return r;
}

void log_fixture_close(struct log_fixture *f)
{
	log_close(f->log);
	(void)close(f->dirfd);
	*f = (struct log_fixture){ .dirfd = -1 };
}

size_t log_fixture_payload_size(uint64_t sequence)
{
	return (size_t)(sequence * 37 % 200);
}

static void fill(uint64_t sequence, uint8_t bytes[200])
{
	for (size_t i = 0; i < log_fixture_payload_size(sequence); i++)
		bytes[i] = (uint8_t)(sequence * 31 + i);
}

int log_fixture_read(struct log_fixture *f, struct incr_error *err)
{
	int n = 0;

	if (f->end == 0)
		f->end = log_begin(f->log);
	for (;; n++) {
		struct log_record record;
		uint8_t want[200];
		uint64_t next;
		int r = log_read(f->log, f->end, &record, &next, err);

		if (r != 0)
			return r < 0 ? r : n;
		CHECK_INT_EQ(f->sequence, record.header.sequence);
		CHECK_INT_EQ(f->sequence % 100, record.header.type);
		CHECK_INT_EQ(log_fixture_payload_size(f->sequence),
			     record.header.payload_size);
		fill(f->sequence, want);
		CHECK_MEM_EQ(want, record.payload,
			     log_fixture_payload_size(f->sequence));
		f->end = next;
		f->sequence = record.header.sequence + 1;
	}
}

int log_fixture_append(struct log_fixture *f, struct incr_error *err)
{
	size_t size = log_fixture_payload_size(f->sequence);
	uint64_t position, next;
	uint8_t bytes[200];
	struct log_append a = {
		.type = (uint16_t)(f->sequence % 100),
		.position = f->end,
		.sequence = f->sequence,
		.payload = { bytes, bytes + size / 3 },
		.payload_size = { size / 3, size - size / 3 },
	};
	int r;

	fill(f->sequence, bytes);
	r = log_append(f->log, &a, &position, &next, err);
	if (r < 0)
		return r;
	CHECK_INT_EQ(next, position + record_span((uint32_t)size));
	f->end = next;
	f->sequence++;
	return 0;
}

int log_fixture_reread(struct log_fixture *f, struct incr_error *err)
{
	int r;

	log_close(f->log);
	f->log = NULL;
	f->end = 0;
	f->sequence = 1;
	r = log_open(&f->options, &f->log, err);
	return r < 0 ? r : log_fixture_read(f, err);
}

static int open_file(struct log_fixture *f, const char *path)
{
	int fd = openat(f->dirfd, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		abort();
	return fd;
}

uint64_t log_fixture_file_size(struct log_fixture *f, const char *path)
{
	struct stat st;

	return fstatat(f->dirfd, path, &st, 0) < 0 ? 0 : (uint64_t)st.st_size;
}

void log_fixture_write(struct log_fixture *f, const char *path, uint64_t off,
		       const void *data, size_t size)
{
	int fd = open_file(f, path);

	if (pwrite(fd, data, size, (off_t)off) != (ssize_t)size)
		abort();
	(void)close(fd);
}

void log_fixture_flip(struct log_fixture *f, const char *path, uint64_t bit)
{
	int fd = open_file(f, path);
	uint8_t byte;

	if (pread(fd, &byte, 1, (off_t)(bit / 8)) != 1)
		abort();
	(void)close(fd);
	byte ^= (uint8_t)(1 << bit % 8);
	log_fixture_write(f, path, bit / 8, &byte, 1);
}

void log_fixture_cut(struct log_fixture *f, const char *path, uint64_t size)
{
	int fd = open_file(f, path);

	if (ftruncate(fd, (off_t)size) < 0)
		abort();
	(void)close(fd);
}

void log_fixture_reboot(struct log_fixture *f)
{
	static const uint8_t zeros[64];

	log_fixture_write(f, "lock", 64, zeros, sizeof(zeros));
}

static int count_entry(void *closure, const char *name, enum io_kind kind)
{
	(void)name;
	(void)kind;
	++*(int *)closure;
	return 0;
}

int log_fixture_count(struct log_fixture *f, const char *path)
{
	int fd = openat(f->dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = 0;

	if (fd < 0 || io_posix.readdir(&io_posix, fd, count_entry, &n) < 0)
		abort();
	(void)close(fd);
	return n;
}
