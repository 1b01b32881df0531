/* Helpers over the io table, and the real table. */
#include "config.h"

#include "buf.h"
#include "io.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The test's directory; closed by the caller. */
static int open_tmpdir(void)
{
	int fd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

/* A table that interrupts and shortens; n calls down before it fails. */
static struct {
	int fail_errno;
	unsigned n_calls, fail_at;
} fault;

static int64_t short_pread(const struct incr_io *io, int fd, void *data,
			   size_t size, uint64_t off)
{
	(void)io;
	if (++fault.n_calls == fault.fail_at)
		return -fault.fail_errno;
	if (fault.n_calls % 2)
		return -EINTR;
	return io_posix.pread(&io_posix, fd, data, size > 3 ? 3 : size, off);
}

static int64_t short_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	(void)io;
	if (++fault.n_calls == fault.fail_at)
		return -fault.fail_errno;
	if (fault.n_calls % 2)
		return -EINTR;
	return io_posix.pwrite(&io_posix, fd, data, size > 3 ? 3 : size, off);
}

static struct incr_io faulty(unsigned fail_at, int fail_errno)
{
	struct incr_io io = io_posix;

	io.pread = short_pread;
	io.pwrite = short_pwrite;
	fault.n_calls = 0;
	fault.fail_at = fail_at;
	fault.fail_errno = fail_errno;
	return io;
}

static void test_io_write_read__interrupted_and_short__completes(void)
{
	struct incr_io io = faulty(0, 0);
	struct incr_error err = INCR_ERROR_INIT;
	int dirfd = open_tmpdir(), fd = -1;
	char back[32] = "";
	size_t size;

	REQUIRE_OK(io_open(&io, dirfd, "f", O_RDWR | O_CREAT, 0600, &fd, &err));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_OK(io_write_all(&io, fd, "hello world", 11, 2, "f", &err));
	CHECK_OK(io_read_exact(&io, fd, back, 11, 2, "f", &err));
	CHECK_STR_EQ("hello world", back);
	CHECK_OK(io_read_upto(&io, fd, back, 32, 8, &size, "f", &err));
	CHECK_INT_EQ(5, size);
	CHECK_ERR(INCR_E_CORRUPT,
		  io_read_exact(&io, fd, back, 6, 8, "f", &err));
	CHECK_STR_EQ("f", err.thing);
	CHECK_OK(io_close(&io, fd));
	CHECK_OK(io_close(&io, -1));
	incr_error_release(&err);
	(void)close(dirfd);
}

static void test_io_write_all__disk_full__says_so(void)
{
	struct incr_io io = faulty(4, ENOSPC);
	struct incr_error err = INCR_ERROR_INIT;
	int dirfd = open_tmpdir(), fd = -1;

	REQUIRE_OK(io_open(&io, dirfd, "f", O_RDWR | O_CREAT, 0600, &fd, &err));
	CHECK_ERR(INCR_E_NOSPC,
		  io_write_all(&io, fd, "hello world", 11, 0, "f", &err));
	CHECK_INT_EQ(ENOSPC, err.sys_errno);
	CHECK_STR_EQ("no-space", err.word);
	incr_error_release(&err);
	(void)close(fd);
	(void)close(dirfd);
}

static void test_io_read_file__limit__is_held(void)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int dirfd = open_tmpdir();
	char text[10000];

	memset(text, 'x', sizeof(text));
	REQUIRE_OK(io_replace_file(&io_posix, dirfd, "f", text, sizeof(text),
				   false, NULL));
	CHECK_OK(
		io_read_file(&io_posix, dirfd, "f", sizeof(text), &data, NULL));
	REQUIRE_INT_EQ(sizeof(text), data.size);
	CHECK_MEM_EQ(text, data.data, sizeof(text));
	CHECK_ERR(INCR_E_CORRUPT, io_read_file(&io_posix, dirfd, "f",
					       sizeof(text) - 1, &data, NULL));
	CHECK_ERR(INCR_E_NOTFOUND,
		  io_read_file(&io_posix, dirfd, "g", 10, &data, NULL));
	CHECK_INT_EQ(sizeof(text), data.size);
	(void)close(dirfd);
}

