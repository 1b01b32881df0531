/*
 * Writing a table: front to back, in constant memory.
 *
 * Each level has one block being built: data at level 0, the index above it.
 * A full block is compressed, hashed and queued for writing, and a reference
 * to it goes into the block of the next level.  So an index block stands
 * right behind the last block it leads to, and nothing but one block a level
 * is held back, however many entries come.
 *
 * An index entry's key is the shortest one that separates its block from the
 * block before; that keeps the index a fraction of a per cent of the table.
 *
 * Blocks are compressed.  Measured with 1,000,000 view entries (keys of 50
 * bytes that share prefixes, values of 45 with a random hash of 16): 33 bytes
 * an entry against 62 without, the table written in the same time, a cold
 * scan as fast (9 million entries/s), and a lookup whose block is in the page
 * cache but not in the block cache 16 us against 6.5.  Half the disk and page
 * cache is worth the 10 us, which the block cache hides from the next lookup.
 */
#include "config.h"

#include "table_format.h"

#include "bytes.h"
#include "codec.h"
#include "error.h"
#include "hash.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_SIZE ((size_t)256 << 10) /* least bytes of a write but the last */
#define COMPRESSION_LEVEL 1
/* Compress when it saves at least 1/8: less is not worth the time to expand. */
#define SAVING_SHIFT 3

/* A finished block, as the index above will name it. */
struct block_link {
	struct buf separator;
	struct block_place place;
	uint64_t rank; /* the largest of the keys below it */
};

/* The block being built at one level. */
struct builder {
	struct buf raw;
	struct buf separator; /* of its first entry */
	struct buf last_key; /* of the table at this level; outlives the block */
	uint32_t n_entries;
	uint32_t keys_size;
	uint32_t number;
	uint64_t rank; /* the largest of its keys, or below it */
};

struct table_writer {
	const struct incr_io *io; /* borrowed */
	int dirfd; /* borrowed */
	char *path; /* owned */
	int fd; /* owned */
	uint64_t tag;
	uint64_t off; /* of the first byte not yet written */
	struct buf out; /* bytes not yet written */
	struct builder *levels[TABLE_LEVELS_MAX]; /* owned */
	unsigned n_levels;
	struct compressor *compressor; /* owned */
	struct buf packed; /* one compressed block */
	struct filter filter;
	uint64_t n_entries;
	uint64_t n_blocks;
	int failure; /* the first one; nothing can be written after it */
};

static void block_link_release(struct block_link *link)
{
	buf_release(&link->separator);
}

#define _cleanup_link_ __attribute__((cleanup(block_link_release)))

static void builder_free(struct builder *b)
{
	if (!b)
		return;

	buf_release(&b->raw);
	buf_release(&b->separator);
	buf_release(&b->last_key);
	free(b);
}

static int writer_add_level(struct table_writer *w, struct incr_error *err)
{
	struct builder *b;

	if (w->n_levels == TABLE_LEVELS_MAX)
		return incr_fail(err, INCR_E_RANGE, NULL, w->path,
				 "table has too many levels");

	b = calloc(1, sizeof(*b));
	if (!b)
		return incr_fail_nomem(err);

	w->levels[w->n_levels++] = b;
	return 0;
}

static void writer_free(struct table_writer *w)
{
	for (unsigned i = 0; i < w->n_levels; i++)
		builder_free(w->levels[i]);
	filter_release(&w->filter);
	compressor_free(w->compressor);
	buf_release(&w->out);
	buf_release(&w->packed);
	free(w->path);
	free(w);
}

int table_writer_open(const struct incr_io *io, int dirfd, const char *path,
		      uint64_t tag, struct table_writer **out_writer,
		      struct incr_error *err)
{
	struct table_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return incr_fail_nomem(err);

	w->io = io;
	w->dirfd = dirfd;
	w->tag = tag;
	w->compressor = compressor_new(COMPRESSION_LEVEL);
	w->path = strdup(path);
	r = w->path && w->compressor ? writer_add_level(w, err) :
				       incr_fail_nomem(err);
	if (r >= 0)
		r = io_open(io, dirfd, path, O_WRONLY | O_CREAT | O_EXCL, 0666,
			    &w->fd, err);
	if (r < 0) {
		writer_free(w);
		return r;
	}

	*out_writer = w;
	return 0;
}

int table_writer_filter(struct table_writer *w, uint8_t prefix,
			uint64_t n_keys_max, struct incr_error *err)
{
	return filter_init(&w->filter, prefix, n_keys_max) < 0 ?
		       incr_fail_nomem(err) :
		       0;
}

static int writer_flush(struct table_writer *w, struct incr_error *err)
{
	int r = io_write_all(w->io, w->fd, w->out.data, w->out.size, w->off,
			     w->path, err);

	if (r < 0)
		return r;

	w->off += w->out.size;
	buf_reset(&w->out);
	return 0;
}

