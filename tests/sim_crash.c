/* The states that a power cut can leave of a recorded file system. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "simio_impl.h"

#define SECTOR 512
#define RANDOM_VARIANTS 12

void sim_start(struct sim *sim)
{
	sim_free(sim->start);
	sim->start = sim_copy(sim);
	for (size_t i = 0; i < sim->n_ops; i++)
		free(sim->ops[i].data);
	sim->n_ops = 0;
	sim->n_seen = 0;
	if (sim->seen)
		memset(sim->seen, 0, sim->seen_capacity * sizeof(*sim->seen));
	sim->is_recording = true;
}

static bool is_pending(const struct sim *sim, size_t i, size_t k)
{
	return sim->ops[i].kind != SIM_OP_SYNC && sim->ops[i].durable_at > k;
}

static bool is_name(const struct sim_op *op)
{
	return op->kind == SIM_OP_LINK || op->kind == SIM_OP_UNLINK ||
	       op->kind == SIM_OP_RENAME;
}

static size_t count_pending(const struct sim *sim, size_t k)
{
	size_t n = 0;

	for (size_t i = 0; i < k; i++)
		n += is_pending(sim, i, k);
	return n;
}

static const struct sim_op *last_pending_write(const struct sim *sim, size_t k)
{
	for (size_t i = k; i--;)
		if (is_pending(sim, i, k) && sim->ops[i].kind == SIM_OP_WRITE)
			return &sim->ops[i];
	return NULL;
}

size_t sim_n_variants(const struct sim *sim, size_t k, enum sim_family family)
{
	size_t n = count_pending(sim, k);
	const struct sim_op *last = last_pending_write(sim, k);

	switch (family) {
	case SIM_ALL:
	case SIM_NONE:
	case SIM_UNDELETE:
		return 1;
	case SIM_ALL_BUT_ONE:
	case SIM_ONLY_ONE:
	case SIM_METADATA_ORDERED:
		return n;
	case SIM_TORN_LAST:
		return last ? (last->size + SECTOR - 1) / SECTOR : 0;
	case SIM_ZERO_TAIL:
	case SIM_GARBAGE:
		return last != NULL;
	case SIM_RANDOM:
		return n > 1 ? RANDOM_VARIANTS : 0;
	default:
		return 0;
	}
}

/* How much of one operation reaches the disk. */
enum fate { FATE_GONE, FATE_WHOLE, FATE_TORN, FATE_ZERO, FATE_GARBAGE };

struct crash {
	size_t k, x;
	enum sim_family family;
	uint64_t seed;
	const struct sim_op *last_write;
	size_t nth; /* of the pending operations */
};

static enum fate fate_of(struct crash *c, const struct sim_op *op)
{
	size_t nth = c->nth++;

	switch (c->family) {
	case SIM_NONE:
		return FATE_GONE;
	case SIM_ALL_BUT_ONE:
		return nth == c->x ? FATE_GONE : FATE_WHOLE;
	case SIM_ONLY_ONE:
		return nth == c->x ? FATE_WHOLE : FATE_GONE;
	case SIM_METADATA_ORDERED:
		if (is_name(op))
			return nth <= c->x ? FATE_WHOLE : FATE_GONE;
		return sim_random(&c->seed) & 1 ? FATE_WHOLE : FATE_GONE;
	case SIM_TORN_LAST:
		return op == c->last_write ? FATE_TORN : FATE_WHOLE;
	case SIM_ZERO_TAIL:
		return op->kind == SIM_OP_WRITE ? FATE_ZERO : FATE_WHOLE;
	case SIM_GARBAGE:
		return op->kind == SIM_OP_WRITE ? FATE_GARBAGE : FATE_WHOLE;
	case SIM_RANDOM:
		return (enum fate)(sim_random(&c->seed) %
				   3); /* gone, whole, torn */
	case SIM_UNDELETE:
		return op->kind == SIM_OP_UNLINK || op->kind == SIM_OP_RENAME ?
			       FATE_GONE :
			       FATE_WHOLE;
	default:
		return FATE_WHOLE;
	}
}

static void apply_write(struct sim *to, struct crash *c,
			const struct sim_op *op, enum fate fate)
{
	struct sim_inode *n = &to->inodes[op->inode];
	size_t size = op->size;
	uint8_t *bytes;

	if (fate == FATE_WHOLE) {
		sim_write(n, op->off, op->data, size);
		return;
	}
	if (fate == FATE_TORN) {
		size_t cut = c->family == SIM_TORN_LAST ?
				     c->x * SECTOR :
				     sim_random(&c->seed) % (size + 1);

		sim_write(n, op->off, op->data, cut < size ? cut : size);
		return;
	}
	bytes = sim_alloc(NULL, size);
	memset(bytes, 0, size);
	for (size_t i = 0; fate == FATE_GARBAGE && i < size; i++)
		bytes[i] = (uint8_t)sim_random(&c->seed);
	sim_write(n, op->off, bytes, size);
	free(bytes);
}

