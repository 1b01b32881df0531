/*
 * What is a legal name, and how any name is shown.
 */
#include "config.h"

#include "name.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

/* Alias, origin: longest spelling in bytes. */
#define NAME_ALIAS_MAX 64
#define NAME_ORIGIN_MAX 32

/* One character of UTF-8; 0 when the bytes at @at are none. */
static size_t utf8_length(const uint8_t *at, size_t left, uint32_t *out_char)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = at[0] < 0x80 ? 1 :
			at[0] < 0xc2 ? 0 :
			at[0] < 0xe0 ? 2 :
			at[0] < 0xf0 ? 3 :
			at[0] < 0xf5 ? 4 :
				       0;
	uint32_t c;

	if (length == 0 || length > left)
		return 0;

	c = length == 1 ? at[0] : at[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 0x3fu);
	}
	if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*out_char = c;
	return length;
}

bool name_is_utf8(const char *bytes, size_t length)
{
	const uint8_t *at = (const uint8_t *)bytes;
	uint32_t c;

	for (size_t i = 0, n; i < length; i += n) {
		n = utf8_length(at + i, length - i, &c);
		if (n == 0)
			return false;
	}
	return true;
}

/* Control characters, and those that break or reorder a line. */
static bool is_printable(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069);
}

void name_escape(const char *bytes, size_t length, char *out, size_t out_size)
{
	static const char dots[] = "...";
	const uint8_t *at = (const uint8_t *)bytes;
	size_t used = 0, cut = 0; /* cut: where the dots would still fit */

	if (out_size == 0)
		return;
	for (size_t i = 0; i < length;) {
		char text[4 * 4 + 1];
		uint32_t c = 0;
		size_t n = utf8_length(at + i, length - i, &c), text_length = 0;

		if (n && is_printable(c)) {
			memcpy(text, at + i, n);
			text_length = n;
		} else {
			n = n ? n : 1;
			for (size_t k = 0; k < n; k++, text_length += 4)
				(void)snprintf(text + text_length, 5, "\\x%02x",
					       at[i + k]);
		}
		if (used + sizeof(dots) <= out_size)
			cut = used;
		if (used + text_length + 1 > out_size) {
			size_t room = out_size - cut;

			(void)snprintf(out + cut, room, "%s", dots);
			return;
		}
		memcpy(out + used, text, text_length);
		used += text_length;
		i += n;
	}
	out[used] = '\0';
}

