/*
 * Damaged, foreign and hostile tables: every change of the bytes is found, and
 * bytes with right hashes and wrong content neither crash nor loop.
 */
#include "config.h"

#include "table.h"

#include "bytes.h"
#include "codec.h"
#include "hash.h"
#include "table_format.h"
#include "table_model.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAG UINT64_C(0x1122334455667788)

/* A table's bytes as a file that can be changed, and what is in it. */
struct victim {
	int dirfd;
	int fd;
	struct buf bytes;
	struct model model;
	struct block_cache *cache;
};

#define VICTIM_INIT ((struct victim){ .dirfd = -1, .fd = -1 })

static void victim_release(struct victim *v)
{
	if (v->fd >= 0)
		(void)close(v->fd);
	if (v->dirfd >= 0)
		(void)close(v->dirfd);
	buf_release(&v->bytes);
	model_release(&v->model);
	block_cache_free(v->cache);
}

#define _cleanup_victim_ __attribute__((cleanup(victim_release)))

/*
 * The model's table, small in bytes but with an index: long keys that share
 * most of their bytes fill a block soon and compress well.
 */
static bool victim_init(struct victim *v, uint64_t *random)
{
	char key[2600];

	memset(key, 'k', sizeof(key));
	for (int i = 0; i < 60; i++) {
		uint8_t value[40];

		for (size_t j = 0; j < sizeof(value); j++)
			value[j] = (uint8_t)model_random(random);
		key[2500] = (char)('0' + i);
		model_add(&v->model, key, sizeof(key), i % 7 ? value : NULL,
			  i % 7 ? (size_t)i % 41 : 0);
	}
	model_sort(&v->model);
	v->cache = block_cache_new(0);
	v->dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (model_write(&v->model, &io_posix, v->dirfd, "t", TAG) < 0 ||
	    io_read_file(&io_posix, v->dirfd, "t", 1 << 20, &v->bytes, NULL) <
		    0)
		return testing_true(false, "write", __FILE__, __LINE__);

	v->fd = openat(v->dirfd, "t", O_RDWR | O_CLOEXEC);
	return testing_true(v->fd >= 0, "open", __FILE__, __LINE__);
}

static void victim_write(const struct victim *v, size_t off, const void *data,
			 size_t size)
{
	CHECK_INT_EQ(size, pwrite(v->fd, data, size, (off_t)off));
}

/* Each key by itself, through the filter; 0, an error code, or 1 for wrong data. */
static int victim_look_up(const struct victim *v, struct table *t,
			  struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	int r = 0;

	for (size_t i = 0; i < v->model.n && r == 0; i++) {
		const struct model_entry *e = &v->model.entries[i];
		bool is_tombstone;

		r = table_get(t, e->key, e->key_size, &value, &is_tombstone,
			      err);
		if (r == 0 && (is_tombstone != e->is_tombstone ||
			       value.size != e->value_size ||
			       (value.size &&
				memcmp(value.data, e->value, value.size) != 0)))
			r = 1;
	}
	return r;
}

/*
 * Read all there is.  Returns 0 when it is the model, else the error code; 1
 * when the data is wrong.
 */
static int victim_read(const struct victim *v, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct table *t;
	size_t n = 0;
	int r = table_open(&io_posix, v->dirfd, "t", TAG, v->cache, &t, err);

	if (r < 0)
		return r;

	r = table_iter_new(t, &it, err);
	if (r == 0)
		r = victim_look_up(v, t, err);
	table_unref(t);
	if (r)
		return r;

	for (r = it->seek(it, "", 0, err); r == 0; r = it->next(it, err)) {
		if (n == v->model.n ||
		    !model_is_entry(&v->model, n, &it->entry))
			return 1;
		n++;
	}
	return r < 0 ? r : n != v->model.n;
}

static bool is_damage(const struct victim *v)
{
	struct incr_error err = INCR_ERROR_INIT;
	int r = victim_read(v, &err);
	bool is_right =
		r == INCR_E_CORRUPT && !strcmp(err.word, "damaged-table") &&
		!strcmp(err.thing, "t") && strstr(err.message, "offset");

	incr_error_release(&err);
	return is_right;
}

static void test_table_damage__any_bit_flipped__is_found(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	size_t n_missed = 0;

	REQUIRE(victim_init(&v, &random));
	REQUIRE_OK(victim_read(&v, NULL));
	for (size_t bit = 0; bit < v.bytes.size * 8; bit++) {
		uint8_t byte = v.bytes.data[bit / 8];

		byte ^= (uint8_t)(1 << bit % 8);
		victim_write(&v, bit / 8, &byte, 1);
		n_missed += !is_damage(&v);
		victim_write(&v, bit / 8, &v.bytes.data[bit / 8], 1);
	}
	CHECK_INT_EQ(0, n_missed);
	CHECK_OK(victim_read(&v, NULL));
}

