/*
 * Which transactions are lost with damaged records of the log: the numbers
 * that no whole record names, since numbers are given without gaps.
 */
#ifndef INCR_VERIFY_LOST_H
#define INCR_VERIFY_LOST_H

#include "log.h"

struct verify_lost {
	uint8_t *flags; /* owned: one byte for each number */
	uint64_t n; /* numbers there are flags for; the last one was named */
	uint64_t n_given_up; /* the first number after those a repair speaks of */
};
void verify_lost_release(struct verify_lost *lost);

/* A whole record of the log. INCR_E_NOMEM, or 0. */
int verify_lost_note(struct verify_lost *lost, const struct log_record *record);
/* It was reported; the number is not given again. */
int verify_lost_told(struct verify_lost *lost, uint64_t txn);
/* The first lost number from @from on; 0: there is none. */
uint64_t verify_lost_next(const struct verify_lost *lost, uint64_t from);

#endif
