/*
 * A growable byte buffer, and the cleanup of memory.
 */
#include "config.h"

#include "buf.h"

#include "bytes.h"
#include "incr.h"

#define BUF_CAPACITY_MIN 64

void buf_release(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT;
}

int buf_reserve(struct buf *b, size_t extra)
{
	size_t need, capacity;
	uint8_t *data;

	if (!add_ok(b->size, extra, &need))
		return INCR_E_NOMEM;
	if (need <= b->capacity)
		return 0;

	if (!add_ok(b->capacity, b->capacity / 2, &capacity) || capacity < need)
		capacity = need;
	if (capacity < BUF_CAPACITY_MIN)
		capacity = BUF_CAPACITY_MIN;
	data = realloc(b->data, capacity);
	if (!data)
		return INCR_E_NOMEM;

	b->data = data;
	b->capacity = capacity;
	return 0;
}

int buf_put(struct buf *b, const void *data, size_t size)
{
	int r = buf_reserve(b, size);

	if (r < 0)
		return r;

	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
	return 0;
}

int buf_put_u8(struct buf *b, uint8_t v)
{
	return buf_put(b, &v, 1);
}

int buf_put_u32(struct buf *b, uint32_t v)
{
	uint8_t bytes[4];

	put_u32(bytes, v);
	return buf_put(b, bytes, sizeof(bytes));
}

int buf_put_u64(struct buf *b, uint64_t v)
{
	uint8_t bytes[8];

	put_u64(bytes, v);
	return buf_put(b, bytes, sizeof(bytes));
}

int buf_put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	return buf_put(b, bytes, n);
}

int buf_put_string(struct buf *b, const void *data, size_t size)
{
	size_t old_size = b->size;
	int r = buf_put_varint(b, size);

	if (r == 0)
		r = buf_put(b, data, size);
	if (r < 0)
		b->size = old_size;
	return r;
}

int buf_put_zeros(struct buf *b, size_t size)
{
	int r = buf_reserve(b, size);

	if (r < 0)
		return r;

	if (size)
		memset(b->data + b->size, 0, size);
	b->size += size;
	return 0;
}

const uint8_t *cursor_string(struct cursor *c, size_t *out_size)
{
	uint64_t size = cursor_varint(c);
	const uint8_t *bytes = cursor_bytes(c, size);

	if (bytes)
		*out_size = (size_t)size;
	return bytes;
}

void buf_move(struct buf *to, struct buf *from)
{
	*to = *from;
	*from = BUF_INIT;
}

void cleanup_free(void *p)
{
	free(*(void **)p);
}
