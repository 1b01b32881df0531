/*
 * The fields with which a request of model_driver defines a transform.
 */
#include "config.h"

#include "model_transform.h"

#include <stdlib.h>
#include <string.h>

/* The next part of a field, up to @by; NULL when it is empty. */
static char *part(char **rest, const char *by)
{
	char *text = strsep(rest, by);

	return text == NULL || *text == '\0' ? NULL : strdup(text);
}

static void *grown(void *items, size_t n, size_t size)
{
	void *more = realloc(items, (n + 1) * size);

	if (more == NULL)
		abort();
	memset((char *)more + n * size, 0, size);
	return more;
}

static enum incr_write_mode mode_of(const char *text)
{
	if (text == NULL || *text == '\0')
		return INCR_MODE_DEFAULT;
	return *text == 'm' ? INCR_MODE_MODIFY :
	       *text == 'r' ? INCR_MODE_REPLACE :
			      INCR_MODE_APPEND;
}

static void set_flags(struct incr_transform *t, const char *flags)
{
	t->require_incremental = strchr(flags, 'r') != NULL;
	t->allow_retention = strchr(flags, 't') != NULL;
	t->allow_user_deletes = strchr(flags, 'u') != NULL;
	t->strict_append = strchr(flags, 's') != NULL;
	t->v2_semantics = strchr(flags, '2') != NULL;
	t->abort_if_empty = strchr(flags, 'e') != NULL;
}

void model_transform_set(struct incr_transform *t, char *field)
{
	const char *key = strsep(&field, "=");
	char *value = field;

	if (strcmp(key, "in") == 0) {
		t->inputs = grown(t->inputs, t->n_inputs, sizeof(*t->inputs));
		struct incr_transform_input *in = &t->inputs[t->n_inputs++];
		in->alias = part(&value, ",");
		in->dataset = part(&value, ",");
		in->branch = part(&value, ",");
		in->is_snapshot = strcmp(strsep(&value, ","), "1") == 0;
		in->transaction_limit = strtoull(value, NULL, 10);
	} else if (strcmp(key, "out") == 0) {
		t->outputs =
			grown(t->outputs, t->n_outputs, sizeof(*t->outputs));
		struct incr_transform_output *out = &t->outputs[t->n_outputs++];
		out->alias = part(&value, ",");
		out->dataset = part(&value, ",");
		out->write_mode = mode_of(value);
	} else if (strcmp(key, "fallback") == 0) {
		t->fallbacks =
			grown(t->fallbacks, t->n_fallbacks, sizeof(char *));
		t->fallbacks[t->n_fallbacks++] = strdup(value);
	} else if (strcmp(key, "arg") == 0) {
		t->command = grown(t->command, t->n_command, sizeof(char *));
		t->command[t->n_command++] = strdup(value);
	} else if (strcmp(key, "branch") == 0) {
		t->branch = strdup(value);
	} else if (strcmp(key, "version") == 0) {
		t->semantic_version = strtoll(value, NULL, 10);
	} else if (strcmp(key, "flags") == 0) {
		set_flags(t, value);
	}
}
