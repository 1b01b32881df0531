/*
 * Reading a table: open, load blocks through the cache, descend the index,
 * look a key up.
 *
 * Opening reads the footer and nothing else, so it costs the same for any
 * number of entries.  Index blocks go through the same cache as data blocks;
 * a lookup of a table with 100,000,000 entries passes three of them.
 *
 * Nothing from the file is believed before its hash is checked, and nothing is
 * allocated or followed on its word after that: sizes have limits, a child
 * must be of the next lower level and carry the number its parent gives, so a
 * descent always ends.
 */
#include "config.h"

#include "table_format.h"

#include "bytes.h"
#include "error.h"
#include "hash.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int table_damaged(const char *path, uint64_t off, const char *reason,
		  struct incr_error *err)
{
	(void)incr_fail(err, INCR_E_CORRUPT, "damaged-table", path,
			"damaged table at offset %" PRIu64 ": %s", off, reason);
	incr_error_at(err, off);
	return INCR_E_CORRUPT;
}

/* Exactly @size bytes; the end of the file is damage. */
static int read_bytes(const struct table *t, uint64_t off, void *data,
		      size_t size, struct incr_error *err)
{
	size_t n;
	int r = io_read_upto(t->io, t->fd, data, size, off, &n, t->path, err);

	if (r < 0)
		return r;

	if (n < size)
		return table_damaged(t->path, off, "the file ends early", err);

	return 0;
}

/* The same of those about the filter: it stands right before the footer. */
static const char *filter_check(const struct table *t, uint64_t size)
{
	uint64_t end;

	if (!t->n_filter_lines)
		return t->filter_off || t->n_filtered || t->filter_prefix ?
			       "numbers of a filter that is not there" :
			       NULL;

	if (t->n_filter_lines > TABLE_FILTER_KEYS_MAX ||
	    !add_ok(t->filter_off, filter_size(t->n_filter_lines), &end) ||
	    end != size - TABLE_FOOTER_SIZE)
		return "a filter cannot stand there";

	return t->n_filtered > t->n_entries ? "more keys in the filter than "
					      "there are" :
					      NULL;
}

/* Why the numbers of the footer cannot be right, or NULL. */
static const char *footer_check(const struct table *t, uint64_t size)
{
	const struct block_place *root = &t->root;

	if (t->size != size)
		return "the file has not the size it was written with";

	if (t->n_blocks > UINT32_MAX || root->level >= TABLE_LEVELS_MAX)
		return "larger than the limit";

	/* One block is its own root, and more need an index. */
	if (t->n_entries < t->n_blocks ||
	    t->n_entries > t->n_blocks * TABLE_BLOCK_ENTRIES ||
	    (root->level > 0) != (t->n_blocks > 1))
		return "its counts contradict each other";

	return filter_check(t, size);
}

static int footer_decode(struct table *t, const uint8_t *bytes, uint64_t size,
			 struct incr_error *err)
{
	struct cursor c = cursor_over(bytes, TABLE_FOOTER_SIZE);
	const uint8_t *magic = cursor_bytes(&c, 8);
	uint32_t version = cursor_u32(&c);
	uint32_t level = cursor_u32(&c);
	uint64_t tag = cursor_u64(&c);
	uint64_t off = size - TABLE_FOOTER_SIZE;
	const char *reason;

	if (memcmp(magic, TABLE_MAGIC, 8) != 0)
		return table_damaged(t->path, off, "no footer", err);

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	if (get_u64(bytes + TABLE_FOOTER_HASHED) !=
	    hash64(bytes, TABLE_FOOTER_HASHED))
		return table_damaged(t->path, off, "the footer's hash differs",
				     err);
#endif

	if (version != TABLE_VERSION)
		return incr_fail(err, INCR_E_UNSUPPORTED, NULL, t->path,
				 "table of format version %" PRIu32, version);

	if (tag != t->tag)
		return table_damaged(t->path, off, "it belongs somewhere else",
				     err);

	t->n_entries = cursor_u64(&c);
	t->n_blocks = cursor_u64(&c);
	t->root.off = cursor_u64(&c);
	t->root.size = cursor_u32(&c);
	t->root.number = 0;
	t->root.level = level < TABLE_LEVELS_MAX ? (uint8_t)level : UINT8_MAX;
	t->filter_prefix = cursor_u8(&c);
	if (cursor_u8(&c) || cursor_u16(&c))
		return table_damaged(t->path, off, "reserved bytes are set",
				     err);

