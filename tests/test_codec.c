/* zstd frames and their limits. */
#include "config.h"

#include "codec.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define RAW_SIZE ((size_t)64 << 10)

/* What the tests share; each begins with set_up(). */
static struct {
	struct compressor *c;
	struct decompressor *d;
	uint8_t *raw, *out, *back;
	size_t bound, size; /* of out: room, and what stands in it */
} t;

static void set_up(size_t raw_size)
{
	t.c = compressor_new(1);
	t.d = decompressor_new();
	t.bound = compressor_bound(raw_size);
	t.raw = malloc(raw_size);
	t.out = malloc(t.bound);
	t.back = malloc(raw_size + 1);
	if (!t.c || !t.d || !t.raw || !t.out || !t.back)
		abort();
	for (size_t i = 0; i < raw_size; i++)
		t.raw[i] = (uint8_t)(i / 100 % 50);
	t.size = compressor_run(t.c, t.raw, raw_size, t.out, t.bound);
}

static void tear_down(void)
{
	compressor_free(t.c);
	decompressor_free(t.d);
	free(t.raw);
	free(t.out);
	free(t.back);
}

static void test_codec__any_size__round_trips(void)
{
	static const size_t sizes[] = { 100,   4096,	RAW_SIZE,
					99999, 1 << 20, 3 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		set_up(sizes[i]);
		CHECK(t.size > 0 && t.size < sizes[i]);
		CHECK_OK(
			decompressor_run(t.d, t.out, t.size, t.back, sizes[i]));
		CHECK_MEM_EQ(t.raw, t.back, sizes[i]);
		tear_down();
	}
}

/* Letters without a match: all that is won is won by literals. */
static void fill_letters(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < RAW_SIZE; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		t.raw[i] = (uint8_t)('a' + (state >> 60));
	}
}

static void test_codec_literal_gain__letters__is_what_is_won(void)
{
	size_t gain;

	set_up(RAW_SIZE);
	CHECK(codec_literal_gain(t.out, t.size) < 1000); /* matches do it */
	fill_letters();
	t.size = compressor_run(t.c, t.raw, RAW_SIZE, t.out, t.bound);
	REQUIRE(t.size > 0 && t.size < RAW_SIZE * 6 / 10);
	gain = codec_literal_gain(t.out, t.size);
	CHECK(gain > (RAW_SIZE - t.size) * 9 / 10);
	CHECK(gain < (RAW_SIZE - t.size) * 11 / 10);
	for (size_t size = 0; size < 14; size++)
		CHECK_INT_EQ(0, codec_literal_gain(t.out, size));
	tear_down();
}

static void test_compressor_set_literals__off__leaves_them(void)
{
	set_up(RAW_SIZE);
	fill_letters();
	memcpy(t.raw + RAW_SIZE / 2, t.raw, RAW_SIZE / 2);
	compressor_set_literals(t.c, false);
	t.size = compressor_run(t.c, t.raw, RAW_SIZE, t.out, t.bound);
	CHECK(t.size >= RAW_SIZE / 2 && t.size < RAW_SIZE * 6 / 10);
	CHECK_INT_EQ(0, codec_literal_gain(t.out, t.size));
	CHECK_OK(decompressor_run(t.d, t.out, t.size, t.back, RAW_SIZE));
	CHECK_MEM_EQ(t.raw, t.back, RAW_SIZE);

	compressor_set_literals(t.c, true);
	t.size = compressor_run(t.c, t.raw, RAW_SIZE, t.out, t.bound);
	CHECK(t.size < RAW_SIZE * 3 / 10);
	tear_down();
}

static void test_compressor_run__no_gain__says_raw(void)
{
	unsigned state = 1;

	set_up(RAW_SIZE);
	for (size_t i = 0; i < RAW_SIZE; i++) {
		state = state * 1103515245u + 12345u;
		t.raw[i] = (uint8_t)(state >> 16);
	}
	CHECK_INT_EQ(0, compressor_run(t.c, t.raw, RAW_SIZE, t.out, t.bound));
	CHECK_INT_EQ(0, compressor_run(t.c, t.raw, 0, t.out, t.bound));
	/* No room is no error either. */
	memset(t.raw, 0, RAW_SIZE);
	CHECK_INT_EQ(0, compressor_run(t.c, t.raw, RAW_SIZE, t.out, 3));
	tear_down();
}

static void test_decompressor_run__wrong_size__is_corrupt(void)
{
	set_up(RAW_SIZE);
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, t.out, t.size, t.back, RAW_SIZE - 1));
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, t.out, t.size, t.back, RAW_SIZE + 1));
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, t.out, t.size, t.back, 0));
	tear_down();
}

static void test_decompressor_run__cut_or_longer__is_corrupt(void)
{
	set_up(RAW_SIZE);
	for (size_t n = 0; n < t.size; n++)
		CHECK_ERR(INCR_E_CORRUPT,
			  decompressor_run(t.d, t.out, n, t.back, RAW_SIZE));
	t.out[t.size] = 0;
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, t.out, t.size + 1, t.back, RAW_SIZE));
	/* Two frames where one is expected. */
	memcpy(t.out + t.size, t.out, t.size);
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, t.out, 2 * t.size, t.back, RAW_SIZE));
	tear_down();
}

static void test_decompressor_run__bit_flips__never_overrun(void)
{
	set_up(RAW_SIZE);
	for (size_t bit = 0; bit < 8 * t.size; bit++) {
		int r;

		t.out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* zstd has no checksum here: it may also give wrong bytes. */
		r = decompressor_run(t.d, t.out, t.size, t.back, RAW_SIZE);
		CHECK(r == 0 || r == INCR_E_CORRUPT);
		t.out[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CHECK_OK(decompressor_run(t.d, t.out, t.size, t.back, RAW_SIZE));
	tear_down();
}

static void test_decompressor_run__skippable_frame__is_corrupt(void)
{
	static const uint8_t frame[] = { 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0 };

	set_up(100);
	CHECK_ERR(INCR_E_CORRUPT,
		  decompressor_run(t.d, frame, sizeof(frame), t.back, 0));
	tear_down();
}

static void test_decompressor_run__large_window__is_corrupt(void)
{
	const size_t size = (size_t)3 << 20;
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	size_t n;

	set_up(size);
	REQUIRE(cctx != NULL);
	for (int log = 20; log <= 21; log++) {
		(void)ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, log);
		n = ZSTD_compress2(cctx, t.out, t.bound, t.raw, size);
		CHECK(!ZSTD_isError(n));
		CHECK_ERR(log == 20 ? 0 : INCR_E_CORRUPT,
			  decompressor_run(t.d, t.out, n, t.back, size));
	}
	(void)ZSTD_freeCCtx(cctx);
	tear_down();
}

static void test_codec__free_nothing__is_no_op(void)
{
	compressor_free(NULL);
	decompressor_free(NULL);
}

static const struct testing_test tests[] = {
	TEST(test_codec__any_size__round_trips),
	TEST(test_codec_literal_gain__letters__is_what_is_won),
	TEST(test_compressor_set_literals__off__leaves_them),
	TEST(test_compressor_run__no_gain__says_raw),
	TEST(test_decompressor_run__wrong_size__is_corrupt),
	TEST(test_decompressor_run__cut_or_longer__is_corrupt),
	TEST(test_decompressor_run__bit_flips__never_overrun),
	TEST(test_decompressor_run__skippable_frame__is_corrupt),
	TEST(test_decompressor_run__large_window__is_corrupt),
	TEST(test_codec__free_nothing__is_no_op),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "codec", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
