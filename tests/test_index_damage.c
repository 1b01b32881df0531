/* An index that is damaged, deleted, ahead of the log or another store's. */
#include "config.h"

#include "index_files.h"
#include "store_kit.h"
#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int flush(struct store_kit *k)
{
	return index_flush(k->st->index, store_kit_err(k));
}

static void copy_file(const char *from, const char *to)
{
	char command[2048];

	snprintf(command, sizeof(command), "cp -r '%s/%s' '%s/%s'",
		 testing_tmpdir(), from, testing_tmpdir(), to);
	CHECK_INT_EQ(0, system(command));
}

static void test_index_open__checkpoint_of_another_store__is_refused(void)
{
	struct store_kit k;
	char *other = store_kit_path("other");
	struct incr_store *st;
	uint64_t id;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	CHECK_OK(incr_store_init(other, NULL));
	CHECK_OK(incr_store_open(other, NULL, &st, NULL));
	CHECK_OK(incr_dataset_create(st, "foreign", NULL, NULL, &id, NULL));
	CHECK_OK(index_flush(st->index, NULL));
	incr_store_close(st);
	store_kit_commit_n(&k, 0, 5);
	CHECK_OK(flush(&k));
	incr_store_close(k.st);
	k.st = NULL;
	CHECK_INT_EQ(0, rename(other, other)); /* there */
	copy_file("store/index", "index-of-store");
	copy_file("other/index/.", "store/index/");
	REQUIRE_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 5);
	/* and the next flush makes it ours again */
	store_kit_commit_n(&k, 5, 6);
	CHECK_OK(flush(&k));
	CHECK_OK(store_kit_reopen(&k));
	CHECK(k.st->index->checkpoint_id != 0);
	store_kit_check_n_files(&k, 6);
	free(other);
	store_kit_release(&k);
}

/* Cut the log as a power cut may, with records that nobody was told of. */
static void cut_log(uint64_t end)
{
	char *log = store_kit_path("store/log/0000000000000000.log");
	char *lock = store_kit_path("store/lock");
	int fd;

	CHECK_INT_EQ(0, truncate(log, (off_t)end));
	/* the hint of this boot would say that they were synced */
	fd = open(lock, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK_INT_EQ(0, ftruncate(fd, STORE_LOCK_FILE_SIZE));
	(void)close(fd);
	free(lock);
	free(log);
}

static void test_index_open__checkpoint_ahead_of_the_log__is_refused(void)
{
	struct store_kit k;
	uint64_t end;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 5);
	end = index_position(k.st->index)->position;
	store_kit_commit_n(&k, 5, 9);
	CHECK_OK(flush(&k));
	incr_store_close(k.st);
	k.st = NULL;
	cut_log(end);
	REQUIRE_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 5);
	/* the numbers of what is gone may be given again */
	store_kit_commit_n(&k, 20, 24);
	store_kit_check_n_files(&k, 9);
	CHECK_OK(flush(&k));
	CHECK_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 9);
	store_kit_release(&k);
}

static void test_index_open__checkpoint_of_other_records__is_refused(void)
{
	struct store_kit k;
	uint64_t end, before;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 15);
	end = index_position(k.st->index)->position;
	store_kit_commit_n(&k, 15, 19);
	before = index_position(k.st->index)->position;
	CHECK_OK(flush(&k));
	incr_store_close(k.st);
	k.st = NULL;
	copy_file("store/index", "old-index");
	cut_log(end);
	REQUIRE_OK(store_kit_reopen(&k));
	/* as long as what was there, at the same places, with the same numbers */
	store_kit_commit_n(&k, 20, 24);
	CHECK_INT_EQ(before, index_position(k.st->index)->position);
	incr_store_close(k.st);
	k.st = NULL;
	copy_file("old-index/.", "store/index/");
	REQUIRE_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 19);
	CHECK(strstr(store_kit_view(&k, store_kit_head(&k, NULL)), "f23=23"));
	CHECK(!strstr(k.text, "f18=18"));
	store_kit_release(&k);
}

static void damage_tables(struct store_kit *k, size_t cut)
{
	char path[600], file[900];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/index", k->path);
	d = opendir(path);
	while (d && (entry = readdir(d))) {
		struct stat s;
		int fd;

		if (!strstr(entry->d_name, ".table"))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		fd = open(file, O_RDWR | O_CLOEXEC);
		CHECK_INT_EQ(0, fstat(fd, &s));
		if (cut)
			CHECK_INT_EQ(0, ftruncate(fd, s.st_size / (off_t)cut));
		else
			for (off_t at = 0; at < s.st_size - 100; at += 97)
				CHECK_INT_EQ(1, pwrite(fd, "\377", 1, at));
		(void)close(fd);
	}
	if (d)
		(void)closedir(d);
}

