/* New content of one transaction, on its way into the index. */
#ifndef INCR_APPLY_CONTENT_H
#define INCR_APPLY_CONTENT_H

#include "manifest_source.h"
#include "state.h"

struct apply_content {
	uint64_t container, from; /* where new frames of the transaction are */
	struct apply_content_entry *entries; /* owned */
	size_t n, capacity;
	struct buf values; /* of the entries, back to back */
};

/* @m: the transaction's manifest; @frames_position as for opening it. */
void apply_content_init(struct apply_content *c,
			const struct manifest_source *m,
			uint64_t frames_position);
void apply_content_release(struct apply_content *c);
/* A file that the transaction puts, its content where it is read from. */
int apply_content_add(struct apply_content *c, struct index *ix,
		      const struct manifest_entry *e, struct incr_error *err);
/* All that was added is in the index then. */
int apply_content_put(struct apply_content *c, struct index *ix,
		      struct incr_error *err);

#endif
