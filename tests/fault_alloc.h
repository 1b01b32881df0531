/*
 * Allocations of the code under test: counted, and one of them refused.  For
 * programs that are linked with fault_ldflags, which send malloc() and
 * its kin, and the few other calls that need memory, through here.
 */
#ifndef INCR_FAULT_ALLOC_H
#define INCR_FAULT_ALLOC_H

#include <stdbool.h>

struct fault_alloc {
	long n_calls; /* so far */
	long n_live; /* allocated and not freed */
	long fail_at; /* the call with this number, from 1; 0: none */
	bool fails_for_good; /* and all later ones */
	long n_failed;
};
/* Atomic while threads of the code under test run. */
extern struct fault_alloc fault_alloc;

/* Only between these two anything is counted or refused. */
void fault_alloc_start(void);
void fault_alloc_stop(void);
/* Within them, for this thread: what the test itself does. They nest. */
void fault_alloc_pause(void);
void fault_alloc_resume(void);

#endif
