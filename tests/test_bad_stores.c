/*
 * Stores that no writer would make: each is refused with its code and word,
 * without a crash and in little memory.  tests/stores/README lists them.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bad_store.h"
#include "store.h"
#include "store_text.h"
#include "testing.h"

#define RSS_MAX_KIB (64 * 1024)

/* The first thing that is wrong: opening, reading all, verify. */
struct first {
	int code;
	char word[40];
};

static int note_finding(void *closure, const struct incr_finding *f)
{
	struct first *first = closure;

	if (first->code == 0) {
		first->code = INCR_E_CORRUPT;
		(void)snprintf(first->word, sizeof(first->word), "%s", f->word);
	}
	return 0;
}

/* From the text's first line "ERROR code word ...". */
static void note_error(const struct store_text *text, struct first *first)
{
	const char *line = strstr(text->text, "ERROR ");

	if (line)
		(void)sscanf(line, "ERROR %d %39s", &first->code, first->word);
}

static void look_at(struct sim *sim, struct first *first)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result;
	struct incr_error err = INCR_ERROR_INIT;
	struct store_text text = { 0 };
	struct incr_store *st;

	first->code = store_open_with(sim_io(sim), BAD_STORE, NULL, &st, &err);
	(void)snprintf(first->word, sizeof(first->word), "%s", err.word);
	incr_error_release(&err);
	if (first->code < 0)
		return;
	(void)store_text_fill(st, STORE_TEXT_ALL_VIEWS, &text);
	note_error(&text, first);
	CHECK_OK(incr_verify(st, &verify, note_finding, first, &result, &err));
	/* what reading found, verify finds too */
	CHECK(result.n_findings > 0);
	incr_error_release(&err);
	store_text_release(&text);
	incr_store_close(st);
}

static void test_bad_stores__each__has_its_code_and_word(void)
{
	unsigned n = 0;

	for (const struct bad *bad = bad_stores; bad->name; bad++, n++) {
		struct sim *sim = bad_store_make(bad);
		struct first first = { 0 };

		look_at(sim, &first);
		sim_free(sim);
		if (first.code != bad->code ||
		    strcmp(first.word, bad->word) != 0)
			printf("%s: want %d %s, got %d %s\n", bad->name,
			       bad->code, bad->word, first.code, first.word);
		CHECK_INT_EQ(bad->code, first.code);
		CHECK_STR_EQ(bad->word, first.word);
	}
	printf("%u bad stores\n", n);
	CHECK(n >= 60);
}

static void test_bad_stores__none__takes_much_memory(void)
{
	struct rusage usage;

#ifdef __SANITIZE_ADDRESS__
	SKIP("a sanitizer takes more");
#endif
	REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
	printf("%ld KiB at most\n", usage.ru_maxrss);
	CHECK(usage.ru_maxrss <= RSS_MAX_KIB);
}

static void test_bad_stores__readme__lists_them(void)
{
	const char *srcdir = getenv("INCR_SRCDIR");
	static char text[65536];
	char path[4096];
	FILE *f;

	if (!srcdir)
		SKIP("INCR_SRCDIR is not set");
	snprintf(path, sizeof(path), "%s/tests/stores/README", srcdir);
	f = fopen(path, "r");
	REQUIRE(f != NULL);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	for (const struct bad *bad = bad_stores; bad->name; bad++) {
		char line[80];

		snprintf(line, sizeof(line), "\n%s ", bad->name);
		if (!strstr(text, line))
			printf("not in the README: %s\n", bad->name);
		CHECK(strstr(text, line) != NULL);
	}
}

static const struct testing_test tests[] = {
	TEST(test_bad_stores__each__has_its_code_and_word),
	TEST(test_bad_stores__none__takes_much_memory),
	TEST(test_bad_stores__readme__lists_them),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "bad_stores", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
