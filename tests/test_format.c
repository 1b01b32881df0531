/*
 * The disk format: docs/format.md against the bytes that are written, and the
 * rules for what a reader does not know.
 */
#include "config.h"

#include "error.h"
#include "format_kit.h"
#include "hash.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SEGMENT "log/0000000000000000.log"

/* In place of the C library's: stores of the test record a fixed user. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size,
	       struct passwd **out_found)
{
	if (size < sizeof(FORMAT_USER))
		return ERANGE;
	*entry = (struct passwd){ .pw_uid = uid, .pw_name = text };
	memcpy(text, FORMAT_USER, sizeof(FORMAT_USER));
	*out_found = entry;
	return 0;
}

/* ---- files ---- */

/* Overwrite bytes of an existing file. */
static void patch(const char *dir, const char *name, size_t off,
		  const void *bytes, size_t size)
{
	char path[FORMAT_PATH_SIZE];
	int fd;

	format_join(path, dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, bytes, size, (off_t)off) != (ssize_t)size ||
	    close(fd) < 0)
		abort();
}

static bool make_example(void)
{
	return format_make_example(format_store(), testing_tmpdir(), NULL) == 0;
}

/* ---- the example of docs/format.md ---- */

#define DUMP_FENCE "```dump "

/*
 * One line of a dump: offset, two spaces, bytes, two spaces, text.  False for
 * a line that is none.
 */
static bool parse_dump_line(const char *line, size_t *out_off, struct buf *out)
{
	char *at;
	unsigned long off = strtoul(line, &at, 16);

	if (at == line || strncmp(at, "  ", 2) != 0)
		return false;
	*out_off = off;
	at += 2;
	for (;;) {
		char digits[3] = { at[0], at[0] ? at[1] : '\0', '\0' };
		char *end;
		unsigned long byte = strtoul(digits, &end, 16);

		if (end != digits + 2 || buf_put_u8(out, (uint8_t)byte) < 0)
			return false;
		at += 2;
		if (at[0] != ' ' || at[1] == ' ')
			return true;
		at++;
	}
}

/* The file that a dump begins with in @line; lines follow at *at. */
static void check_dump(const char *name, char **at)
{
	_cleanup_buf_ struct buf want = BUF_INIT, got = BUF_INIT;
	char *line;

	while ((line = strsep(at, "\n")) && strcmp(line, "```") != 0) {
		size_t off, before = want.size;

		if (!strncmp(line, "...", 3))
			continue; /* zeros up to the next offset */
		if (!parse_dump_line(line, &off, &want) || off < before) {
			CHECK_STR_EQ("a line of a dump", line);
			return;
		}
		if (off > before) {
			size_t size = want.size - before;
			uint8_t bytes[64];

			REQUIRE(size <= sizeof(bytes));
			memcpy(bytes, want.data + before, size);
			want.size = before;
			REQUIRE_OK(buf_put_zeros(&want, off - before));
			REQUIRE_OK(buf_put(&want, bytes, size));
		}
	}
	REQUIRE(format_read(format_store(), name, &got));
	REQUIRE_INT_EQ(got.size, want.size);
	REQUIRE(got.data && want.data);
	for (size_t i = 0; i < got.size; i++)
		if (got.data[i] != want.data[i]) {
			(void)printf("%s at %zx: file %02x, document %02x\n",
				     name, i, got.data[i], want.data[i]);
			CHECK(false);
			return;
		}
}

static void test_format__document__has_the_bytes_of_a_real_store(void)
{
	_cleanup_buf_ struct buf doc = BUF_INIT;
	char *at, *line;
	unsigned n_dumps = 0;

	REQUIRE(format_read(format_srcdir(), "docs/format.md", &doc));
	REQUIRE_OK(buf_put_u8(&doc, 0));
	REQUIRE(make_example());
	at = (char *)doc.data;
	while ((line = strsep(&at, "\n"))) {
		if (strncmp(line, DUMP_FENCE, strlen(DUMP_FENCE)) != 0)
			continue;
		check_dump(line + strlen(DUMP_FENCE), &at);
		n_dumps++;
	}
	CHECK_INT_EQ(2, n_dumps);
}

static void test_format__lock_file__is_zeros_but_for_the_hint(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	static const uint8_t zeros[4096];

	REQUIRE(make_example());
	REQUIRE(format_read(format_store(), "lock", &b));
	REQUIRE_INT_EQ(4096, b.size);
	CHECK_MEM_EQ(zeros, b.data, 64);
	CHECK_MEM_EQ(zeros, b.data + 112, 8);
	CHECK_MEM_EQ(zeros, b.data + 128, 4096 - 128);
}

