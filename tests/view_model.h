/*
 * Histories of one dataset in memory: each transaction keeps a whole copy of
 * its view, so that nothing here can be clever.
 */
#ifndef INCR_VIEW_MODEL_H
#define INCR_VIEW_MODEL_H

#include "store_kit.h"

#define MODEL_PATHS 40
#define MODEL_TXNS 96
#define MODEL_BRANCHES 4
#define MODEL_CONTENT_MAX \
	80000 /* more than a record carries in a commit or two */

extern const char *const model_paths[MODEL_PATHS]; /* in byte order */

struct model_txn {
	uint64_t number;
	enum incr_txn_type type;
	size_t parent; /* index; 0: none */
	size_t start; /* index of the view's first transaction */
	size_t writer[MODEL_PATHS]; /* index; 0: absent */
	size_t remover
		[MODEL_PATHS]; /* last that took it away; 0: none in this view */
};

struct model {
	uint64_t random;
	size_t n; /* transactions are 1 to n */
	struct model_txn txns[MODEL_TXNS + 1]; /* txns[0]: the empty view */
	size_t n_branches;
	size_t heads[MODEL_BRANCHES]; /* branch 0 is main */
};

void model_init(struct model *m, uint64_t seed);
const char *model_branch(size_t idx);
/*
 * One random step on a random branch, in the model and the store: false when
 * they disagree on whether it may be done, noted as a failure.
 */
bool model_step(struct model *m, struct store_kit *k);

/* Content of a path as transaction @writer wrote it; bytes owned. */
char *model_content(const struct model *m, size_t path, size_t writer,
		    size_t *out_size);
size_t model_content_size(const struct model *m, size_t path, size_t writer);
/* Is transaction @t on the path that ends in @head? */
bool model_is_on_path(const struct model *m, size_t t, size_t head);

#endif
