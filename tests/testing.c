/*
 * Checks that print both sides, and the main function of a CUnit program.
 */
#include "config.h"

#include "testing.h"

#include "incr.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestDB.h>
#include <CUnit/TestRun.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A test program is one thread and one run: its state may be global. */
static struct {
	const char *test;
	char *tmpdir; /* owned; NULL until the running test asks for it */
	bool is_skipped;
	unsigned n_passed, n_failed, n_skipped;
} run;

void testing_die(const char *what, const struct incr_error *err)
{
	fprintf(stderr, "%s: %s: %s %s\n", what, err->word, err->message,
		err->thing);
	abort();
}

static bool note(bool held, const char *text, const char *file, int line)
{
	(void)CU_assertImplementation(held ? CU_TRUE : CU_FALSE, (unsigned)line,
				      text, file, "", CU_FALSE);
	return held;
}

bool testing_true(bool is_true, const char *text, const char *file, int line)
{
	if (!is_true)
		printf("%s:%d: not true: %s\n", file, line, text);
	return note(is_true, text, file, line);
}

bool testing_int_eq(intmax_t want, intmax_t got, const char *text,
		    const char *file, int line)
{
	if (want != got)
		printf("%s:%d: %s\n  want %jd (0x%jx)\n  got  %jd (0x%jx)\n",
		       file, line, text, want, (uintmax_t)want, got,
		       (uintmax_t)got);
	return note(want == got, text, file, line);
}

static void print_str(const char *label, const char *str)
{
	printf("  %s ", label);
	if (!str) {
		puts("NULL");
		return;
	}
	putchar('"');
	for (; *str; str++) {
		unsigned char c = (unsigned char)*str;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c == '\n')
			fputs("\\n", stdout);
		else if (c < ' ' || c == 0x7f)
			printf("\\%03o", c);
		else
			putchar(c);
	}
	puts("\"");
}

bool testing_str_eq(const char *want, const char *got, const char *text,
		    const char *file, int line)
{
	bool is_same = want && got ? strcmp(want, got) == 0 : want == got;

	if (!is_same) {
		printf("%s:%d: %s\n", file, line, text);
		print_str("want", want);
		print_str("got ", got);
	}
	return note(is_same, text, file, line);
}

static void print_bytes(const char *label, const uint8_t *bytes, size_t from,
			size_t to)
{
	printf("  %s", label);
	for (size_t i = from; i < to; i++)
		printf(" %02x", bytes[i]);
	putchar('\n');
}

bool testing_mem_eq(const void *want, const void *got, size_t size,
		    const char *text, const char *file, int line)
{
	const uint8_t *w = want, *g = got;
	size_t at = 0, from, to;

	if (size > 0 && (!w || !g)) {
		printf("%s:%d: %s\n  want %p\n  got  %p\n", file, line, text,
		       want, got);
		return note(false, text, file, line);
	}
	while (at < size && w[at] == g[at])
		at++;
	if (at == size)
		return note(true, text, file, line);

	from = at < 8 ? 0 : at - 8;
	to = size - at < 8 ? size : at + 8;
	printf("%s:%d: %s\n  first difference at byte %zu of %zu; from %zu:\n",
	       file, line, text, at, size, from);
	print_bytes("want", w, from, to);
	print_bytes("got ", g, from, to);
	return note(false, text, file, line);
}

bool testing_err_eq(int want, int got, const char *want_text, const char *text,
		    const char *file, int line)
{
	if (want != got)
		printf("%s:%d: %s\n  want %d (%s)\n  got  %d (%s)\n", file,
		       line, text, want, want ? want_text : "done", got,
		       got < 0 ? incr_strerror(got) : "done");
	return note(want == got, text, file, line);
}

void testing_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	run.is_skipped = true;
}

const char *testing_tmpdir(void)
{
	const char *top = getenv("TMPDIR");

	if (run.tmpdir)
		return run.tmpdir;

	if (asprintf(&run.tmpdir, "%s/%.100s.XXXXXX",
		     top && *top ? top : "/tmp", run.test) < 0)
		abort();
	if (!mkdtemp(run.tmpdir)) {
		fprintf(stderr, "%s: %s\n", run.tmpdir, strerror(errno));
		abort();
	}
	return run.tmpdir;
}

/* Directories are made writable on the way down, removed on the way up. */
static void remove_tree(char *path)
{
	char *paths[] = { path, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;

	while (walk && (entry = fts_read(walk)) != NULL) {
		if (entry->fts_info == FTS_D)
			(void)chmod(entry->fts_accpath, 0700);
		else if (remove(entry->fts_accpath) != 0)
			printf("cannot remove %s: %s\n", entry->fts_path,
			       strerror(errno));
	}
	if (walk)
		(void)fts_close(walk);
}

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
	(void)suite;
	run.test = test->pName;
	run.is_skipped = false;
}

static void on_complete(const CU_pTest test, const CU_pSuite suite,
			const CU_pFailureRecord failure)
{
	(void)suite;
	if (failure) {
		run.n_failed++;
		printf("FAILED %s\n", test->pName);
	} else if (run.is_skipped) {
		run.n_skipped++;
		printf("skipped %s\n", test->pName);
	} else {
		run.n_passed++;
		printf("ok %s\n", test->pName);
	}

	if (run.tmpdir)
		remove_tree(run.tmpdir);
	free(run.tmpdir);
	run.tmpdir = NULL;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

/* Returns how many of the tests of @from were added, or -1. */
static int add_suite(const struct testing_suite *from, int argc, char **argv)
{
	CU_pSuite suite = CU_add_suite(from->name, NULL, NULL);
	int n_added = 0;

	if (!suite)
		return -1;

	for (const struct testing_test *test = from->tests; test->name;
	     test++) {
		if (!is_wanted(test->name, argc, argv))
			continue;
		if (!CU_add_test(suite, test->name, test->run))
			return -1;
		n_added++;
	}
	return n_added;
}

int testing_main(int argc, char **argv, const struct testing_suite *suites)
{
	int n_tests = 0;

	/* After a crash the last line tells how far the program came. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;

	for (; suites->name; suites++) {
		int n = add_suite(suites, argc, argv);

		if (n < 0) {
			fprintf(stderr, "%s: %s\n", suites->name,
				CU_get_error_msg());
			return 1;
		}
		n_tests += n;
	}
	if (n_tests == 0) {
		fprintf(stderr, "%s: no test matches\n", argv[0]);
		return 2;
	}

	CU_set_test_start_handler(on_start);
	CU_set_test_complete_handler(on_complete);
	(void)CU_run_all_tests(); /* failures were counted on the way */
	CU_cleanup_registry();

	printf("%u passed, %u failed", run.n_passed, run.n_failed);
	if (run.n_skipped)
		printf(", %u skipped", run.n_skipped);
	putchar('\n');
	return run.n_failed ? 1 : 0;
}
