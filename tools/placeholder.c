/*
 * Placeholders in the arguments of a command.
 */
#include "config.h"

#include "placeholder.h"

#include <stdlib.h>
#include <string.h>

bool placeholders_add(struct placeholders *p, const char *name,
		      const char *value)
{
	struct placeholder *items =
		reallocarray(p->items, p->n + 1, sizeof(*items));
	struct placeholder item = { strdup(name), strdup(value) };

	if (items)
		p->items = items;
	if (!items || !item.name || !item.value) {
		free(item.name);
		free(item.value);
		return false;
	}
	p->items[p->n++] = item;
	return true;
}

void placeholders_release(struct placeholders *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->items[i].name);
		free(p->items[i].value);
	}
	free(p->items);
	*p = (struct placeholders){ 0 };
}

/* The placeholder whose "{NAME}" @text begins with. */
static const struct placeholder *find(const struct placeholders *p,
				      const char *text)
{
	size_t length;

	if (*text != '{')
		return NULL;
	length = strcspn(text + 1, "{}");
	if (text[1 + length] != '}')
		return NULL;
	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->items[i].name) == length &&
		    memcmp(p->items[i].name, text + 1, length) == 0)
			return &p->items[i];
	return NULL;
}

/*
 * Copy @text to @out, replaced; NULL: only count. Returns the bytes, without
 * the NUL that is written too.
 */
static size_t replace(const struct placeholders *p, const char *text, char *out)
{
	const struct placeholder *item;
	size_t n = 0;

	while (*text) {
		const char *from = text;
		size_t length = 1;

		if (*text == '{' && (item = find(p, text + 1)) != NULL) {
			from = text + 1;
			length = strlen(item->name) + 2;
			text += 1 + length;
		} else if ((item = find(p, text)) != NULL) {
			from = item->value;
			length = strlen(item->value);
			text += strlen(item->name) + 2;
		} else {
			text++;
		}
		if (out)
			memcpy(out + n, from, length);
		n += length;
	}
	if (out)
		out[n] = '\0';
	return n;
}

char *placeholders_replace(const struct placeholders *p, const char *text)
{
	char *out = malloc(replace(p, text, NULL) + 1);

	if (out)
		(void)replace(p, text, out);
	return out;
}
