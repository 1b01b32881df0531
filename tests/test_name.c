/* The rules for names, how they are shown, and globs. */
#include "config.h"

#include "name.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*check_fn)(const char *name, size_t length,
			struct incr_error *err);

/* All of @names, up to NULL, are refused with @word, or accepted (NULL). */
static void check_names(check_fn check, const char *word,
			const char *const *names)
{
	for (; *names; names++) {
		struct incr_error err = INCR_ERROR_INIT;
		int r = check(*names, strlen(*names), &err);

		CHECK_ERR(word ? INCR_E_INVALID : 0, r);
		if ((r == 0) != (word == NULL))
			printf("  name: %s\n", *names);
		if (word)
			CHECK_STR_EQ(word, err.word);
		incr_error_release(&err);
	}
}

/* @n times @unit, then @end; owned by the caller. */
static char *repeat(const char *unit, size_t n, const char *end)
{
	size_t length = strlen(unit), end_size = strlen(end) + 1;
	char *text = malloc(length * n + end_size);

	if (!text)
		abort();
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * length, unit, length);
	memcpy(text + n * length, end, end_size);
	return text;
}

static void check_long(check_fn check, const char *unit, size_t n,
		       const char *end, int want)
{
	char *text = repeat(unit, n, end);

	CHECK_ERR(want, check(text, strlen(text), NULL));
	free(text);
}

static void test_name_check_dataset__good__is_accepted(void)
{
	static const char *const good[] = {
		"a",	"students", "raw/2026", "A_b.c+d-e f", "0",
		"_x",	"a/b/c/d",  "currents", "caf\xc3\xa9", "\xe6\x97\xa5",
		"x.y.", "now/cur",  NULL,
	};

	check_names(name_check_dataset, NULL, good);
	check_names(name_check_transform, NULL, good);
	check_long(name_check_dataset, "x", 255, "", 0);
	check_long(name_check_dataset, "xyz/", 1023, "abc", 0);
}

static void test_name_check_dataset__bad__is_refused(void)
{
	static const char *const bad[] = {
		"",	    "/",     "/a",	     "a/",	    "a//b",
		".a",	    "..",    "a/..",	     "a..b",	    "-a",
		"+a",	    " a",    "current",	     "a/current/b", "a*b",
		"a:b",	    "a\nb",  "a\\b",	     "\xff",	    "a\xc0\xaf",
		"\xc2\x85", "a\x7f", "\xe2\x80\xae", NULL,
	};

	check_names(name_check_dataset, "bad-dataset-name", bad);
	check_names(name_check_transform, "bad-transform-name", bad);
	check_long(name_check_dataset, "x", 256, "", INCR_E_INVALID);
	check_long(name_check_dataset, "xyz/", 1023, "abcd", INCR_E_INVALID);
	CHECK_ERR(INCR_E_INVALID, name_check_dataset("a\0b", 3, NULL));
}

/* Names of stores from before that was refused are still read. */
static void test_name_check_new__space_at_an_end__is_refused(void)
{
	static const char *const good[] = { "a", "a b", "a/b c/d", NULL };
	static const char *const bad[] = { "a ", "a /b", "a/b ", "a/b  /c",
					   " a", "a/ b", " ",	 NULL };
	static const char *const old[] = { "a ", "a /b", "a/b ", "a/b  /c",
					   NULL };
	static const char *const bad_branch[] = { "a ", " a", NULL };

	check_names(name_check_new_dataset, NULL, good);
	check_names(name_check_new_transform, NULL, good);
	check_names(name_check_new_dataset, "bad-dataset-name", bad);
	check_names(name_check_new_transform, "bad-transform-name", bad);
	check_names(name_check_new_branch, "bad-branch-name", bad_branch);
	check_names(name_check_dataset, NULL, old);
	check_names(name_check_transform, NULL, old);
	CHECK_OK(name_check_branch("a ", 2, NULL));
	CHECK_OK(name_check_new_branch("a b", 3, NULL));
	/* files are named by others; an alias has no spaces at all */
	CHECK_OK(name_check_path("a /b ", 5, NULL));
	CHECK_ERR(INCR_E_INVALID, name_check_alias("a ", 2, NULL));
}

