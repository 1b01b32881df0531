/*
 * Values as text: sizes, counts, paths.
 */
#include "config.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *text_size(uint64_t size, struct text *out)
{
	static const char units[][4] = { "KiB", "MiB", "GiB",
					 "TiB", "PiB", "EiB" };
	double value = (double)size;
	size_t idx = 0;

	if (size < 1024) {
		(void)snprintf(out->str, sizeof(out->str), "%u B",
			       (unsigned)size);
		return out->str;
	}
	value /= 1024;
	/* What would be printed as 1024.0 is one of the next unit. */
	while (value >= 1023.95 && idx + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		idx++;
	}
	(void)snprintf(out->str, sizeof(out->str), "%.1f %s", value,
		       units[idx]);
	return out->str;
}

const char *text_count(uint64_t n, const char *one, const char *many,
		       struct text *out)
{
	char digits[24], *to = out->str;
	int length =
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	(void)snprintf(to, sizeof(out->str) - (size_t)(to - out->str), " %s",
		       n == 1 ? one : many);
	return out->str;
}

/* Length of the UTF-8 character at @bytes; 0 if there is none. */
static size_t utf8_length(const unsigned char *bytes, size_t length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t point;
	size_t n;

	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		n = 2;
	else if (bytes[0] >= 0xe0 && bytes[0] <= 0xef)
		n = 3;
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > length)
		return 0;

	point = bytes[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (bytes[i] & 0x3f);
	}
	if (point < least[n] || point > 0x10ffff ||
	    (point >= 0xd800 && point <= 0xdfff))
		return 0;
	return n;
}

bool text_is_utf8(const char *bytes, size_t length)
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t n;

	for (; length > 0; at += n, length -= n) {
		n = utf8_length(at, length);
		if (n == 0)
			return false;
	}
	return true;
}

/* C1 control characters move the cursor of some terminals too. */
static bool is_control(const unsigned char *at, size_t n)
{
	return (n == 1 && (at[0] < ' ' || at[0] == 0x7f)) ||
	       (n == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

void text_printable(const char *bytes, size_t length, char *out,
		    size_t out_size)
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t used = 0, n;
	char piece[16];

	if (out_size == 0)
		return;
	for (; length > 0; at += n, length -= n) {
		size_t piece_length;

		n = utf8_length(at, length);
		if (n > 0 && !is_control(at, n)) {
			memcpy(piece, at, n);
			piece_length = n;
		} else {
			n = 1;
			piece_length = (size_t)snprintf(piece, sizeof(piece),
							"\\x%02x", at[0]);
		}
		if (used + piece_length >= out_size)
			break;
		memcpy(out + used, piece, piece_length);
		used += piece_length;
	}
	out[used] = '\0';
}

static bool needs_quotes(const char *path, size_t length)
{
	const unsigned char *at = (const unsigned char *)path;
	size_t n;

	for (; length > 0; at += n, length -= n) {
		n = utf8_length(at, length);
		if (n == 0 || is_control(at, n) || *at == '"' || *at == '\\')
			return true;
	}
	return false;
}

/* Appends the C escape of one byte. */
static char *put_escape(char *to, unsigned char byte)
{
	static const char plain[] = "abtnvfr";

	*to++ = '\\';
	if (byte == '"' || byte == '\\') {
		*to++ = (char)byte;
	} else if (byte >= '\a' && byte <= '\r') {
		*to++ = plain[byte - '\a'];
	} else {
		*to++ = (char)('0' + (byte >> 6));
		*to++ = (char)('0' + (byte >> 3 & 7));
		*to++ = (char)('0' + (byte & 7));
	}
	return to;
}

char *text_quote(const char *path, size_t length)
{
	const unsigned char *at = (const unsigned char *)path;
	char *out, *to;
	size_t n;

	if (!needs_quotes(path, length))
		return strndup(path, length);

	out = malloc(length * 4 + 3);
	if (!out)
		return NULL;
	to = out;
	*to++ = '"';
	for (; length > 0; at += n, length -= n) {
		n = utf8_length(at, length);
		if (n > 0 && !is_control(at, n) && *at != '"' && *at != '\\') {
			memcpy(to, at, n);
			to += n;
			continue;
		}
		n = n == 2 ? 2 : 1;
		for (size_t i = 0; i < n; i++)
			to = put_escape(to, at[i]);
	}
	*to++ = '"';
	*to = '\0';
	return out;
}

char *text_lossy(const char *bytes, size_t length, size_t *out_length)
{
	static const char mark[] = "\xef\xbf\xbd";
	const unsigned char *at = (const unsigned char *)bytes;
	char *out = malloc(length * 3 + 1), *to = out;
	size_t n;

	if (!out)
		return NULL;
	for (; length > 0; at += n, length -= n) {
		n = utf8_length(at, length);
		if (n > 0) {
			memcpy(to, at, n);
			to += n;
		} else {
			n = 1;
			memcpy(to, mark, 3);
			to += 3;
		}
	}
	*to = '\0';
	*out_length = (size_t)(to - out);
	return out;
}

char *text_base64(const char *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = (const unsigned char *)bytes;
	char *out = malloc((length + 2) / 3 * 4 + 1), *to = out;

	if (!out)
		return NULL;
	for (; length > 0; at += 3) {
		uint32_t bits = (uint32_t)at[0] << 16;
		size_t n = length < 3 ? length : 3;

		if (n > 1)
			bits |= (uint32_t)at[1] << 8;
		if (n > 2)
			bits |= at[2];
		for (size_t i = 0; i < 4; i++)
			*to++ = i <= n ? digits[bits >> (18 - 6 * i) & 63] :
					 '=';
		length -= n;
	}
	*to = '\0';
	return out;
}
