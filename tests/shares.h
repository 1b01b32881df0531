/* Work that is shared by several processes, which send what they found. */
#ifndef INCR_TESTS_SHARES_H
#define INCR_TESTS_SHARES_H

#include <stdbool.h>
#include <stddef.h>

struct shares {
	size_t n_processes;
	size_t result_size; /* at most 4096 bytes, without pointers */
	/* In a process of its own; the result is zeroed before. */
	void (*run)(size_t share, void *result);
	void (*add)(void *sum, const void *result);
};

/* @sum: of those processes that ended well.  False: one did not. */
bool shares_run(const struct shares *shares, void *sum);

#endif
