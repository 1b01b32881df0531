/* Views where they end: places of others, nothing at all, long lives. */
#include "config.h"

#include "store_kit.h"
#include "testing.h"
#include "view.h"

#include <stdio.h>

static void test_view_at__places_of_others__are_refused(void)
{
	struct incr_node node = INCR_NODE_INIT;
	struct store_kit k;
	struct incr_view *v;
	uint64_t file;

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_APPEND, NULL, "a=1 b/c=1 d=1");
	store_kit_commit(&k, INCR_DELETE, NULL, "a");
	store_kit_commit(&k, INCR_UPDATE, NULL, "d=2");
	REQUIRE_OK(incr_view_open(k.st, k.dataset, 1, &v, NULL));
	/* places of versions that this view does not show */
	for (uint64_t place = 0; place < 4096; place++) {
		int r = incr_view_at(v, place, 0, &node, NULL);

		if (r == 0)
			CHECK_INT_EQ(1, node.txn);
		else
			CHECK_ERR(INCR_E_RANGE, r);
	}
	CHECK_OK(incr_view_find(v, "b/c", 3, &node, NULL));
	file = node.place;
	CHECK_OK(incr_view_at(v, file, 1, &node, NULL));
	CHECK_STR_EQ("b", node.path);
	CHECK(node.is_dir);
	CHECK_ERR(INCR_E_RANGE, incr_view_at(v, file, 2, &node, NULL));
	CHECK_ERR(INCR_E_RANGE, incr_view_at(v, file, 250, &node, NULL));
	CHECK_ERR(INCR_E_RANGE, incr_view_at(v, UINT64_MAX, 0, &node, NULL));
	CHECK_ERR(INCR_E_RANGE,
		  incr_view_at(v, UINT64_C(1) << 39, 0, &node, NULL));
	incr_node_release(&node);
	incr_view_unref(v);
	store_kit_release(&k);
}

static void test_view__the_empty_one__has_a_root(void)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_dir_iter *it;
	struct store_kit k;
	struct incr_view *v;

	REQUIRE(store_kit_init(&k));
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(incr_view_open(k.st, k.dataset,
					  store_kit_head(&k, NULL), &v, NULL));
		CHECK_OK(incr_view_find(v, "", 0, &node, NULL));
		CHECK(node.is_dir);
		CHECK_INT_EQ(1, incr_view_find(v, "a", 1, &node, NULL));
		REQUIRE_OK(
			incr_dir_iter_new(v, "", 0, UINT64_MAX, 0, &it, NULL));
		CHECK_INT_EQ(1, incr_dir_iter_next(it, &node, NULL));
		CHECK_INT_EQ(1, incr_dir_iter_next(it, &node, NULL));
		incr_dir_iter_free(it);
		CHECK_ERR(INCR_E_NOTFOUND,
			  incr_dir_iter_new(v, "a", 1, UINT64_MAX, 0, &it,
					    NULL));
		incr_view_unref(v);
		store_kit_commit(&k, INCR_APPEND, NULL, "");
	}
	incr_node_release(&node);
	store_kit_release(&k);
}

static void test_view__held_while_others_commit__stays(void)
{
	struct store_kit k;
	struct incr_view *v;
	char files[64];

	REQUIRE(store_kit_init(&k));
	store_kit_commit(&k, INCR_SNAPSHOT, NULL, "a=1 b=1");
	REQUIRE_OK(incr_view_open(k.st, k.dataset, 1, &v, NULL));
	for (int i = 0; i < 40; i++) {
		snprintf(files, sizeof(files), "a=%d n%d=%d", i, i, i);
		CHECK(store_kit_commit(&k, INCR_UPDATE, NULL, files));
		if (i % 7 == 0)
			CHECK_OK(index_flush(k.st->index, NULL));
		CHECK_STR_EQ("a=1@t1 b=1@t1", store_kit_view_text(&k, v));
	}
	incr_view_unref(v);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_view_at__places_of_others__are_refused),
	TEST(test_view__the_empty_one__has_a_root),
	TEST(test_view__held_while_others_commit__stays),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "view_edges", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
