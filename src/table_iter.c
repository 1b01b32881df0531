/*
 * An iterator over one table.  It holds the data block it stands in and the
 * index block above, so that the next block and a seek nearby cost no search
 * from the root.
 */
#include "config.h"

#include "table_format.h"

#include "error.h"

#include <stdlib.h>

struct table_iter {
	struct iter iter; /* first */
	struct table *table; /* shared(ref) */
	struct block_path path; /* data is NULL while it stands nowhere */
	bool is_ended;
};

static struct table_iter *table_iter(struct iter *it)
{
	return (struct table_iter *)it;
}

/* Stand at entry @pos of the data block held. */
static int iter_show(struct table_iter *ti, uint32_t pos)
{
	const struct block *b = ti->path.data;
	const struct block_entry *e = &b->entries[pos];

	ti->is_ended = false;
	ti->iter.block = b->number;
	ti->iter.index = pos;
	ti->iter.entry = (struct table_entry){
		.key = b->keys + e->key_off,
		.key_size = e->key_size,
		.value = e->is_tombstone ? NULL : b->raw + e->value_off,
		.value_size = e->value_size,
		.is_tombstone = e->is_tombstone,
	};
	return 0;
}

static int iter_end(struct table_iter *ti, int r)
{
	block_path_release(&ti->path);
	ti->is_ended = r == 1;
	return r;
}

/* Replace the data block by entry @pos of the index block held. */
static int iter_load_child(struct table_iter *ti, uint32_t pos,
			   struct incr_error *err)
{
	struct block_place place;
	struct block *b;
	int r;

	block_child(ti->path.index, pos, &place);
	r = table_load(ti->table, &place, &b, err);
	if (r < 0)
		return iter_end(ti, r);

	block_unref(ti->path.data);
	ti->path.data = b;
	ti->path.index_pos = pos;
	return 0;
}

static int iter_load_number(struct table_iter *ti, uint32_t number,
			    struct incr_error *err)
{
	struct block_path path = { 0 };
	int r = table_descend_number(ti->table, number, &path, err);

	if (r)
		return iter_end(ti, r);

	block_path_release(&ti->path);
	ti->path = path;
	return 0;
}

/* Past the index block held, to the next data block of the rank. */
static int iter_load_rank(struct table_iter *ti, uint32_t number,
			  struct incr_error *err)
{
	struct block_path path = { 0 };
	int r = table_descend_rank(ti->table, number, ti->iter.least_rank,
				   &path, err);

	if (r)
		return iter_end(ti, r);

	block_path_release(&ti->path);
	ti->path = path;
	return 0;
}

static int iter_next_block(struct table_iter *ti, struct incr_error *err)
{
	const struct block *index = ti->path.index;
	uint32_t number = ti->path.data->number, pos;
	int r;

	if (!index || number + UINT64_C(1) >= ti->table->n_blocks)
		return iter_end(ti, 1);

	pos = block_next_of_rank(index, ti->path.index_pos + 1,
				 ti->iter.least_rank);
	if (pos < index->n_entries) {
		r = iter_load_child(ti, pos, err);
	} else {
		/* the first behind the index block */
		number += index->n_entries - ti->path.index_pos;
		r = number < ti->table->n_blocks ?
			    iter_load_rank(ti, number, err) :
			    iter_end(ti, 1);
	}
	return r ? r : iter_show(ti, 0);
}

static int table_iter_next(struct iter *it, struct incr_error *err)
{
	struct table_iter *ti = table_iter(it);

	if (ti->is_ended)
		return 1;

	if (!ti->path.data)
		return incr_fail(err, INCR_E_INVALID, NULL, ti->table->path,
				 "iterator stands nowhere");

	if (it->index + 1 < ti->path.data->n_entries)
		return iter_show(ti, it->index + 1);

	return iter_next_block(ti, err);
}

/*
 * First entry >= @key in the block held; n_entries when it may stand in
 * another block.  A target close ahead is found by doubling steps.
 */
