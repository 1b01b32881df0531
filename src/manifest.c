/*
 * One manifest entry: encode, decode, check.
 */
#include "config.h"

#include "manifest.h"

#include "bytes.h"
#include "name.h"

#include <string.h>

#define MODE_MASK 0777u

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

static int encode_put(const struct manifest_entry *e, struct buf *out)
{
	int r = buf_put_varint(out, e->mode);

	if (r == 0)
		r = buf_put_varint(out, zigzag(e->mtime_ns));
	if (r == 0)
		r = buf_put(out, e->hash, sizeof(e->hash));
	if (r == 0)
		r = content_encode(&e->content, out);
	return r;
}

int manifest_encode(const struct manifest_entry *e, struct buf *out)
{
	size_t start = out->size;
	int r = buf_put_u8(out, (uint8_t)e->op);

	if (r == 0)
		r = buf_put_string(out, e->path, e->path_length);
	if (r == 0 && e->op == MANIFEST_PUT)
		r = encode_put(e, out);
	if (r < 0)
		out->size = start;
	return r;
}

static int decode_put(struct cursor *from, struct manifest_entry *e)
{
	uint64_t mode = cursor_varint(from);
	uint64_t mtime = cursor_varint(from);
	const uint8_t *hash = cursor_bytes(from, sizeof(e->hash));

	if (!hash || mode > MODE_MASK)
		return INCR_E_CORRUPT;

	e->mode = (uint32_t)mode;
	e->mtime_ns = unzigzag(mtime);
	memcpy(e->hash, hash, sizeof(e->hash));
	return content_decode(from, &e->content);
}

int manifest_decode(struct cursor *from, struct manifest_entry *out)
{
	uint8_t op = cursor_u8(from);
	struct manifest_entry e = { .op = MANIFEST_REMOVE };
	const uint8_t *path;
	int r;

	path = cursor_string(from, &e.path_length);
	if (from->is_bad || !path)
		return INCR_E_CORRUPT;

	e.path = (const char *)path;
	r = name_check_path(e.path, e.path_length, NULL);
	if (r < 0)
		return INCR_E_CORRUPT;

	if (op == MANIFEST_PUT) {
		e.op = MANIFEST_PUT;
		r = decode_put(from, &e);
		if (r < 0)
			return r;
	} else if (op != MANIFEST_REMOVE) {
		return INCR_E_CORRUPT;
	}
	*out = e;
	return 0;
}

void manifest_entry_release(struct manifest_entry *e)
{
	content_release(&e->content);
}
