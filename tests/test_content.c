/* Content descriptors, the frame cache, and reading through both. */
#include "config.h"

#include "content.h"

#include "bytes.h"
#include "content_kit.h"
#include "frame_cache.h"
#include "testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct content make_extents(uint64_t size, uint32_t frame_size, size_t n)
{
	struct content c = { .kind = CONTENT_EXTENTS,
			     .size = size,
			     .frame_size = frame_size };
	uint64_t left = (size - 1) / frame_size + 1;

	for (size_t i = 0; i < n; i++) {
		struct content_extent e = { .container = 77 + i,
					    .index_off = 64 + 1000 * i,
					    .first = i,
					    .n_frames = i + 1 < n ? 1 : left };

		e.index_n = e.first + e.n_frames + i;
		left -= e.n_frames;
		CHECK_OK(content_add_extent(&c, &e));
	}
	return c;
}

static void check_codec(const struct content *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct content got;
	struct cursor from;

	CHECK_OK(content_encode(c, &b));
	from = cursor_over(b.data, b.size);
	REQUIRE_OK(content_decode(&from, &got));
	CHECK_INT_EQ(0, cursor_left(&from));
	CHECK_INT_EQ(c->kind, got.kind);
	CHECK_INT_EQ(c->size, got.size);
	CHECK_INT_EQ(c->frame_off, got.frame_off);
	CHECK_INT_EQ(c->part_off, got.part_off);
	CHECK_INT_EQ(c->frame_size, got.frame_size);
	REQUIRE_INT_EQ(c->n_extents, got.n_extents);
	if (c->n_extents)
		CHECK_MEM_EQ(c->extents, got.extents,
			     c->n_extents * sizeof(*c->extents));
	content_release(&got);

	for (size_t n = 0; n < b.size; n++) {
		from = cursor_over(b.data, n);
		CHECK_ERR(INCR_E_CORRUPT, content_decode(&from, &got));
	}
}

static void test_content_decode__what_was_encoded__is_equal(void)
{
	const struct content empty = { .kind = CONTENT_EMPTY };
	const struct content part = { .kind = CONTENT_PART,
				      .size = 100,
				      .container = UINT64_C(1) << 60,
				      .frame_off = 64,
				      .frame_stored = 140,
				      .frame_raw = 300,
				      .part_off = 200 };
	struct content one = make_extents(1, 4096, 1);
	struct content many = make_extents(UINT64_C(16) << 40, 65536, 300);
	struct content copy;

	check_codec(&empty);
	check_codec(&part);
	check_codec(&one);
	check_codec(&many);
	CHECK_OK(content_copy(&many, &copy));
	content_release(&many);
	check_codec(&copy);
	content_release(&copy);
	content_release(&one);
}

static void check_bad(struct content c)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct cursor from;
	struct content got;

	CHECK_OK(content_encode(&c, &b));
	from = cursor_over(b.data, b.size);
	CHECK_ERR(INCR_E_CORRUPT, content_decode(&from, &got));
}

#define BAD(base, field, value)              \
	do {                                 \
		struct content bad = (base); \
		bad.field = (value);         \
		check_bad(bad);              \
	} while (0)
#define BAD_EXTENT(base, field, value)                          \
	do {                                                    \
		struct content_extent kept = (base).extents[0]; \
		(base).extents[0].field = (value);              \
		check_bad(base);                                \
		(base).extents[0] = kept;                       \
	} while (0)

static void test_content_decode__out_of_limits__is_refused(void)
{
	const struct content part = { .kind = CONTENT_PART,
				      .size = 100,
				      .container = 9,
				      .frame_off = 64,
				      .frame_stored = 140,
				      .frame_raw = 300,
				      .part_off = 200 };
	struct content c = make_extents(100000, 65536, 1);

	BAD(part, size, 0);
	BAD(part, size, 101);
	BAD(part, size, UINT64_MAX);
	BAD(part, frame_off, 63);
	BAD(part, frame_off, INT64_MAX);
	BAD(part, frame_off, UINT64_MAX);
	BAD(part, frame_stored, 32);
	BAD(part, frame_stored, 333);
	BAD(part, frame_raw, FRAME_RAW_MAX + 1);
	BAD(part, part_off, 300);
	BAD(c, size, 0);
	BAD(c, size, 65536);
	BAD(c, size, 131073);
	BAD(c, frame_size, 2048);
	BAD(c, frame_size, UINT32_C(2) << 20);
	BAD(c, n_extents, 0);
	BAD_EXTENT(c, container, PACK_LOG);
	BAD_EXTENT(c, container, PACK_SELF);
	BAD_EXTENT(c, index_off, 63);
	BAD_EXTENT(c, index_off, UINT64_MAX - 10);
	BAD_EXTENT(c, index_n, 1);
	BAD_EXTENT(c, index_n, UINT64_MAX);
	BAD_EXTENT(c, first, 1);
	BAD_EXTENT(c, first, UINT64_MAX);
	BAD_EXTENT(c, n_frames, 0);
	BAD_EXTENT(c, n_frames, 3);
	content_release(&c);
}