	t->size = cursor_u64(&c);
	t->filter_off = cursor_u64(&c);
	t->n_filter_lines = cursor_u64(&c);
	t->n_filtered = cursor_u64(&c);
	reason = footer_check(t, size);
	return reason ? table_damaged(t->path, off, reason, err) : 0;
}

static int footer_read(struct table *t, int dirfd, struct incr_error *err)
{
	uint8_t bytes[TABLE_FOOTER_SIZE];
	struct io_stat st;
	int r = t->io->stat_at(t->io, dirfd, t->path, &st);

	if (r < 0)
		return incr_fail_errno(err, -r, t->path, "cannot stat table");

	if (st.size < TABLE_FOOTER_SIZE)
		return table_damaged(t->path, 0, "shorter than a footer", err);

	r = read_bytes(t, st.size - TABLE_FOOTER_SIZE, bytes, sizeof(bytes),
		       err);
	if (r < 0)
		return r;

	return footer_decode(t, bytes, st.size, err);
}

int table_open(const struct incr_io *io, int dirfd, const char *path,
	       uint64_t tag, struct block_cache *cache,
	       struct table **out_table, struct incr_error *err)
{
	struct table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return incr_fail_nomem(err);

	atomic_init(&t->n_refs, 1);
	t->io = io;
	t->cache = cache;
	t->fd = -1;
	t->id = block_cache_new_id(cache);
	t->tag = tag;
	t->path = strdup(path);
	r = t->path ? io_open(io, dirfd, path, O_RDONLY, 0, &t->fd, err) :
		      incr_fail_nomem(err);
	if (r >= 0)
		r = footer_read(t, dirfd, err);
	if (r < 0) {
		table_unref(t);
		return r;
	}

	*out_table = t;
	return 0;
}

struct table *table_ref(struct table *t)
{
	atomic_fetch_add_explicit(&t->n_refs, 1, memory_order_relaxed);
	return t;
}

void table_unref(struct table *t)
{
	if (!t ||
	    atomic_fetch_sub_explicit(&t->n_refs, 1, memory_order_acq_rel) != 1)
		return;

	block_cache_drop(t->cache, t->id);
	if (t->fd >= 0)
		(void)io_close(t->io, t->fd); /* only read from */
	free(t->path);
	free(t);
}

uint64_t table_n_entries(const struct table *t)
{
	return t->n_entries;
}

uint64_t table_size(const struct table *t)
{
	return t->size;
}

uint64_t table_n_filtered(const struct table *t)
{
	return t->n_filtered;
}

/* Read and decode a block that is not in the cache. */
static int block_read(struct table *t, const struct block_place *place,
		      struct block_scratch *s, struct block **out_block,
		      struct incr_error *err)
{
	const char *reason = NULL;
	int r;

	buf_reset(&s->stored);
	if (buf_reserve(&s->stored, place->size) < 0)
		return incr_fail_nomem(err);

	r = read_bytes(t, place->off, s->stored.data, place->size, err);
	if (r < 0)
		return r;

	r = block_decode(place, t->tag, s->stored.data, s->d, out_block,
			 &reason);
	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);

	return r < 0 ? table_damaged(t->path, place->off, reason, err) : 0;
}

int table_load(struct table *t, const struct block_place *place,
	       struct block **out_block, struct incr_error *err)
{
	struct block *b = block_cache_find(t->cache, t->id, place->off);
	struct block_scratch *scratch;
	uint64_t end;
	int r;

	if (b && b->level == place->level && b->number == place->number) {
		*out_block = b;
		return 0;
	}

	block_unref(b);
	if (place->size < TABLE_HEADER_SIZE || place->size > TABLE_BLOCK_MAX ||
	    !add_ok(place->off, (uint64_t)place->size, &end) ||
	    end > t->size - TABLE_FOOTER_SIZE)
		return table_damaged(t->path, place->off,
				     "no block can stand there", err);

	scratch = block_cache_take_scratch(t->cache);
	if (!scratch)
		return incr_fail_nomem(err);

	r = block_read(t, place, scratch, &b, err);
	block_cache_put_scratch(t->cache, scratch);
	if (r < 0)
		return r;

	*out_block = block_cache_add(t->cache, b, t->id, place->off);
	return 0;
}

void block_path_release(struct block_path *path)
{
	block_unref(path->index);
	block_unref(path->data);
	*path = (struct block_path){ 0 };
}

