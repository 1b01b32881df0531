/* The fact of what was given up, field by field. */
#include "config.h"

#include "lost.h"

#include <stdlib.h>

#include "name.h"

#define TRY(call)                            \
	do {                                 \
		if ((call) < 0)              \
			return INCR_E_NOMEM; \
	} while (0)

#define POSITION_MAX ((uint64_t)INT64_MAX)
#define ALIGN 8

void fact_lost_release(struct fact_lost *f)
{
	free(f->ranges);
	free(f->manifests);
	free(f->files);
	*f = (struct fact_lost){ 0 };
}

static int encode_numbers(const struct lost_numbers *n, struct buf *out)
{
	TRY(buf_put_varint(out, n->txn));
	TRY(buf_put_varint(out, n->build));
	TRY(buf_put_varint(out, n->dataset));
	TRY(buf_put_varint(out, n->branch));
	return buf_put_varint(out, n->line);
}

int fact_encode_lost(const struct fact_lost *f, struct buf *out)
{
	TRY(buf_put_zigzag(out, f->time_ns));
	TRY(encode_numbers(&f->next, out));
	TRY(buf_put_varint(out, f->n_ranges));
	for (size_t i = 0; i < f->n_ranges; i++) {
		TRY(buf_put_varint(out, f->ranges[i].from));
		TRY(buf_put_varint(out, f->ranges[i].to));
		TRY(buf_put_varint(out, f->ranges[i].last_sequence));
	}
	TRY(buf_put_varint(out, f->n_manifests));
	for (size_t i = 0; i < f->n_manifests; i++)
		TRY(buf_put_varint(out, f->manifests[i]));
	TRY(buf_put_varint(out, f->n_files));
	for (size_t i = 0; i < f->n_files; i++) {
		TRY(buf_put_varint(out, f->files[i].txn));
		TRY(buf_put_text(out, f->files[i].path));
	}
	return 0;
}

/* Room for so many items of at least @item_min bytes each; a bad count marks the cursor. */
static int make_room(struct cursor *c, size_t item_min, size_t item_size,
		     size_t *out_n, void **out_items)
{
	uint64_t n = cursor_varint(c);

	if (n > cursor_left(c) / item_min)
		c->is_bad = true;
	if (c->is_bad)
		return INCR_E_CORRUPT;
	*out_items = n ? calloc((size_t)n, item_size) : NULL;
	if (n && !*out_items)
		return INCR_E_NOMEM;
	*out_n = (size_t)n;
	return 0;
}

static int decode_ranges(struct cursor *c, struct fact_lost *f)
{
	uint64_t last = 0;
	int r = make_room(c, 3, sizeof(*f->ranges), &f->n_ranges,
			  (void **)&f->ranges);

	for (size_t i = 0; r == 0 && i < f->n_ranges; i++) {
		struct lost_range *range = &f->ranges[i];

		range->from = cursor_varint(c);
		range->to = cursor_varint(c);
		range->last_sequence = cursor_varint(c);
		if (range->from < last || range->from >= range->to ||
		    range->to > POSITION_MAX || range->from % ALIGN ||
		    range->to % ALIGN || !range->last_sequence)
			r = INCR_E_CORRUPT;
		last = range->to;
	}
	return r;
}

static int decode_manifests(struct cursor *c, struct fact_lost *f)
{
	int r = make_room(c, 1, sizeof(*f->manifests), &f->n_manifests,
			  (void **)&f->manifests);

	for (size_t i = 0; r == 0 && i < f->n_manifests; i++) {
		f->manifests[i] = cursor_varint(c);
		if (!f->manifests[i])
			r = INCR_E_CORRUPT;
	}
	return r;
}

static int decode_files(struct cursor *c, struct fact_lost *f)
{
	int r = make_room(c, 3, sizeof(*f->files), &f->n_files,
			  (void **)&f->files);

	for (size_t i = 0; r == 0 && i < f->n_files; i++) {
		struct lost_file *file = &f->files[i];

		file->txn = cursor_varint(c);
		file->path = cursor_text(c);
		if (!file->txn ||
		    name_check_path(file->path.data, file->path.size, NULL) < 0)
			r = INCR_E_CORRUPT;
	}
	return r;
}

int fact_decode_lost(const void *payload, size_t size, struct fact_lost *out)
{
	struct cursor c = cursor_over(payload, size);
	struct fact_lost f = { .time_ns = cursor_zigzag(&c) };
	int r;

	f.next.txn = cursor_varint(&c);
	f.next.build = cursor_varint(&c);
	f.next.dataset = cursor_varint(&c);
	f.next.branch = cursor_varint(&c);
	f.next.line = cursor_varint(&c);
	r = decode_ranges(&c, &f);
	if (r == 0)
		r = decode_manifests(&c, &f);
	if (r == 0)
		r = decode_files(&c, &f);
	if (r == 0 && (c.is_bad || cursor_left(&c)))
		r = INCR_E_CORRUPT;
	if (r < 0) {
		fact_lost_release(&f);
		return r;
	}
	*out = f;
	return 0;
}
