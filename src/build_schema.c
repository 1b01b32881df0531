/*
 * Schemas given for outputs (R159 to R161): compared with the stored one when
 * `previous` has content, and the header of an empty `previous` when not.
 */
#include "config.h"

#include "build.h"
#include "error.h"
#include "schema_columns.h"

#include <stdlib.h>
#include <string.h>

/* The stored schema at the head: 0, or 1 when there is none. */
static int load_stored(struct incr_build *b, const struct incr_plan_output *out,
		       struct schema_columns *columns, struct incr_error *err)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	int r;

	if (!out->head)
		return 1;
	r = incr_schema_get(b->st, out->dataset_id, out->head, &text, &length,
			    err);
	return r ? r : schema_columns_parse(text, length, columns, err);
}

static int check_schema(struct incr_build *b, size_t idx,
			struct incr_error *err)
{
	const struct incr_plan_output *out = &b->info.plan.outputs[idx];
	const char *given = b->info.plan.transform.outputs[idx].schema;
	struct schema_columns stored = { 0 }, wanted = { 0 };
	int r;

	if (!given)
		return 0;
	r = schema_columns_parse(given, strlen(given), &wanted, err);
	if (r == 0 && b->info.plan.is_incremental) {
		r = load_stored(b, out, &stored, err);
		if (r == 0)
			r = schema_columns_compare(&stored, &wanted, out->alias,
						   err);
	}
	schema_columns_release(&stored);
	schema_columns_release(&wanted);
	return r < 0 ? r : 0;
}

int build_check_schemas(struct incr_build *b, struct incr_error *err)
{
	int r = 0;

	for (size_t i = 0; i < b->info.plan.n_outputs && r == 0; i++)
		r = check_schema(b, i, err);
	return r;
}

static int make_empty(struct build_output *out, const char *schema,
		      struct incr_error *err)
{
	_cleanup_buf_ struct buf line = BUF_INIT;
	struct schema_columns columns;
	int r = schema_columns_parse(schema, strlen(schema), &columns, err);

	if (r < 0)
		return r;
	r = schema_columns_csv(&columns, &line);
	schema_columns_release(&columns);
	if (r < 0)
		return incr_fail_nomem(err);

	out->empty_previous = (char *)line.data;
	out->empty_previous_size = line.size;
	line = BUF_INIT;
	return 0;
}

int build_make_empty_previous(struct incr_build *b, struct incr_error *err)
{
	const struct incr_plan *p = &b->info.plan;
	int r = 0;

	if (!p->transform.empty_previous_csv)
		return 0;
	for (size_t i = 0; i < p->n_outputs && r == 0; i++) {
		const char *schema = p->transform.outputs[i].schema;

		if (schema && (!p->is_incremental || !p->outputs[i].head))
			r = make_empty(&b->outputs[i], schema, err);
	}
	return r;
}
