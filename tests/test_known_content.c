/*
 * Files whose bytes an earlier transaction has stored, at another path or in
 * another dataset: they take no content, are read back as they are, and never
 * depend on what is damaged.
 */
#include "config.h"

#include "content_kit.h"
#include "store_kit.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_FILES 40
#define SMALL_SIZE ((size_t)5000)
#define LARGE_SIZE ((size_t)300000)

/* File @i of a set: noise, so that nothing but its like can stand for it. */
static uint8_t *make_bytes(uint64_t seed, size_t size)
{
	uint8_t *data = malloc(size);

	if (!data)
		testing_die("no memory", NULL);
	kit_fill_noise(data, size, seed);
	return data;
}

static void write_set(const char *dir, const char *suffix, uint64_t seed,
		      size_t size)
{
	for (uint64_t i = 0; i < N_FILES; i++) {
		_cleanup_free_ uint8_t *data = make_bytes(seed + i, size);
		char path[128];

		snprintf(path, sizeof(path), "%s/%02u%s", dir, (unsigned)i,
			 suffix);
		store_kit_write(path, data, size);
	}
}

static uint64_t commit_tree(struct store_kit *k, uint64_t dataset,
			    enum incr_txn_type type, const char *dir,
			    const char *prefix)
{
	const struct incr_txn_options options = { .dataset_id = dataset,
						  .type = type };
	_cleanup_free_ char *path = store_kit_path(dir);
	const struct incr_source source = { .kind = INCR_SOURCE_PATH,
					    .fd = -1,
					    .path = path,
					    .prefix = prefix };
	struct incr_txn_info info = { 0 };
	uint64_t number;

	CHECK_OK(incr_commit(k->st, &options, &source, 1, &info,
			     store_kit_err(k)));
	number = info.number;
	incr_txn_info_release(&info);
	return number;
}

static bool is_file(struct incr_view *v, const char *path, const uint8_t *want,
		    size_t size, struct incr_error *err)
{
	_cleanup_free_ uint8_t *data = malloc(size + 1);
	struct incr_node node = INCR_NODE_INIT;
	size_t n = 0;
	bool is;

	is = data && incr_view_find(v, path, strlen(path), &node, err) == 0 &&
	     incr_file_read(v, &node, 0, data, size + 1, &n, err) == 0 &&
	     n == size && memcmp(data, want, size) == 0;
	incr_node_release(&node);
	return is;
}

static void check_set(struct store_kit *k, uint64_t dataset, uint64_t txn,
		      const char *dir, const char *suffix, uint64_t seed,
		      size_t size)
{
	struct incr_view *v;

	REQUIRE_OK(incr_view_open(k->st, dataset, txn, &v, store_kit_err(k)));
	for (uint64_t i = 0; i < N_FILES; i++) {
		_cleanup_free_ uint8_t *data = make_bytes(seed + i, size);
		char path[128];

		snprintf(path, sizeof(path), "%s/%02u%s", dir, (unsigned)i,
			 suffix);
		CHECK(is_file(v, path, data, size, &k->err));
	}
	incr_view_unref(v);
}

/* Bytes that hold content and lists of files. */
static uint64_t stored(struct store_kit *k)
{
	return store_kit_size(k, "packs", NULL) +
	       store_kit_size(k, "log", NULL);
}

/* What a set may take that is stored already: its list, and no content. */
#define LIST_MAX ((uint64_t)N_FILES * 150 + 1000)

static void check_known(size_t size, bool reopens)
{
	struct store_kit k;
	uint64_t other, before, t;

	REQUIRE(store_kit_init(&k));
	REQUIRE_OK(incr_dataset_create(k.st, "other", NULL, NULL, &other,
				       store_kit_err(&k)));
	write_set("in/old", "", 1, size);
	(void)commit_tree(&k, k.dataset, INCR_APPEND, "in", NULL);
	if (reopens)
		REQUIRE_OK(store_kit_reopen(&k));

	/* moved, in another order, in another dataset, and beside what is new */
	before = stored(&k);
	CHECK(before > N_FILES * size);
	t = commit_tree(&k, k.dataset, INCR_APPEND, "in/old", "new/deep");
	CHECK(stored(&k) - before < LIST_MAX);
	check_set(&k, k.dataset, t, "new/deep", "", 1, size);
	check_set(&k, k.dataset, t, "old", "", 1, size);

	write_set("in2/x", ".bin", 1, size);
	write_set("in2/y", "", 1000, size);
	before = stored(&k);
	t = commit_tree(&k, other, INCR_SNAPSHOT, "in2", NULL);
	CHECK(stored(&k) - before > N_FILES * size);
	CHECK(stored(&k) - before < N_FILES * (size + 400) + LIST_MAX);
	check_set(&k, other, t, "x", ".bin", 1, size);
	check_set(&k, other, t, "y", "", 1000, size);
	store_kit_release(&k);
	store_kit_remove("store");
	store_kit_remove("in");
	store_kit_remove("in2");
}

