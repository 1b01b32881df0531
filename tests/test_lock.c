/* Locks between handles of one process and between processes. */
#include "config.h"

#include "lock.h"
#include "testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A directory with a lock file; closed by the caller. */
static struct lock_file open_store(void)
{
	int dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dirfd, "lock", O_CREAT | O_RDWR | O_CLOEXEC, 0644);

	if (fd < 0)
		abort();
	(void)close(fd);
	return LOCK_FILE_INIT(&io_posix, dirfd);
}

static void close_store(struct lock_file *file)
{
	lock_file_release(file);
	(void)close(file->store_dirfd);
}

static int take(struct lock_file *file, uint64_t off, bool is_exclusive,
		uint64_t wait_ms, struct lock *out_lock)
{
	return lock_take(file, off, is_exclusive, wait_ms, "the store",
			 out_lock, NULL);
}

static void test_lock_take__two_handles__exclude_each_other(void)
{
	struct lock a = { 0 }, b = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct lock_file file = open_store();

	REQUIRE_OK(take(&file, LOCK_APPEND, true, 0, &a));
	CHECK(lock_is_held(&io_posix, file.store_dirfd, LOCK_APPEND));
	CHECK_ERR(INCR_E_BUSY, lock_take(&file, LOCK_APPEND, true, 20,
					 "the store", &b, &err));
	CHECK_STR_EQ("busy", err.word);
	CHECK_STR_EQ("the store", err.thing);
	CHECK_ERR(INCR_E_BUSY, take(&file, LOCK_APPEND, false, 0, &b));
	CHECK(b.file == NULL);
	/* Other bytes are other locks. */
	CHECK_OK(take(&file, LOCK_SYNC, true, 0, &b));
	lock_release(&b);
	CHECK_OK(take(&file, LOCK_BRANCH(1), true, 0, &b));
	lock_release(&b);
	CHECK_OK(take(&file, LOCK_BUILD(UINT64_C(1) << 60), true, 0, &b));
	lock_release(&b);

	lock_release(&a);
	lock_release(&a);
	CHECK(!lock_is_held(&io_posix, file.store_dirfd, LOCK_APPEND));
	CHECK_OK(take(&file, LOCK_APPEND, true, 0, &a));
	lock_release(&a);
	incr_error_release(&err);
	close_store(&file);
}

static void test_lock_take__shared__shares(void)
{
	struct lock a = { 0 }, b = { 0 }, c = { 0 };
	struct lock_file file = open_store();

	REQUIRE_OK(take(&file, 5, false, 0, &a));
	CHECK_OK(take(&file, 5, false, 0, &b));
	CHECK(!lock_is_held(&io_posix, file.store_dirfd, 5));
	CHECK_ERR(INCR_E_BUSY, take(&file, 5, true, 0, &c));
	lock_release(&a);
	CHECK_ERR(INCR_E_BUSY, take(&file, 5, true, 0, &c));
	lock_release(&b);
	CHECK_OK(take(&file, 5, true, 0, &c));
	lock_release(&c);
	close_store(&file);
}

static void test_lock_take__no_lock_file__is_not_found(void)
{
	struct lock a = { 0 };
	struct lock_file file = open_store();

	REQUIRE(unlinkat(file.store_dirfd, "lock", 0) == 0);
	CHECK_ERR(INCR_E_NOTFOUND, take(&file, 0, true, 0, &a));
	CHECK(!lock_is_held(&io_posix, file.store_dirfd, 0));
	close_store(&file);
}

