/*
 * Decoding of a build's record.  Bytes are not trusted: every number, name and
 * count is checked, and a count is held against the bytes that are left before
 * memory is taken for it.
 *
 * A reader collects what went wrong in `r` and reads zeros from then on, so
 * that each part is checked once, at its end.
 */
#include "config.h"

#include "build_record.h"

#include "error.h"
#include "fact.h"
#include "name.h"
#include "transform.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct cursor c;
	int r; /* 0, INCR_E_CORRUPT or INCR_E_NOMEM */
};

static bool is_good(struct reader *rd)
{
	if (rd->c.is_bad && rd->r == 0)
		rd->r = INCR_E_CORRUPT;
	return rd->r == 0;
}

static void reject(struct reader *rd)
{
	rd->c.is_bad = true;
}

/* NUL-terminated and owned; no NUL inside. */
static char *take_bytes(struct reader *rd, const uint8_t *data, size_t size)
{
	char *copy;

	if (!is_good(rd))
		return NULL;
	if (memchr(data, '\0', size)) {
		reject(rd);
		return NULL;
	}
	copy = text_dup((struct text){ (const char *)data, size });
	if (!copy)
		rd->r = INCR_E_NOMEM;
	return copy;
}

static char *take_text(struct reader *rd)
{
	size_t size = 0;
	const uint8_t *data = cursor_string(&rd->c, &size);

	return data ? take_bytes(rd, data, size) : NULL;
}

static char *take_bytes_or_none(struct reader *rd, size_t *out_size)
{
	uint64_t size = cursor_varint(&rd->c);
	const uint8_t *data;

	if (!size)
		return NULL;
	data = cursor_bytes(&rd->c, size - 1);
	if (!data)
		return NULL;
	*out_size = (size_t)size - 1;
	return take_bytes(rd, data, *out_size);
}

static char *take_text_or_none(struct reader *rd)
{
	size_t size;

	return take_bytes_or_none(rd, &size);
}

/* The name or NULL that was just read must pass @check. */
static void check_name(struct reader *rd, const char *name,
		       int (*check)(const char *, size_t, struct incr_error *))
{
	if (name && check(name, strlen(name), NULL) < 0)
		reject(rd);
}

static bool take_flag(struct reader *rd)
{
	uint8_t v = cursor_u8(&rd->c);

	if (v > 1)
		reject(rd);
	return v == 1;
}

/* One of @first to @last. */
static int take_enum(struct reader *rd, int first, int last)
{
	uint8_t v = cursor_u8(&rd->c);

	if (v < first || v > last)
		reject(rd);
	return v;
}

/* A count of things that take at least @size bytes each. */
static size_t take_count(struct reader *rd, size_t max, size_t size)
{
	uint64_t n = cursor_varint(&rd->c);

	if (n > max || n > cursor_left(&rd->c) / size)
		reject(rd);
	return is_good(rd) ? (size_t)n : 0;
}

/* NULL for 0, and when memory ran out. */
static void *take_array(struct reader *rd, size_t n, size_t size)
{
	void *items = n && is_good(rd) ? calloc(n, size) : NULL;

	if (n && !items && rd->r == 0)
		rd->r = INCR_E_NOMEM;
	return items;
}

static void take_texts(struct reader *rd, size_t max, size_t *out_n,
		       char ***out)
{
	size_t n = take_count(rd, max, 1);

	*out = take_array(rd, n, sizeof(**out));
	if (!*out)
		return;
	*out_n = n;
	for (size_t i = 0; i < n; i++)
		(*out)[i] = take_text(rd);
}

static void take_settings(struct reader *rd, struct incr_transform *t)
{
	uint8_t bits = cursor_u8(&rd->c);

	if (bits >> 7)
		reject(rd);
	t->require_incremental = bits & 1;
	t->allow_retention = bits >> 1 & 1;
	t->allow_user_deletes = bits >> 2 & 1;
	t->strict_append = bits >> 3 & 1;
	t->v2_semantics = bits >> 4 & 1;
	t->abort_if_empty = bits >> 5 & 1;
	t->empty_previous_csv = bits >> 6 & 1;
}

