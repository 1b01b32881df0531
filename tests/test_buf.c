/* The growable buffer, and the byte order and cursor of bytes.h. */
#include "config.h"

#include "buf.h"
#include "bytes.h"
#include "incr.h"
#include "testing.h"

static void test_buf_put__many__keeps_order(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	for (unsigned i = 0; i < 1000; i++)
		REQUIRE_OK(buf_put_u8(&b, (uint8_t)i));
	REQUIRE_INT_EQ(1000, b.size);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_INT_EQ((uint8_t)i, b.data[i]);
	CHECK_OK(buf_put(&b, NULL, 0));
	CHECK_OK(buf_put_zeros(&b, 3));
	CHECK_INT_EQ(1003, b.size);
	CHECK_MEM_EQ("\0\0\0", b.data + 1000, 3);
}

static void test_buf_put__integers__are_little_endian(void)
{
	static const uint8_t want[] = { 0x06, 0x05, 0x04, 0x03, 0x0e, 0x0d,
					0x0c, 0x0b, 0x0a, 0x09, 0x08, 0x07 };
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE_OK(buf_put_u32(&b, 0x03040506));
	REQUIRE_OK(buf_put_u64(&b, UINT64_C(0x0708090a0b0c0d0e)));
	REQUIRE_INT_EQ(sizeof(want), b.size);
	CHECK_MEM_EQ(want, b.data, sizeof(want));
}

static void test_buf_reserve__overflow__leaves_buffer(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE_OK(buf_put_u8(&b, 7));
	CHECK_ERR(INCR_E_NOMEM, buf_reserve(&b, SIZE_MAX));
	CHECK_ERR(INCR_E_NOMEM, buf_put_zeros(&b, SIZE_MAX));
	CHECK_INT_EQ(1, b.size);
	CHECK_INT_EQ(7, b.data[0]);
}

static void test_buf_move__full__empties_source(void)
{
	_cleanup_buf_ struct buf from = BUF_INIT, to = BUF_INIT;

	REQUIRE_OK(buf_put(&from, "abc", 3));
	buf_move(&to, &from);
	CHECK(from.data == NULL);
	CHECK_INT_EQ(0, from.size);
	CHECK_MEM_EQ("abc", to.data, 3);
	buf_reset(&to);
	CHECK_INT_EQ(0, to.size);
	buf_release(&to);
	buf_release(&to);
}

static void test_cursor_varint__edges__round_trip(void)
{
	static const uint64_t values[] = {
		0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX,
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		struct cursor c;

		REQUIRE_OK(buf_put_varint(&b, values[i]));
		c = cursor_over(b.data, b.size);
		CHECK_INT_EQ(values[i], cursor_varint(&c));
		CHECK(!c.is_bad);
		CHECK_INT_EQ(0, cursor_left(&c));

		/* Every shorter form of it ends too early. */
		for (size_t n = 0; n < b.size; n++) {
			c = cursor_over(b.data, n);
			CHECK_INT_EQ(0, cursor_varint(&c));
			CHECK(c.is_bad);
		}
	}
}

static void test_cursor_varint__not_shortest__is_bad(void)
{
	static const char *const cases[] = {
		"\x80\x00",
		"\xff\x80\x00",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cursor c = cursor_over(cases[i], strlen(cases[i]) + 1);

		CHECK_INT_EQ(0, cursor_varint(&c));
		CHECK(c.is_bad);
	}
}

static void test_cursor_string__good_and_short__is_bounded(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	const uint8_t *s;
	struct cursor c;
	size_t size = 99;

	REQUIRE_OK(buf_put_string(&b, "hello", 5));
	REQUIRE_OK(buf_put_string(&b, "", 0));
	c = cursor_over(b.data, b.size);
	s = cursor_string(&c, &size);
	REQUIRE(s != NULL);
	CHECK_INT_EQ(5, size);
	CHECK_MEM_EQ("hello", s, 5);
	CHECK(cursor_string(&c, &size) != NULL);
	CHECK_INT_EQ(0, size);
	CHECK(!c.is_bad);

	size = 99;
	c = cursor_over(b.data, 5);
	CHECK(cursor_string(&c, &size) == NULL);
	CHECK(c.is_bad);
	CHECK_INT_EQ(99, size);
}

static void test_cursor__after_the_end__gives_zero(void)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	CHECK_INT_EQ(0x0201, cursor_u16(&c));
	CHECK_INT_EQ(0x06050403, cursor_u32(&c));
	CHECK_INT_EQ(0, cursor_u64(&c));
	CHECK(c.is_bad);
	CHECK_INT_EQ(0, cursor_u8(&c)); /* though one is left */
	CHECK(cursor_bytes(&c, 0) == NULL);

	c = cursor_over(bytes, sizeof(bytes));
	CHECK(cursor_bytes(&c, UINT64_MAX) == NULL);
	CHECK(c.is_bad);
}

static void test_put_be64__any__sorts_as_numbers(void)
{
	uint8_t a[8], b[8];

	put_be64(a, 255);
	put_be64(b, 256);
	CHECK(memcmp(a, b, 8) < 0);
	CHECK_INT_EQ(255, get_be64(a));
	CHECK_INT_EQ(256, get_be64(b));
}

static const struct testing_test tests[] = {
	TEST(test_buf_put__many__keeps_order),
	TEST(test_buf_put__integers__are_little_endian),
	TEST(test_buf_reserve__overflow__leaves_buffer),
	TEST(test_buf_move__full__empties_source),
	TEST(test_cursor_varint__edges__round_trip),
	TEST(test_cursor_varint__not_shortest__is_bad),
	TEST(test_cursor_string__good_and_short__is_bounded),
	TEST(test_cursor__after_the_end__gives_zero),
	TEST(test_put_be64__any__sorts_as_numbers),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "buf", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