static void test_known__small_files__take_no_content(void)
{
	check_known(SMALL_SIZE, false);
	check_known(SMALL_SIZE, true);
}

static void test_known__large_files__take_no_content(void)
{
	check_known(LARGE_SIZE, false);
	check_known(LARGE_SIZE, true);
}

/* Commits so small that their content stands in the log. */
static void test_known__content_in_the_log__is_shared(void)
{
	_cleanup_free_ uint8_t *data = make_bytes(1, SMALL_SIZE);
	const unsigned n = 10;
	struct incr_view *v;
	struct store_kit k;
	char path[32];
	uint64_t t = 0;

	REQUIRE(store_kit_init(&k));
	store_kit_write("in/a", data, SMALL_SIZE);
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "d%u", i);
		t = commit_tree(&k, k.dataset, INCR_APPEND, "in", path);
	}
	CHECK_INT_EQ(0, store_kit_size(&k, "packs", NULL));
	/* zeros to write over may stand behind the last record: 16 KiB */
	CHECK(stored(&k) < SMALL_SIZE + n * 600 + 16384);
	REQUIRE_OK(incr_view_open(k.st, k.dataset, t, &v, &k.err));
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "d%u/a", i);
		CHECK(is_file(v, path, data, SMALL_SIZE, &k.err));
	}
	incr_view_unref(v);
	store_kit_release(&k);
}

/* The index is derived: without it the log says what is stored. */
static void test_known__index_deleted__is_found_all_the_same(void)
{
	const size_t sizes[] = { SMALL_SIZE, LARGE_SIZE };

	for (size_t i = 0; i < 2; i++) {
		struct store_kit k;
		uint64_t before;

		REQUIRE(store_kit_init(&k));
		write_set("in/a", "", 1, sizes[i]);
		(void)commit_tree(&k, k.dataset, INCR_APPEND, "in", NULL);
		before = stored(&k);
		store_kit_remove("store/index");
		REQUIRE_OK(store_kit_reopen(&k));
		(void)commit_tree(&k, k.dataset, INCR_APPEND, "in", "b");
		CHECK(stored(&k) - before < LIST_MAX);
		store_kit_release(&k);
		store_kit_remove("store");
		store_kit_remove("in");
	}
}

/* In tables of the index, behind a filter, rather than in memory. */
static void test_known__among_many_transactions__is_found(void)
{
	struct store_kit k;
	uint64_t before, t;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (uint64_t i = 0; i < 30; i++) {
		char dir[32];

		snprintf(dir, sizeof(dir), "in/d%02u", (unsigned)i);
		write_set(dir, "", 1 + i * N_FILES, SMALL_SIZE);
		t = commit_tree(&k, k.dataset, INCR_APPEND, dir, dir);
		REQUIRE(t != 0);
		store_kit_remove(dir);
	}
	CHECK(store_kit_size(&k, "index", NULL) > 0);
	REQUIRE_OK(store_kit_reopen(&k));
	write_set("again", "", 1 + 3 * N_FILES, SMALL_SIZE);
	write_set("again", ".late", 1 + 28 * N_FILES, SMALL_SIZE);
	before = stored(&k);
	t = commit_tree(&k, k.dataset, INCR_APPEND, "again", "again");
	CHECK(stored(&k) - before < 2 * LIST_MAX);
	check_set(&k, k.dataset, t, "again", "", 1 + 3 * N_FILES, SMALL_SIZE);
	check_set(&k, k.dataset, t, "again", ".late", 1 + 28 * N_FILES,
		  SMALL_SIZE);
	store_kit_release(&k);
}

