/*
 * A skip list in an arena.
 *
 * The place of the last insert is remembered as a predecessor for each level
 * (the finger).  A put climbs from level 0 only as far as the finger does not
 * enclose the key, so that keys in ascending order, as manifests have them,
 * cost a comparison or two each instead of a search from the head.
 *
 * Nothing is ever freed before the whole: a replaced value stays in the arena.
 */
#include "config.h"

#include "memtable.h"

#include "error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HEIGHT_MAX 16 /* with a quarter going up: 4^16 entries */
#define CHUNK_SIZE_MIN ((size_t)4 << 10)
#define CHUNK_SIZE_MAX ((size_t)1 << 20)
#define ALIGNMENT sizeof(void *)

struct chunk {
	struct chunk *next;
	uint8_t bytes[];
};

struct node {
	const uint8_t *value; /* NULL: tombstone */
	uint32_t value_size;
	uint32_t ordinal; /* after freeze */
	uint16_t key_size;
	uint8_t height;
	struct node *next[]; /* height of them, then the key */
};

struct memtable {
	atomic_size_t n_refs;
	struct chunk *chunks; /* owned; the newest first */
	uint8_t *free_at; /* in the newest chunk */
	size_t free_size;
	size_t chunk_size; /* of the next chunk */
	size_t size;
	size_t n_entries;
	uint64_t random;
	struct node *head; /* in the arena, with HEIGHT_MAX levels and no key */
	struct node *finger[HEIGHT_MAX]; /* last node before the last key put */
	struct node **ordinals; /* owned; after freeze */
	bool is_frozen;
};

struct memtable_iter {
	struct iter iter; /* first */
	struct memtable *memtable; /* shared(ref) */
	const struct node *node; /* NULL while it stands nowhere */
	bool is_ended;
};

/* @size bytes, aligned; NULL when out of memory. */
static void *arena_take(struct memtable *m, size_t size)
{
	uint8_t *p;

	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (size > m->free_size) {
		size_t n = size > m->chunk_size / 4 ? size : m->chunk_size;
		struct chunk *c = malloc(sizeof(*c) + n);

		if (!c)
			return NULL;

		m->size += size;
		c->next = m->chunks;
		m->chunks = c;
		/* A large piece has a chunk of its own; the open one goes on. */
		if (n != m->chunk_size)
			return c->bytes;

		m->free_at = c->bytes + size;
		m->free_size = n - size;
		if (m->chunk_size < CHUNK_SIZE_MAX)
			m->chunk_size *= 2;
		return c->bytes;
	}

	p = m->free_at;
	m->free_at += size;
	m->free_size -= size;
	m->size += size;
	return p;
}

static const uint8_t *node_key(const struct node *n)
{
	return (const uint8_t *)(n->next + n->height);
}

static int node_compare(const struct node *n, const void *key, size_t key_size)
{
	return table_key_compare(node_key(n), n->key_size, key, key_size);
}

static struct node *node_new(struct memtable *m, unsigned height,
			     const void *key, size_t key_size)
{
	size_t links = height * sizeof(struct node *);
	struct node *n = arena_take(m, sizeof(*n) + links + key_size);

	if (!n)
		return NULL;

	memset(n, 0, sizeof(*n) + links);
	n->height = (uint8_t)height;
	n->key_size = (uint16_t)key_size;
	if (key_size)
		memcpy(n->next + height, key, key_size);
	return n;
}

int memtable_new(struct memtable **out_memtable)
{
	struct memtable *m = calloc(1, sizeof(*m));

	if (!m)
		return INCR_E_NOMEM;

	atomic_init(&m->n_refs, 1);
	m->chunk_size = CHUNK_SIZE_MIN;
	m->random = UINT64_C(0x9e3779b97f4a7c15);
	m->head = node_new(m, HEIGHT_MAX, NULL, 0);
	if (!m->head) {
		memtable_unref(m);
		return INCR_E_NOMEM;
	}

	for (unsigned i = 0; i < HEIGHT_MAX; i++)
		m->finger[i] = m->head;
	*out_memtable = m;
	return 0;
}

