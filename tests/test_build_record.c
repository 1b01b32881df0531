/*
 * A build's record: what goes in comes out, and no bytes do harm.
 */
#include "build_record.h"
#include "testing.h"
#include "transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text(const char *s)
{
	return s ? strdup(s) : NULL;
}

static void *array(size_t n, size_t size)
{
	return calloc(n, size);
}

static void fill_transform(struct incr_transform *t)
{
	t->name = text("brown-hair");
	t->semantic_version = -7;
	t->require_incremental = true;
	t->allow_user_deletes = true;
	t->v2_semantics = true;
	t->branch = text("dev");
	t->n_fallbacks = 1;
	t->fallbacks = array(1, sizeof(char *));
	t->fallbacks[0] = text("main");
	t->n_command = 3;
	t->command = array(3, sizeof(char *));
	t->command[0] = text("awk");
	t->command[1] = text("{print $1}");
	t->command[2] = text("");
	t->n_inputs = 3;
	t->inputs = array(3, sizeof(*t->inputs));
	t->inputs[0].alias = text("students");
	t->inputs[0].dataset = text("examples/students");
	t->inputs[0].transaction_limit = 1000;
	t->inputs[1].alias = text("names");
	t->inputs[1].dataset = text("examples/names");
	t->inputs[1].branch = text("main");
	t->inputs[1].is_snapshot = true;
	t->inputs[2].alias = text("more");
	t->inputs[2].dataset = text("examples/students");
	t->n_outputs = 2;
	t->outputs = array(2, sizeof(*t->outputs));
	t->outputs[0].alias = text("brown");
	t->outputs[0].dataset = text("examples/brown");
	t->outputs[0].schema = text("{\"fields\":[]}");
	t->outputs[1].alias = text("aux");
	t->outputs[1].dataset = text("examples/aux");
	t->outputs[1].write_mode = INCR_MODE_REPLACE;
}

static void fill_input(struct incr_plan_input *in,
		       const struct incr_transform_input *of, uint64_t id)
{
	in->alias = text(of->alias);
	in->dataset = text(of->dataset);
	in->dataset_id = id;
	in->branch = text("main");
	in->kind = of->is_snapshot	 ? INCR_INPUT_SNAPSHOT :
		   of->transaction_limit ? INCR_INPUT_LIMITED :
					   INCR_INPUT_NORMAL;
	in->transaction_limit = of->transaction_limit;
	in->view_start = 3;
	in->view_end = UINT64_MAX;
	in->previous_end = 5;
	in->last_read = 4;
	in->read_end = 128;
	in->is_new = id == 2;
	in->files = (struct incr_view_counts){ 1, 2, 3, 4, 5 };
	in->bytes = (struct incr_view_counts){ 1u << 20, 0, 7, 8, 9 };
}

static void fill_output(struct incr_plan_output *out,
			const struct incr_transform_output *of, bool is_new)
{
	out->alias = text(of->alias);
	out->dataset = text(of->dataset);
	out->dataset_id = 9;
	out->branch = text("dev");
	out->branch_exists = !is_new;
	out->head = 77;
	out->branch_id = is_new ? 0 : 12;
	out->fork_parent = is_new ? text("main") : NULL;
	out->write_mode = is_new ? INCR_MODE_REPLACE : INCR_MODE_MODIFY;
	out->txn_type = is_new ? INCR_SNAPSHOT : INCR_UPDATE;
	out->txn = 200;
	out->is_aborted = is_new;
	out->n_files = 10;
	out->size = 100000;
}