static int count_entry(void *closure, const char *name, enum io_kind kind)
{
	(void)name;
	(void)kind;
	++*(int *)closure;
	return 0;
}

static void test_io_replace_file__again__leaves_new_alone(void)
{
	_cleanup_buf_ struct buf data = BUF_INIT;
	int dirfd = open_tmpdir(), n = 0;

	REQUIRE_OK(io_mkdir(&io_posix, dirfd, "d", NULL));
	CHECK_ERR(INCR_E_EXISTS, io_mkdir(&io_posix, dirfd, "d", NULL));
	for (int i = 0; i < 3; i++)
		CHECK_OK(io_replace_file(&io_posix, dirfd, "d/f", &"012"[i], 1,
					 i > 0, NULL));
	CHECK_OK(io_read_file(&io_posix, dirfd, "d/f", 10, &data, NULL));
	REQUIRE_INT_EQ(1, data.size);
	CHECK_INT_EQ('2', data.data[0]);
	CHECK_ERR(INCR_E_NOTFOUND,
		  io_replace_file(&io_posix, dirfd, "e/f", "x", 1, true, NULL));
	(void)close(dirfd);

	dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_OK(io_posix.readdir(&io_posix, dirfd, count_entry, &n));
	CHECK_INT_EQ(1, n);
	(void)close(dirfd);
}

static void test_io_replace_file__write_fails__leaves_old(void)
{
	struct incr_io io = faulty(2, EIO);
	_cleanup_buf_ struct buf data = BUF_INIT;
	int dirfd = open_tmpdir(), n = 0;

	REQUIRE_OK(
		io_replace_file(&io_posix, dirfd, "f", "old", 3, true, NULL));
	CHECK_ERR(INCR_E_IO,
		  io_replace_file(&io, dirfd, "f", "new", 3, true, NULL));
	CHECK_OK(io_read_file(&io_posix, dirfd, "f", 10, &data, NULL));
	CHECK_MEM_EQ("old", data.data, 3);
	CHECK_OK(io_posix.readdir(&io_posix, dirfd, count_entry, &n));
	CHECK_INT_EQ(1, n);
	(void)close(dirfd);
}

