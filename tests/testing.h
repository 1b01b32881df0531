/*
 * Checks for CUnit tests that print both sides, and the main function of a
 * test program.
 *
 *   static void test_buf_append__twice__keeps_order(void) { ... }
 *
 *   static const struct testing_test tests[] = {
 *           TEST(test_buf_append__twice__keeps_order),
 *           TEST_END,
 *   };
 *   static const struct testing_suite suites[] = {
 *           { "buf", tests },
 *           SUITE_END,
 *   };
 *
 *   int main(int argc, char **argv)
 *   {
 *           return testing_main(argc, argv, suites);
 *   }
 *
 * CHECK_x notes a failure and goes on; REQUIRE_x notes it and returns from the
 * calling void function. Each argument is evaluated once.
 */
#ifndef INCR_TESTING_H
#define INCR_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct incr_error;

struct testing_test {
	const char *name;
	void (*run)(void);
};

struct testing_suite {
	const char *name;
	const struct testing_test *tests; /* ends with TEST_END */
};

/* clang-format off */
#define TEST(function) { #function, function }
#define TEST_END { NULL, NULL }
#define SUITE_END { NULL, NULL }
/* clang-format on */

/*
 * Run the tests of all suites up to SUITE_END, or those whose name contains
 * one of the arguments. Prints `ok NAME` or `FAILED NAME` for each and at the
 * end `N passed, N failed` alone on a line.
 *
 * Returns the exit status: 0, 1 if a test failed, 2 if no name matched.
 */
int testing_main(int argc, char **argv, const struct testing_suite *suites);

/* End the program: it cannot go on, for want of what is no test. */
_Noreturn void testing_die(const char *what, const struct incr_error *err);

/*
 * The temporary directory of the running test, made at the first call and
 * removed with all its content after the test. Borrowed; valid until then.
 */
const char *testing_tmpdir(void);

/* Note that the running test cannot run here; use SKIP(). */
void testing_skip(const char *reason);

/* The functions behind the macros; each returns whether the check held. */
bool testing_true(bool is_true, const char *text, const char *file, int line);
bool testing_int_eq(intmax_t want, intmax_t got, const char *text,
		    const char *file, int line);
bool testing_str_eq(const char *want, const char *got, const char *text,
		    const char *file, int line);
bool testing_mem_eq(const void *want, const void *got, size_t size,
		    const char *text, const char *file, int line);
/* @want: a code of enum incr_err, or 0. */
bool testing_err_eq(int want, int got, const char *want_text, const char *text,
		    const char *file, int line);

#define CHECK(condition) \
	((void)testing_true((condition), #condition, __FILE__, __LINE__))
#define CHECK_INT_EQ(want, got)                                        \
	((void)testing_int_eq((intmax_t)(want), (intmax_t)(got), #got, \
			      __FILE__, __LINE__))
#define CHECK_STR_EQ(want, got) \
	((void)testing_str_eq((want), (got), #got, __FILE__, __LINE__))
#define CHECK_MEM_EQ(want, got, size) \
	((void)testing_mem_eq((want), (got), (size), #got, __FILE__, __LINE__))
#define CHECK_ERR(want, call) \
	((void)testing_err_eq((want), (call), #want, #call, __FILE__, __LINE__))
#define CHECK_OK(call) CHECK_ERR(0, call)

#define TESTING_REQUIRE(held)   \
	do {                    \
		if (!(held))    \
			return; \
	} while (0)

#define REQUIRE(condition) \
	TESTING_REQUIRE(   \
		testing_true((condition), #condition, __FILE__, __LINE__))
#define REQUIRE_INT_EQ(want, got)                                         \
	TESTING_REQUIRE(testing_int_eq((intmax_t)(want), (intmax_t)(got), \
				       #got, __FILE__, __LINE__))
#define REQUIRE_STR_EQ(want, got) \
	TESTING_REQUIRE(testing_str_eq((want), (got), #got, __FILE__, __LINE__))
#define REQUIRE_MEM_EQ(want, got, size)                                       \
	TESTING_REQUIRE(testing_mem_eq((want), (got), (size), #got, __FILE__, \
				       __LINE__))
#define REQUIRE_ERR(want, call)                                                \
	TESTING_REQUIRE(testing_err_eq((want), (call), #want, #call, __FILE__, \
				       __LINE__))
#define REQUIRE_OK(call) REQUIRE_ERR(0, call)

#define SKIP(reason)                  \
	do {                          \
		testing_skip(reason); \
		return;               \
	} while (0)

#endif
