/* Paths that a DELETE takes away, each once: what rm and an OPEN DELETE share. */
#ifndef INCR_REMOVE_H
#define INCR_REMOVE_H

#include "commit.h"
#include "memtable.h"

struct removal {
	struct incr_store *st;
	struct incr_view *view; /* borrowed */
	struct memtable *paths; /* owned */
	struct incr_remove_flags flags;
	struct incr_error *err;
};

/* A path of the view, or all files below it; a missing one is ignored (R13). */
int removal_add(struct removal *m, const char *path, size_t length);
/* The manifest of the DELETE. */
int removal_ingest(struct removal *m, struct ingest_result *out_content);

#endif