/* ---- what a reader does not know ---- */

/* Set a bit of the format file's flags at @off, with a right hash. */
static void set_feature(size_t off, uint64_t flags)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (!format_read(format_store(), "format", &b) || b.size != 128)
		abort();
	put_u64(b.data + off, flags);
	put_u64(b.data + 120, hash64(b.data, 120));
	patch(format_store(), "format", 0, b.data, b.size);
}

static void test_format_flags__unknown_incompatible__refuses(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 64; bit++) {
		struct incr_store *st = NULL;

		set_feature(16, UINT64_C(1) << bit);
		CHECK_ERR(INCR_E_UNSUPPORTED, format_open(false, &st));
		CHECK_ERR(INCR_E_UNSUPPORTED, format_open(true, &st));
	}
}

static void test_format_flags__unknown_read_compatible__reads_only(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 64; bit++) {
		struct incr_store *st;

		set_feature(24, UINT64_C(1) << bit);
		REQUIRE_OK(format_open(false, &st));
		CHECK(incr_store_is_readonly(st));
		CHECK_ERR(INCR_E_READONLY,
			  incr_dataset_create(st, "new", NULL, NULL, NULL,
					      NULL));
		incr_store_close(st);
	}
}

static void test_format_flags__unknown_compatible__goes_on(void)
{
	struct incr_store *st;

	REQUIRE(make_example());
	set_feature(32, UINT64_MAX);
	REQUIRE_OK(format_open(false, &st));
	CHECK(!incr_store_is_readonly(st));
	CHECK_OK(incr_dataset_create(st, "new", NULL, NULL, NULL, NULL));
	incr_store_close(st);
}

static void test_format__any_byte_changed__is_noticed(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE(make_example());
	REQUIRE(format_read(format_store(), "format", &b));
	for (size_t bit = 0; bit < 8 * b.size; bit++) {
		struct incr_store *st = NULL;
		uint8_t byte = b.data[bit / 8] ^ (uint8_t)(1 << bit % 8);

		patch(format_store(), "format", bit / 8, &byte, 1);
		CHECK(format_open(false, &st) < 0);
		CHECK(!st);
		incr_store_close(st);
		patch(format_store(), "format", bit / 8, b.data + bit / 8, 1);
	}
}

static void test_format__bytes_behind_it__are_damage(void)
{
	struct incr_store *st = NULL;

	REQUIRE(make_example());
	patch(format_store(), "format", 128, "", 1);
	CHECK_ERR(INCR_E_CORRUPT, format_open(false, &st));
	patch(format_store(), "format", 1 << 20, "", 1);
	CHECK_ERR(INCR_E_CORRUPT, format_open(false, &st));
}

/* Give the last record of the example these flags or this type. */
static void set_record(uint16_t type, uint16_t flags)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	size_t at = 64, last = 64;

	if (!format_read(format_store(), FIRST_SEGMENT, &b))
		abort();
	for (; at < b.size; at += record_span(get_u32(b.data + at + 8)))
		last = at;
	put_u16(b.data + last + 4, type);
	put_u16(b.data + last + 6, flags);
	put_u64(b.data + last + 56, hash64(b.data + last, 56));
	patch(format_store(), FIRST_SEGMENT, last, b.data + last, 64);
}

static void test_record_flags__unknown__do_what_their_class_says(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 16; bit++) {
		struct incr_store *st = NULL;
		int want = bit < 8 ? INCR_E_UNSUPPORTED : 0;

		set_record(FACT_COMMIT, (uint16_t)(1 << bit));
		CHECK_ERR(want, format_open(false, &st));
		if (st && bit < 12)
			CHECK_ERR(INCR_E_UNSUPPORTED,
				  incr_dataset_create(st, "new", NULL, NULL,
						      NULL, NULL));
		incr_store_close(st);
	}
	/* the last bit was one to ignore */
	{
		struct incr_store *st;

		REQUIRE_OK(format_open(false, &st));
		CHECK_OK(
			incr_dataset_create(st, "new", NULL, NULL, NULL, NULL));
		incr_store_close(st);
	}
}

static void test_record__unknown_type__refuses(void)
{
	struct incr_store *st = NULL;

	REQUIRE(make_example());
	set_record(16, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, format_open(false, &st));
	set_record(0, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, format_open(false, &st));
	set_record(UINT16_MAX, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, format_open(false, &st));
}

/* ---- facts that a hash does not make right ---- */

