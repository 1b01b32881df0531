/* Ingest: what goes in is what can be read, whatever the sizes. */
#include "config.h"

#include "ingest.h"

#include "content_kit.h"
#include "hash.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Every file of @sizes as tree/<number>, text or noise by turns. */
static uint8_t *file_bytes(size_t i, size_t size)
{
	uint8_t *data = malloc(size + 1);

	if (i % 2)
		kit_fill_noise(data, size, i);
	else
		kit_fill_text(data, size, i);
	return data;
}

static void check_file(struct kit *k, const struct ingest_result *r,
		       const struct kit_files *files, const char *path,
		       const uint8_t *data, size_t size)
{
	const struct manifest_entry *e = kit_find(files, path);
	uint8_t hash[INCR_HASH_SIZE];

	REQUIRE(e != NULL);
	CHECK_INT_EQ(size, e->content.size);
	hash128(data, size, hash);
	CHECK_MEM_EQ(hash, e->hash, sizeof(hash));
	CHECK(kit_content_is(k, r, e, data, size, 100001));
}

static void test_ingest_run__all_sizes__read_back(void)
{
	static const size_t sizes[] = { 0,	 1,	  100,
					4096,	 65535,	  65536,
					65537,	 131072,  131073,
					MIB - 1, MIB,	  MIB + 1,
					0,	 5 * MIB, 3 * MIB + 65536,
					50000,	 40000,	  30000 };
	struct kit_files files;
	struct ingest_result r;
	char path[100];
	struct kit k;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ uint8_t *data = file_bytes(i, sizes[i]);

		(void)snprintf(path, sizeof(path), "tree/%02zu", i);
		kit_write(path, data, sizes[i]);
	}
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(!r.is_inline);
	CHECK_INT_EQ(1, kit_count_packs(&k));
	kit_list(&k, &r, &files);
	CHECK_INT_EQ(sizeof(sizes) / sizeof(sizes[0]), files.n);
	CHECK_INT_EQ(files.n, r.n_put);
	for (size_t i = 0; i < files.n; i++) {
		_cleanup_free_ uint8_t *data = file_bytes(i, sizes[i]);

		(void)snprintf(path, sizeof(path), "%02zu", i);
		check_file(&k, &r, &files, path, data, sizes[i]);
	}
	kit_files_release(&files);
	ingest_result_discard(&k.options, &r);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	kit_close(&k);
}

static void test_ingest_run__little_data__stays_in_memory(void)
{
	struct kit_files files;
	struct ingest_result r;
	struct kit k;

	kit_write("tree/a", "aaa", 3);
	kit_write("tree/b", "", 0);
	kit_write("tree/c/d", "dd", 2);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.is_inline);
	CHECK_INT_EQ(3, r.n_put);
	CHECK_INT_EQ(5, r.size);
	CHECK_INT_EQ(FRAME_HEADER_SIZE + 5, r.inline_frames.size);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	kit_list(&k, &r, &files);
	REQUIRE_INT_EQ(3, files.n);
	check_file(&k, &r, &files, "a", (const uint8_t *)"aaa", 3);
	check_file(&k, &r, &files, "b", (const uint8_t *)"", 0);
	check_file(&k, &r, &files, "c/d", (const uint8_t *)"dd", 2);
	CHECK_INT_EQ(0644, files.entries[0].mode);
	kit_files_release(&files);
	ingest_result_release(&r);
	kit_close(&k);
}

static void test_ingest_run__nothing__is_an_empty_result(void)
{
	_cleanup_free_ char *dir = kit_path("tree");
	struct ingest_result r;
	struct kit k;

	REQUIRE(mkdir(dir, 0777) == 0);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.is_inline);
	CHECK_INT_EQ(0, r.n_put);
	CHECK_INT_EQ(0, r.manifest.size);
	ingest_result_release(&r);
	kit_close(&k);
}

/* The limits are passed late: what was kept in memory moves to the pack. */
static void check_moved(size_t n_files, size_t name_length, size_t size)
{
	_cleanup_free_ uint8_t *data = malloc(size);
	struct kit_files files;
	struct ingest_result r;
	char path[400];
	struct kit k;

	for (size_t i = 0; i < n_files; i++) {
		kit_fill_noise(data, size, i);
		(void)snprintf(path, sizeof(path), "tree/%04zu%0*d", i,
			       (int)name_length, 0);
		kit_write(path, data, size);
	}
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(!r.is_inline);
	kit_list(&k, &r, &files);
	REQUIRE_INT_EQ(n_files, files.n);
	for (size_t i = 0; i < n_files; i++) {
		kit_fill_noise(data, size, i);
		check_file(&k, &r, &files, files.entries[i].path, data, size);
	}
	kit_files_release(&files);
	ingest_result_release(&r);
	kit_close(&k);
}

static void test_ingest_run__frames_pass_the_limit__all_in_the_pack(void)
{
	check_moved(40, 1, 40000);
}

