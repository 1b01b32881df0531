/*
 * Processes that use a mounted filesystem.
 */
#ifndef INCR_HOLDERS_H
#define INCR_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

struct holder {
	pid_t pid;
	char program[64];
	const char *path; /* that it uses; borrowed for the call */
};

/* Call @fn once for each process found; true ends the search. */
typedef bool (*holder_fn)(void *closure, const struct holder *holder);
void holders_find(dev_t dev, holder_fn fn, void *closure);

#endif
