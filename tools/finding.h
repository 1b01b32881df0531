/*
 * Damage that verify and repair found, as text and as JSON.
 */
#ifndef INCR_TOOLS_FINDING_H
#define INCR_TOOLS_FINDING_H

#include "incr.h"

#include <jansson.h>

/* One line on stdout. */
void finding_print(const struct incr_finding *finding);
json_t *finding_json(const struct incr_finding *finding); /* new reference */

#endif