static void test_content_decode__huge_extent_count__does_not_allocate(void)
{
	static const uint8_t bytes[] = { 2, 1, 12, 0xff, 0xff, 3, 1, 1, 1, 1 };
	struct cursor from = cursor_over(bytes, sizeof(bytes));
	struct content got;

	CHECK_ERR(INCR_E_CORRUPT, content_decode(&from, &got));
}

static void test_content_prefix__inside_an_extent__cuts_it(void)
{
	struct content c = make_extents(10 * 4096, 4096, 3), got;

	REQUIRE_OK(content_prefix(&c, 4, 4 * 4096 - 5, &got));
	CHECK_INT_EQ(3, got.n_extents);
	CHECK_INT_EQ(2, got.extents[2].n_frames);
	check_codec(&got);
	content_release(&got);
	CHECK_ERR(INCR_E_RANGE, content_prefix(&c, 11, 11 * 4096, &got));
	content_release(&c);
}

static void test_content_rebase__of_this_record__becomes_a_position(void)
{
	struct content c = { .kind = CONTENT_PART,
			     .container = PACK_SELF,
			     .frame_off = 10 };

	CHECK_OK(content_rebase(&c, 100));
	CHECK_INT_EQ(PACK_LOG, c.container);
	CHECK_INT_EQ(110, c.frame_off);
	CHECK_OK(content_rebase(&c, 100));
	CHECK_INT_EQ(110, c.frame_off);
	c.container = PACK_SELF;
	CHECK_ERR(INCR_E_CORRUPT, content_rebase(&c, UINT64_MAX));
}

/* ---- reading ---- */

#define BIG_SIZE (5u * FRAME_RAW_DEFAULT * 16 + 12345)

struct stored {
	struct kit k;
	struct ingest_result result;
	struct kit_files files;
	const struct manifest_entry *big;
	uint8_t *data; /* owned; BIG_SIZE */
};

static void stored_open(struct stored *s, size_t size, bool is_uniform)
{
	memset(s, 0, sizeof(*s));
	s->data = malloc(BIG_SIZE);
	kit_fill_text(s->data, BIG_SIZE, 5);
	kit_fill_noise(s->data + BIG_SIZE / 2, BIG_SIZE / 4, 6);
	if (is_uniform)
		memset(s->data, 'u', BIG_SIZE);
	kit_write("tree/big", s->data, size);
	kit_write("tree/small", "small", 5);
	kit_open(&s->k, NULL);
	REQUIRE_OK(kit_ingest(&s->k, "tree", &s->result, NULL));
	kit_list(&s->k, &s->result, &s->files);
	s->big = kit_find(&s->files, "big");
}

static void stored_close(struct stored *s)
{
	kit_files_release(&s->files);
	ingest_result_release(&s->result);
	kit_close(&s->k);
	free(s->data);
}

static void test_content_read__any_range__gives_the_bytes(void)
{
	_cleanup_free_ uint8_t *got = malloc(BIG_SIZE);
	uint64_t state = 1;
	struct stored s;
	size_t n;

	stored_open(&s, BIG_SIZE, false);
	REQUIRE(s.big != NULL);
	for (size_t i = 0; i < 400; i++) {
		uint64_t off, size, want;

		state = state * 6364136223846793005u + 1442695040888963407u;
		off = (state >> 20) % (BIG_SIZE + 10);
		size = (state >> 44) % (i % 4 ? 5000 : 1500000);
		if (i % 3 == 0)
			off -= off % FRAME_RAW_DEFAULT;
		want = off >= BIG_SIZE	     ? 0 :
		       size > BIG_SIZE - off ? BIG_SIZE - off :
					       size;
		CHECK_OK(content_read(s.k.reader, &s.big->content, off, got,
				      size, &n, NULL));
		REQUIRE_INT_EQ(want, n);
		if (n > 0)
			CHECK_MEM_EQ(s.data + off, got, n);
	}
	CHECK(kit_content_is(&s.k, NULL, s.big, s.data, BIG_SIZE, BIG_SIZE));
	stored_close(&s);
}

