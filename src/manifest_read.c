/*
 * A whole manifest, entry by entry.  One that is content is read through a
 * window: when an entry does not parse and there is more, the window grows by
 * what it lacks, up to the largest entry that can be.
 */
#include "config.h"

#include "manifest.h"

#include "bytes.h"
#include "error.h"
#include "name.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_SIZE ((size_t)256 << 10)
/* op, path, mode, mtime, hash and a descriptor of CONTENT_EXTENTS_MAX extents */
#define ENTRY_SIZE_MAX (NAME_PATH_MAX + 128 + (size_t)CONTENT_EXTENTS_MAX * 50)

struct manifest_reader {
	struct content_reader *reader; /* borrowed; NULL: from memory */
	const struct content *content; /* borrowed */
	uint64_t read_to; /* bytes of @content that were read */
	uint64_t frames_position;
	struct buf window;
	const uint8_t *at, *end; /* what is not decoded yet */
	struct manifest_entry entry; /* the current one; its content is owned */
	bool has_last;
	size_t last_length;
	char last[NAME_PATH_MAX]; /* path before the current one */
};

int manifest_reader_new_memory(const void *data, size_t size,
			       uint64_t frames_position,
			       struct manifest_reader **out_reader)
{
	struct manifest_reader *m = calloc(1, sizeof(*m));

	if (!m)
		return INCR_E_NOMEM;

	m->frames_position = frames_position;
	m->at = data;
	m->end = size > 0 ? m->at + size : m->at; /* @data may be NULL */
	*out_reader = m;
	return 0;
}

int manifest_reader_new_content(struct content_reader *reader,
				const struct content *content,
				struct manifest_reader **out_reader)
{
	struct manifest_reader *m = calloc(1, sizeof(*m));

	if (!m)
		return INCR_E_NOMEM;

	m->reader = reader;
	m->content = content;
	*out_reader = m;
	return 0;
}

static bool has_more(const struct manifest_reader *m)
{
	return m->reader && m->read_to < m->content->size;
}

static int fail_damaged(struct incr_error *err, const char *what)
{
	return incr_fail(err, INCR_E_CORRUPT, "damaged-manifest", "manifest",
			 "%s", what);
}

/* Move what is left to the front of the window, and read behind it. */
static int fill(struct manifest_reader *m, struct incr_error *err)
{
	size_t left = (size_t)(m->end - m->at), n;
	size_t want = left < WINDOW_SIZE / 2 ? WINDOW_SIZE : 2 * left;
	int r;

	if (left > ENTRY_SIZE_MAX)
		return fail_damaged(err, "an entry is too long");

	if (left > 0 && m->at != m->window.data)
		memmove(m->window.data, m->at, left);
	m->window.size = left;
	r = buf_reserve(&m->window, want - left);
	if (r < 0)
		return incr_fail_nomem(err);

	m->at = m->window.data;
	m->end = m->at + left;
	r = content_read(m->reader, m->content, m->read_to,
			 m->window.data + left, want - left, &n, err);
	if (r < 0)
		return r;

	m->read_to += n;
	m->window.size += n;
	m->end += n;
	return 0;
}

/* Decode the entry at the front; reads more when it is cut. */
static int decode_next(struct manifest_reader *m, struct cursor *c,
		       struct incr_error *err)
{
	for (;;) {
		int r;

		*c = cursor_over(m->at, (size_t)(m->end - m->at));
		r = manifest_decode(c, &m->entry);
		if (r == 0)
			return 0;
		if (r == INCR_E_NOMEM)
			return incr_fail_nomem(err);

		m->entry = (struct manifest_entry){ .op = MANIFEST_REMOVE };
		if (!has_more(m))
			return fail_damaged(err, "an entry does not parse");

		r = fill(m, err);
		if (r < 0)
			return r;
	}
}

static int check_order(struct manifest_reader *m, struct incr_error *err)
{
	const struct manifest_entry *e = &m->entry;
	size_t n = e->path_length < m->last_length ? e->path_length :
						     m->last_length;
	int order = m->has_last ? memcmp(m->last, e->path, n) : -1;

	if (order > 0 || (order == 0 && m->last_length >= e->path_length))
		return fail_damaged(err, "the paths do not ascend");

	m->has_last = true;
	m->last_length = e->path_length;
	memcpy(m->last, e->path, e->path_length);
	return 0;
}

int manifest_reader_next(struct manifest_reader *m,
			 const struct manifest_entry **out_entry,
			 struct incr_error *err)
{
	struct cursor c;
	int r;

	manifest_entry_release(&m->entry);
	if (m->at == m->end && has_more(m)) {
		r = fill(m, err);
		if (r < 0)
			return r;
	}
	if (m->at == m->end)
		return 1;

	r = decode_next(m, &c, err);
	if (r < 0)
		return r;

	m->at = c.at;
	if (m->reader && m->entry.content.kind == CONTENT_PART &&
	    m->entry.content.container == PACK_SELF)
		return fail_damaged(err, "it is in no record, but names one");
	if (content_rebase(&m->entry.content, m->frames_position) < 0)
		return fail_damaged(err, "a frame's position is too large");

	r = check_order(m, err);
	if (r < 0)
		return r;

	*out_entry = &m->entry;
	return 0;
}

void manifest_reader_free(struct manifest_reader *m)
{
	if (!m)
		return;

	manifest_entry_release(&m->entry);
	buf_release(&m->window);
	free(m);
}
