/*
 * A growable byte buffer, and the cleanup attributes: the only way memory is
 * released in src/ (descriptors: io.h).
 */
#ifndef INCR_BUF_H
#define INCR_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Owned bytes.  All puts return 0 or INCR_E_NOMEM; a failed put leaves the buffer as it was. */
struct buf {
	uint8_t *data;
	size_t size;
	size_t capacity;
};

#define BUF_INIT ((struct buf){ NULL, 0, 0 })

void buf_release(struct buf *b);
int buf_reserve(struct buf *b, size_t extra);
int buf_put(struct buf *b, const void *data, size_t size);
int buf_put_u8(struct buf *b, uint8_t v);
int buf_put_u32(struct buf *b, uint32_t v);
int buf_put_u64(struct buf *b, uint64_t v);
int buf_put_varint(struct buf *b, uint64_t v);
/* varint length, then the bytes; the counterpart of cursor_string(). */
int buf_put_string(struct buf *b, const void *data, size_t size);
int buf_put_zeros(struct buf *b, size_t size);

/* Length of a string written by buf_put_string() and its borrowed bytes; NULL when bad. */
struct cursor;
const uint8_t *cursor_string(struct cursor *c, size_t *out_size);

/* Move: @to must be empty; @from is empty afterwards. */
void buf_move(struct buf *to, struct buf *from);

static inline void buf_reset(struct buf *b)
{
	b->size = 0;
}

void cleanup_free(void *p);

#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))
#define _cleanup_buf_ __attribute__((cleanup(buf_release)))

#endif