/* The bytes to store for @raw: compressed if that pays. */
static enum codec writer_compress(struct table_writer *w, const struct buf *raw,
				  const struct buf **out_bytes)
{
	size_t most = raw->size - (raw->size >> SAVING_SHIFT);
	size_t size;

	*out_bytes = raw;
	buf_reset(&w->packed);
	if (buf_reserve(&w->packed, compressor_bound(raw->size)) < 0)
		return CODEC_RAW; /* a table is right without, too */

	size = compressor_run(w->compressor, raw->data, raw->size,
			      w->packed.data, w->packed.capacity);
	if (!size || size > most)
		return CODEC_RAW;

	w->packed.size = size;
	*out_bytes = &w->packed;
	return CODEC_ZSTD;
}

static int header_put(struct buf *out, const struct builder *b, size_t size,
		      enum codec codec, unsigned level)
{
	uint8_t header[TABLE_HEADER_SIZE] = { 0 };

	put_u32(header + 8, (uint32_t)size);
	put_u32(header + 12, (uint32_t)b->raw.size);
	put_u32(header + 16, b->keys_size);
	put_u32(header + 20, b->number);
	put_u16(header + 24, (uint16_t)b->n_entries);
	header[26] = (uint8_t)codec;
	header[27] = (uint8_t)level;
	return buf_put(out, header, sizeof(header));
}

/* Queue a block for writing. */
static int writer_queue(struct table_writer *w, const struct builder *b,
			const struct buf *bytes, enum codec codec,
			unsigned level, struct block_place *out_place,
			struct incr_error *err)
{
	size_t begin = w->out.size;
	uint64_t off = w->off + begin;
	uint8_t *block;

	if (header_put(&w->out, b, bytes->size, codec, level) < 0 ||
	    buf_put(&w->out, bytes->data, bytes->size) < 0)
		return incr_fail_nomem(err);

	block = w->out.data + begin;
	put_u64(block, block_hash(w->tag, off, block + TABLE_HEADER_HASH,
				  w->out.size - begin - TABLE_HEADER_HASH));
	*out_place =
		(struct block_place){ .off = off,
				      .size = (uint32_t)(w->out.size - begin),
				      .number = b->number,
				      .level = (uint8_t)level };
	return w->out.size < WRITE_SIZE ? 0 : writer_flush(w, err);
}

/* End the block of a level and begin the next one there. */
static int writer_emit(struct table_writer *w, unsigned level,
		       struct block_link *out_link, struct incr_error *err)
{
	struct builder *b = w->levels[level];
	const struct buf *bytes;
	enum codec codec = writer_compress(w, &b->raw, &bytes);
	int r = writer_queue(w, b, bytes, codec, level, &out_link->place, err);

	if (r < 0)
		return r;

	buf_move(&out_link->separator, &b->separator);
	out_link->rank = b->rank;
	buf_reset(&b->raw);
	b->rank = 0;
	b->n_entries = 0;
	b->keys_size = 0;
	return 0;
}

