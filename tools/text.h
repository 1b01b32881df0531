/*
 * Values as text and back: sizes, counts, times, numbers, paths. Pure.
 */
#ifndef INCR_TOOLS_TEXT_H
#define INCR_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer that holds any of these; the functions return it. */
struct text {
	char str[64];
};

/* "512 B", "11.2 KiB": for people. */
const char *text_size(uint64_t size, struct text *out);
/* "1 file", "3 files", "1,234,567 files". */
const char *text_count(uint64_t n, const char *one, const char *many,
		       struct text *out);
/* RFC 3339 in UTC, with as many digits of the fraction as there are. */
const char *text_time(int64_t time_ns, struct text *out);
/* The same in whole seconds, for people. */
const char *text_time_short(int64_t time_ns, struct text *out);

/* RFC 3339 with any offset. Returns whether @str is one. */
bool text_parse_time(const char *str, int64_t *out_time_ns);
/* A decimal number without sign; whether all of @str is one. */
bool text_parse_u64(const char *str, uint64_t *out_number);
bool text_parse_i64(const char *str, int64_t *out_number);
/* @letter and a number, at least 1: t42, b7. */
bool text_parse_id(const char *str, char letter, uint64_t *out_number);

bool text_is_utf8(const char *bytes, size_t length);
/*
 * Bytes as one printable line: control characters and what is not UTF-8 as
 * \xNN; cut before @out_size, always ended by NUL.
 */
void text_printable(const char *bytes, size_t length, char *out,
		    size_t out_size);
/*
 * A path for a line of text: as it is, or in double quotes with C escapes if
 * it holds control characters, '"', '\\' or bytes that are not UTF-8. Owned by
 * the caller; NULL without memory.
 */
char *text_quote(const char *path, size_t length);
/* Bytes as UTF-8, each bad byte replaced by U+FFFD. Owned; NULL: no memory. */
char *text_lossy(const char *bytes, size_t length, size_t *out_length);
/* Owned; NULL: no memory. */
char *text_base64(const char *bytes, size_t length);

#endif
