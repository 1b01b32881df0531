/*
 * Equal files at several paths of one commit are stored once, wherever they
 * stand; what is not equal is stored, whatever it has in common.
 */
#include "config.h"

#include "content_kit.h"
#include "hash.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void check_file(struct kit *k, const struct ingest_result *r,
		       const struct kit_files *files, const char *path,
		       const uint8_t *data, size_t size)
{
	const struct manifest_entry *e = kit_find(files, path);
	uint8_t hash[INCR_HASH_SIZE];

	REQUIRE(e != NULL);
	hash128(data, size, hash);
	CHECK_INT_EQ(size, e->content.size);
	CHECK_MEM_EQ(hash, e->hash, sizeof(hash));
	CHECK(kit_content_is(k, r, e, data, size, 65536));
}

static bool shares(const struct kit_files *files, const char *a, const char *b)
{
	return content_equals(&kit_find(files, a)->content,
			      &kit_find(files, b)->content);
}

/* Bytes that were written for a tree. */
static uint64_t size_of(const struct ingest_result *r)
{
	return r->is_inline ? r->manifest.size + r->inline_frames.size :
			      r->pack_size;
}

static void test_same__beside_each_other__stored_once(void)
{
	_cleanup_free_ uint8_t *data = malloc(20000);
	struct kit_files files;
	struct ingest_result r;
	struct kit k;

	kit_fill_noise(data, 20000, 1);
	kit_write("tree/a", data, 20000);
	kit_write("tree/b/c", data, 20000);
	kit_write("tree/d", data, 20000);
	/* as long, and another; a part of it; too small to look for */
	data[19999] ^= 1;
	kit_write("tree/e", data, 20000);
	kit_write("tree/f", data, 19999);
	kit_write("tree/g", data, 100);
	kit_write("tree/h", data, 100);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.is_inline);
	CHECK_INT_EQ(7, r.n_put);
	CHECK_INT_EQ(99999 + 200, r.size);
	CHECK(size_of(&r) < 62000);
	kit_list(&k, &r, &files);
	CHECK(shares(&files, "a", "b/c"));
	CHECK(shares(&files, "a", "d"));
	CHECK(!shares(&files, "a", "e"));
	check_file(&k, &r, &files, "e", data, 20000);
	check_file(&k, &r, &files, "f", data, 19999);
	check_file(&k, &r, &files, "h", data, 100);
	data[19999] ^= 1;
	check_file(&k, &r, &files, "b/c", data, 20000);
	check_file(&k, &r, &files, "d", data, 20000);
	kit_files_release(&files);
	ingest_result_release(&r);
	kit_close(&k);
}

static void test_same__with_empty_files_between__stored_once(void)
{
	_cleanup_free_ uint8_t *data = malloc(60000);
	struct ingest_result r;
	struct kit k;

	/* empty files and gaps between those that stay */
	kit_fill_noise(data, 60000, 2);
	kit_write("tree/a", "", 0);
	kit_write("tree/b", data, 30000);
	kit_write("tree/c", "", 0);
	kit_write("tree/d", data, 30000);
	kit_write("tree/e", data + 30000, 30000);
	kit_write("tree/f", data + 30000, 30000);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(size_of(&r) < 61000);
	ingest_result_release(&r);
	kit_close(&k);
}

#define N_FILES 600

/* One directory of noise, and the same files in another far behind it. */
static void check_far(size_t size, unsigned n_threads)
{
	_cleanup_free_ uint8_t *data = malloc(size);
	struct kit_files files;
	struct ingest_result r;
	unsigned n_shared = 0;
	char a[64], b[64];
	struct kit k;

	for (int i = 0; i < N_FILES; i++) {
		kit_fill_noise(data, size, (uint64_t)i + 7);
		(void)snprintf(a, sizeof(a), "tree/a/%03d", i);
		(void)snprintf(b, sizeof(b), "tree/b/%03d", i);
		kit_write(a, data, size);
		/* every tenth is another one */
		if (i % 10 == 0)
			data[size / 2] ^= 1;
		kit_write(b, data, size);
	}
	kit_open(&k, NULL);
	k.options.n_threads = n_threads;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	kit_list(&k, &r, &files);
	CHECK_INT_EQ(2 * N_FILES, files.n);
	for (int i = 0; i < N_FILES; i++) {
		kit_fill_noise(data, size, (uint64_t)i + 7);
		(void)snprintf(a, sizeof(a), "a/%03d", i);
		(void)snprintf(b, sizeof(b), "b/%03d", i);
		check_file(&k, &r, &files, a, data, size);
		if (i % 10 == 0)
			data[size / 2] ^= 1;
		check_file(&k, &r, &files, b, data, size);
		n_shared += shares(&files, a, b);
	}
	/* what was still on its way may be stored twice: jobs at the seam */
	CHECK(n_shared > N_FILES / 2);
	CHECK(n_shared <= N_FILES - N_FILES / 10);
	CHECK(size_of(&r) < (2 * N_FILES - n_shared + 2) * (size + 300));
	kit_files_release(&files);
	ingest_result_discard(&k.options, &r);
	kit_close(&k);
}

static void test_same__far_behind__stored_once(void)
{
	check_far(60000, 1);
	check_far(60000, 4);
}

static void test_same__large_and_far_behind__stored_once(void)
{
	check_far(100000, 1);
	check_far(100000, 3);
}

/* The front of another large file is shared, as with a stored version. */
static void test_same__large_with_the_same_front__shares_it(void)
{
	const size_t size = 3 * MIB + 1234;
	_cleanup_free_ uint8_t *data = malloc(size);
	_cleanup_free_ uint8_t *filler = malloc(30 * MIB);
	struct kit_files files;
	struct ingest_result r;
	struct kit k;

	kit_fill_noise(data, size, 3);
	kit_fill_text(filler, 30 * MIB, 4);
	kit_write("tree/a", data, size);
	kit_write("tree/b", filler, 30 * MIB);
	data[size - 1] ^= 1;
	kit_write("tree/c", data, size);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	kit_list(&k, &r, &files);
	check_file(&k, &r, &files, "c", data, size);
	CHECK_INT_EQ(2, kit_find(&files, "c")->content.n_extents);
	data[size - 1] ^= 1;
	check_file(&k, &r, &files, "a", data, size);
	kit_files_release(&files);
	ingest_result_discard(&k.options, &r);
	kit_close(&k);
}

static const struct testing_test tests[] = {
	TEST(test_same__beside_each_other__stored_once),
	TEST(test_same__with_empty_files_between__stored_once),
	TEST(test_same__far_behind__stored_once),
	TEST(test_same__large_and_far_behind__stored_once),
	TEST(test_same__large_with_the_same_front__shares_it),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "ingest_same", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
