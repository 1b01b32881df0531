/*
 * What goes to stdout: lines of text, lines of JSON, paths.
 *
 * Nothing here returns an error: a failed write stays noted in the stream and
 * out_finish() looks for it, and without memory for JSON the program ends.
 */
#ifndef INCR_TOOLS_OUT_H
#define INCR_TOOLS_OUT_H

#include "cli.h"
#include "incr.h"

#include <jansson.h>
#include <stdio.h>

/* Once, before anything else. */
void out_init(void);
/* Flush and close stdout: 0, or a failure with @err filled. */
int out_finish(struct incr_error *err);

/* One line of compact JSON. */
void out_json(FILE *to, const json_t *json);
/* The same to stdout; taken. */
void out_line(json_t *json);

/* @value taken; NULL becomes null. */
void out_put(json_t *object, const char *key, json_t *value);
/* "path", and "path_b64" if it is not UTF-8. */
void out_put_path(json_t *object, const char *path, size_t length);
/* NULL becomes null; bytes that are not UTF-8 are replaced. */
json_t *out_text(const char *str);
/* The same; also "" becomes null. */
json_t *out_text_or_null(const char *str);
json_t *out_u64(uint64_t number);
/* 0 becomes null. */
json_t *out_time(int64_t time_ns);
/* "t42"; 0 becomes null. */
json_t *out_id(char letter, uint64_t number);
json_t *out_pairs(const struct incr_pairs *pairs);
/* "ri.incr.<uuid>.<kind>.<number>" */
json_t *out_rid(const struct incr_store *st, const char *kind, uint64_t number);

/* A path on a line of its own, or NUL-terminated with -z. */
void out_path(const struct cli *cli, const char *path, size_t length);
/* A path within a line. */
void out_quoted(const char *path, size_t length);

/* The object of a file, as `ls` prints it. */
json_t *out_node(const struct incr_node *node);
/* "added", "modified", "removed" and the letters A, M, R. */
const char *out_change_name(enum incr_change change);
char out_change_letter(enum incr_change change);
/* The object of a change, as `diff` prints it. */
json_t *out_change(enum incr_change change, const struct incr_node *node,
		   uint64_t txn);

#endif
