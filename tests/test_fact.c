/*
 * Facts, commit records and index values to bytes and back: what was put in
 * comes out, and no cut, flipped or invented byte does harm.
 */
#include "config.h"

#include "commit_record.h"
#include "state.h"
#include "store_kit.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

static const struct fact_dataset a_dataset = {
	.id = 300,
	.name = { "some/name", 9 },
	.description = { "what", 4 },
	.pairs = { "\0", 1 },
	.time_ns = -5,
	.user = { "me", 2 },
	.branch_id = 7,
	.line = 1000000,
};

static const struct fact_branch a_branch = {
	.id = 8,
	.dataset_id = 300,
	.line = 9,
	.name = { "b", 1 },
	.parent = { "main", 4 },
	.parent_line = 7,
	.at = 77,
	.time_ns = INT64_MAX,
};

static const struct fact_reset a_reset = {
	.branch_id = 8, .line = 12, .parent_line = 3, .to = 4, .time_ns = 1
};

static const struct fact_txn a_txn = {
	.number = 90,
	.dataset_id = 300,
	.branch_id = 8,
	.line = 9,
	.parent = 77,
	.type = INCR_DELETE,
	.origin = { "gdpr", 4 },
	.user = { "me", 2 },
	.message = { "why\nnot", 7 },
	.pairs = { "\0", 1 },
	.opened_ns = INT64_MIN,
	.closed_ns = 12345678901234,
	.view_start = 70,
	.n_files = 1,
	.n_removed = 2,
	.size = UINT64_MAX,
	.view_files = 3,
	.view_size = 4,
	.build = 5,
	.manifest_kind = FACT_MANIFEST_PACK,
	.manifest = { "m\0m", 3 },
	.frames_off = 6,
};

static const struct fact_build a_build = { .number = 5,
					   .status = INCR_BUILD_FAILED,
					   .transform = { "clean", 5 },
					   .payload = { "p", 1 } };

static const struct fact_schema a_schema = {
	.dataset_id = 1, .line = 2, .after = 3, .text = { "{}", 2 }
};

/* Encode the @kind-th example; decode one, and encode what came out. */
enum { DATASET, BRANCH, RESET, TXN, BUILD, SCHEMA, N_FACTS };

static void encode(int kind, struct buf *out)
{
	int r = kind == DATASET ? fact_encode_dataset(&a_dataset, out) :
		kind == BRANCH	? fact_encode_branch(&a_branch, out) :
		kind == RESET	? fact_encode_reset(&a_reset, out) :
		kind == TXN	? fact_encode_txn(&a_txn, out) :
		kind == BUILD	? fact_encode_build(&a_build, out) :
				  fact_encode_schema(&a_schema, out);

	CHECK_OK(r);
}

static int recode(int kind, const uint8_t *bytes, size_t size, struct buf *out)
{
	struct cursor c = cursor_over(bytes, size);
	struct fact_dataset dataset;
	struct fact_branch branch;
	struct fact_reset reset;
	struct fact_txn txn;
	struct fact_build build;
	struct fact_schema schema;
	int r = kind == DATASET ? fact_decode_dataset(&c, &dataset) :
		kind == BRANCH	? fact_decode_branch(&c, &branch) :
		kind == RESET	? fact_decode_reset(&c, &reset) :
		kind == TXN	? fact_decode_txn(&c, &txn) :
		kind == BUILD	? fact_decode_build(&c, &build) :
				  fact_decode_schema(&c, &schema);

	if (r < 0)
		return r;
	return kind == DATASET ? fact_encode_dataset(&dataset, out) :
	       kind == BRANCH  ? fact_encode_branch(&branch, out) :
	       kind == RESET   ? fact_encode_reset(&reset, out) :
	       kind == TXN     ? fact_encode_txn(&txn, out) :
	       kind == BUILD   ? fact_encode_build(&build, out) :
				 fact_encode_schema(&schema, out);
}

static void test_fact__each_kind__comes_back(void)
{
	for (int kind = 0; kind < N_FACTS; kind++) {
		_cleanup_buf_ struct buf first = BUF_INIT, again = BUF_INIT;

		encode(kind, &first);
		CHECK_OK(recode(kind, first.data, first.size, &again));
		REQUIRE_INT_EQ(first.size, again.size);
		CHECK_MEM_EQ(first.data, again.data, first.size);
	}
}

