/*
 * What a repair has given up, as a fact of the log: stretches of the log that
 * do not verify, manifests and files that cannot be read.  Pure encode and
 * decode; docs/format.md, "Losses".
 */
#ifndef INCR_LOST_H
#define INCR_LOST_H

#include "fact.h"

/* A stretch of the log that readers pass over. */
struct lost_range {
	uint64_t from, to; /* log positions */
	uint64_t last_sequence; /* number of the last record in it */
};

/* A file, as a transaction put it. */
struct lost_file {
	uint64_t txn;
	struct text path; /* borrowed */
};

/* What is made later gets these numbers or higher ones. */
struct lost_numbers {
	uint64_t txn, build, dataset, branch, line;
};

struct fact_lost {
	int64_t time_ns;
	struct lost_numbers next;
	size_t n_ranges, n_manifests, n_files;
	struct lost_range *ranges; /* owned; ascending, apart */
	uint64_t *manifests; /* owned: transactions */
	struct lost_file *files; /* owned */
};
void fact_lost_release(struct fact_lost *f);

int fact_encode_lost(const struct fact_lost *f, struct buf *out);
/* INCR_E_CORRUPT, or INCR_E_NOMEM; the fact fills its payload. */
int fact_decode_lost(const void *payload, size_t size, struct fact_lost *out);

#endif
