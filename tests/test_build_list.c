/*
 * What the log knows of builds and transforms, status, and schemas of outputs.
 */
#include "build_fixture.h"
#include "schema_columns.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define INCREMENTAL INCR_DECISION_INCREMENTAL
#define SNAPSHOT INCR_DECISION_SNAPSHOT

struct numbers {
	size_t n;
	uint64_t items[16];
};

static int add_number(void *closure, const struct incr_build_info *info)
{
	struct numbers *numbers = closure;

	numbers->items[numbers->n++] = info->number;
	return numbers->n == 16;
}

static int add_name(void *closure, const char *name)
{
	char *text = closure;

	(void)strcat(text, name);
	(void)strcat(text, " ");
	return 0;
}

static void test_build_list__newest_first__by_transform(void)
{
	struct numbers all = { 0 }, own = { 0 }, none = { 0 };
	char names[64] = "";
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x"); /* b1 */
	f.t.name = (char[]){ "copy.b" };
	f.outputs[0].dataset = (char[]){ "out2" };
	fixture_check_run(&f, SNAPSHOT, "y"); /* b2 */
	f.t.name = (char[]){ "copy" };
	f.outputs[0].dataset = (char[]){ "out" };
	fixture_history(&f, "in", "A{b}");
	fixture_check_run(&f, INCREMENTAL, "z"); /* b3 */
	fixture_reopen(&f);
	CHECK_OK(incr_build_list(f.st, NULL, add_number, &all, NULL));
	REQUIRE_INT_EQ(3, all.n);
	CHECK_INT_EQ(3, all.items[0]);
	CHECK_INT_EQ(1, all.items[2]);
	CHECK_OK(incr_build_list(f.st, "copy", add_number, &own, NULL));
	REQUIRE_INT_EQ(2, own.n);
	CHECK_INT_EQ(3, own.items[0]);
	CHECK_OK(incr_build_list(f.st, "cop", add_number, &none, NULL));
	CHECK_INT_EQ(0, none.n);
	CHECK_OK(incr_transform_list(f.st, add_name, names, NULL));
	CHECK_STR_EQ("copy copy.b ", names);
	fixture_tear_down(&f);
}

static void test_build_find__committed__holds_plan_and_provenance(void)
{
	struct incr_pair pair = { (char[]){ "LANG" }, (char[]){ "C" } };
	struct incr_build_info info = { 0 };
	char *command[] = { (char[]){ "cp" }, (char[]){ "{in.added}" } };
	struct fixture f;
	uint64_t end;

	fixture_set_up(&f);
	f.t.command = command;
	f.t.n_command = 2;
	f.build_options.cwd = "/somewhere";
	f.build_options.environment = (struct incr_pairs){ 1, &pair };
	end = fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "xy");
	fixture_reopen(&f);
	REQUIRE_OK(incr_build_find(f.st, 1, &info, NULL));
	CHECK_INT_EQ(INCR_BUILD_COMMITTED, info.status);
	CHECK_STR_EQ("/somewhere", info.cwd);
	CHECK_STR_EQ("C", info.environment.items[0].value);
	CHECK_STR_EQ("{in.added}", info.plan.transform.command[1]);
	CHECK_INT_EQ(SNAPSHOT, info.plan.decision);
	CHECK_INT_EQ(INCR_REASON_FIRST_BUILD, info.plan.reasons[0].code);
	CHECK_INT_EQ(end, info.plan.inputs[0].read_end);
	CHECK_INT_EQ(fixture_head(&f, "out", NULL), info.plan.outputs[0].txn);
	CHECK_INT_EQ(2, info.plan.outputs[0].n_files);
	CHECK(info.ended_ns >= info.started_ns);
	CHECK(info.user[0] != '\0');
	incr_build_info_release(&info);
	CHECK_ERR(INCR_E_NOTFOUND, incr_build_find(f.st, 2, &info, &f.err));
	CHECK_STR_EQ("no-such-build", f.err.word);
	fixture_tear_down(&f);
}

