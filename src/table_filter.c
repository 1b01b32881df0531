/*
 * The filter of a table: which of its keys with one first byte it may hold.
 *
 * A look-up of content asks all tables for a key that none of them has, nearly
 * always.  A line of 64 bytes says no to 99 of 100 such questions without a
 * data block being read.  The bits of one key lie in one line, so that a
 * question is one block of the cache.
 */
#include "config.h"

#include "table_format.h"

#include "bytes.h"
#include "error.h"
#include "hash.h"

#include <stdlib.h>

#define BITS_PER_KEY 10
#define BITS_PER_LINE ((uint64_t)8 * TABLE_FILTER_LINE)
#define PROBES 6
#define PROBE_BITS 9 /* a place in a line */

static uint64_t filter_hash(const void *key, size_t key_size)
{
	return hash64(key, key_size);
}

static uint64_t line_of(uint64_t hash, uint64_t n_lines)
{
	return (hash >> 32) * n_lines >> 32; /* fewer than 2^32 lines */
}

/* All keys of a line begin with the same bits: the places are of others. */
static unsigned place_of(uint64_t hash, unsigned probe)
{
	uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned)(mixed >> (64 - (probe + 1) * PROBE_BITS)) &
	       ((1U << PROBE_BITS) - 1);
}

int filter_init(struct filter *f, uint8_t prefix, uint64_t n_keys_max)
{
	uint64_t n_keys = n_keys_max < TABLE_FILTER_KEYS_MAX ?
				  n_keys_max :
				  TABLE_FILTER_KEYS_MAX;
	uint64_t n_lines =
		(n_keys * BITS_PER_KEY + BITS_PER_LINE - 1) / BITS_PER_LINE;

	*f = (struct filter){ 0 };
	if (!n_lines)
		return 0;

	f->lines = calloc(n_lines, TABLE_FILTER_LINE);
	if (!f->lines)
		return INCR_E_NOMEM;

	f->n_lines = n_lines;
	f->prefix = prefix;
	return 0;
}

void filter_release(struct filter *f)
{
	free(f->lines);
	*f = (struct filter){ 0 };
}

static bool filter_covers(uint8_t prefix, uint64_t n_lines, const void *key,
			  size_t key_size)
{
	return n_lines && key_size && *(const uint8_t *)key == prefix;
}

void filter_add(struct filter *f, const void *key, size_t key_size)
{
	uint64_t hash;
	uint8_t *line;

	if (!filter_covers(f->prefix, f->n_lines, key, key_size))
		return;

	hash = filter_hash(key, key_size);
	line = f->lines + line_of(hash, f->n_lines) * TABLE_FILTER_LINE;
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned place = place_of(hash, i);

		line[place / 8] |= (uint8_t)(1U << place % 8);
	}
	f->n_keys++;
}

static bool line_holds(const uint8_t *line, uint64_t hash)
{
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned place = place_of(hash, i);

		if (!(line[place / 8] & 1U << place % 8))
			return false;
	}
	return true;
}

static uint64_t lines_in(uint64_t n_lines, uint64_t number)
{
	uint64_t left = n_lines - number * TABLE_FILTER_BLOCK_LINES;

	return left < TABLE_FILTER_BLOCK_LINES ? left :
						 TABLE_FILTER_BLOCK_LINES;
}

size_t filter_value_size(uint64_t n_lines, uint64_t number)
{
	return (size_t)lines_in(n_lines, number) * TABLE_FILTER_LINE;
}

/* Two empty varints for the key, one for the value, which is 64 at least. */
static uint32_t block_size(uint64_t n_lines, uint64_t number)
{
	size_t value = filter_value_size(n_lines, number);

	size_t varint = value < 127 ? 1 : 2;

	return (uint32_t)(TABLE_HEADER_SIZE + 2 + varint + value);
}

uint64_t filter_n_blocks(uint64_t n_lines)
{
	return (n_lines + TABLE_FILTER_BLOCK_LINES - 1) /
	       TABLE_FILTER_BLOCK_LINES;
}

uint64_t filter_size(uint64_t n_lines)
{
	uint64_t n = filter_n_blocks(n_lines);

	/* all but the last are full */
	return n ? (n - 1) * block_size(n_lines, 0) +
			       block_size(n_lines, n - 1) :
		   0;
}

int table_may_hold(struct table *t, const void *key, size_t key_size,
		   bool *out_may, struct incr_error *err)
{
	_cleanup_block_ struct block *b = NULL;
	struct block_place place = { .level = TABLE_FILTER_LEVEL };
	uint64_t hash, line, number;
	size_t at;
	int r;

	*out_may = true;
	if (!filter_covers(t->filter_prefix, t->n_filter_lines, key, key_size))
		return 0;

	hash = filter_hash(key, key_size);
	line = line_of(hash, t->n_filter_lines);
	number = line / TABLE_FILTER_BLOCK_LINES;
	place.off = t->filter_off + number * block_size(t->n_filter_lines, 0);
	place.size = block_size(t->n_filter_lines, number);
	place.number = (uint32_t)number;
	r = table_load(t, &place, &b, err);
	if (r < 0)
		return r;

	if (b->entries[0].value_size !=
	    filter_value_size(t->n_filter_lines, number))
		return table_damaged(t->path, place.off,
				     "a filter of another size", err);

	at = (size_t)(line % TABLE_FILTER_BLOCK_LINES) * TABLE_FILTER_LINE;
	*out_may = line_holds(b->raw + b->entries[0].value_off + at, hash);
	return 0;
}