static void test_name_check_branch__any__is_one_part(void)
{
	static const char *const good[] = { "main", "v1.0", "try 2", NULL };
	static const char *const bad[] = { "", "a/b", "current", ".x", NULL };

	check_names(name_check_branch, NULL, good);
	check_names(name_check_branch, "bad-branch-name", bad);
}

static void test_name_check_alias__any__follows_the_pattern(void)
{
	static const char *const good[] = { "a", "Ab_c-9", NULL };
	static const char *const bad[] = { "",	  "1a",	 "_a",	     "-a",
					   "a.b", "a b", "\xc3\xa9", NULL };

	check_names(name_check_alias, NULL, good);
	check_names(name_check_alias, "bad-alias", bad);
	check_long(name_check_alias, "a", 64, "", 0);
	check_long(name_check_alias, "a", 65, "", INCR_E_INVALID);
}

static void test_name_check_origin__any__follows_the_pattern(void)
{
	static const char *const good[] = { "a", "0", "-", "ci-2", NULL };
	static const char *const bad[] = { "", "A", "a_b", "a b", NULL };

	check_names(name_check_origin, NULL, good);
	check_names(name_check_origin, "bad-origin", bad);
	check_long(name_check_origin, "a", 32, "", 0);
	check_long(name_check_origin, "a", 33, "", INCR_E_INVALID);
}

static void test_name_check_path__good__is_accepted(void)
{
	static const char *const good[] = {
		"a",	"a/b",	 ".a", "..a",	  "...", "a\nb",
		"\xff", "-rf *", " ",  "current", NULL,
	};

	check_names(name_check_path, NULL, good);
	check_long(name_check_path, "x", 255, "", 0);
	check_long(name_check_path, "x/", 249, "x", 0);
	check_long(name_check_path, "0123456789abcde/", 255, "fifteen_letters",
		   INCR_E_INVALID); /* 256 parts */
}

static void test_name_check_path__bad__is_refused(void)
{
	static const char *const bad[] = {
		"",    "/",    "/a",  "a/",   "a//b",	".",	 "..",
		"./a", "../a", "a/.", "a/..", "a/../b", "a/./b", NULL,
	};
	struct incr_error err = INCR_ERROR_INIT;

	check_names(name_check_path, "bad-path", bad);
	check_long(name_check_path, "x", 256, "", INCR_E_INVALID);
	check_long(name_check_path, "x/", 250, "x", INCR_E_INVALID);
	CHECK_ERR(INCR_E_INVALID, name_check_path("a\0b", 3, &err));
	CHECK_STR_EQ("a\\x00b", err.thing);
	CHECK_STR_EQ("the path contains a NUL byte", err.message);
	incr_error_release(&err);
}

static void test_name_check_path__longest__is_4095(void)
{
	char path[NAME_PATH_MAX + 1];

	memset(path, 'x', sizeof(path));
	for (size_t i = 250; i < sizeof(path) - 10; i += 250)
		path[i] = '/';
	CHECK_OK(name_check_path(path, NAME_PATH_MAX, NULL));
	CHECK_ERR(INCR_E_INVALID,
		  name_check_path(path, NAME_PATH_MAX + 1, NULL));
}

