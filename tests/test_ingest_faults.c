/* Ingest when things go wrong: sources that change, leases, failing calls. */
#include "config.h"

#include "ingest.h"

#include "content_kit.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* ---- sources that change while they are read ---- */

struct change {
	const char *path;
	bool is_done;
	void (*make)(const char *path);
};

static void append_byte(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	CHECK_INT_EQ(1, write(fd, "x", 1));
	(void)close(fd);
}

static void cut(const char *path)
{
	CHECK_INT_EQ(0, truncate(path, 1));
}

static void rewrite(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 5 } };

	CHECK_INT_EQ(1, pwrite(fd, "X", 1, 0));
	CHECK_INT_EQ(0, futimens(fd, times));
	(void)close(fd);
}

static void at_pread(void *closure, int fd)
{
	struct change *c = closure;

	(void)fd;
	if (!c->is_done)
		c->make(c->path);
	c->is_done = true;
}

static void check_changed(size_t size, void (*make)(const char *path))
{
	_cleanup_free_ uint8_t *data = malloc(size);
	_cleanup_free_ char *path = kit_path("tree/file");
	struct change change = { path, false, make };
	struct incr_error err = INCR_ERROR_INIT;
	struct ingest_result r;
	struct fault_io f;
	struct kit k;

	kit_fill_text(data, size, 1);
	kit_write("tree/file", data, size);
	fault_io_init(&f);
	f.at_pread = at_pread;
	f.closure = &change;
	kit_open(&k, &f.io);
	CHECK_ERR(INCR_E_CONFLICT, kit_ingest(&k, "tree", &r, &err));
	CHECK_STR_EQ("source-changed", err.word);
	CHECK_STR_EQ(path, err.thing);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	incr_error_release(&err);
	kit_close(&k);
}

static void test_ingest_run__source_changes__names_it(void)
{
	static const size_t sizes[] = { 100, 65536, 3 * MIB, 40 * MIB };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_changed(sizes[i], append_byte);
		check_changed(sizes[i], cut);
		check_changed(sizes[i], rewrite);
	}
}

/* ---- leases ---- */

static void test_ingest_run__leases__taken_and_removed(void)
{
	struct ingest_result r;
	struct fault_io f;
	struct kit k;

	kit_write("tree/a", "a", 1);
	kit_write("tree/b", "b", 1);
	fault_io_init(&f);
	kit_open(&k, &f.io);
	k.options.leases = true;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK_INT_EQ(2, f.n_leases_on);
	CHECK_INT_EQ(2, f.n_leases_off);
	ingest_result_release(&r);

	f.lease_result = -EINVAL; /* no leases here: two stats must do */
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK_INT_EQ(2, f.n_leases_off);
	ingest_result_release(&r);
	kit_close(&k);
}

static void test_ingest_run__file_open_for_writing__is_staging_busy(void)
{
	_cleanup_free_ char *path = kit_path("tree/a");
	struct incr_error err = INCR_ERROR_INIT;
	struct ingest_result r;
	struct kit k;
	int fd;

	kit_write("tree/a", "a", 1);
	kit_open(&k, NULL);
	k.options.leases = true;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK_ERR(INCR_E_CONFLICT, kit_ingest(&k, "tree", &r, &err));
	CHECK_STR_EQ("staging-busy", err.word);
	CHECK_STR_EQ(path, err.thing);
	(void)close(fd);
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	ingest_result_release(&r);
	incr_error_release(&err);
	kit_close(&k);
}

/* ---- other bad sources ---- */

static void test_ingest_run__unreadable_file__is_named(void)
{
	_cleanup_free_ char *path = kit_path("tree/b");
	struct incr_error err = INCR_ERROR_INIT;
	struct ingest_result r;
	struct kit k;

	if (geteuid() == 0)
		SKIP("root can read every file");
	kit_write("tree/a", "a", 1);
	kit_write("tree/b", "b", 1);
	REQUIRE(chmod(path, 0) == 0);
	kit_open(&k, NULL);
	CHECK_ERR(INCR_E_IO, kit_ingest(&k, "tree", &r, &err));
	CHECK_INT_EQ(EACCES, err.sys_errno);
	CHECK_STR_EQ(path, err.thing);
	incr_error_release(&err);
	kit_close(&k);
}

static void test_ingest_run__special_file_late__leaves_no_pack(void)
{
	_cleanup_free_ char *path = kit_path("tree/z");
	_cleanup_free_ uint8_t *data = malloc(8 * MIB);
	struct incr_error err = INCR_ERROR_INIT;
	struct ingest_result r;
	struct kit k;

	kit_fill_text(data, 8 * MIB, 1);
	kit_write("tree/a", data, 8 * MIB);
	REQUIRE(symlink("a", path) == 0);
	kit_open(&k, NULL);
	CHECK_ERR(INCR_E_INVALID, kit_ingest(&k, "tree", &r, &err));
	CHECK_STR_EQ("special-file", err.word);
	CHECK_STR_EQ(path, err.thing);
	CHECK_INT_EQ(0, kit_count_packs(&k));
	k.options.skips_special = true;
	REQUIRE_OK(kit_ingest(&k, "tree", &r, NULL));
	CHECK_INT_EQ(1, r.n_put);
	ingest_result_release(&r);
	incr_error_release(&err);
	kit_close(&k);
}