static int refuse(struct incr_error *err, const char *word, const char *name,
		  size_t length, const char *why)
{
	char shown[256];

	name_escape(name, length, shown, sizeof(shown));
	return incr_fail(err, INCR_E_INVALID, word, shown, "%s", why);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What is wrong with one part of a dataset name; NULL: nothing. */
static const char *why_bad_part(const char *part, size_t length)
{
	if (length == 0)
		return "a part of the name is empty";
	if (length > NAME_PART_MAX)
		return "a part of the name is longer than 255 bytes";
	if (!name_is_utf8(part, length))
		return "the name is not valid UTF-8";
	if (memmem(part, length, "..", 2))
		return "the name contains \"..\"";
	if (length == 7 && memcmp(part, "current", 7) == 0)
		return "\"current\" is a reserved name";
	for (size_t i = 0; i < length; i++) {
		char c = part[i];
		uint32_t wide;
		size_t n;

		if (is_letter(c) || is_digit(c) || c == '_')
			continue;
		if ((uint8_t)c >= 0x80) {
			n = utf8_length((const uint8_t *)part + i, length - i,
					&wide);
			if (!is_printable(wide))
				return "the name contains a control character";
			i += n - 1;
			continue;
		}
		if (!strchr(".+ -", c) || c == '\0')
			return "the name may contain only letters, digits and "
			       "the characters _ . + - and space";
		if (i == 0)
			return "a part of the name begins with one of . + - or "
			       "space";
	}
	return NULL;
}

/* The same for a part of a name that is given now. */
static const char *why_bad_new_part(const char *part, size_t length)
{
	const char *why = why_bad_part(part, length);

	if (!why && part[length - 1] == ' ')
		why = "a part of the name ends in a space";
	return why;
}

typedef const char *(*why_bad_fn)(const char *part, size_t length);

static int check_parts(const char *name, size_t length, why_bad_fn why_bad,
		       const char *word, struct incr_error *err)
{
	const char *end = name + length;

	if (length == 0)
		return refuse(err, word, name, length, "the name is empty");
	if (length > NAME_PATH_MAX)
		return refuse(err, word, name, length,
			      "the name is longer than 4095 bytes");

	for (const char *part = name; part <= end;) {
		const char *slash = memchr(part, '/', (size_t)(end - part));
		const char *part_end = slash ? slash : end;
		const char *why = why_bad(part, (size_t)(part_end - part));

		if (why)
			return refuse(err, word, name, length, why);
		part = part_end + 1;
	}
	return 0;
}

int name_check_dataset(const char *name, size_t length, struct incr_error *err)
{
	return check_parts(name, length, why_bad_part, "bad-dataset-name", err);
}

int name_check_new_dataset(const char *name, size_t length,
			   struct incr_error *err)
{
	return check_parts(name, length, why_bad_new_part, "bad-dataset-name",
			   err);
}

int name_check_transform(const char *name, size_t length,
			 struct incr_error *err)
{
	return check_parts(name, length, why_bad_part, "bad-transform-name",
			   err);
}

int name_check_new_transform(const char *name, size_t length,
			     struct incr_error *err)
{
	return check_parts(name, length, why_bad_new_part, "bad-transform-name",
			   err);
}

static int check_branch(const char *name, size_t length, const char *why,
			struct incr_error *err)
{
	return why ? refuse(err, "bad-branch-name", name, length, why) : 0;
}

int name_check_branch(const char *name, size_t length, struct incr_error *err)
{
	return check_branch(name, length, why_bad_part(name, length), err);
}

int name_check_new_branch(const char *name, size_t length,
			  struct incr_error *err)
{
	return check_branch(name, length, why_bad_new_part(name, length), err);
}

int name_check_alias(const char *name, size_t length, struct incr_error *err)
{
	bool is_ok = length > 0 && length <= NAME_ALIAS_MAX &&
		     is_letter(name[0]);

	for (size_t i = 0; is_ok && i < length; i++)
		is_ok = is_letter(name[i]) || is_digit(name[i]) ||
			name[i] == '_' || name[i] == '-';
	if (!is_ok)
		return refuse(err, "bad-alias", name, length,
			      "an alias is a letter and up to 63 letters, "
			      "digits, _ or -");
	return 0;
}

int name_check_origin(const char *name, size_t length, struct incr_error *err)
{
	bool is_ok = length > 0 && length <= NAME_ORIGIN_MAX;

	for (size_t i = 0; is_ok && i < length; i++)
		is_ok = (name[i] >= 'a' && name[i] <= 'z') ||
			is_digit(name[i]) || name[i] == '-';
	if (!is_ok)
		return refuse(err, "bad-origin", name, length,
			      "an origin is 1 to 32 lower-case letters, "
			      "digits or -");
	return 0;
}

/* What is wrong with one part of a path; NULL: nothing. */
static const char *why_bad_path_part(const char *part, size_t length)
{
	if (length == 0)
		return "the path has an empty part";
	if (length > NAME_PART_MAX)
		return "a part of the path is longer than 255 bytes";
	if (part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.')))
		return "the path contains \".\" or \"..\"";
	return NULL;
}

int name_check_path(const char *path, size_t length, struct incr_error *err)
{
	const char *end = path + length;
	const char *why = NULL;
	size_t depth = 0;

	if (length == 0)
		why = "the path is empty";
	else if (length > NAME_PATH_MAX)
		why = "the path is longer than 4095 bytes";
	else if (memchr(path, '\0', length))
		why = "the path contains a NUL byte";
	else if (path[0] == '/')
		why = "the path is not relative";

	for (const char *part = path; !why && part <= end;) {
		const char *slash = memchr(part, '/', (size_t)(end - part));
		const char *part_end = slash ? slash : end;

		why = why_bad_path_part(part, (size_t)(part_end - part));
		if (!why && ++depth > NAME_DEPTH_MAX)
			why = "the path has more than 250 parts";
		part = part_end + 1;
	}
	return why ? refuse(err, "bad-path", path, length, why) : 0;
}