static void test_table_damage__cut_anywhere_or_longer__is_found(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	size_t n_missed = 0;

	REQUIRE(victim_init(&v, &random));
	victim_write(&v, v.bytes.size, v.bytes.data, 1);
	CHECK(is_damage(&v));
	for (size_t size = v.bytes.size; size-- > 0;) {
		REQUIRE_INT_EQ(0, ftruncate(v.fd, (off_t)size));
		n_missed += !is_damage(&v);
	}
	CHECK_INT_EQ(0, n_missed);
}

static void test_table_damage__foreign_tag__is_found(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	_cleanup_buf_ struct buf other = BUF_INIT;
	struct table *t;

	REQUIRE(victim_init(&v, &random));
	CHECK_ERR(INCR_E_CORRUPT, table_open(&io_posix, v.dirfd, "t", TAG + 1,
					     v.cache, &t, NULL));
	/* The same blocks under this table's footer. */
	REQUIRE_OK(model_write(&v.model, &io_posix, v.dirfd, "u", TAG + 1));
	REQUIRE_OK(
		io_read_file(&io_posix, v.dirfd, "u", 1 << 20, &other, NULL));
	REQUIRE_INT_EQ(v.bytes.size, other.size);
	victim_write(&v, 0, other.data, other.size - TABLE_FOOTER_SIZE);
	CHECK(is_damage(&v));
}

/* Blocks of one size, stored raw, change places. */
static void test_table_damage__blocks_swapped__is_found(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	size_t size = TABLE_HEADER_SIZE + 6 + 10000 - 1;
	uint8_t value[10000];

	v.cache = block_cache_new(0);
	v.dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		char key = (char)('a' + i);

		for (size_t j = 0; j < sizeof(value); j++)
			value[j] = (uint8_t)model_random(&random);
		model_add(&v.model, &key, 1, value, sizeof(value));
	}
	model_sort(&v.model);
	REQUIRE_OK(model_write(&v.model, &io_posix, v.dirfd, "t", TAG));
	REQUIRE_OK(
		io_read_file(&io_posix, v.dirfd, "t", 1 << 20, &v.bytes, NULL));
	v.fd = openat(v.dirfd, "t", O_RDWR | O_CLOEXEC);
	CHECK_INT_EQ(size, TABLE_HEADER_SIZE + get_u32(v.bytes.data + 8));
	CHECK_OK(victim_read(&v, NULL));
	victim_write(&v, 0, v.bytes.data + size, size);
	victim_write(&v, size, v.bytes.data, size);
	CHECK(is_damage(&v));
}

/* Walk over whatever the file holds now: it must end, and not crash. */
static void victim_walk(const struct victim *v, uint64_t *random)
{
	_cleanup_iter_ struct iter *it = NULL;
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct table *t;
	bool is_tombstone;
	uint64_t n = 0, most;
	int r = table_open(&io_posix, v->dirfd, "t", TAG, v->cache, &t, NULL);

	if (r < 0)
		return;

	most = table_n_entries(t) + 100 * TABLE_BLOCK_ENTRIES;
	REQUIRE_OK(table_iter_new(t, &it, NULL));
	table_unref(t);
	for (r = it->seek(it, "", 0, NULL); r == 0; r = it->next(it, NULL))
		REQUIRE(++n <= most);
	for (int i = 0; i < 5; i++) {
		const struct model_entry *e =
			&v->model.entries[model_random(random) % v->model.n];

		(void)table_get(t, e->key, e->key_size, &value, &is_tombstone,
				NULL); /* any answer but a crash */
		(void)it->seek(it, e->key, e->key_size, NULL);
		(void)table_iter_goto(it, (uint32_t)model_random(random) % 5, 0,
				      NULL);
	}
}

/* Where the blocks of a whole table begin; returns how many. */
static size_t block_offsets(const struct buf *bytes, size_t *out, size_t most)
{
	size_t n = 0, off = 0;

	while (n < most && off < bytes->size - TABLE_FOOTER_SIZE) {
		out[n++] = off;
		off += TABLE_HEADER_SIZE + get_u32(bytes->data + off + 8);
	}
	return n;
}

/* A wrong value at a random place: a flip, a limit, or another byte. */
static void mutate(uint8_t *data, size_t size, uint64_t *random)
{
	uint64_t r = model_random(random);
	uint8_t *at = data + (r >> 8) % size;

	switch (r % 4) {
	case 0:
		*at ^= (uint8_t)(1 << (r >> 40 & 7));
		break;
	case 1:
		*at = r >> 40 & 1 ? 0xff : 0;
		break;
	case 2:
		*at = (uint8_t)(*at + (r >> 40 & 1 ? 1 : 255));
		break;
	default:
		*at = (uint8_t)(r >> 40);
	}
}

