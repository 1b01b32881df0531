/* Packs: written, read back, damaged, missing, more than can be open. */
#include "config.h"

#include "pack.h"

#include "bytes.h"
#include "content_kit.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A finished pack with one frame of @raw; *out_off: where. */
static uint64_t make_pack(struct kit *k, const uint8_t *raw, uint32_t size,
			  uint64_t *out_off, size_t *out_stored)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	struct pack_writer *w = NULL;
	uint64_t id = 0, pack_size = 0;

	CHECK_OK(pack_writer_open(k->options.io, k->dirfd, kit_uuid, &w, NULL));
	if (!w)
		return 0;
	id = pack_writer_id(w);
	CHECK_OK(frame_encode(NULL, raw, size, id, &frame));
	CHECK_OK(pack_writer_put(w, frame.data, frame.size, out_off, NULL));
	CHECK_OK(pack_writer_finish(w, &pack_size, NULL));
	CHECK_INT_EQ(PACK_HEADER_SIZE + frame.size, pack_size);
	*out_stored = frame.size;
	pack_writer_free(w);
	return id;
}

static void test_pack_set_read__what_was_put__is_the_same(void)
{
	uint8_t raw[5000], got[6000], back[5000];
	struct decompressor *d = decompressor_new();
	uint64_t off = 0, id;
	size_t stored = 0;
	struct kit k;

	kit_open(&k, NULL);
	kit_fill_text(raw, sizeof(raw), 1);
	id = make_pack(&k, raw, sizeof(raw), &off, &stored);
	CHECK_INT_EQ(PACK_HEADER_SIZE, off);
	CHECK_OK(pack_set_read(k.packs, id, off, got, stored, NULL));
	CHECK_OK(frame_decode(d, got, stored, (struct frame_place){ id, off },
			      back, sizeof(raw)));
	CHECK_MEM_EQ(raw, back, sizeof(raw));
	CHECK_INT_EQ(1, kit_count_packs(&k));
	decompressor_free(d);
	kit_close(&k);
}

static void test_pack_set_read__beyond_the_end__is_damage(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	uint8_t raw[100] = { 0 }, got[300];
	uint64_t off = 0, id;
	size_t stored = 0;
	struct kit k;

	kit_open(&k, NULL);
	id = make_pack(&k, raw, sizeof(raw), &off, &stored);
	CHECK_ERR(INCR_E_CORRUPT,
		  pack_set_read(k.packs, id, off, got, stored + 1, &err));
	CHECK_STR_EQ("damaged-pack", err.word);
	CHECK_ERR(INCR_E_CORRUPT,
		  pack_set_read(k.packs, id, UINT64_MAX - 3, got, 8, NULL));
	CHECK_ERR(INCR_E_CORRUPT, pack_set_read(k.packs, id, 0, got, 8, NULL));
	CHECK_ERR(INCR_E_CORRUPT,
		  pack_set_read(k.packs, id ^ 1, off, got, 8, &err));
	CHECK_STR_EQ("missing-pack", err.word);
	CHECK_ERR(INCR_E_CORRUPT,
		  pack_set_read(k.packs, PACK_SELF, 64, got, 8, NULL));
	incr_error_release(&err);
	kit_close(&k);
}

static void test_pack_set_read__more_packs_than_descriptors__works(void)
{
	uint64_t off[150], ids[150];
	uint8_t raw[16], got[64];
	size_t stored = 0;
	struct kit k;

	kit_open(&k, NULL);
	for (size_t i = 0; i < 150; i++) {
		memset(raw, (int)i, sizeof(raw));
		ids[i] = make_pack(&k, raw, sizeof(raw), &off[i], &stored);
	}
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < 150; i++) {
			CHECK_OK(pack_set_read(k.packs, ids[i], off[i], got,
					       stored, NULL));
			CHECK_INT_EQ(i, got[FRAME_HEADER_SIZE]);
		}
	kit_close(&k);
}

/* Frames that wait for their write, that are in the file, and both at once. */
static void test_pack_set_read__while_it_is_written__reads_all(void)
{
	const size_t size = 1000000, n = 12;
	_cleanup_free_ uint8_t *raw = malloc(size);
	_cleanup_free_ uint8_t *got = malloc(2 * (size + FRAME_HEADER_SIZE));
	uint64_t off[12], end;
	struct pack_writer *w;
	struct kit k;

	kit_open(&k, NULL);
	REQUIRE_OK(pack_writer_open(&io_posix, k.dirfd, kit_uuid, &w, NULL));
	pack_set_attach(k.packs, w);
	for (size_t i = 0; i < n; i++) {
		_cleanup_buf_ struct buf frame = BUF_INIT;

		kit_fill_noise(raw, size, i);
		REQUIRE_OK(frame_encode(NULL, raw, (uint32_t)size,
					pack_writer_id(w), &frame));
		REQUIRE_OK(pack_writer_put(w, frame.data, frame.size, &off[i],
					   NULL));
		for (size_t j = 0; j <= i; j++) {
			size_t n_frames = j < i ? 2 : 1;

			REQUIRE_OK(pack_set_read(
				k.packs, pack_writer_id(w), off[j], got,
				n_frames * (size + FRAME_HEADER_SIZE), NULL));
			kit_fill_noise(raw, size, j);
			CHECK_MEM_EQ(raw, got + FRAME_HEADER_SIZE, size);
		}
		CHECK_ERR(INCR_E_RANGE,
			  pack_set_read(k.packs, pack_writer_id(w), off[i], got,
					size + FRAME_HEADER_SIZE + 1, NULL));
	}
	pack_set_detach(k.packs, w);
	REQUIRE_OK(pack_writer_finish(w, &end, NULL));
	CHECK_OK(pack_set_read(k.packs, pack_writer_id(w), off[n - 1], got,
			       size, NULL));
	pack_writer_free(w);
	kit_close(&k);
}

