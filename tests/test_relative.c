/*
 * SNAPSHOTs that are recorded as the difference to the view before them: the
 * same views, changes and totals as whole ones, at a cost that follows what
 * changed.  The oracle is the list of files that was committed.
 */
#include "config.h"

#include "commit.h"
#include "store_kit.h"
#include "testing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMIT(type, files) store_kit_commit(&k, INCR_##type, NULL, files)

static struct state_txn find_txn(struct store_kit *k, uint64_t number)
{
	_cleanup_buf_ struct buf storage = BUF_INIT;
	struct state_txn t = { 0 };

	CHECK_OK(store_find_txn(k->st, number, &storage, &t, &k->err));
	/* numbers only: the texts go with the storage */
	return t;
}

static bool is_relative(struct store_kit *k, uint64_t number)
{
	return find_txn(k, number).fact.is_relative;
}

static void test_relative__same_files__one_small_record(void)
{
	struct store_kit k;
	uint64_t before;
	struct state_txn t;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b/c=22 d");
	before = store_kit_size(&k, "log", NULL);
	for (int i = 2; i <= 5; i++)
		COMMIT(SNAPSHOT, "a=1 b/c=22 d");
	CHECK(store_kit_size(&k, "log", NULL) - before < 4 * 200);
	CHECK(!is_relative(&k, 1));
	CHECK_STR_EQ("a=1@t1 b/c=22@t1 d=@t1", store_kit_view(&k, 1));
	CHECK_STR_EQ("a=1@t5 b/c=22@t5 d=@t5", store_kit_view(&k, 5));
	t = find_txn(&k, 5);
	CHECK(t.fact.is_relative);
	CHECK_INT_EQ(1, t.root);
	CHECK_INT_EQ(3, t.n_entries);
	CHECK_INT_EQ(5, t.fact.view_start);
	CHECK_INT_EQ(3, t.fact.n_files);
	CHECK_INT_EQ(0, t.fact.n_removed);
	CHECK_INT_EQ(3, t.fact.view_files);
	CHECK_INT_EQ(3, t.fact.view_size);
	/* a SNAPSHOT modifies every file that stays, whatever its bytes (R82) */
	CHECK_STR_EQ("~a@t5 ~b/c@t5 ~d@t5", store_kit_changes(&k, 4, 5));
	store_kit_release(&k);
}

static void test_relative__views_after_it__are_its_own(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1 c=1 d=1 e=1 f=1");
	COMMIT(DELETE, "f");
	COMMIT(SNAPSHOT, "a=1 b=2 d=1 e=1");
	CHECK(is_relative(&k, 3));
	COMMIT(UPDATE, "a=4 g=4");
	COMMIT(DELETE, "e b");
	COMMIT(APPEND, "c=6 f=6");
	CHECK_STR_EQ("a=1@t1 b=1@t1 c=1@t1 d=1@t1 e=1@t1",
		     store_kit_view(&k, 2));
	CHECK_STR_EQ("a=1@t3 b=2@t3 d=1@t3 e=1@t3", store_kit_view(&k, 3));
	CHECK_STR_EQ("a=4@t4 b=2@t3 d=1@t3 e=1@t3 g=4@t4",
		     store_kit_view(&k, 4));
	CHECK_STR_EQ("a=4@t4 c=6@t6 d=1@t3 f=6@t6 g=4@t4",
		     store_kit_view(&k, 6));
	CHECK_STR_EQ("~a@t4 -b@t5 +c@t6 -e@t5 +f@t6 +g@t4",
		     store_kit_changes(&k, 3, 6));
	/* over the SNAPSHOT: it took c away, and t2 took f */
	CHECK_STR_EQ("~a@t3 ~b@t3 -c@t3 ~d@t3 ~e@t3 -f@t3",
		     store_kit_changes(&k, 1, 3));
	CHECK_STR_EQ("~a@t1 ~b@t1 +c@t1 ~d@t1 ~e@t1",
		     store_kit_changes(&k, 3, 2));
	store_kit_check_n_files(&k, 5);
	store_kit_release(&k);
}

