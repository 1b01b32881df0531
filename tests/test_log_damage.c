/* Torn tails and damage of the log, told apart. */
#include "config.h"

#include "hash.h"
#include "log.h"
#include "log_fixture.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Three records; @ends: of each; synced up to the first @n_synced, then rebooted. */
static int create_three(struct log_fixture *f, int n_synced, uint64_t ends[4])
{
	int r = log_fixture_create(f, 0);

	ends[0] = f->end;
	for (int i = 1; r == 0 && i <= 3; i++) {
		r = log_fixture_append(f, NULL);
		ends[i] = f->end;
		if (r == 0 && i <= n_synced)
			r = log_sync(f->log, f->end, NULL);
	}
	log_fixture_reboot(f);
	return r;
}

static void test_log_read__torn_at_every_byte__stops_before(void)
{
	struct log_fixture f;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 2, ends));
	for (uint64_t size = ends[3]; size-- > ends[2];) {
		log_fixture_cut(&f, FIRST_SEGMENT, size);
		CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
		CHECK_INT_EQ(ends[2], f.end);
	}
	log_fixture_close(&f);
}

static void test_log_append__torn_at_any_byte__keeps_it_aside(void)
{
	struct log_fixture f;
	uint64_t ends[4];
	int n_lost = 0;

	REQUIRE_OK(create_three(&f, 2, ends));
	for (uint64_t size = ends[3]; size-- > ends[2]; size -= size % 5) {
		char name[64];

		log_fixture_cut(&f, FIRST_SEGMENT, size);
		REQUIRE_INT_EQ(2, log_fixture_reread(&f, NULL));
		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));
		if (size > ends[2]) {
			(void)snprintf(name, sizeof(name),
				       "lost/torn-%016jx-%d",
				       (uintmax_t)ends[2], n_lost++);
			CHECK_INT_EQ(size - ends[2],
				     log_fixture_file_size(&f, name));
		}
		if (size == ends[2])
			break;
	}
	CHECK(n_lost > 5);
	CHECK_INT_EQ(n_lost, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
}

static void test_log_read__bit_flipped_in_last__is_torn(void)
{
	struct log_fixture f;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 2, ends));
	for (uint64_t bit = 8 * ends[2]; bit < 8 * ends[3]; bit++) {
		log_fixture_flip(&f, FIRST_SEGMENT, bit);
		CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
		log_fixture_flip(&f, FIRST_SEGMENT, bit);
	}
	CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_read__bit_flipped_in_synced__is_corrupt(void)
{
	struct log_fixture f;
	struct incr_error err = INCR_ERROR_INIT;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 2, ends));
	for (uint64_t bit = 8 * ends[0]; bit < 8 * ends[2]; bit++) {
		log_fixture_flip(&f, FIRST_SEGMENT, bit);
		CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, &err));
		log_fixture_flip(&f, FIRST_SEGMENT, bit);
	}
	CHECK_STR_EQ("corrupt-log", err.word);
	CHECK_STR_EQ(FIRST_SEGMENT, err.thing);
	CHECK(strstr(err.message, "at byte ") != NULL);
	CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));
	incr_error_release(&err);
	log_fixture_close(&f);
}

static void test_log_append__on_damage__cuts_nothing(void)
{
	struct log_fixture f;
	uint64_t ends[4], size;

	REQUIRE_OK(create_three(&f, 2, ends));
	size = log_fixture_file_size(&f, FIRST_SEGMENT);
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[1] + 500);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	f.end = ends[1];
	f.sequence = 2;
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_append(&f, NULL));
	CHECK_INT_EQ(size, log_fixture_file_size(&f, FIRST_SEGMENT));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
}

static void test_log_read__unsynced_records_bad__both_are_tail(void)
{
	struct log_fixture f;
	uint64_t ends[4];

	/* The third is whole, but does not prove that the second was. */
	REQUIRE_OK(create_three(&f, 1, ends));
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[1] + 500);
	CHECK_INT_EQ(1, log_fixture_reread(&f, NULL));
	log_faults = (struct log_faults){ 0 };
	REQUIRE_OK(log_fixture_append(&f, NULL));
	/* The copy, its name, and the cut: else a crash could undo it. */
	CHECK_INT_EQ(2, log_faults.n_fsync);
	CHECK_INT_EQ(1, log_faults.n_fsync_dir);
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
}

