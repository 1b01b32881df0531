/*
 * Stores of every released format, kept in files: they open, list what they
 * must, and encode to the same bytes.  tests/stores/README.
 */
#include "config.h"

#include "format_kit.h"
#include "testing.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
	char from[FORMAT_PATH_SIZE], to[FORMAT_PATH_SIZE],
		dir[FORMAT_PATH_SIZE];
	const char *cp[] = { "cp", "-R", from, to, NULL };
	const char *chmod_all[] = { "chmod", "-R", "u+rwX", to, NULL };

	format_join(from, format_srcdir(), "tests/stores/good-1");
	format_join(to, testing_tmpdir(), "store");
	if (run("cp", cp) != 0 || run("chmod", chmod_all) != 0)
		return false;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		format_join(dir, to, dirs[i]);
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
	REQUIRE(format_read(format_srcdir(), "tests/stores/good-1.list",
			    &want));
	REQUIRE_OK(buf_put_u8(&want, 0));
	CHECK_OK(format_open(is_readonly, &st));
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
	char path[FORMAT_PATH_SIZE];
	const char *rm[] = { "rm", "-r", path, NULL };

	REQUIRE(copy_golden());
	format_join(path, format_store(), "index");
	REQUIRE_INT_EQ(0, run("rm", rm));
	REQUIRE(mkdir(path, 0755) == 0);
	check_golden_list(false);
}

static void test_golden__takes_another_commit(void)
{
	struct incr_store *st;
	uint64_t id;

	REQUIRE(copy_golden());
	REQUIRE_OK(format_open(false, &st));
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
		REQUIRE_OK(buf_put_varint(out, cursor_varint(&c)));
		REQUIRE_OK(buf_put_zigzag(out, cursor_zigzag(&c)));
		break;
	default: /* an id, and perhaps a text */
		REQUIRE_OK(buf_put_varint(out, cursor_varint(&c)));
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
	REQUIRE_OK(format_open(true, &st));
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

static const struct testing_test golden_tests[] = {
	TEST(test_golden__opens_and_lists_what_it_must),
	TEST(test_golden__without_its_index__is_the_same),
	TEST(test_golden__takes_another_commit),
	TEST(test_golden__every_record__encodes_to_the_same_bytes),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "golden", golden_tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