static void test_relative__on_branches__each_has_its_own(void)
{
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1 c=1 d=1");
	COMMIT(UPDATE, "a=2");
	CHECK_OK(store_kit_make_branch(&k, "child", 2));
	COMMIT(UPDATE, "b=3");
	store_kit_commit(&k, INCR_SNAPSHOT, "child", "a=1 b=1 c=1 d=1 x=4");
	CHECK(is_relative(&k, 4));
	COMMIT(SNAPSHOT, "a=1 c=1 d=1");
	CHECK(is_relative(&k, 5));
	store_kit_commit(&k, INCR_UPDATE, "child", "c=6");
	CHECK_STR_EQ("a=1@t4 b=1@t4 c=6@t6 d=1@t4 x=4@t4",
		     store_kit_view(&k, 6));
	CHECK_STR_EQ("a=1@t5 c=1@t5 d=1@t5", store_kit_view(&k, 5));
	CHECK_OK(store_kit_reset(&k, "main", 3));
	COMMIT(SNAPSHOT, "a=1 b=1 c=1 d=7");
	CHECK_STR_EQ("a=1@t7 b=1@t7 c=1@t7 d=7@t7", store_kit_view(&k, 7));
	CHECK_STR_EQ("a=2@t2 b=3@t3 c=1@t1 d=1@t1", store_kit_view(&k, 3));
	CHECK(store_kit_is_on_path(&k, 3, 7));
	CHECK(!store_kit_is_on_path(&k, 5, 7));
	store_kit_release(&k);
}