static void test_name_is_utf8__edges__as_unicode_says(void)
{
	static const struct {
		bool want;
		const char *bytes;
	} cases[] = {
		{ true, "" },
		{ true, "abc" },
		{ true, "\xc2\x80" },
		{ true, "\xdf\xbf" },
		{ true, "\xe0\xa0\x80" },
		{ true, "\xed\x9f\xbf" },
		{ true, "\xf0\x90\x80\x80" },
		{ true, "\xf4\x8f\xbf\xbf" },
		{ false, "\x80" },
		{ false, "\xc1\xbf" },
		{ false, "\xc2" },
		{ false, "\xe0\x9f\xbf" },
		{ false, "\xed\xa0\x80" },
		{ false, "\xf0\x8f\xbf\xbf" },
		{ false, "\xf4\x90\x80\x80" },
		{ false, "\xf5\x80\x80\x80" },
		{ false, "\xe2\x82" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_INT_EQ(cases[i].want,
			     name_is_utf8(cases[i].bytes,
					  strlen(cases[i].bytes)));
}

static void test_name_escape__any_room__fits(void)
{
	static const char name[] = "ab\xc3\xa9\xff\n";
	char out[32];

	name_escape(name, sizeof(name) - 1, out, sizeof(out));
	CHECK_STR_EQ("ab\xc3\xa9\\xff\\x0a", out);
	for (size_t size = 1; size < sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		name_escape(name, sizeof(name) - 1, out, size);
		CHECK(memchr(out, '\0', size) != NULL);
		CHECK(name_is_utf8(out, strlen(out)));
		CHECK(size == sizeof(out) - 1 || out[size] == '#');
	}
	name_escape(name, sizeof(name) - 1, out, 8);
	CHECK_STR_EQ("ab\xc3\xa9...", out);
	name_escape("", 0, out, 1);
	CHECK_STR_EQ("", out);
	name_escape("abc", 3, out, 0); /* touches nothing */
}

static void test_name_glob_match__table__as_documented(void)
{
	static const struct {
		bool want;
		const char *glob, *path;
	} cases[] = {
		{ true, "", "" },
		{ false, "", "a" },
		{ true, "a", "a" },
		{ true, "*", "abc" },
		{ false, "*", "a/b" },
		{ true, "*.csv", "x.csv" },
		{ false, "*.csv", "d/x.csv" },
		{ true, "**.csv", "d/x.csv" },
		{ true, "**/*.csv", "x.csv" },
		{ true, "**/*.csv", "a/b/x.csv" },
		{ false, "**/*.csv", "a/b/x.tsv" },
		{ true, "a/**", "a/b/c" },
		{ false, "a/**", "b/c" },
		{ true, "a/**/z", "a/z" },
		{ true, "a/**/z", "a/b/c/z" },
		{ false, "a/**/z", "a/bz" },
		{ true, "**/b/**/d", "a/b/x/b/c/d" },
		{ true, "**", "a/b" },
		{ true, "**", "" },
		{ true, "a?c", "abc" },
		{ false, "a?c", "a/c" },
		{ true, "[a-c]x", "bx" },
		{ false, "[a-c]x", "dx" },
		{ true, "[!a-c]x", "dx" },
		{ false, "[!a]x", "/x" },
		{ true, "[]]", "]" },
		{ true, "[a-]", "-" },
		{ true, "[\\]]", "]" },
		{ true, "[ab", "[ab" },
		{ true, "\\*", "*" },
		{ false, "\\*", "a" },
		{ true, "a*b*c", "aXbYbZc" },
		{ false, "a*b*c", "aXbYbZ" },
		{ true, "*/*", "a/b" },
		{ false, "*/*", "a/b/c" },
		{ true, "\xff*", "\xff\xfe" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool got = name_glob_match(cases[i].glob, cases[i].path,
					   strlen(cases[i].path));

		CHECK_INT_EQ(cases[i].want, got);
		if (got != cases[i].want)
			printf("  glob: %s path: %s\n", cases[i].glob,
			       cases[i].path);
	}
}

/* Would take for ever if the time were not bounded. */
static void test_name_glob_match__many_stars__ends(void)
{
	char *glob = repeat("**/*a*", 300, "b");
	char *path = repeat("aaaa/", 800, "a");

	CHECK(!name_glob_match(glob, path, strlen(path)));
	free(glob);
	free(path);
}

static const struct testing_test tests[] = {
	TEST(test_name_check_dataset__good__is_accepted),
	TEST(test_name_check_dataset__bad__is_refused),
	TEST(test_name_check_new__space_at_an_end__is_refused),
	TEST(test_name_check_branch__any__is_one_part),
	TEST(test_name_check_alias__any__follows_the_pattern),
	TEST(test_name_check_origin__any__follows_the_pattern),
	TEST(test_name_check_path__good__is_accepted),
	TEST(test_name_check_path__bad__is_refused),
	TEST(test_name_check_path__longest__is_4095),
	TEST(test_name_is_utf8__edges__as_unicode_says),
	TEST(test_name_escape__any_room__fits),
	TEST(test_name_glob_match__table__as_documented),
	TEST(test_name_glob_match__many_stars__ends),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "name", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