static void test_table_damage__wrong_content_right_hash__never_crashes(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	size_t offs[64], n, footer;

	REQUIRE(victim_init(&v, &random));
	n = block_offsets(&v.bytes, offs, 64);
	footer = v.bytes.size - TABLE_FOOTER_SIZE;
	CHECK(n >= 4);
	for (int i = 0; i < 4000; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT;
		size_t k = model_random(&random) % (n + 1);
		size_t off = k < n ? offs[k] : footer;
		size_t end = k + 1 < n ? offs[k + 1] :
			     k < n     ? footer :
					 v.bytes.size - 8;

		REQUIRE_OK(buf_put(&b, v.bytes.data, v.bytes.size));
		for (int j = 0; j <= i % 3; j++)
			mutate(b.data + off, end - off, &random);
		if (k < n)
			put_u64(b.data + off,
				block_hash(TAG, off, b.data + off + 8,
					   end - off - 8));
		else
			put_u64(b.data + end, hash64(b.data + off, end - off));
		victim_write(&v, 0, b.data, b.size);
		victim_walk(&v, &random);
	}
}

/* The plain form of a block: what a mutation reaches inside the payload. */
static void test_block_decode__wrong_entries_right_hash__never_crashes(void)
{
	uint64_t random = model_seed();
	struct decompressor *d = decompressor_new();
	static const uint8_t payload[] = { 0, 3, 5, 'a', 'b', 'c', 1, 2, 3,
					   4, 2, 1, 0,	 'd', 0,   1, 1, 'b' };
	size_t n_good = 0;

	REQUIRE(d != NULL);
	for (int i = 0; i < 200000; i++) {
		uint8_t bytes[TABLE_HEADER_SIZE + sizeof(payload)] = { 0 };
		struct block_place place = { .off = 77,
					     .size = sizeof(bytes),
					     .number = 5 };
		struct block *b = NULL;
		const char *reason = NULL;
		int r;

		put_u32(bytes + 8, sizeof(payload));
		put_u32(bytes + 12, sizeof(payload));
		put_u32(bytes + 16, 7);
		put_u32(bytes + 20, 5);
		put_u16(bytes + 24, 3);
		memcpy(bytes + TABLE_HEADER_SIZE, payload, sizeof(payload));
		for (int j = 0; i && j <= i % 3; j++)
			mutate(bytes + 8, sizeof(bytes) - 8, &random);
		put_u64(bytes,
			block_hash(TAG, 77, bytes + 8, sizeof(bytes) - 8));
		r = block_decode(&place, TAG, bytes, d, &b, &reason);
		if (!i)
			REQUIRE_INT_EQ(0, r);
		if (!r) {
			n_good++;
			for (uint32_t k = 1; k < b->n_entries; k++)
				REQUIRE(block_compare(b, k - 1, block_key(b, k),
						      b->entries[k].key_size) <
					0);
		} else {
			REQUIRE_INT_EQ(INCR_E_CORRUPT, r);
			REQUIRE(reason != NULL);
		}
		block_unref(b);
	}
	CHECK(n_good > 1);
	decompressor_free(d);
}

static void test_table_open__newer_version__is_unsupported(void)
{
	uint64_t random = model_seed();
	_cleanup_victim_ struct victim v = VICTIM_INIT;
	uint8_t *footer;

	REQUIRE(victim_init(&v, &random));
	footer = v.bytes.data + v.bytes.size - TABLE_FOOTER_SIZE;
	put_u32(footer + 8, TABLE_VERSION + 1);
	put_u64(footer + TABLE_FOOTER_HASHED,
		hash64(footer, TABLE_FOOTER_HASHED));
	victim_write(&v, 0, v.bytes.data, v.bytes.size);
	CHECK_ERR(INCR_E_UNSUPPORTED, victim_read(&v, NULL));
}

static const struct testing_test tests[] = {
	TEST(test_table_damage__any_bit_flipped__is_found),
	TEST(test_table_damage__cut_anywhere_or_longer__is_found),
	TEST(test_table_damage__foreign_tag__is_found),
	TEST(test_table_damage__blocks_swapped__is_found),
	TEST(test_table_damage__wrong_content_right_hash__never_crashes),
	TEST(test_block_decode__wrong_entries_right_hash__never_crashes),
	TEST(test_table_open__newer_version__is_unsupported),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "table_damage", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
