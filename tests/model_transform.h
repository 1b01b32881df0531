#ifndef MODEL_TRANSFORM_H
#define MODEL_TRANSFORM_H

#include "incr.h"

/*
 * Set what @field, KEY=VALUE, says; it is written to.  Parts of a value are
 * split at commas: in=ALIAS,DATASET,BRANCH,0|1 (snapshot),LIMIT
 * out=ALIAS,DATASET,MODE fallback=BRANCH arg=WORD branch=BRANCH version=N
 * flags=LETTERS.
 */
void model_transform_set(struct incr_transform *t, char *field);

#endif
