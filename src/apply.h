/* One record of the log, applied to the index. */
#ifndef INCR_APPLY_H
#define INCR_APPLY_H

#include "commit_record.h"
#include "content.h"
#include "log.h"
#include "state.h"

/*
 * Put what @record says into the index.  @reader: to read manifests that stand
 * in packs.  INCR_E_CORRUPT, word "bad-fact", when the record contradicts what
 * came before it; INCR_E_UNSUPPORTED "newer-format" for an unknown type.
 */
int apply_record(struct index *ix, const struct log_record *record,
		 struct content_reader *reader, struct incr_error *err);

/* A stretch of the log is passed over: what follows may lean on what is lost. */
int apply_hole(struct index *ix, const struct log_hole *hole,
	       struct incr_error *err);

/* The manifest of a committed transaction, from its record. */
struct manifest_source {
	struct manifest_reader *entries; /* owned */
	struct content content; /* owned, when it stands in a pack */
	struct buf bytes; /* owned, when it stands in the record */
};
void manifest_source_release(struct manifest_source *m);
int manifest_source_open(const struct fact_txn *txn, uint64_t frames_position,
			 struct content_reader *reader,
			 struct manifest_source *out, struct incr_error *err);

#endif
