/*
 * Every system call of a build fails once: begin, commit, adopt.
 *
 * Whatever fails, nothing crashes or leaks, the outputs show all of the build
 * or nothing, what was staged can be committed afterwards, and an output that
 * shows the build has a build that says so.
 */
#include "build_fixture.h"
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Fails the call that brings `left` from 1 to 0. */
struct fault {
	unsigned left;
	int error;
	bool has_failed;
};

static bool is_due(const struct incr_io *io)
{
	struct fault *fault = io->closure;

	if (!fault->left || --fault->left)
		return false;
	fault->has_failed = true;
	return true;
}

static int error_of(const struct incr_io *io)
{
	return -((const struct fault *)io->closure)->error;
}

static int f_open_at(const struct incr_io *io, int dirfd, const char *path,
		     int flags, uint32_t mode)
{
	return is_due(io) ? error_of(io) :
			    io_posix.open_at(io, dirfd, path, flags, mode);
}

static int64_t f_pread(const struct incr_io *io, int fd, void *data,
		       size_t size, uint64_t off)
{
	return is_due(io) ? error_of(io) :
			    io_posix.pread(io, fd, data, size, off);
}

static int64_t f_pwrite(const struct incr_io *io, int fd, const void *data,
			size_t size, uint64_t off)
{
	return is_due(io) ? error_of(io) :
			    io_posix.pwrite(io, fd, data, size, off);
}

static int f_sync(const struct incr_io *io, int fd)
{
	(void)fd;
	return is_due(io) ? error_of(io) : 0;
}

static int f_rename_at(const struct incr_io *io, int from_dirfd,
		       const char *from, int to_dirfd, const char *to,
		       unsigned flags)
{
	return is_due(io) ? error_of(io) :
			    io_posix.rename_at(io, from_dirfd, from, to_dirfd,
					       to, flags);
}

static int f_unlink_at(const struct incr_io *io, int dirfd, const char *path,
		       int flags)
{
	return is_due(io) ? error_of(io) :
			    io_posix.unlink_at(io, dirfd, path, flags);
}

static int f_mkdir_at(const struct incr_io *io, int dirfd, const char *path,
		      uint32_t mode)
{
	return is_due(io) ? error_of(io) :
			    io_posix.mkdir_at(io, dirfd, path, mode);
}

static int f_readdir(const struct incr_io *io, int dirfd, io_readdir_fn fn,
		     void *closure)
{
	return is_due(io) ? error_of(io) :
			    io_posix.readdir(io, dirfd, fn, closure);
}

static int f_stat_at(const struct incr_io *io, int dirfd, const char *path,
		     struct io_stat *out_stat)
{
	return is_due(io) ? error_of(io) :
			    io_posix.stat_at(io, dirfd, path, out_stat);
}

static int f_lock(const struct incr_io *io, int fd, bool is_exclusive,
		  uint64_t off, uint64_t size)
{
	return is_due(io) ? error_of(io) :
			    io_posix.lock(io, fd, is_exclusive, off, size);
}

static int f_chmod(const struct incr_io *io, int fd, uint32_t mode)
{
	return is_due(io) ? error_of(io) : io_posix.chmod(io, fd, mode);
}

static void install(struct fixture *f, struct fault *fault)
{
	f->io.closure = fault;
	f->io.open_at = f_open_at;
	f->io.pread = f_pread;
	f->io.pwrite = f_pwrite;
	f->io.fsync = f->io.fdatasync = f->io.fsync_dir = f_sync;
	f->io.rename_at = f_rename_at;
	f->io.unlink_at = f_unlink_at;
	f->io.mkdir_at = f_mkdir_at;
	f->io.readdir = f_readdir;
	f->io.stat_at = f_stat_at;
	f->io.lock = f_lock;
	f->io.chmod = f_chmod;
}

/* The newest build; 0: none. */
static uint64_t newest(struct fixture *f, enum incr_build_status *out_status)
{
	struct incr_build_info info = { 0 };
	uint64_t found = 0;

	for (uint64_t number = 1;
	     incr_build_find(f->st, number, &info, NULL) == 0; number++) {
		found = number;
		*out_status = info.status;
		incr_build_info_release(&info);
	}
	return found;
}

static bool is_shown(struct fixture *f)
{
	uint64_t head = fixture_head(f, "out", NULL);
	uint64_t second = fixture_head(f, "out2", NULL);

	/* R41: several outputs appear together or not at all. */
	CHECK_INT_EQ(head != 0, second != 0);
	return head != 0;
}

/* The store as another process finds it, and what it can still do. */
static void check_after(struct fixture *f, const char *staged)
{
	enum incr_build_status status = INCR_BUILD_ABORTED;
	struct incr_build *b = NULL;
	uint64_t number;

	fixture_reopen(f);
	REQUIRE(f->st != NULL);
	number = newest(f, &status);
	if (is_shown(f)) {
		CHECK_INT_EQ(INCR_BUILD_COMMITTED, status);
		fixture_check_dataset(f, "out", staged);
		fixture_check_plan(f, INCR_DECISION_FRESH, "");
		return;
	}
	CHECK(status != INCR_BUILD_COMMITTED);
	if (number && status == INCR_BUILD_OPEN && *staged) {
		REQUIRE_OK(incr_build_adopt(f->st, number, &b, NULL));
		CHECK_OK(fixture_end(f, b, NULL));
		fixture_check_dataset(f, "out", staged);
		return;
	}
	fixture_check_run(f, INCR_DECISION_SNAPSHOT, "q");
}

/* false: fewer than @n calls were made. */
static bool fail_nth(unsigned n, int error, bool fails_begin)
{
	struct fault fault = { .error = error };
	struct incr_build *b;
	struct fixture f;
	const char *staged = "";

	fixture_set_up(&f);
	f.t.n_outputs = 2;
	fixture_history(&f, "in", "S{a}");
	install(&f, &fault);
	fixture_reopen(&f);
	fault.left = fails_begin ? n : 0;
	b = fixture_begin(&f, NULL);
	fault.left = 0;
	if (b) {
		staged = "xyz";
		fixture_stage(&f, b, 0, staged);
		fixture_stage(&f, b, 1, "z");
		fault.left = fails_begin ? 0 : n;
		(void)fixture_end(&f, b, NULL);
		fault.left = 0;
	}
	check_after(&f, staged);
	fixture_tear_down(&f);
	return fault.has_failed;
}

static void sweep(int error, bool fails_begin)
{
	unsigned n = 1;

	while (n < 10000 && fail_nth(n, error, fails_begin))
		n++;
	CHECK(n > 20);
	CHECK(n < 10000);
	printf("%u calls\n", n - 1);
}

static void test_build_begin__each_call_fails__nothing_is_lost(void)
{
	sweep(EIO, true);
}

static void test_build_commit__each_call_fails__nothing_is_lost(void)
{
	sweep(EIO, false);
}

static void test_build_commit__disk_full__nothing_is_lost(void)
{
	sweep(ENOSPC, false);
}

static const struct testing_test tests[] = {
	TEST(test_build_begin__each_call_fails__nothing_is_lost),
	TEST(test_build_commit__each_call_fails__nothing_is_lost),
	TEST(test_build_commit__disk_full__nothing_is_lost),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "build_faults", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
