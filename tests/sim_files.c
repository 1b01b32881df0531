/* Looking at the files of a file system in memory, and changing them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simio_impl.h"

#define NONE SIZE_MAX

struct sim *sim_copy(const struct sim *from)
{
	struct sim *to = sim_new();

	to->seed = from->seed;
	to->clock = from->clock;
	for (size_t i = 0; i < from->n_inodes; i++) {
		const struct sim_inode *n = &from->inodes[i];

		if (i)
			(void)sim_new_inode(to, n->kind, n->mode);
		to->inodes[i].mode = n->mode;
		to->inodes[i].time = n->time;
		sim_write(&to->inodes[i], 0, n->data, n->size);
		for (size_t j = 0; j < n->n_entries; j++)
			sim_set_entry(to, i, n->entries[j].name,
				      n->entries[j].inode);
	}
	return to;
}

size_t sim_n_open(const struct sim *sim)
{
	size_t n = 0;

	for (size_t i = 0; i < sim->n_fds; i++)
		n += sim->fds[i].is_open;
	return n;
}

/* The directory above @path, made if it is not there, and the last part of @path. */
static size_t parent_of(struct sim *sim, const char *path, bool makes,
			const char **out_name)
{
	char part[NAME_MAX + 1];
	size_t dir = 0;

	for (;;) {
		const char *slash = strchr(path, '/');
		struct sim_entry *e;
		size_t inode;

		*out_name = path;
		if (!slash)
			return dir;
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		path = slash + 1;
		e = part[0] ? sim_find_entry(sim, dir, part) : NULL;
		if (e) {
			dir = e->inode;
			continue;
		}
		if (!part[0])
			continue;
		if (!makes)
			return NONE;
		inode = sim_new_inode(sim, IO_DIR, 0755);
		sim_set_entry(sim, dir, part, inode);
		dir = inode;
	}
}

static struct sim_inode *find(struct sim *sim, const char *path)
{
	const char *name;
	size_t dir = parent_of(sim, path, false, &name);
	struct sim_entry *e = dir == NONE ? NULL :
					    sim_find_entry(sim, dir, name);

	return e ? &sim->inodes[e->inode] : NULL;
}

uint8_t *sim_file(struct sim *sim, const char *path, size_t *out_size)
{
	struct sim_inode *n = find(sim, path);

	if (!n || n->kind != IO_FILE)
		return NULL;
	if (!n->data) /* empty: a place that is not NULL */
		n->data = sim_alloc(NULL, 0);
	*out_size = n->size;
	return n->data;
}

void sim_set_file(struct sim *sim, const char *path, const void *data,
		  size_t size)
{
	const char *name;
	struct sim_inode *n = find(sim, path);

	if (!n) {
		size_t dir = parent_of(sim, path, true, &name);
		size_t inode = sim_new_inode(sim, IO_FILE, 0644);

		sim_set_entry(sim, dir, name, inode);
		n = &sim->inodes[inode];
	}
	sim_resize(n, 0);
	sim_write(n, 0, data, size);
}

void sim_make_file(struct sim *sim, const char *path, size_t size,
		   size_t n_random, uint64_t seed)
{
	uint8_t *data = sim_alloc(NULL, size);

	for (size_t i = 0; i < size; i++) {
		uint64_t random = sim_random(&seed);

		data[i] = (uint8_t)(i < n_random ? random : i / 1000);
	}
	sim_set_file(sim, path, data, size);
	free(data);
}

void sim_remove_file(struct sim *sim, const char *path)
{
	const char *name;
	size_t dir = parent_of(sim, path, false, &name);

	if (dir != NONE)
		sim_remove_entry(sim, dir, name);
}

void sim_each_file(struct sim *sim, const char *path, sim_file_fn fn,
		   void *closure)
{
	struct sim_inode *d = find(sim, path);
	char below[PATH_MAX];

	if (!d || d->kind != IO_DIR)
		return;
	/* from the last one on, whose place a removed one leaves to it */
	for (size_t i = d->n_entries; i--;) {
		const struct sim_entry *e = &d->entries[i];

		snprintf(below, sizeof(below), "%s/%s", path, e->name);
		if (sim->inodes[e->inode].kind == IO_DIR)
			sim_each_file(sim, below, fn, closure);
		else
			fn(closure, below);
	}
}
