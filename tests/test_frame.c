/* Frames: round trips, limits, and every bit flip of small ones. */
#include "config.h"

#include "frame.h"

#include "bytes.h"
#include "content_kit.h"
#include "testing.h"

#include <string.h>

#define CONTAINER UINT64_C(0x1122334455667788)

static void check_round_trip(uint32_t size, bool is_text, bool compresses)
{
	struct compressor *c = compresses ? compressor_new(1) : NULL;
	struct decompressor *d = decompressor_new();
	_cleanup_free_ uint8_t *raw = malloc(size), *got = malloc(size);
	_cleanup_buf_ struct buf frame = BUF_INIT;

	if (is_text)
		kit_fill_text(raw, size, size);
	else
		kit_fill_noise(raw, size, size);
	CHECK_OK(frame_encode(c, raw, size, CONTAINER, &frame));
	CHECK(frame.size <= FRAME_HEADER_SIZE + size);
	CHECK_OK(frame_decode(d, frame.data, frame.size,
			      (struct frame_place){ CONTAINER, 0 }, got, size));
	CHECK_MEM_EQ(raw, got, size);
	CHECK_ERR(INCR_E_CORRUPT,
		  frame_decode(d, frame.data, frame.size - 1,
			       (struct frame_place){ CONTAINER, 0 }, got,
			       size));
	CHECK_ERR(INCR_E_CORRUPT,
		  frame_decode(d, frame.data, frame.size,
			       (struct frame_place){ CONTAINER + 1, 0 }, got,
			       size));
	if (size > 1)
		CHECK_ERR(INCR_E_CORRUPT,
			  frame_decode(d, frame.data, frame.size,
				       (struct frame_place){ CONTAINER, 0 },
				       got, size - 1));

	frame_rebind(frame.data, 7);
	CHECK_OK(frame_decode(d, frame.data, frame.size,
			      (struct frame_place){ 7, 0 }, got, size));
	CHECK_MEM_EQ(raw, got, size);
	compressor_free(c);
	decompressor_free(d);
}

static void test_frame_decode__any_size__gives_the_bytes(void)
{
	static const uint32_t sizes[] = { 1,
					  2,
					  31,
					  4096,
					  FRAME_RAW_DEFAULT - 1,
					  FRAME_RAW_DEFAULT,
					  FRAME_RAW_DEFAULT + 1,
					  FRAME_RAW_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_round_trip(sizes[i], true, true);
		check_round_trip(sizes[i], false, true);
		check_round_trip(sizes[i], true, false);
	}
}

static void test_frame_decode__moved_in_its_pack__is_refused(void)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	struct decompressor *d = decompressor_new();
	struct frame_place here = { CONTAINER, 64 }, there = { CONTAINER, 164 };
	uint8_t raw[100] = { 1, 2, 3 }, got[100];

	CHECK_OK(frame_encode(NULL, raw, sizeof(raw), CONTAINER, &frame));
	frame_place(frame.data, here);
	CHECK_OK(frame_decode(d, frame.data, frame.size, here, got,
			      sizeof(raw)));
	CHECK_ERR(INCR_E_CORRUPT, frame_decode(d, frame.data, frame.size, there,
					       got, sizeof(raw)));
	decompressor_free(d);
}

static void test_frame_encode__size_out_of_limits__is_refused(void)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	_cleanup_free_ uint8_t *raw = calloc(1, FRAME_RAW_MAX + 1);

	CHECK_ERR(INCR_E_RANGE, frame_encode(NULL, raw, 0, 1, &frame));
	CHECK_ERR(INCR_E_RANGE,
		  frame_encode(NULL, raw, FRAME_RAW_MAX + 1, 1, &frame));
	CHECK_INT_EQ(0, frame.size);
}

static void check_flips(struct compressor *c)
{
	struct decompressor *d = decompressor_new();
	uint8_t raw[300], got[300];
	_cleanup_buf_ struct buf frame = BUF_INIT;
	size_t n_accepted = 0;

	kit_fill_text(raw, sizeof(raw), 3);
	REQUIRE_OK(frame_encode(c, raw, sizeof(raw), CONTAINER, &frame));
	for (size_t bit = 0; bit < frame.size * 8; bit++) {
		frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (frame_decode(d, frame.data, frame.size,
				 (struct frame_place){ CONTAINER, 0 }, got,
				 sizeof(got)) == 0)
			n_accepted++;
		frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CHECK_INT_EQ(0, n_accepted);
	decompressor_free(d);
}

static void test_frame_decode__one_bit_flipped__is_refused(void)
{
	struct compressor *c = compressor_new(1);

	check_flips(c);
	check_flips(NULL);
	compressor_free(c);
}

static void test_frame_decode_header__bad_fields__are_refused(void)
{
	static const struct {
		size_t off;
		uint32_t value;
	} bad[] = {
		{ 0, 0 },	   { 4, 2 },  { 4, 0x100 },
		{ 4, 0x1000000 },  { 8, 0 },  { 8, FRAME_RAW_MAX + 1 },
		{ 8, UINT32_MAX }, { 12, 0 }, { 12, UINT32_MAX },
		{ 12, 99 },	   { 16, 0 },
	};
	_cleanup_buf_ struct buf frame = BUF_INIT;
	uint8_t raw[100] = { 0 }, bytes[FRAME_HEADER_SIZE];
	struct frame_header h;

	REQUIRE_OK(frame_encode(NULL, raw, sizeof(raw), CONTAINER, &frame));
	CHECK_OK(frame_decode_header(frame.data, CONTAINER, &h));
	CHECK_INT_EQ(100, h.raw_size);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(bytes, frame.data, sizeof(bytes));
		put_u32(bytes + bad[i].off, bad[i].value);
		CHECK_ERR(INCR_E_CORRUPT,
			  frame_decode_header(bytes, CONTAINER, &h));
	}
}

static const struct testing_test tests[] = {
	TEST(test_frame_decode__any_size__gives_the_bytes),
	TEST(test_frame_decode__moved_in_its_pack__is_refused),
	TEST(test_frame_encode__size_out_of_limits__is_refused),
	TEST(test_frame_decode__one_bit_flipped__is_refused),
	TEST(test_frame_decode_header__bad_fields__are_refused),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "frame", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
