/*
 * Commits of builds that are refused with their staging kept, and several
 * builds at once.
 */
#include "build_fixture.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INCREMENTAL INCR_DECISION_INCREMENTAL
#define SNAPSHOT INCR_DECISION_SNAPSHOT
#define FRESH INCR_DECISION_FRESH
#define REFUSED INCR_DECISION_REFUSED

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ---- refused commits ---- */

static void test_build_commit__R126_strict_append__lists_all_and_keeps_staging(
	void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	char path[600];
	struct fixture f;
	uint64_t number;

	fixture_set_up(&f);
	f.t.strict_append = true;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "abc"); /* R127: no error here */
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	number = incr_build_number(b);
	fixture_stage(&f, b, 0, "acd");
	(void)snprintf(path, sizeof(path), "%s/a", incr_build_staging(b, 0));
	CHECK_ERR(INCR_E_CONFLICT, fixture_end(&f, b, NULL));
	CHECK_STR_EQ("strict-append-collision", f.err.word);
	CHECK_INT_EQ(2, f.err.n_paths);
	CHECK_MEM_EQ("a\0c", f.err.paths, 4);
	CHECK(strstr(f.err.hint, "incrctl build commit b") != NULL);
	CHECK(exists(path));
	fixture_check_dataset(&f, "out", "abc");
	/* Why stands in the build; mended, it commits. */
	CHECK_OK(incr_build_find(f.st, number, &info, NULL));
	CHECK_INT_EQ(INCR_BUILD_OPEN, info.status);
	CHECK(info.is_orphaned);
	CHECK_STR_EQ("strict-append-collision", info.error.word);
	incr_build_info_release(&info);
	CHECK_OK(incr_build_adopt(f.st, number, &b, NULL));
	CHECK_INT_EQ(0, unlink(path));
	path[strlen(path) - 1] = 'c';
	CHECK_INT_EQ(0, unlink(path));
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_APPEND);
	fixture_check_dataset(&f, "out", "abcd");
	fixture_tear_down(&f);
}

static void test_build_commit__R107_append_mode__collides_regardless_of_bytes(
	void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.n_outputs = 2;
	f.outputs[0].write_mode = f.outputs[1].write_mode = INCR_MODE_APPEND;
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage_text(b, 0, "same", "1");
	fixture_stage(&f, b, 1, "z");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage_text(b, 0, "same", "1");
	fixture_stage(&f, b, 1, "z");
	CHECK_ERR(INCR_E_CONFLICT, fixture_end(&f, b, NULL));
	CHECK_STR_EQ("append-collision", f.err.word);
	/* Of both outputs. */
	CHECK_INT_EQ(2, f.err.n_paths);
	fixture_tear_down(&f);
}

static void test_build_commit__trace22_empty_replace__refused(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "S{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_ERR(INCR_E_REFUSED,
		  incr_build_commit(b, &f.commit_options, NULL, &f.err));
	CHECK_STR_EQ("empty-replace", f.err.word);
	fixture_check_dataset(&f, "out", "a");
	/* The same handle may try again. */
	f.commit_options.allows_empty = true;
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "");
	fixture_check_type(&f, "out", INCR_SNAPSHOT);
	fixture_tear_down(&f);
}

static void test_build_commit__file_still_open__staging_busy(void)
{
	struct incr_build *b;
	char path[600], pid[32];
	struct fixture f;
	int fd;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage(&f, b, 0, "ab");
	(void)snprintf(path, sizeof(path), "%s/b", incr_build_staging(b, 0));
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_build_commit(b, &f.commit_options, NULL, &f.err));
	CHECK_STR_EQ("staging-busy", f.err.word);
	CHECK_STR_EQ("b", f.err.thing);
	(void)snprintf(pid, sizeof(pid), "process %d ", (int)getpid());
	CHECK(strstr(f.err.message, pid) != NULL);
	CHECK_INT_EQ(0, close(fd));
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "ab");
	fixture_tear_down(&f);
}

static int no_lease(const struct incr_io *io, int fd, bool is_on)
{
	(void)io;
	(void)fd;
	(void)is_on;
	return -EINVAL;
}

static void test_build_commit__no_leases_here__descriptors_tell(void)
{
	struct incr_build *b;
	struct fixture f;
	char path[600];
	int fd;

	fixture_set_up(&f);
	f.io.lease = no_lease;
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage(&f, b, 0, "ab");
	(void)snprintf(path, sizeof(path), "%s/b", incr_build_staging(b, 0));
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_build_commit(b, &f.commit_options, NULL, &f.err));
	CHECK_STR_EQ("staging-busy", f.err.word);
	CHECK_INT_EQ(0, close(fd));
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "ab");
	fixture_tear_down(&f);
}

/* ---- several builds at once ---- */

