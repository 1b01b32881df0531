/*
 * Encoding of a build's record.
 */
#include "config.h"

#include "build_record.h"

#include "fact.h"

#include <string.h>

#define TRY(call)                            \
	do {                                 \
		if ((call) < 0)              \
			return INCR_E_NOMEM; \
	} while (0)

static int put_text(struct buf *b, const char *s)
{
	return buf_put_text(b, text_of(s));
}

/* 0 for NULL, else the length plus one and the bytes. */
static int put_bytes_or_none(struct buf *b, const char *s, size_t length)
{
	if (!s)
		return buf_put_varint(b, 0);
	TRY(buf_put_varint(b, (uint64_t)length + 1));
	return buf_put(b, s, length);
}

static int put_text_or_none(struct buf *b, const char *s)
{
	return put_bytes_or_none(b, s, s ? strlen(s) : 0);
}

static int put_texts(struct buf *b, size_t n, char *const *texts)
{
	TRY(buf_put_varint(b, n));
	for (size_t i = 0; i < n; i++)
		TRY(put_text(b, texts[i]));
	return 0;
}

static uint8_t settings_of(const struct incr_transform *t)
{
	return (uint8_t)(t->require_incremental | t->allow_retention << 1 |
			 t->allow_user_deletes << 2 | t->strict_append << 3 |
			 t->v2_semantics << 4 | t->abort_if_empty << 5 |
			 t->empty_previous_csv << 6);
}

static int put_transform(struct buf *b, const struct incr_transform *t)
{
	TRY(put_text(b, t->name));
	TRY(buf_put_u8(b, settings_of(t)));
	TRY(buf_put_zigzag(b, t->semantic_version));
	TRY(put_text_or_none(b, t->branch));
	TRY(put_texts(b, t->n_fallbacks, t->fallbacks));
	TRY(put_texts(b, t->n_command, t->command));
	TRY(buf_put_varint(b, t->n_inputs));
	for (size_t i = 0; i < t->n_inputs; i++) {
		const struct incr_transform_input *in = &t->inputs[i];

		TRY(put_text(b, in->alias));
		TRY(put_text(b, in->dataset));
		TRY(put_text_or_none(b, in->branch));
		TRY(buf_put_u8(b, in->is_snapshot));
		TRY(buf_put_varint(b, in->transaction_limit));
	}
	TRY(buf_put_varint(b, t->n_outputs));
	for (size_t i = 0; i < t->n_outputs; i++) {
		const struct incr_transform_output *out = &t->outputs[i];

		TRY(put_text(b, out->alias));
		TRY(put_text(b, out->dataset));
		TRY(buf_put_u8(b, (uint8_t)out->write_mode));
		TRY(put_text_or_none(b, out->schema));
	}
	return 0;
}

static int put_reasons(struct buf *b, const struct incr_plan *p)
{
	TRY(buf_put_varint(b, p->n_reasons));
	for (size_t i = 0; i < p->n_reasons; i++) {
		const struct incr_reason *reason = &p->reasons[i];

		TRY(buf_put_u8(b, (uint8_t)reason->code));
		TRY(put_text_or_none(b, reason->alias));
		TRY(put_text_or_none(b, reason->dataset));
		TRY(buf_put_varint(b, reason->txn));
		TRY(put_bytes_or_none(b, reason->path, reason->path_length));
		TRY(buf_put_varint(b, reason->count));
		TRY(put_text(b, reason->message));
	}
	return 0;
}

static int put_counts(struct buf *b, const struct incr_view_counts *c)
{
	TRY(buf_put_varint(b, c->added));
	TRY(buf_put_varint(b, c->previous));
	TRY(buf_put_varint(b, c->current));
	TRY(buf_put_varint(b, c->modified));
	TRY(buf_put_varint(b, c->removed));
	return 0;
}

/* Alias, kind and limit stand in the transform, in the same order. */
static int put_inputs(struct buf *b, const struct incr_plan *p)
{
	for (size_t i = 0; i < p->n_inputs; i++) {
		const struct incr_plan_input *in = &p->inputs[i];

		TRY(put_text(b, in->branch));
		TRY(buf_put_varint(b, in->dataset_id));
		TRY(buf_put_u8(b, in->is_new));
		TRY(buf_put_varint(b, in->view_start));
		TRY(buf_put_varint(b, in->view_end));
		TRY(buf_put_varint(b, in->previous_end));
		TRY(buf_put_varint(b, in->last_read));
		TRY(buf_put_varint(b, in->read_end));
		TRY(put_counts(b, &in->files));
		TRY(put_counts(b, &in->bytes));
	}
	return 0;
}

static int put_outputs(struct buf *b, const struct incr_plan *p)
{
	for (size_t i = 0; i < p->n_outputs; i++) {
		const struct incr_plan_output *out = &p->outputs[i];

		TRY(put_text(b, out->branch));
		TRY(buf_put_varint(b, out->dataset_id));
		TRY(buf_put_u8(b, (uint8_t)(out->branch_exists |
					    out->is_aborted << 1)));
		TRY(buf_put_varint(b, out->head));
		TRY(buf_put_varint(b, out->branch_id));
		TRY(put_text_or_none(b, out->fork_parent));
		TRY(buf_put_u8(b, (uint8_t)out->write_mode));
		TRY(buf_put_u8(b, (uint8_t)out->txn_type));
		TRY(buf_put_varint(b, out->txn));
		TRY(buf_put_varint(b, out->n_files));
		TRY(buf_put_varint(b, out->size));
	}
	return 0;
}

static int put_plan(struct buf *b, const struct incr_plan *p)
{
	TRY(buf_put_u8(b, (uint8_t)p->decision));
	TRY(buf_put_u8(b, (uint8_t)(p->is_incremental | p->is_forced << 1 |
				    p->is_skip << 2)));
	TRY(put_inputs(b, p));
	TRY(put_outputs(b, p));
	TRY(put_reasons(b, p));
	return put_texts(b, p->n_warnings, p->warnings);
}

int build_record_encode(const struct incr_build_info *info, struct buf *out)
{
	TRY(buf_put_u8(out, BUILD_RECORD_VERSION));
	TRY(put_transform(out, &info->plan.transform));
	TRY(put_plan(out, &info->plan));
	TRY(buf_put_zigzag(out, info->exit_code));
	TRY(buf_put_zigzag(out, info->started_ns));
	TRY(buf_put_zigzag(out, info->ended_ns));
	TRY(put_text(out, info->user));
	TRY(put_text(out, info->host));
	TRY(put_text(out, info->cwd));
	TRY(buf_put_varint(out, info->environment.n));
	for (size_t i = 0; i < info->environment.n; i++) {
		TRY(put_text(out, info->environment.items[i].key));
		TRY(put_text(out, info->environment.items[i].value));
	}
	return 0;
}

int build_error_encode(const struct incr_error *error, struct buf *out)
{
	TRY(buf_put_u8(out, BUILD_RECORD_VERSION));
	TRY(buf_put_zigzag(out, error->code));
	TRY(buf_put_zigzag(out, error->sys_errno));
	TRY(put_text(out, error->word));
	TRY(put_text(out, error->thing));
	TRY(put_text(out, error->message));
	TRY(put_text(out, error->hint));
	return buf_put_string(out, error->paths, error->paths_size);
}