static uint32_t iter_seek_block(const struct table_iter *ti, const void *key,
				size_t key_size)
{
	const struct block *b = ti->path.data;
	uint32_t n = b->n_entries, at = ti->iter.index, step = 1;

	if (block_compare(b, n - 1, key, key_size) < 0)
		return n;

	if (block_compare(b, at, key, key_size) >= 0) {
		uint32_t pos = block_lower_bound(b, key, key_size);

		/* Before the first entry it may be in the block before. */
		return pos || !block_compare(b, 0, key, key_size) ? pos : n;
	}

	while (step < n - at &&
	       block_compare(b, at + step, key, key_size) < 0) {
		at += step;
		step *= 2;
	}
	return block_lower_bound_in(b, at + 1, step < n - at ? at + step : n,
				    key, key_size);
}

/* Whether the index block held leads to @key as the root would. */
static bool index_covers(const struct block_path *path, const void *key,
			 size_t key_size)
{
	const struct block *b = path->index;

	/* At the last separator the key may belong to the next index block. */
	return b && block_compare(b, 0, key, key_size) <= 0 &&
	       block_compare(b, b->n_entries - 1, key, key_size) > 0;
}

static int iter_locate(struct table_iter *ti, const void *key, size_t key_size,
		       struct incr_error *err)
{
	struct block_path path = { 0 };
	int r;

	if (index_covers(&ti->path, key, key_size))
		return iter_load_child(
			ti, block_index_by_key(ti->path.index, key, key_size),
			err);

	r = table_descend_key(ti->table, key, key_size, &path, err);
	if (r)
		return iter_end(ti, r);

	block_path_release(&ti->path);
	ti->path = path;
	return 0;
}

static int table_iter_seek(struct iter *it, const void *key, size_t key_size,
			   struct incr_error *err)
{
	struct table_iter *ti = table_iter(it);
	uint32_t pos;
	int r;

	if (ti->path.data) {
		pos = iter_seek_block(ti, key, key_size);
		if (pos < ti->path.data->n_entries)
			return iter_show(ti, pos);
	}

	r = iter_locate(ti, key, key_size, err);
	if (r)
		return r;

	if (ti->path.index &&
	    block_child_rank(ti->path.index, ti->path.index_pos) <
		    it->least_rank)
		return iter_next_block(ti, err);

	pos = block_lower_bound(ti->path.data, key, key_size);
	if (pos < ti->path.data->n_entries)
		return iter_show(ti, pos);

	return iter_next_block(ti, err);
}

int table_iter_goto(struct iter *it, uint32_t block, uint32_t index,
		    struct incr_error *err)
{
	struct table_iter *ti = table_iter(it);
	const struct block *above = ti->path.index;
	int r = 0;

	if (block >= ti->table->n_blocks)
		return incr_fail(err, INCR_E_RANGE, NULL, ti->table->path,
				 "no block %u", block);

	if (!ti->path.data || ti->path.data->number != block) {
		if (above && block >= above->number &&
		    block - above->number < above->n_entries)
			r = iter_load_child(ti, block - above->number, err);
		else
			r = iter_load_number(ti, block, err);
	}
	if (r)
		return r;

	if (index < ti->path.data->n_entries)
		return iter_show(ti, index);

	(void)iter_end(ti, INCR_E_RANGE); /* it stands nowhere now */
	return incr_fail(err, INCR_E_RANGE, NULL, ti->table->path,
			 "no entry %u in block %u", index, block);
}

static void table_iter_free(struct iter *it)
{
	struct table_iter *ti = table_iter(it);

	block_path_release(&ti->path);
	table_unref(ti->table);
	free(ti);
}

int table_iter_new(struct table *t, struct iter **out_iter,
		   struct incr_error *err)
{
	struct table_iter *ti = calloc(1, sizeof(*ti));

	if (!ti)
		return incr_fail_nomem(err);

	ti->iter.seek = table_iter_seek;
	ti->iter.next = table_iter_next;
	ti->iter.free = table_iter_free;
	ti->table = table_ref(t);
	*out_iter = &ti->iter;
	return 0;
}
