/*
 * A merge of iterators: a binary heap of sources, ordered by key and then by
 * source, so that the newest of equal keys is at the top.
 *
 * The top is the entry given.  Older entries of the same key are skipped when
 * the merge moves on, not before: until then the borrowed bytes stay valid.
 * A walk that stays in one source (a large base table under small newer ones)
 * costs two comparisons an entry.
 *
 * A seek forward moves only the sources that stand before the target, and
 * those use their own short cuts; one backward seeks them all.
 */
#include "config.h"

#include "table.h"

#include "error.h"

#include <stdlib.h>

struct merge_iter {
	struct iter iter; /* first */
	struct iter **sources; /* owned; newest first */
	size_t n_sources;
	uint32_t *heap; /* owned; source numbers, those that have an entry */
	size_t n_heap;
	bool drops_tombstones;
	bool is_ended;
};

void iter_free(struct iter *it)
{
	if (it)
		it->free(it);
}

void cleanup_iter(struct iter **it)
{
	iter_free(*it);
}

static struct merge_iter *merge_iter(struct iter *it)
{
	return (struct merge_iter *)it;
}

static const struct table_entry *heap_entry(const struct merge_iter *m,
					    size_t at)
{
	return &m->sources[m->heap[at]]->entry;
}

static int heap_compare_keys(const struct merge_iter *m, size_t a, size_t b)
{
	const struct table_entry *x = heap_entry(m, a);
	const struct table_entry *y = heap_entry(m, b);

	return table_key_compare(x->key, x->key_size, y->key, y->key_size);
}

static bool heap_is_before(const struct merge_iter *m, size_t a, size_t b)
{
	int order = heap_compare_keys(m, a, b);

	return order ? order < 0 : m->heap[a] < m->heap[b];
}

static void heap_sift_down(struct merge_iter *m, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		uint32_t source = m->heap[at];

		if (child >= m->n_heap)
			return;

		if (child + 1 < m->n_heap &&
		    heap_is_before(m, child + 1, child))
			child++;
		if (!heap_is_before(m, child, at))
			return;

		m->heap[at] = m->heap[child];
		m->heap[child] = source;
		at = child;
	}
}

static int merge_fail(struct merge_iter *m, int r)
{
	m->n_heap = 0;
	m->is_ended = false;
	return r;
}

/* Take up what moving the source at @at gave: an entry, the end or a failure. */
static int heap_moved(struct merge_iter *m, size_t at, int r)
{
	if (r < 0)
		return merge_fail(m, r);

	if (r)
		m->heap[at] = m->heap[--m->n_heap];
	/* The last source may belong higher only if @at was not its ancestor. */
	heap_sift_down(m, at);
	return 0;
}

/* Move all sources but the top one off the key of the top. */
static int merge_skip_older(struct merge_iter *m, struct incr_error *err)
{
	while (m->n_heap > 1) {
		size_t at = 1;
		int r;

		if (m->n_heap > 2 && heap_is_before(m, 2, 1))
			at = 2;
		if (heap_compare_keys(m, at, 0) != 0)
			return 0;

		r = m->sources[m->heap[at]]->next(m->sources[m->heap[at]], err);
		r = heap_moved(m, at, r);
		if (r < 0)
			return r;
	}

	return 0;
}

/* Move on to the next key. */
static int merge_step(struct merge_iter *m, struct incr_error *err)
{
	struct iter *top = m->sources[m->heap[0]];
	int r = merge_skip_older(m, err);

	return r < 0 ? r : heap_moved(m, 0, top->next(top, err));
}

/* Give the top entry, or with drops_tombstones the first that is none. */
static int merge_show(struct merge_iter *m, struct incr_error *err)
{
	const struct iter *top;

	while (m->drops_tombstones && m->n_heap &&
	       heap_entry(m, 0)->is_tombstone) {
		int r = merge_step(m, err);

		if (r < 0)
			return r;
	}

	m->is_ended = !m->n_heap;
	if (m->is_ended)
		return 1;

	top = m->sources[m->heap[0]];
	m->iter.entry = top->entry;
	m->iter.source = m->heap[0];
	m->iter.block = top->block;
	m->iter.index = top->index;
	return 0;
}

static int merge_next(struct iter *it, struct incr_error *err)
{
	struct merge_iter *m = merge_iter(it);
	int r;

	if (m->is_ended)
		return 1;

	if (!m->n_heap)
		return incr_fail(err, INCR_E_INVALID, NULL, NULL,
				 "iterator stands nowhere");

	r = merge_step(m, err);
	return r < 0 ? r : merge_show(m, err);
}

static int merge_seek_all(struct merge_iter *m, const void *key,
			  size_t key_size, struct incr_error *err)
{
	m->n_heap = 0;
	for (size_t i = 0; i < m->n_sources; i++) {
		struct iter *source = m->sources[i];
		int r = source->seek(source, key, key_size, err);

		if (r < 0)
			return merge_fail(m, r);

		if (!r)
			m->heap[m->n_heap++] = (uint32_t)i;
	}
	for (size_t i = m->n_heap / 2; i-- > 0;)
		heap_sift_down(m, i);
	return 0;
}

static int merge_seek_forward(struct merge_iter *m, const void *key,
			      size_t key_size, struct incr_error *err)
{
	while (m->n_heap) {
		const struct table_entry *e = heap_entry(m, 0);
		struct iter *top = m->sources[m->heap[0]];
		int r;

		if (table_key_compare(e->key, e->key_size, key, key_size) >= 0)
			return 0;

		r = heap_moved(m, 0, top->seek(top, key, key_size, err));
		if (r < 0)
			return r;
	}

	return 0;
}

static int merge_seek(struct iter *it, const void *key, size_t key_size,
		      struct incr_error *err)
{
	struct merge_iter *m = merge_iter(it);
	const struct table_entry *e = m->n_heap ? heap_entry(m, 0) : NULL;
	int r;

	if (e && table_key_compare(e->key, e->key_size, key, key_size) <= 0)
		r = merge_seek_forward(m, key, key_size, err);
	else
		r = merge_seek_all(m, key, key_size, err);
	return r < 0 ? r : merge_show(m, err);
}

static void merge_free(struct iter *it)
{
	struct merge_iter *m = merge_iter(it);

	for (size_t i = 0; i < m->n_sources; i++)
		iter_free(m->sources[i]);
	free(m->sources);
	free(m->heap);
	free(m);
}

int iter_merge_new(struct iter **iters, size_t n, bool drops_tombstones,
		   struct iter **out_iter, struct incr_error *err)
{
	struct merge_iter *m = calloc(1, sizeof(*m));
	struct iter **sources = calloc(n + 1, sizeof(struct iter *));
	uint32_t *heap = calloc(n + 1, sizeof(*heap));

	if (!m || !sources || !heap) {
		free(m);
		free(sources);
		free(heap);
		for (size_t i = 0; i < n; i++)
			iter_free(iters[i]);
		return incr_fail_nomem(err);
	}

	for (size_t i = 0; i < n; i++)
		sources[i] = iters[i];
	m->iter.seek = merge_seek;
	m->iter.next = merge_next;
	m->iter.free = merge_free;
	m->sources = sources;
	m->n_sources = n;
	m->heap = heap;
	m->drops_tombstones = drops_tombstones;
	*out_iter = &m->iter;
	return 0;
}
