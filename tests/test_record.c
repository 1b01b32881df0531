/* One record: every bit of it is checked. */
#include "config.h"

#include "buf.h"
#include "bytes.h"
#include "hash.h"
#include "record.h"
#include "testing.h"

static const char payload[] = "thirteen byte";

#define PAYLOAD_SIZE 13

static struct record_header header(void)
{
	return (struct record_header){
		.type = 11,
		.payload_size = PAYLOAD_SIZE,
		.sequence = 7,
		.position = 4096,
		.durable_to = 4000,
		.store_tag = 42,
		.payload_hash = hash64(payload, PAYLOAD_SIZE),
	};
}

/* Encode a record with @h; owned by the caller. */
static struct buf encode(const struct record_header *h)
{
	struct buf b = BUF_INIT;
	uint8_t bytes[RECORD_HEADER_SIZE];

	record_encode_header(h, bytes);
	CHECK_OK(buf_put(&b, bytes, sizeof(bytes)));
	CHECK_OK(buf_put(&b, payload, PAYLOAD_SIZE));
	CHECK_OK(buf_put_zeros(&b, (size_t)record_span(PAYLOAD_SIZE) - b.size));
	return b;
}

static int check(const struct buf *b, struct record_header *out)
{
	int r = record_decode_header(b->data, out);

	return r < 0 ? r :
		       record_check_payload(out, b->data + RECORD_HEADER_SIZE,
					    b->size - RECORD_HEADER_SIZE);
}

static void test_record__whole__round_trips(void)
{
	struct record_header want = header(), got;
	_cleanup_buf_ struct buf b = encode(&want);

	REQUIRE_INT_EQ(80, b.size);
	REQUIRE_OK(check(&b, &got));
	CHECK_INT_EQ(want.type, got.type);
	CHECK_INT_EQ(want.flags, got.flags);
	CHECK_INT_EQ(want.payload_size, got.payload_size);
	CHECK_INT_EQ(want.sequence, got.sequence);
	CHECK_INT_EQ(want.position, got.position);
	CHECK_INT_EQ(want.durable_to, got.durable_to);
	CHECK_INT_EQ(want.store_tag, got.store_tag);
	CHECK_INT_EQ(want.payload_hash, got.payload_hash);
}

static void test_record__any_bit_flipped__is_corrupt(void)
{
	struct record_header h = header(), got;
	_cleanup_buf_ struct buf b = encode(&h);

	for (size_t bit = 0; bit < 8 * b.size; bit++) {
		b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK_ERR(INCR_E_CORRUPT, check(&b, &got));
		b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CHECK_OK(check(&b, &got));
}

static void test_record_decode_header__bad__leaves_output(void)
{
	struct record_header h = header(), got = { .type = 99 };
	_cleanup_buf_ struct buf b = encode(&h);

	b.data[3] ^= 1;
	CHECK_ERR(INCR_E_CORRUPT, record_decode_header(b.data, &got));
	CHECK_INT_EQ(99, got.type);
}

static void test_record_decode_header__impossible__is_corrupt(void)
{
	struct record_header got;
	struct record_header cases[] = { header(), header(), header() };

	cases[0].payload_size = RECORD_PAYLOAD_MAX + 1;
	cases[1].durable_to = cases[1].position + 1;
	cases[2].sequence = 0;
	for (size_t i = 0; i < 3; i++) {
		_cleanup_buf_ struct buf b = encode(&cases[i]);

		CHECK_ERR(INCR_E_CORRUPT, record_decode_header(b.data, &got));
	}
}

static void test_record_decode_header__flags__by_class(void)
{
	for (unsigned bit = 0; bit < 16; bit++) {
		struct record_header h = header(), got;
		_cleanup_buf_ struct buf b = BUF_INIT;
		bool is_refused = (1u << bit) & RECORD_FLAGS_REFUSE;

		h.flags = (uint16_t)(1u << bit);
		b = encode(&h);
		CHECK_ERR(is_refused ? INCR_E_UNSUPPORTED : 0,
			  record_decode_header(b.data, &got));
	}
	CHECK_INT_EQ(0xffff, RECORD_FLAGS_REFUSE | RECORD_FLAGS_READ_ONLY |
				     RECORD_FLAGS_IGNORE);
}

static void test_record_decode_header__newer_version__is_unsupported(void)
{
	struct record_header h = header(), got;
	_cleanup_buf_ struct buf b = encode(&h);

	put_u32(b.data + 12, RECORD_VERSION + 1);
	put_u64(b.data + 56, hash64(b.data, 56));
	CHECK_ERR(INCR_E_UNSUPPORTED, record_decode_header(b.data, &got));
}

static void test_record_check_payload__wrong_size__is_corrupt(void)
{
	struct record_header h = header();
	_cleanup_buf_ struct buf b = encode(&h);

	for (size_t size = 0; size < 16; size++)
		CHECK_ERR(INCR_E_CORRUPT,
			  record_check_payload(&h, b.data + RECORD_HEADER_SIZE,
					       size));
}

static void test_record_span__edges__is_aligned(void)
{
	CHECK_INT_EQ(64, record_span(0));
	CHECK_INT_EQ(72, record_span(1));
	CHECK_INT_EQ(72, record_span(8));
	CHECK_INT_EQ(80, record_span(9));
	CHECK_INT_EQ(UINT64_C(0x100000040), record_span(UINT32_MAX));
}

static const struct testing_test tests[] = {
	TEST(test_record__whole__round_trips),
	TEST(test_record__any_bit_flipped__is_corrupt),
	TEST(test_record_decode_header__bad__leaves_output),
	TEST(test_record_decode_header__impossible__is_corrupt),
	TEST(test_record_decode_header__flags__by_class),
	TEST(test_record_decode_header__newer_version__is_unsupported),
	TEST(test_record_check_payload__wrong_size__is_corrupt),
	TEST(test_record_span__edges__is_aligned),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "record", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