static void test_transform_recorded__last_committed__is_given(void)
{
	struct incr_transform t = { 0 };
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_transform_recorded(f.st, "copy", &t, NULL));
	fixture_check_run(&f, SNAPSHOT, "x");
	f.t.semantic_version = 7;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(incr_build_abort(b, true, 1, NULL, NULL));
	incr_build_close(b);
	REQUIRE_OK(incr_transform_recorded(f.st, "copy", &t, NULL));
	CHECK_INT_EQ(1, t.semantic_version);
	CHECK_STR_EQ("in", t.inputs[0].alias);
	incr_transform_release(&t);
	fixture_tear_down(&f);
}

static void check_status(struct fixture *f, enum incr_freshness want,
			 uint64_t n_txns, uint64_t n_files)
{
	struct incr_status s = { 0 };

	REQUIRE_OK(incr_status_get(f->st, "copy", &s, NULL));
	CHECK_INT_EQ(want, s.freshness);
	CHECK_STR_EQ("copy", s.transform);
	if (want != INCR_NEVER) {
		REQUIRE_INT_EQ(1, s.n_behind);
		CHECK_INT_EQ(n_txns, s.behind[0].n_txns);
		CHECK_INT_EQ(n_files, s.behind[0].n_files);
	}
	incr_status_release(&s);
}

static void test_status__fresh_stale_never(void)
{
	struct incr_status s = { 0 };
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	CHECK_ERR(INCR_E_NOTFOUND, incr_status_get(f.st, "copy", &s, NULL));
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(incr_build_abort(b, true, 1, NULL, NULL));
	incr_build_close(b);
	check_status(&f, INCR_NEVER, 0, 0);
	fixture_check_run(&f, SNAPSHOT, "x");
	check_status(&f, INCR_FRESH, 0, 0);
	fixture_history(&f, "in", "A{b,c} A{d}");
	check_status(&f, INCR_STALE, 2, 3);
	fixture_tear_down(&f);
}

/* ---- schemas ---- */

static char schema_ab[] =
	"{\"columns\":[{\"name\":\"a\",\"type\":\"string\"},"
	"{\"name\":\"b\",\"type\":\"long\",\"nullable\":true}]}";
static char schema_ba[] = "{\"columns\":[{\"name\":\"b\",\"type\":\"long\"},"
			  "{\"name\":\"a\",\"type\":\"string\"}]}";

static void test_build__R159_schema_mismatch__refused(void)
{
	enum incr_decision decision;
	struct fixture f;

	fixture_set_up(&f);
	f.outputs[0].schema = schema_ba;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	CHECK_OK(incr_schema_set(f.st, fixture_dataset(&f, "out"), "main",
				 schema_ab, strlen(schema_ab), NULL));
	fixture_history(&f, "in", "A{b}");
	CHECK(fixture_begin(&f, &decision) == NULL);
	CHECK_INT_EQ(INCR_E_REFUSED, f.err.code);
	CHECK_STR_EQ("schema-mismatch", f.err.word);
	f.outputs[0].schema = schema_ab;
	fixture_check_run(&f, INCREMENTAL, "y");
	/* A run that is not incremental compares nothing. */
	fixture_history(&f, "in", "S{c}");
	f.outputs[0].schema = schema_ba;
	fixture_check_run(&f, SNAPSHOT, "z");
	fixture_tear_down(&f);
}

static void test_build__R159_empty_previous__has_the_header(void)
{
	struct incr_build *b;
	struct fixture f;
	const char *text;
	size_t size = 0;

	fixture_set_up(&f);
	f.outputs[0].schema = schema_ab;
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK(incr_build_empty_previous(b, 0, &size) == NULL);
	incr_build_close(b);
	f.t.empty_previous_csv = true;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	text = incr_build_empty_previous(b, 0, &size);
	REQUIRE(text != NULL);
	REQUIRE_INT_EQ(4, size);
	CHECK_MEM_EQ("a,b\n", text, 4);
	fixture_stage(&f, b, 0, "x");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK(incr_build_empty_previous(b, 0, &size) == NULL);
	incr_build_close(b);
	fixture_tear_down(&f);
}

