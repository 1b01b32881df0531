/*
 * Comparing schemas (R159 to R161), and a header line for an empty `previous`.
 */
#include "config.h"

#include "schema_columns.h"

#include "error.h"

#include <string.h>
#include <strings.h>

static int mismatch(struct incr_error *err, const char *alias,
		    const char *column, const char *what)
{
	return incr_fail(err, INCR_E_REFUSED, "schema-mismatch", column,
			 "output %s: %s", alias, what);
}

/* Names that differ in case only would be one column to many readers. */
static const struct schema_column *find_clash(
	const struct schema_columns *columns, const char *name)
{
	for (size_t i = 0; i < columns->n; i++)
		if (strcasecmp(columns->items[i].name, name) == 0 &&
		    strcmp(columns->items[i].name, name) != 0)
			return &columns->items[i];
	return NULL;
}

int schema_columns_compare(const struct schema_columns *stored,
			   const struct schema_columns *wanted,
			   const char *alias, struct incr_error *err)
{
	size_t at = 0;

	for (size_t i = 0; i < wanted->n; i++) {
		if (!wanted->items[i].is_nullable)
			return mismatch(err, alias, wanted->items[i].name,
					"a stored column can always be null");
		if (find_clash(stored, wanted->items[i].name))
			return mismatch(
				err, alias, wanted->items[i].name,
				"it differs in case only from a stored column");
	}
	for (size_t i = 0; i < stored->n; i++) {
		const struct schema_column *column = &stored->items[i];

		while (at < wanted->n &&
		       strcmp(wanted->items[at].name, column->name) != 0)
			at++;
		if (at == wanted->n)
			return mismatch(err, alias, column->name,
					"the stored column is missing, or in "
					"another place");
		if (strcmp(wanted->items[at].type, column->type) != 0)
			return mismatch(err, alias, column->name,
					"the stored column has another type");
		at++;
	}
	return 0;
}

static int put_quoted(struct buf *out, const char *name)
{
	int r = buf_put_u8(out, '"');

	for (; *name && r == 0; name++) {
		if (*name == '"')
			r = buf_put_u8(out, '"');
		if (r == 0)
			r = buf_put(out, name, 1);
	}
	return r < 0 ? r : buf_put_u8(out, '"');
}

int schema_columns_csv(const struct schema_columns *columns, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < columns->n && r == 0; i++) {
		const char *name = columns->items[i].name;

		if (i)
			r = buf_put_u8(out, ',');
		if (r == 0)
			r = strpbrk(name, "\",\r\n") ?
				    put_quoted(out, name) :
				    buf_put(out, name, strlen(name));
	}
	return r < 0 ? r : buf_put_u8(out, '\n');
}