/* What is worth it, and what is not: a view's cost follows its own size. */
static void test_relative__much_changed__is_whole(void)
{
	static const struct {
		const char *base, *files;
		bool is_relative;
	} cases[] = {
		{ "a=1 b=1 c=1 d=1", "a=1 b=1 c=2 d=2", true },
		{ "a=1 b=1 c=1 d=1", "a=1 b=2 c=2 d=2", false },
		{ "a=1 b=1 c=1 d=1", "a=1 b=1 c=1 d=1 e=1 f=1", true },
		{ "a=1 b=1 c=1 d=1", "a=1 b=1 c=1 d=1 e=1 f=1 g=1", false },
		{ "a=1 b=1 c=1 d=1", "a=1 d=1", true },
		{ "a=1 b=1 c=1 d=1", "d=1", false },
		{ "a=1 b=1 c=1 d=1", "", false },
		{ "a=1", "a=1", false },
		{ "a=1", "a=2", false },
		{ "", "a=2", false },
		{ "a=1 b=1", "a=1 b=1", true },
		{ "b=1 c=1", "a=1 b=1 c=1", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_kit k;
		char want[128] = "", files[128], *save = NULL;

		REQUIRE(store_kit_init(&k));
		COMMIT(SNAPSHOT, cases[i].base);
		CHECK_INT_EQ(2, COMMIT(SNAPSHOT, cases[i].files));
		snprintf(files, sizeof(files), "%s", cases[i].files);
		for (char *w = strtok_r(files, " ", &save); w;
		     w = strtok_r(NULL, " ", &save))
			snprintf(want + strlen(want),
				 sizeof(want) - strlen(want), "%s%s@t2",
				 *want ? " " : "", w);
		CHECK_STR_EQ(want, store_kit_view(&k, 2));
		CHECK_INT_EQ(cases[i].is_relative, is_relative(&k, 2));
		store_kit_release(&k);
		store_kit_remove("store");
	}
}

static void test_relative__many_entries_behind_it__begins_anew(void)
{
	struct store_kit k;
	char files[64];
	uint64_t last_root = 1;
	unsigned n_roots = 1;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=0 b=0 c=0 d=0");
	for (uint64_t i = 1; i <= 40; i++) {
		uint64_t number;
		struct state_txn t;

		snprintf(files, sizeof(files), "a=%" PRIu64 " b=0 c=0 d=0", i);
		number = COMMIT(SNAPSHOT, files);
		t = find_txn(&k, number);
		n_roots += t.root != last_root;
		last_root = t.root;
		CHECK(t.n_entries <= 8);
	}
	CHECK_INT_EQ(9, n_roots);
	CHECK_STR_EQ("a=7@t8 b=0@t8 c=0@t8 d=0@t8", store_kit_view(&k, 8));
	CHECK_STR_EQ("a=40@t41 b=0@t41 c=0@t41 d=0@t41",
		     store_kit_view(&k, 41));
	store_kit_release(&k);
}

/* ---- trees of many files: packs, long manifests ---- */

#define N_MANY 1000

/* What file i of a tree is: its content's number; -1: there is none. */
static void make_tree(const int *contents, size_t padding)
{
	const struct timespec times[2] = { { .tv_sec = 1700000000 },
					   { .tv_sec = 1700000000 } };
	char *content = calloc(1, padding + 32);
	uint64_t random = 1;
	char name[80];

	if (!content)
		abort();
	store_kit_write("tree/always", "x", 1);
	for (int i = 0; i < 2 * N_MANY; i++) {
		char *path;

		if (contents[i] < 0)
			continue;
		snprintf(name, sizeof(name),
			 "tree/d%02d/a-name-as-long-as-some-are-%d", i % 30, i);
		for (size_t k = 0; k < padding; k++)
			content[k] =
				(char)('a' + store_kit_random(&random, 26));
		snprintf(content + padding, 32, "%d of %d", contents[i], i);
		store_kit_write(name, content, strlen(content));
		path = store_kit_path(name);
		CHECK_INT_EQ(0, utimensat(AT_FDCWD, path, times, 0));
		free(path);
	}
	free(content);
}

static uint64_t commit_tree(struct store_kit *k, const int *contents,
			    size_t padding)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = INCR_SNAPSHOT };
	struct incr_source source = { .kind = INCR_SOURCE_PATH, .fd = -1 };
	struct incr_txn_info info = { 0 };
	char *path = store_kit_path("tree");
	uint64_t number;

	make_tree(contents, padding);
	source.path = path;
	CHECK_OK(incr_commit(k->st, &options, &source, 1, &info, &k->err));
	number = info.number;
	incr_txn_info_release(&info);
	free(path);
	store_kit_remove("tree");
	return number;
}

/* Every file of the view is one that was committed, and none is missing. */
static void check_tree(struct store_kit *k, uint64_t txn, const int *contents,
		       size_t padding)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	struct incr_view *v;
	uint64_t want = 1, got = 0;
	char data[32];
	size_t n;

	for (int i = 0; i < 2 * N_MANY; i++)
		want += contents[i] >= 0;
	REQUIRE_OK(incr_view_open(k->st, k->dataset, txn, &v, &k->err));
	CHECK_INT_EQ(want, incr_view_n_files(v));
	REQUIRE_OK(incr_view_iter_new(v, NULL, 0, &it, &k->err));
	while (incr_view_iter_next(it, &node, &k->err) == 0) {
		int i = -1, content, of;

		got++;
		CHECK_INT_EQ(txn, node.txn);
		if (strcmp(node.path, "always") == 0)
			continue;
		REQUIRE(sscanf(node.path, "d%*d/a-name-as-long-as-some-are-%d",
			       &i) == 1);
		REQUIRE_OK(incr_file_read(v, &node, padding, data,
					  sizeof(data) - 1, &n, &k->err));
		data[n] = '\0';
		REQUIRE(sscanf(data, "%d of %d", &content, &of) == 2);
		if (of != i || content != contents[i])
			CHECK_STR_EQ("", node.path);
	}
	CHECK_INT_EQ(want, got);
	incr_view_iter_free(it);
	incr_node_release(&node);
	incr_view_unref(v);
}