/* Overwrite the only pack from @off on. */
static void damage_pack(struct store_kit *k, off_t off, size_t size)
{
	_cleanup_free_ uint8_t *noise = make_bytes(77, size);
	char command[1100], path[1024];
	FILE *f;
	int fd;

	snprintf(command, sizeof(command), "ls %s/packs/*.pack", k->path);
	f = popen(command, "re");
	REQUIRE(f != NULL);
	CHECK(fgets(path, sizeof(path), f) != NULL);
	(void)pclose(f);
	path[strcspn(path, "\n")] = '\0';
	(void)chmod(path, 0600);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	CHECK_INT_EQ(size, pwrite(fd, noise, size, off));
	(void)close(fd);
}

/* New data must not depend on damaged old data. */
static void check_damaged(size_t size)
{
	struct store_kit k;
	uint64_t before, t;

	REQUIRE(store_kit_init(&k));
	write_set("in/a", "", 1, size);
	(void)commit_tree(&k, k.dataset, INCR_APPEND, "in", NULL);
	damage_pack(&k, 4096, N_FILES * size - 8192);
	REQUIRE_OK(store_kit_reopen(&k));
	before = stored(&k);
	t = commit_tree(&k, k.dataset, INCR_APPEND, "in/a", "b");
	CHECK(stored(&k) - before > (N_FILES - 2) * size);
	check_set(&k, k.dataset, t, "b", "", 1, size);
	/* the whole one is the one that is shared from now on */
	before = stored(&k);
	t = commit_tree(&k, k.dataset, INCR_APPEND, "in/a", "c");
	CHECK(stored(&k) - before < LIST_MAX);
	check_set(&k, k.dataset, t, "c", "", 1, size);
	store_kit_release(&k);
	store_kit_remove("store");
	store_kit_remove("in");
}

static void test_known__content_damaged__is_stored_anew(void)
{
	check_damaged(SMALL_SIZE);
	check_damaged(LARGE_SIZE);
}

/* ---- hashes that lie ---- */

static struct content lie;

static int find_lie(void *closure, const uint8_t *hash, uint64_t front,
		    uint64_t size, struct content *out, struct incr_error *err)
{
	(void)closure;
	(void)hash;
	(void)front;
	(void)err;
	if (lie.size != size)
		return 1;
	return content_copy(&lie, out);
}

/* Other bytes under the same hash and size, as somebody can make them. */
static void check_lie(size_t size, size_t at)
{
	_cleanup_free_ uint8_t *data = make_bytes(5, size);
	_cleanup_free_ uint8_t *filler = make_bytes(6, 100000);
	const struct manifest_entry *e;
	struct kit_files files;
	struct ingest_result first, r;
	struct kit k;

	kit_write("one/a", data, size);
	kit_write("one/filler", filler, 100000);
	kit_open(&k, NULL);
	REQUIRE_OK(kit_ingest(&k, "one", &first, NULL));
	kit_list(&k, &first, &files);
	e = kit_find(&files, "a");
	REQUIRE(e && !first.is_inline);
	lie = e->content;

	data[at] ^= 1;
	kit_write("two/a", data, size);
	k.options.find_content = find_lie;
	REQUIRE_OK(kit_ingest(&k, "two", &r, NULL));
	kit_files_release(&files);
	kit_list(&k, &r, &files);
	e = kit_find(&files, "a");
	CHECK(e && kit_content_is(&k, &r, e, data, size, 65536));
	kit_files_release(&files);
	ingest_result_discard(&k.options, &r);
	ingest_result_discard(&k.options, &first);
	kit_close(&k);
}

static void test_known__same_hash_other_bytes__is_stored(void)
{
	check_lie(5000, 0);
	check_lie(5000, 4999);
	check_lie(65536, 30000);
	check_lie(65537, 65536);
	check_lie(300000, 0);
	check_lie(300000, 299999);
}

static const struct testing_test tests[] = {
	TEST(test_known__small_files__take_no_content),
	TEST(test_known__large_files__take_no_content),
	TEST(test_known__content_in_the_log__is_shared),
	TEST(test_known__index_deleted__is_found_all_the_same),
	TEST(test_known__among_many_transactions__is_found),
	TEST(test_known__content_damaged__is_stored_anew),
	TEST(test_known__same_hash_other_bytes__is_stored),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "known_content", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
