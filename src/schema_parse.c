/*
 * Reading the columns out of JSON text.  A value that is of no interest is
 * passed over by counting brackets, so that nothing recurses.
 */
#include "config.h"

#include "error.h"
#include "schema_columns.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 65536

struct parser {
	const char *at, *end;
	bool is_bad;
	bool is_nomem;
};

void schema_columns_release(struct schema_columns *columns)
{
	for (size_t i = 0; i < columns->n; i++) {
		free(columns->items[i].name);
		free(columns->items[i].type);
	}
	free(columns->items);
	*columns = (struct schema_columns){ 0 };
}

static void skip_space(struct parser *p)
{
	while (p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at)
		p->at++;
}

/* The next character that counts; 0 at the end. */
static char peek(struct parser *p)
{
	skip_space(p);
	return p->at < p->end && !p->is_bad ? *p->at : '\0';
}

static bool take(struct parser *p, char c)
{
	if (peek(p) != c)
		return false;
	p->at++;
	return true;
}

static void expect(struct parser *p, char c)
{
	if (!take(p, c))
		p->is_bad = true;
}

static unsigned take_hex4(struct parser *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		char c = p->at < p->end ? *p->at++ : '\0';
		const char *digit =
			c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 32 : c) :
			    NULL;

		if (!digit) {
			p->is_bad = true;
			return 0;
		}
		v = v << 4 | (unsigned)(digit - digits);
	}
	return v;
}

static int put_utf8(struct buf *b, unsigned c)
{
	if (c < 0x80)
		return buf_put_u8(b, (uint8_t)c);
	if (c < 0x800) {
		int r = buf_put_u8(b, (uint8_t)(0xc0 | c >> 6));

		return r < 0 ? r : buf_put_u8(b, (uint8_t)(0x80 | (c & 63)));
	}
	if (c < 0x10000) {
		uint8_t bytes[] = { (uint8_t)(0xe0 | c >> 12),
				    (uint8_t)(0x80 | (c >> 6 & 63)),
				    (uint8_t)(0x80 | (c & 63)) };

		return buf_put(b, bytes, sizeof(bytes));
	}
	uint8_t bytes[] = { (uint8_t)(0xf0 | c >> 18),
			    (uint8_t)(0x80 | (c >> 12 & 63)),
			    (uint8_t)(0x80 | (c >> 6 & 63)),
			    (uint8_t)(0x80 | (c & 63)) };

	return buf_put(b, bytes, sizeof(bytes));
}

static unsigned take_unicode(struct parser *p)
{
	unsigned c = take_hex4(p), low;

	if (c < 0xd800 || c > 0xdfff)
		return c;
	/* The first half of a pair; the second must follow. */
	if (c > 0xdbff || p->end - p->at < 6 || p->at[0] != '\\' ||
	    p->at[1] != 'u') {
		p->is_bad = true;
		return 0;
	}
	p->at += 2;
	low = take_hex4(p);
	if (low < 0xdc00 || low > 0xdfff)
		p->is_bad = true;
	return 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
}

static unsigned take_escape(struct parser *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = p->at < p->end ? *p->at++ : '\0';
	const char *found = c ? strchr(from, c) : NULL;
	unsigned v;

	if (found)
		return (unsigned char)to[found - from];
	v = c == 'u' ? take_unicode(p) : 0;
	if (!v)
		p->is_bad = true; /* also for \u0000, which no name holds */
	return v;
}

/* Owned; NULL when it is no string. */
static char *take_string(struct parser *p)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	int r = 0;

	expect(p, '"');
	while (!p->is_bad && r == 0) {
		char c = p->at < p->end ? *p->at++ : '\0';

		if (c == '"') {
			char *copy = r == 0 && buf_put_u8(&b, 0) == 0 ?
					     (char *)b.data :
					     NULL;

			p->is_nomem = !copy;
			if (copy)
				b = BUF_INIT;
			return copy;
		}
		if ((unsigned char)c < 0x20)
			p->is_bad = true;
		else if (c == '\\')
			r = put_utf8(&b, take_escape(p));
		else
			r = buf_put(&b, &c, 1);
	}
	p->is_nomem = r < 0;
	return NULL;
}