static void fill_plan(struct incr_plan *p)
{
	fill_transform(&p->transform);
	p->decision = INCR_DECISION_SNAPSHOT;
	p->is_forced = true;
	p->n_reasons = 2;
	p->reasons = array(2, sizeof(*p->reasons));
	p->reasons[0].code = INCR_REASON_INPUT_MODIFIED;
	p->reasons[0].alias = text("students");
	p->reasons[0].dataset = text("examples/students");
	p->reasons[0].txn = 12;
	p->reasons[0].path = text("a/\xff.csv");
	p->reasons[0].path_length = 7;
	p->reasons[0].count = 3;
	p->reasons[0].message = text("it has changed");
	p->reasons[1].code = INCR_REASON_FORCED;
	p->reasons[1].message = text("a snapshot was asked for");
	p->n_inputs = 3;
	p->inputs = array(3, sizeof(*p->inputs));
	for (size_t i = 0; i < 3; i++)
		fill_input(&p->inputs[i], &p->transform.inputs[i], i + 1);
	p->n_outputs = 2;
	p->outputs = array(2, sizeof(*p->outputs));
	for (size_t i = 0; i < 2; i++)
		fill_output(&p->outputs[i], &p->transform.outputs[i], i == 1);
	p->n_warnings = 1;
	p->warnings = array(1, sizeof(char *));
	p->warnings[0] = text("the old files stay");
}

static void fill_info(struct incr_build_info *info)
{
	*info = (struct incr_build_info){ 0 };
	fill_plan(&info->plan);
	info->exit_code = -1;
	info->started_ns = INT64_C(1764450000123456789);
	info->ended_ns = -1;
	info->user = text("somebody");
	info->host = text("host");
	info->cwd = text("/tmp");
	info->environment.n = 1;
	info->environment.items = array(1, sizeof(struct incr_pair));
	info->environment.items[0].key = text("LANG");
	info->environment.items[0].value = text("C.UTF-8");
}

static void encode_sample(struct buf *out)
{
	struct incr_build_info info;

	fill_info(&info);
	CHECK_OK(build_record_encode(&info, out));
	incr_build_info_release(&info);
}

static void check_plan(const struct incr_plan *want,
		       const struct incr_plan *got)
{
	CHECK_INT_EQ(want->decision, got->decision);
	CHECK_INT_EQ(want->is_incremental, got->is_incremental);
	CHECK_INT_EQ(want->is_forced, got->is_forced);
	REQUIRE_INT_EQ(want->n_reasons, got->n_reasons);
	CHECK_INT_EQ(want->reasons[0].code, got->reasons[0].code);
	CHECK_STR_EQ(want->reasons[0].path, got->reasons[0].path);
	CHECK_INT_EQ(want->reasons[0].path_length, got->reasons[0].path_length);
	CHECK(got->reasons[1].alias == NULL);
	CHECK(got->reasons[1].path == NULL);
	REQUIRE_INT_EQ(want->n_inputs, got->n_inputs);
	for (size_t i = 0; i < want->n_inputs; i++) {
		CHECK_STR_EQ(want->inputs[i].alias, got->inputs[i].alias);
		CHECK_INT_EQ(want->inputs[i].kind, got->inputs[i].kind);
		CHECK_INT_EQ(want->inputs[i].read_end, got->inputs[i].read_end);
		CHECK_INT_EQ(want->inputs[i].is_new, got->inputs[i].is_new);
		CHECK_MEM_EQ(&want->inputs[i].files, &got->inputs[i].files,
			     sizeof(struct incr_view_counts));
	}
	REQUIRE_INT_EQ(want->n_outputs, got->n_outputs);
	CHECK_STR_EQ(want->outputs[1].fork_parent, got->outputs[1].fork_parent);
	CHECK_INT_EQ(want->outputs[0].txn_type, got->outputs[0].txn_type);
	CHECK_INT_EQ(want->outputs[1].is_aborted, got->outputs[1].is_aborted);
	CHECK_STR_EQ(want->warnings[0], got->warnings[0]);
}

