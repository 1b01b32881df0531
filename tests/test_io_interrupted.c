/*
 * The real io table, with every system call interrupted a few times before it
 * is let through: nobody above the table notices.
 */
#include "config.h"

#include "error.h"
#include "io.h"
#include "store.h"
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_INTERRUPTIONS 3

static int n_left = N_INTERRUPTIONS;
static long n_interrupted;

static bool is_interrupted(void)
{
	if (n_left-- == 0) {
		n_left = N_INTERRUPTIONS;
		return false;
	}
	n_interrupted++;
	errno = EINTR;
	return true;
}

/* The file is closed, and the call was interrupted all the same. */
static int close_interrupted(int fd)
{
	int r = close(fd);

	n_interrupted++;
	errno = EINTR;
	return r < 0 ? abort(), -1 : -1;
}

/* io_posix.c once more, under another name and over these. */
#define OR_EINTR(call) (is_interrupted() ? -1 : (call))
#define OR_NULL(call) (is_interrupted() ? NULL : (call))
#define openat(...) OR_EINTR(openat(__VA_ARGS__))
#define close(fd) close_interrupted(fd)
#define pread(...) OR_EINTR(pread(__VA_ARGS__))
#define read(...) OR_EINTR(read(__VA_ARGS__))
#define pwrite(...) OR_EINTR(pwrite(__VA_ARGS__))
#define ftruncate(...) OR_EINTR(ftruncate(__VA_ARGS__))
#define fsync(...) OR_EINTR(fsync(__VA_ARGS__))
#define fdatasync(...) OR_EINTR(fdatasync(__VA_ARGS__))
#define renameat2(...) OR_EINTR(renameat2(__VA_ARGS__))
#define linkat(...) OR_EINTR(linkat(__VA_ARGS__))
#define symlinkat(...) OR_EINTR(symlinkat(__VA_ARGS__))
#define unlinkat(...) OR_EINTR(unlinkat(__VA_ARGS__))
#define mkdirat(...) OR_EINTR(mkdirat(__VA_ARGS__))
#define readdir(...) OR_NULL(readdir(__VA_ARGS__))
#define realpath(...) OR_NULL(realpath(__VA_ARGS__))
#define fstatat(...) OR_EINTR(fstatat(__VA_ARGS__))
#define fallocate(...) OR_EINTR(fallocate(__VA_ARGS__))
#define fcntl(...) OR_EINTR(fcntl(__VA_ARGS__))
#define futimens(...) OR_EINTR(futimens(__VA_ARGS__))
#define fchmod(...) OR_EINTR(fchmod(__VA_ARGS__))
#define ioctl(...) OR_EINTR(ioctl(__VA_ARGS__))
#define getrandom(...) OR_EINTR(getrandom(__VA_ARGS__))
#define io_posix io_interrupted
extern const struct incr_io io_interrupted;
#include "io_posix.c" /* NOLINT(bugprone-suspicious-include): its calls are these */
#undef openat
#undef close
#undef pread
#undef read
#undef pwrite
#undef ftruncate
#undef fsync
#undef fdatasync
#undef renameat2
#undef linkat
#undef symlinkat
#undef unlinkat
#undef mkdirat
#undef readdir
#undef realpath
#undef fstatat
#undef fallocate
#undef fcntl
#undef futimens
#undef fchmod
#undef ioctl
#undef getrandom

static const struct incr_io *const io = &io_interrupted;

static int count(void *closure, const char *name, enum io_kind kind)
{
	(void)name;
	(void)kind;
	++*(int *)closure;
	return 0;
}

static void test_io_posix__every_call_interrupted__works(void)
{
	char text[16] = "0123456789", path[4096];
	struct io_stat st;
	uint64_t number = 0;
	int n = 0, dir, fd;

	dir = io->open_at(io, AT_FDCWD, testing_tmpdir(),
			  O_RDONLY | O_DIRECTORY, 0);
	REQUIRE(dir >= 0);
	CHECK_INT_EQ(0, io->mkdir_at(io, dir, "d", 0700));
	fd = io->open_at(io, dir, "f", O_RDWR | O_CREAT, 0600);
	REQUIRE(fd >= 0);
	CHECK_INT_EQ(10, io->pwrite(io, fd, text, 10, 0));
	CHECK_INT_EQ(0, io->truncate(io, fd, 8));
	CHECK_INT_EQ(8, io->pread(io, fd, text, sizeof(text), 0));
	CHECK_INT_EQ(8, io->read(io, fd, text, sizeof(text)));
	CHECK_INT_EQ(0, io->fsync(io, fd));
	CHECK_INT_EQ(0, io->fdatasync(io, fd));
	CHECK_INT_EQ(0, io->fsync_dir(io, dir));
	CHECK_INT_EQ(0, io->link_at(io, dir, "f", dir, "g"));
	CHECK_INT_EQ(0, io->symlink_at(io, "f", dir, "s"));
	CHECK_INT_EQ(0, io->rename_at(io, dir, "g", dir, "h", 0));
	CHECK_INT_EQ(0, io->unlink_at(io, dir, "h", 0));
	CHECK_INT_EQ(0, io->readdir(io, dir, count, &n));
	CHECK_INT_EQ(3, n);
	CHECK_INT_EQ(0, io->stat_at(io, dir, "f", &st));
	CHECK_INT_EQ(8, st.size);
	CHECK_INT_EQ(0,
		     io->real_path(io, testing_tmpdir(), path, sizeof(path)));
	CHECK_INT_EQ(0, io->lock(io, fd, true, 0, 1));
	CHECK_INT_EQ(0, io->lock_test(io, fd, true, 0, 1));
	CHECK_INT_EQ(0, io->unlock(io, fd, 0, 1));
	CHECK_INT_EQ(0, io->set_times(io, fd, 1));
	CHECK_INT_EQ(0, io->chmod(io, fd, 0640));
	CHECK_INT_EQ(0, io->random(io, &number, sizeof(number)));
	/* what the file system may not have; only not "interrupted" */
	CHECK(io->fallocate(io, fd, 0, 4096) != -EINTR);
	CHECK(io->lease(io, fd, true) != -EINTR);
	CHECK(io->lease(io, fd, false) != -EINTR);
	CHECK(io->reflink(io, fd, fd) != -EINTR);
	CHECK_INT_EQ(0, io->close(io, fd));
	CHECK_INT_EQ(0, io->close(io, dir));
	CHECK(n_interrupted > 60);
}

static void test_store__every_call_interrupted__works(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct incr_source source = { .path = "/etc/passwd" };
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	struct incr_store *st;
	char path[4096];

	snprintf(path, sizeof(path), "%s/store", testing_tmpdir());
	REQUIRE_OK(store_init_with(io, path, &err));
	REQUIRE_OK(store_open_with(io, path, NULL, &st, &err));
	CHECK_OK(incr_dataset_create(st, "d", NULL, NULL, &options.dataset_id,
				     &err));
	CHECK_OK(incr_commit(st, &options, &source, 1, NULL, &err));
	incr_store_close(st);
	REQUIRE_OK(store_open_with(io, path, NULL, &st, &err));
	CHECK_OK(incr_verify(st, &verify, NULL, NULL, &result, &err));
	CHECK_INT_EQ(1, result.n_files);
	CHECK_INT_EQ(0, result.n_findings);
	incr_store_close(st);
	incr_error_release(&err);
}

static const struct testing_test tests[] = {
	TEST(test_io_posix__every_call_interrupted__works),
	TEST(test_store__every_call_interrupted__works),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "io_interrupted", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