/* A number, true, false or null: its letters. */
static void skip_word(struct parser *p)
{
	const char *start = p->at;

	while (p->at < p->end && *p->at && !strchr(" \t\r\n,:[]{}\"", *p->at))
		p->at++;
	if (p->at == start)
		p->is_bad = true;
}

static void skip_value(struct parser *p)
{
	size_t depth = 0;

	do {
		char c = peek(p);

		if (c == '"') {
			free(take_string(p));
		} else if (c == '{' || c == '[') {
			depth++;
			p->at++;
		} else if (c == '}' || c == ']') {
			if (!depth)
				p->is_bad = true;
			depth--;
			p->at++;
		} else if (depth && (c == ',' || c == ':')) {
			p->at++;
		} else {
			skip_word(p);
		}
	} while (depth && !p->is_bad && !p->is_nomem);
}

static bool take_bool(struct parser *p)
{
	const char *start;

	(void)peek(p);
	start = p->at;
	skip_word(p);
	if (p->at - start == 4 && memcmp(start, "true", 4) == 0)
		return true;
	if (p->at - start != 5 || memcmp(start, "false", 5) != 0)
		p->is_bad = true;
	return false;
}

static void take_text(struct parser *p, char **text)
{
	free(*text);
	*text = take_string(p);
}

static void take_column_key(struct parser *p, const char *key,
			    struct schema_column *column)
{
	if (strcmp(key, "name") == 0) {
		take_text(p, &column->name);
	} else if (strcmp(key, "type") == 0) {
		take_text(p, &column->type);
	} else if (strcmp(key, "nullable") == 0) {
		column->is_nullable = take_bool(p);
	} else {
		skip_value(p);
	}
}

typedef void (*key_fn)(struct parser *p, const char *key, void *closure);

/* Each key of an object; @fn takes its value. */
static void take_object(struct parser *p, key_fn fn, void *closure)
{
	expect(p, '{');
	if (take(p, '}'))
		return;
	do {
		char *key = take_string(p);

		expect(p, ':');
		if (key && !p->is_bad)
			fn(p, key, closure);
		free(key);
	} while (!p->is_bad && !p->is_nomem && take(p, ','));
	expect(p, '}');
}

static void column_key(struct parser *p, const char *key, void *closure)
{
	take_column_key(p, key, closure);
}

static void take_columns(struct parser *p, struct schema_columns *columns)
{
	expect(p, '[');
	if (take(p, ']'))
		return;
	do {
		struct schema_column *items = realloc(
			columns->items, (columns->n + 1) * sizeof(*items));

		if (!items || columns->n == COLUMNS_MAX) {
			p->is_nomem = !items;
			p->is_bad = true;
			columns->items = items ? items : columns->items;
			return;
		}
		columns->items = items;
		items[columns->n] =
			(struct schema_column){ .is_nullable = true };
		take_object(p, column_key, &items[columns->n++]);
		if (!items[columns->n - 1].name || !items[columns->n - 1].type)
			p->is_bad = true;
	} while (!p->is_bad && !p->is_nomem && take(p, ','));
	expect(p, ']');
}

static void schema_key(struct parser *p, const char *key, void *closure)
{
	struct schema_columns *columns = closure;

	if (strcmp(key, "columns") == 0 && !columns->n)
		take_columns(p, columns);
	else
		skip_value(p);
}

int schema_columns_parse(const char *text, size_t length,
			 struct schema_columns *out, struct incr_error *err)
{
	struct parser p = { .at = text, .end = text + length };
	struct schema_columns columns = { 0 };

	take_object(&p, schema_key, &columns);
	if (!p.is_nomem && !p.is_bad && peek(&p) == '\0' && p.at == p.end) {
		*out = columns;
		return 0;
	}

	schema_columns_release(&columns);
	return p.is_nomem ?
		       incr_fail_nomem(err) :
		       incr_fail(err, INCR_E_INVALID, "bad-schema", NULL,
				 "the schema is no JSON object with columns");
}
