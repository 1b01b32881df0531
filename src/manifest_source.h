/* The manifest of a committed transaction: in its record, or in a pack. */
#ifndef INCR_MANIFEST_SOURCE_H
#define INCR_MANIFEST_SOURCE_H

#include "content.h"
#include "fact.h"
#include "manifest.h"

struct manifest_source {
	struct manifest_reader *entries; /* owned */
	struct content content; /* owned, when it stands in a pack */
	struct buf bytes; /* owned, when it stands in the record */
};

/* Open it; @frames_position is where the frames of the record stand. */
int manifest_source_open(const struct fact_txn *txn, uint64_t frames_position,
			 struct content_reader *reader,
			 struct manifest_source *out, struct incr_error *err);
void manifest_source_release(struct manifest_source *m);

#endif
