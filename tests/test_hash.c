/* XXH3 against the output of xxhsum. */
#include "config.h"

#include "hash.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

#define LARGE_SIZE ((size_t)100000)

static uint8_t large[LARGE_SIZE];

static void fill_large(void)
{
	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * 7);
}

static void check_hash128(const char *want, const void *data, size_t size)
{
	uint8_t hash[INCR_HASH_SIZE];
	char hex[2 * INCR_HASH_SIZE + 1];

	hash128(data, size, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	CHECK_STR_EQ(want, hex);
}

static void test_hash128__vectors__as_xxhsum(void)
{
	fill_large();
	check_hash128("99aa06d3014798d86001c324468d497f", "", 0);
	check_hash128("06b05ab6733a618578af5f94892f3950", "abc", 3);
	check_hash128("4fb78cd2670dad5801271d2740e5fca3", large, sizeof(large));
}

static void test_hash64__vectors__as_xxhsum(void)
{
	fill_large();
	CHECK_INT_EQ(UINT64_C(0x2d06800538d394c2), hash64("", 0));
	CHECK_INT_EQ(UINT64_C(0x78af5f94892f3950), hash64("abc", 3));
	CHECK_INT_EQ(UINT64_C(0x01271d2740e5fca3),
		     hash64(large, sizeof(large)));
}

static void test_hash64_two__any_cut__equals_whole(void)
{
	uint64_t whole;

	fill_large();
	whole = hash64(large, 1000);
	for (size_t cut = 0; cut <= 1000; cut++)
		CHECK_INT_EQ(whole,
			     hash64_two(large, cut, large + cut, 1000 - cut));
	CHECK_INT_EQ(hash64("", 0), hash64_two(NULL, 0, NULL, 0));
}

static void test_hasher__pieces__equal_whole(void)
{
	uint8_t want[INCR_HASH_SIZE], got[INCR_HASH_SIZE];
	struct hasher *h = hasher_new();

	REQUIRE(h != NULL);
	fill_large();
	hash128(large, sizeof(large), want);
	for (int round = 0; round < 2; round++) {
		size_t at = 0;

		hasher_reset(h);
		for (size_t n = 0; at + n <= sizeof(large); at += n++)
			hasher_update(h, large + at, n);
		hasher_update(h, large + at, sizeof(large) - at);
		hasher_digest(h, got);
		CHECK_MEM_EQ(want, got, sizeof(want));
	}
	hasher_free(h);
	hasher_free(NULL);
}

static const struct testing_test tests[] = {
	TEST(test_hash128__vectors__as_xxhsum),
	TEST(test_hash64__vectors__as_xxhsum),
	TEST(test_hash64_two__any_cut__equals_whole),
	TEST(test_hasher__pieces__equal_whole),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "hash", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
