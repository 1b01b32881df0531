/* The payload of each type of log record, field by field. */
#include "config.h"

#include "fact.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "name.h"

#define TRY(call)                            \
	do {                                 \
		if ((call) < 0)              \
			return INCR_E_NOMEM; \
	} while (0)

struct text text_of(const char *s)
{
	return (struct text){ .data = s ? s : "", .size = s ? strlen(s) : 0 };
}

bool text_equals(struct text a, const char *s)
{
	return strlen(s) == a.size && !memcmp(a.data, s, a.size);
}

char *text_dup(struct text t)
{
	char *copy = malloc(t.size + 1);

	if (!copy)
		return NULL;
	if (t.size)
		memcpy(copy, t.data, t.size);
	copy[t.size] = '\0';
	return copy;
}

struct text cursor_text(struct cursor *c)
{
	struct text t = { "", 0 };
	size_t size;
	const uint8_t *data = cursor_string(c, &size);

	if (data)
		t = (struct text){ (const char *)data, size };
	return t;
}

int buf_put_text(struct buf *b, struct text t)
{
	return buf_put_string(b, t.data, t.size);
}

int buf_put_zigzag(struct buf *b, int64_t v)
{
	return buf_put_varint(b, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

int64_t cursor_zigzag(struct cursor *c)
{
	uint64_t v = cursor_varint(c);

	return (int64_t)(v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

void incr_pairs_release(struct incr_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		free(pairs->items[i].key);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct incr_pairs){ 0 };
}

int incr_pairs_copy(const struct incr_pairs *from, struct incr_pairs *out)
{
	struct incr_pairs copy = { 0 };

	if (from->n) {
		copy.items = calloc(from->n, sizeof(*copy.items));
		if (!copy.items)
			return INCR_E_NOMEM;
	}
	for (; copy.n < from->n; copy.n++) {
		struct incr_pair *p = &copy.items[copy.n];

		p->key = strdup(from->items[copy.n].key);
		if (from->items[copy.n].value)
			p->value = strdup(from->items[copy.n].value);
		if (!p->key || (from->items[copy.n].value && !p->value)) {
			copy.n++;
			incr_pairs_release(&copy);
			return INCR_E_NOMEM;
		}
	}
	*out = copy;
	return 0;
}

int fact_check_text(const char *what, const char *text, struct incr_error *err)
{
	size_t length = text ? strlen(text) : 0;

	if (length > FACT_TEXT_MAX)
		return incr_fail(err, INCR_E_RANGE, "text-too-long", what,
				 "it may have 1 MiB at most");
	if (!name_is_utf8(text ? text : "", length))
		return incr_fail(err, INCR_E_INVALID, "bad-text", what,
				 "it is not UTF-8");
	return 0;
}

int fact_pairs_check(const struct incr_pairs *pairs, bool may_clear,
		     struct incr_error *err)
{
	size_t size = 0;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct incr_pair *p = &pairs->items[i];
		int r;

		if (!p->key || !*p->key || (!p->value && !may_clear))
			return incr_fail(err, INCR_E_INVALID, "bad-text",
					 "a metadata key",
					 "it needs a name and a value");
		r = fact_check_text("a metadata key", p->key, err);
		if (r == 0)
			r = fact_check_text("a metadata value", p->value, err);
		if (r < 0)
			return r;
		size += strlen(p->key) + (p->value ? strlen(p->value) : 0) + 16;
	}
	if (size > FACT_TEXT_MAX)
		return incr_fail(err, INCR_E_RANGE, "text-too-long",
				 "the metadata", "it may have 1 MiB at most");
	return 0;
}

int fact_pairs_encode(const struct incr_pairs *pairs, struct buf *out)
{
	TRY(buf_put_varint(out, pairs->n));
	for (size_t i = 0; i < pairs->n; i++) {
		const struct incr_pair *p = &pairs->items[i];

		TRY(buf_put_text(out, text_of(p->key)));
		TRY(buf_put_u8(out, p->value != NULL));
		TRY(buf_put_text(out, text_of(p->value)));
	}
	return 0;
}

int fact_pairs_decode(struct text from, struct incr_pairs *out,
		      struct incr_error *err)
{
	struct cursor c = cursor_over(from.data, from.size);
	struct incr_pairs pairs = { 0 };
	uint64_t n = from.size ? cursor_varint(&c) : 0;

	/* each pair takes at least three bytes */
	if (c.is_bad || n > cursor_left(&c) / 3)
		return incr_fail(err, INCR_E_CORRUPT, NULL, NULL,
				 "metadata does not parse");
	if (n) {
		pairs.items = calloc(n, sizeof(*pairs.items));
		if (!pairs.items)
			return incr_fail_nomem(err);
	}
	while (pairs.n < n) {
		struct incr_pair *p = &pairs.items[pairs.n++];
		struct text key = cursor_text(&c);
		uint8_t has_value = cursor_u8(&c);
		struct text value = cursor_text(&c);

		c.is_bad = c.is_bad || has_value > 1;
		p->key = text_dup(key);
		p->value = has_value ? text_dup(value) : NULL;
		if (!p->key || (has_value && !p->value)) {
			incr_pairs_release(&pairs);
			return incr_fail_nomem(err);
		}
	}
	if (c.is_bad || cursor_left(&c)) {
		incr_pairs_release(&pairs);
		return incr_fail(err, INCR_E_CORRUPT, NULL, NULL,
				 "metadata does not parse");
	}
	*out = pairs;
	return 0;
}

int fact_encode_dataset(const struct fact_dataset *f, struct buf *out)
{
	TRY(buf_put_varint(out, f->id));
	TRY(buf_put_text(out, f->name));
	TRY(buf_put_text(out, f->description));
	TRY(buf_put_text(out, f->pairs));
	TRY(buf_put_zigzag(out, f->time_ns));
	TRY(buf_put_text(out, f->user));
	TRY(buf_put_varint(out, f->branch_id));
	TRY(buf_put_varint(out, f->line));
	return 0;
}

int fact_decode_dataset(struct cursor *c, struct fact_dataset *out)
{
	struct fact_dataset f = { 0 };

	f.id = cursor_varint(c);
	f.name = cursor_text(c);
	f.description = cursor_text(c);
	f.pairs = cursor_text(c);
	f.time_ns = cursor_zigzag(c);
	f.user = cursor_text(c);
	f.branch_id = cursor_varint(c);
	f.line = cursor_varint(c);
	if (c->is_bad || !f.id || !f.branch_id || !f.line ||
	    name_check_dataset(f.name.data, f.name.size, NULL) < 0)
		return INCR_E_CORRUPT;
	*out = f;
	return 0;
}

int fact_encode_branch(const struct fact_branch *f, struct buf *out)
{
	TRY(buf_put_varint(out, f->id));
	TRY(buf_put_varint(out, f->dataset_id));
	TRY(buf_put_varint(out, f->line));
	TRY(buf_put_text(out, f->name));
	TRY(buf_put_text(out, f->parent));
	TRY(buf_put_varint(out, f->parent_line));
	TRY(buf_put_varint(out, f->at));
	TRY(buf_put_zigzag(out, f->time_ns));
	return 0;
}

int fact_decode_branch(struct cursor *c, struct fact_branch *out)
{
	struct fact_branch f = { 0 };

	f.id = cursor_varint(c);
	f.dataset_id = cursor_varint(c);
	f.line = cursor_varint(c);
	f.name = cursor_text(c);
	f.parent = cursor_text(c);
	f.parent_line = cursor_varint(c);
	f.at = cursor_varint(c);
	f.time_ns = cursor_zigzag(c);
	if (c->is_bad || !f.id || !f.dataset_id || !f.line ||
	    f.parent_line >= f.line ||
	    name_check_branch(f.name.data, f.name.size, NULL) < 0 ||
	    (f.parent.size &&
	     name_check_branch(f.parent.data, f.parent.size, NULL) < 0))
		return INCR_E_CORRUPT;
	*out = f;
	return 0;
}

int fact_encode_reset(const struct fact_reset *f, struct buf *out)
{
	TRY(buf_put_varint(out, f->branch_id));
	TRY(buf_put_varint(out, f->line));
	TRY(buf_put_varint(out, f->parent_line));
	TRY(buf_put_varint(out, f->to));
	TRY(buf_put_zigzag(out, f->time_ns));
	return 0;
}

int fact_decode_reset(struct cursor *c, struct fact_reset *out)
{
	struct fact_reset f = { 0 };

	f.branch_id = cursor_varint(c);
	f.line = cursor_varint(c);
	f.parent_line = cursor_varint(c);
	f.to = cursor_varint(c);
	f.time_ns = cursor_zigzag(c);
	if (c->is_bad || !f.branch_id || !f.to || !f.parent_line ||
	    f.parent_line >= f.line)
		return INCR_E_CORRUPT;
	*out = f;
	return 0;
}

int fact_encode_txn(const struct fact_txn *f, struct buf *out)
{
	const uint64_t numbers[] = {
		f->number,    f->dataset_id, f->branch_id, f->line,
		f->parent,    f->view_start, f->n_files,   f->n_removed,
		f->size,      f->view_files, f->view_size, f->build,
		f->frames_off
	};

	TRY(buf_put_u8(out, (uint8_t)f->type));
	TRY(buf_put_u8(
		out, (uint8_t)(f->manifest_kind |
			       (f->is_relative ? FACT_MANIFEST_RELATIVE : 0))));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		TRY(buf_put_varint(out, numbers[i]));
	TRY(buf_put_text(out, f->origin));
	TRY(buf_put_text(out, f->user));
	TRY(buf_put_text(out, f->message));
	TRY(buf_put_text(out, f->pairs));
	TRY(buf_put_zigzag(out, f->opened_ns));
	TRY(buf_put_zigzag(out, f->closed_ns));
	TRY(buf_put_text(out, f->manifest));
	return 0;
}

int fact_decode_txn(struct cursor *c, struct fact_txn *out)
{
	struct fact_txn f = { 0 };
	uint64_t *numbers[] = { &f.number,     &f.dataset_id, &f.branch_id,
				&f.line,       &f.parent,     &f.view_start,
				&f.n_files,    &f.n_removed,  &f.size,
				&f.view_files, &f.view_size,  &f.build,
				&f.frames_off };
	uint8_t type = cursor_u8(c);
	uint8_t kind = cursor_u8(c);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		*numbers[i] = cursor_varint(c);
	f.origin = cursor_text(c);
	f.user = cursor_text(c);
	f.message = cursor_text(c);
	f.pairs = cursor_text(c);
	f.opened_ns = cursor_zigzag(c);
	f.closed_ns = cursor_zigzag(c);
	f.manifest = cursor_text(c);
	if (c->is_bad || !f.number || !f.dataset_id || !f.branch_id ||
	    !f.line || f.parent >= f.number || f.view_start > f.number ||
	    type < INCR_SNAPSHOT || type > INCR_DELETE ||
	    kind > (FACT_MANIFEST_RELATIVE | FACT_MANIFEST_PACK))
		return INCR_E_CORRUPT;
	f.type = (enum incr_txn_type)type;
	f.manifest_kind = (enum fact_manifest)(kind & FACT_MANIFEST_PACK);
	f.is_relative = kind & FACT_MANIFEST_RELATIVE;
	if (f.is_relative && (f.type != INCR_SNAPSHOT || !f.parent))
		return INCR_E_CORRUPT;
	*out = f;
	return 0;
}

int fact_encode_build(const struct fact_build *f, struct buf *out)
{
	TRY(buf_put_varint(out, f->number));
	TRY(buf_put_u8(out, (uint8_t)f->status));
	TRY(buf_put_text(out, f->transform));
	TRY(buf_put_text(out, f->payload));
	return 0;
}

int fact_decode_build(struct cursor *c, struct fact_build *out)
{
	struct fact_build f = { 0 };
	uint8_t status;

	f.number = cursor_varint(c);
	status = cursor_u8(c);
	f.transform = cursor_text(c);
	f.payload = cursor_text(c);
	if (c->is_bad || !f.number || status < INCR_BUILD_OPEN ||
	    status > INCR_BUILD_FAILED ||
	    name_check_transform(f.transform.data, f.transform.size, NULL) < 0)
		return INCR_E_CORRUPT;
	f.status = (enum incr_build_status)status;
	*out = f;
	return 0;
}

int fact_encode_schema(const struct fact_schema *f, struct buf *out)
{
	TRY(buf_put_varint(out, f->dataset_id));
	TRY(buf_put_varint(out, f->line));
	TRY(buf_put_varint(out, f->after));
	TRY(buf_put_text(out, f->text));
	return 0;
}

int fact_decode_schema(struct cursor *c, struct fact_schema *out)
{
	struct fact_schema f = { 0 };

	f.dataset_id = cursor_varint(c);
	f.line = cursor_varint(c);
	f.after = cursor_varint(c);
	f.text = cursor_text(c);
	if (c->is_bad || !f.dataset_id || !f.line)
		return INCR_E_CORRUPT;
	*out = f;
	return 0;
}