static void test_io_remove_tree__deep_and_wide__is_gone(void)
{
	int dirfd = open_tmpdir(), at = dup(dirfd), n = 0;

	REQUIRE(mkdirat(dirfd, "tree", 0700) == 0);
	REQUIRE(mkdirat(dirfd, "tree/.removed-0", 0700) == 0);
	REQUIRE(symlinkat("..", dirfd, "tree/up") == 0);
	/* Deeper than PATH_MAX allows in one path. */
	for (int i = 0; i < 3000; i++) {
		int next, fd;

		REQUIRE(i == 0 || mkdirat(at, "tree", 0700) == 0);
		next = openat(at, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		REQUIRE(next >= 0);
		(void)close(at);
		at = next;
		fd = openat(at, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0400);
		REQUIRE(fd >= 0);
		(void)close(fd);
		if (i % 7 == 0)
			CHECK(mkdirat(at, "wide", 0700) == 0);
		if (i % 5 == 0)
			CHECK(fchmod(at, 0700) == 0);
	}
	(void)close(at);
	CHECK_OK(io_remove_tree(&io_posix, dirfd, "tree", NULL));
	CHECK_OK(io_posix.readdir(&io_posix, dirfd, count_entry, &n));
	CHECK_INT_EQ(0, n);
	CHECK_OK(io_remove_tree(&io_posix, dirfd, "tree", NULL));
	(void)close(dirfd);
}

static void test_io_remove_tree__link_or_file__removes_only_it(void)
{
	int dirfd = open_tmpdir(), n = 0;

	REQUIRE(mkdirat(dirfd, "d", 0700) == 0);
	REQUIRE_OK(
		io_replace_file(&io_posix, dirfd, "d/f", "x", 1, false, NULL));
	REQUIRE(symlinkat("d", dirfd, "link") == 0);
	CHECK_OK(io_remove_tree(&io_posix, dirfd, "link", NULL));
	CHECK(faccessat(dirfd, "d/f", R_OK, 0) == 0);
	CHECK_OK(io_remove_tree(&io_posix, dirfd, "d/f", NULL));
	CHECK_OK(io_posix.readdir(&io_posix, dirfd, count_entry, &n));
	CHECK_INT_EQ(1, n);
	(void)close(dirfd);
}

static void test_io_posix_stat__kinds_and_times__as_set(void)
{
	int dirfd = open_tmpdir(), fd;
	struct io_stat st;

	fd = io_posix.open_at(&io_posix, dirfd, "f", O_CREAT | O_RDWR, 0640);
	REQUIRE(fd >= 0);
	CHECK_INT_EQ(0, io_posix.truncate(&io_posix, fd, 12345));
	CHECK_INT_EQ(0, io_posix.chmod(&io_posix, fd, 0751));
	CHECK_INT_EQ(0, io_posix.set_times(&io_posix, fd, -1500000000));
	REQUIRE_INT_EQ(0, io_posix.stat_at(&io_posix, fd, "", &st));
	CHECK_INT_EQ(IO_FILE, st.kind);
	CHECK_INT_EQ(12345, st.size);
	CHECK_INT_EQ(0751, st.mode);
	CHECK_INT_EQ(-1500000000, st.mtime_ns);
	CHECK_INT_EQ(0, io_posix.symlink_at(&io_posix, "f", dirfd, "l"));
	REQUIRE_INT_EQ(0, io_posix.stat_at(&io_posix, dirfd, "l", &st));
	CHECK_INT_EQ(IO_SYMLINK, st.kind);
	CHECK_INT_EQ(-ENOENT, io_posix.stat_at(&io_posix, dirfd, "x", &st));
	CHECK_INT_EQ(-EEXIST, io_posix.rename_at(&io_posix, dirfd, "f", dirfd,
						 "l", RENAME_NOREPLACE));
	CHECK_INT_EQ(-EFBIG, io_posix.pread(&io_posix, fd, &st, 1, UINT64_MAX));
	(void)close(fd);
	(void)close(dirfd);
}

static void test_io_posix_lease__writer__is_seen(void)
{
	int dirfd = open_tmpdir(), fd, writer, r;

	writer = openat(dirfd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	fd = openat(dirfd, "f", O_RDONLY | O_CLOEXEC);
	REQUIRE(fd >= 0 && writer >= 0);
	CHECK_INT_EQ(-EAGAIN, io_posix.lease(&io_posix, fd, true));
	(void)close(writer);
	r = io_posix.lease(&io_posix, fd, true);
	CHECK_INT_EQ(0, r);
	CHECK_INT_EQ(0, io_posix.lease(&io_posix, fd, false));
	(void)close(fd);
	(void)close(dirfd);
}

static const struct testing_test tests[] = {
	TEST(test_io_write_read__interrupted_and_short__completes),
	TEST(test_io_write_all__disk_full__says_so),
	TEST(test_io_read_file__limit__is_held),
	TEST(test_io_replace_file__again__leaves_new_alone),
	TEST(test_io_replace_file__write_fails__leaves_old),
	TEST(test_io_remove_tree__deep_and_wide__is_gone),
	TEST(test_io_remove_tree__link_or_file__removes_only_it),
	TEST(test_io_posix_stat__kinds_and_times__as_set),
	TEST(test_io_posix_lease__writer__is_seen),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "io", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