static void test_build_commit__live__locks_its_outputs(void)
{
	struct history_txn txn = { .type = INCR_APPEND, .paths = "z" };
	struct incr_build *b, *other = NULL;
	enum incr_decision decision;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK(fixture_begin(&f, &decision) == NULL);
	CHECK_INT_EQ(0, decision);
	CHECK_INT_EQ(INCR_E_BUSY, f.err.code);
	CHECK_INT_EQ(0, fixture_commit(&f, "out", NULL, &txn));
	CHECK_INT_EQ(INCR_E_BUSY, f.err.code);
	CHECK_ERR(INCR_E_BUSY,
		  incr_build_adopt(f.st, incr_build_number(b), &other, NULL));
	/* Inputs are never locked. */
	CHECK(fixture_commit(&f, "in", NULL, &txn) != 0);
	CHECK_OK(fixture_end(&f, b, NULL));
	CHECK(fixture_commit(&f, "out", NULL, &txn) != 0);
	fixture_tear_down(&f);
}

static void test_build_commit__orphan__holds_nothing(void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	struct fixture f;
	uint64_t number;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	number = incr_build_number(b);
	CHECK_OK(incr_build_find(f.st, number, &info, NULL));
	CHECK(!info.is_orphaned);
	incr_build_info_release(&info);
	fixture_stage(&f, b, 0, "o");
	incr_build_close(b);
	fixture_reopen(&f);
	CHECK_OK(incr_build_find(f.st, number, &info, NULL));
	CHECK(info.is_orphaned);
	incr_build_info_release(&info);
	fixture_check_run(&f, SNAPSHOT, "x");
	/* Its output has moved: it cannot land any more. */
	CHECK_OK(incr_build_adopt(f.st, number, &b, NULL));
	CHECK_ERR(INCR_E_CONFLICT,
		  incr_build_commit(b, &f.commit_options, NULL, &f.err));
	CHECK_STR_EQ("branch-moved", f.err.word);
	CHECK_OK(incr_build_abort(b, false, -1, NULL, NULL));
	incr_build_close(b);
	fixture_check_dataset(&f, "out", "x");
	CHECK_ERR(INCR_E_CONFLICT, incr_build_adopt(f.st, number, &b, &f.err));
	CHECK_STR_EQ("not-open", f.err.word);
	CHECK_ERR(INCR_E_NOTFOUND, incr_build_adopt(f.st, 99, &b, NULL));
	fixture_tear_down(&f);
}

static void test_build_commit__orphan_sealed__can_be_committed(void)
{
	struct incr_build *b;
	char from[600], to[600];
	struct fixture f;
	uint64_t number;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	number = incr_build_number(b);
	fixture_stage(&f, b, 0, "o");
	/* As if killed right after sealing. */
	(void)snprintf(from, sizeof(from), "%s/staging", incr_build_spool(b));
	(void)snprintf(to, sizeof(to), "%s/sealed", incr_build_spool(b));
	CHECK_INT_EQ(0, rename(from, to));
	incr_build_close(b);
	CHECK_OK(incr_build_adopt(f.st, number, &b, NULL));
	CHECK(exists(incr_build_staging(b, 0)));
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "o");
	fixture_tear_down(&f);
}

static void test_build_commit__open_transaction__blocks_at_once(void)
{
	struct incr_txn_options options = { .type = INCR_APPEND };
	enum incr_decision decision;
	struct fixture f;
	uint64_t number;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	options.dataset_id = fixture_dataset(&f, "out");
	CHECK_OK(incr_txn_begin(f.st, &options, &number, NULL));
	CHECK(fixture_begin(&f, &decision) == NULL);
	CHECK_INT_EQ(INCR_E_CONFLICT, f.err.code);
	CHECK_STR_EQ("open-transaction", f.err.word);
	CHECK_OK(incr_txn_abort(f.st, number, NULL));
	fixture_check_run(&f, SNAPSHOT, "x");
	fixture_tear_down(&f);
}

static void test_build_commit__R170_preview__leaves_nothing(void)
{
	struct incr_build *b;
	struct fixture f;
	char spool[600];

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	f.build_options.is_preview = true;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_INT_EQ(0, incr_build_number(b));
	fixture_check_view(incr_build_input_view(b, 0, INCR_VIEW_ADDED), "a");
	fixture_stage(&f, b, 0, "x");
	(void)snprintf(spool, sizeof(spool), "%s", incr_build_spool(b));
	CHECK(exists(spool));
	CHECK_ERR(INCR_E_INVALID,
		  incr_build_commit(b, &f.commit_options, NULL, NULL));
	incr_build_close(b);
	CHECK(!exists(spool));
	CHECK_INT_EQ(0, fixture_head(&f, "out", NULL));
	f.build_options.is_preview = false;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_INT_EQ(1, incr_build_number(b));
	incr_build_close(b);
	fixture_tear_down(&f);
}

static const struct testing_test tests[] = {
	TEST(test_build_commit__R126_strict_append__lists_all_and_keeps_staging),
	TEST(test_build_commit__R107_append_mode__collides_regardless_of_bytes),
	TEST(test_build_commit__trace22_empty_replace__refused),
	TEST(test_build_commit__file_still_open__staging_busy),
	TEST(test_build_commit__no_leases_here__descriptors_tell),
	TEST(test_build_commit__live__locks_its_outputs),
	TEST(test_build_commit__orphan__holds_nothing),
	TEST(test_build_commit__orphan_sealed__can_be_committed),
	TEST(test_build_commit__open_transaction__blocks_at_once),
	TEST(test_build_commit__R170_preview__leaves_nothing),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "build_commit", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
