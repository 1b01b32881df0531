/* The manifest of a committed transaction, as its record has it. */
#include "config.h"

#include "manifest_source.h"

#include <inttypes.h>

#include "error.h"

void manifest_source_release(struct manifest_source *m)
{
	manifest_reader_free(m->entries);
	content_release(&m->content);
	buf_release(&m->bytes);
	*m = (struct manifest_source){ 0 };
}

int manifest_source_open(const struct fact_txn *txn, uint64_t frames_position,
			 struct content_reader *reader,
			 struct manifest_source *out, struct incr_error *err)
{
	struct cursor c = cursor_over(txn->manifest.data, txn->manifest.size);
	int r;

	/* in place: the reader borrows the bytes and the content from *out */
	*out = (struct manifest_source){ 0 };
	if (txn->manifest_kind == FACT_MANIFEST_INLINE) {
		r = buf_put(&out->bytes, txn->manifest.data,
			    txn->manifest.size);
		if (r == 0)
			r = manifest_reader_new_memory(
				out->bytes.data, out->bytes.size,
				frames_position + txn->frames_off,
				&out->entries);
	} else {
		r = content_decode(&c, &out->content);
		if (r == 0 && (c.is_bad || cursor_left(&c)))
			r = INCR_E_CORRUPT;
		if (r == 0)
			r = manifest_reader_new_content(reader, &out->content,
							&out->entries);
	}
	if (r == 0)
		return 0;
	manifest_source_release(out);
	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	return incr_fail(err, INCR_E_CORRUPT, "damaged-manifest", NULL,
			 "the manifest of t%" PRIu64 " does not parse",
			 txn->number);
}