static void apply(struct sim *to, struct crash *c, const struct sim_op *op,
		  enum fate fate)
{
	if (fate == FATE_GONE)
		return;
	switch (op->kind) {
	case SIM_OP_WRITE:
		apply_write(to, c, op, fate);
		break;
	case SIM_OP_TRUNCATE:
		sim_resize(&to->inodes[op->inode], op->size);
		break;
	case SIM_OP_LINK:
		sim_set_entry(to, op->dir, op->name, op->inode);
		break;
	case SIM_OP_UNLINK:
		sim_remove_entry(to, op->dir, op->name);
		break;
	case SIM_OP_RENAME:
		sim_remove_entry(to, op->dir, op->name);
		sim_set_entry(to, op->dir2, op->name2, op->inode);
		break;
	case SIM_OP_SYNC:
		break;
	}
}

/* Inodes that were made after the start keep their numbers, whatever became of their names. */
static void add_inodes(struct sim *to, const struct sim *from)
{
	while (to->n_inodes < from->n_inodes) {
		const struct sim_inode *n = &from->inodes[to->n_inodes];

		(void)sim_new_inode(to, n->kind, n->mode);
	}
}

static uint64_t hash_tree(const struct sim *sim, size_t inode, uint64_t seed)
{
	const struct sim_inode *n = &sim->inodes[inode];
	uint64_t sum = hash64_two(&seed, sizeof(seed), n->data, n->size);

	/* entries in any order: a sum */
	for (size_t i = 0; i < n->n_entries; i++)
		sum += hash_tree(sim, n->entries[i].inode,
				 hash64(n->entries[i].name,
					strlen(n->entries[i].name)) +
					 seed);
	return sum * UINT64_C(0x9e3779b97f4a7c15) + n->kind;
}

/* True the first time. */
static bool is_new(struct sim *sim, uint64_t hash)
{
	size_t i;

	if (sim->n_seen * 2 >= sim->seen_capacity) {
		size_t capacity = sim->seen_capacity ? 2 * sim->seen_capacity :
						       1024;
		uint64_t *old = sim->seen;
		size_t n = sim->seen_capacity;

		sim->seen = sim_alloc(NULL, capacity * sizeof(*sim->seen));
		memset(sim->seen, 0, capacity * sizeof(*sim->seen));
		sim->seen_capacity = capacity;
		sim->n_seen = 0;
		for (size_t j = 0; j < n; j++)
			if (old[j])
				(void)is_new(sim, old[j]);
		free(old);
	}
	hash = hash ? hash : 1;
	for (i = hash % sim->seen_capacity; sim->seen[i];
	     i = (i + 1) % sim->seen_capacity)
		if (sim->seen[i] == hash)
			return false;
	sim->seen[i] = hash;
	sim->n_seen++;
	return true;
}

struct sim *sim_crash(struct sim *sim, size_t k, enum sim_family family,
		      size_t x)
{
	struct crash c = { .k = k,
			   .x = x,
			   .family = family,
			   .seed = k * 1000003 + x * 31 + (size_t)family,
			   .last_write = last_pending_write(sim, k) };
	struct sim *to = sim_copy(sim->start);

	add_inodes(to, sim);
	for (size_t i = 0; i < k; i++)
		apply(to, &c, &sim->ops[i],
		      is_pending(sim, i, k) ? fate_of(&c, &sim->ops[i]) :
					      FATE_WHOLE);
	to->seed = sim->seed + k;
	to->clock = sim->clock + 1000000000;
	if (!is_new(sim, hash_tree(to, 0, 0))) {
		sim_free(to);
		return NULL;
	}
	return to;
}

static int export_inode(const struct sim *sim, size_t inode, int dirfd,
			const char *name)
{
	const struct sim_inode *n = &sim->inodes[inode];
	int fd, r = 0;

	if (n->kind == IO_FILE) {
		fd = openat(dirfd, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, n->data, n->size) != (ssize_t)n->size)
			r = -1;
		return fd < 0 || close(fd) < 0 ? -1 : r;
	}
	if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (size_t i = 0; r == 0 && i < n->n_entries; i++)
		r = export_inode(sim, n->entries[i].inode, fd,
				 n->entries[i].name);
	close(fd);
	return r;
}

int sim_export(struct sim *sim, const char *directory)
{
	return export_inode(sim, 0, AT_FDCWD, directory);
}
