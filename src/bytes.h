/*
 * Little-endian integers in byte strings, and a cursor that never reads past
 * the end of untrusted bytes.  The one byte-order helper of the project.
 */
#ifndef INCR_BYTES_H
#define INCR_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
	put_u16(p, (uint16_t)v);
	put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
	put_u32(p, (uint32_t)v);
	put_u32(p + 4, (uint32_t)(v >> 32));
}

/* Big-endian, for keys that must sort as numbers. */
static inline void put_be64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (56 - 8 * i));
}

static inline uint16_t get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | (uint16_t)p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *p)
{
	return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

static inline uint64_t get_be64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

/* Checked sums and products of untrusted numbers: false on overflow. */
#define add_ok(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define mul_ok(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))

/*
 * A reader over borrowed bytes.  After the first read that does not fit,
 * is_bad is set and every later read gives zero, so that a parser checks once,
 * at its end (and before it allocates by a count).
 */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

/* @data may be NULL if @size is 0. */
static inline struct cursor cursor_over(const void *data, size_t size)
{
	const uint8_t *at = data;

	return (struct cursor){ .at = at, .end = size > 0 ? at + size : at };
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next @size bytes, borrowed, or NULL. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t size)
{
	const uint8_t *p = c->at;

	if (c->is_bad || size > cursor_left(c)) {
		c->is_bad = true;
		return NULL;
	}
	c->at += size;
	return p;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 1);

	return p ? p[0] : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 2);

	return p ? get_u16(p) : 0;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 4);

	return p ? get_u32(p) : 0;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 8);

	return p ? get_u64(p) : 0;
}

/* An unsigned LEB128 number of at most 64 bits; the shortest form only. */
static inline uint64_t cursor_varint(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (c->is_bad || (shift == 63 && byte > 1) || (shift && !byte))
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->is_bad = true;
	return 0;
}

#endif
