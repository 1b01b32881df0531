/*
 * The text of a schema.
 */
#include "config.h"

#include "schema_json.h"

#include "cleanup.h"
#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA_MAX ((size_t)4 << 20)

static const char *check_column(json_t *column)
{
	json_t *value = json_object_get(column, "name");

	if (!json_is_object(column))
		return "a column is no object";
	if (!json_is_string(value) || json_string_length(value) == 0)
		return "a column has no name";
	value = json_object_get(column, "type");
	if (!json_is_string(value) || json_string_length(value) == 0)
		return "a column has no type";
	value = json_object_get(column, "nullable");
	if (value && !json_is_boolean(value))
		return "\"nullable\" is neither true nor false";
	value = json_object_get(column, "description");
	if (value && !json_is_null(value) && !json_is_string(value))
		return "a \"description\" is no string";
	value = json_object_get(column, "type_classes");
	if (value && !json_is_array(value))
		return "\"type_classes\" is no array";
	return NULL;
}

static const char *check_columns(json_t *columns)
{
	_cleanup_json_ json_t *seen = json_object();
	json_t *column;
	size_t idx;

	if (!json_is_array(columns))
		return "there is no array \"columns\"";
	json_array_foreach(columns, idx, column)
	{
		const char *problem = check_column(column), *name;

		if (problem)
			return problem;
		name = json_string_value(json_object_get(column, "name"));
		if (json_object_get(seen, name))
			return "two columns have the same name";
		(void)json_object_set_new(seen, name, json_true());
	}
	return NULL;
}

int schema_check(const char *text, size_t length, const char *thing,
		 struct incr_error *err)
{
	json_error_t where;
	_cleanup_json_ json_t *schema =
		json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
	const char *problem;

	if (!schema)
		return fail(err, INCR_E_INVALID, "bad-schema", thing,
			    "the schema is no JSON object: line %d: %s",
			    where.line, where.text);
	problem = check_columns(json_object_get(schema, "columns"));
	if (problem)
		return fail(err, INCR_E_INVALID, "bad-schema", thing,
			    "not a schema: %s", problem);
	return 0;
}

static int read_fd(int fd, const char *thing, char **out_text,
		   size_t *out_length, struct incr_error *err)
{
	_cleanup_free_ char *text = malloc(SCHEMA_MAX + 1);
	size_t length = 0;

	if (!text)
		return fail_nomem(err);
	for (;;) {
		ssize_t n = read(fd, text + length, SCHEMA_MAX + 1 - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(err, thing, "cannot read");
		if (n == 0)
			break;
		length += (size_t)n;
		if (length > SCHEMA_MAX)
			return fail(err, INCR_E_INVALID, "bad-schema", thing,
				    "the schema is larger than 4 MiB");
	}
	text[length] = '\0';
	*out_text = text;
	text = NULL;
	*out_length = length;
	return 0;
}

int schema_read(const char *path, char **out_text, size_t *out_length,
		struct incr_error *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int opened = -1;
	int fd = STDIN_FILENO, r;
	size_t length = 0;

	if (strcmp(path, "-") != 0) {
		opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0 && (errno == ENOENT || errno == ENOTDIR))
			return fail(err, INCR_E_INVALID, "no-such-file", path,
				    "there is no such schema file");
		if (opened < 0)
			return fail_errno(err, path, "cannot open");
		fd = opened;
	}
	r = read_fd(fd, path, &text, &length, err);
	if (r == 0)
		r = schema_check(text, length, path, err);
	if (r < 0)
		return r;
	*out_text = text;
	text = NULL;
	*out_length = length;
	return 0;
}
