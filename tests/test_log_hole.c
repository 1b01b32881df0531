/* Stretches of the log that were given up: readers pass over them. */
#include "config.h"

#include "log_fixture.h"
#include "lost.h"
#include "testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_RECORDS 40

/* A log of many small segments; where each record stands, and the end. */
static int create(struct log_fixture *f, uint64_t ends[N_RECORDS + 1])
{
	int r = log_fixture_create(f, 512);

	ends[0] = log_begin(f->log);
	for (int i = 1; r == 0 && i <= N_RECORDS; i++) {
		r = log_fixture_append(f, NULL);
		ends[i] = f->end;
	}
	return r;
}

/* The number of records read; out_passed: stretches passed over; or a code. */
static int read_all(struct log_fixture *f, unsigned *out_passed)
{
	uint64_t position;
	struct log_record record;
	int n = 0, r;

	*out_passed = 0;
	log_close(f->log);
	f->log = NULL;
	r = log_open(&f->options, &f->log, NULL);
	if (r < 0)
		return r;
	position = log_begin(f->log);
	while ((r = log_read(f->log, position, &record, &position, NULL)) ==
	       0) {
		n++;
		*out_passed += record.hole.to != 0;
		f->sequence = record.header.sequence + 1;
	}
	f->end = position;
	return r < 0 ? r : n;
}

static int give_up(struct log_fixture *f, uint64_t from, uint64_t to,
		   uint64_t last_sequence)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct lost_range range = { from, to, last_sequence };
	struct fact_lost fact = { .n_ranges = 1, .ranges = &range };
	struct log_append a = { .type = FACT_LOST,
				.position = f->end,
				.sequence = f->sequence };
	uint64_t position;

	if (fact_encode_lost(&fact, &payload) < 0)
		return INCR_E_NOMEM;
	a.payload[0] = payload.data;
	a.payload_size[0] = payload.size;
	return log_append(f->log, &a, &position, &f->end, NULL);
}

/* Where record @n (from 0) stands: behind the header, if it begins a segment. */
static uint64_t stands_at(struct log_fixture *f, uint64_t end)
{
	struct log_record record;
	uint64_t next;

	return log_read(f->log, end, &record, &next, NULL) == 0 ?
		       record.header.position :
		       0;
}

static void test_log_hole__record_given_up__is_passed_over(void)
{
	struct log_fixture f;
	uint64_t ends[N_RECORDS + 1], at, to;
	char name[LOG_NAME_SIZE];
	unsigned n_passed;

	REQUIRE_OK(create(&f, ends));
	for (int lost = 0; lost < N_RECORDS - 1; lost++) {
		/* there is one more of the other kind each time */
		REQUIRE_INT_EQ(N_RECORDS + lost, read_all(&f, &n_passed));
		CHECK_INT_EQ(0, n_passed);
		at = stands_at(&f, ends[lost]);
		to = stands_at(&f, ends[lost + 1]);
		REQUIRE(at && to);
		at -= log_segment_of(f.log, at, name);
		f.sequence = (uint64_t)(N_RECORDS + lost + 1);
		log_fixture_flip(&f, name, 8 * (at + 70));
		REQUIRE_OK(give_up(&f, ends[lost], to, (uint64_t)lost + 1));
		CHECK_INT_EQ(N_RECORDS + lost, read_all(&f, &n_passed));
		CHECK_INT_EQ(1, n_passed);
		/* put back, it counts again */
		log_fixture_flip(&f, name, 8 * (at + 70));
	}
	log_fixture_close(&f);
}

static void test_log_hole__segments_missing__are_passed_over(void)
{
	struct log_fixture f;
	uint64_t ends[N_RECORDS + 1], base = 0, next;
	char name[LOG_NAME_SIZE];
	struct log_record record;
	unsigned n_passed;
	int n;

	REQUIRE_OK(create(&f, ends));
	/* the first one, and the one behind it */
	(void)log_segment_of(f.log, 0, name);
	REQUIRE(unlinkat(f.dirfd, name, 0) == 0);
	for (n = 0; base == 0; n++)
		base = log_segment_of(f.log, ends[n], name);
	REQUIRE(unlinkat(f.dirfd, name, 0) == 0);
	CHECK_ERR(INCR_E_CORRUPT, read_all(&f, &n_passed));
	REQUIRE_OK(
		log_next_whole(f.log, log_begin(f.log), &record, &next, NULL));
	f.end = ends[N_RECORDS];
	f.sequence = N_RECORDS + 1;
	REQUIRE_OK(give_up(&f, log_begin(f.log), record.header.position,
			   record.header.sequence - 1));
	n = read_all(&f, &n_passed);
	CHECK_INT_EQ(N_RECORDS + 1 - (int)(record.header.sequence - 1), n);
	CHECK_INT_EQ(1, n_passed);
	log_fixture_close(&f);
}

static void test_log_hole__says_another_place__is_damage(void)
{
	struct log_fixture f;
	uint64_t ends[N_RECORDS + 1], at;
	char name[LOG_NAME_SIZE];
	unsigned n_passed;

	REQUIRE_OK(create(&f, ends));
	at = stands_at(&f, ends[5]);
	at -= log_segment_of(f.log, at, name);
	REQUIRE_OK(give_up(&f, ends[7], ends[8], 8));
	log_fixture_flip(&f, name, 8 * (at + 70));
	CHECK_ERR(INCR_E_CORRUPT, read_all(&f, &n_passed));
	log_fixture_close(&f);
}

static void test_fact_lost__encoded__decodes_to_the_same(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT, again = BUF_INIT;
	struct lost_range ranges[] = { { 64, 128, 3 }, { 256, 512, 9 } };
	struct lost_file files[] = { { 7, text_of("a/b") },
				     { 8, text_of("c") } };
	uint64_t manifests[] = { 5 };
	struct fact_lost f = { .time_ns = -1,
			       .next = { 10, 11, 12, 13, 14 },
			       .n_ranges = 2,
			       .ranges = ranges,
			       .n_manifests = 1,
			       .manifests = manifests,
			       .n_files = 2,
			       .files = files };
	struct fact_lost out;

	REQUIRE_OK(fact_encode_lost(&f, &bytes));
	REQUIRE_OK(fact_decode_lost(bytes.data, bytes.size, &out));
	REQUIRE_OK(fact_encode_lost(&out, &again));
	CHECK_INT_EQ(bytes.size, again.size);
	CHECK_MEM_EQ(bytes.data, again.data, bytes.size);
	fact_lost_release(&out);
	for (size_t size = 0; size < bytes.size; size++)
		CHECK_ERR(INCR_E_CORRUPT,
			  fact_decode_lost(bytes.data, size, &out));
	ranges[1].from = 120; /* not apart */
	buf_reset(&bytes);
	REQUIRE_OK(fact_encode_lost(&f, &bytes));
	CHECK_ERR(INCR_E_CORRUPT,
		  fact_decode_lost(bytes.data, bytes.size, &out));
}

static const struct testing_test tests[] = {
	TEST(test_fact_lost__encoded__decodes_to_the_same),
	TEST(test_log_hole__record_given_up__is_passed_over),
	TEST(test_log_hole__segments_missing__are_passed_over),
	TEST(test_log_hole__says_another_place__is_damage),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "log_hole", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
