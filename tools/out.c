/*
 * What goes to stdout.
 */
#include "config.h"

#include "out.h"

#include "cleanup.h"
#include "fail.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* There is nobody left to tell when a line of output has no memory. */
static void *must_alloc(size_t size)
{
	void *memory = malloc(size);

	if (!memory) {
		fputs("incrctl: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

void out_init(void)
{
	json_set_alloc_funcs(must_alloc, free);
}

int out_finish(struct incr_error *err)
{
	bool is_bad = ferror(stdout) != 0;

	/* A disk may report that it is full as late as here. */
	if (fflush(stdout) != 0 || fclose(stdout) != 0)
		is_bad = true;
	else if (is_bad)
		errno = EIO;
	if (!is_bad)
		return 0;
	return fail_errno(err, "standard output", "cannot write");
}

void out_json(FILE *to, const json_t *json)
{
	(void)json_dumpf(json, to, JSON_COMPACT); /* see out_finish() */
	(void)putc('\n', to);
}

void out_line(json_t *json)
{
	out_json(stdout, json);
	json_decref(json);
}

void out_put(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value ? value : json_null());
}

json_t *out_text(const char *str)
{
	_cleanup_free_ char *lossy = NULL;
	size_t length;

	if (!str)
		return NULL;
	if (text_is_utf8(str, strlen(str)))
		return json_string(str);
	lossy = text_lossy(str, strlen(str), &length);
	return lossy ? json_stringn(lossy, length) : NULL;
}

json_t *out_text_or_null(const char *str)
{
	return str && *str ? out_text(str) : NULL;
}

void out_put_path(json_t *object, const char *path, size_t length)
{
	_cleanup_free_ char *lossy = NULL, *base64 = NULL;
	size_t lossy_length;

	if (text_is_utf8(path, length)) {
		out_put(object, "path", json_stringn(path, length));
		return;
	}
	lossy = text_lossy(path, length, &lossy_length);
	base64 = text_base64(path, length);
	out_put(object, "path",
		lossy ? json_stringn(lossy, lossy_length) : NULL);
	out_put(object, "path_b64", base64 ? json_string(base64) : NULL);
}

json_t *out_u64(uint64_t number)
{
	/* JSON integers of jansson are signed. */
	return json_integer(number > INT64_MAX ? INT64_MAX :
						 (json_int_t)number);
}

json_t *out_time(int64_t time_ns)
{
	struct text text;

	return time_ns ? json_string(text_time(time_ns, &text)) : NULL;
}

json_t *out_id(char letter, uint64_t number)
{
	return number ? json_sprintf("%c%" PRIu64, letter, number) : NULL;
}

json_t *out_pairs(const struct incr_pairs *pairs)
{
	json_t *object = json_object();

	for (size_t i = 0; i < pairs->n; i++)
		out_put(object, pairs->items[i].key,
			out_text(pairs->items[i].value));
	return object;
}

json_t *out_rid(const struct incr_store *st, const char *kind, uint64_t number)
{
	return json_sprintf("ri.incr.%s.%s.%" PRIu64, incr_store_uuid(st), kind,
			    number);
}

void out_quoted(const char *path, size_t length)
{
	_cleanup_free_ char *quoted = text_quote(path, length);

	(void)fputs(quoted ? quoted : "?", stdout);
}

void out_path(const struct cli *cli, const char *path, size_t length)
{
	if (cli->common.is_nul) {
		(void)fwrite(path, 1, length, stdout);
		(void)putchar('\0');
		return;
	}
	out_quoted(path, length);
	(void)putchar('\n');
}

json_t *out_node(const struct incr_node *node)
{
	static const char digits[] = "0123456789abcdef";
	char hash[2 * INCR_HASH_SIZE];
	json_t *json = json_object();
	struct text time;

	for (size_t i = 0; i < INCR_HASH_SIZE; i++) {
		hash[2 * i] = digits[node->hash[i] >> 4];
		hash[2 * i + 1] = digits[node->hash[i] & 15];
	}
	out_put_path(json, node->path, node->path_length);
	out_put(json, "size", out_u64(node->size));
	out_put(json, "mtime", json_string(text_time(node->mtime_ns, &time)));
	out_put(json, "mode", json_sprintf("%04o", (unsigned)node->mode));
	out_put(json, "transaction", out_id('t', node->txn));
	out_put(json, "hash", json_stringn(hash, sizeof(hash)));
	return json;
}

const char *out_change_name(enum incr_change change)
{
	switch (change) {
	case INCR_ADDED:
		return "added";
	case INCR_MODIFIED:
		return "modified";
	case INCR_REMOVED:
		return "removed";
	}
	return "unknown";
}

char out_change_letter(enum incr_change change)
{
	switch (change) {
	case INCR_ADDED:
		return 'A';
	case INCR_MODIFIED:
		return 'M';
	case INCR_REMOVED:
		return 'R';
	}
	return '?';
}

json_t *out_change(enum incr_change change, const struct incr_node *node,
		   uint64_t txn)
{
	json_t *json = json_object();

	out_put_path(json, node->path, node->path_length);
	out_put(json, "status", json_string(out_change_name(change)));
	out_put(json, "size", out_u64(node->size));
	out_put(json, "transaction", out_id('t', txn));
	return json;
}