static void test_fact__values__survive(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct fact_txn t;
	struct cursor c;

	CHECK_OK(fact_encode_txn(&a_txn, &b));
	c = cursor_over(b.data, b.size);
	REQUIRE_OK(fact_decode_txn(&c, &t));
	CHECK_INT_EQ(0, cursor_left(&c));
	CHECK_INT_EQ(a_txn.opened_ns, t.opened_ns);
	CHECK_INT_EQ(a_txn.closed_ns, t.closed_ns);
	CHECK(t.size == UINT64_MAX && t.view_size == 4 && t.build == 5);
	CHECK(t.parent == 77 && t.view_start == 70 && t.frames_off == 6);
	CHECK_INT_EQ(3, t.manifest.size);
	CHECK_MEM_EQ("m\0m", t.manifest.data, 3);
	CHECK(text_equals(t.message, "why\nnot"));
	CHECK(t.type == INCR_DELETE);
}

static void test_fact__truncated__is_refused(void)
{
	for (int kind = 0; kind < N_FACTS; kind++) {
		_cleanup_buf_ struct buf whole = BUF_INIT;

		encode(kind, &whole);
		for (size_t size = 0; size < whole.size; size++) {
			_cleanup_buf_ struct buf out = BUF_INIT;
			/* exactly so many bytes, for the sanitizer */
			uint8_t *cut = malloc(size ? size : 1);

			memcpy(cut, whole.data, size);
			CHECK_ERR(INCR_E_CORRUPT,
				  recode(kind, cut, size, &out));
			free(cut);
		}
	}
}