struct memtable *memtable_ref(struct memtable *m)
{
	atomic_fetch_add_explicit(&m->n_refs, 1, memory_order_relaxed);
	return m;
}

void memtable_unref(struct memtable *m)
{
	if (!m ||
	    atomic_fetch_sub_explicit(&m->n_refs, 1, memory_order_acq_rel) != 1)
		return;

	while (m->chunks) {
		struct chunk *c = m->chunks;

		m->chunks = c->next;
		free(c);
	}
	free(m->ordinals);
	free(m);
}

static unsigned random_height(struct memtable *m)
{
	unsigned height = 1;

	/* xorshift: evenly spread is all that is needed. */
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	for (uint64_t bits = m->random >> 8;
	     height < HEIGHT_MAX && (bits & 3) == 0; bits >>= 2)
		height++;
	return height;
}

/* The last node at @level with a key < @key, from @n on, which is one. */
static struct node *level_walk(struct node *n, unsigned level, const void *key,
			       size_t key_size)
{
	while (n->next[level] &&
	       node_compare(n->next[level], key, key_size) < 0)
		n = n->next[level];
	return n;
}

/* Put the finger on @key: finger[i] is the last node < @key at each level. */
static void finger_move(struct memtable *m, const void *key, size_t key_size)
{
	struct node *n = m->head;
	unsigned level = 0;

	/* Enclosed at one level is enclosed at all above. */
	for (; level < HEIGHT_MAX; level++) {
		const struct node *next = m->finger[level]->next[level];

		if ((m->finger[level] == m->head ||
		     node_compare(m->finger[level], key, key_size) < 0) &&
		    (!next || node_compare(next, key, key_size) >= 0))
			break;
	}

	if (level < HEIGHT_MAX)
		n = m->finger[level];
	while (level-- > 0) {
		n = level_walk(n, level, key, key_size);
		m->finger[level] = n;
	}
}

/* The first node >= @key, or NULL. */
static const struct node *memtable_search(const struct memtable *m,
					  const void *key, size_t key_size)
{
	struct node *n = m->head;

	for (unsigned level = HEIGHT_MAX; level-- > 0;)
		n = level_walk(n, level, key, key_size);
	return n->next[0];
}

/* A copy of the value in the arena; "" for one of size 0, NULL on failure. */
static const uint8_t *value_copy(struct memtable *m, const void *value,
				 size_t size)
{
	uint8_t *copy;

	if (!size)
		return (const uint8_t *)"";

	copy = arena_take(m, size);
	if (copy)
		memcpy(copy, value, size);
	return copy;
}

static int memtable_insert(struct memtable *m, const void *key, size_t key_size,
			   const uint8_t *value, uint32_t value_size)
{
	unsigned height = random_height(m);
	struct node *n = node_new(m, height, key, key_size);

	if (!n)
		return INCR_E_NOMEM;

	n->value = value;
	n->value_size = value_size;
	for (unsigned i = 0; i < height; i++) {
		n->next[i] = m->finger[i]->next[i];
		m->finger[i]->next[i] = n;
		m->finger[i] = n; /* the next key is likely behind it */
	}
	m->n_entries++;
	return 0;
}

int memtable_put(struct memtable *m, const void *key, size_t key_size,
		 const void *value, size_t value_size)
{
	const uint8_t *copy = NULL;
	struct node *n;

	if (m->is_frozen || key_size > TABLE_KEY_MAX ||
	    value_size > TABLE_VALUE_MAX || (!value && value_size))
		return INCR_E_INVALID;

	if (value) {
		copy = value_copy(m, value, value_size);
		if (!copy)
			return INCR_E_NOMEM;
	}
	finger_move(m, key, key_size);
	n = m->finger[0]->next[0];
	if (!n || node_compare(n, key, key_size) != 0)
		return memtable_insert(m, key, key_size, copy,
				       (uint32_t)value_size);

	n->value = copy;
	n->value_size = (uint32_t)value_size;
	return 0;
}

static struct table_entry node_entry(const struct node *n)
{
	return (struct table_entry){ .key = node_key(n),
				     .key_size = n->key_size,
				     .value = n->value,
				     .value_size = n->value_size,
				     .is_tombstone = !n->value };
}

