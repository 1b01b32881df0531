/*
 * The spool of a build: layout, sealing, markers, and who still writes.
 */
#include "error.h"
#include "staging.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const aliases[] = { "brown", "abort" };

struct fixture {
	int dirfd;
	struct staging s;
};

static void set_up(struct fixture *f)
{
	f->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(f->dirfd >= 0);
	CHECK_INT_EQ(0, mkdirat(f->dirfd, STAGING_SPOOL, 0755));
	staging_of_build(&io_posix, f->dirfd, 7, &f->s);
	CHECK_OK(staging_create(&f->s, aliases, 2, NULL));
}

static void tear_down(struct fixture *f)
{
	CHECK_OK(staging_remove(&f->s, NULL));
	CHECK_INT_EQ(0, close(f->dirfd));
}

static bool exists(const struct fixture *f, const char *path)
{
	return faccessat(f->dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int create_file(const struct fixture *f, const char *path)
{
	int fd = openat(f->dirfd, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT_EQ(5, write(fd, "hello", 5));
	return fd;
}

static void check_state(const struct fixture *f, enum staging_state want)
{
	enum staging_state got = STAGING_MISSING;

	CHECK_OK(staging_state(&f->s, &got, NULL));
	CHECK_INT_EQ(want, got);
}

static void test_staging_create__aliases__get_directories(void)
{
	char path[STAGING_PATH_MAX];
	struct fixture f;
	struct stat st;

	set_up(&f);
	CHECK_STR_EQ("spool/b7", f.s.dir);
	CHECK(exists(&f, "spool/b7/staging/brown"));
	/* An alias that is spelt like a marker disturbs nothing. */
	CHECK(exists(&f, "spool/b7/staging/abort"));
	CHECK(!exists(&f, "spool/b7/abort"));
	CHECK_INT_EQ(0, fstatat(f.dirfd, "spool/b7/staging/brown", &st, 0));
	CHECK_INT_EQ(0755, st.st_mode & 07777);
	staging_path(&f.s, "brown", false, path);
	CHECK_STR_EQ("spool/b7/staging/brown", path);
	staging_path(&f.s, "brown", true, path);
	CHECK_STR_EQ("spool/b7/sealed/brown", path);
	check_state(&f, STAGING_OPEN);
	CHECK_ERR(INCR_E_EXISTS, staging_create(&f.s, aliases, 2, NULL));
	CHECK(exists(&f, "spool/b7/staging/brown"));
	tear_down(&f);
	CHECK(!exists(&f, "spool/b7"));
}

static void test_staging_preview__two__differ(void)
{
	struct fixture f;
	struct staging a, b;

	set_up(&f);
	CHECK_OK(staging_of_preview(&io_posix, f.dirfd, &a, NULL));
	CHECK_OK(staging_of_preview(&io_posix, f.dirfd, &b, NULL));
	CHECK(strcmp(a.dir, b.dir) != 0);
	CHECK_OK(staging_create(&a, aliases, 1, NULL));
	CHECK_OK(staging_remove(&a, NULL));
	CHECK_OK(staging_remove(&a, NULL));
	tear_down(&f);
}

static void test_staging_seal__old_path__opens_nothing(void)
{
	struct fixture f;
	int fd;

	set_up(&f);
	fd = create_file(&f, "spool/b7/staging/brown/a");
	CHECK_INT_EQ(0, close(fd));
	CHECK_OK(staging_seal(&f.s, NULL));
	check_state(&f, STAGING_SEALED);
	CHECK(openat(f.dirfd, "spool/b7/staging/brown/b", O_CREAT | O_WRONLY,
		     0644) < 0);
	CHECK(exists(&f, "spool/b7/sealed/brown/a"));
	CHECK_OK(staging_seal(&f.s, NULL));
	CHECK_OK(staging_unseal(&f.s, NULL));
	check_state(&f, STAGING_OPEN);
	CHECK_OK(staging_unseal(&f.s, NULL));
	CHECK(exists(&f, "spool/b7/staging/brown/a"));
	tear_down(&f);
}

static void test_staging_seal__gone__not_found(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct fixture f;

	set_up(&f);
	CHECK_OK(staging_remove(&f.s, NULL));
	check_state(&f, STAGING_MISSING);
	CHECK_ERR(INCR_E_NOTFOUND, staging_seal(&f.s, &err));
	CHECK_STR_EQ("no-staging", err.word);
	CHECK_ERR(INCR_E_NOTFOUND, staging_unseal(&f.s, NULL));
	incr_error_release(&err);
	tear_down(&f);
}

static void check_mark(const struct fixture *f, const char *alias, bool want)
{
	bool got = !want;

	CHECK_OK(staging_is_marked(&f->s, alias, &got, NULL));
	CHECK_INT_EQ(want, got);
}

static void test_staging_mark__alias_and_whole__are_apart(void)
{
	struct fixture f;

	set_up(&f);
	check_mark(&f, NULL, false);
	CHECK_OK(staging_mark_abort(&f.s, "brown", NULL));
	CHECK_OK(staging_mark_abort(&f.s, "brown", NULL));
	check_mark(&f, NULL, false);
	check_mark(&f, "brown", true);
	check_mark(&f, "abort", false);
	CHECK_OK(staging_mark_abort(&f.s, NULL, NULL));
	check_mark(&f, NULL, true);
	CHECK(exists(&f, "spool/b7/abort"));
	CHECK(exists(&f, "spool/b7/abort-brown"));
	tear_down(&f);
}

static void test_staging_result__written__is_read_back(void)
{
	struct incr_error want = INCR_ERROR_INIT, got = INCR_ERROR_INIT;
	struct fixture f;
	int fd;

	set_up(&f);
	CHECK_INT_EQ(1, staging_read_result(&f.s, &got));
	(void)incr_fail(&want, INCR_E_CONFLICT, "append-collision", "a",
			"it exists");
	incr_fail_add_path(&want, "a", 1);
	CHECK_OK(staging_write_result(&f.s, &want, NULL));
	CHECK_OK(staging_write_result(&f.s, &want, NULL));
	REQUIRE_OK(staging_read_result(&f.s, &got));
	CHECK_STR_EQ("append-collision", got.word);
	CHECK_STR_EQ("a", got.paths);
	incr_error_release(&got);
	incr_error_release(&want);
	/* A damaged one counts as none. */
	fd = create_file(&f, "spool/b7/result");
	CHECK_INT_EQ(0, close(fd));
	CHECK_INT_EQ(1, staging_read_result(&f.s, &got));
	tear_down(&f);
}

static void check_busy(const struct fixture *f, const char *path, size_t n)
{
	struct incr_error err = INCR_ERROR_INIT;
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "process %d ", (int)getpid());
	CHECK_ERR(INCR_E_CONFLICT, staging_check_writers(&f->s, "brown", &err));
	CHECK_STR_EQ("staging-busy", err.word);
	CHECK_STR_EQ(path, err.thing);
	CHECK(strstr(err.message, pid) != NULL);
	CHECK(strstr(err.message, "(test_staging") != NULL);
	CHECK_INT_EQ(n, err.n_paths);
	incr_error_release(&err);
}

static void test_staging_check_writers__open_file__names_who(void)
{
	struct fixture f;
	int a, b, read_only;

	set_up(&f);
	CHECK_INT_EQ(0, mkdirat(f.dirfd, "spool/b7/staging/brown/d", 0755));
	a = create_file(&f, "spool/b7/staging/brown/d/x");
	b = create_file(&f, "spool/b7/staging/brown/d/y");
	CHECK_OK(staging_seal(&f.s, NULL));
	check_busy(&f, "d/x", 2);
	CHECK_INT_EQ(0, close(a));
	check_busy(&f, "d/y", 1);
	CHECK_INT_EQ(0, close(b));
	read_only = openat(f.dirfd, "spool/b7/sealed/brown/d/x",
			   O_RDONLY | O_CLOEXEC);
	CHECK(read_only >= 0);
	CHECK_OK(staging_check_writers(&f.s, "brown", NULL));
	CHECK_INT_EQ(0, close(read_only));
	tear_down(&f);
}

static void test_staging_check_writers__other_output__is_no_matter(void)
{
	struct fixture f;
	int fd;

	set_up(&f);
	fd = create_file(&f, "spool/b7/staging/abort/x");
	CHECK_OK(staging_seal(&f.s, NULL));
	CHECK_OK(staging_check_writers(&f.s, "brown", NULL));
	CHECK_INT_EQ(0, close(fd));
	tear_down(&f);
}

static void test_staging_check_writers__shared_mapping__names_who(void)
{
	struct fixture f;
	void *mapping;
	int fd;

	set_up(&f);
	fd = create_file(&f, "spool/b7/staging/brown/m");
	mapping = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mapping != MAP_FAILED);
	CHECK_INT_EQ(0, close(fd));
	CHECK_OK(staging_seal(&f.s, NULL));
	check_busy(&f, "m", 1);
	CHECK_INT_EQ(0, munmap(mapping, 5));
	CHECK_OK(staging_check_writers(&f.s, "brown", NULL));
	tear_down(&f);
}

static const struct testing_test tests[] = {
	TEST(test_staging_create__aliases__get_directories),
	TEST(test_staging_preview__two__differ),
	TEST(test_staging_seal__old_path__opens_nothing),
	TEST(test_staging_seal__gone__not_found),
	TEST(test_staging_mark__alias_and_whole__are_apart),
	TEST(test_staging_result__written__is_read_back),
	TEST(test_staging_check_writers__open_file__names_who),
	TEST(test_staging_check_writers__other_output__is_no_matter),
	TEST(test_staging_check_writers__shared_mapping__names_who),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "staging", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
