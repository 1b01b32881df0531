/*
 * Frame indexes: where the frames of one file stand.  An index that has become
 * long is written at once and becomes an extent of its own, so that a file of
 * any size takes bounded memory.
 */
#include "config.h"

#include "ingest_parts.h"

#include "bytes.h"
#include "error.h"

#define ENTRY_SIZE 16
#define ENTRIES_MAX (UINT64_C(1) << 18) /* 4 MiB of index, 16 GiB of file */

void ingest_index_release(struct ingest_index *index)
{
	buf_release(&index->entries);
	content_release(&index->content);
}

static int write_index(struct ingest_index *index, struct pack_writer *pack,
		       struct incr_error *err)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	struct content_extent extent = {
		.container = pack_writer_id(pack),
		.index_n = index->n_entries,
		.n_frames = index->n_entries,
	};
	size_t size = (size_t)CONTENT_INDEX_ENTRIES * ENTRY_SIZE;
	uint64_t off;
	int r;

	for (size_t at = 0; at < index->entries.size; at += size) {
		if (size > index->entries.size - at)
			size = index->entries.size - at;
		buf_reset(&frame);
		r = frame_encode(NULL, index->entries.data + at, (uint32_t)size,
				 extent.container, &frame);
		if (r < 0)
			return incr_fail_nomem(err);

		r = pack_writer_put(pack, frame.data, frame.size, &off, err);
		if (r < 0)
			return r;
		if (at == 0)
			extent.index_off = off;
	}
	r = content_add_extent(&index->content, &extent);
	if (r == INCR_E_RANGE)
		return incr_fail(err, r, NULL, NULL, "a file is too large");
	if (r < 0)
		return incr_fail_nomem(err);

	buf_reset(&index->entries);
	index->n_entries = 0;
	return 0;
}

int ingest_index_add(struct ingest_index *index, struct pack_writer *pack,
		     uint64_t off, uint32_t stored_size, struct incr_error *err)
{
	uint8_t entry[ENTRY_SIZE] = { 0 };
	int r;

	if (index->n_entries == ENTRIES_MAX) {
		r = write_index(index, pack, err);
		if (r < 0)
			return r;
	}
	put_u64(entry, off);
	put_u32(entry + 8, stored_size);
	if (buf_put(&index->entries, entry, sizeof(entry)) < 0)
		return incr_fail_nomem(err);

	index->n_entries++;
	return 0;
}

int ingest_index_finish(struct ingest_index *index, struct pack_writer *pack,
			uint64_t size, struct content *out_content,
			struct incr_error *err)
{
	int r;

	if (index->n_entries > 0) {
		r = write_index(index, pack, err);
		if (r < 0)
			return r;
	}
	index->content.kind = CONTENT_EXTENTS;
	index->content.size = size;
	index->content.frame_size = FRAME_RAW_DEFAULT;
	*out_content = index->content;
	index->content = (struct content){ .kind = CONTENT_EMPTY };
	return 0;
}
