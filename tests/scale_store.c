/*
 * A dataset of 1,000,000 files and one of 100,000 transactions: results are
 * checked, times are printed.  Not part of `make check`: `make check-scale`.
 *
 * INCR_SCALE=N divides both sizes by N.
 */
#include "config.h"

#include "index_files.h"
#include "store_kit.h"
#include "testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned scale(void)
{
	const char *text = getenv("INCR_SCALE");
	unsigned n = text ? (unsigned)strtoul(text, NULL, 10) : 1;

	return n ? n : 1;
}

static void report(const char *what, double since)
{
	printf("%-52s %10.3f ms\n", what, (store_kit_seconds() - since) * 1e3);
	fflush(stdout);
}

static void report_memory(const char *what)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	printf("%-52s %10.1f MiB at most\n", what,
	       (double)usage.ru_maxrss / 1024);
}

static uint64_t commit_tree(struct store_kit *k, enum incr_txn_type type,
			    const char *path, const char *prefix)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = type };
	struct incr_source source = { .kind = INCR_SOURCE_PATH,
				      .path = path,
				      .prefix = prefix };
	struct incr_txn_info info = { 0 };

	CHECK_OK(incr_commit(k->st, &options, &source, 1, &info,
			     store_kit_err(k)));
	incr_txn_info_release(&info);
	return info.number ? info.number : store_kit_head(k, NULL);
}

static void make_tree(const char *name, int n)
{
	char path[64];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/f%04d", name, i);
		store_kit_write(path, path, strlen(path));
	}
}

static uint64_t count_dir(struct store_kit *k, struct incr_view *v,
			  const char *dir)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_dir_iter *it;
	uint64_t n = 0;

	if (incr_dir_iter_new(v, dir, strlen(dir), UINT64_MAX, 0, &it,
			      store_kit_err(k)) < 0)
		return 0;
	while (incr_dir_iter_next(it, &node, &k->err) == 0)
		n++;
	incr_dir_iter_free(it);
	incr_node_release(&node);
	return n;
}

static uint64_t count_files(struct store_kit *k, struct incr_view *v)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	uint64_t n = 0;

	if (incr_view_iter_new(v, NULL, 0, &it, store_kit_err(k)) < 0)
		return 0;
	while (incr_view_iter_next(it, &node, &k->err) == 0)
		n++;
	incr_view_iter_free(it);
	incr_node_release(&node);
	return n;
}

static void check_changes(struct store_kit *k, uint64_t from, uint64_t to,
			  uint64_t want, const char *what)
{
	struct incr_view *a, *b;
	struct incr_changes *c;
	double t = store_kit_seconds();

	REQUIRE_OK(incr_view_open(k->st, k->dataset, from, &a, NULL));
	REQUIRE_OK(incr_view_open(k->st, k->dataset, to, &b, NULL));
	REQUIRE_OK(incr_changes_new(a, b, &c, store_kit_err(k)));
	CHECK_INT_EQ(want, incr_view_n_files(incr_changes_view(c, INCR_ADDED)));
	report(what, t);
	incr_changes_free(c);
	incr_view_unref(a);
	incr_view_unref(b);
}

static double commit_100(struct store_kit *k, const char *tree, int n)
{
	double best = 1e9;
	char prefix[32];

	for (int i = 0; i < n; i++) {
		double t = store_kit_seconds();

		snprintf(prefix, sizeof(prefix), "more/%d", i);
		commit_tree(k, INCR_UPDATE, tree, prefix);
		t = store_kit_seconds() - t;
		best = t < best ? t : best;
	}
	return best;
}

static void look(struct store_kit *k, uint64_t head, uint64_t n_txns)
{
	struct incr_view *v;
	struct incr_node node = INCR_NODE_INIT;
	double t = store_kit_seconds();

	REQUIRE(n_txns > 0);
	REQUIRE_OK(store_kit_reopen(k));
	report("open the store", t);
	t = store_kit_seconds();
	REQUIRE_OK(incr_view_open(k->st, k->dataset, head, &v, NULL));
	CHECK_INT_EQ(n_txns * 1000, incr_view_n_files(v));
	report("open the newest view", t);
	t = store_kit_seconds();
	CHECK_INT_EQ(1000, count_dir(k, v, "d0007"));
	report("list a directory of 1,000", t);
	t = store_kit_seconds();
	CHECK_INT_EQ(n_txns, count_dir(k, v, ""));
	report("list the root", t);
	t = store_kit_seconds();
	for (int i = 0; i < 1000; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d%04d/f%04d",
			 (int)((uint64_t)i * 7919 % n_txns), i);
		CHECK_INT_EQ(0, incr_view_find(v, path, 11, &node, NULL));
	}
	report("find 1,000 files", t);
	t = store_kit_seconds();
	CHECK_INT_EQ(n_txns * 1000, count_files(k, v));
	report("walk all files", t);
	incr_view_unref(v);
	t = store_kit_seconds();
	REQUIRE_OK(incr_view_open(k->st, k->dataset, 3, &v, NULL));
	CHECK_INT_EQ(3, count_dir(k, v, ""));
	CHECK_INT_EQ(1000, count_dir(k, v, "d0002"));
	report("open and list an early view", t);
	t = store_kit_seconds();
	CHECK_INT_EQ(3000, count_files(k, v));
	report("walk an early view of 3,000", t);
	incr_view_unref(v);
	incr_node_release(&node);
	check_changes(k, head - 1, head, 1000, "changes of the last");
	if (head > 20)
		check_changes(k, head - 20, head, 20000,
			      "changes of the last 20");
}

