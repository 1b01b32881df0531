/*
 * The disk format: docs/format.md against the bytes that are written, the
 * rules for what a reader does not know, and a committed store of version 1.
 */
#include "config.h"

#include "error.h"
#include "format_kit.h"
#include "hash.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_SEGMENT "log/0000000000000000.log"
#define PATH_SIZE 1024

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

static const char *srcdir(void)
{
	const char *dir = getenv("INCR_SRCDIR");

	return dir ? dir : ".";
}

static void join(char out[PATH_SIZE], const char *dir, const char *name)
{
	if (snprintf(out, PATH_SIZE, "%s/%s", dir, name) >= PATH_SIZE)
		abort();
}

static bool read_file(const char *dir, const char *name, struct buf *out)
{
	char path[PATH_SIZE];

	join(path, dir, name);
	return io_read_file(&io_posix, AT_FDCWD, path, SIZE_MAX, out, NULL) ==
	       0;
}

/* Overwrite bytes of an existing file. */
static void patch(const char *dir, const char *name, size_t off,
		  const void *bytes, size_t size)
{
	char path[PATH_SIZE];
	int fd;

	join(path, dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, bytes, size, (off_t)off) != (ssize_t)size ||
	    close(fd) < 0)
		abort();
}

/* Below the temporary directory; the same text until the next call. */
static const char *in_tmpdir(const char *name)
{
	static char path[PATH_SIZE];

	join(path, testing_tmpdir(), name);
	return path;
}

static bool make_example(void)
{
	char path[PATH_SIZE];

	join(path, testing_tmpdir(), "store");
	return format_make_example(path, testing_tmpdir(), NULL) == 0;
}

static int open_store(bool is_readonly, struct incr_store **out_st)
{
	struct incr_store_options options = { .is_readonly = is_readonly };

	return incr_store_open(in_tmpdir("store"), &options, out_st, NULL);
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
	REQUIRE(read_file(in_tmpdir("store"), name, &got));
	REQUIRE_INT_EQ(got.size, want.size);
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

	REQUIRE(read_file(srcdir(), "docs/format.md", &doc));
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
	REQUIRE(read_file(in_tmpdir("store"), "lock", &b));
	REQUIRE_INT_EQ(4096, b.size);
	CHECK_MEM_EQ(zeros, b.data, 64);
	CHECK_MEM_EQ(zeros, b.data + 96, 4096 - 96);
}

/* ---- what a reader does not know ---- */

/* Set a bit of the format file's flags at @off, with a right hash. */
static void set_feature(size_t off, uint64_t flags)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (!read_file(in_tmpdir("store"), "format", &b) || b.size != 128)
		abort();
	put_u64(b.data + off, flags);
	put_u64(b.data + 120, hash64(b.data, 120));
	patch(in_tmpdir("store"), "format", 0, b.data, b.size);
}

static void test_format_flags__unknown_incompatible__refuses(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 64; bit++) {
		struct incr_store *st = NULL;

		set_feature(16, UINT64_C(1) << bit);
		CHECK_ERR(INCR_E_UNSUPPORTED, open_store(false, &st));
		CHECK_ERR(INCR_E_UNSUPPORTED, open_store(true, &st));
	}
}

static void test_format_flags__unknown_read_compatible__reads_only(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 64; bit++) {
		struct incr_store *st;

		set_feature(24, UINT64_C(1) << bit);
		REQUIRE_OK(open_store(false, &st));
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
	REQUIRE_OK(open_store(false, &st));
	CHECK(!incr_store_is_readonly(st));
	CHECK_OK(incr_dataset_create(st, "new", NULL, NULL, NULL, NULL));
	incr_store_close(st);
}

static void test_format__any_byte_changed__is_noticed(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	REQUIRE(make_example());
	REQUIRE(read_file(in_tmpdir("store"), "format", &b));
	for (size_t bit = 0; bit < 8 * b.size; bit++) {
		struct incr_store *st = NULL;
		uint8_t byte = b.data[bit / 8] ^ (uint8_t)(1 << bit % 8);

		patch(in_tmpdir("store"), "format", bit / 8, &byte, 1);
		CHECK(open_store(false, &st) < 0);
		CHECK(!st);
		incr_store_close(st);
		patch(in_tmpdir("store"), "format", bit / 8, b.data + bit / 8,
		      1);
	}
}

static void test_format__bytes_behind_it__are_damage(void)
{
	struct incr_store *st = NULL;

	REQUIRE(make_example());
	patch(in_tmpdir("store"), "format", 128, "", 1);
	CHECK_ERR(INCR_E_CORRUPT, open_store(false, &st));
	patch(in_tmpdir("store"), "format", 1 << 20, "", 1);
	CHECK_ERR(INCR_E_CORRUPT, open_store(false, &st));
}

