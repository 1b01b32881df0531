/*
 * What verify and repair found, as text and as JSON.
 */
#ifndef INCR_TOOLS_FINDING_H
#define INCR_TOOLS_FINDING_H

#include "incr.h"

#include "progress.h"

#include <jansson.h>

/* Into the array @findings, or, if that is NULL, as one line on stdout. */
void finding_out(json_t *findings, struct progress *progress,
		 const struct incr_finding *finding);
/* The same of what is left over. */
void left_over_out(json_t *left_over, struct progress *progress,
		   const struct incr_finding *finding);

#endif
