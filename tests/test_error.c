/* Filling struct incr_error. */
#include "config.h"

#include "error.h"
#include "testing.h"

#include <errno.h>
#include <string.h>

static void test_incr_fail__all_given__fills_all(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	CHECK_ERR(INCR_E_CONFLICT,
		  incr_fail(&err, INCR_E_CONFLICT, "append-collision", "a/b",
			    "%d paths exist", 2));
	CHECK_INT_EQ(INCR_E_CONFLICT, err.code);
	CHECK_INT_EQ(0, err.sys_errno);
	CHECK_STR_EQ("append-collision", err.word);
	CHECK_STR_EQ("a/b", err.thing);
	CHECK_STR_EQ("2 paths exist", err.message);
	CHECK_STR_EQ("", err.hint);
	incr_hint(&err, "use %s", "UPDATE");
	CHECK_STR_EQ("use UPDATE", err.hint);
	incr_error_release(&err);
}

static void test_incr_fail__no_error__returns_code(void)
{
	CHECK_ERR(INCR_E_BUSY,
		  incr_fail(NULL, INCR_E_BUSY, NULL, NULL, "%s", "busy"));
	CHECK_ERR(INCR_E_IO, incr_fail_errno(NULL, EIO, NULL, "x"));
	CHECK_ERR(INCR_E_NOMEM, incr_fail_nomem(NULL));
	incr_hint(NULL, "x");
	incr_fail_add_path(NULL, "x", 1);
	incr_error_release(NULL);
}

static void test_incr_fail__control_bytes__are_escaped(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	(void)incr_fail(&err, INCR_E_INVALID, NULL, "a\nb\xff",
			"line\none \xc3\xa9");
	CHECK_STR_EQ("a\\x0ab\\xff", err.thing);
	CHECK_STR_EQ("line\\x0aone \xc3\xa9", err.message);
	incr_error_release(&err);
}

static void test_incr_fail__too_long__is_cut(void)
{
	struct incr_error err = INCR_ERROR_INIT;
	char longest[4096];

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	(void)incr_fail(&err, INCR_E_INVALID, longest, longest, "%s", longest);
	CHECK_INT_EQ(sizeof(err.word) - 1, strlen(err.word));
	CHECK_INT_EQ(sizeof(err.thing) - 1, strlen(err.thing));
	CHECK_STR_EQ("xx...", err.thing + sizeof(err.thing) - 6);
	CHECK_INT_EQ(sizeof(err.message) - 1, strlen(err.message));
	incr_error_release(&err);
}

static void test_incr_fail__every_code__has_word_and_sentence(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	for (int code = INCR_E_DEAD; code < 0; code++) {
		CHECK_ERR(code, incr_fail(&err, code, NULL, NULL, "x"));
		CHECK(strcmp(err.word, "unknown") != 0);
		CHECK(strcmp(incr_strerror(code), "unknown error") != 0);
	}
	CHECK_STR_EQ("out-of-memory", err.word);
	CHECK_STR_EQ("unknown error", incr_strerror(-99));
	incr_error_release(&err);
}

static void test_incr_fail_errno__table__gives_code_and_word(void)
{
	static const struct {
		int sys_errno;
		enum incr_err code;
		const char *word;
	} cases[] = {
		{ ENOSPC, INCR_E_NOSPC, "no-space" },
		{ EDQUOT, INCR_E_NOSPC, "no-space" },
		{ EROFS, INCR_E_READONLY, "read-only" },
		{ EACCES, INCR_E_IO, "permission-denied" },
		{ EPERM, INCR_E_IO, "permission-denied" },
		{ ENOENT, INCR_E_NOTFOUND, "not-found" },
		{ EEXIST, INCR_E_EXISTS, "exists" },
		{ ENOMEM, INCR_E_NOMEM, "out-of-memory" },
		{ EMFILE, INCR_E_IO, "io-error" },
		{ EIO, INCR_E_IO, "io-error" },
	};
	struct incr_error err = INCR_ERROR_INIT;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Also negated, as the io table gives it. */
		for (int sign = -1; sign <= 1; sign += 2) {
			CHECK_ERR(cases[i].code,
				  incr_fail_errno(&err,
						  sign * cases[i].sys_errno,
						  "f", "cannot open"));
			CHECK_INT_EQ(cases[i].sys_errno, err.sys_errno);
			CHECK_STR_EQ(cases[i].word, err.word);
		}
	}
	CHECK_STR_EQ("cannot open: Input/output error", err.message);
	incr_error_release(&err);
}

static void test_incr_fail_add_path__three__lists_all(void)
{
	struct incr_error err = INCR_ERROR_INIT;

	(void)incr_fail(&err, INCR_E_CONFLICT, NULL, NULL, "x");
	incr_fail_add_path(&err, "a", 1);
	incr_fail_add_path(&err, "bcd", 2);
	incr_fail_add_path(&err, "", 0);
	CHECK_INT_EQ(3, err.n_paths);
	REQUIRE_INT_EQ(6, err.paths_size);
	CHECK_MEM_EQ("a\0bc\0", err.paths, 6);
	incr_error_release(&err);
	CHECK_INT_EQ(0, err.n_paths);
	CHECK(err.paths == NULL);
}

static const struct testing_test tests[] = {
	TEST(test_incr_fail__all_given__fills_all),
	TEST(test_incr_fail__no_error__returns_code),
	TEST(test_incr_fail__control_bytes__are_escaped),
	TEST(test_incr_fail__too_long__is_cut),
	TEST(test_incr_fail__every_code__has_word_and_sentence),
	TEST(test_incr_fail_errno__table__gives_code_and_word),
	TEST(test_incr_fail_add_path__three__lists_all),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "error", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
