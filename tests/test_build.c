/*
 * Builds on a real store: what the program is shown, and what is committed.
 */
#include "build_fixture.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INCREMENTAL INCR_DECISION_INCREMENTAL
#define SNAPSHOT INCR_DECISION_SNAPSHOT
#define FRESH INCR_DECISION_FRESH
#define REFUSED INCR_DECISION_REFUSED

static void check_input(struct incr_build *b, const char *added,
			const char *previous, const char *current)
{
	REQUIRE(b != NULL);
	fixture_check_view(incr_build_input_view(b, 0, INCR_VIEW_ADDED), added);
	fixture_check_view(incr_build_input_view(b, 0, INCR_VIEW_PREVIOUS),
			   previous);
	fixture_check_view(incr_build_input_view(b, 0, INCR_VIEW_CURRENT),
			   current);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ---- golden traces ---- */

static void test_build__trace01_R95_views__added_previous_current(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	check_input(b, "a", "", "a");
	fixture_stage(&f, b, 0, "a");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_SNAPSHOT);
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	check_input(b, "b", "a", "ab");
	fixture_check_view(incr_build_output_previous(b, 0), "a");
	fixture_stage(&f, b, 0, "b");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_UPDATE);
	fixture_check_dataset(&f, "out", "ab");
	fixture_tear_down(&f);
}

static void test_build__trace02_R44_forced__is_an_empty_update(void)
{
	enum incr_decision decision;
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	b = fixture_begin(&f, &decision);
	CHECK(b == NULL);
	CHECK_INT_EQ(FRESH, decision);
	f.plan_options.is_forced = true;
	b = fixture_begin(&f, &decision);
	CHECK_INT_EQ(INCREMENTAL, decision);
	check_input(b, "", "a", "a");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_UPDATE);
	fixture_check_dataset(&f, "out", "a");
	fixture_tear_down(&f);
}

static void test_build__trace05_R98_permitted_delete__stays_in_previous(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.v2_semantics = f.t.allow_user_deletes = true;
	fixture_history(&f, "in", "S{a,b}");
	fixture_check_run(&f, SNAPSHOT, "ab");
	fixture_history(&f, "in", "D{b}");
	b = fixture_begin(&f, NULL);
	check_input(b, "", "ab", "a");
	fixture_check_view(incr_build_input_view(b, 0, INCR_VIEW_REMOVED), "b");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "ab");
	fixture_tear_down(&f);
}

static void test_build__trace08_R95_snapshot_input__is_whole(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.inputs[0].is_snapshot = true;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "S{z}");
	b = fixture_begin(&f, NULL);
	check_input(b, "z", "", "z");
	fixture_stage(&f, b, 0, "z");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_UPDATE);
	fixture_check_dataset(&f, "out", "az");
	fixture_tear_down(&f);
}

static void test_build__R104_commit_meanwhile__is_not_seen(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	fixture_history(&f, "in", "A{b}");
	check_input(b, "a", "", "a");
	CHECK_OK(fixture_end(&f, b, NULL));
	b = fixture_begin(&f, NULL);
	check_input(b, "b", "a", "ab");
	incr_build_close(b);
	fixture_tear_down(&f);
}

static void test_build__R140_limit__current_ends_with_the_batch(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.v2_semantics = true;
	f.inputs[0].transaction_limit = 2;
	fixture_history(&f, "in", "S{a} A{b} A{c} A{d} A{e}");
	b = fixture_begin(&f, NULL);
	check_input(b, "ab", "", "ab");
	fixture_stage(&f, b, 0, "x");
	CHECK_OK(fixture_end(&f, b, NULL));
	b = fixture_begin(&f, NULL);
	check_input(b, "cd", "ab", "abcd");
	CHECK_OK(fixture_end(&f, b, NULL));
	b = fixture_begin(&f, NULL);
	check_input(b, "e", "abcd", "abcde");
	incr_build_close(b);
	fixture_tear_down(&f);
}

/* ---- aborts ---- */

static void test_build__trace12_R78_R152_partial_abort__inconsistent(void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.n_outputs = 2;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage(&f, b, 0, "b");
	fixture_stage(&f, b, 1, "b");
	CHECK_OK(incr_build_abort_output(b, 1, NULL));
	CHECK_OK(fixture_end(&f, b, &info));
	CHECK_INT_EQ(INCR_BUILD_COMMITTED, info.status);
	CHECK(info.plan.outputs[0].txn != 0);
	CHECK(info.plan.outputs[1].is_aborted);
	CHECK_INT_EQ(0, info.plan.outputs[1].txn);
	incr_build_info_release(&info);
	fixture_check_dataset(&f, "out2", "");
	fixture_check_plan(&f, SNAPSHOT, "provenance-inconsistent");
	f.t.require_incremental = true;
	fixture_check_plan(&f, REFUSED, "provenance-inconsistent");
	fixture_tear_down(&f);
}

static void test_build__Q23_partial_abort_of_nothing_new__consistent(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.n_outputs = 2;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	f.plan_options.is_forced = true;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(incr_build_abort_output(b, 1, NULL));
	CHECK_OK(fixture_end(&f, b, NULL));
	f.plan_options.is_forced = false;
	fixture_check_plan(&f, FRESH, "");
	fixture_tear_down(&f);
}