static void test_content_prefetch__then_read__without_the_pack(void)
{
	const size_t size = 10 * FRAME_RAW_DEFAULT; /* fits in the cache */
	_cleanup_free_ uint8_t *got = malloc(BIG_SIZE);
	char path[PACK_PATH_SIZE];
	struct stored s;
	struct content small;
	size_t n;
	int fd;

	stored_open(&s, BIG_SIZE, false);
	REQUIRE(s.big != NULL);
	small = kit_find(&s.files, "small")->content;
	CHECK_OK(content_prefetch(s.k.reader, &small, 0, 5, NULL));
	CHECK_OK(content_prefetch(s.k.reader, &s.big->content, BIG_SIZE + 1, 9,
				  NULL));
	CHECK_OK(content_prefetch(s.k.reader, &s.big->content,
				  FRAME_RAW_DEFAULT + 5, size - 5, NULL));
	/* All is in memory: what the pack holds now does not matter. */
	pack_path(s.result.pack_id, path);
	REQUIRE(fchmodat(s.k.dirfd, path, 0644, 0) == 0);
	fd = openat(s.k.dirfd, path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
	(void)close(fd);
	CHECK_OK(content_read(s.k.reader, &s.big->content, FRAME_RAW_DEFAULT,
			      got, size, &n, NULL));
	REQUIRE_INT_EQ(size, n);
	CHECK_MEM_EQ(s.data + FRAME_RAW_DEFAULT, got, n);
	CHECK_ERR(INCR_E_CORRUPT,
		  content_prefetch(s.k.reader, &s.big->content, 0, 1, NULL));
	CHECK_ERR(INCR_E_CORRUPT, content_read(s.k.reader, &s.big->content, 0,
					       got, 1, &n, NULL));
	stored_close(&s);
}

static void *prefetch_all(void *closure)
{
	struct stored *s = closure;

	for (uint64_t off = 0; off < BIG_SIZE; off += 200000)
		CHECK_OK(content_prefetch(s->k.reader, &s->big->content, off,
					  200000, NULL));
	return s;
}

static void *read_all(void *closure)
{
	struct stored *s = closure;
	bool is_right =
		kit_content_is(&s->k, NULL, s->big, s->data, BIG_SIZE, 77777);

	return is_right ? s : NULL;
}

static void test_content_read__many_threads__all_right(void)
{
	pthread_t threads[8];
	struct stored s;
	void *right;

	stored_open(&s, BIG_SIZE, false);
	REQUIRE(s.big != NULL);
	for (size_t i = 0; i < 8; i++)
		REQUIRE(pthread_create(&threads[i], NULL,
				       i % 3 ? read_all : prefetch_all,
				       &s) == 0);
	for (size_t i = 0; i < 8; i++) {
		(void)pthread_join(threads[i], &right);
		CHECK(right != NULL);
	}
	stored_close(&s);
}

/* Every bit of a whole pack: never other bytes than those that were stored. */
static void test_content_read__any_bit_flipped__never_wrong_bytes(void)
{
	const size_t size = 2 * FRAME_RAW_DEFAULT + 10;
	_cleanup_free_ uint8_t *got = malloc(size);
	char path[PACK_PATH_SIZE];
	size_t n, n_wrong = 0, n_failed = 0;
	struct stored s;
	uint8_t byte;
	int fd;

	stored_open(&s, size, true);
	REQUIRE(s.big != NULL);
	pack_path(s.result.pack_id, path);
	REQUIRE(fchmodat(s.k.dirfd, path, 0644, 0) == 0);
	fd = openat(s.k.dirfd, path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	for (uint64_t bit = 0; bit < s.result.pack_size * 8; bit++) {
		struct kit k;

		REQUIRE(pread(fd, &byte, 1, (off_t)(bit / 8)) == 1);
		byte ^= (uint8_t)(1 << bit % 8);
		REQUIRE(pwrite(fd, &byte, 1, (off_t)(bit / 8)) == 1);
		kit_open(&k, NULL);
		if (content_read(k.reader, &s.big->content, 0, got, size, &n,
				 NULL) < 0)
			n_failed++;
		else if (n != size || memcmp(got, s.data, size) != 0)
			n_wrong++;
		kit_close(&k);
		byte ^= (uint8_t)(1 << bit % 8);
		REQUIRE(pwrite(fd, &byte, 1, (off_t)(bit / 8)) == 1);
	}
	CHECK_INT_EQ(0, n_wrong);
	CHECK(n_failed > 0);
	(void)close(fd);
	stored_close(&s);
}

static void test_content_frame_get__damaged__names_pack_and_offset(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	const struct frame *frame;
	char path[PACK_PATH_SIZE];
	struct stored s;

	stored_open(&s, BIG_SIZE, false);
	pack_path(s.result.pack_id, path);
	CHECK_ERR(INCR_E_CORRUPT,
		  content_frame_get(s.k.reader, s.result.pack_id, 70, 100, 200,
				    &frame, &err));
	CHECK_STR_EQ("damaged-frame", err.word);
	CHECK_STR_EQ(path, err.thing);
	CHECK(strstr(err.message, "70") != NULL);
	CHECK_ERR(INCR_E_CORRUPT,
		  content_frame_get(s.k.reader, s.result.pack_id, 70, 100, 20,
				    &frame, NULL));
	incr_error_release(&err);
	stored_close(&s);
}

static void test_frame_cache_get__over_capacity__drops_the_oldest(void)
{
	struct frame_cache *c = frame_cache_new(10 * 4096);
	struct frame_key key = { 1, 64, 100, 4000 };
	struct frame *held, *frame;

	REQUIRE_INT_EQ(1, frame_cache_get(c, &key, &held));
	frame_cache_loaded(c, held, true);
	for (uint64_t i = 1; i <= 20; i++) {
		key.off = 64 + i;
		REQUIRE_INT_EQ(1, frame_cache_get(c, &key, &frame));
		memset(frame_cache_bytes(frame), (int)i, 4000);
		frame_cache_loaded(c, frame, true);
		frame_cache_put(c, frame);
	}
	key.off = 64 + 20;
	frame = frame_cache_wait(c, &key);
	REQUIRE(frame != NULL);
	CHECK_INT_EQ(20, frame->data[3999]);
	frame_cache_put(c, frame);
	key.off = 64 + 1;
	CHECK(frame_cache_wait(c, &key) == NULL);
	key.off = 64; /* in use all the time */
	frame = frame_cache_wait(c, &key);
	CHECK(frame == held);
	frame_cache_put(c, frame);
	frame_cache_put(c, held);

	/* What was read whole makes room before what was not. */
	key.off = 64 + 20;
	frame = frame_cache_wait(c, &key);
	REQUIRE(frame != NULL);
	frame_cache_put_read(c, frame);
	key.off = 5;
	REQUIRE(frame_cache_claim(c, &key, &frame));
	CHECK(frame_cache_has(c, &key));
	CHECK(!frame_cache_claim(c, &key, &held));
	key.off = 64 + 20;
	CHECK(!frame_cache_has(c, &key));
	key.off = 64 + 19;
	CHECK(frame_cache_has(c, &key));
	key.off = 5;
	frame_cache_loaded(c, frame, false);
	CHECK(frame_cache_wait(c, &key) == NULL);
	frame_cache_free(c);
}

static const struct testing_test tests[] = {
	TEST(test_content_decode__what_was_encoded__is_equal),
	TEST(test_content_decode__out_of_limits__is_refused),
	TEST(test_content_decode__huge_extent_count__does_not_allocate),
	TEST(test_content_prefix__inside_an_extent__cuts_it),
	TEST(test_content_rebase__of_this_record__becomes_a_position),
	TEST(test_content_read__any_range__gives_the_bytes),
	TEST(test_content_read__many_threads__all_right),
	TEST(test_content_prefetch__then_read__without_the_pack),
	TEST(test_content_read__any_bit_flipped__never_wrong_bytes),
	TEST(test_content_frame_get__damaged__names_pack_and_offset),
	TEST(test_frame_cache_get__over_capacity__drops_the_oldest),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "content", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