/* Give the last record of the example these flags or this type. */
static void set_record(uint16_t type, uint16_t flags)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	size_t at = 64, last = 64;

	if (!read_file(in_tmpdir("store"), FIRST_SEGMENT, &b))
		abort();
	for (; at < b.size; at += record_span(get_u32(b.data + at + 8)))
		last = at;
	put_u16(b.data + last + 4, type);
	put_u16(b.data + last + 6, flags);
	put_u64(b.data + last + 56, hash64(b.data + last, 56));
	patch(in_tmpdir("store"), FIRST_SEGMENT, last, b.data + last, 64);
}

static void test_record_flags__unknown__do_what_their_class_says(void)
{
	REQUIRE(make_example());
	for (unsigned bit = 0; bit < 16; bit++) {
		struct incr_store *st = NULL;
		int want = bit < 8 ? INCR_E_UNSUPPORTED : 0;

		set_record(FACT_COMMIT, (uint16_t)(1 << bit));
		CHECK_ERR(want, open_store(false, &st));
		if (st && bit < 12)
			CHECK_ERR(INCR_E_UNSUPPORTED,
				  incr_dataset_create(st, "new", NULL, NULL,
						      NULL, NULL));
		incr_store_close(st);
	}
	/* the last bit was one to ignore */
	{
		struct incr_store *st;

		REQUIRE_OK(open_store(false, &st));
		CHECK_OK(
			incr_dataset_create(st, "new", NULL, NULL, NULL, NULL));
		incr_store_close(st);
	}
}

static void test_record__unknown_type__refuses(void)
{
	struct incr_store *st = NULL;

	REQUIRE(make_example());
	set_record(15, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, open_store(false, &st));
	set_record(0, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, open_store(false, &st));
	set_record(UINT16_MAX, 0);
	CHECK_ERR(INCR_E_UNSUPPORTED, open_store(false, &st));
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
	int r = make_example() ? open_store(false, &st) : INCR_E_IO;

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
	r = open_store(true, &st);
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

/* ---- the committed store ---- */

extern char **environ;

static int run(const char *program, const char *const *argv)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, program, NULL, NULL, (char *const *)argv,
			 environ) != 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* A copy of tests/stores/good-1, which git keeps without its empty directories. */
static bool copy_golden(void)
{
	static const char *const dirs[] = { "log", "packs", "index", "spool",
					    "lost" };
	char from[PATH_SIZE], to[PATH_SIZE], dir[PATH_SIZE];
	const char *cp[] = { "cp", "-R", from, to, NULL };
	const char *chmod_all[] = { "chmod", "-R", "u+rwX", to, NULL };

	join(from, srcdir(), "tests/stores/good-1");
	join(to, testing_tmpdir(), "store");
	if (run("cp", cp) != 0 || run("chmod", chmod_all) != 0)
		return false;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		join(dir, to, dirs[i]);
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return false;
	}
	return true;
}

static void check_golden_list(bool is_readonly)
{
	_cleanup_buf_ struct buf want = BUF_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	REQUIRE(out);
	REQUIRE(read_file(srcdir(), "tests/stores/good-1.list", &want));
	REQUIRE_OK(buf_put_u8(&want, 0));
	CHECK_OK(open_store(is_readonly, &st));
	if (st)
		CHECK_OK(format_list(st, out, &err));
	CHECK_STR_EQ("", err.message);
	incr_store_close(st);
	(void)fclose(out);
	CHECK_STR_EQ((const char *)want.data, text);
	free(text);
	incr_error_release(&err);
}

static void test_golden__opens_and_lists_what_it_must(void)
{
	REQUIRE(copy_golden());
	check_golden_list(true);
	check_golden_list(false);
}

static void test_golden__without_its_index__is_the_same(void)
{
	char path[PATH_SIZE];
	const char *rm[] = { "rm", "-r", path, NULL };

	REQUIRE(copy_golden());
	join(path, in_tmpdir("store"), "index");
	REQUIRE_INT_EQ(0, run("rm", rm));
	REQUIRE(mkdir(path, 0755) == 0);
	check_golden_list(false);
}

static void test_golden__takes_another_commit(void)
{
	struct incr_store *st;
	uint64_t id;

	REQUIRE(copy_golden());
	REQUIRE_OK(open_store(false, &st));
	CHECK_OK(incr_dataset_create(st, "another", NULL, NULL, &id, NULL));
	CHECK_INT_EQ(5, id);
	incr_store_close(st);
}

/* Entry by entry to values and back. */
static void check_manifest(const uint8_t *bytes, size_t size)
{
	_cleanup_buf_ struct buf again = BUF_INIT;
	struct cursor c = cursor_over(bytes, size);

	while (cursor_left(&c)) {
		struct manifest_entry e;

		REQUIRE_OK(manifest_decode(&c, &e));
		CHECK_OK(manifest_encode(&e, &again));
		manifest_entry_release(&e);
	}
	REQUIRE_INT_EQ(size, again.size);
	CHECK_MEM_EQ(bytes, again.data, size);
}

