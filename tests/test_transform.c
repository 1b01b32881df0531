/*
 * Definition errors, copies and comparisons of transforms.
 */
#include "testing.h"
#include "transform.h"

#include <stdlib.h>
#include <string.h>

/* A right one of two inputs and two outputs, in fields of its own. */
struct sample {
	struct incr_transform t;
	struct incr_transform_input inputs[2];
	struct incr_transform_output outputs[2];
};

/* The library never writes through these. */
static char *lit(const char *s)
{
	union {
		const char *in;
		char *out;
	} u = { .in = s };

	return u.out;
}

static void sample_init(struct sample *s)
{
	memset(s, 0, sizeof(*s));
	s->inputs[0].alias = lit("students");
	s->inputs[0].dataset = lit("examples/students");
	s->inputs[1].alias = lit("names");
	s->inputs[1].dataset = lit("examples/names");
	s->outputs[0].alias = lit("brown");
	s->outputs[0].dataset = lit("examples/brown");
	s->outputs[1].alias = lit("aux");
	s->outputs[1].dataset = lit("examples/aux");
	s->t.name = lit("brown-hair");
	s->t.semantic_version = 1;
	s->t.n_inputs = 2;
	s->t.inputs = s->inputs;
	s->t.n_outputs = 2;
	s->t.outputs = s->outputs;
}

/* @word NULL: it is right. */
static void check_word(const struct sample *s, const char *word)
{
	struct incr_error err = INCR_ERROR_INIT;

	if (word) {
		CHECK_ERR(INCR_E_INVALID, transform_check(&s->t, &err));
		CHECK_STR_EQ(word, err.word);
	} else {
		CHECK_OK(transform_check(&s->t, &err));
	}
	incr_error_release(&err);
}

static void test_transform_check__right__passes(void)
{
	struct sample s;

	sample_init(&s);
	check_word(&s, NULL);
	/* Two input aliases may name one dataset. */
	s.inputs[1].dataset = lit("examples/students");
	check_word(&s, NULL);
}

static void test_transform_check__row42_Q12_no_input__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.t.n_inputs = 0;
	check_word(&s, "no-input");
}

static void test_transform_check__no_output__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.t.n_outputs = 0;
	check_word(&s, "no-output");
}

static void test_transform_check__row43_R46_input_is_output__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.outputs[1].dataset = lit("examples/names");
	check_word(&s, "input-is-output");
	/* Another branch is no way around it. */
	s.inputs[1].branch = lit("dev");
	check_word(&s, "input-is-output");
}

static void test_transform_check__duplicate_output__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.outputs[1].dataset = lit("examples/brown");
	check_word(&s, "duplicate-output");
}

static void test_transform_check__same_variable__is_duplicate_alias(void)
{
	static const char *const pairs[][2] = {
		{ "a", "a" },
		{ "a-b", "a_b" },
		{ "Abc", "aBC" },
		{ "x-Y_z", "X_y-Z" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct sample s;

		sample_init(&s);
		s.inputs[0].alias = lit(pairs[i][0]);
		s.outputs[1].alias = lit(pairs[i][1]);
		check_word(&s, "duplicate-alias");
	}
}

static void test_transform_check__similar_aliases__pass(void)
{
	struct sample s;

	sample_init(&s);
	s.inputs[0].alias = lit("a");
	s.inputs[1].alias = lit("ab");
	s.outputs[0].alias = lit("a_");
	s.outputs[1].alias = lit("a1");
	check_word(&s, NULL);
}

static void test_transform_check__row73_R66_user_deletes__need_v2(void)
{
	struct sample s;

	sample_init(&s);
	s.t.allow_user_deletes = true;
	check_word(&s, "needs-v2");
	s.t.v2_semantics = true;
	check_word(&s, NULL);
}

static void test_transform_check__row74_R135_limit__needs_v2(void)
{
	struct sample s;

	sample_init(&s);
	s.inputs[1].transaction_limit = 1;
	check_word(&s, "needs-v2");
	s.t.v2_semantics = true;
	check_word(&s, NULL);
}

static void test_transform_check__row74_R136_limit_on_snapshot__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.t.v2_semantics = true;
	s.inputs[1].transaction_limit = 3;
	s.inputs[1].is_snapshot = true;
	check_word(&s, "limit-on-snapshot-input");
}

static void test_transform_check__R139_limit_out_of_range__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.t.v2_semantics = true;
	s.inputs[0].transaction_limit = (uint64_t)INT64_MAX + 1;
	check_word(&s, "bad-limit");
	s.inputs[0].transaction_limit = (uint64_t)INT64_MAX;
	check_word(&s, NULL);
}

static void test_transform_check__R129_strict_append_replace__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.t.strict_append = true;
	s.outputs[0].write_mode = INCR_MODE_REPLACE;
	check_word(&s, "strict-append-replace");
	s.outputs[0].write_mode = INCR_MODE_MODIFY;
	check_word(&s, NULL);
}