static void test_ingest_run__manifest_passes_the_limit__all_in_the_pack(void)
{
	check_moved(1000, 200, 10);
}

static int run_stream(struct kit *k, const void *data, size_t size,
		      struct ingest_result *out)
{
	struct ingest *g;
	_cleanup_free_ char *path = kit_path("stream");
	int fd, r;

	kit_write("stream", data, size);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r = ingest_new(&k->options, &g, NULL);
	if (r == 0)
		r = ingest_add_stream(g, fd, "in/put", NULL);
	if (r == 0)
		r = ingest_add_removal(g, "gone", 4, NULL);
	if (r == 0)
		r = ingest_run(g, out, NULL);
	ingest_free(g);
	(void)close(fd);
	return r;
}

static void test_ingest_run__streams_of_any_size__read_back(void)
{
	static const size_t sizes[] = { 0,   10,      65536,   65537,
					MIB, MIB + 1, 2 * MIB, 2 * MIB - 7 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ uint8_t *data = file_bytes(i, sizes[i]);
		struct kit_files files;
		struct ingest_result r;
		struct kit k;

		kit_open(&k, NULL);
		REQUIRE_OK(run_stream(&k, data, sizes[i], &r));
		kit_list(&k, &r, &files);
		CHECK_INT_EQ(2, files.n);
		CHECK_INT_EQ(1, r.n_put);
		CHECK_INT_EQ(1, r.n_removed);
		check_file(&k, &r, &files, "in/put", data, sizes[i]);
		kit_files_release(&files);
		ingest_result_release(&r);
		kit_close(&k);
	}
}

static void test_ingest_run__noise_then_text__text_still_shrinks(void)
{
	_cleanup_free_ uint8_t *data = malloc(20 * MIB);
	struct ingest_result r;
	struct kit k;

	kit_fill_noise(data, 10 * MIB, 1);
	kit_fill_text(data + 10 * MIB, 10 * MIB, 1);
	kit_write("tree/a", data, 20 * MIB);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.pack_size > 10 * MIB);
	CHECK(r.pack_size < 14 * MIB);
	ingest_result_release(&r);
	kit_close(&k);
}

/* ---- against stored versions ---- */

static int find_stored(void *closure, const char *path, size_t length,
		       struct manifest_entry *out, struct incr_error *err)
{
	struct kit_files *files = closure;

	(void)err;
	for (size_t i = 0; i < files->n; i++) {
		const struct manifest_entry *e = &files->entries[i];

		if (e->path_length != length ||
		    memcmp(e->path, path, length) != 0)
			continue;
		*out = *e;
		return content_copy(&e->content, &out->content);
	}
	return 1;
}

/* A first version in a pack; its entries are what is stored. */
static void store_first(struct kit *k, struct kit_files *files)
{
	struct ingest_result r;

	REQUIRE_OK(kit_ingest(k, "tree", &r, NULL));
	REQUIRE(!r.is_inline);
	kit_list(k, &r, files);
	ingest_result_release(&r);
	k->options.find_stored = find_stored;
	k->options.closure = files;
}

static void write_versions(uint8_t *big)
{
	kit_fill_text(big, 4 * MIB, 9);
	kit_write("tree/big", big, 3 * MIB + 100);
	kit_write("tree/changes", "old", 3);
	kit_write("tree/same", "the same", 8);
	kit_write("tree/empty", "", 0);
}

static void test_ingest_run__unchanged__nothing_is_written(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);
	struct kit_files files;
	struct ingest_result r;
	struct fault_io f;
	struct kit k;

	fault_io_init(&f);
	write_versions(big);
	kit_open(&k, &f.io);
	store_first(&k, &files);
	f.n_written = 0;
	k.options.drops_unchanged = true;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.is_inline);
	CHECK_INT_EQ(0, r.n_put);
	CHECK_INT_EQ(0, r.manifest.size);
	CHECK_INT_EQ(0, f.n_written);
	ingest_result_release(&r);

	k.options.drops_unchanged = false;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(r.is_inline);
	CHECK_INT_EQ(4, r.n_put);
	CHECK_INT_EQ(0, r.inline_frames.size);
	CHECK_INT_EQ(0, f.n_written);
	ingest_result_release(&r);
	kit_files_release(&files);
	kit_close(&k);
}

static void test_ingest_run__mode_changed__entry_shares_content(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);
	_cleanup_free_ char *path = kit_path("tree/same");
	struct kit_files files, second;
	struct ingest_result r;
	struct kit k;

	write_versions(big);
	kit_open(&k, NULL);
	store_first(&k, &files);
	REQUIRE(chmod(path, 0755) == 0);
	k.options.drops_unchanged = true;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	kit_list(&k, &r, &second);
	REQUIRE_INT_EQ(1, second.n);
	CHECK_INT_EQ(0755, second.entries[0].mode);
	CHECK(kit_content_is(&k, NULL, &second.entries[0], "the same", 8, 3));
	kit_files_release(&second);
	ingest_result_release(&r);
	kit_files_release(&files);
	kit_close(&k);
}