static void check_pack_manifest(struct incr_store *st, const struct fact_txn *t)
{
	_cleanup_buf_ struct buf again = BUF_INIT, bytes = BUF_INIT;
	struct cursor c = cursor_over(t->manifest.data, t->manifest.size);
	struct content content;
	size_t size;

	REQUIRE_OK(content_decode(&c, &content));
	CHECK_INT_EQ(0, cursor_left(&c));
	CHECK_OK(content_encode(&content, &again));
	CHECK_INT_EQ(t->manifest.size, again.size);
	CHECK_MEM_EQ(t->manifest.data, again.data, again.size);
	CHECK_OK(buf_reserve(&bytes, content.size));
	CHECK_OK(content_read(st->reader, &content, 0, bytes.data, content.size,
			      &size, NULL));
	CHECK_INT_EQ(content.size, size);
	content_release(&content);
	check_manifest(bytes.data, size);
}

static void encode_commit(struct incr_store *st, const uint8_t *payload,
			  size_t size, struct buf *out)
{
	struct commit_record commit;

	REQUIRE_OK(commit_record_decode(payload, size, &commit));
	CHECK_OK(commit_record_encode(&commit, out));
	for (size_t i = 0; i < commit.n_txns; i++) {
		const struct fact_txn *t = &commit.txns[i];

		if (t->manifest_kind == FACT_MANIFEST_INLINE)
			check_manifest((const uint8_t *)t->manifest.data,
				       t->manifest.size);
		else
			check_pack_manifest(st, t);
	}
	/* frames are no text of ours: they stay as they are */
	CHECK_OK(buf_put(out, payload + commit.frames_off, commit.frames_size));
	commit_record_release(&commit);
}

#define REENCODE(name)                                  \
	do {                                            \
		struct fact_##name f;                   \
		REQUIRE_OK(fact_decode_##name(&c, &f)); \
		CHECK_INT_EQ(0, cursor_left(&c));       \
		CHECK_OK(fact_encode_##name(&f, out));  \
	} while (0)

static void encode_again(struct incr_store *st, const struct log_record *record,
			 struct buf *out)
{
	size_t size = record->header.payload_size;
	struct cursor c = cursor_over(record->payload, size);

	switch (record->header.type) {
	case FACT_DATASET_CREATED:
		REENCODE(dataset);
		break;
	case FACT_BRANCH_CREATED:
		REENCODE(branch);
		break;
	case FACT_BRANCH_RESET:
		REENCODE(reset);
		break;
	case FACT_TXN_OPENED:
		REENCODE(txn);
		break;
	case FACT_SCHEMA:
		REENCODE(schema);
		break;
	case FACT_BUILD_OPENED:
	case FACT_BUILD_ENDED:
		REENCODE(build);
		break;
	case FACT_COMMIT:
		encode_commit(st, record->payload, size, out);
		break;
	case FACT_TXN_ABORTED:
		put_number(out, cursor_varint(&c));
		REQUIRE_OK(buf_put_zigzag(out, cursor_zigzag(&c)));
		break;
	default: /* an id, and perhaps a text */
		put_number(out, cursor_varint(&c));
		if (cursor_left(&c))
			REQUIRE_OK(buf_put_text(out, cursor_text(&c)));
	}
}

static void test_golden__every_record__encodes_to_the_same_bytes(void)
{
	struct incr_store *st;
	struct log_record record;
	uint64_t at, next;
	unsigned types = 0;

	REQUIRE(copy_golden());
	REQUIRE_OK(open_store(true, &st));
	for (at = log_begin(st->log);
	     log_read(st->log, at, &record, &next, NULL) == 0; at = next) {
		_cleanup_buf_ struct buf again = BUF_INIT;
		_cleanup_buf_ struct buf payload = BUF_INIT;
		uint8_t header[RECORD_HEADER_SIZE], raw[RECORD_HEADER_SIZE];

		types |= 1u << record.header.type;
		record_encode_header(&record.header, header);
		/* the reader's buffer is used again by what follows */
		CHECK_OK(buf_put(&payload, record.payload,
				 record.header.payload_size));
		record.payload = payload.data;
		encode_again(st, &record, &again);
		CHECK_INT_EQ(payload.size, again.size);
		if (payload.size == again.size)
			CHECK_MEM_EQ(payload.data, again.data, again.size);
		CHECK_OK(log_read_bytes(st->log, at, raw, sizeof(raw), NULL));
		CHECK_MEM_EQ(raw, header, sizeof(raw));
	}
	/* all types but the first, which nothing writes */
	CHECK_INT_EQ(0x7ffc, types);
	incr_store_close(st);
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

static const struct testing_test golden_tests[] = {
	TEST(test_golden__opens_and_lists_what_it_must),
	TEST(test_golden__without_its_index__is_the_same),
	TEST(test_golden__takes_another_commit),
	TEST(test_golden__every_record__encodes_to_the_same_bytes),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "document", document_tests },
	{ "unknown", unknown_tests },
	{ "facts", fact_tests },
	{ "golden", golden_tests },
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