/* Whatever was done to the tables, a new handle sees all and mends it. */
static void check_mended(struct store_kit *k, uint64_t n_files)
{
	struct incr_branch_info info;

	/* the first look finds the damage, within the call */
	REQUIRE_OK(incr_branch_find(k->st, k->dataset, NULL, &info,
				    store_kit_err(k)));
	CHECK_INT_EQ(n_files, info.view_files);
	incr_branch_info_release(&info);
	store_kit_check_n_files(k, n_files);
	CHECK_OK(flush(k));
	CHECK_OK(store_kit_reopen(k));
	CHECK(k->st->index->checkpoint_id != 0);
	store_kit_check_n_files(k, n_files);
}

static void test_index_get__damaged_table__rebuilds_from_the_log(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (size_t cut = 0; cut < 3; cut++) {
		int from = (int)cut * 300;

		store_kit_commit_n(&k, from, from + 300);
		CHECK_OK(flush(&k));
		incr_store_close(k.st);
		k.st = NULL;
		damage_tables(&k, cut * 2);
		REQUIRE_OK(store_kit_reopen(&k));
		check_mended(&k, (uint64_t)from + 300);
	}
	store_kit_release(&k);
}

static void test_index_get__read_only_and_damaged__still_answers(void)
{
	struct incr_store_options options = { .is_readonly = true };
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 300);
	CHECK_OK(flush(&k));
	damage_tables(&k, 0);
	REQUIRE_OK(store_kit_reopen_with(&k, &io_posix, &options));
	store_kit_check_n_files(&k, 300);
	store_kit_release(&k);
}

/* A block that holds versions of files alone. */
static void damage_last_block(struct store_kit *k)
{
	char *path = NULL;
	struct stat s;
	int fd;

	CHECK(asprintf(&path, "%s/index/%016llx.table", k->path,
		       (unsigned long long)k->st->index
			       ->tables[k->st->index->n_tables - 1]
			       .id) > 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK_INT_EQ(0, fstat(fd, &s));
	CHECK_INT_EQ(4, pwrite(fd, "\377\0\377\0", 4, s.st_size * 8 / 10));
	(void)close(fd);
	free(path);
}

static int count(struct store_kit *k, struct incr_view *v, uint64_t *out_n)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	int r = incr_view_iter_new(v, NULL, 0, &it, store_kit_err(k));

	*out_n = 0;
	if (r < 0)
		return r;
	while ((r = incr_view_iter_next(it, &node, &k->err)) == 0)
		(*out_n)++;
	incr_view_iter_free(it);
	incr_node_release(&node);
	return r;
}

static void test_view__damage_found_while_reading__next_view_is_whole(void)
{
	static const struct incr_store_options modes[] = {
		{ .is_readonly = true }, { .is_readonly = false }
	};
	struct store_kit k;
	struct incr_view *v;
	uint64_t n;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 2000);
	CHECK_OK(flush(&k));
	damage_last_block(&k);
	for (size_t i = 0; i < 2; i++) {
		REQUIRE_OK(store_kit_reopen_with(&k, store_kit_quick_io(),
						 &modes[i]));
		REQUIRE_OK(incr_view_open(k.st, k.dataset, 2000, &v, NULL));
		CHECK_ERR(INCR_E_CORRUPT, count(&k, v, &n));
		CHECK_STR_EQ("damaged-table", k.err.word);
		CHECK(n < 2000);
		incr_view_unref(v);
		REQUIRE_OK(incr_view_open(k.st, k.dataset, 2000, &v, NULL));
		CHECK_INT_EQ(1, count(&k, v, &n));
		CHECK_INT_EQ(2000, n);
		incr_view_unref(v);
	}
	/* the next open starts from the log */
	CHECK_OK(store_kit_reopen(&k));
	store_kit_check_n_files(&k, 2000);
	store_kit_release(&k);
}

static void test_index_flush__directory_deleted__is_made_again(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 3; i++) {
		store_kit_commit_n(&k, 10 * i, 10 * i + 10);
		CHECK_OK(flush(&k));
		store_kit_remove("store/index");
		store_kit_check_n_files(&k, 10 * (uint64_t)i + 10);
	}
	/* one flush finds that its tables are gone, the next has built anew */
	store_kit_commit_n(&k, 30, 31);
	CHECK_OK(flush(&k));
	store_kit_commit_n(&k, 31, 32);
	CHECK_OK(flush(&k));
	CHECK_OK(store_kit_reopen(&k));
	CHECK(k.st->index->checkpoint_id != 0);
	store_kit_check_n_files(&k, 32);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_index_open__checkpoint_of_another_store__is_refused),
	TEST(test_index_open__checkpoint_ahead_of_the_log__is_refused),
	TEST(test_index_open__checkpoint_of_other_records__is_refused),
	TEST(test_index_get__damaged_table__rebuilds_from_the_log),
	TEST(test_index_get__read_only_and_damaged__still_answers),
	TEST(test_view__damage_found_while_reading__next_view_is_whole),
	TEST(test_index_flush__directory_deleted__is_made_again),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "index_damage", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
