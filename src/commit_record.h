/*
 * The record of a commit: branches it makes, its transactions, the build they
 * come from, and the content frames of small files.  One record, so that all
 * of it appears together or not at all.  Pure; docs/format.md, "Facts".
 */
#ifndef INCR_COMMIT_RECORD_H
#define INCR_COMMIT_RECORD_H

#include "fact.h"

#define COMMIT_RECORD_TXNS_MAX 4096
/* u32 size of the head, then the head, then the frames */
#define COMMIT_RECORD_HEAD_OFF 4

struct commit_record {
	size_t n_branches;
	struct fact_branch *branches; /* owned array of borrowed texts */
	size_t n_txns;
	struct fact_txn *txns; /* owned array of borrowed texts */
	bool has_build;
	struct fact_build build;
	/* decode only */
	size_t frames_off; /* of the frames in the payload */
	size_t frames_size;
};
void commit_record_release(struct commit_record *r);
/* Everything but the frames: the first of the record's two payload parts. */
int commit_record_encode(const struct commit_record *r, struct buf *out);
int commit_record_decode(const uint8_t *payload, size_t size,
			 struct commit_record *out);

#endif
