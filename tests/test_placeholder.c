/*
 * Placeholders in the arguments of a command.
 */
#include "config.h"

#include "testing.h"

#include "placeholder.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text, *want;
} rows[] = {
	{ "", "" },
	{ "plain", "plain" },
	{ "{a.added}", "/m/a/added" },
	{ "x{a.added}y", "x/m/a/addedy" },
	{ "{a.added}{a.added}", "/m/a/added/m/a/added" },
	{ "{build}:{transform}:{mount}", "b7:t:/m" },
	/* names that are not of this transform */
	{ "{b.added}", "{b.added}" },
	{ "{a.nothing}", "{a.nothing}" },
	{ "{a}", "{a}" },
	{ "{A.added}", "{A.added}" },
	{ "{a.added ", "{a.added " },
	{ "{ a.added}", "{ a.added}" },
	/* what other programs mean by braces */
	{ "{}", "{}" },
	{ "{", "{" },
	{ "}", "}" },
	{ "{{", "{{" },
	{ "{{}}", "{{}}" },
	{ "{print $1}", "{print $1}" },
	{ "{print \"{a.added}\"}", "{print \"/m/a/added\"}" },
	{ "a{1,2}", "a{1,2}" },
	/* literals */
	{ "{{a.added}", "{a.added}" },
	{ "{{a.added}}", "{a.added}}" },
	{ "{{{a.added}", "{{a.added}" },
	{ "{{build}", "{build}" },
	{ "{{b.added}", "{{b.added}" },
	/* a value is not looked at again */
	{ "{odd}", "{build}" },
	{ "\xff{build}\xfe", "\xff"
			     "b7"
			     "\xfe" },
};

static void test_placeholders_replace__table__only_known_names(void)
{
	struct placeholders p = { 0 };

	REQUIRE(placeholders_add(&p, "a.added", "/m/a/added"));
	REQUIRE(placeholders_add(&p, "build", "b7"));
	REQUIRE(placeholders_add(&p, "transform", "t"));
	REQUIRE(placeholders_add(&p, "mount", "/m"));
	REQUIRE(placeholders_add(&p, "odd", "{build}"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = placeholders_replace(&p, rows[i].text);

		CHECK_STR_EQ(rows[i].want, got);
		free(got);
	}
	placeholders_release(&p);
}

static void test_placeholders_replace__empty_table__is_a_copy(void)
{
	struct placeholders p = { 0 };
	char *got = placeholders_replace(&p, "{build} {{build}");

	CHECK_STR_EQ("{build} {{build}", got);
	free(got);
}

static const struct testing_test tests[] = {
	TEST(test_placeholders_replace__table__only_known_names),
	TEST(test_placeholders_replace__empty_table__is_a_copy),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "placeholder", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