static void take_transform_inputs(struct reader *rd, struct incr_transform *t)
{
	size_t n = take_count(rd, TRANSFORM_INPUTS_MAX, 5);

	t->inputs = take_array(rd, n, sizeof(*t->inputs));
	if (!t->inputs)
		return;
	t->n_inputs = n;
	for (size_t i = 0; i < n; i++) {
		struct incr_transform_input *in = &t->inputs[i];

		in->alias = take_text(rd);
		in->dataset = take_text(rd);
		in->branch = take_text_or_none(rd);
		in->is_snapshot = take_flag(rd);
		in->transaction_limit = cursor_varint(&rd->c);
	}
}

static void take_transform_outputs(struct reader *rd, struct incr_transform *t)
{
	size_t n = take_count(rd, TRANSFORM_OUTPUTS_MAX, 4);

	t->outputs = take_array(rd, n, sizeof(*t->outputs));
	if (!t->outputs)
		return;
	t->n_outputs = n;
	for (size_t i = 0; i < n; i++) {
		struct incr_transform_output *out = &t->outputs[i];

		out->alias = take_text(rd);
		out->dataset = take_text(rd);
		out->write_mode = (enum incr_write_mode)take_enum(
			rd, INCR_MODE_DEFAULT, INCR_MODE_APPEND);
		out->schema = take_text_or_none(rd);
	}
}

static void take_transform(struct reader *rd, struct incr_transform *t)
{
	t->name = take_text(rd);
	take_settings(rd, t);
	t->semantic_version = cursor_zigzag(&rd->c);
	t->branch = take_text_or_none(rd);
	take_texts(rd, TRANSFORM_ARGS_MAX, &t->n_fallbacks, &t->fallbacks);
	take_texts(rd, TRANSFORM_ARGS_MAX, &t->n_command, &t->command);
	take_transform_inputs(rd, t);
	take_transform_outputs(rd, t);
	/* A definition that could not have been built is not one. */
	if (is_good(rd) && transform_check(t, NULL) < 0)
		reject(rd);
}

static void take_counts(struct reader *rd, struct incr_view_counts *c)
{
	c->added = cursor_varint(&rd->c);
	c->previous = cursor_varint(&rd->c);
	c->current = cursor_varint(&rd->c);
	c->modified = cursor_varint(&rd->c);
	c->removed = cursor_varint(&rd->c);
}

static char *dup_alias(struct reader *rd, const char *alias)
{
	char *copy = strdup(alias);

	if (!copy)
		rd->r = INCR_E_NOMEM;
	return copy;
}

static void take_input(struct reader *rd, const struct incr_transform_input *of,
		       struct incr_plan_input *in)
{
	in->alias = dup_alias(rd, of->alias);
	in->dataset = dup_alias(rd, of->dataset);
	in->kind = of->is_snapshot	 ? INCR_INPUT_SNAPSHOT :
		   of->transaction_limit ? INCR_INPUT_LIMITED :
					   INCR_INPUT_NORMAL;
	in->transaction_limit = of->transaction_limit;
	in->branch = take_text(rd);
	check_name(rd, in->branch, name_check_branch);
	in->dataset_id = cursor_varint(&rd->c);
	in->is_new = take_flag(rd);
	in->view_start = cursor_varint(&rd->c);
	in->view_end = cursor_varint(&rd->c);
	in->previous_end = cursor_varint(&rd->c);
	in->last_read = cursor_varint(&rd->c);
	in->read_end = cursor_varint(&rd->c);
	take_counts(rd, &in->files);
	take_counts(rd, &in->bytes);
	if (!in->dataset_id || in->view_start > in->view_end ||
	    in->read_end > in->view_end)
		reject(rd);
}

