/* Manifest entries and whole manifests. */
#include "config.h"

#include "manifest.h"

#include "bytes.h"
#include "content_kit.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

static struct manifest_entry make_entry(const char *path)
{
	return (struct manifest_entry){
		.op = MANIFEST_PUT,
		.path = path,
		.path_length = strlen(path),
		.mode = 0640,
		.mtime_ns = -1234567890123456789,
		.hash = "0123456789abcde",
		.content = { .kind = CONTENT_PART,
			     .size = 5,
			     .container = PACK_SELF,
			     .frame_stored = 50,
			     .frame_raw = 20,
			     .part_off = 3 },
	};
}

static void test_manifest_decode__what_was_encoded__is_equal(void)
{
	struct manifest_entry e = make_entry("a/b \xff"), got;
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct cursor from;

	CHECK_OK(manifest_encode(&e, &b));
	from = cursor_over(b.data, b.size);
	REQUIRE_OK(manifest_decode(&from, &got));
	CHECK_INT_EQ(0, cursor_left(&from));
	CHECK_INT_EQ(MANIFEST_PUT, got.op);
	CHECK_INT_EQ(e.path_length, got.path_length);
	CHECK_MEM_EQ(e.path, got.path, e.path_length);
	CHECK_INT_EQ(0640, got.mode);
	CHECK_INT_EQ(e.mtime_ns, got.mtime_ns);
	CHECK_MEM_EQ(e.hash, got.hash, sizeof(e.hash));
	CHECK_INT_EQ(5, got.content.size);
	for (size_t n = 0; n < b.size; n++) {
		from = cursor_over(b.data, n);
		CHECK_ERR(INCR_E_CORRUPT, manifest_decode(&from, &got));
	}
}

static void test_manifest_decode__bad_path_mode_or_op__is_refused(void)
{
	static const char *const paths[] = { "",   "/a",   "a/",  "a//b",
					     "..", "a/..", "./a", "a/." };
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct manifest_entry e, got;
	struct cursor from;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		e = make_entry(paths[i]);
		buf_reset(&b);
		CHECK_OK(manifest_encode(&e, &b));
		from = cursor_over(b.data, b.size);
		CHECK_ERR(INCR_E_CORRUPT, manifest_decode(&from, &got));
	}
	e = make_entry("a");
	e.mode = 01000;
	buf_reset(&b);
	CHECK_OK(manifest_encode(&e, &b));
	from = cursor_over(b.data, b.size);
	CHECK_ERR(INCR_E_CORRUPT, manifest_decode(&from, &got));

	e = make_entry("a");
	buf_reset(&b);
	CHECK_OK(manifest_encode(&e, &b));
	b.data[0] = 3;
	from = cursor_over(b.data, b.size);
	CHECK_ERR(INCR_E_CORRUPT, manifest_decode(&from, &got));
}

static void test_manifest_reader_next__from_memory__gives_all_in_order(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct manifest_entry a = make_entry("a"), c = make_entry("c");
	struct manifest_entry gone = { .op = MANIFEST_REMOVE,
				       .path = "b",
				       .path_length = 1 };
	const struct manifest_entry *e;
	struct manifest_reader *m;

	CHECK_OK(manifest_encode(&a, &b));
	CHECK_OK(manifest_encode(&gone, &b));
	CHECK_OK(manifest_encode(&c, &b));
	REQUIRE_OK(manifest_reader_new_memory(b.data, b.size, 1000, &m));
	REQUIRE_OK(manifest_reader_next(m, &e, NULL));
	CHECK_INT_EQ('a', e->path[0]);
	CHECK_INT_EQ(PACK_LOG, e->content.container);
	CHECK_INT_EQ(1000, e->content.frame_off);
	REQUIRE_OK(manifest_reader_next(m, &e, NULL));
	CHECK_INT_EQ(MANIFEST_REMOVE, e->op);
	REQUIRE_OK(manifest_reader_next(m, &e, NULL));
	CHECK_INT_EQ(1, manifest_reader_next(m, &e, NULL));
	CHECK_INT_EQ(1, manifest_reader_next(m, &e, NULL));
	manifest_reader_free(m);
}

static void check_refused(const struct manifest_entry *a,
			  const struct manifest_entry *b)
{
	struct incr_error err = INCR_ERROR_INIT;
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	const struct manifest_entry *e;
	struct manifest_reader *m;

	CHECK_OK(manifest_encode(a, &bytes));
	CHECK_OK(manifest_encode(b, &bytes));
	REQUIRE_OK(manifest_reader_new_memory(bytes.data, bytes.size, 0, &m));
	CHECK_OK(manifest_reader_next(m, &e, NULL));
	CHECK_ERR(INCR_E_CORRUPT, manifest_reader_next(m, &e, &err));
	CHECK_STR_EQ("damaged-manifest", err.word);
	incr_error_release(&err);
	manifest_reader_free(m);
}

static void test_manifest_reader_next__paths_do_not_ascend__is_damage(void)
{
	struct manifest_entry a = make_entry("a"), b = make_entry("ab");

	check_refused(&b, &a);
	check_refused(&a, &a);
}

/* 5,000 files: a manifest of many frames, some entries across their edges. */
static void test_manifest_reader_next__from_a_pack__gives_all_in_order(void)
{
	struct kit_files files;
	struct ingest_result r;
	char path[300], name[200];
	struct kit k;

	memset(name, 'n', sizeof(name));
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(path, sizeof(path), "tree/%05d-%.*s", i, i % 190,
			       name);
		kit_write(path, NULL, 0);
	}
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK(!r.is_inline);
	CHECK(r.manifest_content.size > 5 * FRAME_RAW_DEFAULT);
	kit_list(&k, &r, &files);
	REQUIRE_INT_EQ(5000, files.n);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(path, sizeof(path), "%05d-%.*s", i, i % 190,
			       name);
		CHECK_STR_EQ(path, files.entries[i].path);
	}
	kit_files_release(&files);
	ingest_result_release(&r);
	kit_close(&k);
}

static const struct testing_test tests[] = {
	TEST(test_manifest_decode__what_was_encoded__is_equal),
	TEST(test_manifest_decode__bad_path_mode_or_op__is_refused),
	TEST(test_manifest_reader_next__from_memory__gives_all_in_order),
	TEST(test_manifest_reader_next__paths_do_not_ascend__is_damage),
	TEST(test_manifest_reader_next__from_a_pack__gives_all_in_order),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "manifest", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
