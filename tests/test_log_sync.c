/* Syncing the log: once for all who wait, and what a failure means. */
#include "config.h"

#include "log.h"
#include "log_fixture.h"
#include "testing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void test_log_sync__one_record__is_one_fdatasync(void)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL)); /* first of a segment */
	for (int i = 0; i < 10; i++) {
		log_faults = (struct log_faults){ 0 };
		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(0, log_faults.n_fdatasync);
		CHECK_OK(log_sync(f.log, f.end, NULL));
		CHECK_INT_EQ(1, log_faults.n_fdatasync);
		CHECK_INT_EQ(0, log_faults.n_fsync_dir);
		CHECK_INT_EQ(2, log_faults.n_pwrite); /* record and hint */
		CHECK_OK(log_sync(f.log, f.end, NULL));
		CHECK_INT_EQ(1, log_faults.n_fdatasync);
	}
	log_fixture_close(&f);
}

static void test_log_sync__others_appended__serves_them_too(void)
{
	struct log_fixture a, b;

	REQUIRE_OK(log_fixture_create(&a, 0));
	REQUIRE_OK(log_fixture_open(&b, 0));
	REQUIRE_OK(log_fixture_append(&a, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&b, NULL));
	REQUIRE_OK(log_fixture_append(&b, NULL));

	log_faults.n_fdatasync = 0;
	CHECK_OK(log_sync(a.log, a.end, NULL));
	CHECK_INT_EQ(1, log_faults.n_fdatasync);
	CHECK_OK(log_sync(b.log, b.end, NULL));
	CHECK_INT_EQ(1, log_faults.n_fdatasync);
	CHECK_INT_EQ(b.end, log_durable_to(b.log));

	/* Not without the hint. */
	CHECK_INT_EQ(1, log_fixture_read(&a, NULL));
	REQUIRE_OK(log_fixture_append(&a, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&b, NULL));
	CHECK_OK(log_sync(a.log, a.end, NULL));
	log_fixture_reboot(&a);
	CHECK_OK(log_sync(b.log, b.end, NULL));
	CHECK_INT_EQ(3, log_faults.n_fdatasync);
	log_fixture_close(&a);
	log_fixture_close(&b);
}

static void test_log_sync__torn_record_of_another__is_not_counted(void)
{
	struct log_fixture f;
	uint64_t end;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	end = f.end;
	/* Half a record of a writer that is at it, or was killed. */
	log_fixture_write(&f, FIRST_SEGMENT, end, "INCR half of a record", 21);
	CHECK_OK(log_sync(f.log, end, NULL));
	CHECK_INT_EQ(end, log_durable_to(f.log));
	CHECK_INT_EQ(1, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_append__next_record__carries_durable_to(void)
{
	struct log_record record;
	struct log_fixture f;
	uint64_t ends[3], next;

	REQUIRE_OK(log_fixture_create(&f, 0));
	for (int i = 0; i < 3; i++) {
		REQUIRE_OK(log_fixture_append(&f, NULL));
		ends[i] = f.end;
		if (i == 0)
			REQUIRE_OK(log_sync(f.log, f.end, NULL));
	}
	CHECK_INT_EQ(0, log_read(f.log, ends[1], &record, &next, NULL));
	CHECK_INT_EQ(ends[0], record.header.durable_to);
	log_fixture_close(&f);
}

static void test_log_sync__fails__handle_is_dead(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	log_faults.fdatasync_errno = EIO;
	CHECK_ERR(INCR_E_IO, log_sync(f.log, f.end, &err));
	CHECK_INT_EQ(EIO, err.sys_errno);
	log_faults = (struct log_faults){ 0 };
	CHECK_ERR(INCR_E_DEAD, log_sync(f.log, f.end, &err));
	CHECK_STR_EQ("handle-dead", err.word);
	CHECK_STR_EQ("open the store again", err.hint);
	CHECK_ERR(INCR_E_DEAD, log_fixture_append(&f, &err));
	CHECK_INT_EQ(0, log_faults.n_fdatasync); /* never again hoping */
	incr_error_release(&err);
	log_fixture_close(&f);
}

static void test_log_sync__failed_for_another__fails_waiters(void)
{
	struct log_fixture a, b;

	REQUIRE_OK(log_fixture_create(&a, 0));
	REQUIRE_OK(log_fixture_open(&b, 0));
	REQUIRE_OK(log_fixture_append(&a, NULL));
	REQUIRE_OK(log_sync(a.log, a.end, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&b, NULL));
	CHECK_OK(log_sync(b.log, b.end, NULL));
	REQUIRE_OK(log_fixture_append(&b, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&a, NULL));
	REQUIRE_OK(log_fixture_append(&a, NULL));

	log_faults.fdatasync_errno = EIO;
	CHECK_ERR(INCR_E_IO, log_sync(a.log, a.end, NULL));
	log_faults = (struct log_faults){ 0 };
	CHECK_ERR(INCR_E_DEAD, log_sync(b.log, b.end, NULL));
	CHECK_INT_EQ(0, log_faults.n_fdatasync);
	log_fixture_close(&a);
	log_fixture_close(&b);
}

/* Two records, the second of which a failed sync left doubtful. */
static int create_doubtful(struct log_fixture *f, uint64_t *out_from)
{
	int r = log_fixture_create(f, 0);

	if (r == 0)
		r = log_fixture_append(f, NULL);
	if (r == 0)
		r = log_sync(f->log, f->end, NULL);
	*out_from = f->end;
	if (r == 0)
		r = log_fixture_append(f, NULL);
	log_faults.fdatasync_errno = EIO;
	if (r == 0 && log_sync(f->log, f->end, NULL) != INCR_E_IO)
		r = INCR_E_INVALID;
	log_faults = (struct log_faults){ 0 };
	return r;
}

static void test_log_append__after_failed_sync__writes_doubtful_again(void)
{
	struct log_fixture f, other;
	uint64_t from;

	REQUIRE_OK(create_doubtful(&f, &from));
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	/* The doubtful record, the hint, the new record. */
	CHECK_INT_EQ(3, log_faults.n_pwrite);
	CHECK_INT_EQ(1, log_faults.n_fdatasync);
	CHECK_OK(log_sync(f.log, f.end, NULL));
	CHECK_INT_EQ(2, log_faults.n_fdatasync);

	/* All is as before for everyone. */
	REQUIRE_OK(log_fixture_open(&other, 0));
	CHECK_INT_EQ(3, log_fixture_read(&other, NULL));
	log_faults = (struct log_faults){ 0 };
	REQUIRE_OK(log_fixture_append(&other, NULL));
	CHECK_OK(log_sync(other.log, other.end, NULL));
	CHECK_INT_EQ(1, log_faults.n_fdatasync);
	log_fixture_close(&f);
	log_fixture_close(&other);
}

static void test_log_append__doubtful_lost__dead_until_opened_again(void)
{
	static const uint8_t zeros[64];
	struct log_fixture f, old;
	uint64_t from;

	REQUIRE_OK(create_doubtful(&f, &from));
	REQUIRE_OK(log_fixture_open(&old, 0));
	CHECK_INT_EQ(2, log_fixture_read(&old, NULL));
	/* What the kernel could not write, it forgot. */
	log_fixture_write(&f, FIRST_SEGMENT, from, zeros, sizeof(zeros));
	CHECK_ERR(INCR_E_DEAD, log_fixture_append(&old, NULL));

	CHECK_INT_EQ(1, log_fixture_reread(&old, NULL));
	CHECK_OK(log_fixture_append(&old, NULL));
	CHECK_OK(log_sync(old.log, old.end, NULL));
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
	log_fixture_close(&old);
}

/* A new segment whose header or name could not be made durable. */
static void check_new_segment_fails(int fdatasync_errno, int fsync_dir_errno)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 512));
	while (log_fixture_file_size(&f, FIRST_SEGMENT) < 512)
		REQUIRE_OK(log_fixture_append(&f, NULL));
	REQUIRE_OK(log_sync(f.log, f.end, NULL));

	log_faults.fdatasync_errno = fdatasync_errno;
	log_faults.fsync_dir_errno = fsync_dir_errno;
	CHECK_ERR(INCR_E_IO, log_fixture_append(&f, NULL));
	CHECK_ERR(INCR_E_DEAD, log_fixture_append(&f, NULL));
	log_faults = (struct log_faults){ 0 };

	CHECK_INT_EQ(f.sequence - 1, log_fixture_reread(&f, NULL));
	CHECK_OK(log_fixture_append(&f, NULL));
	/* Its header was written again, and its name synced. */
	CHECK_INT_EQ(3, log_faults.n_pwrite);
	CHECK(log_faults.n_fsync_dir >= 1);
	CHECK_OK(log_sync(f.log, f.end, NULL));
	CHECK_INT_EQ(f.sequence - 1, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(2, log_fixture_count(&f, "log"));
	log_fixture_close(&f);
}

