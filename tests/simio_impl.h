/* The file system in memory: what its parts share. */
#ifndef INCR_SIMIO_IMPL_H
#define INCR_SIMIO_IMPL_H

#include <limits.h>
#include <pthread.h>

#include "simio.h"

struct sim_entry {
	char *name; /* owned */
	size_t inode;
};

struct sim_inode {
	enum io_kind kind;
	uint32_t mode;
	int64_t time;
	uint8_t *data; /* owned */
	size_t size, capacity;
	struct sim_entry *entries; /* owned */
	size_t n_entries;
};

struct sim_fd {
	bool is_open;
	size_t inode;
	uint64_t off; /* for read() */
};

struct sim_lock {
	int fd;
	bool is_exclusive;
	uint64_t off, size;
};

enum sim_op_kind {
	SIM_OP_WRITE,
	SIM_OP_TRUNCATE,
	SIM_OP_LINK, /* also the making of a file or directory */
	SIM_OP_UNLINK,
	SIM_OP_RENAME,
	SIM_OP_SYNC,
};

struct sim_op {
	enum sim_op_kind kind;
	size_t inode;
	size_t dir, dir2; /* of names; dir2: where a rename goes */
	char name[NAME_MAX + 1], name2[NAME_MAX + 1];
	size_t off, size;
	uint8_t *data; /* owned */
	size_t durable_at; /* durable at crash points from here on */
};

struct sim {
	struct incr_io io;
	pthread_mutex_t mutex; /* guards everything below */
	struct sim_inode *inodes; /* owned; the root is 0 */
	size_t n_inodes;
	struct sim_fd *fds; /* owned */
	size_t n_fds;
	struct sim_lock *locks; /* owned */
	size_t n_locks;
	uint64_t seed;
	int64_t clock;
	bool is_recording;
	struct sim *start; /* owned: the state when recording started */
	struct sim_op *ops; /* owned */
	size_t n_ops;
	uint64_t *seen; /* owned: hashes of the states given; open addressing */
	size_t n_seen, seen_capacity;
};

void *sim_alloc(void *p, size_t size);

size_t sim_new_inode(struct sim *sim, enum io_kind kind, uint32_t mode);
struct sim_entry *sim_find_entry(struct sim *sim, size_t dir, const char *name);
void sim_set_entry(struct sim *sim, size_t dir, const char *name, size_t inode);
void sim_remove_entry(struct sim *sim, size_t dir, const char *name);
void sim_resize(struct sim_inode *n, size_t size);
void sim_write(struct sim_inode *n, size_t off, const void *data, size_t size);

/* NULL: not open. */
struct sim_fd *sim_fd_of(struct sim *sim, int fd);
int sim_new_fd(struct sim *sim, size_t inode);
/*
 * Follow @path from @dirfd up to its last part: the directory and the name,
 * which is empty for the directory itself.
 */
int sim_walk(struct sim *sim, int dirfd, const char *path, size_t *out_dir,
	     char name[NAME_MAX + 1]);
/* The inode at a path, or -errno. */
int64_t sim_resolve(struct sim *sim, int dirfd, const char *path);

/* Into the log of mutations; NULL when nothing is recorded. */
struct sim_op *sim_record(struct sim *sim, enum sim_op_kind kind);
void sim_record_name(struct sim *sim, enum sim_op_kind kind, size_t dir,
		     const char *name, size_t inode);
void sim_record_write(struct sim *sim, size_t inode, size_t off,
		      const void *data, size_t size);
/* A sync: what it covers is durable from the next operation on. */
void sim_record_sync(struct sim *sim, size_t inode, bool is_dir);

#endif
