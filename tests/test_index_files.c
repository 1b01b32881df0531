/* The index on disk: what a damaged or exchanged file of it does. */
#include "config.h"

#include "index.h"
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	struct index_options options;
	struct index *ix;
};

static void fixture_open(struct fixture *f)
{
	REQUIRE_OK(index_open(&f->options, &f->ix, NULL));
}

static void fixture_create(struct fixture *f)
{
	*f = (struct fixture){
		.options = { .io = &io_posix, .tag = 7, .is_writable = true }
	};
	f->options.store_dirfd =
		open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->options.cache = block_cache_new(1 << 20);
	REQUIRE(f->options.store_dirfd >= 0 && f->options.cache);
	REQUIRE(mkdirat(f->options.store_dirfd, "index", 0755) == 0);
	(void)close(
		openat(f->options.store_dirfd, "lock", O_CREAT | O_RDWR, 0644));
	fixture_open(f);
}

static void fixture_close(struct fixture *f)
{
	index_close(f->ix);
	block_cache_free(f->options.cache);
	(void)close(f->options.store_dirfd);
}

static void put(struct fixture *f, unsigned number, const char *value)
{
	char key[16];
	int size = snprintf(key, sizeof(key), "k%06u", number);

	REQUIRE_OK(index_put(f->ix, key, (size_t)size, value, strlen(value),
			     NULL));
}

/* A large table, and a small newer one with another value for one key. */
static void make_two_tables(struct fixture *f)
{
	fixture_create(f);
	for (unsigned i = 0; i < 20000; i++)
		put(f, i, "old");
	index_position(f->ix)->position = 1000;
	REQUIRE_OK(index_flush(f->ix, NULL));
	put(f, 5, "new");
	index_position(f->ix)->position = 2000;
	REQUIRE_OK(index_flush(f->ix, NULL));
}

/* Paths of the tables below the store; 2 or the test ends. */
static int table_paths(const struct fixture *f, char out[2][64])
{
	int fd = openat(f->options.store_dirfd, "index",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir)))
		if (strstr(e->d_name, ".table") && n < 2)
			(void)snprintf(out[n++], 64, "index/%.40s", e->d_name);
	if (dir)
		(void)closedir(dir);
	return n;
}

static void test_index_open__two_tables__newer_value_counts(void)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct fixture f;

	make_two_tables(&f);
	index_close(f.ix);
	fixture_open(&f);
	CHECK_INT_EQ(2000, index_position(f.ix)->position);
	CHECK_OK(index_get(f.ix, "k000005", 7, &value, NULL));
	REQUIRE_INT_EQ(3, value.size);
	CHECK_MEM_EQ("new", value.data, 3);
	fixture_close(&f);
}

/* The order of tables says which value counts: it must not be exchanged unseen. */
static void test_index_open__tables_exchanged__starts_empty(void)
{
	char paths[2][64];
	struct fixture f;
	int fd;

	make_two_tables(&f);
	index_close(f.ix);
	fd = f.options.store_dirfd;
	REQUIRE_INT_EQ(2, table_paths(&f, paths));
	REQUIRE(renameat(fd, paths[0], fd, "index/x") == 0);
	REQUIRE(renameat(fd, paths[1], fd, paths[0]) == 0);
	REQUIRE(renameat(fd, "index/x", fd, paths[1]) == 0);
	fixture_open(&f);
	CHECK_INT_EQ(0, index_position(f.ix)->position);
	fixture_close(&f);
}

static void test_index_open__table_missing__starts_empty(void)
{
	char paths[2][64];
	struct fixture f;

	make_two_tables(&f);
	index_close(f.ix);
	REQUIRE_INT_EQ(2, table_paths(&f, paths));
	REQUIRE(unlinkat(f.options.store_dirfd, paths[0], 0) == 0);
	fixture_open(&f);
	CHECK_INT_EQ(0, index_position(f.ix)->position);
	fixture_close(&f);
}

static void test_index_open__checkpoint_bit_flipped__starts_empty(void)
{
	struct fixture f;
	struct stat st;
	int fd;

	make_two_tables(&f);
	index_close(f.ix);
	fd = openat(f.options.store_dirfd, "index/current", O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t bit = 0; bit < 8 * st.st_size; bit++) {
		uint8_t byte, flipped;

		REQUIRE(pread(fd, &byte, 1, bit / 8) == 1);
		flipped = (uint8_t)(byte ^ 1 << bit % 8);
		REQUIRE(pwrite(fd, &flipped, 1, bit / 8) == 1);
		fixture_open(&f);
		CHECK_INT_EQ(0, index_position(f.ix)->position);
		index_close(f.ix);
		REQUIRE(pwrite(fd, &byte, 1, bit / 8) == 1);
	}
	(void)close(fd);
	fixture_open(&f);
	CHECK_INT_EQ(2000, index_position(f.ix)->position);
	fixture_close(&f);
}

static const struct testing_test tests[] = {
	TEST(test_index_open__two_tables__newer_value_counts),
	TEST(test_index_open__tables_exchanged__starts_empty),
	TEST(test_index_open__table_missing__starts_empty),
	TEST(test_index_open__checkpoint_bit_flipped__starts_empty),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "index_files", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