/* Stored "a string, b long" against what is declared; NULL: it fits. */
static const struct {
	const char *name, *columns;
	bool fits;
} schema_rows[] = {
	{ "R159 equal",
	  "{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"long\"}",
	  true },
	{ "R161 Q21 more columns",
	  "{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"n\",\"type\":\"x\"},"
	  "{\"name\":\"b\",\"type\":\"long\"}",
	  true },
	{ "R159 order",
	  "{\"name\":\"b\",\"type\":\"long\"},{\"name\":\"a\",\"type\":\"string\"}",
	  false },
	{ "R159 type",
	  "{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"int\"}",
	  false },
	{ "R161 missing", "{\"name\":\"a\",\"type\":\"string\"}", false },
	{ "R160 not nullable",
	  "{\"name\":\"a\",\"type\":\"string\",\"nullable\":false},"
	  "{\"name\":\"b\",\"type\":\"long\"}",
	  false },
	{ "R161 case",
	  "{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"long\"},"
	  "{\"name\":\"A\",\"type\":\"string\"}",
	  false },
};

static void test_schema_columns__R159_R160_R161_compare(void)
{
	struct schema_columns stored = { 0 }, wanted = { 0 };

	REQUIRE_OK(schema_columns_parse(schema_ab, strlen(schema_ab), &stored,
					NULL));
	for (size_t i = 0; i < sizeof(schema_rows) / sizeof(schema_rows[0]);
	     i++) {
		char text[512] = "{\"columns\":[";

		(void)strcat(text, schema_rows[i].columns);
		(void)strcat(text, "]}");
		CHECK_OK(schema_columns_parse(text, strlen(text), &wanted,
					      NULL));
		CHECK_ERR(schema_rows[i].fits ? 0 : INCR_E_REFUSED,
			  schema_columns_compare(&stored, &wanted, "out",
						 NULL));
		schema_columns_release(&wanted);
	}
	schema_columns_release(&stored);
}

static void test_schema_columns__text__is_read(void)
{
	static const char text[] =
		" { \"x\" : [1, {\"y\":\"]}\"}, null], \"columns\" : [\n"
		"{ \"name\" : \"q\\\"\\u00e4\\ud83d\\ude00\", \"type\":\"t\", "
		"\"more\":{\"deep\":[[[]]]} } , "
		"{\"type\":\"u\",\"nullable\":false,\"name\":\"a,b\"}] } ";
	_cleanup_buf_ struct buf line = BUF_INIT;
	struct schema_columns columns = { 0 };

	REQUIRE_OK(schema_columns_parse(text, strlen(text), &columns, NULL));
	REQUIRE_INT_EQ(2, columns.n);
	CHECK_STR_EQ("q\"\xc3\xa4\xf0\x9f\x98\x80", columns.items[0].name);
	CHECK(columns.items[0].is_nullable);
	CHECK(!columns.items[1].is_nullable);
	CHECK_OK(schema_columns_csv(&columns, &line));
	CHECK_OK(buf_put_u8(&line, 0));
	CHECK_STR_EQ("\"q\"\"\xc3\xa4\xf0\x9f\x98\x80\",\"a,b\"\n",
		     (const char *)line.data);
	/* Every prefix is refused, and read within its bounds. */
	for (size_t size = 0; size + 2 < strlen(text); size++) {
		_cleanup_free_ char *part = malloc(size ? size : 1);
		struct schema_columns none = { 0 };

		memcpy(part, text, size);
		CHECK_ERR(INCR_E_INVALID,
			  schema_columns_parse(part, size, &none, NULL));
	}
	schema_columns_release(&columns);
}

static const struct testing_test tests[] = {
	TEST(test_build_list__newest_first__by_transform),
	TEST(test_build_find__committed__holds_plan_and_provenance),
	TEST(test_transform_recorded__last_committed__is_given),
	TEST(test_status__fresh_stale_never),
	TEST(test_build__R159_schema_mismatch__refused),
	TEST(test_build__R159_empty_previous__has_the_header),
	TEST(test_schema_columns__R159_R160_R161_compare),
	TEST(test_schema_columns__text__is_read),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "build_list", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
