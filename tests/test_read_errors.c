/*
 * Bytes that the disk does not give: verify names file and place, and goes on;
 * repair gives nothing up for that.
 */
#include "config.h"

#include "error.h"
#include "log_impl.h"
#include "store_kit.h"
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096
#define LARGE 400000

/* A page of the file whose path holds @file cannot be read. */
static struct bad_page {
	char file[64];
	uint64_t from, to;
} bad;

static bool is_bad_file(int fd)
{
	char link[64], path[1024];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return bad.file[0] && strstr(path, bad.file);
}

/* As the kernel does it: what stands before the page is given first. */
static int64_t pread_around(const struct incr_io *io, int fd, void *data,
			    size_t size, uint64_t off)
{
	(void)io;
	if (off < bad.to && off + size > bad.from && is_bad_file(fd)) {
		if (off >= bad.from)
			return -EIO;
		size = (size_t)(bad.from - off);
	}
	return io_posix.pread(&io_posix, fd, data, size, off);
}

static const struct incr_io *bad_io(void)
{
	static struct incr_io io;

	io = io_posix;
	io.pread = pread_around;
	return &io;
}

static void damage(const char *file, uint64_t from)
{
	(void)snprintf(bad.file, sizeof(bad.file), "%s", file);
	bad.from = from;
	bad.to = from + PAGE;
}

static void heal(void)
{
	bad.file[0] = '\0';
}

struct seen {
	size_t n_read_errors, n_files, n_txns, n_others;
	char file[64]; /* of the last read error */
	uint64_t off;
	char path[64];
};

static int note(void *closure, const struct incr_finding *f)
{
	struct seen *s = closure;

	if (f->is_left_over)
		return 0;
	if (!strcmp(f->word, "read-error")) {
		s->n_read_errors++;
		(void)snprintf(s->file, sizeof(s->file), "%s", f->file);
		s->off = f->off;
		if (f->path) {
			s->n_files++;
			(void)snprintf(s->path, sizeof(s->path), "%.*s",
				       (int)f->path_length, f->path);
		}
	} else if (!strcmp(f->word, "lost-transaction")) {
		s->n_txns++;
	} else {
		s->n_others++;
	}
	return 0;
}

static struct seen verify(const struct store_kit *k, bool reads_data,
			  struct incr_verify_result *out_result)
{
	struct incr_store_options options = { .allows_damage = true };
	struct incr_verify_options how = { .reads_data = reads_data };
	struct incr_store *st = NULL;
	struct seen seen = { 0 };

	CHECK_OK(store_open_with(bad_io(), k->path, &options, &st, NULL));
	if (!st)
		return seen;
	st->verify_alone_size = 0;
	CHECK_OK(incr_verify(st, &how, note, &seen, out_result, NULL));
	incr_store_close(st);
	return seen;
}

static void commit_large(struct store_kit *k, const char *name)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = INCR_APPEND };
	struct incr_source source;
	uint64_t seed = 1;
	uint8_t *bytes = malloc(LARGE);

	if (!bytes)
		abort();
	for (size_t i = 0; i < LARGE; i++)
		bytes[i] = (uint8_t)store_kit_random(&seed, 256);
	source = store_kit_source(store_kit_stream(bytes, LARGE), name);
	CHECK_OK(incr_commit(k->st, &options, &source, 1, NULL,
			     store_kit_err(k)));
	(void)close(source.fd);
	free(bytes);
}

/* One large file and many small ones, with a record each; closed. */
static bool make(struct store_kit *k)
{
	if (!store_kit_init_with(k, store_kit_quick_io()))
		return false;
	commit_large(k, "large");
	store_kit_commit_n(k, 0, 60);
	incr_store_close(k->st);
	k->st = NULL;
	return true;
}

static void test_verify__page_of_a_pack__is_a_finding(void)
{
	struct incr_verify_result result = { 0 };
	struct store_kit k;
	struct seen seen;

	REQUIRE(make(&k));
	damage("/packs/", 40 * PAGE);
	seen = verify(&k, true, &result);
	CHECK_INT_EQ(1, seen.n_read_errors);
	CHECK_INT_EQ(0, seen.n_others);
	CHECK_STR_EQ("large", seen.path);
	CHECK(!strncmp("packs/", seen.file, 6));
	CHECK_INT_EQ(40 * PAGE, seen.off);
	CHECK_INT_EQ(61, result.n_txns);
	CHECK_INT_EQ(61, result.n_files);
	CHECK(result.is_complete);
	/* only what is read can fail */
	(void)verify(&k, false, &result);
	CHECK_INT_EQ(0, result.n_findings);
	heal();
	(void)verify(&k, true, &result);
	CHECK_INT_EQ(0, result.n_findings);
	store_kit_release(&k);
}

