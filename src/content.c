/*
 * Content descriptors: encode, decode and derive.  Pure; every number that is
 * decoded is checked against the limits of docs/format.md here, so that
 * readers need not do it again.
 */
#include "config.h"

#include "content.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_SIZE_MIN 4096
#define INDEX_ENTRY_SIZE 16
#define INDEX_FRAME_STORED \
	(FRAME_HEADER_SIZE + CONTENT_INDEX_ENTRIES * INDEX_ENTRY_SIZE)
#define EXTENT_SIZE_MIN 5 /* bytes of the shortest encoded extent */

void content_release(struct content *c)
{
	free(c->extents);
	*c = (struct content){ .kind = CONTENT_EMPTY };
}

bool content_equals(const struct content *a, const struct content *b)
{
	if (a->kind != b->kind || a->size != b->size)
		return false;
	if (a->kind == CONTENT_PART)
		return a->container == b->container &&
		       a->frame_off == b->frame_off &&
		       a->part_off == b->part_off;
	return a->kind == CONTENT_EMPTY ||
	       (a->frame_size == b->frame_size &&
		a->n_extents == b->n_extents &&
		!memcmp(a->extents, b->extents,
			a->n_extents * sizeof(*a->extents)));
}

int content_copy(const struct content *from, struct content *out)
{
	struct content copy = *from;

	if (from->n_extents > 0) {
		copy.extents = calloc(from->n_extents, sizeof(*copy.extents));
		if (!copy.extents)
			return INCR_E_NOMEM;
		memcpy(copy.extents, from->extents,
		       from->n_extents * sizeof(*copy.extents));
	}
	*out = copy;
	return 0;
}

int content_rebase(struct content *c, uint64_t frames_position)
{
	uint64_t off;

	if (c->kind != CONTENT_PART || c->container != PACK_SELF)
		return 0;

	if (!add_ok(c->frame_off, frames_position, &off))
		return INCR_E_CORRUPT;
	c->container = PACK_LOG;
	c->frame_off = off;
	return 0;
}

int content_add_extent(struct content *c, const struct content_extent *extent)
{
	struct content_extent *grown;

	if (c->n_extents >= CONTENT_EXTENTS_MAX)
		return INCR_E_RANGE;

	/* Copies have no spare room, so none is ever assumed. */
	grown = realloc(c->extents, (c->n_extents + 1) * sizeof(*grown));
	if (!grown)
		return INCR_E_NOMEM;
	c->extents = grown;
	c->extents[c->n_extents++] = *extent;
	return 0;
}

int content_prefix(const struct content *from, uint64_t n_frames, uint64_t size,
		   struct content *out)
{
	struct content c = {
		.kind = CONTENT_EXTENTS,
		.size = size,
		.front = from->front,
		.frame_size = from->frame_size,
	};
	uint64_t left = n_frames;

	for (size_t i = 0; i < from->n_extents && left > 0; i++) {
		struct content_extent e = from->extents[i];
		int r;

		if (e.n_frames > left)
			e.n_frames = left;
		left -= e.n_frames;
		r = content_add_extent(&c, &e);
		if (r < 0) {
			content_release(&c);
			return r;
		}
	}
	if (left > 0) {
		content_release(&c);
		return INCR_E_RANGE;
	}
	*out = c;
	return 0;
}

static unsigned log2_of(uint32_t power)
{
	return (unsigned)__builtin_ctz(power);
}

static int encode_part(const struct content *c, struct buf *out)
{
	const uint64_t fields[] = { c->size,	     c->container, c->frame_off,
				    c->frame_stored, c->frame_raw, c->part_off };
	int r = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && r == 0;
	     i++)
		r = buf_put_varint(out, fields[i]);
	return r;
}

static int encode_extents(const struct content *c, struct buf *out)
{
	int r = buf_put_varint(out, c->size);

	if (r == 0)
		r = buf_put_varint(out, log2_of(c->frame_size));
	if (r == 0)
		r = buf_put_varint(out, c->n_extents);
	for (size_t i = 0; i < c->n_extents && r == 0; i++) {
		const struct content_extent *e = &c->extents[i];
		const uint64_t fields[] = { e->container, e->index_off,
					    e->index_n, e->first, e->n_frames };

		for (size_t k = 0; k < 5 && r == 0; k++)
			r = buf_put_varint(out, fields[k]);
	}
	if (r == 0 && c->front)
		r = buf_put_u64(out, c->front);
	return r;
}

/* The number that the bytes begin with. */
static enum content_kind kind_on_disk(const struct content *c)
{
	return c->kind == CONTENT_EXTENTS && c->front ? CONTENT_FRONTED :
							c->kind;
}

int content_encode(const struct content *c, struct buf *out)
{
	size_t start = out->size;
	int r = buf_put_varint(out, kind_on_disk(c));

	if (r == 0 && c->kind == CONTENT_PART)
		r = encode_part(c, out);
	else if (r == 0 && c->kind == CONTENT_EXTENTS)
		r = encode_extents(c, out);
	if (r < 0)
		out->size = start;
	return r;
}

