/*
 * The checkpoint of the index, as a file: docs/format.md, "The index".
 */
#include "config.h"

#include "index_files.h"

#include <string.h>

#include "bytes.h"
#include "error.h"
#include "hash.h"

#define CURRENT_MAGIC "INCRINDX"
#define CURRENT_VERSION 3
#define CURRENT_HEAD_SIZE (8 + 4 + 4 + 8 + 8 + 4 * 8 + 5 * 8)

static int current_encode(const struct index_current *c, uint64_t tag,
			  struct buf *out)
{
	const uint64_t numbers[] = {
		tag,
		c->id,
		c->position.position,
		c->position.sequence,
		c->position.last_position,
		c->position.last_hash,
		c->counters.next_txn,
		c->counters.next_build,
		c->counters.next_dataset,
		c->counters.next_branch,
		c->counters.next_line,
	};

	if (buf_put(out, CURRENT_MAGIC, 8) < 0 ||
	    buf_put_u32(out, CURRENT_VERSION) < 0 ||
	    buf_put_u32(out, (uint32_t)c->n_tables) < 0)
		return INCR_E_NOMEM;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (buf_put_u64(out, numbers[i]) < 0)
			return INCR_E_NOMEM;
	for (size_t i = 0; i < c->n_tables; i++)
		if (buf_put_u64(out, c->tables[i]) < 0)
			return INCR_E_NOMEM;
	return buf_put_u64(out, hash64(out->data, out->size));
}

/* False: damaged, of another store, or of a version we do not know: as good as absent. */
static bool current_decode(const struct buf *b, uint64_t tag,
			   struct index_current *out)
{
	struct cursor c = cursor_over(b->data, b->size);
	const uint8_t *magic = cursor_bytes(&c, 8);
	uint32_t version = cursor_u32(&c);
	uint32_t n = cursor_u32(&c);
	struct index_current cur = { .n_tables = n };
	uint64_t store_tag = cursor_u64(&c);

	cur.id = cursor_u64(&c);
	cur.position.position = cursor_u64(&c);
	cur.position.sequence = cursor_u64(&c);
	cur.position.last_position = cursor_u64(&c);
	cur.position.last_hash = cursor_u64(&c);
	cur.counters.next_txn = cursor_u64(&c);
	cur.counters.next_build = cursor_u64(&c);
	cur.counters.next_dataset = cursor_u64(&c);
	cur.counters.next_branch = cursor_u64(&c);
	cur.counters.next_line = cursor_u64(&c);
	if (c.is_bad || memcmp(magic, CURRENT_MAGIC, 8) != 0 ||
	    version != CURRENT_VERSION || store_tag != tag ||
	    n > INDEX_TABLES_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++)
		cur.tables[i] = cursor_u64(&c);
	if (c.is_bad || cursor_left(&c) != 8 ||
	    get_u64(c.at) != hash64(b->data, b->size - 8))
		return false;
	*out = cur;
	return true;
}

int index_current_read(const struct index *ix, struct index_current *out,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct incr_error why = INCR_ERROR_INIT;
	size_t limit =
		CURRENT_HEAD_SIZE + (INDEX_TABLES_MAX + 1) * sizeof(uint64_t);
	int r = io_read_file(ix->options.io, ix->options.store_dirfd,
			     INDEX_CURRENT_FILE, limit, &b, &why);

	/* one that cannot be read now may be whole */
	if (r < 0 && r != INCR_E_NOTFOUND && r != INCR_E_CORRUPT)
		return incr_fail_with(err, r, &why);
	incr_error_release(&why);
	return r < 0 || !current_decode(&b, ix->options.tag, out);
}

int index_current_write(struct index *ix, const struct index_current *cur,
			struct incr_error *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (current_encode(cur, ix->options.tag, &b) < 0)
		return incr_fail_nomem(err);
	return io_replace_file(ix->options.io, ix->options.store_dirfd,
			       INDEX_CURRENT_FILE, b.data, b.size, false, err);
}
