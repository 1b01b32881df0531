/*
 * The columns of a schema's text, as far as `previous` needs them: comparing
 * and a header line.  Pure.
 *
 * The text is a JSON object with an array "columns" of objects with "name",
 * "type" and, unless true, "nullable".  Other keys are passed over.
 */
#ifndef INCR_SCHEMA_COLUMNS_H
#define INCR_SCHEMA_COLUMNS_H

#include "buf.h"
#include "incr.h"

struct schema_column {
	char *name, *type; /* owned */
	bool is_nullable;
};

struct schema_columns {
	size_t n;
	struct schema_column *items; /* owned */
};
void schema_columns_release(struct schema_columns *columns);

/* INCR_E_INVALID "bad-schema". */
int schema_columns_parse(const char *text, size_t length,
			 struct schema_columns *out, struct incr_error *err);

/*
 * May a program that declares @wanted read what has the schema @stored?  Every
 * stored column must be there, in the same order and of the same type; more
 * are allowed.  Stored columns can always be null, so @wanted may not deny it,
 * and names may not differ in case only.
 * INCR_E_REFUSED "schema-mismatch", @alias in the message.
 */
int schema_columns_compare(const struct schema_columns *stored,
			   const struct schema_columns *wanted,
			   const char *alias, struct incr_error *err);

/* One line of CSV with the names. */
int schema_columns_csv(const struct schema_columns *columns, struct buf *out);

#endif