static void test_transform_check__bad_names__refused(void)
{
	struct sample s;

	sample_init(&s);
	s.inputs[0].alias = lit("1st");
	CHECK_ERR(INCR_E_INVALID, transform_check(&s.t, NULL));
	sample_init(&s);
	s.inputs[0].dataset = lit("a//b");
	CHECK_ERR(INCR_E_INVALID, transform_check(&s.t, NULL));
	sample_init(&s);
	s.t.branch = lit("a/b");
	CHECK_ERR(INCR_E_INVALID, transform_check(&s.t, NULL));
}

static void test_transform_copy__owns_all(void)
{
	struct incr_transform copy;
	struct sample s;
	char *command[] = { lit("awk"), lit("x") };

	sample_init(&s);
	s.t.command = command;
	s.t.n_command = 2;
	s.t.branch = lit("dev");
	s.outputs[1].schema = lit("{}");
	REQUIRE_OK(incr_transform_copy(&s.t, &copy, NULL));
	CHECK(copy.inputs != s.t.inputs);
	CHECK_STR_EQ("x", copy.command[1]);
	CHECK_STR_EQ("{}", copy.outputs[1].schema);
	CHECK(transform_same_settings(&s.t, &copy));
	CHECK(transform_same_command(&s.t, &copy));
	incr_transform_release(&copy);
	incr_transform_release(&copy);
}

static void test_transform_same_settings__any_difference__shows(void)
{
	struct sample a, b;

	sample_init(&a);
	sample_init(&b);
	CHECK(transform_same_settings(&a.t, &b.t));
	b.t.strict_append = true;
	CHECK(!transform_same_settings(&a.t, &b.t));
	sample_init(&b);
	b.inputs[1].is_snapshot = true;
	CHECK(!transform_same_settings(&a.t, &b.t));
	sample_init(&b);
	b.inputs[1].transaction_limit = 9;
	CHECK(!transform_same_settings(&a.t, &b.t));
	sample_init(&b);
	b.outputs[1].write_mode = INCR_MODE_REPLACE;
	CHECK(!transform_same_settings(&a.t, &b.t));
	sample_init(&b);
	b.outputs[1].schema = lit("{}");
	CHECK(!transform_same_settings(&a.t, &b.t));
	/* The order of inputs is no setting. */
	sample_init(&b);
	b.inputs[0] = a.inputs[1];
	b.inputs[1] = a.inputs[0];
	CHECK(transform_same_settings(&a.t, &b.t));
}

static struct incr_plan plan_of(struct incr_plan_input inputs[2])
{
	inputs[0] = (struct incr_plan_input){ .alias = lit("a"),
					      .dataset_id = 1,
					      .view_start = 2,
					      .view_end = 9,
					      .read_end = 9 };
	inputs[1] = (struct incr_plan_input){ .alias = lit("b"),
					      .dataset_id = 3,
					      .view_start = 4,
					      .view_end = 8,
					      .read_end = 7 };
	return (struct incr_plan){ .n_inputs = 2, .inputs = inputs };
}

static void test_plan_same_ranges__R78_Q23_compares_ranges_only(void)
{
	struct incr_plan_input in_a[2], in_b[2];
	struct incr_plan a = plan_of(in_a), b = plan_of(in_b);

	CHECK(plan_same_ranges(&a, &b));
	in_b[0].view_end = 12;
	in_b[0].last_read = 5;
	in_b[0].is_new = true;
	CHECK(plan_same_ranges(&a, &b));
	in_b[0].read_end = 12;
	CHECK(!plan_same_ranges(&a, &b));
	b = plan_of(in_b);
	in_b[1].view_start = 3;
	CHECK(!plan_same_ranges(&a, &b));
	b = plan_of(in_b);
	in_b[1].dataset_id = 99;
	CHECK(!plan_same_ranges(&a, &b));
	b = plan_of(in_b);
	b.n_inputs = 1;
	CHECK(!plan_same_ranges(&a, &b));
}

static const struct testing_test tests[] = {
	TEST(test_transform_check__right__passes),
	TEST(test_transform_check__row42_Q12_no_input__refused),
	TEST(test_transform_check__no_output__refused),
	TEST(test_transform_check__row43_R46_input_is_output__refused),
	TEST(test_transform_check__duplicate_output__refused),
	TEST(test_transform_check__same_variable__is_duplicate_alias),
	TEST(test_transform_check__similar_aliases__pass),
	TEST(test_transform_check__row73_R66_user_deletes__need_v2),
	TEST(test_transform_check__row74_R135_limit__needs_v2),
	TEST(test_transform_check__row74_R136_limit_on_snapshot__refused),
	TEST(test_transform_check__R139_limit_out_of_range__refused),
	TEST(test_transform_check__R129_strict_append_replace__refused),
	TEST(test_transform_check__bad_names__refused),
	TEST(test_transform_copy__owns_all),
	TEST(test_transform_same_settings__any_difference__shows),
	TEST(test_plan_same_ranges__R78_Q23_compares_ranges_only),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "transform", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
