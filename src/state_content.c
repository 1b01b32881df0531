/*
 * Stored content by what it holds, so that a file is found again at another
 * path, in another transaction and in another dataset.
 *
 * The key is a few bytes of a hash.  Among 1,000,000 contents two in two
 * million share one, and then the older one is forgotten; more bytes would
 * cost more in every table than that ever could.
 */
#include "config.h"

#include "state.h"

#include <string.h>

#include "hash.h"

static struct state_content_key key_of_bytes(const uint8_t *print)
{
	struct state_content_key k = { { STATE_CONTENT } };

	memcpy(k.bytes + 1, print, sizeof(k.bytes) - 1);
	return k;
}

struct state_content_key state_content_small(const uint8_t hash[INCR_HASH_SIZE])
{
	return key_of_bytes(hash);
}

struct state_content_key state_content_large(uint64_t front, uint64_t size)
{
	uint8_t both[16], print[8];

	put_u64(both, front);
	put_u64(both + 8, size);
	put_be64(print, hash64(both, sizeof(both)));
	return key_of_bytes(print);
}

bool state_content_key_of(const struct manifest_entry *e,
			  struct state_content_key *out_key)
{
	const struct content *c = &e->content;

	if (e->op != MANIFEST_PUT || c->size < CONTENT_SHARE_MIN)
		return false;
	if (c->kind == CONTENT_PART)
		*out_key = state_content_small(e->hash);
	else if (c->kind == CONTENT_EXTENTS && c->front)
		*out_key = state_content_large(c->front, c->size);
	else
		return false;
	return true;
}

int state_find_content(struct index *ix, struct state_content_key key,
		       uint64_t size, struct content *out,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct content c;
	struct cursor from;
	int r = index_peek(ix, key.bytes, sizeof(key.bytes), &value, err);

	if (r)
		return r;
	from = cursor_over(value.data, value.size);
	if (content_decode(&from, &c) < 0)
		return 1;
	if (c.size != size || cursor_left(&from)) {
		content_release(&c);
		return 1;
	}
	*out = c;
	return 0;
}
