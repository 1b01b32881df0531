/*
 * The node table: two hash tables over the same nodes.
 *
 * Ids count up and are not used again, so that the kernel never takes a new
 * node for an old one.
 */
#include "config.h"

#include "incr.h"
#include "inode.h"
#include "node.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

int node_table_init(struct node_table *t, struct incr_mount *m)
{
	*t = (struct node_table){ .mount = m, .next_id = FUSE_ROOT_ID };
	t->n_buckets = FIRST_BUCKETS;
	t->by_id = calloc(t->n_buckets, sizeof(struct node *));
	t->by_key = calloc(t->n_buckets, sizeof(struct node *));
	if (t->by_id == NULL || t->by_key == NULL) {
		free(t->by_id);
		free(t->by_key);
		return INCR_E_NOMEM;
	}
	(void)pthread_mutex_init(&t->lock, NULL);
	return 0;
}

static void free_node(struct node_table *t, struct node *n)
{
	free(n->key);
	n->key = NULL;
	n->ops->free(t->mount, n);
}

void node_table_release(struct node_table *t)
{
	if (t->by_id == NULL)
		return;
	t->is_closing = true;
	for (size_t i = 0; i < t->n_buckets; i++) {
		struct node *next;

		for (struct node *n = t->by_id[i]; n != NULL; n = next) {
			next = n->next_by_id;
			free_node(t, n);
		}
	}
	free(t->by_id);
	free(t->by_key);
	(void)pthread_mutex_destroy(&t->lock);
	*t = (struct node_table){ 0 };
}

static struct node **id_bucket(const struct node_table *t, fuse_ino_t id)
{
	return &t->by_id[id & (t->n_buckets - 1)];
}

static struct node **key_bucket(const struct node_table *t,
				const struct node *n)
{
	return &t->by_key[inode_hash(n->key, n->key_size) & (t->n_buckets - 1)];
}

static void link_node(struct node_table *t, struct node *n)
{
	struct node **bucket = id_bucket(t, n->id);

	n->next_by_id = *bucket;
	*bucket = n;
	if (n->key == NULL)
		return;
	bucket = key_bucket(t, n);
	n->next_by_key = *bucket;
	*bucket = n;
}

static void unlink_key(struct node_table *t, struct node *n)
{
	struct node **at;

	if (n->key == NULL)
		return;
	for (at = key_bucket(t, n); *at != n; at = &(*at)->next_by_key)
		;
	*at = n->next_by_key;
}

static void unlink_node(struct node_table *t, struct node *n)
{
	struct node **at;

	for (at = id_bucket(t, n->id); *at != n; at = &(*at)->next_by_id)
		;
	*at = n->next_by_id;
	unlink_key(t, n);
}

/* Double the buckets.  Without memory for it the chains just get longer. */
static void grow(struct node_table *t)
{
	size_t n_old = t->n_buckets, n_new = n_old * 2;
	struct node **old = t->by_id;
	struct node **by_id = calloc(n_new, sizeof(struct node *));
	struct node **by_key = calloc(n_new, sizeof(struct node *));

	if (by_id == NULL || by_key == NULL) {
		free(by_id);
		free(by_key);
		return;
	}
	free(t->by_key);
	t->by_id = by_id;
	t->by_key = by_key;
	t->n_buckets = n_new;
	for (size_t i = 0; i < n_old; i++) {
		struct node *next;

		for (struct node *n = old[i]; n != NULL; n = next) {
			next = n->next_by_id;
			link_node(t, n);
		}
	}
	free(old);
}

static void add(struct node_table *t, struct node *n)
{
	if (t->n_nodes >= t->n_buckets)
		grow(t);
	n->id = t->next_id++;
	t->n_nodes++;
	link_node(t, n);
}

void node_table_add_fixed(struct node_table *t, struct node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	n->is_fixed = true;
	add(t, n);
	(void)pthread_mutex_unlock(&t->lock);
}

int node_set_key(struct node *n, const void *key, size_t size)
{
	n->key = malloc(size);
	if (n->key == NULL)
		return INCR_E_NOMEM;
	memcpy(n->key, key, size);
	n->key_size = size;
	return 0;
}

static struct node *find_key(const struct node_table *t, const struct node *key)
{
	struct node *n;

	for (n = *key_bucket(t, key); n != NULL; n = n->next_by_key) {
		if (n->key_size == key->key_size &&
		    memcmp(n->key, key->key, n->key_size) == 0)
			break;
	}
	return n;
}

struct node *node_table_intern(struct node_table *t, struct node *n)
{
	struct node *found;

	(void)pthread_mutex_lock(&t->lock);
	found = find_key(t, n);
	if (found == NULL) {
		found = n;
		add(t, n);
	}
	found->n_lookups++;
	(void)pthread_mutex_unlock(&t->lock);
	if (found != n)
		free_node(t, n);
	return found;
}

void node_table_drop_key(struct node_table *t, struct node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	unlink_key(t, n);
	free(n->key);
	n->key = NULL;
	(void)pthread_mutex_unlock(&t->lock);
}

void node_table_count(struct node_table *t, struct node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	n->n_lookups++;
	(void)pthread_mutex_unlock(&t->lock);
}

struct node *node_table_find(struct node_table *t, fuse_ino_t id)
{
	struct node *n;

	(void)pthread_mutex_lock(&t->lock);
	for (n = *id_bucket(t, id); n != NULL && n->id != id; n = n->next_by_id)
		;
	(void)pthread_mutex_unlock(&t->lock);
	return n;
}

void node_table_forget(struct node_table *t, fuse_ino_t id, uint64_t n_lookups)
{
	struct node *n;
	bool is_last = false;

	(void)pthread_mutex_lock(&t->lock);
	for (n = *id_bucket(t, id); n != NULL && n->id != id; n = n->next_by_id)
		;
	if (n != NULL && !n->is_fixed) {
		n->n_lookups -= n_lookups < n->n_lookups ? n_lookups :
							   n->n_lookups;
		is_last = n->n_lookups == 0;
		if (is_last) {
			unlink_node(t, n);
			t->n_nodes--;
		}
	}
	(void)pthread_mutex_unlock(&t->lock);
	if (is_last)
		free_node(t, n);
}