static void test_pack_set_read__header_bit_flipped__is_damage(void)
{
	uint8_t raw[16] = { 0 }, got[64], byte;
	char path[PACK_PATH_SIZE];
	uint64_t off = 0, id;
	size_t stored = 0;
	struct kit k;
	int fd;

	kit_open(&k, NULL);
	id = make_pack(&k, raw, sizeof(raw), &off, &stored);
	pack_path(id, path);
	REQUIRE(fchmodat(k.dirfd, path, 0644, 0) == 0);
	fd = openat(k.dirfd, path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	for (size_t bit = 0; bit < PACK_HEADER_SIZE * 8; bit++) {
		struct pack_set *s;

		REQUIRE(pread(fd, &byte, 1, (off_t)(bit / 8)) == 1);
		byte ^= (uint8_t)(1 << bit % 8);
		REQUIRE(pwrite(fd, &byte, 1, (off_t)(bit / 8)) == 1);
		REQUIRE_OK(
			pack_set_new(&io_posix, k.dirfd, kit_uuid, NULL, &s));
		CHECK_ERR(INCR_E_CORRUPT,
			  pack_set_read(s, id, off, got, stored, NULL));
		pack_set_free(s);
		byte ^= (uint8_t)(1 << bit % 8);
		REQUIRE(pwrite(fd, &byte, 1, (off_t)(bit / 8)) == 1);
	}
	CHECK_OK(pack_set_read(k.packs, id, off, got, stored, NULL));
	(void)close(fd);
	kit_close(&k);
}

static void test_pack_check_header__other_store_or_version__says_so(void)
{
	uint8_t raw[16] = { 0 }, header[PACK_HEADER_SIZE], other[16] = { 0 };
	char path[PACK_PATH_SIZE];
	uint64_t off = 0, id;
	size_t stored = 0;
	struct kit k;
	int fd;

	kit_open(&k, NULL);
	id = make_pack(&k, raw, sizeof(raw), &off, &stored);
	pack_path(id, path);
	fd = openat(k.dirfd, path, O_RDONLY | O_CLOEXEC);
	REQUIRE(pread(fd, header, sizeof(header), 0) == sizeof(header));
	(void)close(fd);
	CHECK_OK(pack_check_header(header, kit_uuid, id));
	CHECK_ERR(INCR_E_CORRUPT, pack_check_header(header, other, id));
	CHECK_ERR(INCR_E_CORRUPT, pack_check_header(header, kit_uuid, id + 1));
	kit_close(&k);
}

static void test_pack_writer_discard__also_after_finish__removes_it(void)
{
	struct pack_writer *w;
	uint64_t size;
	struct kit k;

	kit_open(&k, NULL);
	REQUIRE_OK(pack_writer_open(&io_posix, k.dirfd, kit_uuid, &w, NULL));
	CHECK_INT_EQ(1, kit_count_packs(&k));
	pack_writer_discard(w);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	REQUIRE_OK(pack_writer_open(&io_posix, k.dirfd, kit_uuid, &w, NULL));
	CHECK_OK(pack_writer_finish(w, &size, NULL));
	CHECK_INT_EQ(PACK_HEADER_SIZE, size);
	pack_writer_discard(w);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	pack_writer_discard(NULL);
	kit_close(&k);
}

/* More than the early syncs wait for; an error of one of them is not lost. */
static void test_pack_writer_put__early_sync_fails__the_pack_fails(void)
{
	_cleanup_free_ uint8_t *bytes = calloc(1, (size_t)8 << 20);
	struct pack_writer *w;
	struct fault_io f;
	uint64_t off, size;
	struct kit k;
	int r = 0;

	fault_io_init(&f);
	f.io.pwrite = io_posix.pwrite;
	kit_open(&k, &f.io);
	REQUIRE_OK(pack_writer_open(&f.io, k.dirfd, kit_uuid, &w, NULL));
	f.fail_at = f.n_calls + 1; /* only a sync can come next */
	for (size_t i = 0; i < 12 && r == 0; i++)
		r = pack_writer_put(w, bytes, (size_t)8 << 20, &off, NULL);
	if (r == 0)
		r = pack_writer_finish(w, &size, NULL);
	CHECK_INT_EQ(INCR_E_IO, r);
	CHECK_ERR(INCR_E_DEAD, pack_writer_finish(w, &size, NULL));
	pack_writer_discard(w);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	kit_close(&k);
}

static const struct testing_test tests[] = {
	TEST(test_pack_set_read__what_was_put__is_the_same),
	TEST(test_pack_set_read__beyond_the_end__is_damage),
	TEST(test_pack_set_read__more_packs_than_descriptors__works),
	TEST(test_pack_set_read__while_it_is_written__reads_all),
	TEST(test_pack_set_read__header_bit_flipped__is_damage),
	TEST(test_pack_check_header__other_store_or_version__says_so),
	TEST(test_pack_writer_discard__also_after_finish__removes_it),
	TEST(test_pack_writer_put__early_sync_fails__the_pack_fails),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "pack", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