static void test_build__R150_R101_whole_abort__reads_the_same_again(void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	char path[600];
	struct fixture f;
	int fd;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage(&f, b, 0, "b");
	(void)snprintf(path, sizeof(path), "%s/abort", incr_build_spool(b));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT_EQ(0, close(fd));
	CHECK_OK(fixture_end(&f, b, &info));
	CHECK_INT_EQ(INCR_BUILD_ABORTED, info.status);
	CHECK(!exists(path));
	incr_build_info_release(&info);
	fixture_check_dataset(&f, "out", "a");
	b = fixture_begin(&f, NULL);
	check_input(b, "b", "a", "ab");
	/* R155: a failed command leaves no trace either. */
	fixture_stage(&f, b, 0, "b");
	CHECK_OK(incr_build_abort(b, true, 3, &info, NULL));
	incr_build_close(b);
	CHECK_INT_EQ(INCR_BUILD_FAILED, info.status);
	CHECK_INT_EQ(3, info.exit_code);
	incr_build_info_release(&info);
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

static void test_build__R154_abort_if_empty__commits_nothing(void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	struct fixture f;
	uint64_t head;

	fixture_set_up(&f);
	f.t.abort_if_empty = true;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	head = fixture_head(&f, "out", NULL);
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(fixture_end(&f, b, &info));
	CHECK_INT_EQ(INCR_BUILD_ABORTED, info.status);
	CHECK_INT_EQ(head, fixture_head(&f, "out", NULL));
	incr_build_info_release(&info);
	fixture_tear_down(&f);
}

static void test_build__Q7_skip__moves_the_read_end_alone(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.t.abort_if_empty = true;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "A{b}");
	f.plan_options.is_skip = true;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "a");
	f.plan_options.is_skip = false;
	fixture_check_plan(&f, FRESH, "");
	/* Also when the run would not have been incremental. */
	fixture_history(&f, "in", "S{c}");
	f.plan_options.is_skip = true;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_dataset(&f, "out", "a");
	fixture_check_type(&f, "out", INCR_UPDATE);
	fixture_tear_down(&f);
}

/* ---- write modes ---- */

static void test_build__R111_replace__stays_incremental(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	f.outputs[0].write_mode = INCR_MODE_REPLACE;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "ab");
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_check_view(incr_build_output_previous(b, 0), "ab");
	fixture_check_view(incr_build_output_base(b, 0), "");
	fixture_stage(&f, b, 0, "c");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_SNAPSHOT);
	fixture_check_dataset(&f, "out", "c");
	fixture_history(&f, "in", "A{c}");
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

static void test_build__Q8_modify_by_hand__keeps_the_old_below(void)
{
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "a");
	fixture_history(&f, "in", "S{b}");
	f.outputs[0].write_mode = INCR_MODE_MODIFY;
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	CHECK(!incr_build_plan(b)->is_incremental);
	CHECK_INT_EQ(1, incr_build_plan(b)->n_warnings);
	fixture_check_view(incr_build_output_previous(b, 0), "");
	fixture_check_view(incr_build_output_base(b, 0), "a");
	fixture_stage(&f, b, 0, "b");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_check_type(&f, "out", INCR_UPDATE);
	fixture_check_dataset(&f, "out", "ab");
	fixture_tear_down(&f);
}

static void check_message(struct fixture *f, const char *part, bool is_there)
{
	struct incr_txn_info info = { 0 };

	REQUIRE_OK(incr_txn_find(f->st, fixture_head(f, "out", NULL), &info,
				 NULL));
	CHECK_INT_EQ(is_there, strstr(info.message, part) != NULL);
	CHECK_STR_EQ("build", info.origin);
	CHECK(info.build != 0);
	incr_txn_info_release(&info);
}

static void test_build__R114_overwrite__the_message_says_so(void)
{
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "ab");
	check_message(&f, "replaces", false);
	fixture_history(&f, "in", "A{b}");
	fixture_check_run(&f, INCREMENTAL, "bc");
	check_message(&f, "replaces 1 file of its own output", true);
	fixture_history(&f, "in", "A{c}");
	fixture_check_run(&f, INCREMENTAL, "d");
	check_message(&f, "replaces", false);
	fixture_tear_down(&f);
}

static void test_build__modify__leaves_out_what_is_equal(void)
{
	struct incr_build_info info = { 0 };
	struct incr_build *b;
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage_text(b, 0, "same", "1");
	fixture_stage_text(b, 0, "other", "1");
	CHECK_OK(fixture_end(&f, b, NULL));
	fixture_history(&f, "in", "A{b}");
	b = fixture_begin(&f, NULL);
	REQUIRE(b != NULL);
	fixture_stage_text(b, 0, "same", "1");
	fixture_stage_text(b, 0, "other", "2");
	CHECK_OK(fixture_end(&f, b, &info));
	CHECK_INT_EQ(1, info.plan.outputs[0].n_files);
	incr_build_info_release(&info);
	fixture_tear_down(&f);
}

static const struct testing_test tests[] = {
	TEST(test_build__trace01_R95_views__added_previous_current),
	TEST(test_build__trace02_R44_forced__is_an_empty_update),
	TEST(test_build__trace05_R98_permitted_delete__stays_in_previous),
	TEST(test_build__trace08_R95_snapshot_input__is_whole),
	TEST(test_build__R104_commit_meanwhile__is_not_seen),
	TEST(test_build__R140_limit__current_ends_with_the_batch),
	TEST(test_build__trace12_R78_R152_partial_abort__inconsistent),
	TEST(test_build__Q23_partial_abort_of_nothing_new__consistent),
	TEST(test_build__R150_R101_whole_abort__reads_the_same_again),
	TEST(test_build__R154_abort_if_empty__commits_nothing),
	TEST(test_build__Q7_skip__moves_the_read_end_alone),
	TEST(test_build__R111_replace__stays_incremental),
	TEST(test_build__Q8_modify_by_hand__keeps_the_old_below),
	TEST(test_build__R114_overwrite__the_message_says_so),
	TEST(test_build__modify__leaves_out_what_is_equal),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "build", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
