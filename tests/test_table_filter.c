/*
 * The filter of a table: keys that are there are always found, few of the
 * others get past it, and keys that it is not for are not its business.
 */
#include "config.h"

#include "table.h"

#include "bytes.h"
#include "table_format.h"
#include "table_model.h"
#include "testing.h"

#include <fcntl.h>
#include <unistd.h>

#define TAG UINT64_C(0x99)
#define KEY_SIZE 6

struct filtered {
	int dirfd;
	struct block_cache *cache;
	struct table *table;
};

static void filtered_release(struct filtered *f)
{
	table_unref(f->table);
	block_cache_free(f->cache);
	if (f->dirfd >= 0)
		(void)close(f->dirfd);
}

#define _cleanup_filtered_ __attribute__((cleanup(filtered_release)))

/* Number @i of the keys that begin with @first; the odd ones are not put. */
static void make_key(uint8_t first, uint32_t i, uint8_t out[KEY_SIZE])
{
	out[0] = first;
	out[1] = (uint8_t)(i >> 24);
	out[2] = (uint8_t)(i >> 16);
	out[3] = (uint8_t)(i >> 8);
	out[4] = (uint8_t)i;
	out[5] = 7;
}

/* Even keys below 2 @n of 'a', 'f' and 'z', with a filter for those of 'f'. */
static bool filtered_init(struct filtered *f, uint32_t n, uint64_t n_keys_max)
{
	const uint8_t firsts[] = { 'a', 'f', 'z' };
	struct incr_error err = INCR_ERROR_INIT;
	struct table_writer *w;
	uint8_t key[KEY_SIZE];
	int r;

	f->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->cache = block_cache_new(4 << 20);
	(void)unlinkat(f->dirfd, "t", 0);
	r = table_writer_open(&io_posix, f->dirfd, "t", TAG, &w, &err);
	if (r == 0)
		r = table_writer_filter(w, 'f', n_keys_max, &err);
	for (size_t k = 0; k < sizeof(firsts); k++) {
		for (uint32_t i = 0; i < 2 * n && r == 0; i += 2) {
			const struct table_entry e = { .key = key,
						       .key_size = KEY_SIZE,
						       .value = key,
						       .value_size = 1 };

			make_key(firsts[k], i, key);
			r = table_writer_put(w, &e, &err);
		}
	}
	if (r == 0)
		r = table_writer_finish(w, false, &err);
	if (r == 0)
		r = table_open(&io_posix, f->dirfd, "t", TAG, f->cache,
			       &f->table, &err);
	incr_error_release(&err);
	return testing_int_eq(0, r, "a table with a filter", __FILE__,
			      __LINE__);
}

static bool is_there(struct filtered *f, uint8_t first, uint32_t i)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	bool is_tombstone = true;
	uint8_t key[KEY_SIZE];
	int r;

	make_key(first, i, key);
	r = table_get(f->table, key, KEY_SIZE, &value, &is_tombstone, NULL);
	testing_true(r == 1 || (r == 0 && !is_tombstone && value.size == 1),
		     "a look-up", __FILE__, __LINE__);
	return r == 0;
}

static bool may_be_there(struct filtered *f, uint8_t first, uint32_t i)
{
	uint8_t key[KEY_SIZE];
	bool may = false;

	make_key(first, i, key);
	testing_int_eq(0, table_may_hold(f->table, key, KEY_SIZE, &may, NULL),
		       "the filter", __FILE__, __LINE__);
	return may;
}

static void check(uint32_t n, uint64_t n_keys_max)
{
	_cleanup_filtered_ struct filtered f = { .dirfd = -1 };

	REQUIRE(filtered_init(&f, n, n_keys_max));
	for (uint32_t i = 0; i < n; i++) {
		REQUIRE(may_be_there(&f, 'f', 2 * i));
		REQUIRE(is_there(&f, 'f', 2 * i));
		REQUIRE(!is_there(&f, 'f', 2 * i + 1));
	}
	CHECK(is_there(&f, 'a', 0) && !is_there(&f, 'a', 1));
	CHECK(is_there(&f, 'z', 2 * n - 2) && !is_there(&f, 'z', 2 * n));
	CHECK_INT_EQ(n_keys_max ? n : 0, table_n_filtered(f.table));
}

static void test_filter__any_size__finds_all_that_is_there(void)
{
	/* one line, a full block of 64 lines, one line more, some blocks */
	check(1, 1);
	check(51, 51);
	check(52, 52);
	check(3276, 3276);
	check(3277, 3277);
	check(20000, 20000);
}

static void test_filter__made_for_fewer_keys__finds_all_the_same(void)
{
	check(5000, 1);
	check(5000, 600);
	check(1000, 50000);
	check(1000, 0);
}

static void test_filter__absent_keys__pass_one_time_in_forty_at_most(void)
{
	_cleanup_filtered_ struct filtered f = { .dirfd = -1 };
	const uint32_t n = 100000;
	uint32_t n_passed = 0;

	REQUIRE(filtered_init(&f, n, n));
	for (uint32_t i = 0; i < n; i++)
		n_passed += may_be_there(&f, 'f', 2 * i + 1);
	CHECK(n_passed < n / 40);
	/* it knows nothing of others */
	CHECK(may_be_there(&f, 'a', 1) && may_be_there(&f, 'z', 1));
}

static const struct testing_test tests[] = {
	TEST(test_filter__any_size__finds_all_that_is_there),
	TEST(test_filter__made_for_fewer_keys__finds_all_the_same),
	TEST(test_filter__absent_keys__pass_one_time_in_forty_at_most),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "table_filter", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
