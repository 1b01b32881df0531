/*
 * What is left over: never while somebody makes it, always after.
 *
 * What a process that is killed leaves is made here by letting go of a pack
 * without removing it, which frees the same locks.
 */
#include "config.h"

#include "change_table.h"
#include "commit.h"
#include "store_kit.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 300000

/* Content that needs a pack, read but not committed. */
static void ingest(struct store_kit *k, struct ingest_result *out)
{
	struct ingest_options options;
	struct ingest *g = NULL;
	uint64_t seed = 1;
	uint8_t *bytes = malloc(SIZE);
	int fd;

	if (!bytes)
		abort();
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)store_kit_random(&seed, 256);
	fd = store_kit_stream(bytes, SIZE);
	free(bytes);
	commit_ingest_options(k->st, NULL, false, &options);
	CHECK_OK(ingest_new(&options, &g, NULL));
	CHECK_OK(ingest_add_stream(g, fd, "file", NULL));
	CHECK_OK(ingest_run(g, out, store_kit_err(k)));
	CHECK(!out->is_inline);
	ingest_free(g);
	(void)io_close(&io_posix, fd);
}

static int commit(struct store_kit *k, struct ingest_result *content)
{
	struct state_branch branch;
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct commit_item item = { .dataset_id = k->dataset,
				    .type = INCR_APPEND,
				    .origin = text_of("user"),
				    .user = text_of("somebody"),
				    .message = text_of(NULL),
				    .pairs = text_of(NULL),
				    .content = content };
	struct commit_request request = { .n_items = 1, .items = &item };

	int r = store_find_branch(k->st, k->dataset, NULL, &storage, &branch,
				  store_kit_err(k));

	if (r < 0)
		return r;
	item.branch_id = branch.fact.id;
	return commit_append(k->st, &request, store_kit_err(k));
}

struct seen {
	size_t n;
	char path[64];
	uint64_t size;
};

static int note_finding(void *closure, const struct incr_finding *f)
{
	struct seen *seen = closure;

	CHECK(f->is_left_over);
	CHECK_STR_EQ("left-over", f->word);
	(void)snprintf(seen->path, sizeof(seen->path), "%s", f->file);
	seen->size = f->size;
	seen->n++;
	return 0;
}

static struct seen look_at(struct incr_store *st)
{
	struct incr_verify_options options = { 0 };
	struct incr_verify_result result = { 0 };
	struct seen seen = { 0 };

	CHECK_OK(incr_verify(st, &options, note_finding, &seen, &result, NULL));
	CHECK_INT_EQ(0, result.n_findings);
	CHECK_INT_EQ(seen.n, result.n_left_over);
	return seen;
}

static int note_done(void *closure, enum incr_repair_action action,
		     const char *what, uint64_t size)
{
	struct seen *seen = closure;

	CHECK_INT_EQ(INCR_REPAIR_LEFT_OVER, action);
	(void)snprintf(seen->path, sizeof(seen->path), "%s", what);
	seen->size = size;
	seen->n++;
	return 0;
}

static struct seen mend(const struct store_kit *k)
{
	struct incr_repair_options options = { 0 };
	struct incr_repair_result result;
	struct seen seen = { 0 };

	CHECK_OK(incr_repair(k->path, &options, note_done, NULL, &seen, &result,
			     NULL));
	CHECK_INT_EQ(0, result.n_left);
	return seen;
}

static void test_leftover__pack_being_written__is_none(void)
{
	struct store_kit k;
	struct pack_writer *w;
	struct claim claim;
	uint64_t size;

	REQUIRE(store_kit_init(&k));
	REQUIRE_OK(
		pack_writer_open(&io_posix, k.st->dirfd, k.st->uuid, &w, NULL));
	CHECK_INT_EQ(0, look_at(k.st).n);
	CHECK_INT_EQ(0, mend(&k).n);
	CHECK_OK(pack_writer_finish(w, &size, NULL));
	CHECK_INT_EQ(0, mend(&k).n);
	pack_writer_take_claim(w, &claim);
	pack_writer_free(w);
	CHECK_INT_EQ(0, look_at(k.st).n);
	CHECK_INT_EQ(0, mend(&k).n);
	claim_release(&claim);
	CHECK_INT_EQ(1, look_at(k.st).n);
	CHECK_INT_EQ(1, mend(&k).n);
	CHECK_INT_EQ(0, look_at(k.st).n);
	store_kit_release(&k);
}