static size_t shared_size(const struct buf *a, const uint8_t *b, size_t b_size)
{
	size_t n = a->size < b_size ? a->size : b_size;
	size_t i = 0;

	while (i < n && a->data[i] == b[i])
		i++;
	return i;
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

/* One entry, and how much of its key the key before has. */
struct entry_in {
	const struct table_entry *entry;
	size_t n_shared;
};

/* Whether the block would keep to its limits with @in; an empty one always does. */
static bool builder_fits(const struct builder *b, const struct entry_in *in)
{
	const struct table_entry *e = in->entry;
	size_t n_own = e->key_size - in->n_shared;
	uint64_t value = e->is_tombstone ? 0 : e->value_size + UINT64_C(1);
	size_t size = varint_size(in->n_shared) + varint_size(n_own) +
		      varint_size(value) + n_own + e->value_size;

	return !b->n_entries || (b->n_entries < TABLE_BLOCK_ENTRIES &&
				 b->raw.size + size <= TABLE_BLOCK_SIZE &&
				 b->keys_size + e->key_size <= TABLE_KEYS_MAX);
}

static int builder_put(struct builder *b, const struct entry_in *in)
{
	const struct table_entry *e = in->entry;
	size_t n_shared = b->n_entries ? in->n_shared : 0;
	size_t n_own = e->key_size - n_shared;
	uint64_t value = e->is_tombstone ? 0 : e->value_size + UINT64_C(1);
	const uint8_t *own = n_own ? e->key + n_shared : NULL;

	if (buf_put_varint(&b->raw, n_shared) < 0 ||
	    buf_put_varint(&b->raw, n_own) < 0 ||
	    buf_put_varint(&b->raw, value) < 0 ||
	    buf_put(&b->raw, own, n_own) < 0 ||
	    buf_put(&b->raw, e->value, e->value_size) < 0)
		return INCR_E_NOMEM;

	buf_reset(&b->last_key);
	if (buf_put(&b->last_key, e->key, e->key_size) < 0)
		return INCR_E_NOMEM;

	b->n_entries++;
	b->keys_size += (uint32_t)e->key_size;
	return 0;
}

/* Lead to a finished block from the level above it, and on upwards. */
static int writer_link(struct table_writer *w, struct block_link *link,
		       struct incr_error *err)
{
	for (unsigned level = link->place.level + 1U;; level++) {
		uint8_t value[TABLE_INDEX_VALUE_SIZE];
		_cleanup_link_ struct block_link up = { 0 };
		struct table_entry entry = { .key = link->separator.data,
					     .key_size = link->separator.size,
					     .value = value,
					     .value_size = sizeof(value) };
		struct entry_in in = { .entry = &entry };
		bool is_full;
		struct builder *b;
		int r = level < w->n_levels ? 0 : writer_add_level(w, err);

		if (r < 0)
			return r;

		put_u64(value, link->place.off);
		put_u32(value + 8, link->place.size);
		put_u32(value + 12, link->place.number);
		put_u64(value + 16, link->rank);
		b = w->levels[level];
		in.n_shared =
			shared_size(&b->last_key, entry.key, entry.key_size);
		is_full = !builder_fits(b, &in);
		if (is_full)
			r = writer_emit(w, level, &up, err);
		if (r < 0)
			return r;

		if (!b->n_entries) {
			b->number = link->place.number;
			if (buf_put(&b->separator, entry.key, entry.key_size) <
			    0)
				return incr_fail_nomem(err);
		}
		if (builder_put(b, &in) < 0)
			return incr_fail_nomem(err);
		if (link->rank > b->rank)
			b->rank = link->rank;

		if (!is_full)
			return 0;

		buf_release(&link->separator);
		buf_move(&link->separator, &up.separator);
		link->place = up.place;
		link->rank = up.rank;
	}
}

/* End the data block being built. */
static int writer_end_block(struct table_writer *w, struct incr_error *err)
{
	_cleanup_link_ struct block_link link = { 0 };
	int r = writer_emit(w, 0, &link, err);

	if (r < 0)
		return r;

	return writer_link(w, &link, err);
}

static int writer_begin_block(struct table_writer *w, const struct entry_in *in,
			      struct incr_error *err)
{
	struct builder *b = w->levels[0];
	/* One byte more than the last key shares; all keys are above "". */
	size_t size = w->n_entries ? in->n_shared + 1 : 0;

	if (w->n_blocks == UINT32_MAX)
		return incr_fail(err, INCR_E_RANGE, NULL, w->path,
				 "table has too many blocks");

	b->number = (uint32_t)w->n_blocks++;
	if (buf_put(&b->separator, in->entry->key, size) < 0)
		return incr_fail_nomem(err);

	return 0;
}

static int writer_add(struct table_writer *w, const struct entry_in *in,
		      struct incr_error *err)
{
	struct builder *b = w->levels[0];
	uint64_t rank;
	int r = 0;

	if (!builder_fits(b, in))
		r = writer_end_block(w, err);
	if (r >= 0 && !b->n_entries)
		r = writer_begin_block(w, in, err);
	if (r < 0)
		return r;

	if (builder_put(b, in) < 0)
		return incr_fail_nomem(err);

	rank = table_rank(in->entry->key, in->entry->key_size);
	if (rank > b->rank)
		b->rank = rank;
	filter_add(&w->filter, in->entry->key, in->entry->key_size);
	w->n_entries++;
	return 0;
}

static int entry_check(const struct table_writer *w, const struct entry_in *in,
		       struct incr_error *err)
{
	const struct table_entry *e = in->entry;
	const struct buf *last = &w->levels[0]->last_key;

	if (e->key_size > TABLE_KEY_MAX || e->value_size > TABLE_VALUE_MAX ||
	    (e->is_tombstone && e->value_size))
		return incr_fail(err, INCR_E_INVALID, NULL, w->path,
				 "key or value larger than its limit");

	if (w->n_entries && (in->n_shared == e->key_size ||
			     (in->n_shared < last->size &&
			      e->key[in->n_shared] < last->data[in->n_shared])))
		return incr_fail(err, INCR_E_INVALID, NULL, w->path,
				 "keys are not ascending");

	return 0;
}

int table_writer_put(struct table_writer *w, const struct table_entry *entry,
		     struct incr_error *err)
{
	struct entry_in in = { .entry = entry };
	int r;

	if (w->failure)
		return incr_fail(err, (enum incr_err)w->failure, NULL, w->path,
				 "writing this table failed before");

	in.n_shared = shared_size(&w->levels[0]->last_key, entry->key,
				  entry->key_size);
	r = entry_check(w, &in, err);
	if (r < 0)
		return r;

	r = writer_add(w, &in, err);
	if (r < 0)
		w->failure = r;
	return r;
}

/* End the open block of every level; the last one ended is the root. */
static int writer_end_levels(struct table_writer *w, struct block_place *root,
			     struct incr_error *err)
{
	for (unsigned level = 0; level < TABLE_LEVELS_MAX; level++) {
		_cleanup_link_ struct block_link link = { 0 };
		int r = writer_emit(w, level, &link, err);

		if (r < 0)
			return r;

		if (level + 1 == w->n_levels) {
			*root = link.place;
			return 0;
		}

		r = writer_link(w, &link, err);
		if (r < 0)
			return r;
	}

	assert(false); /* the loop ends at the top level */
	return INCR_E_RANGE;
}

/* Each block of the filter is one entry without a key. */
static int writer_end_filter(struct table_writer *w, struct incr_error *err)
{
	const struct filter *f = &w->filter;
	struct builder b = { 0 };
	int r = 0;

	for (uint64_t i = 0; i < filter_n_blocks(f->n_lines) && r == 0; i++) {
		size_t off = (size_t)i * TABLE_FILTER_BLOCK_LINES *
			     TABLE_FILTER_LINE;
		const struct table_entry entry = {
			.key = (const uint8_t *)"",
			.value = f->lines + off,
			.value_size = filter_value_size(f->n_lines, i),
		};
		const struct entry_in in = { .entry = &entry };
		struct block_place place;

		buf_reset(&b.raw);
		b.n_entries = 0;
		b.number = (uint32_t)i;
		r = builder_put(&b, &in) < 0 ?
			    incr_fail_nomem(err) :
			    writer_queue(w, &b, &b.raw, CODEC_RAW,
					 TABLE_FILTER_LEVEL, &place, err);
	}
	buf_release(&b.raw);
	buf_release(&b.last_key);
	return r;
}

static int footer_put(struct table_writer *w, const struct block_place *root,
		      uint64_t filter_off)
{
	uint8_t bytes[TABLE_FOOTER_SIZE] = TABLE_MAGIC;

	put_u32(bytes + 8, TABLE_VERSION);
	put_u32(bytes + 12, root->level);
	put_u64(bytes + 16, w->tag);
	put_u64(bytes + 24, w->n_entries);
	put_u64(bytes + 32, w->n_blocks);
	put_u64(bytes + 40, root->off);
	put_u32(bytes + 48, root->size);
	bytes[52] = w->filter.prefix;
	put_u64(bytes + 56, w->off + w->out.size + TABLE_FOOTER_SIZE);
	put_u64(bytes + 64, filter_off);
	put_u64(bytes + 72, w->filter.n_lines);
	put_u64(bytes + 80, w->filter.n_keys);
	put_u64(bytes + TABLE_FOOTER_HASHED,
		hash64(bytes, TABLE_FOOTER_HASHED));
	return buf_put(&w->out, bytes, sizeof(bytes));
}

static int writer_end(struct table_writer *w, bool is_durable,
		      struct incr_error *err)
{
	struct block_place root = { 0 };
	uint64_t filter_off;
	int r = 0;

	if (w->failure)
		return incr_fail(err, (enum incr_err)w->failure, NULL, w->path,
				 "writing this table failed before");

	if (w->n_entries)
		r = writer_end_levels(w, &root, err);
	if (r < 0)
		return r;

	filter_off = w->filter.n_lines ? w->off + w->out.size : 0;
	r = writer_end_filter(w, err);
	if (r < 0)
		return r;

	if (footer_put(w, &root, filter_off) < 0)
		return incr_fail_nomem(err);

	r = writer_flush(w, err);
	if (r < 0 || !is_durable)
		return r;

	return io_sync_file(w->io, w->fd, w->path, err);
}

int table_writer_finish(struct table_writer *w, bool is_durable,
			struct incr_error *err)
{
	int r = writer_end(w, is_durable, err);
	int closed = io_close(w->io, w->fd);

	if (r >= 0 && closed < 0)
		r = incr_fail_errno(err, -closed, w->path, "cannot close");
	if (r < 0)
		(void)w->io->unlink_at(w->io, w->dirfd, w->path, 0);
	writer_free(w);
	return r;
}

void table_writer_abort(struct table_writer *w)
{
	if (!w)
		return;

	(void)io_close(w->io, w->fd); /* the file goes away */
	(void)w->io->unlink_at(w->io, w->dirfd, w->path, 0);
	writer_free(w);
}
