/*
 * Lists of reasons and of warnings.
 */
#include "config.h"

#include "decide_reason.h"

#include "bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reason_release(struct incr_reason *reason)
{
	free(reason->alias);
	free(reason->dataset);
	free(reason->path);
	free(reason->message);
	*reason = (struct incr_reason){ 0 };
}

void reason_list_release(struct reason_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		reason_release(&list->items[i]);
	free(list->items);
	*list = (struct reason_list){ 0 };
}

static int reserve(struct reason_list *list, size_t extra)
{
	size_t capacity = list->capacity ? list->capacity : 8;
	struct incr_reason *items;
	size_t need, size;

	if (!add_ok(list->n, extra, &need))
		return INCR_E_NOMEM;
	while (capacity < need)
		if (!mul_ok(capacity, (size_t)2, &capacity))
			return INCR_E_NOMEM;
	if (capacity == list->capacity)
		return 0;
	if (!mul_ok(capacity, sizeof(*items), &size))
		return INCR_E_NOMEM;
	items = realloc(list->items, size);
	if (!items)
		return INCR_E_NOMEM;

	list->items = items;
	list->capacity = capacity;
	return 0;
}

static int copy_text(const char *from, char **out)
{
	if (!from)
		return 0;
	*out = strdup(from);
	return *out ? 0 : INCR_E_NOMEM;
}

static int copy_path(const struct reason_facts *facts, struct incr_reason *to)
{
	if (!facts->path)
		return 0;

	to->path = malloc(facts->path_length + 1);
	if (!to->path)
		return INCR_E_NOMEM;

	memcpy(to->path, facts->path, facts->path_length);
	to->path[facts->path_length] = '\0';
	to->path_length = facts->path_length;
	return 0;
}

int reason_add(struct reason_list *list, const struct reason_facts *facts,
	       const char *format, ...)
{
	struct incr_reason reason = { .code = facts->code,
				      .txn = facts->txn,
				      .count = facts->count };
	int r = reserve(list, 1);
	va_list args;

	if (r < 0)
		return r;

	va_start(args, format);
	if (vasprintf(&reason.message, format, args) < 0) {
		reason.message = NULL;
		r = INCR_E_NOMEM;
	}
	va_end(args);
	if (r == 0)
		r = copy_text(facts->alias, &reason.alias);
	if (r == 0)
		r = copy_text(facts->dataset, &reason.dataset);
	if (r == 0)
		r = copy_path(facts, &reason);
	if (r < 0) {
		reason_release(&reason);
		return r;
	}

	list->items[list->n++] = reason;
	return 0;
}

int reason_join(struct reason_list *list, struct reason_list *tail)
{
	int r = reserve(list, tail->n);

	if (r < 0)
		return r;

	if (tail->n)
		memcpy(list->items + list->n, tail->items,
		       tail->n * sizeof(*tail->items));
	list->n += tail->n;
	tail->n = 0;
	return 0;
}

int warning_add(struct warning_list *list, const char *format, ...)
{
	char **items = realloc(list->items, (list->n + 1) * sizeof(*items));
	va_list args;
	int n;

	if (!items)
		return INCR_E_NOMEM;

	list->items = items;
	va_start(args, format);
	n = vasprintf(&items[list->n], format, args);
	va_end(args);
	if (n < 0)
		return INCR_E_NOMEM;

	list->n++;
	return 0;
}

void warning_list_release(struct warning_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct warning_list){ 0 };
}