static void test_log_read__hint_of_this_boot__proves_damage(void)
{
	struct log_fixture f;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 0, ends));
	REQUIRE_OK(log_sync(f.log, ends[3], NULL));
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[2] + 500);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	log_fixture_cut(&f, FIRST_SEGMENT, ends[2]);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	/* Without it only the log itself can prove it. */
	log_fixture_reboot(&f);
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

/* The last record has no later one to prove it, and the boot's hint is void. */
static void test_log_read__mark_of_an_earlier_boot__proves_damage(void)
{
	static const uint8_t zeros[32];
	struct log_fixture f;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 0, ends));
	REQUIRE_OK(log_sync(f.log, ends[3], NULL));
	log_fixture_write(&f, "lock", 64, zeros, sizeof(zeros));
	CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[2] + 500);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_append(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	/* A mark of another store says nothing. */
	log_fixture_flip(&f, "lock", 8 * 96);
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_read__hint_copied_with_store__is_void(void)
{
	struct log_fixture f;
	uint8_t bytes[4096];
	uint64_t ends[4];
	int fd;

	REQUIRE_OK(create_three(&f, 0, ends));
	REQUIRE_OK(log_sync(f.log, ends[3], NULL));
	fd = openat(f.dirfd, "lock", O_RDONLY | O_CLOEXEC);
	REQUIRE(pread(fd, bytes, sizeof(bytes), 0) == sizeof(bytes));
	REQUIRE(renameat(f.dirfd, "lock", f.dirfd, "old-lock") == 0);
	log_fixture_write(&f, "lock", 0, bytes, sizeof(bytes));
	log_fixture_cut(&f, FIRST_SEGMENT, ends[2] + 8);
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	(void)close(fd);
	log_fixture_close(&f);
}

static void test_log_read__zeros_after_end__are_room(void)
{
	struct log_fixture f;
	uint64_t ends[4], size = 0;
	static const uint8_t zeros[300000]; /* more than a reader takes at once */

	REQUIRE_OK(create_three(&f, 3, ends));
	for (int round = 0; round < 3; round++) {
		log_fixture_write(&f, FIRST_SEGMENT, f.end, zeros,
				  sizeof(zeros) >> round * 5);
		CHECK_INT_EQ(3 + round, log_fixture_reread(&f, NULL));
		REQUIRE_OK(log_torn_size(f.log, f.end, &size, NULL));
		CHECK_INT_EQ(0, size);
		REQUIRE_OK(log_fixture_append(&f, NULL));
	}
	CHECK_INT_EQ(6, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	CHECK(log_fixture_file_size(&f, FIRST_SEGMENT) >
	      ends[3] + sizeof(zeros) - 1);
	log_fixture_close(&f);
}

/* Alone, or among the zeros that are room for records: anywhere in the tail. */
static void test_log_read__garbage_after_end__is_torn(void)
{
	struct log_fixture f;
	uint64_t ends[4], size = 0;
	uint8_t bytes[5000];

	REQUIRE_OK(create_three(&f, 3, ends));
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(round < 2 ? i * 7 / 3 : 0);
		/* A whole header whose payload never came. */
		if (round == 1)
			memcpy(bytes, "INCR", 4);
		if (round == 2)
			bytes[sizeof(bytes) - 1] = 1;
		if (round == 3)
			bytes[0] = 1;
		log_fixture_write(&f, FIRST_SEGMENT, f.end, bytes,
				  sizeof(bytes));
		CHECK_INT_EQ(3 + round, log_fixture_reread(&f, NULL));
		REQUIRE_OK(log_torn_size(f.log, f.end, &size, NULL));
		CHECK_INT_EQ(sizeof(bytes), size);
		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(f.end, log_fixture_file_size(&f, FIRST_SEGMENT));
	}
	CHECK_INT_EQ(7, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(4, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
}

static void test_log_read__record_moved_or_foreign__is_not_taken(void)
{
	struct log_fixture f;
	uint8_t record[1024];
	uint64_t ends[4];
	size_t size;
	int fd;

	REQUIRE_OK(create_three(&f, 0, ends));
	size = (size_t)(ends[3] - ends[2]);
	fd = openat(f.dirfd, FIRST_SEGMENT, O_RDONLY | O_CLOEXEC);
	REQUIRE(pread(fd, record, size, (off_t)ends[2]) == (ssize_t)size);
	(void)close(fd);
	log_fixture_write(&f, FIRST_SEGMENT, ends[3], record, size);
	CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));

	f.options.uuid[0] ^= 1;
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_read__record_of_another_store__is_torn(void)
{
	struct log_fixture f;
	uint64_t ends[4];
	uint8_t bytes[RECORD_HEADER_SIZE];
	struct record_header h = { .type = 1, .sequence = 4 };

	REQUIRE_OK(create_three(&f, 0, ends));
	h.position = ends[3];
	h.store_tag = hash64("another uuid, 16", 16);
	h.payload_hash = hash64(NULL, 0);
	record_encode_header(&h, bytes);
	log_fixture_write(&f, FIRST_SEGMENT, ends[3], bytes, sizeof(bytes));
	CHECK_INT_EQ(3, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_read__tail_cut_by_another__reads_what_is_new(void)
{
	struct log_fixture f, reader;
	uint64_t ends[4];

	REQUIRE_OK(create_three(&f, 2, ends));
	REQUIRE_OK(log_fixture_open(&reader, 0));
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[2] + 500);
	/* The reader has the torn record in its window from now on. */
	CHECK_INT_EQ(2, log_fixture_read(&reader, NULL));
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&reader, NULL));
	log_fixture_close(&f);
	log_fixture_close(&reader);
}

static void test_log_next_whole__behind_damage__finds_records(void)
{
	struct log_fixture f;
	struct log_record record;
	uint64_t ends[4], next;

	REQUIRE_OK(create_three(&f, 2, ends));
	log_fixture_flip(&f, FIRST_SEGMENT, 8 * ends[0] + 500);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
	REQUIRE_OK(log_next_whole(f.log, ends[0], &record, &next, NULL));
	CHECK_INT_EQ(ends[1], record.header.position);
	CHECK_INT_EQ(2, record.header.sequence);
	CHECK_INT_EQ(ends[2], next);
	CHECK_INT_EQ(1, log_next_whole(f.log, ends[3], &record, &next, NULL));
	log_fixture_close(&f);
}

/* Many segments; @out_names: the last but one and the last. */
static int create_segments(struct log_fixture *f, char out_names[2][64])
{
	int r = log_fixture_create(f, 512);
	uint64_t base = 0, size;

	for (int i = 0; r == 0 && i < 60; i++)
		r = log_fixture_append(f, NULL);
	for (;;) {
		char name[64];

		(void)snprintf(name, sizeof(name), "log/%016jx.log",
			       (uintmax_t)base);
		size = log_fixture_file_size(f, name);
		if (size == 0)
			break;
		memcpy(out_names[0], out_names[1], 64);
		memcpy(out_names[1], name, 64);
		base += size;
	}
	log_fixture_reboot(f);
	return r;
}

static void test_log_read__segment_missing__is_corrupt(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct log_fixture f;
	char names[2][64];

	REQUIRE_OK(create_segments(&f, names));
	CHECK_INT_EQ(60, log_fixture_reread(&f, NULL));
	REQUIRE(unlinkat(f.dirfd, names[0], 0) == 0);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, &err));
	CHECK_STR_EQ("corrupt-log", err.word);
	REQUIRE(unlinkat(f.dirfd, FIRST_SEGMENT, 0) == 0);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, &err));
	CHECK_STR_EQ(FIRST_SEGMENT, err.thing);
	incr_error_release(&err);
	log_fixture_close(&f);
}