static void test_verify__header_of_a_pack__is_a_finding(void)
{
	struct incr_verify_result result = { 0 };
	struct store_kit k;
	struct seen seen;

	REQUIRE(make(&k));
	damage("/packs/", 0);
	seen = verify(&k, false, &result);
	/* the list of files of that transaction stands in it */
	CHECK_INT_EQ(1, seen.n_read_errors);
	CHECK_INT_EQ(0, seen.n_others);
	CHECK_INT_EQ(0, seen.off);
	CHECK_INT_EQ(61, result.n_txns);
	CHECK_INT_EQ(60, result.n_files);
	heal();
	store_kit_release(&k);
}

/* Records before and behind the page are read, those in it named. */
static void test_verify__page_of_the_log__is_a_finding(void)
{
	struct incr_verify_result whole = { 0 }, result = { 0 };
	struct store_kit k;
	struct seen seen;

	REQUIRE(make(&k));
	(void)verify(&k, true, &whole);
	for (uint64_t page = 0; page < 3; page++) {
		damage("/log/", page * PAGE);
		seen = verify(&k, true, &result);
		CHECK(seen.n_read_errors >= 1);
		CHECK_STR_EQ("log/0000000000000000.log", seen.file);
		CHECK(seen.off >= bad.from && seen.off < bad.to);
		CHECK(seen.n_txns > 5 && seen.n_txns < 40);
		CHECK_INT_EQ(whole.n_txns, result.n_txns + seen.n_txns);
		/* a header that cannot be read is told as one that is damaged */
		CHECK_INT_EQ(page == 0, seen.n_others);
	}
	heal();
	(void)verify(&k, true, &result);
	CHECK_INT_EQ(0, result.n_findings);
	store_kit_release(&k);
}

/* Behind the end of the file too: a device that is gone. */
static void test_verify__nothing_of_the_log__ends(void)
{
	struct incr_verify_result result = { 0 };
	struct store_kit k;
	struct seen seen;

	REQUIRE(make(&k));
	damage("/log/", LOG_SEGMENT_HEADER_SIZE);
	bad.to = UINT64_MAX;
	seen = verify(&k, true, &result);
	CHECK(seen.n_read_errors >= 1);
	CHECK_INT_EQ(0, result.n_txns);
	heal();
	store_kit_release(&k);
}

static void test_open__page_of_the_log__fails_and_forgets_nothing(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	char current[600];
	struct store_kit k;

	REQUIRE(make(&k));
	REQUIRE_OK(store_kit_reopen(&k));
	/* so that the checkpoint stands behind the page */
	REQUIRE_OK(index_flush(k.st->index, NULL));
	incr_store_close(k.st);
	k.st = NULL;
	(void)snprintf(current, sizeof(current), "%s/index/current", k.path);
	CHECK_INT_EQ(0, access(current, F_OK));
	for (uint64_t page = 1; page < 5; page++) {
		damage("/log/", page * PAGE);
		if (store_open_with(bad_io(), k.path, NULL, &st, &err) < 0) {
			CHECK_INT_EQ(INCR_E_IO, err.code);
			CHECK_INT_EQ(EIO, err.sys_errno);
		}
		incr_error_release(&err);
		incr_store_close(st);
		st = NULL;
		CHECK_INT_EQ(0, access(current, F_OK));
	}
	heal();
	store_kit_release(&k);
}

static void test_repair__unreadable__gives_nothing_up(void)
{
	struct incr_repair_options options = { 0 };
	struct incr_repair_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct seen seen = { 0 };
	struct store_kit k;
	uint64_t size;
	size_t n;

	REQUIRE(make(&k));
	size = store_kit_size(&k, "log", &n);
	damage("/packs/", 40 * PAGE);
	CHECK_OK(store_repair_with(bad_io(), k.path, &options, NULL, note,
				   &seen, &result, NULL));
	CHECK_INT_EQ(1, result.n_left);
	CHECK_INT_EQ(0, result.n_given_up);
	CHECK_INT_EQ(1, seen.n_read_errors);
	damage("/log/", PAGE);
	CHECK_ERR(INCR_E_IO, store_repair_with(bad_io(), k.path, &options, NULL,
					       NULL, NULL, &result, &err));
	CHECK_INT_EQ(EIO, err.sys_errno);
	heal();
	CHECK_INT_EQ(size, store_kit_size(&k, "log", &n));
	incr_error_release(&err);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_verify__page_of_a_pack__is_a_finding),
	TEST(test_verify__header_of_a_pack__is_a_finding),
	TEST(test_verify__page_of_the_log__is_a_finding),
	TEST(test_verify__nothing_of_the_log__ends),
	TEST(test_open__page_of_the_log__fails_and_forgets_nothing),
	TEST(test_repair__unreadable__gives_nothing_up),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "read errors", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