static void test_build_record__round_trip__gives_all_back(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_build_info want, got = { 0 };
	const struct incr_transform *t;

	fill_info(&want);
	CHECK_OK(build_record_encode(&want, &bytes));
	REQUIRE_OK(build_record_decode(bytes.data, bytes.size, &got, NULL));
	check_plan(&want.plan, &got.plan);
	t = &got.plan.transform;
	CHECK(transform_same_settings(&want.plan.transform, t));
	CHECK(transform_same_command(&want.plan.transform, t));
	CHECK_STR_EQ("dev", t->branch);
	CHECK_STR_EQ("main", t->fallbacks[0]);
	CHECK_INT_EQ(-7, t->semantic_version);
	CHECK_INT_EQ(1000, t->inputs[0].transaction_limit);
	CHECK_STR_EQ("{\"fields\":[]}", t->outputs[0].schema);
	CHECK_INT_EQ(-1, got.exit_code);
	CHECK_INT_EQ(want.started_ns, got.started_ns);
	CHECK_INT_EQ(-1, got.ended_ns);
	CHECK_STR_EQ("C.UTF-8", got.environment.items[0].value);
	incr_build_info_release(&want);
	incr_build_info_release(&got);
}

static void test_build_record__every_truncation__is_corrupt(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_build_info got;

	encode_sample(&bytes);
	for (size_t size = 0; size < bytes.size; size++) {
		/* A copy of its own, so that a read behind the end is seen. */
		_cleanup_free_ uint8_t *part = malloc(size ? size : 1);

		REQUIRE(part != NULL);
		memcpy(part, bytes.data, size);
		CHECK_ERR(INCR_E_CORRUPT,
			  build_record_decode(part, size, &got, NULL));
	}
	CHECK_OK(buf_put_u8(&bytes, 0));
	CHECK_ERR(INCR_E_CORRUPT,
		  build_record_decode(bytes.data, bytes.size, &got, NULL));
}