/* From the first byte of its pack to the record, and from then on. */
static void test_leftover__content_that_is_committed__is_none(void)
{
	struct ingest_result content = { 0 };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	ingest(&k, &content);
	CHECK_INT_EQ(0, look_at(k.st).n);
	CHECK_INT_EQ(0, mend(&k).n);
	CHECK_OK(commit(&k, &content));
	ingest_result_release(&content);
	CHECK_INT_EQ(0, look_at(k.st).n);
	CHECK_INT_EQ(0, mend(&k).n);
	CHECK_OK(store_kit_reopen(&k));
	CHECK_INT_EQ(0, look_at(k.st).n);
	store_kit_release(&k);
}

static void test_leftover__content_that_is_not__is_removed(void)
{
	struct ingest_result content = { 0 };
	char path[PACK_PATH_SIZE];
	struct store_kit k;
	struct seen seen;
	uint64_t size;

	REQUIRE(store_kit_init(&k));
	ingest(&k, &content);
	pack_path(content.pack_id, path);
	size = content.pack_size;
	ingest_result_release(&content);
	seen = look_at(k.st);
	CHECK_INT_EQ(1, seen.n);
	CHECK_STR_EQ(path, seen.path);
	CHECK_INT_EQ(size, seen.size);
	seen = mend(&k);
	CHECK_INT_EQ(1, seen.n);
	CHECK_STR_EQ(path, seen.path);
	CHECK_INT_EQ(size, seen.size);
	CHECK_INT_EQ(0, store_kit_size(&k, "packs", NULL));
	store_kit_release(&k);
}

/* Who recorded it has its content still; a handle that is behind reads on first. */
static void test_leftover__handle_behind_the_log__reads_on(void)
{
	struct ingest_result content = { 0 };
	struct incr_store *behind = NULL;
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	REQUIRE_OK(incr_store_open(k.path, NULL, &behind, NULL));
	ingest(&k, &content);
	CHECK_OK(commit(&k, &content));
	ingest_result_release(&content);
	CHECK_INT_EQ(0, look_at(behind).n);
	incr_store_close(behind);
	store_kit_release(&k);
}

/* Nothing is said to be free where nobody can tell. */
static void test_leftover__locks_cannot_be_looked_at__is_none(void)
{
	struct ingest_result content = { 0 };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	ingest(&k, &content);
	ingest_result_release(&content);
	CHECK_INT_EQ(1, look_at(k.st).n);
	REQUIRE(unlinkat(k.st->dirfd, "lock", 0) == 0);
	CHECK_INT_EQ(0, look_at(k.st).n);
	store_kit_release(&k);
}

static void put_change(struct change_table *t, uint8_t number)
{
	struct table_entry e = {
		.key = &number, .key_size = 1, .value = &number, .value_size = 1
	};

	CHECK_OK(change_table_put(t, &e, NULL));
}

static void test_leftover__table_of_changes__is_none_while_it_is_written(void)
{
	char path[sizeof(((struct change_table *)NULL)->path)];
	struct change_table t;
	struct store_kit k;
	int fd;

	REQUIRE(store_kit_init(&k));
	k.st->n_changes_in_memory = 4;
	REQUIRE_OK(change_table_init(&t, k.st, NULL));
	for (uint8_t i = 0; i < 10; i++)
		put_change(&t, i);
	CHECK(t.writer != NULL);
	memcpy(path, t.path, sizeof(path));
	CHECK_INT_EQ(0, look_at(k.st).n);
	CHECK_INT_EQ(0, mend(&k).n);
	CHECK_OK(change_table_finish(&t, NULL));
	CHECK_INT_EQ(0, look_at(k.st).n);
	change_table_release(&t);
	/* the same name, and nobody has its lock */
	fd = openat(k.st->dirfd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	REQUIRE(fd >= 0 && close(fd) == 0);
	CHECK_INT_EQ(1, look_at(k.st).n);
	CHECK_INT_EQ(1, mend(&k).n);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_leftover__pack_being_written__is_none),
	TEST(test_leftover__content_that_is_committed__is_none),
	TEST(test_leftover__content_that_is_not__is_removed),
	TEST(test_leftover__handle_behind_the_log__reads_on),
	TEST(test_leftover__locks_cannot_be_looked_at__is_none),
	TEST(test_leftover__table_of_changes__is_none_while_it_is_written),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "leftover", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
