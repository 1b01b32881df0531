/*
 * What makes a text a schema.
 */
#include "config.h"

#include "testing.h"

#include "schema_json.h"

#include <string.h>

static void test_schema_check__good__accepted(void)
{
	static const char *const good[] = {
		"{\"columns\":[]}",
		"{\"columns\":[{\"name\":\"a\",\"type\":\"string\"}]}",
		"{\"columns\":[{\"name\":\"a\",\"type\":\"long\","
		"\"nullable\":true,\"description\":\"d\","
		"\"type_classes\":[\"x\"]},"
		"{\"name\":\"b\",\"type\":\"double\",\"description\":null}]}",
	};
	struct incr_error err = INCR_ERROR_INIT;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK_OK(schema_check(good[i], strlen(good[i]), "s", &err));
}

static void test_schema_check__bad__says_why(void)
{
	static const char *const bad[] = {
		"",
		"nothing",
		"[]",
		"{}",
		"{\"columns\":{}}",
		"{\"columns\":[1]}",
		"{\"columns\":[{\"type\":\"long\"}]}",
		"{\"columns\":[{\"name\":\"\",\"type\":\"long\"}]}",
		"{\"columns\":[{\"name\":\"a\"}]}",
		"{\"columns\":[{\"name\":\"a\",\"type\":7}]}",
		("{\"columns\":[{\"name\":\"a\",\"type\":\"x\","
		 "\"nullable\":\"no\"}]}"),
		("{\"columns\":[{\"name\":\"a\",\"type\":\"x\"},"
		 "{\"name\":\"a\",\"type\":\"y\"}]}"),
		"{\"columns\":[],\"columns\":[]}",
		"{\"columns\":[]} trailing",
	};
	struct incr_error err = INCR_ERROR_INIT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_ERR(INCR_E_INVALID,
			  schema_check(bad[i], strlen(bad[i]), "s", &err));
		CHECK_STR_EQ("bad-schema", err.word);
	}
	incr_error_release(&err);
}

static const struct testing_test tests[] = {
	TEST(test_schema_check__good__accepted),
	TEST(test_schema_check__bad__says_why),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "schema_json", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
