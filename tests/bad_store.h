/*
 * Stores that are wrong in their meaning, with right checksums: a store in
 * memory with one dataset and one transaction, and one thing in or behind it
 * that no writer would write.
 */
#ifndef INCR_BAD_STORE_H
#define INCR_BAD_STORE_H

#include "simio.h"

#define BAD_STORE "store"

enum bad_kind {
	BAD_FORMAT, /* a number in the format file */
	BAD_SEGMENT, /* a number in the header of the segment */
	BAD_RECORD, /* a number in the header of the last record */
	BAD_DATASET, /* a dataset with this name */
	BAD_BRANCH, /* a branch with this name */
	BAD_BRANCH_FIELD, /* a number in struct fact_branch */
	BAD_TXN_FIELD, /* a number in struct fact_txn of a commit */
	BAD_FACT, /* a fact of type @off with these bytes as its payload */
	BAD_TAIL, /* a whole commit and these bytes behind its head */
	BAD_PATH, /* a manifest that puts this path */
	BAD_MANIFEST, /* these bytes as a manifest */
	BAD_CONTENT, /* these numbers as a content descriptor, in the last 0 */
	BAD_FRAME, /* a number in the header of the frame in the log */
	BAD_BOMB, /* a frame in a pack that expands to more than it says */
};

struct bad {
	const char *name; /* bad-..., as in tests/stores/README */
	enum bad_kind kind;
	int code; /* what must come back */
	const char *word;
	size_t off; /* where the number is */
	unsigned width; /* its bytes */
	uint64_t value;
	const char *text; /* name, path or bytes */
	size_t size; /* of @text */
	uint64_t numbers[10];
};

extern const struct bad bad_stores[]; /* ends with a NULL name */
struct sim *bad_store_make(const struct bad *bad);

#endif