static void test_log_append__segment_header_not_synced__is_redone(void)
{
	check_new_segment_fails(EIO, 0);
}

static void test_log_append__segment_name_not_synced__is_redone(void)
{
	check_new_segment_fails(0, EIO);
}

static void test_log_append__old_segment_not_synced__makes_no_new(void)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 512));
	while (log_fixture_file_size(&f, FIRST_SEGMENT) < 512)
		REQUIRE_OK(log_fixture_append(&f, NULL));
	log_faults.fdatasync_errno = ENOSPC;
	CHECK_ERR(INCR_E_NOSPC, log_fixture_append(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_count(&f, "log"));
	log_faults = (struct log_faults){ 0 };
	CHECK_INT_EQ(f.sequence - 1, log_fixture_reread(&f, NULL));
	CHECK_OK(log_fixture_append(&f, NULL));
	CHECK_INT_EQ(2, log_fixture_count(&f, "log"));
	log_fixture_close(&f);
}

static void test_log_sync__new_segments__costs_two_more(void)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 512));
	while (log_fixture_file_size(&f, FIRST_SEGMENT) < 512)
		REQUIRE_OK(log_fixture_append(&f, NULL));
	REQUIRE_OK(log_sync(f.log, f.end, NULL));
	log_faults = (struct log_faults){ 0 };
	REQUIRE_OK(log_fixture_append(&f, NULL));
	REQUIRE_OK(log_sync(f.log, f.end, NULL));
	/* Header and record; the directory.  The old one was synced. */
	CHECK_INT_EQ(2, log_faults.n_fdatasync);
	CHECK_INT_EQ(1, log_faults.n_fsync_dir);
	log_fixture_close(&f);
}

static const struct testing_test tests[] = {
	TEST(test_log_sync__one_record__is_one_fdatasync),
	TEST(test_log_sync__others_appended__serves_them_too),
	TEST(test_log_sync__torn_record_of_another__is_not_counted),
	TEST(test_log_append__next_record__carries_durable_to),
	TEST(test_log_sync__fails__handle_is_dead),
	TEST(test_log_sync__failed_for_another__fails_waiters),
	TEST(test_log_append__after_failed_sync__writes_doubtful_again),
	TEST(test_log_append__doubtful_lost__dead_until_opened_again),
	TEST(test_log_append__segment_header_not_synced__is_redone),
	TEST(test_log_append__segment_name_not_synced__is_redone),
	TEST(test_log_append__old_segment_not_synced__makes_no_new),
	TEST(test_log_sync__new_segments__costs_two_more),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "log_sync", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
