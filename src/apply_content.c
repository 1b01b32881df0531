/*
 * What a transaction brings in new content, noted in the index under what it
 * holds.  The keys are hashes and come in no order: they are collected and put
 * in order, which costs the memtable a tenth of what one by one would.
 */
#include "config.h"

#include "apply_content.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

#define ENTRIES_MAX ((size_t)1 << 16)

struct apply_content_entry {
	struct state_content_key key;
	uint16_t value_size;
	uint32_t value_off; /* in the values */
};

void apply_content_init(struct apply_content *c,
			const struct manifest_source *m,
			uint64_t frames_position)
{
	const struct content *in = &m->content;

	*c = (struct apply_content){ .container = PACK_LOG,
				     .from = frames_position };
	if (in->n_extents) {
		c->container = in->extents[in->n_extents - 1].container;
		c->from = 0;
	}
}

void apply_content_release(struct apply_content *c)
{
	free(c->entries);
	buf_release(&c->values);
	*c = (struct apply_content){ 0 };
}

/* Not shared with a transaction before, which has noted it. */
static bool is_fresh(const struct apply_content *c, const struct content *of)
{
	if (of->kind == CONTENT_PART)
		return of->container == c->container &&
		       of->frame_off >= c->from;
	return of->n_extents &&
	       of->extents[of->n_extents - 1].container == c->container;
}

static int compare(const void *a, const void *b)
{
	const struct apply_content_entry *x = a, *y = b;
	int order = memcmp(x->key.bytes, y->key.bytes, sizeof(x->key.bytes));

	/* of equal keys the later one is put last, and stays */
	if (order)
		return order;
	return x->value_off < y->value_off ? -1 : x->value_off > y->value_off;
}

int apply_content_put(struct apply_content *c, struct index *ix,
		      struct incr_error *err)
{
	int r = 0;

	if (c->n)
		qsort(c->entries, c->n, sizeof(*c->entries), compare);
	for (size_t i = 0; i < c->n && r == 0; i++) {
		const struct apply_content_entry *e = &c->entries[i];

		r = index_put(ix, e->key.bytes, sizeof(e->key.bytes),
			      c->values.data + e->value_off, e->value_size,
			      err);
	}
	c->n = 0;
	buf_reset(&c->values);
	return r;
}

static bool make_room(struct apply_content *c)
{
	size_t n = c->capacity ? 2 * c->capacity : 64;
	struct apply_content_entry *grown;

	if (c->n < c->capacity)
		return true;
	grown = reallocarray(c->entries, n, sizeof(*grown));
	if (!grown)
		return false;
	c->entries = grown;
	c->capacity = n;
	return true;
}

int apply_content_add(struct apply_content *c, struct index *ix,
		      const struct manifest_entry *e, struct incr_error *err)
{
	size_t off = c->values.size;
	struct apply_content_entry *entry;
	struct state_content_key key;

	if (!is_fresh(c, &e->content) || !state_content_key_of(e, &key))
		return 0;
	if (!make_room(c) || content_encode(&e->content, &c->values) < 0)
		return incr_fail_nomem(err);
	/* a file in so many pieces is written anew rather than shared */
	if (c->values.size - off > UINT16_MAX) {
		c->values.size = off;
		return 0;
	}
	entry = &c->entries[c->n++];
	*entry = (struct apply_content_entry){
		.key = key,
		.value_size = (uint16_t)(c->values.size - off),
		.value_off = (uint32_t)off,
	};
	/* 64 Ki values of less than 64 KiB each: offsets fit 32 bits */
	return c->n < ENTRIES_MAX ? 0 : apply_content_put(c, ix, err);
}