static int fail_find(void *closure, const char *path, size_t length,
		     struct manifest_entry *out_entry, struct incr_error *err)
{
	(void)closure;
	(void)out_entry;
	(void)err;
	return length == 2 && path[0] == '7' ? INCR_E_DEAD : 1;
}

static void write_many(size_t n)
{
	uint8_t data[40000];
	char path[64];

	for (size_t i = 0; i < n; i++) {
		kit_fill_text(data, sizeof(data), i);
		(void)snprintf(path, sizeof(path), "tree/%02zu", i);
		kit_write(path, data, sizeof(data));
	}
}

static void test_ingest_run__worker_fails__all_ends(void)
{
	struct ingest_result r;
	struct kit k;

	write_many(99);
	kit_open(&k, NULL);
	k.options.find_stored = fail_find;
	k.options.n_threads = 4;
	CHECK_ERR(INCR_E_DEAD, kit_ingest(&k, "tree", &r, NULL));
	CHECK_INT_EQ(0, kit_count_packs(&k));
	kit_close(&k);
}

/* ---- every call fails once ---- */

static int count_name(void *closure, const char *name, enum io_kind kind)
{
	(void)name;
	(void)kind;
	(*(size_t *)closure)++;
	return 0;
}

/* Descriptors or threads of this process. */
static size_t count_of(const char *proc)
{
	int fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;

	CHECK_OK(io_posix.readdir(&io_posix, fd, count_name, &n));
	(void)close(fd);
	return n;
}

static void sweep(int fail_with)
{
	struct fault_io f;
	size_t n_descriptors, n_threads;
	struct kit k;
	long n_failed = 0;

	fault_io_init(&f);
	f.fail_with = fail_with;
	kit_open(&k, &f.io);
	k.options.n_threads = 2;
	n_descriptors = count_of("/proc/self/fd");
	n_threads = count_of("/proc/self/task");
	for (long at = 1;; at++) {
		struct incr_error err = INCR_ERROR_INIT;
		struct ingest_result r;
		int result;

		f.n_calls = 0;
		f.fail_at = at;
		result = kit_ingest(&k, "tree", &r, &err);
		incr_error_release(&err);
		if (result < 0) {
			n_failed++;
			CHECK_INT_EQ(0, kit_count_packs(&k));
		} else {
			CHECK_INT_EQ(r.is_inline ? 0 : 1, kit_count_packs(&k));
			f.fail_at = 0;
			ingest_result_discard(&k.options, &r);
		}
		if (f.n_calls < at)
			break;
	}
	CHECK(n_failed > 10);
	CHECK_INT_EQ(n_descriptors, count_of("/proc/self/fd"));
	CHECK_INT_EQ(n_threads, count_of("/proc/self/task"));
	kit_close(&k);
}

static void test_ingest_run__any_call_fails__leaves_no_pack(void)
{
	_cleanup_free_ uint8_t *data = malloc(3 * MIB);

	kit_fill_text(data, 3 * MIB, 1);
	write_many(60);
	kit_write("tree/sub/big", data, 3 * MIB);
	sweep(-EIO);
	sweep(-ENOSPC);
}

static void test_ingest_run__call_is_interrupted__goes_on(void)
{
	_cleanup_free_ uint8_t *data = malloc(3 * MIB);
	struct ingest_result r;
	struct fault_io f;
	struct kit k;

	kit_fill_text(data, 3 * MIB, 1);
	kit_write("tree/big", data, 3 * MIB);
	fault_io_init(&f);
	f.fail_with = -EINTR;
	f.io.stat_at = io_posix.stat_at; /* these are never interrupted */
	f.io.readdir = io_posix.readdir;
	f.io.random = io_posix.random;
	f.io.fdatasync = io_posix.fdatasync;
	f.io.fsync_dir = io_posix.fsync_dir;
	f.io.close = io_posix.close;
	kit_open(&k, &f.io);
	for (long at = 1;; at++) {
		f.n_calls = 0;
		f.fail_at = at;
		CHECK_OK(kit_ingest(&k, "tree", &r, NULL));
		ingest_result_release(&r);
		if (f.n_calls < at)
			break;
	}
	kit_close(&k);
}

static const struct testing_test tests[] = {
	TEST(test_ingest_run__source_changes__names_it),
	TEST(test_ingest_run__leases__taken_and_removed),
	TEST(test_ingest_run__file_open_for_writing__is_staging_busy),
	TEST(test_ingest_run__unreadable_file__is_named),
	TEST(test_ingest_run__special_file_late__leaves_no_pack),
	TEST(test_ingest_run__worker_fails__all_ends),
	TEST(test_ingest_run__any_call_fails__leaves_no_pack),
	TEST(test_ingest_run__call_is_interrupted__goes_on),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "ingest_faults", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
