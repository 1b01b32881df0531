/*
 * Running the command of `incrctl run`: exec, and passing signals on.
 */
#ifndef INCR_TOOLS_RUN_CHILD_H
#define INCR_TOOLS_RUN_CHILD_H

#include "incr.h"

#include <signal.h>

struct run_result {
	int exec_errno; /* why it could not be executed; 0: it could */
	int exit_code; /* 128 plus the signal that ended it */
	int signo; /* told us to end while it ran; 0: none */
};

/*
 * Block the signals that ask this process to end, so that nothing is left
 * behind; they wait for run_child(). *out_old: the mask before.
 */
void run_signals_block(sigset_t *out_old);
/* Back to that mask; a signal that waits ends the process now. */
void run_signals_restore(const sigset_t *old);

/*
 * Run argv[0], found along $PATH, in this process's group, so that a terminal
 * reaches it too; signals sent to this process alone are passed on to it.
 * Signals must be blocked. Returns when it has ended.
 */
int run_child(char *const *argv, const sigset_t *old,
	      struct run_result *out_result, struct incr_error *err);

#endif