/* The second version of tree/big is @size bytes of @big. */
static void check_second(uint8_t *big, size_t size, size_t written_max)
{
	struct kit_files files, second;
	struct ingest_result r;
	struct fault_io f;
	struct kit k;

	fault_io_init(&f);
	kit_open(&k, &f.io);
	store_first(&k, &files);
	kit_write("tree/big", big, size);
	kit_write("tree/changes", "new", 3);
	f.n_written = 0;
	k.options.drops_unchanged = true;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(f.n_written <= written_max);
	kit_list(&k, &r, &second);
	CHECK_INT_EQ(2, second.n);
	check_file(&k, &r, &second, "big", big, size);
	check_file(&k, &r, &second, "changes", (const uint8_t *)"new", 3);
	kit_files_release(&second);
	ingest_result_release(&r);
	kit_files_release(&files);
	kit_close(&k);
}

static void test_ingest_run__changed_at_the_end__shares_the_prefix(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);

	write_versions(big);
	big[3 * MIB + 50] ^= 1;
	check_second(big, 3 * MIB + 100, 1000);
}

static void test_ingest_run__grown__shares_the_prefix(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);

	write_versions(big);
	check_second(big, 3 * MIB + 200, 1000);
}

static void test_ingest_run__cut_between_frames__shares_all(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);

	write_versions(big);
	check_second(big, 2 * MIB, 0);
}

static void test_ingest_run__changed_at_the_start__is_written_anew(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);

	write_versions(big);
	big[0] ^= 1;
	check_second(big, 3 * MIB + 100, 2 * MIB);
}

static void test_ingest_run__stored_version_lost__new_data_is_stored(void)
{
	_cleanup_free_ uint8_t *big = malloc(4 * MIB);
	struct kit_files files, second;
	struct ingest_result r;
	char path[PACK_PATH_SIZE];
	struct kit k;

	write_versions(big);
	kit_open(&k, NULL);
	store_first(&k, &files);
	pack_path(kit_find(&files, "same")->content.container, path);
	REQUIRE(unlinkat(k.dirfd, path, 0) == 0);
	kit_close(&k);

	kit_open(&k, NULL);
	k.options.find_stored = find_stored;
	k.options.closure = &files;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	kit_list(&k, &r, &second);
	CHECK_INT_EQ(4, second.n);
	check_file(&k, &r, &second, "big", big, 3 * MIB + 100);
	kit_files_release(&second);
	ingest_result_release(&r);
	kit_files_release(&files);
	kit_close(&k);
}

struct progress {
	uint64_t n_calls, n_files, size;
};

static void count_progress(void *closure, uint64_t n_files, uint64_t size,
			   uint64_t n_total, uint64_t size_total)
{
	struct progress *p = closure;

	CHECK(n_files >= p->n_files && size >= p->size);
	CHECK_INT_EQ(0, n_total + size_total);
	p->n_calls++;
	p->n_files = n_files;
	p->size = size;
}

static void test_ingest_run__with_progress__ends_with_the_sums(void)
{
	struct progress p = { 0 };
	uint8_t data[4096];
	struct ingest_result r;
	char path[100];
	struct kit k;

	for (size_t i = 0; i < 600; i++) {
		kit_fill_text(data, sizeof(data), i);
		(void)snprintf(path, sizeof(path), "tree/%zu/%zu", i % 7, i);
		kit_write(path, data, sizeof(data));
	}
	kit_open(&k, NULL);
	k.options.progress = count_progress;
	k.options.progress_closure = &p;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(p.n_calls > 0);
	CHECK_INT_EQ(600, p.n_files);
	CHECK_INT_EQ(600 * 4096, p.size);
	CHECK_INT_EQ(600 * 4096, r.size);
	ingest_result_release(&r);
	kit_close(&k);
}

static const struct testing_test tests[] = {
	TEST(test_ingest_run__all_sizes__read_back),
	TEST(test_ingest_run__little_data__stays_in_memory),
	TEST(test_ingest_run__nothing__is_an_empty_result),
	TEST(test_ingest_run__frames_pass_the_limit__all_in_the_pack),
	TEST(test_ingest_run__manifest_passes_the_limit__all_in_the_pack),
	TEST(test_ingest_run__streams_of_any_size__read_back),
	TEST(test_ingest_run__noise_then_text__text_still_shrinks),
	TEST(test_ingest_run__unchanged__nothing_is_written),
	TEST(test_ingest_run__mode_changed__entry_shares_content),
	TEST(test_ingest_run__changed_at_the_end__shares_the_prefix),
	TEST(test_ingest_run__grown__shares_the_prefix),
	TEST(test_ingest_run__cut_between_frames__shares_all),
	TEST(test_ingest_run__changed_at_the_start__is_written_anew),
	TEST(test_ingest_run__stored_version_lost__new_data_is_stored),
	TEST(test_ingest_run__with_progress__ends_with_the_sums),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "ingest", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
