/*
 * Values as text and back.
 */
#include "config.h"

#include "testing.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

static void test_text_size__table__humanized(void)
{
	static const struct {
		uint64_t size;
		const char *want;
	} rows[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 11469, "11.2 KiB" },
		{ 1048524, "1023.9 KiB" },
		{ 1048575, "1.0 MiB" },
		{ 1048576, "1.0 MiB" },
		{ UINT64_C(1) << 40, "1.0 TiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	struct text text;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR_EQ(rows[i].want, text_size(rows[i].size, &text));
}

static void test_text_count__table__plural_and_commas(void)
{
	struct text text;

	CHECK_STR_EQ("0 files", text_count(0, "file", "files", &text));
	CHECK_STR_EQ("1 file", text_count(1, "file", "files", &text));
	CHECK_STR_EQ("999 files", text_count(999, "file", "files", &text));
	CHECK_STR_EQ("1,234,567 files",
		     text_count(1234567, "file", "files", &text));
	CHECK_STR_EQ("18,446,744,073,709,551,615 files",
		     text_count(UINT64_MAX, "file", "files", &text));
}

static void test_text_time__fractions__as_short_as_exact(void)
{
	struct text text;

	CHECK_STR_EQ("1970-01-01T00:00:00Z", text_time(0, &text));
	CHECK_STR_EQ("1970-01-01T00:00:00.5Z", text_time(500000000, &text));
	CHECK_STR_EQ("1970-01-01T00:00:01.000000001Z",
		     text_time(1000000001, &text));
	CHECK_STR_EQ("1969-12-31T23:59:59.9Z", text_time(-100000000, &text));
	CHECK_STR_EQ("2262-04-11T23:47:16.854775807Z",
		     text_time(INT64_MAX, &text));
	CHECK_STR_EQ("1970-01-01T00:00:01Z",
		     text_time_short(1999999999, &text));
}

static void test_text_parse_time__good__nanoseconds(void)
{
	static const struct {
		const char *str;
		int64_t want;
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01t00:00:01.5z", 1500000000 },
		{ "1970-01-01 01:00:00+01:00", 0 },
		{ "1969-12-31T23:00:00-01:00", 0 },
		{ "1970-01-01T00:00:00.000000001Z", 1 },
		{ "1970-01-01T00:00:00.0000000019Z", 1 },
		{ "2000-02-29T00:00:00Z", INT64_C(951782400000000000) },
		{ "2262-04-11T23:47:16.854775807Z", INT64_MAX },
	};
	int64_t got;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(text_parse_time(rows[i].str, &got));
		CHECK_INT_EQ(rows[i].want, got);
	}
}

static void test_text_parse_time__bad__refused(void)
{
	static const char *const bad[] = {
		"",
		"now",
		"2026-01-05",
		"2026-01-05T12:00Z",
		"2026-01-05T12:00:00",
		"2026-01-05T12:00:00+0100",
		"2026-01-05T12:00:00Zx",
		"2026-01-05T12:00:00.Z",
		"2026-13-05T12:00:00Z",
		"2026-02-29T12:00:00Z",
		"2026-04-31T12:00:00Z",
		"2026-01-05T24:00:00Z",
		"2026-01-05T12:60:00Z",
		"2026-1-5T12:00:00Z",
		"9999-01-01T00:00:00Z",
	};
	int64_t got;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (text_parse_time(bad[i], &got))
			CHECK_STR_EQ("refused", bad[i]);
}

static void test_text_parse_number__limits__exact(void)
{
	uint64_t u;
	int64_t i;

	CHECK(text_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
	CHECK(!text_parse_u64("18446744073709551616", &u));
	CHECK(!text_parse_u64("-1", &u));
	CHECK(!text_parse_u64(" 1", &u));
	CHECK(!text_parse_u64("1 ", &u));
	CHECK(!text_parse_u64("", &u));
	CHECK(text_parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
	CHECK(!text_parse_i64("9223372036854775808", &i));
	CHECK(!text_parse_i64("--1", &i));
	CHECK(text_parse_id("b7", 'b', &u) && u == 7);
	CHECK(!text_parse_id("b0", 'b', &u));
	CHECK(!text_parse_id("b07", 'b', &u));
	CHECK(!text_parse_id("7", 'b', &u));
}

static void test_text_quote__table__as_git_does(void)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "plain/path.csv", "plain/path.csv" },
		{ "with space", "with space" },
		{ "\xc3\xa4.csv", "\xc3\xa4.csv" },
		{ "a\nb", "\"a\\nb\"" },
		{ "a\"b", "\"a\\\"b\"" },
		{ "a\\b", "\"a\\\\b\"" },
		{ "a\xff", "\"a\\377\"" },
		{ "\x1b[31m", "\"\\033[31m\"" },
		{ "\xc2\x9b", "\"\\302\\233\"" },
		{ "\xed\xa0\x80", "\"\\355\\240\\200\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = text_quote(rows[i].path, strlen(rows[i].path));

		CHECK_STR_EQ(rows[i].want, got);
		free(got);
	}
}

static void test_text_base64__lengths__padded(void)
{
	static const char *const want[] = {
		"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"
	};

	for (size_t n = 0; n < sizeof(want) / sizeof(want[0]); n++) {
		char *got = text_base64("foobar", n);

		CHECK_STR_EQ(want[n], got);
		free(got);
	}
}

static void test_text_lossy__bad_bytes__replacement(void)
{
	size_t length;
	char *got = text_lossy("a\xff\xc3", 3, &length);

	CHECK_STR_EQ("a\xef\xbf\xbd\xef\xbf\xbd", got);
	CHECK_INT_EQ(7, length);
	free(got);
}

static void test_text_printable__cut__whole_characters(void)
{
	char out[6];

	text_printable("\xc3\xa4\xc3\xa4\xc3\xa4", 6, out, sizeof(out));
	CHECK_STR_EQ("\xc3\xa4\xc3\xa4", out);
	text_printable("a\nb", 3, out, sizeof(out));
	CHECK_STR_EQ("a\\x0a", out);
}

static const struct testing_test tests[] = {
	TEST(test_text_size__table__humanized),
	TEST(test_text_count__table__plural_and_commas),
	TEST(test_text_time__fractions__as_short_as_exact),
	TEST(test_text_parse_time__good__nanoseconds),
	TEST(test_text_parse_time__bad__refused),
	TEST(test_text_parse_number__limits__exact),
	TEST(test_text_quote__table__as_git_does),
	TEST(test_text_base64__lengths__padded),
	TEST(test_text_lossy__bad_bytes__replacement),
	TEST(test_text_printable__cut__whole_characters),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "text", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
