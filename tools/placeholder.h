/*
 * Placeholders in the arguments of a command. Pure.
 *
 * `{NAME}` with a NAME of the table becomes its value, and `{{NAME}` the
 * literal `{NAME}`. Every other byte is passed on unchanged.
 */
#ifndef INCR_TOOLS_PLACEHOLDER_H
#define INCR_TOOLS_PLACEHOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct placeholder {
	char *name; /* owned */
	char *value; /* owned */
};

struct placeholders {
	size_t n;
	struct placeholder *items; /* owned */
};

/* Add a copy; false without memory. */
bool placeholders_add(struct placeholders *p, const char *name,
		      const char *value);
void placeholders_release(struct placeholders *p);
/* Owned by the caller; NULL without memory. */
char *placeholders_replace(const struct placeholders *p, const char *text);

#endif