/* A child that holds a lock until it is killed; -1: it could not. */
static pid_t start_holder(struct lock_file *file)
{
	int ends[2];
	char byte = 0;
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		struct lock lock = { 0 };

		if (take(file, 7, true, 0, &lock) == 0 &&
		    write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	(void)close(ends[1]);
	if (pid > 0 && read(ends[0], &byte, 1) != 1)
		pid = -1;
	(void)close(ends[0]);
	return pid;
}

static void test_lock_take__holder_killed__is_free(void)
{
	struct lock_file file = open_store();
	struct lock lock = { 0 };
	pid_t pid = start_holder(&file);

	REQUIRE(pid > 0);
	CHECK(lock_is_held(&io_posix, file.store_dirfd, 7));
	CHECK_ERR(INCR_E_BUSY, take(&file, 7, true, 5, &lock));
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK_OK(take(&file, 7, true, 60000, &lock));
	lock_release(&lock);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close_store(&file);
}

/* A child of fork() has the descriptors of its parent, and no part in its locks. */
static void test_lock_take__after_fork__excludes_the_parent(void)
{
	struct lock_file file = open_store();
	struct lock lock = { 0 };
	pid_t pid;

	REQUIRE_OK(take(&file, 7, true, 0, &lock));
	lock_release(&lock);
	pid = start_holder(&file);
	REQUIRE(pid > 0);
	CHECK_ERR(INCR_E_BUSY, take(&file, 7, true, 0, &lock));
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_OK(take(&file, 7, true, 0, &lock));
	lock_release(&lock);
	close_store(&file);
}

/* Each child adds 1 to a counter in a file, many times, under the lock. */
static void test_lock_take__many_processes__one_at_a_time(void)
{
	enum { N_CHILDREN = 4, N_ROUNDS = 50 };
	struct lock_file file = open_store();
	int n = 0, status;
	int fd = openat(file.store_dirfd, "counter",
			O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	REQUIRE(pwrite(fd, &n, sizeof(n), 0) == sizeof(n));
	for (int i = 0; i < N_CHILDREN; i++) {
		if (fork() != 0)
			continue;
		for (int round = 0; round < N_ROUNDS; round++) {
			struct lock lock = { 0 };

			if (take(&file, 0, true, 60000, &lock) < 0 ||
			    pread(fd, &n, sizeof(n), 0) != sizeof(n))
				_exit(1);
			n++;
			if (pwrite(fd, &n, sizeof(n), 0) != sizeof(n))
				_exit(1);
			lock_release(&lock);
		}
		_exit(0);
	}
	for (int i = 0; i < N_CHILDREN; i++) {
		CHECK(wait(&status) > 0);
		CHECK_INT_EQ(0, status);
	}
	CHECK(pread(fd, &n, sizeof(n), 0) == sizeof(n));
	CHECK_INT_EQ(N_CHILDREN * N_ROUNDS, n);
	(void)close(fd);
	close_store(&file);
}

static int n_opened;

static int counting_open_at(const struct incr_io *io, int dirfd,
			    const char *path, int flags, uint32_t mode)
{
	(void)io;
	n_opened++;
	return io_posix.open_at(&io_posix, dirfd, path, flags, mode);
}

static void test_lock_release__next_take__opens_nothing(void)
{
	struct lock_file file = open_store();
	struct incr_io counting = io_posix;
	struct lock a = { 0 }, b = { 0 }, c = { 0 };

	counting.open_at = counting_open_at;
	file.io = &counting;
	n_opened = 0;
	for (int i = 0; i < 10; i++) {
		REQUIRE_OK(take(&file, LOCK_BRANCH(1), false, 0, &a));
		REQUIRE_OK(take(&file, LOCK_APPEND, true, 0, &b));
		lock_release(&b);
		lock_release(&a);
	}
	CHECK_INT_EQ(2, n_opened);
	/* each has a descriptor of its own */
	REQUIRE_OK(take(&file, LOCK_BRANCH(1), false, 0, &a));
	CHECK_ERR(INCR_E_BUSY, take(&file, LOCK_BRANCH(1), true, 0, &c));
	lock_release(&a);
	CHECK_OK(take(&file, LOCK_BRANCH(1), true, 0, &c));
	lock_release(&c);
	CHECK(!lock_is_held(&io_posix, file.store_dirfd, LOCK_BRANCH(1)));
	close_store(&file);
}

static const struct testing_test tests[] = {
	TEST(test_lock_take__two_handles__exclude_each_other),
	TEST(test_lock_take__shared__shares),
	TEST(test_lock_take__no_lock_file__is_not_found),
	TEST(test_lock_take__holder_killed__is_free),
	TEST(test_lock_take__after_fork__excludes_the_parent),
	TEST(test_lock_take__many_processes__one_at_a_time),
	TEST(test_lock_release__next_take__opens_nothing),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "lock", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
