/* JSON for model_driver: each function writes to @out, all strings borrowed. */
#ifndef MODEL_JSON_H
#define MODEL_JSON_H

#include "incr.h"

#include <stdio.h>

void put_text(FILE *out, const char *text); /* null for NULL */
void put_key_text(FILE *out, const char *key,
		  const char *text); /* with a comma */
void put_txn_info(FILE *out, const struct incr_txn_info *info);
/* An object from path to [writer, mode]. */
int put_view(FILE *out, struct incr_view *view, struct incr_error *err);
/* The members of a plan, each with a comma behind it. */
void put_plan(FILE *out, const struct incr_plan *plan);
void put_build_info(FILE *out, const struct incr_build_info *info);

#endif