int memtable_get(const struct memtable *m, const void *key, size_t key_size,
		 struct table_entry *out_entry)
{
	const struct node *n = memtable_search(m, key, key_size);

	if (!n || node_compare(n, key, key_size) != 0)
		return 1;

	*out_entry = node_entry(n);
	return 0;
}

size_t memtable_n_entries(const struct memtable *m)
{
	return m->n_entries;
}

size_t memtable_count(const struct memtable *m, uint8_t first)
{
	const struct node *n = memtable_search(m, &first, 1);
	size_t count = 0;

	for (; n && n->key_size && *node_key(n) == first; n = n->next[0])
		count++;
	return count;
}

size_t memtable_size(const struct memtable *m)
{
	return m->size;
}

int memtable_freeze(struct memtable *m)
{
	struct node **ordinals;
	uint32_t i = 0;

	if (m->is_frozen)
		return 0;

	if (m->n_entries > UINT32_MAX)
		return INCR_E_RANGE;

	ordinals = calloc(m->n_entries + 1, sizeof(struct node *));
	if (!ordinals)
		return INCR_E_NOMEM;

	for (struct node *n = m->head->next[0]; n; n = n->next[0]) {
		n->ordinal = i;
		ordinals[i++] = n;
	}
	m->ordinals = ordinals;
	m->is_frozen = true;
	return 0;
}

static struct memtable_iter *memtable_iter(struct iter *it)
{
	return (struct memtable_iter *)it;
}

static int iter_show(struct memtable_iter *mi, const struct node *n)
{
	mi->node = n;
	mi->is_ended = !n;
	if (!n)
		return 1;

	mi->iter.entry = node_entry(n);
	if (mi->memtable->is_frozen) {
		mi->iter.block = n->ordinal / TABLE_BLOCK_ENTRIES;
		mi->iter.index = n->ordinal % TABLE_BLOCK_ENTRIES;
	}
	return 0;
}

static int memtable_iter_seek(struct iter *it, const void *key, size_t key_size,
			      struct incr_error *err)
{
	struct memtable_iter *mi = memtable_iter(it);
	const struct node *n = mi->node;

	(void)err; /* memory cannot fail */
	/* Often the target is the entry itself or the one after it. */
	if (n && node_compare(n, key, key_size) < 0) {
		n = n->next[0];
		if (!n || node_compare(n, key, key_size) >= 0)
			return iter_show(mi, n);
	}

	return iter_show(mi, memtable_search(mi->memtable, key, key_size));
}

static int memtable_iter_next(struct iter *it, struct incr_error *err)
{
	struct memtable_iter *mi = memtable_iter(it);

	if (mi->is_ended)
		return 1;

	if (!mi->node)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "iterator stands nowhere");

	return iter_show(mi, mi->node->next[0]);
}

static void memtable_iter_free(struct iter *it)
{
	struct memtable_iter *mi = memtable_iter(it);

	memtable_unref(mi->memtable);
	free(mi);
}

int memtable_iter_new(struct memtable *m, struct iter **out_iter)
{
	struct memtable_iter *mi = calloc(1, sizeof(*mi));

	if (!mi)
		return INCR_E_NOMEM;

	mi->iter.seek = memtable_iter_seek;
	mi->iter.next = memtable_iter_next;
	mi->iter.free = memtable_iter_free;
	mi->memtable = memtable_ref(m);
	*out_iter = &mi->iter;
	return 0;
}

int memtable_iter_goto(struct iter *it, uint32_t block, uint32_t index,
		       struct incr_error *err)
{
	struct memtable_iter *mi = memtable_iter(it);
	const struct memtable *m = mi->memtable;
	uint64_t ordinal = (uint64_t)block * TABLE_BLOCK_ENTRIES + index;

	if (!m->is_frozen)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "memtable is not frozen");

	if (index >= TABLE_BLOCK_ENTRIES || ordinal >= m->n_entries)
		return incr_fail(err, INCR_E_RANGE, NULL, NULL,
				 "no entry %u in block %u", index, block);

	return iter_show(mi, m->ordinals[ordinal]);
}
