/* Does a repair leave the packs that records name, and those alone? */
#ifndef INCR_CRASH_PACKS_H
#define INCR_CRASH_PACKS_H

#include "simio.h"

/*
 * Repair the store in @sim, whose bytes of the log in lost/ are given up first.
 * NULL, or what is wrong.
 */
const char *crash_check_packs(struct sim *sim, const char *store);

#endif