static void take_output(struct reader *rd,
			const struct incr_transform_output *of,
			struct incr_plan_output *out)
{
	uint8_t bits;

	out->alias = dup_alias(rd, of->alias);
	out->dataset = dup_alias(rd, of->dataset);
	out->branch = take_text(rd);
	check_name(rd, out->branch, name_check_branch);
	out->dataset_id = cursor_varint(&rd->c);
	bits = cursor_u8(&rd->c);
	out->branch_exists = bits & 1;
	out->is_aborted = bits >> 1 & 1;
	out->head = cursor_varint(&rd->c);
	out->branch_id = cursor_varint(&rd->c);
	out->fork_parent = take_text_or_none(rd);
	check_name(rd, out->fork_parent, name_check_branch);
	out->write_mode = (enum incr_write_mode)take_enum(rd, INCR_MODE_MODIFY,
							  INCR_MODE_APPEND);
	out->txn_type =
		(enum incr_txn_type)take_enum(rd, INCR_SNAPSHOT, INCR_UPDATE);
	out->txn = cursor_varint(&rd->c);
	out->n_files = cursor_varint(&rd->c);
	out->size = cursor_varint(&rd->c);
	if (bits >> 2 || !out->dataset_id)
		reject(rd);
}

static void take_reason(struct reader *rd, struct incr_reason *reason)
{
	reason->code = (enum incr_reason_code)take_enum(
		rd, INCR_REASON_FIRST_BUILD, INCR_REASON_TRANSACTION_LOST);
	reason->alias = take_text_or_none(rd);
	check_name(rd, reason->alias, name_check_alias);
	reason->dataset = take_text_or_none(rd);
	check_name(rd, reason->dataset, name_check_dataset);
	reason->txn = cursor_varint(&rd->c);
	reason->path = take_bytes_or_none(rd, &reason->path_length);
	check_name(rd, reason->path, name_check_path);
	reason->count = cursor_varint(&rd->c);
	reason->message = take_text(rd);
}

static void take_reasons(struct reader *rd, struct incr_plan *p)
{
	size_t n = take_count(rd, BUILD_RECORD_REASONS_MAX, 7);

	p->reasons = take_array(rd, n, sizeof(*p->reasons));
	if (!p->reasons)
		return;
	p->n_reasons = n;
	for (size_t i = 0; i < n; i++)
		take_reason(rd, &p->reasons[i]);
}

static void take_plan(struct reader *rd, struct incr_plan *p)
{
	const struct incr_transform *t = &p->transform;
	uint8_t bits;

	p->decision = (enum incr_decision)take_enum(
		rd, INCR_DECISION_INCREMENTAL, INCR_DECISION_ERROR);
	bits = cursor_u8(&rd->c);
	if (bits >> 3)
		reject(rd);
	p->is_incremental = bits & 1;
	p->is_forced = bits >> 1 & 1;
	p->is_skip = bits >> 2 & 1;

	p->inputs = take_array(rd, t->n_inputs, sizeof(*p->inputs));
	p->n_inputs = p->inputs ? t->n_inputs : 0;
	for (size_t i = 0; i < p->n_inputs; i++)
		take_input(rd, &t->inputs[i], &p->inputs[i]);
	p->outputs = take_array(rd, t->n_outputs, sizeof(*p->outputs));
	p->n_outputs = p->outputs ? t->n_outputs : 0;
	for (size_t i = 0; i < p->n_outputs; i++)
		take_output(rd, &t->outputs[i], &p->outputs[i]);
	take_reasons(rd, p);
	take_texts(rd, BUILD_RECORD_REASONS_MAX, &p->n_warnings, &p->warnings);
}