static int count_finding(void *closure, const struct incr_finding *finding)
{
	(void)finding;
	++*(unsigned *)closure;
	return 0;
}

static void check_store(struct store_kit *k)
{
	struct incr_verify_options options = { .reads_data = true };
	struct incr_verify_result result;
	unsigned n = 0;

	CHECK_OK(incr_verify(k->st, &options, count_finding, &n, &result,
			     &k->err));
	CHECK_INT_EQ(0, n);
}

static void check_change(size_t padding, int n_changed, int n_removed,
			 int n_added, bool wants_relative)
{
	static int contents[2 * N_MANY], before[2 * N_MANY];
	struct store_kit k;
	uint64_t number;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	for (int i = 0; i < 2 * N_MANY; i++)
		before[i] = contents[i] = i < N_MANY ? 0 : -1;
	CHECK_INT_EQ(1, commit_tree(&k, contents, padding));
	for (int i = 0; i < n_changed; i++)
		contents[i * 7 % N_MANY] = 1;
	for (int i = 0; i < n_removed; i++)
		contents[N_MANY - 1 - i] = -1;
	for (int i = 0; i < n_added; i++)
		contents[N_MANY + i] = 2;
	number = commit_tree(&k, contents, padding);
	CHECK_INT_EQ(wants_relative, is_relative(&k, number));
	check_tree(&k, 1, before, padding);
	check_tree(&k, 2, contents, padding);
	check_store(&k);
	/* from the log alone */
	CHECK_OK(index_reset(k.st->index, &k.err));
	CHECK_OK(store_kit_reopen(&k));
	check_tree(&k, 1, before, padding);
	check_tree(&k, 2, contents, padding);
	store_kit_release(&k);
	store_kit_remove("store");
}

static void test_relative__large_trees__come_back(void)
{
	check_change(0, 0, 0, 0, true);
	check_change(0, 10, 7, 3, true);
	/* the manifest is long, the frames are not: the pack comes late */
	check_change(0, 460, 0, 0, true);
	check_change(0, 540, 0, 0, false);
	check_change(0, 0, 960, 0, false);
	check_change(0, 0, 0, 960, false);
	check_change(0, 1000, 0, 0, false);
	/* a pack before the difference gets long */
	check_change(200, 370, 100, 100, false);
	check_change(200, 200, 100, 100, true);
}

static void test_relative__lost_race__is_refused(void)
{
	struct commit_item item = { .type = INCR_SNAPSHOT };
	struct ingest_result content = { .is_inline = true, .relative_to = 1 };
	struct commit_request request = { .n_items = 1, .items = &item };
	struct store_kit k;

	REQUIRE(store_kit_init(&k));
	COMMIT(SNAPSHOT, "a=1 b=1");
	COMMIT(APPEND, "c=1");
	/* made against t1, which is the head no more */
	item.dataset_id = k.dataset;
	item.branch_id = 1;
	item.origin = item.user = item.message = item.pairs = text_of(NULL);
	item.origin = text_of("user");
	item.content = &content;
	CHECK_ERR(INCR_E_CONFLICT, commit_append(k.st, &request, &k.err));
	CHECK_STR_EQ("branch-moved", k.err.word);
	CHECK_STR_EQ("a=1@t1 b=1@t1 c=1@t2",
		     store_kit_view(&k, store_kit_head(&k, NULL)));
	store_kit_release(&k);
}

/* ---- SNAPSHOTs and UPDATEs of several processes on one branch ---- */

#define N_WRITERS 4
#define N_EACH 15

struct ack {
	uint64_t number;
	int writer, i;
};

