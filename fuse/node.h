/*
 * The node table: things of the mount that are no part of a fixed view, such as
 * top-level directories, live outputs and the datasets of the browser.
 *
 * A node is known by its id and may be found by a key.  It lives as long as the
 * kernel knows it, counted by lookups; a fixed one as long as the table.
 */
#ifndef INCR_NODE_H
#define INCR_NODE_H

#include "fuse_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct incr_mount;
struct node;

/* Each answers @req exactly once.  NULL: it is refused. */
struct node_ops {
	/*
	 * The entry that leads to @n, for directories of layout.c: 0 or an
	 * error.  Without @is_lookup what takes work may leave e->ino 0.
	 * Answers nothing.
	 */
	int (*entry)(struct incr_mount *m, struct node *n, bool is_lookup,
		     struct fuse_entry_param *e);
	void (*getattr)(struct incr_mount *m, fuse_req_t req, struct node *n);
	void (*lookup)(struct incr_mount *m, fuse_req_t req, struct node *n,
		       const char *name);
	void (*readlink)(struct incr_mount *m, fuse_req_t req, struct node *n);
	void (*opendir)(struct incr_mount *m, fuse_req_t req, struct node *n,
			struct fuse_file_info *fi);
	void (*readdir)(struct incr_mount *m, fuse_req_t req, struct node *n,
			const struct dir_request *dr);
	void (*releasedir)(struct incr_mount *m, fuse_req_t req, struct node *n,
			   struct fuse_file_info *fi);
	void (*open)(struct incr_mount *m, fuse_req_t req, struct node *n,
		     struct fuse_file_info *fi);
	void (*read)(struct incr_mount *m, fuse_req_t req, struct node *n,
		     const struct read_request *rr);
	void (*release)(struct incr_mount *m, fuse_req_t req, struct node *n,
			struct fuse_file_info *fi);
	bool is_writable; /* a struct staging_node */
	/* Free @n, which nobody knows any more. */
	void (*free)(struct incr_mount *m, struct node *n);
};

/* First member of every kind of node. */
struct node {
	const struct node_ops *ops;
	fuse_ino_t id;
	uint8_t *key; /* owned; NULL: not found by a key */
	size_t key_size;

	/* guarded by the lock of the table */
	bool is_fixed;
	uint64_t n_lookups;
	struct node *next_by_id, *next_by_key;
};

struct node_table {
	struct incr_mount *mount; /* borrowed */
	bool is_closing; /* all nodes are being freed */
	pthread_mutex_t lock; /* guards everything below */
	uint64_t next_id;
	size_t n_nodes;
	size_t n_buckets; /* a power of two */
	struct node **by_id, **by_key;
};

int node_table_init(struct node_table *t, struct incr_mount *m);
/* Frees all nodes too. */
void node_table_release(struct node_table *t);

/* Put in a node that stays; the first one gets FUSE_ROOT_ID.  @n is taken. */
void node_table_add_fixed(struct node_table *t, struct node *n);

/*
 * Count a lookup of the node with the key of @n, and return it.  If there is
 * none, @n becomes it; else @n is freed.  @n is taken.
 */
struct node *node_table_intern(struct node_table *t, struct node *n);

/* Copy a key into a node that is not in the table yet.  0 or INCR_E_NOMEM. */
int node_set_key(struct node *n, const void *key, size_t size);

/* Its file is gone: the next one with this key is another node. */
void node_table_drop_key(struct node_table *t, struct node *n);

/* Count one more lookup of a node that is known. */
void node_table_count(struct node_table *t, struct node *n);

/* NULL if there is none.  Borrowed while the kernel knows it. */
struct node *node_table_find(struct node_table *t, fuse_ino_t id);

/* Take back @n_lookups; the last one frees the node. */
void node_table_forget(struct node_table *t, fuse_ino_t id, uint64_t n_lookups);

#endif