/* What decodes is the one encoding of what it says. */
static void test_build_record__every_bit_flip__refused_or_canonical(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;

	encode_sample(&bytes);
	for (size_t bit = 0; bit < bytes.size * 8; bit++) {
		_cleanup_buf_ struct buf again = BUF_INIT;
		struct incr_build_info got;
		int r;

		bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = build_record_decode(bytes.data, bytes.size, &got, NULL);
		if (r == 0) {
			CHECK_OK(build_record_encode(&got, &again));
			CHECK_INT_EQ(bytes.size, again.size);
			if (bytes.size == again.size)
				CHECK_MEM_EQ(bytes.data, again.data,
					     bytes.size);
			incr_build_info_release(&got);
		} else {
			CHECK(r == INCR_E_CORRUPT || r == INCR_E_UNSUPPORTED);
		}
		bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void test_build_record__random_bytes__never_crash(void)
{
	unsigned seed = 20260105;

	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[96];
		struct incr_build_info got;

		bytes[0] = BUILD_RECORD_VERSION;
		for (size_t i = 1; i < sizeof(bytes); i++) {
			seed = seed * 1103515245u + 12345u;
			bytes[i] = (uint8_t)(seed >> 16);
			if (seed >> 30)
				bytes[i] &= 3;
		}
		if (build_record_decode(bytes, sizeof(bytes), &got, NULL) == 0)
			incr_build_info_release(&got);
	}
}

static void test_build_record__newer_version__is_unsupported(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_build_info got;

	encode_sample(&bytes);
	bytes.data[0] = BUILD_RECORD_VERSION + 1;
	CHECK_ERR(INCR_E_UNSUPPORTED,
		  build_record_decode(bytes.data, bytes.size, &got, &err));
	CHECK_STR_EQ("newer-format", err.word);
	incr_error_release(&err);
}

static void test_build_record__too_many_inputs__is_corrupt(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_build_info info = { 0 }, got;
	struct incr_transform *t = &info.plan.transform;

	fill_info(&info);
	for (size_t i = 0; i < t->n_inputs; i++) {
		free(t->inputs[i].alias);
		free(t->inputs[i].dataset);
		free(t->inputs[i].branch);
	}
	free(t->inputs);
	t->n_inputs = TRANSFORM_INPUTS_MAX + 1;
	t->inputs = array(t->n_inputs, sizeof(*t->inputs));
	for (size_t i = 0; i < t->n_inputs; i++) {
		char alias[32];

		(void)snprintf(alias, sizeof(alias), "a%zu", i);
		t->inputs[i].alias = text(alias);
		t->inputs[i].dataset = text("d");
	}
	CHECK_OK(build_record_encode(&info, &bytes));
	CHECK_ERR(INCR_E_CORRUPT,
		  build_record_decode(bytes.data, bytes.size, &got, NULL));
	incr_build_info_release(&info);
}

static void test_build_record__huge_count__takes_no_memory(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_build_info got;

	CHECK_OK(buf_put_u8(&bytes, BUILD_RECORD_VERSION));
	CHECK_OK(buf_put_string(&bytes, "t", 1));
	CHECK_OK(buf_put_u8(&bytes, 0));
	CHECK_OK(buf_put_u8(&bytes, 2));
	CHECK_OK(buf_put_u8(&bytes, 0));
	CHECK_OK(buf_put_varint(&bytes, UINT64_MAX));
	CHECK_ERR(INCR_E_CORRUPT,
		  build_record_decode(bytes.data, bytes.size, &got, NULL));
}

/* A definition that transform_check() refuses is refused here too. */
static void test_build_record__bad_alias__is_corrupt(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_build_info info, got;

	fill_info(&info);
	info.plan.transform.inputs[0].alias[0] = '/';
	CHECK_OK(build_record_encode(&info, &bytes));
	CHECK_ERR(INCR_E_CORRUPT,
		  build_record_decode(bytes.data, bytes.size, &got, NULL));
	incr_build_info_release(&info);
}

static void fill_error(struct incr_error *error)
{
	*error = INCR_ERROR_INIT;
	error->code = INCR_E_CONFLICT;
	(void)snprintf(error->word, sizeof(error->word), "append-collision");
	(void)snprintf(error->thing, sizeof(error->thing), "a.csv");
	(void)snprintf(error->message, sizeof(error->message), "it exists");
	error->paths = array(1, 12);
	memcpy(error->paths, "a.csv\0b.csv", 12);
	error->paths_size = 12;
	error->n_paths = 2;
}

static void test_build_error__round_trip__gives_all_back(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_error want, got;

	fill_error(&want);
	CHECK_OK(build_error_encode(&want, &bytes));
	REQUIRE_OK(build_error_decode(bytes.data, bytes.size, &got));
	CHECK_INT_EQ(INCR_E_CONFLICT, got.code);
	CHECK_STR_EQ("append-collision", got.word);
	CHECK_STR_EQ("a.csv", got.thing);
	CHECK_STR_EQ("it exists", got.message);
	CHECK_INT_EQ(2, got.n_paths);
	CHECK_MEM_EQ(want.paths, got.paths, 12);
	incr_error_release(&want);
	incr_error_release(&got);
}

static void test_build_error__damage__refused(void)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	struct incr_error error;

	fill_error(&error);
	CHECK_OK(build_error_encode(&error, &bytes));
	incr_error_release(&error);
	for (size_t size = 0; size < bytes.size; size++)
		CHECK_ERR(INCR_E_CORRUPT,
			  build_error_decode(bytes.data, size, &error));
	for (size_t bit = 0; bit < bytes.size * 8; bit++) {
		bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (build_error_decode(bytes.data, bytes.size, &error) == 0)
			incr_error_release(&error);
		bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static const struct testing_test tests[] = {
	TEST(test_build_record__round_trip__gives_all_back),
	TEST(test_build_record__every_truncation__is_corrupt),
	TEST(test_build_record__every_bit_flip__refused_or_canonical),
	TEST(test_build_record__random_bytes__never_crash),
	TEST(test_build_record__newer_version__is_unsupported),
	TEST(test_build_record__too_many_inputs__is_corrupt),
	TEST(test_build_record__huge_count__takes_no_memory),
	TEST(test_build_record__bad_alias__is_corrupt),
	TEST(test_build_error__round_trip__gives_all_back),
	TEST(test_build_error__damage__refused),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "build_record", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
