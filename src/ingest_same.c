/*
 * Equal files within one job.  All of its bytes are at hand, so that nothing
 * is read: the later one takes the place of the earlier one.
 */
#include "config.h"

#include "ingest_parts.h"

#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define N_PLACES ((size_t)2 * INGEST_JOB_ITEMS) /* a power of two */

/* One with bytes of its own, as far as is known. */
static bool is_new(const struct ingest_item *item)
{
	return !item->is_done && item->entry.op == MANIFEST_PUT &&
	       item->entry.content.size >= CONTENT_SHARE_MIN;
}

static bool is_same(const struct ingest_job *job, const struct ingest_item *a,
		    const struct ingest_item *b)
{
	uint64_t size = a->entry.content.size;

	return size == b->entry.content.size &&
	       memcmp(a->entry.hash, b->entry.hash, sizeof(a->entry.hash)) ==
		       0 &&
	       memcmp(job->raw + a->raw_off, job->raw + b->raw_off,
		      (size_t)size) == 0;
}

static void find_earlier(struct ingest_worker *w, struct ingest_job *job,
			 size_t i)
{
	struct ingest_item *item = &job->items[i];
	size_t at = (size_t)get_u64(item->entry.hash) & (N_PLACES - 1);

	for (; w->places[at]; at = (at + 1) & (N_PLACES - 1)) {
		if (!is_same(job, &job->items[w->places[at] - 1], item))
			continue;
		item->same_as = w->places[at];
		item->is_done = true;
		return;
	}
	w->places[at] = (uint16_t)(i + 1);
}

int ingest_same_find(struct ingest_worker *w, struct ingest_job *job)
{
	if (job->n_items < 2)
		return 0;
	if (!w->places)
		w->places = malloc(N_PLACES * sizeof(*w->places));
	if (!w->places)
		return INCR_E_NOMEM;

	memset(w->places, 0, N_PLACES * sizeof(*w->places));
	for (size_t i = 0; i < job->n_items; i++)
		if (is_new(&job->items[i]))
			find_earlier(w, job, i);
	return 0;
}

void ingest_same_fill(struct ingest_job *job)
{
	for (size_t i = 0; i < job->n_items; i++) {
		struct ingest_item *item = &job->items[i];

		if (!item->same_as)
			continue;
		/* within a frame: nothing is owned */
		item->entry.content =
			job->items[item->same_as - 1].entry.content;
		item->is_done = false; /* its frame is still to be placed */
	}
}