static void test_log_read__earlier_segment_cut__is_corrupt(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct log_fixture f;
	char names[2][64];

	REQUIRE_OK(create_segments(&f, names));
	log_fixture_cut(&f, names[0], log_fixture_file_size(&f, names[0]) - 8);
	CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, &err));
	CHECK_STR_EQ(names[0], err.thing);
	incr_error_release(&err);
	log_fixture_close(&f);
}

static void test_log_open__segment_header_flipped__is_corrupt(void)
{
	struct log_fixture f;
	char names[2][64];

	REQUIRE_OK(create_segments(&f, names));
	for (int which = 0; which < 2; which++) {
		for (uint64_t bit = 0; bit < 512; bit++) {
			log_fixture_flip(&f, names[which], bit);
			CHECK_ERR(INCR_E_CORRUPT, log_fixture_reread(&f, NULL));
			log_fixture_flip(&f, names[which], bit);
		}
	}
	CHECK_INT_EQ(60, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

/* A crash while a segment is made leaves any part of its header. */
static void test_log_append__torn_segment__is_made_again(void)
{
	struct log_fixture f;
	char names[2][64], next[64];
	uint64_t sequence;
	int n_torn = 0;

	REQUIRE_OK(create_segments(&f, names));
	/* Fill the last segment, so that a new one is due at the end. */
	do {
		REQUIRE_OK(log_fixture_append(&f, NULL));
		(void)snprintf(next, sizeof(next), "log/%016jx.log",
			       (uintmax_t)f.end);
	} while (log_fixture_file_size(&f, names[1]) < 512);
	sequence = f.sequence;
	/* Sometimes the segment goes on with a larger limit. */
	for (uint64_t size = 0; size < 80; size += 8, n_torn++) {
		static const uint8_t zeros[80];

		f.options.segment_size = size % 16 ? 0 : 512;
		log_fixture_write(&f, next, 0, zeros, (size_t)size);
		CHECK_INT_EQ(sequence - 1, log_fixture_reread(&f, NULL));
		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(sequence, log_fixture_reread(&f, NULL));
		CHECK_INT_EQ(n_torn + 1, log_fixture_count(&f, "lost"));
		REQUIRE(unlinkat(f.dirfd, next, 0) == 0);
		log_fixture_reboot(&f);
	}
	log_fixture_close(&f);
}

static void test_log_append__segment_without_records__is_used(void)
{
	struct log_fixture f;
	char names[2][64];
	uint64_t n;

	REQUIRE_OK(create_segments(&f, names));
	log_fixture_cut(&f, names[1], 64);
	REQUIRE(log_fixture_reread(&f, NULL) > 0);
	n = f.sequence;
	log_faults.n_fsync_dir = 0;
	REQUIRE_OK(log_fixture_append(&f, NULL));
	/* Its maker may have died before its name was durable. */
	CHECK_INT_EQ(1, log_faults.n_fsync_dir);
	CHECK_INT_EQ(n, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(64 + record_span((uint32_t)log_fixture_payload_size(n)),
		     log_fixture_file_size(&f, names[1]));
	log_fixture_close(&f);
}

static const struct testing_test tests[] = {
	TEST(test_log_read__torn_at_every_byte__stops_before),
	TEST(test_log_append__torn_at_any_byte__keeps_it_aside),
	TEST(test_log_read__bit_flipped_in_last__is_torn),
	TEST(test_log_read__bit_flipped_in_synced__is_corrupt),
	TEST(test_log_append__on_damage__cuts_nothing),
	TEST(test_log_read__unsynced_records_bad__both_are_tail),
	TEST(test_log_read__hint_of_this_boot__proves_damage),
	TEST(test_log_read__mark_of_an_earlier_boot__proves_damage),
	TEST(test_log_read__hint_copied_with_store__is_void),
	TEST(test_log_read__zeros_after_end__are_room),
	TEST(test_log_read__garbage_after_end__is_torn),
	TEST(test_log_read__record_moved_or_foreign__is_not_taken),
	TEST(test_log_read__record_of_another_store__is_torn),
	TEST(test_log_read__tail_cut_by_another__reads_what_is_new),
	TEST(test_log_next_whole__behind_damage__finds_records),
	TEST(test_log_read__segment_missing__is_corrupt),
	TEST(test_log_read__earlier_segment_cut__is_corrupt),
	TEST(test_log_open__segment_header_flipped__is_corrupt),
	TEST(test_log_append__torn_segment__is_made_again),
	TEST(test_log_append__segment_without_records__is_used),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "log_damage", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