static void test_scale__a_million_files__views_cost_what_they_show(void)
{
	struct store_kit k;
	char *tree = store_kit_path("tree"), *few = store_kit_path("few");
	uint64_t n_txns = 1000 / scale(), head = 0;
	double t, small, large;
	char prefix[32];

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	make_tree("tree", 1000);
	make_tree("few", 100);
	commit_tree(&k, INCR_APPEND, tree, "d0000");
	small = commit_100(&k, few, 30);
	store_kit_release(&k);
	store_kit_remove("store");
	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	t = store_kit_seconds();
	for (uint64_t i = 0; i < n_txns; i++) {
		snprintf(prefix, sizeof(prefix), "d%04d", (int)i);
		head = commit_tree(&k, INCR_APPEND, tree, prefix);
	}
	report("commit 1,000 files, on average of all",
	       store_kit_seconds() -
		       (store_kit_seconds() - t) / (double)n_txns);
	printf("tables: %zu, index %.1f MiB, log %.1f MiB, packs %.1f MiB\n",
	       k.st->index->n_tables,
	       (double)store_kit_size(&k, "index", NULL) / 1048576,
	       (double)store_kit_size(&k, "log", NULL) / 1048576,
	       (double)store_kit_size(&k, "packs", NULL) / 1048576);
	look(&k, head, n_txns);
	large = commit_100(&k, few, 30);
	printf("%-52s %10.3f ms and %.3f ms: %.2f\n",
	       "commit 100 files into all and into 1,000", large * 1e3,
	       small * 1e3, large / small);
	report_memory("memory");
	incr_store_close(k.st);
	k.st = NULL;
	store_kit_remove("store/index");
	t = store_kit_seconds();
	REQUIRE_OK(store_kit_reopen(&k));
	report("open without an index", t);
	report_memory("memory then");
	free(tree);
	free(few);
	store_kit_release(&k);
}

static double best_open(struct store_kit *k)
{
	double best = 1e9;

	for (int i = 0; i < 30; i++) {
		double t;

		incr_store_close(k->st);
		k->st = NULL;
		t = store_kit_seconds();
		CHECK_OK(store_kit_reopen(k));
		CHECK(store_kit_head(k, NULL) > 0);
		t = store_kit_seconds() - t;
		best = t < best ? t : best;
	}
	return best;
}

static void test_scale__a_hundred_thousand_transactions__opens_at_once(void)
{
	struct store_kit k;
	int n = 100000 / (int)scale();
	double small, large, t;
	struct incr_view *v;

	REQUIRE(store_kit_init_with(&k, store_kit_quick_io()));
	store_kit_commit_n(&k, 0, 100);
	small = best_open(&k);
	t = store_kit_seconds();
	store_kit_commit_n(&k, 100, n);
	report("commit one file, on average of all",
	       store_kit_seconds() -
		       (store_kit_seconds() - t) / (double)(n - 100));
	large = best_open(&k);
	printf("%-52s %10.3f ms and %.3f ms: %.2f\n",
	       "open with all transactions and with 100", large * 1e3,
	       small * 1e3, large / small);
	t = store_kit_seconds();
	REQUIRE_OK(incr_view_open(k.st, k.dataset, (uint64_t)n, &v, NULL));
	report("open the newest view", t);
	CHECK_INT_EQ(n, incr_view_n_files(v));
	incr_view_unref(v);
	t = store_kit_seconds();
	REQUIRE_OK(incr_view_open(k.st, k.dataset, (uint64_t)n / 2, &v, NULL));
	CHECK_INT_EQ(n / 2, incr_view_n_files(v));
	report("open the view at half the history", t);
	t = store_kit_seconds();
	CHECK_INT_EQ(n / 2, count_files(&k, v));
	report("walk it", t);
	incr_view_unref(v);
	check_changes(&k, (uint64_t)n - 1, (uint64_t)n, 1,
		      "changes of the last");
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_scale__a_million_files__views_cost_what_they_show),
	TEST(test_scale__a_hundred_thousand_transactions__opens_at_once),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "scale", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
