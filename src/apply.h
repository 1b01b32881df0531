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

#endif