/* Writers 0 and 1 make SNAPSHOTs of files that stay and one that does not. */
static int write_some(const struct store_kit *like, int writer, int acks)
{
	struct incr_store_options options = { .wait_ms = 60000 };
	struct store_kit k = { .dataset = like->dataset };
	struct incr_txn_options txn = { .dataset_id = like->dataset };
	struct ack ack = { .writer = writer };
	char files[64];

	snprintf(k.path, sizeof(k.path), "%s", like->path);
	if (store_kit_reopen_with(&k, store_kit_quick_io(), &options) < 0)
		return 1;
	for (ack.i = 0; ack.i < N_EACH; ack.i++) {
		ack.number = 0;
		snprintf(files, sizeof(files),
			 writer < 2 ? "k1=1 k2=2 k3=3 k4=4 k5=5 w%d=%d" :
				      "u%d=%d",
			 writer, ack.i);
		/* a stream is not read again: what it holds is not compared */
		txn.type = writer < 2 ? INCR_SNAPSHOT : INCR_UPDATE;
		txn.rewrites = true;
		(void)store_kit_commit_with(&k, &txn, files, &ack.number);
		if (!ack.number) {
			fprintf(stderr, "%s: %s\n", k.err.word, k.err.message);
			return 2;
		}
		if (write(acks, &ack, sizeof(ack)) != sizeof(ack))
			return 3;
	}
	store_kit_release(&k);
	return 0;
}

/* The view of each transaction is what those before it amount to. */
static void check_history(struct store_kit *k, const struct ack *acks)
{
	struct ack snapshot = { 0 }, updates[N_WRITERS] = { { 0 } };
	char want[512];

	for (uint64_t n = 1; n <= N_WRITERS * N_EACH; n++) {
		const struct ack *a = &acks[n];
		size_t size = 0;

		CHECK_INT_EQ(n, a->number);
		if (a->writer < 2) {
			snapshot = *a;
			memset(updates, 0, sizeof(updates));
		} else {
			updates[a->writer] = *a;
		}
		want[0] = '\0';
		for (int i = 1; snapshot.number && i <= 5; i++)
			size += (size_t)snprintf(want + size,
						 sizeof(want) - size,
						 " k%d=%d@t%" PRIu64, i, i,
						 snapshot.number);
		for (int i = 2; i < N_WRITERS; i++)
			if (updates[i].number)
				size += (size_t)snprintf(want + size,
							 sizeof(want) - size,
							 " u%d=%d@t%" PRIu64, i,
							 updates[i].i,
							 updates[i].number);
		if (snapshot.number)
			snprintf(want + size, sizeof(want) - size,
				 " w%d=%d@t%" PRIu64, snapshot.writer,
				 snapshot.i, snapshot.number);
		CHECK_STR_EQ(want + 1, store_kit_view(k, n));
	}
}

static void test_relative__several_writers__each_is_what_it_says(void)
{
	static struct ack acks[N_WRITERS * N_EACH + 1];
	pid_t pids[N_WRITERS];
	struct store_kit k;
	int fds[2], status;
	struct ack ack;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	REQUIRE(pipe(fds) == 0);
	fflush(NULL);
	for (int i = 0; i < N_WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(write_some(&k, i, fds[1]));
	}
	for (int i = 0; i < N_WRITERS; i++) {
		CHECK_INT_EQ(pids[i], waitpid(pids[i], &status, 0));
		CHECK_INT_EQ(0, status);
	}
	(void)close(fds[1]);
	while (read(fds[0], &ack, sizeof(ack)) == sizeof(ack)) {
		REQUIRE(ack.number <= N_WRITERS * N_EACH);
		acks[ack.number] = ack;
	}
	(void)close(fds[0]);
	CHECK_OK(incr_store_refresh(k.st, NULL));
	check_history(&k, acks);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_relative__same_files__one_small_record),
	TEST(test_relative__views_after_it__are_its_own),
	TEST(test_relative__on_branches__each_has_its_own),
	TEST(test_relative__much_changed__is_whole),
	TEST(test_relative__many_entries_behind_it__begins_anew),
	TEST(test_relative__large_trees__come_back),
	TEST(test_relative__lost_race__is_refused),
	TEST(test_relative__several_writers__each_is_what_it_says),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "relative", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