/* A place where a frame of @stored bytes can stand. */
static bool is_place(uint64_t container, uint64_t off, uint64_t stored)
{
	uint64_t end;

	if (!add_ok(off, stored, &end) || end > INT64_MAX)
		return false;
	return container == PACK_LOG || container == PACK_SELF ||
	       off >= PACK_HEADER_SIZE;
}

/* A number that must fit 32 bits; larger ones make the cursor bad. */
static uint32_t take_u32(struct cursor *from)
{
	uint64_t v = cursor_varint(from);

	if (v > UINT32_MAX)
		from->is_bad = true;
	return (uint32_t)v;
}

static int decode_part(struct cursor *from, struct content *c)
{
	c->size = cursor_varint(from);
	c->container = cursor_varint(from);
	c->frame_off = cursor_varint(from);
	c->frame_stored = take_u32(from);
	c->frame_raw = take_u32(from);
	c->part_off = take_u32(from);
	if (from->is_bad)
		return INCR_E_CORRUPT;

	if (c->size == 0 || c->frame_raw > FRAME_RAW_MAX ||
	    c->part_off >= c->frame_raw || c->size > c->frame_raw - c->part_off)
		return INCR_E_CORRUPT;
	if (c->frame_stored <= FRAME_HEADER_SIZE ||
	    c->frame_stored > FRAME_HEADER_SIZE + c->frame_raw ||
	    !is_place(c->container, c->frame_off, c->frame_stored))
		return INCR_E_CORRUPT;
	return 0;
}

static bool is_extent(const struct content_extent *e)
{
	uint64_t end, n_index, size;

	if (e->n_frames == 0 || e->container == PACK_LOG ||
	    e->container == PACK_SELF)
		return false;
	if (!add_ok(e->first, e->n_frames, &end) || end > e->index_n)
		return false;
	if (!add_ok(e->index_n, (uint64_t)CONTENT_INDEX_ENTRIES - 1, &n_index))
		return false;

	n_index /= CONTENT_INDEX_ENTRIES;
	return mul_ok(n_index, (uint64_t)INDEX_FRAME_STORED, &size) &&
	       is_place(e->container, e->index_off, size);
}

static int decode_extent(struct cursor *from, struct content_extent *e)
{
	e->container = cursor_varint(from);
	e->index_off = cursor_varint(from);
	e->index_n = cursor_varint(from);
	e->first = cursor_varint(from);
	e->n_frames = cursor_varint(from);
	return !from->is_bad && is_extent(e) ? 0 : INCR_E_CORRUPT;
}

static int decode_extents(struct cursor *from, struct content *c)
{
	uint64_t shift, n, n_frames = 0;

	c->size = cursor_varint(from);
	shift = cursor_varint(from);
	n = cursor_varint(from);
	if (from->is_bad || c->size == 0 || shift < 12 || shift > 20)
		return INCR_E_CORRUPT;
	if (n == 0 || n > CONTENT_EXTENTS_MAX ||
	    n > cursor_left(from) / EXTENT_SIZE_MIN)
		return INCR_E_CORRUPT;

	c->frame_size = UINT32_C(1) << shift;
	c->extents = calloc(n, sizeof(*c->extents));
	if (!c->extents)
		return INCR_E_NOMEM;
	for (c->n_extents = 0; c->n_extents < n; c->n_extents++) {
		struct content_extent *e = &c->extents[c->n_extents];

		if (decode_extent(from, e) < 0 ||
		    !add_ok(n_frames, e->n_frames, &n_frames))
			return INCR_E_CORRUPT;
	}
	if (n_frames != (c->size - 1) / c->frame_size + 1)
		return INCR_E_CORRUPT;
	return 0;
}

/* 0 is the front of kind 2: each descriptor has one form. */
static int decode_front(struct cursor *from, struct content *c)
{
	c->front = cursor_u64(from);
	return from->is_bad || !c->front ? INCR_E_CORRUPT : 0;
}

int content_decode(struct cursor *from, struct content *out)
{
	struct content c = { .kind = CONTENT_EMPTY };
	uint64_t kind = cursor_varint(from);
	int r = from->is_bad ? INCR_E_CORRUPT : 0;

	if (r == 0 && kind == CONTENT_PART) {
		c.kind = CONTENT_PART;
		r = decode_part(from, &c);
	} else if (r == 0 &&
		   (kind == CONTENT_EXTENTS || kind == CONTENT_FRONTED)) {
		c.kind = CONTENT_EXTENTS;
		r = decode_extents(from, &c);
		if (r == 0 && kind == CONTENT_FRONTED)
			r = decode_front(from, &c);
	} else if (kind != CONTENT_EMPTY) {
		r = INCR_E_CORRUPT;
	}
	if (r < 0) {
		content_release(&c);
		return r;
	}
	*out = c;
	return 0;
}