static void take_environment(struct reader *rd, struct incr_pairs *pairs)
{
	size_t n = take_count(rd, BUILD_RECORD_PAIRS_MAX, 2);

	pairs->items = take_array(rd, n, sizeof(*pairs->items));
	if (!pairs->items)
		return;
	pairs->n = n;
	for (size_t i = 0; i < n; i++) {
		pairs->items[i].key = take_text(rd);
		pairs->items[i].value = take_text(rd);
	}
}

static int take_int(struct reader *rd)
{
	int64_t v = cursor_zigzag(&rd->c);

	if (v < INT_MIN || v > INT_MAX) {
		reject(rd);
		return 0;
	}
	return (int)v;
}

static void take_info(struct reader *rd, struct incr_build_info *info)
{
	take_transform(rd, &info->plan.transform);
	take_plan(rd, &info->plan);
	info->exit_code = take_int(rd);
	info->started_ns = cursor_zigzag(&rd->c);
	info->ended_ns = cursor_zigzag(&rd->c);
	info->user = take_text(rd);
	info->host = take_text(rd);
	info->cwd = take_text(rd);
	take_environment(rd, &info->environment);
	if (cursor_left(&rd->c))
		reject(rd);
}

int build_record_decode(const void *data, size_t size,
			struct incr_build_info *out, struct incr_error *err)
{
	struct reader rd = { .c = cursor_over(data, size) };
	struct incr_build_info info = { 0 };
	uint8_t version = cursor_u8(&rd.c);

	if (size && version > BUILD_RECORD_VERSION)
		return incr_fail(err, INCR_E_UNSUPPORTED, "newer-format", NULL,
				 "a build's record has the newer version %d",
				 version);
	if (version != BUILD_RECORD_VERSION)
		reject(&rd);
	take_info(&rd, &info);
	if (is_good(&rd)) {
		*out = info;
		return 0;
	}

	incr_build_info_release(&info);
	return rd.r == INCR_E_NOMEM ?
		       incr_fail_nomem(err) :
		       incr_fail(err, INCR_E_CORRUPT, "bad-build-record", NULL,
				 "a build's record does not parse");
}

/* Into a field of fixed size. */
static void take_field(struct reader *rd, char *out, size_t out_size)
{
	size_t size = 0;
	const uint8_t *data = cursor_string(&rd->c, &size);

	if (!data || size >= out_size || memchr(data, '\0', size)) {
		reject(rd);
		return;
	}
	memcpy(out, data, size);
	out[size] = '\0';
}

static void take_paths(struct reader *rd, struct incr_error *error)
{
	size_t size = 0;
	const uint8_t *data = cursor_string(&rd->c, &size);

	if (!data || !size)
		return;
	if (data[size - 1] != '\0') {
		reject(rd);
		return;
	}
	error->paths = malloc(size);
	if (!error->paths) {
		rd->r = INCR_E_NOMEM;
		return;
	}
	memcpy(error->paths, data, size);
	error->paths_size = size;
	for (size_t i = 0; i < size; i++)
		error->n_paths += data[i] == '\0';
}

int build_error_decode(const void *data, size_t size, struct incr_error *out)
{
	struct reader rd = { .c = cursor_over(data, size) };
	struct incr_error error = INCR_ERROR_INIT;

	if (cursor_u8(&rd.c) != BUILD_RECORD_VERSION)
		reject(&rd);
	error.code = (enum incr_err)take_int(&rd);
	error.sys_errno = take_int(&rd);
	take_field(&rd, error.word, sizeof(error.word));
	take_field(&rd, error.thing, sizeof(error.thing));
	take_field(&rd, error.message, sizeof(error.message));
	take_field(&rd, error.hint, sizeof(error.hint));
	take_paths(&rd, &error);
	if (cursor_left(&rd.c) || error.code > INCR_E_NOMEM ||
	    error.code < INCR_E_DEAD)
		reject(&rd);
	if (!is_good(&rd)) {
		incr_error_release(&error);
		return rd.r;
	}
	*out = error;
	return 0;
}