/* What a descent looks for: a key, or with key NULL a number. */
struct target {
	const void *key;
	size_t key_size;
	uint32_t number;
};

static int table_descend(struct table *t, const struct target *target,
			 struct block_path *out_path, struct incr_error *err)
{
	_cleanup_block_ struct block *index = NULL;
	struct block_place place = t->root;
	struct block *data;
	uint32_t pos = 0;
	int r;

	if (!t->n_blocks)
		return 1;

	while (place.level) {
		struct block *b;

		r = table_load(t, &place, &b, err);
		if (r < 0)
			return r;

		block_unref(index);
		index = b;
		pos = target->key ? block_index_by_key(b, target->key,
						       target->key_size) :
				    block_index_by_number(b, target->number);
		block_child(b, pos, &place);
	}

	if (!target->key && place.number != target->number)
		return table_damaged(t->path, place.off,
				     "the index lacks a block", err);

	r = table_load(t, &place, &data, err);
	if (r < 0)
		return r;

	out_path->index = index;
	out_path->index_pos = pos;
	out_path->data = data;
	index = NULL;
	return 0;
}

int table_descend_key(struct table *t, const void *key, size_t key_size,
		      struct block_path *out_path, struct incr_error *err)
{
	struct target target = { .key = key_size ? key : "",
				 .key_size = key_size };

	return table_descend(t, &target, out_path, err);
}

int table_descend_number(struct table *t, uint32_t number,
			 struct block_path *out_path, struct incr_error *err)
{
	struct target target = { .number = number };

	return table_descend(t, &target, out_path, err);
}

/*
 * One way down.  What is left of a block may have no key of the rank although
 * the whole has: then @number becomes that of the block behind it, and 1 is
 * returned; UINT64_MAX: there is none.
 */
static int try_descend_rank(struct table *t, uint64_t *number, uint64_t least,
			    struct block_path *out_path, struct incr_error *err)
{
	_cleanup_block_ struct block *index = NULL;
	struct block_place place = t->root;
	uint64_t behind = UINT64_MAX;
	uint32_t pos = 0;
	int r;

	while (place.level) {
		struct block *b;
		uint32_t next;

		r = table_load(t, &place, &b, err);
		if (r < 0)
			return r;

		block_unref(index);
		index = b;
		pos = block_index_by_number(b, (uint32_t)*number);
		next = block_next_of_rank(b, pos, least);
		if (next == b->n_entries) {
			*number = behind;
			return 1;
		}
		if (next + 1 < b->n_entries) {
			block_child(b, next + 1, &place);
			behind = place.number;
		}
		block_child(b, next, &place);
		if (next > pos)
			*number = place.number;
		pos = next;
	}

	if (place.number < *number)
		return table_damaged(t->path, place.off,
				     "the index lacks a block", err);

	r = table_load(t, &place, &out_path->data, err);
	if (r < 0)
		return r;

	out_path->index = index;
	out_path->index_pos = pos;
	index = NULL;
	return 0;
}

int table_descend_rank(struct table *t, uint32_t number, uint64_t least,
		       struct block_path *out_path, struct incr_error *err)
{
	uint64_t at = number;
	int r = 1;

	/* each time further on: it ends */
	while (r == 1 && at < t->n_blocks)
		r = try_descend_rank(t, &at, least, out_path, err);
	return r;
}

int table_get(struct table *t, const void *key, size_t key_size,
	      struct buf *out_value, bool *out_tombstone,
	      struct incr_error *err)
{
	struct block_path path = { 0 };
	const struct block_entry *e;
	uint32_t pos;
	bool may;
	int r = table_may_hold(t, key, key_size, &may, err);

	if (r < 0 || !may)
		return r < 0 ? r : 1;

	r = table_descend_key(t, key, key_size, &path, err);
	if (r)
		return r;

	pos = block_lower_bound(path.data, key, key_size);
	if (pos == path.data->n_entries ||
	    block_compare(path.data, pos, key, key_size)) {
		block_path_release(&path);
		return 1;
	}

	e = &path.data->entries[pos];
	if (buf_reserve(out_value, e->value_size) < 0) {
		r = incr_fail_nomem(err);
	} else {
		buf_reset(out_value);
		(void)buf_put(out_value, path.data->raw + e->value_off,
			      e->value_size); /* reserved */
		*out_tombstone = e->is_tombstone;
	}
	block_path_release(&path);
	return r;
}