static void put_number(struct buf *b, uint64_t v)
{
	REQUIRE_OK(buf_put_varint(b, v));
}

static void put_name(struct buf *b, const char *name)
{
	REQUIRE_OK(buf_put_text(b, text_of(name)));
}

/* Append a fact to the example as its writer would; does it open afterwards? */
static int open_with_fact(enum fact_type type, const struct buf *payload)
{
	struct incr_store *st = NULL;
	struct lock lock;
	int r = make_example() ? format_open(false, &st) : INCR_E_IO;

	if (r == 0)
		r = store_begin_append(st, &lock, NULL);
	if (r == 0) {
		/* refused here already, by the reader in the writer */
		(void)store_append(st, type, payload, NULL, NULL);
		lock_release(&lock);
	}
	incr_store_close(st);
	if (r < 0)
		return INCR_E_IO;
	st = NULL;
	r = format_open(true, &st);
	incr_store_close(st);
	return r;
}

static void test_fact__renamed__opens(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	put_number(&b, 1);
	put_name(&b, "shelf");
	CHECK_OK(open_with_fact(FACT_DATASET_RENAMED, &b));
}

static void test_fact__bytes_after_its_end__are_refused(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	put_number(&b, 1);
	put_name(&b, "shelf");
	put_number(&b, 0);
	CHECK_ERR(INCR_E_CORRUPT, open_with_fact(FACT_DATASET_RENAMED, &b));
}

static void test_fact__bad_new_name__is_refused(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	put_number(&b, 1);
	put_name(&b, "../shelf");
	CHECK_ERR(INCR_E_CORRUPT, open_with_fact(FACT_DATASET_RENAMED, &b));
}

static void test_fact__unknown_dataset__is_refused(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	put_number(&b, 2);
	CHECK_ERR(INCR_E_CORRUPT, open_with_fact(FACT_DATASET_DELETED, &b));
}

static void test_fact__commit_with_a_strange_build_byte__is_refused(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE_OK(buf_put_u32(&b, 3));
	put_number(&b, 0);
	put_number(&b, 0);
	put_number(&b, 2);
	CHECK_ERR(INCR_E_CORRUPT, open_with_fact(FACT_COMMIT, &b));
}

static void test_fact__commit_of_nothing__opens(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE_OK(buf_put_u32(&b, 3));
	put_number(&b, 0);
	put_number(&b, 0);
	put_number(&b, 0);
	CHECK_OK(open_with_fact(FACT_COMMIT, &b));
}

static const struct testing_test document_tests[] = {
	TEST(test_format__document__has_the_bytes_of_a_real_store),
	TEST(test_format__lock_file__is_zeros_but_for_the_hint),
	TEST_END,
};

static const struct testing_test unknown_tests[] = {
	TEST(test_format_flags__unknown_incompatible__refuses),
	TEST(test_format_flags__unknown_read_compatible__reads_only),
	TEST(test_format_flags__unknown_compatible__goes_on),
	TEST(test_format__any_byte_changed__is_noticed),
	TEST(test_format__bytes_behind_it__are_damage),
	TEST(test_record_flags__unknown__do_what_their_class_says),
	TEST(test_record__unknown_type__refuses),
	TEST_END,
};

static const struct testing_test fact_tests[] = {
	TEST(test_fact__renamed__opens),
	TEST(test_fact__bytes_after_its_end__are_refused),
	TEST(test_fact__bad_new_name__is_refused),
	TEST(test_fact__unknown_dataset__is_refused),
	TEST(test_fact__commit_with_a_strange_build_byte__is_refused),
	TEST(test_fact__commit_of_nothing__opens),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "document", document_tests },
	{ "unknown", unknown_tests },
	{ "facts", fact_tests },
	SUITE_END,
};

/* make-example|make-full STORE SCRATCH and list STORE, for scripts. */
static int serve(int argc, char **argv)
{
	struct incr_store_options options = { .is_readonly = true };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	int r = INCR_E_INVALID;

	if (argc == 4 && !strcmp(argv[1], "make-example"))
		r = format_make_example(argv[2], argv[3], &err);
	if (argc == 4 && !strcmp(argv[1], "make-full"))
		r = format_make_full(argv[2], argv[3], &err);
	if (argc == 3 && !strcmp(argv[1], "list")) {
		r = incr_store_open(argv[2], &options, &st, &err);
		if (r == 0)
			r = format_list(st, stdout, &err);
		incr_store_close(st);
	}
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", err.thing, err.message);
	incr_error_release(&err);
	return r < 0;
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return serve(argc, argv);
	return testing_main(argc, argv, suites);
}
