/* Appending to the log and reading it, over segments and processes. */
#include "config.h"

#include "hash.h"
#include "lock.h"
#include "log.h"
#include "log_fixture.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_log__new__is_empty(void)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 0));
	CHECK_INT_EQ(64, log_begin(f.log));
	CHECK_INT_EQ(0, log_fixture_read(&f, NULL));
	CHECK_ERR(INCR_E_EXISTS, log_create(&f.options, NULL));
	log_fixture_close(&f);
	log_close(NULL);
}

static void test_log__many_records__reads_back(void)
{
	struct log_fixture f, reader;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_open(&reader, 0));
	for (int i = 1; i <= 5000; i++) {
		REQUIRE_OK(log_fixture_append(&f, NULL));
		/* A reader that stands at the end sees each at once. */
		if (i % 100 == 0)
			CHECK_INT_EQ(100, log_fixture_read(&reader, NULL));
	}
	CHECK_OK(log_sync(f.log, f.end, NULL));
	CHECK_INT_EQ(f.end, log_durable_to(f.log));
	CHECK_INT_EQ(5000, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_count(&f, "log"));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
	log_fixture_close(&reader);
}

static void test_log__small_segments__roll_over(void)
{
	struct log_fixture f, reader;
	int n_segments;

	REQUIRE_OK(log_fixture_create(&f, 512));
	REQUIRE_OK(log_fixture_open(&reader, 512));
	for (int i = 0; i < 200; i++) {
		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(1, log_fixture_read(&reader, NULL));
	}
	n_segments = log_fixture_count(&f, "log");
	CHECK(n_segments > 32); /* more than descriptors are kept */
	CHECK_INT_EQ(200, log_fixture_reread(&f, NULL));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	CHECK_INT_EQ(201, log_fixture_reread(&reader, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
	log_fixture_close(&reader);
}

static void test_log__large_record__reads_back(void)
{
	const size_t size = (size_t)3 << 20;
	uint8_t *payload = malloc(size);
	struct log_append a = { .type = 1, .sequence = 1 };
	struct log_record record;
	uint64_t position, next;
	struct log_fixture f;
	uint8_t part[100];

	REQUIRE(payload != NULL);
	REQUIRE_OK(log_fixture_create(&f, 0));
	for (size_t i = 0; i < size; i++)
		payload[i] = (uint8_t)(i * i >> 7);
	a.position = f.end;
	a.payload[0] = payload;
	a.payload_size[0] = size;
	REQUIRE_OK(log_append(f.log, &a, &position, &next, NULL));
	REQUIRE_OK(log_read(f.log, 64, &record, &next, NULL));
	CHECK_INT_EQ(size, record.header.payload_size);
	CHECK_MEM_EQ(payload, record.payload, size);
	CHECK_OK(log_read_bytes(f.log, position + 64 + 12345, part,
				sizeof(part), NULL));
	CHECK_MEM_EQ(payload + 12345, part, sizeof(part));
	CHECK_ERR(INCR_E_CORRUPT,
		  log_read_bytes(f.log, next + size, part, sizeof(part), NULL));

	a.position = next;
	a.sequence = 2;
	a.payload[1] = payload;
	a.payload_size[0] = RECORD_PAYLOAD_MAX;
	a.payload_size[1] = 1;
	CHECK_ERR(INCR_E_RANGE, log_append(f.log, &a, &position, &next, NULL));
	free(payload);
	log_fixture_close(&f);
}

static void test_log_append__disk_full__takes_back(void)
{
	struct log_fixture f;
	struct incr_error err = INCR_ERROR_INIT;
	uint64_t size;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	size = log_fixture_file_size(&f, FIRST_SEGMENT);
	for (size_t part = 0; part < 60; part += 20) {
		log_faults.pwrite_errno = ENOSPC;
		log_faults.pwrite_part = part;
		CHECK_ERR(INCR_E_NOSPC, log_fixture_append(&f, &err));
		CHECK_INT_EQ(size, log_fixture_file_size(&f, FIRST_SEGMENT));
	}
	CHECK_OK(log_fixture_append(&f, NULL));
	CHECK_INT_EQ(2, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	incr_error_release(&err);
	log_fixture_close(&f);
}

/* The records of many syncs in a file that does not grow. */
static void test_log_append__used_much__writes_over_zeros(void)
{
	struct log_fixture f, reader;
	uint64_t size = 0;
	int n_grown = 0, n;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_open(&reader, 0));
	for (n = 0; f.end < 64 << 10; n++) {
		uint64_t before = size;

		REQUIRE_OK(log_fixture_append(&f, NULL));
		REQUIRE_OK(log_sync(f.log, f.end, NULL));
		CHECK_INT_EQ(1, log_fixture_read(&reader, NULL));
		size = log_fixture_file_size(&f, FIRST_SEGMENT);
		CHECK(size >= f.end);
		CHECK(f.end < 5000 || size > f.end);
		n_grown += size != before && f.end >= 5000;
	}
	CHECK(n_grown <= 64 / 8 + 1);
	CHECK_INT_EQ(n, log_fixture_reread(&f, NULL));
	/* Another handle writes over them too, and cuts nothing. */
	REQUIRE_OK(log_fixture_append(&reader, NULL));
	CHECK(log_fixture_file_size(&f, FIRST_SEGMENT) == size ||
	      reader.end + (8 << 10) > size);
	CHECK_INT_EQ(1, log_fixture_read(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
	log_fixture_close(&reader);
}

/* The next segment begins where the file of the one before ends. */
static void test_log_append__zeros_and_new_segments__are_cut(void)
{
	struct log_fixture f, reader;
	uint64_t bases[3] = { 0 };
	int n = 0;

	REQUIRE_OK(log_fixture_create(&f, 8192));
	REQUIRE_OK(log_fixture_open(&reader, 8192));
	for (size_t i = 1; i < 3;) {
		uint64_t before = f.end;

		REQUIRE_OK(log_fixture_append(&f, NULL));
		CHECK_INT_EQ(1, log_fixture_read(&reader, NULL));
		n++;
		if (log_fixture_count(&f, "log") == (int)i + 1)
			bases[i++] = before;
	}
	for (size_t i = 0; i < 2; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "log/%016jx.log",
			       (uintmax_t)bases[i]);
		CHECK_INT_EQ(bases[i + 1] - bases[i],
			     log_fixture_file_size(&f, name));
	}
	CHECK_INT_EQ(n, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
	log_fixture_close(&reader);
}

/* A log with zeros behind its end, which the handle has seen. */
static int create_with_zeros(struct log_fixture *f, uint64_t segment_size)
{
	int r = log_fixture_create(f, segment_size);

	while (r == 0 && f->end < 6000)
		r = log_fixture_append(f, NULL);
	return r < 0 ? r : log_fixture_read(f, NULL);
}

static void test_log_read__end_seen_before__looks_at_few_bytes(void)
{
	struct log_fixture a, b;

	REQUIRE_OK(create_with_zeros(&a, 0));
	REQUIRE_OK(log_fixture_open(&b, 0));
	REQUIRE(log_fixture_read(&b, NULL) > 0);
	for (int i = 0; i < 3; i++) {
		log_faults = (struct log_faults){ 0 };
		CHECK_INT_EQ(0, log_fixture_read(&b, NULL));
		/* the hint, and where a record would begin */
		CHECK_INT_EQ(2, log_faults.n_pread);
		CHECK_INT_EQ(128, log_faults.pread_size);
		CHECK_OK(log_fixture_append(&a, NULL));
		CHECK_OK(log_fixture_append(&a, NULL));
		CHECK_INT_EQ(2, log_fixture_read(&b, NULL));
	}
	log_fixture_close(&a);
	log_fixture_close(&b);
}

static void test_log_read__end_seen_before__finds_new_segments(void)
{
	struct log_fixture a, b;
	uint64_t first;

	REQUIRE_OK(create_with_zeros(&a, 8192));
	REQUIRE_OK(log_fixture_open(&b, 8192));
	REQUIRE(log_fixture_read(&b, NULL) > 0);
	first = a.sequence;
	while (log_fixture_count(&a, "log") < 3)
		REQUIRE_OK(log_fixture_append(&a, NULL));
	CHECK_INT_EQ(a.sequence - first, log_fixture_read(&b, NULL));
	REQUIRE_OK(log_fixture_append(&b, NULL));
	CHECK_INT_EQ(1, log_fixture_read(&a, NULL));
	log_fixture_close(&a);
	log_fixture_close(&b);
}

static void test_log_append__torn_where_end_was_seen__keeps_it_aside(void)
{
	struct log_fixture f;
	uint64_t n;

	REQUIRE_OK(create_with_zeros(&f, 0));
	n = f.sequence - 1;
	/* a writer was killed since */
	log_fixture_write(&f, FIRST_SEGMENT, f.end, "INCR half of a record",
			  21);
	REQUIRE_OK(log_fixture_append(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_count(&f, "lost"));
	CHECK_INT_EQ(n + 1, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log_append__wrong_place_or_number__is_invalid(void)
{
	struct log_fixture f;
	uint64_t end;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	end = f.end;
	f.end = 64; /* where a whole record stands */
	CHECK_ERR(INCR_E_INVALID, log_fixture_append(&f, NULL));
	f.end = end + 8;
	CHECK_ERR(INCR_E_INVALID, log_fixture_append(&f, NULL));
	f.end = 8;
	CHECK_ERR(INCR_E_INVALID, log_fixture_append(&f, NULL));
	f.end = end;
	f.sequence = 3;
	CHECK_ERR(INCR_E_INVALID, log_fixture_append(&f, NULL));
	CHECK_INT_EQ(1, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

static void test_log__opened_for_reading__refuses_writes(void)
{
	struct log_fixture f;

	REQUIRE_OK(log_fixture_create(&f, 0));
	REQUIRE_OK(log_fixture_append(&f, NULL));
	f.options.is_writable = false;
	CHECK_INT_EQ(1, log_fixture_reread(&f, NULL));
	CHECK_ERR(INCR_E_READONLY, log_fixture_append(&f, NULL));
	CHECK_ERR(INCR_E_READONLY, log_sync(f.log, f.end, NULL));
	log_fixture_close(&f);
}

/* A record with @flags at the end of the log, as a newer program writes it. */
static void write_flagged(struct log_fixture *f, uint16_t flags)
{
	uint8_t bytes[RECORD_HEADER_SIZE];
	struct record_header h = {
		.type = 1,
		.flags = flags,
		.sequence = f->sequence,
		.position = f->end,
		.store_tag = hash64(f->options.uuid, 16),
		.payload_hash = hash64(NULL, 0),
	};

	record_encode_header(&h, bytes);
	log_fixture_write(f, FIRST_SEGMENT, f->end, bytes, sizeof(bytes));
}

static void test_log__unknown_flags__limit_the_reader(void)
{
	struct log_record record;
	struct incr_error err = INCR_ERROR_INIT;
	struct log_fixture f;
	uint64_t end;

	REQUIRE_OK(log_fixture_create(&f, 0));
	end = f.end;
	write_flagged(&f, 0x8000);
	CHECK_OK(log_read(f.log, end, &record, &f.end, NULL));
	f.sequence++;
	REQUIRE_OK(log_fixture_append(&f, NULL));

	end = f.end;
	write_flagged(&f, 0x0100);
	CHECK_OK(log_read(f.log, end, &record, &f.end, NULL));
	f.sequence++;
	CHECK_ERR(INCR_E_UNSUPPORTED, log_fixture_append(&f, &err));

	write_flagged(&f, 0x0001);
	CHECK_ERR(INCR_E_UNSUPPORTED,
		  log_read(f.log, f.end, &record, &end, &err));
	CHECK_STR_EQ(FIRST_SEGMENT, err.thing);
	incr_error_release(&err);
	log_fixture_close(&f);
}

/* Append @n records as the store does; in a child process. */
static int append_many(unsigned n, uint64_t segment_size)
{
	struct log_fixture f;
	int r = log_fixture_open(&f, segment_size);

	for (unsigned i = 0; r >= 0 && i < n; i++) {
		struct lock lock = { 0 };

		r = lock_take(log_locks(f.log), LOCK_APPEND, true, 60000,
			      "the log", &lock, NULL);
		if (r == 0)
			r = log_fixture_read(&f, NULL);
		if (r >= 0)
			r = log_fixture_append(&f, NULL);
		lock_release(&lock);
		if (r == 0)
			r = log_sync(f.log, f.end, NULL);
	}
	log_fixture_close(&f);
	return r;
}

static void test_log__writers_and_reader__see_one_log(void)
{
	enum { N_WRITERS = 4, N_RECORDS = 40 };
	struct log_fixture f;
	int status, n_read = 0, n_running = N_WRITERS;

	REQUIRE_OK(log_fixture_create(&f, 2048));
	for (int i = 0; i < N_WRITERS; i++)
		if (fork() == 0)
			_exit(append_many(N_RECORDS, 2048) == 0 ? 0 : 1);

	while (n_running > 0) {
		int n = log_fixture_read(&f, NULL);

		CHECK(n >= 0);
		n_read += n > 0 ? n : 0;
		if (waitpid(-1, &status, WNOHANG) > 0) {
			CHECK_INT_EQ(0, status);
			n_running--;
		}
	}
	n_read += log_fixture_read(&f, NULL);
	CHECK_INT_EQ(N_WRITERS * N_RECORDS, n_read);
	CHECK_INT_EQ(N_WRITERS * N_RECORDS, log_fixture_reread(&f, NULL));
	CHECK_INT_EQ(0, log_fixture_count(&f, "lost"));
	log_fixture_close(&f);
}

/* Killed at any moment, a writer leaves a log that others read and extend. */
static void test_log__writer_killed__others_go_on(void)
{
	struct log_fixture f;
	uint64_t n_before = 0;

	REQUIRE_OK(log_fixture_create(&f, 2048));
	for (int round = 0; round < 20; round++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(append_many(1000000, 2048) == 0 ? 0 : 1);
		while (f.sequence < n_before + 5)
			CHECK(log_fixture_read(&f, NULL) >= 0);
		CHECK(kill(pid, SIGKILL) == 0);
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK(log_fixture_read(&f, NULL) >= 0);
		REQUIRE_OK(log_fixture_append(&f, NULL));
		n_before = f.sequence;
	}
	CHECK_INT_EQ(n_before - 1, log_fixture_reread(&f, NULL));
	log_fixture_close(&f);
}

struct byte_reader {
	struct log *log;
	uint64_t *positions; /* of the records; borrowed */
	unsigned seed, n_bad;
};

static void *read_bytes(void *closure)
{
	struct byte_reader *reader = closure;

	for (int i = 0; i < 2000; i++) {
		uint64_t sequence;
		uint8_t byte = 0;

		reader->seed = reader->seed * 1103515245u + 12345u;
		sequence = 1 + (reader->seed >> 16) % 200;
		if (log_fixture_payload_size(sequence) == 0)
			continue;
		if (log_read_bytes(reader->log,
				   reader->positions[sequence] + 64, &byte, 1,
				   NULL) < 0 ||
		    byte != (uint8_t)(sequence * 31))
			reader->n_bad++;
	}
	return NULL;
}

static void test_log_read_bytes__threads_and_new_segments__reads(void)
{
	struct byte_reader readers[4];
	uint64_t positions[201];
	pthread_t threads[4];
	struct log_fixture f, late;

	REQUIRE_OK(log_fixture_create(&f, 512));
	REQUIRE_OK(log_fixture_open(&late, 512)); /* knows one segment */
	for (uint64_t i = 1; i <= 200; i++) {
		REQUIRE_OK(log_fixture_append(&f, NULL));
		positions[i] =
			f.end -
			record_span((uint32_t)log_fixture_payload_size(i));
	}
	for (unsigned i = 0; i < 4; i++) {
		readers[i] = (struct byte_reader){ late.log, positions, i, 0 };
		REQUIRE(pthread_create(&threads[i], NULL, read_bytes,
				       &readers[i]) == 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK_INT_EQ(0, readers[i].n_bad);
	}
	log_fixture_close(&f);
	log_fixture_close(&late);
}

static const struct testing_test tests[] = {
	TEST(test_log__new__is_empty),
	TEST(test_log__many_records__reads_back),
	TEST(test_log__small_segments__roll_over),
	TEST(test_log__large_record__reads_back),
	TEST(test_log_append__disk_full__takes_back),
	TEST(test_log_append__used_much__writes_over_zeros),
	TEST(test_log_append__zeros_and_new_segments__are_cut),
	TEST(test_log_read__end_seen_before__looks_at_few_bytes),
	TEST(test_log_read__end_seen_before__finds_new_segments),
	TEST(test_log_append__torn_where_end_was_seen__keeps_it_aside),
	TEST(test_log_append__wrong_place_or_number__is_invalid),
	TEST(test_log__opened_for_reading__refuses_writes),
	TEST(test_log__unknown_flags__limit_the_reader),
	TEST(test_log__writers_and_reader__see_one_log),
	TEST(test_log__writer_killed__others_go_on),
	TEST(test_log_read_bytes__threads_and_new_segments__reads),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "log", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
