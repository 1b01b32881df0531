/* A store compared with its model, in everything that reading calls give. */
#ifndef INCR_VIEW_CHECK_H
#define INCR_VIEW_CHECK_H

#include "view_model.h"

struct world {
	struct store_kit kit;
	struct model model;
	uint64_t seed;
	bool may_be_damaged; /* a failure that says so is fine */
	bool was_damaged; /* a check met one */
};

/* A call gave @r < 0: noted, unless a damaged index may be met, and is. */
bool view_check_failed(struct world *w, int r, const char *what);
bool view_check_expect(struct world *w, bool holds, const char *what);
/* Everything about two random transactions, or about all; false: noted. */
bool view_check_some(struct world *w);
bool view_check_all(struct world *w);

#endif
