/*
 * The node table of the mount.
 */
#include "node.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t n_freed;

static void count_free(struct incr_mount *m, struct node *n)
{
	(void)m;
	n_freed++;
	free(n);
}

static const struct node_ops ops = { .free = count_free };

static struct node *new_node(const char *key)
{
	struct node *n = calloc(1, sizeof(*n));

	n->ops = &ops;
	if (key != NULL)
		CHECK_INT_EQ(0, node_set_key(n, key, strlen(key)));
	return n;
}

static void start(struct node_table *t)
{
	n_freed = 0;
	CHECK_INT_EQ(0, node_table_init(t, NULL));
	node_table_add_fixed(t, new_node(NULL));
}

static void test_node_table__first_fixed_node__is_the_root_and_stays(void)
{
	struct node_table t;

	start(&t);
	CHECK(node_table_find(&t, FUSE_ROOT_ID) != NULL);
	node_table_forget(&t, FUSE_ROOT_ID, 100);
	CHECK(node_table_find(&t, FUSE_ROOT_ID) != NULL);
	node_table_release(&t);
	CHECK_INT_EQ(1, n_freed);
}

static void test_node_table_intern__the_same_key__is_the_same_node(void)
{
	struct node_table t;
	struct node *a, *b, *c;

	start(&t);
	a = node_table_intern(&t, new_node("a"));
	b = node_table_intern(&t, new_node("b"));
	c = node_table_intern(&t, new_node("a"));
	CHECK(a == c);
	CHECK(a != b);
	CHECK_INT_EQ(1, n_freed);
	CHECK_INT_EQ(2, a->n_lookups);
	node_table_release(&t);
	CHECK_INT_EQ(4, n_freed);
}

static void test_node_table_forget__last_lookup__frees_it(void)
{
	struct node_table t;
	struct node *a;
	fuse_ino_t id;

	start(&t);
	a = node_table_intern(&t, new_node("a"));
	node_table_count(&t, a);
	id = a->id;
	node_table_forget(&t, id, 1);
	CHECK(node_table_find(&t, id) == a);
	node_table_forget(&t, id, 1);
	CHECK(node_table_find(&t, id) == NULL);
	CHECK_INT_EQ(1, n_freed);
	node_table_forget(&t, id, 1); /* is not there */
	a = node_table_intern(&t, new_node("a"));
	CHECK(a->id != id);
	node_table_release(&t);
}

static void test_node_table_drop_key__a_file_that_is_gone__is_not_found(void)
{
	struct node_table t;
	struct node *a, *b;

	start(&t);
	a = node_table_intern(&t, new_node("a"));
	node_table_drop_key(&t, a);
	b = node_table_intern(&t, new_node("a"));
	CHECK(a != b);
	CHECK(node_table_find(&t, a->id) == a);
	node_table_forget(&t, a->id, 1);
	CHECK(node_table_find(&t, b->id) == b);
	node_table_release(&t);
	CHECK_INT_EQ(3, n_freed);
}

static void test_node_table__many_nodes__are_all_found(void)
{
	enum { N = 5000 };
	static struct node *nodes[N];
	struct node_table t;
	char key[16];

	start(&t);
	for (int i = 0; i < N; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		nodes[i] = node_table_intern(&t, new_node(key));
	}
	for (int i = 0; i < N; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		CHECK(node_table_find(&t, nodes[i]->id) == nodes[i]);
		CHECK(node_table_intern(&t, new_node(key)) == nodes[i]);
	}
	for (int i = 0; i < N; i += 2)
		node_table_forget(&t, nodes[i]->id, 2);
	for (int i = 1; i < N; i += 2)
		CHECK(node_table_find(&t, nodes[i]->id) == nodes[i]);
	CHECK_INT_EQ(N + N / 2, n_freed);
	node_table_release(&t);
	CHECK_INT_EQ(2 * N + 1, n_freed);
}

static const struct testing_test tests[] = {
	TEST(test_node_table__first_fixed_node__is_the_root_and_stays),
	TEST(test_node_table_intern__the_same_key__is_the_same_node),
	TEST(test_node_table_forget__last_lookup__frees_it),
	TEST(test_node_table_drop_key__a_file_that_is_gone__is_not_found),
	TEST(test_node_table__many_nodes__are_all_found),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "mount_node", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
