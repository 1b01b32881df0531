/*
 * Shell-like globs over whole paths, in time bounded by glob length times
 * path length.
 */
#include "config.h"

#include "name.h"

#include <string.h>

/*
 * Match one set, `[...]`, whose '[' is at @set[0]; *out_end: after its ']'.
 * A set that is never closed is an ordinary '['.  A set never matches '/'.
 */
static bool set_match(const char *set, char c, const char **out_end)
{
	const char *at = set + 1;
	bool is_negated = *at == '!' || *at == '^', is_hit = false;
	const char *first;

	at += is_negated;
	for (first = at; *at && (*at != ']' || at == first);) {
		uint8_t low, high;

		if (*at == '\\' && at[1])
			at++;
		low = high = (uint8_t)*at++;
		if (at[0] == '-' && at[1] && at[1] != ']') {
			at++;
			if (*at == '\\' && at[1])
				at++;
			high = (uint8_t)*at++;
		}
		is_hit = is_hit || ((uint8_t)c >= low && (uint8_t)c <= high);
	}
	if (!*at) {
		*out_end = set + 1;
		return c == '[';
	}
	*out_end = at + 1;
	return is_hit != is_negated && c != '/';
}

/* Match one element that takes exactly one byte. */
static bool one_match(const char *glob, char c, const char **out_end)
{
	if (*glob == '[')
		return set_match(glob, c, out_end);
	if (*glob == '?') {
		*out_end = glob + 1;
		return c != '/';
	}
	if (*glob == '\\' && glob[1])
		glob++;
	*out_end = glob + 1;
	return *glob == c;
}

/* Where to go on when the rest does not match: the star takes more. */
struct star {
	const char *glob; /* after the star; NULL: no star yet */
	const char *path; /* first byte not taken by the star */
	bool takes_parts; /* a "**" + "/": whole parts with their '/' */
};

/* Let @star take more; false when it cannot. */
static bool star_grow(struct star *star, const char *end, bool is_deep)
{
	const char *slash;

	if (!star->glob || star->path == end)
		return false;
	if (star->takes_parts) {
		slash = memchr(star->path, '/', (size_t)(end - star->path));
		if (!slash)
			return false;
		star->path = slash + 1;
		return true;
	}
	if (!is_deep && *star->path == '/')
		return false;
	star->path++;
	return true;
}

/* @glob stands at "**"; gives the star that it is. */
static struct star deep_star(const char *glob, bool is_part_start,
			     const char *path)
{
	struct star star = { glob + strspn(glob, "*"), path, false };

	if (is_part_start && *star.glob == '/') {
		star.glob++;
		star.takes_parts = true;
	}
	return star;
}

/*
 * The usual loop with one point to return to, twice: only the last `*` since
 * the last `**`, and the last `**`, can need to take more.
 */
bool name_glob_match(const char *glob, const char *path, size_t path_length)
{
	const char *begin = glob, *end = path + path_length, *next;
	struct star star = { NULL, NULL, false }, deep = star;

	for (;;) {
		if (glob[0] == '*' && glob[1] == '*') {
			deep = deep_star(glob, glob == begin || glob[-1] == '/',
					 path);
			star.glob = NULL;
			glob = deep.glob;
		} else if (*glob == '*') {
			star = (struct star){ ++glob, path, false };
		} else if (*glob == '\0' && path == end) {
			return true;
		} else if (*glob && path < end &&
			   one_match(glob, *path, &next)) {
			glob = next;
			path++;
		} else if (star_grow(&star, end, false)) {
			glob = star.glob;
			path = star.path;
		} else if (star_grow(&deep, end, true)) {
			star.glob = NULL;
			glob = deep.glob;
			path = deep.path;
		} else {
			return false;
		}
	}
}

bool incr_glob_match(const char *glob, const char *path, size_t path_length)
{
	return name_glob_match(glob, path, path_length);
}
