/*
 * A dataset at a point, NAME[:BRANCH][@POINT], and ranges FROM..TO. Pure.
 */
#ifndef INCR_TOOLS_POINT_H
#define INCR_TOOLS_POINT_H

#include "incr.h"

#include <stdint.h>

enum point_kind {
	POINT_NONE, /* not given */
	POINT_TXN, /* t42 */
	POINT_TIME, /* RFC 3339 */
};

struct point {
	enum point_kind kind;
	uint64_t txn;
	int64_t time_ns;
};

struct dataset_point {
	char *dataset; /* owned */
	char *branch; /* owned; NULL: not given */
	struct point point;
};

struct point_range {
	struct point from, to; /* POINT_NONE: from the beginning, to the head */
};

/* Each returns 0, or INCR_E_INVALID with @err filled. */
int point_parse(const char *text, struct point *out_point,
		struct incr_error *err);
int dataset_point_parse(const char *text, struct dataset_point *out,
			struct incr_error *err);
void dataset_point_release(struct dataset_point *p);
int point_range_parse(const char *text, struct point_range *out_range,
		      struct incr_error *err);

#endif