static void test_fact__flipped_bits__are_refused_or_another_fact(void)
{
	for (int kind = 0; kind < N_FACTS; kind++) {
		_cleanup_buf_ struct buf b = BUF_INIT;

		encode(kind, &b);
		for (size_t bit = 0; bit < b.size * 8; bit++) {
			_cleanup_buf_ struct buf out = BUF_INIT;
			int r;

			b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			r = recode(kind, b.data, b.size, &out);
			CHECK(r == 0 || r == INCR_E_CORRUPT);
			b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

static void test_fact__impossible_values__are_refused(void)
{
	struct {
		const char *what;
		struct fact_txn txn;
	} bad[] = {
		{ "number", a_txn },
		{ "parent", a_txn },
		{ "type", a_txn },
		{ "type", a_txn },
		{ "view start", a_txn },
		{ "manifest kind", a_txn },
		{ "line", a_txn },
		{ "a relative DELETE", a_txn },
		{ "relative to nothing", a_txn },
	};

	bad[0].txn.number = 0;
	bad[1].txn.parent = 90;
	bad[2].txn.type = 0;
	bad[3].txn.type = 5;
	bad[4].txn.view_start = 91;
	bad[5].txn.manifest_kind = 4;
	bad[6].txn.line = 0;
	bad[7].txn.is_relative = true;
	bad[8].txn.is_relative = true;
	bad[8].txn.type = INCR_SNAPSHOT;
	bad[8].txn.parent = 0;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT, out = BUF_INIT;

		CHECK_OK(fact_encode_txn(&bad[i].txn, &b));
		if (recode(TXN, b.data, b.size, &out) != INCR_E_CORRUPT)
			CHECK_STR_EQ("refused", bad[i].what);
	}
}

/* ---- pairs ---- */

static void test_fact_pairs__come_back_and_counts_are_bounded(void)
{
	struct incr_pair items[2] = { { (char *)"k", (char *)"" },
				      { (char *)"cleared", NULL } };
	struct incr_pairs pairs = { 2, items }, got, copy;
	_cleanup_buf_ struct buf b = BUF_INIT;
	/* 2^60 pairs in ten bytes */
	static const uint8_t many[] = { 0xff, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0x0f, 0x00 };

	CHECK_OK(fact_pairs_encode(&pairs, &b));
	for (size_t size = 0; size <= b.size; size++) {
		struct text t = { (const char *)b.data, size };
		int r = fact_pairs_decode(t, &got, NULL);

		if (r < 0) {
			CHECK_ERR(INCR_E_CORRUPT, r);
			CHECK(size < b.size);
			continue;
		}
		/* nothing at all is no pairs */
		CHECK_INT_EQ(size ? 2 : 0, got.n);
		if (size) {
			CHECK_STR_EQ("k", got.items[0].key);
			CHECK_STR_EQ("", got.items[0].value);
			CHECK(got.items[1].value == NULL);
			CHECK_OK(incr_pairs_copy(&got, &copy));
			CHECK_STR_EQ("cleared", copy.items[1].key);
			incr_pairs_release(&copy);
		}
		incr_pairs_release(&got);
	}
	CHECK_ERR(INCR_E_CORRUPT,
		  fact_pairs_decode((struct text){ (const char *)many,
						   sizeof(many) },
				    &got, NULL));
}

/* ---- commit records ---- */

static void encode_record(bool has_build, struct buf *out)
{
	struct fact_branch branches[2] = { a_branch, a_branch };
	struct fact_txn txns[3] = { a_txn, a_txn, a_txn };
	struct commit_record r = { .n_branches = 2,
				   .branches = branches,
				   .n_txns = 3,
				   .txns = txns,
				   .has_build = has_build,
				   .build = a_build };

	CHECK_OK(commit_record_encode(&r, out));
}

static void test_commit_record__comes_back(void)
{
	for (int has_build = 0; has_build < 2; has_build++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		struct commit_record r;

		encode_record(has_build, &b);
		CHECK_OK(buf_put(&b, "frames", 6));
		REQUIRE_OK(commit_record_decode(b.data, b.size, &r));
		CHECK_INT_EQ(2, r.n_branches);
		CHECK_INT_EQ(3, r.n_txns);
		CHECK_INT_EQ(has_build, r.has_build);
		CHECK_INT_EQ(6, r.frames_size);
		CHECK_MEM_EQ("frames", b.data + r.frames_off, 6);
		CHECK_INT_EQ(90, r.txns[2].number);
		CHECK(text_equals(r.branches[1].name, "b"));
		commit_record_release(&r);
	}
}

static void test_commit_record__cut_or_flipped__does_no_harm(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct commit_record r;

	encode_record(true, &b);
	for (size_t size = 0; size < b.size; size++) {
		uint8_t *cut = malloc(size ? size : 1);

		memcpy(cut, b.data, size);
		CHECK_ERR(INCR_E_CORRUPT, commit_record_decode(cut, size, &r));
		free(cut);
	}
	for (size_t bit = 0; bit < b.size * 8; bit++) {
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (commit_record_decode(b.data, b.size, &r) == 0)
			commit_record_release(&r);
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void test_commit_record__invented_counts__take_no_memory(void)
{
	/* a head of 9 bytes that says 2^28 branches */
	static const uint8_t many[] = { 9,    0,    0,	  0,	0xff,
					0xff, 0xff, 0xff, 0x00, 0x00,
					0x00, 0x00, 0x00 };
	struct commit_record r;

	CHECK_ERR(INCR_E_CORRUPT, commit_record_decode(many, sizeof(many), &r));
}

/* ---- index values ---- */

static void test_version__comes_back_cut_and_flipped(void)
{
	struct version v = { .op = MANIFEST_PUT,
			     .line = 9,
			     .mode = 0755,
			     .mtime_ns = -1,
			     .hash = "0123456789abcde",
			     .content = { .kind = CONTENT_PART,
					  .size = 10,
					  .container = 3,
					  .frame_off = 4096,
					  .frame_stored = 100,
					  .frame_raw = 200,
					  .part_off = 50 },
			     .change_txn = 12 };
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct version got;
	enum manifest_op op;
	uint64_t line;

	CHECK_OK(version_encode(&v, &b));
	CHECK_OK(version_peek(b.data, b.size, &op, &line));
	CHECK_INT_EQ(MANIFEST_PUT, op);
	CHECK_INT_EQ(9, line);
	REQUIRE_OK(version_decode(b.data, b.size, &got));
	CHECK_INT_EQ(-1, got.mtime_ns);
	CHECK_INT_EQ(0755, got.mode);
	CHECK_INT_EQ(12, got.change_txn);
	CHECK_INT_EQ(50, got.content.part_off);
	CHECK_MEM_EQ(v.hash, got.hash, sizeof(v.hash));
	version_release(&got);
	for (size_t size = 0; size < b.size; size++)
		CHECK_ERR(INCR_E_CORRUPT, version_decode(b.data, size, &got));
	for (size_t bit = 0; bit < b.size * 8; bit++) {
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (version_decode(b.data, b.size, &got) == 0)
			version_release(&got);
		b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	CHECK_OK(buf_put_u8(&b, 0));
	CHECK_ERR(INCR_E_CORRUPT, version_decode(b.data, b.size, &got));
}

static void test_state__values__come_back(void)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_dataset dataset = { a_dataset, true }, got_dataset;
	struct state_branch branch = { a_branch, 5, 6, true }, got_branch;
	struct state_txn txn = { a_txn, INCR_ABORTED, 4711, 66, 5 }, got_txn;
	struct state_line got_line;
	struct store_kit k;
	struct index *ix;
	uint64_t id;

	REQUIRE(store_kit_init(&k));
	ix = k.st->index;
	CHECK_INT_EQ(1, state_dataset(ix, 300, &storage, &got_dataset, NULL));
	CHECK_OK(state_put_dataset(ix, &dataset, NULL));
	CHECK_OK(state_put_branch(ix, &branch, NULL));
	CHECK_OK(state_put_txn(ix, &txn, NULL));
	CHECK_OK(state_put_line(ix, 50, (struct state_line){ 3, 4 }, NULL));
	REQUIRE_OK(state_dataset(ix, 300, &storage, &got_dataset, NULL));
	CHECK(got_dataset.is_deleted && got_dataset.fact.line == 1000000);
	REQUIRE_OK(state_branch(ix, 8, &storage, &got_branch, NULL));
	CHECK(got_branch.head == 5 && got_branch.open_txn == 6 &&
	      got_branch.is_deleted && text_equals(got_branch.fact.name, "b"));
	REQUIRE_OK(state_txn(ix, 90, &storage, &got_txn, NULL));
	CHECK(got_txn.status == INCR_ABORTED &&
	      got_txn.record_position == 4711);
	/* the manifest stays in the log */
	CHECK_INT_EQ(0, got_txn.fact.manifest.size);
	CHECK(text_equals(got_txn.fact.message, "why\nnot"));
	REQUIRE_OK(state_line(ix, 50, &got_line, NULL));
	CHECK(got_line.parent == 3 && got_line.at == 4);
	CHECK_INT_EQ(1, state_line(ix, 51, &got_line, NULL));
	CHECK_INT_EQ(1, state_branch_id(ix, 300, text_of("b"), &id, NULL));
	store_kit_release(&k);
}

static void test_lineage__of_a_long_chain__ends_at_the_view_start(void)
{
	struct store_kit k;
	struct lineage l;
	struct index *ix;

	REQUIRE(store_kit_init(&k));
	ix = k.st->index;
	/* line i grows out of i - 1 at transaction 10 * (i - 1) */
	CHECK_OK(state_put_line(ix, 100, (struct state_line){ 0, 0 }, NULL));
	for (uint64_t i = 101; i < 400; i++)
		CHECK_OK(state_put_line(
			ix, i, (struct state_line){ i - 1, 10 * (i - 1) },
			NULL));
	REQUIRE_OK(lineage_of(ix, 399, 5000, 0, &l, NULL));
	CHECK_INT_EQ(300, l.n);
	CHECK(lineage_holds(&l, 399, 5000) && !lineage_holds(&l, 399, 5001));
	CHECK(lineage_holds(&l, 250, 2500) && !lineage_holds(&l, 250, 2501));
	CHECK(lineage_holds(&l, 100, 1) && !lineage_holds(&l, 99, 1));
	CHECK(!lineage_holds(&l, 400, 1));
	lineage_release(&l);
	/* a view that starts on line 395 needs no older line */
	REQUIRE_OK(lineage_of(ix, 399, 5000, 3945, &l, NULL));
	CHECK_INT_EQ(5, l.n);
	CHECK(lineage_holds(&l, 395, 3945) && !lineage_holds(&l, 394, 3940));
	lineage_release(&l);
	/* at a transaction before the branching points */
	REQUIRE_OK(lineage_of(ix, 300, 2500, 0, &l, NULL));
	CHECK(lineage_holds(&l, 299, 2500) && !lineage_holds(&l, 299, 2501));
	lineage_release(&l);
	CHECK_ERR(INCR_E_CORRUPT, lineage_of(ix, 4711, 1, 0, &l, NULL));
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_fact__each_kind__comes_back),
	TEST(test_fact__values__survive),
	TEST(test_fact__truncated__is_refused),
	TEST(test_fact__flipped_bits__are_refused_or_another_fact),
	TEST(test_fact__impossible_values__are_refused),
	TEST(test_fact_pairs__come_back_and_counts_are_bounded),
	TEST_END,
};

static const struct testing_test record_tests[] = {
	TEST(test_commit_record__comes_back),
	TEST(test_commit_record__cut_or_flipped__does_no_harm),
	TEST(test_commit_record__invented_counts__take_no_memory),
	TEST_END,
};

static const struct testing_test state_tests[] = {
	TEST(test_version__comes_back_cut_and_flipped),
	TEST(test_state__values__come_back),
	TEST(test_lineage__of_a_long_chain__ends_at_the_view_start),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "fact", tests },
	{ "commit_record", record_tests },
	{ "state", state_tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
