/*
 * The model of a dataset's history (R7 to R23, R137).
 */
#include "history.h"

#include <ctype.h>
#include <string.h>

static bool parse_type(char c, enum incr_txn_type *out)
{
	switch (c) {
	case 'S':
		*out = INCR_SNAPSHOT;
		return true;
	case 'A':
		*out = INCR_APPEND;
		return true;
	case 'U':
		*out = INCR_UPDATE;
		return true;
	case 'D':
		*out = INCR_DELETE;
		return true;
	default:
		return false;
	}
}

/* One "T{a,b}"; NULL when it makes no sense. */
static const char *parse_txn(const char *p, struct history_txn *out)
{
	size_t n = 0;

	*out = (struct history_txn){ 0 };
	if (!parse_type(*p++, &out->type))
		return NULL;
	if (*p == 'r') {
		out->is_retention = true;
		p++;
	}
	if (*p++ != '{')
		return NULL;
	for (; *p && *p != '}'; p++)
		if (islower((unsigned char)*p) && n + 1 < sizeof(out->paths))
			out->paths[n++] = *p;
	return *p == '}' ? p + 1 : NULL;
}

bool history_parse(const char *text, struct history *out)
{
	*out = (struct history){ 0 };
	while (*text) {
		if (*text == ' ') {
			text++;
		} else if (*text == '|') {
			out->n_read = out->n;
			text++;
		} else {
			if (out->n == HISTORY_MAX)
				return false;
			text = parse_txn(text, &out->txns[out->n++]);
			if (!text)
				return false;
		}
	}
	return true;
}

static void apply(const struct history_txn *t, uint64_t number,
		  struct history_view *v)
{
	for (const char *p = t->paths; *p; p++) {
		size_t c = (size_t)(unsigned char)*p & 127;

		if (t->type != INCR_DELETE) {
			v->version[c] = number;
		} else if (v->version[c]) {
			v->version[c] = 0;
			v->removed_by[c] = number;
		}
	}
}

void history_view(const struct history *h, uint64_t end,
		  struct history_view *out)
{
	*out = (struct history_view){ .start = end ? 1 : 0 };
	for (uint64_t i = 0; i < end; i++) {
		const struct history_txn *t = &h->txns[i];

		if (t->type == INCR_SNAPSHOT)
			*out = (struct history_view){ .start = i + 1 };
		apply(t, i + 1, out);
	}
}

uint64_t history_bad_for_limit(const struct history *h, uint64_t end)
{
	struct history_view v;

	history_view(h, end, &v);
	for (uint64_t number = v.start; number && number <= end; number++) {
		enum incr_txn_type type = h->txns[number - 1].type;

		if (type != INCR_APPEND &&
		    !(type == INCR_SNAPSHOT && number == v.start))
			return number;
	}
	return 0;
}
