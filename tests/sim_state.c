/* The recording file system in memory: live state, and the log of mutations. */
#include "config.h"

#include "simio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simio_impl.h"

#define FD_BASE 1000

/* Out of memory in a test ends the test. */
void *sim_alloc(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		abort();
	return p;
}

uint64_t sim_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ---- inodes and names ---- */

size_t sim_new_inode(struct sim *sim, enum io_kind kind, uint32_t mode)
{
	struct sim_inode *n;

	sim->inodes = sim_alloc(sim->inodes,
				(sim->n_inodes + 1) * sizeof(*sim->inodes));
	n = &sim->inodes[sim->n_inodes];
	*n = (struct sim_inode){ .kind = kind, .mode = mode };
	n->time = ++sim->clock;
	return sim->n_inodes++;
}

struct sim_entry *sim_find_entry(struct sim *sim, size_t dir, const char *name)
{
	struct sim_inode *d = &sim->inodes[dir];

	for (size_t i = 0; i < d->n_entries; i++)
		if (!strcmp(d->entries[i].name, name))
			return &d->entries[i];
	return NULL;
}

void sim_set_entry(struct sim *sim, size_t dir, const char *name, size_t inode)
{
	struct sim_inode *d = &sim->inodes[dir];
	struct sim_entry *e = sim_find_entry(sim, dir, name);

	if (!e) {
		d->entries = sim_alloc(d->entries, (d->n_entries + 1) *
							   sizeof(*d->entries));
		e = &d->entries[d->n_entries++];
		e->name = strdup(name);
	}
	e->inode = inode;
}

void sim_remove_entry(struct sim *sim, size_t dir, const char *name)
{
	struct sim_inode *d = &sim->inodes[dir];
	struct sim_entry *e = sim_find_entry(sim, dir, name);

	if (!e)
		return;
	free(e->name);
	*e = d->entries[--d->n_entries];
}

void sim_resize(struct sim_inode *n, size_t size)
{
	if (size > n->capacity) {
		n->capacity = size * 2;
		n->data = sim_alloc(n->data, n->capacity);
	}
	if (size > n->size)
		memset(n->data + n->size, 0, size - n->size);
	n->size = size;
}

void sim_write(struct sim_inode *n, size_t off, const void *data, size_t size)
{
	if (off + size > n->size)
		sim_resize(n, off + size);
	if (size)
		memcpy(n->data + off, data, size);
}

/* ---- descriptors and paths ---- */

struct sim_fd *sim_fd_of(struct sim *sim, int fd)
{
	size_t i = (size_t)(fd - FD_BASE);

	if (fd < FD_BASE || i >= sim->n_fds || !sim->fds[i].is_open)
		return NULL;
	return &sim->fds[i];
}

int sim_new_fd(struct sim *sim, size_t inode)
{
	size_t i = 0;

	while (i < sim->n_fds && sim->fds[i].is_open)
		i++;
	if (i == sim->n_fds) {
		sim->fds = sim_alloc(sim->fds, (i + 1) * sizeof(*sim->fds));
		sim->n_fds++;
	}
	sim->fds[i] = (struct sim_fd){ .is_open = true, .inode = inode };
	return FD_BASE + (int)i;
}

int sim_walk(struct sim *sim, int dirfd, const char *path, size_t *out_dir,
	     char name[NAME_MAX + 1])
{
	struct sim_fd *d = dirfd == AT_FDCWD ? NULL : sim_fd_of(sim, dirfd);
	size_t dir = d ? d->inode : 0;

	if (dirfd != AT_FDCWD && !d && *path != '/')
		return -EBADF;
	name[0] = '\0';
	for (const char *p = path; *p;) {
		size_t length = strcspn(p, "/");

		if (name[0]) {
			struct sim_entry *e = sim_find_entry(sim, dir, name);

			if (!e)
				return -ENOENT;
			if (sim->inodes[e->inode].kind != IO_DIR)
				return -ENOTDIR;
			dir = e->inode;
			name[0] = '\0';
		}
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		/* a tree of known shape: ".." is only asked for the root's own name */
		if (length && strncmp(p, ".", length) != 0 &&
		    strncmp(p, "..", length) != 0) {
			memcpy(name, p, length);
			name[length] = '\0';
		}
		p += length;
		while (*p == '/')
			p++;
	}
	*out_dir = dir;
	return 0;
}

int64_t sim_resolve(struct sim *sim, int dirfd, const char *path)
{
	char name[NAME_MAX + 1];
	struct sim_entry *e;
	size_t dir;
	int r = sim_walk(sim, dirfd, path, &dir, name);

	if (r < 0)
		return r;
	if (!name[0])
		return (int64_t)dir;
	if (sim->inodes[dir].kind != IO_DIR)
		return -ENOTDIR;
	e = sim_find_entry(sim, dir, name);
	return e ? (int64_t)e->inode : -ENOENT;
}

/* ---- recording ---- */

struct sim_op *sim_record(struct sim *sim, enum sim_op_kind kind)
{
	struct sim_op *op;

	if (!sim->is_recording)
		return NULL;
	sim->ops = sim_alloc(sim->ops, (sim->n_ops + 1) * sizeof(*sim->ops));
	op = &sim->ops[sim->n_ops++];
	*op = (struct sim_op){ .kind = kind,
			       .inode = SIZE_MAX,
			       .dir = SIZE_MAX,
			       .dir2 = SIZE_MAX,
			       .durable_at = SIZE_MAX };
	return op;
}

void sim_record_name(struct sim *sim, enum sim_op_kind kind, size_t dir,
		     const char *name, size_t inode)
{
	struct sim_op *op = sim_record(sim, kind);

	if (!op)
		return;
	op->dir = dir;
	op->inode = inode;
	snprintf(op->name, sizeof(op->name), "%s", name);
}

void sim_record_write(struct sim *sim, size_t inode, size_t off,
		      const void *data, size_t size)
{
	struct sim_op *op = sim_record(sim, SIM_OP_WRITE);

	if (!op)
		return;
	op->inode = inode;
	op->off = off;
	op->size = size;
	op->data = sim_alloc(NULL, size);
	memcpy(op->data, data, size);
}

void sim_record_sync(struct sim *sim, size_t inode, bool is_dir)
{
	if (!sim_record(sim, SIM_OP_SYNC))
		return;
	for (size_t i = 0; i + 1 < sim->n_ops; i++) {
		struct sim_op *op = &sim->ops[i];
		bool is_data = op->kind == SIM_OP_WRITE ||
			       op->kind == SIM_OP_TRUNCATE;
		bool is_covered = is_dir ?
					  !is_data && op->kind != SIM_OP_SYNC &&
						  (op->dir == inode ||
						   op->dir2 == inode) :
					  is_data && op->inode == inode;

		if (is_covered && op->durable_at == SIZE_MAX)
			op->durable_at = sim->n_ops;
	}
}
