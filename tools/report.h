/*
 * The report of a build, as text and as HTML.
 */
#ifndef INCR_TOOLS_REPORT_H
#define INCR_TOOLS_REPORT_H

#include "incr.h"

#include <stdio.h>

void report_text(FILE *to, const struct incr_build_info *info);
/* Write the page to @path, replacing it. */
int report_html(const char *path, const struct incr_build_info *info,
		struct incr_error *err);

#endif
