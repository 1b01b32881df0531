/*
 * All that a store says, as one text: datasets, branches, transactions,
 * schemas, and every file of every view with a hash of its bytes.  Two stores
 * with the same text are the same to everyone who reads them.
 */
#ifndef INCR_STORE_TEXT_H
#define INCR_STORE_TEXT_H

#include "incr.h"

struct store_text {
	char *text; /* owned; NULL: nothing yet */
	size_t size, capacity;
};

void store_text_release(struct store_text *t);
void store_text_add(struct store_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#define STORE_TEXT_ALL_VIEWS \
	1u /* of each transaction, not of the heads alone */
#define STORE_TEXT_TIMES 2u
#define STORE_TEXT_BUILDS 4u
/*
 * What is there replaces what @out held.  Where reading fails the text says
 * so, and the code of the first such failure is returned.
 */
int store_text_fill(struct incr_store *st, unsigned flags,
		    struct store_text *out);

#endif
