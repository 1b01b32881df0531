/*
 * The decision beside its tables: order of the reasons, which hard errors are
 * cured by what, let-outs, warnings, and what is committed.
 */
#include "decide_world.h"
#include "testing.h"

#include <string.h>

/* ---- order and precedence ---- */

static void test_decide__error_before_refused__lists_lower_classes(void)
{
	struct world w;

	/* R137 as error, the change itself still listed behind it. */
	world_fill("S{x,y} | U{x} D{y}", LIM, &w);
	w.facts.settings.require_incremental = true;
	world_check(&w, 'E',
		    "limit-bad-transaction input-modified input-removed-user");
}

static void test_decide__several_inputs__every_reason_in_order(void)
{
	struct world w;

	world_fill("S{x,y} | U{x} D{y}", NONE, &w);
	world_user_delete(&w);
	world_foreign(&w);
	world_bump(&w);
	world_forced_snapshot(&w);
	world_new_input(&w);
	w.inputs[1].has_record = true;
	w.inputs[1].view_start = 21;
	world_check(&w, 'N',
		    "output-foreign-commit output-user-delete semantic-version "
		    "forced input-modified input-removed-user input-snapshot");
}

static void test_decide__R91_one_bad_input__all_snapshot(void)
{
	struct world w;

	world_fill("S{x} | A{n}", NONE, &w);
	world_new_input(&w);
	w.inputs[1].has_record = true;
	w.inputs[1].record_start = 1;
	world_check(&w, 'N', "input-snapshot");
}

static void test_decide__reason__names_input_path_and_transaction(void)
{
	struct decide_result result = { 0 };
	struct world w;

	world_fill("S{x,y,z} | A{n} U{y,z}", NONE, &w);
	CHECK_OK(decide(&w.facts, &result, NULL));
	REQUIRE_INT_EQ(1, result.n_reasons);
	CHECK_INT_EQ(INCR_REASON_INPUT_MODIFIED, result.reasons[0].code);
	CHECK_STR_EQ("in", result.reasons[0].alias);
	CHECK_STR_EQ("d/in", result.reasons[0].dataset);
	CHECK_STR_EQ("y", result.reasons[0].path);
	CHECK_INT_EQ(1, result.reasons[0].path_length);
	CHECK_INT_EQ(3, result.reasons[0].txn);
	CHECK_INT_EQ(2, result.reasons[0].count);
	decide_result_release(&result);
}

static void test_decide__transaction_lost__reads_everything(void)
{
	struct decide_result result = { 0 };
	struct world w;

	world_fill("S{x} | A{n}", NONE, &w);
	w.inputs[0].lost_txn = 2;
	world_check(&w, 'N', "transaction-lost");
	/* a view that starts behind it has nothing of it */
	w.inputs[0].view_start = 2;
	world_check(&w, 'N', "input-snapshot");

	world_fill("S{x} | A{n}", NONE, &w);
	w.outputs[0].lost_txn = 7;
	world_check(&w, 'N', "transaction-lost");

	/* later runs are told of it too */
	world_fill("S{x} | A{n}", NONE, &w);
	w.inputs[0].unknown_txn = 2;
	CHECK_OK(decide(&w.facts, &result, NULL));
	CHECK_INT_EQ(INCR_DECISION_INCREMENTAL, result.decision);
	REQUIRE_INT_EQ(1, result.n_warnings);
	CHECK(strstr(result.warnings[0], "t2 is lost") != NULL);
	decide_result_release(&result);
}

static void test_decide__row12_flags__leave_the_other_reason(void)
{
	struct world w;

	world_fill("S{x,y} | D{x} Dr{y}", RET, &w);
	world_check(&w, 'N', "input-removed-user");
	world_fill("S{x,y} | D{x} Dr{y}", USR, &w);
	world_check(&w, 'N', "input-removed-retention");
}

static void test_decide__fresh__only_when_all_is_the_same(void)
{
	struct world w;

	world_fill("S{x} |", NONE, &w);
	world_other_settings(&w);
	world_check(&w, 'I', "");
	world_fill("S{x} |", NONE, &w);
	w.facts.previous.has_same_outputs = false;
	world_check(&w, 'I', "");
	world_fill("S{x} |", NONE, &w);
	world_second_unbuilt(&w);
	w.facts.previous.has_same_outputs = true;
	world_check(&w, 'I', "");
	/* R143: more batches to read. */
	world_fill("S{x} | A{n} A{m} A{o}", LIM, &w);
	world_check(&w, 'I', "");
	/* An input that was empty and still is. */
	world_fill("", NONE, &w);
	world_check(&w, 'F', "");
	/* R64, R173: a snapshot input counts too. */
	world_fill("S{x} | S{z}", SNAP, &w);
	world_check(&w, 'I', "");
}

/* ---- which hard errors are cured by what ---- */

struct cure {
	const char *name;
	world_fn setup;
	bool is_cure;
};

static const struct cure cures[] = {
	{ "first-build", world_unbuilt, true },
	{ "semantic-version", world_bump, true },
	{ "forced", world_forced_snapshot, true },
	{ "output-foreign-commit", world_foreign, true },
	{ "output-user-delete", world_user_delete, true },
	{ "output-retention-delete", world_retention_delete, true },
	{ "provenance-inconsistent", world_inconsistent, true },
	{ "v2-changed", world_v2_on, true },
	{ "force", world_forced, false },
	{ "unbuilt sibling", world_second_unbuilt, false },
	{ "other settings", world_other_settings, false },
};

static void run_cures(world_fn misplace, const char *code)
{
	for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++) {
		struct world w;

		world_fill("S{x} A{y} |", NONE, &w);
		misplace(&w);
		cures[i].setup(&w);
		if (cures[i].is_cure)
			world_check(&w, 'N', cures[i].name);
		else
			world_check(&w, 'E', code);
	}
}

static void test_decide__R35_not_in_view__cured_by_new_output_view(void)
{
	run_cures(world_off_path, "processed-transaction-not-in-view");
}

static void test_decide__R35_branch_order__cured_by_new_output_view(void)
{
	run_cures(world_behind, "branch-order");
}

static void test_decide__hard_error__not_cured_by_other_inputs(void)
{
	struct world w;

	world_fill("S{x} A{y} |", NONE, &w);
	world_off_path(&w);
	world_new_input(&w);
	w.inputs[1].has_record = true;
	w.inputs[1].record_start = 1;
	world_check(&w, 'E',
		    "processed-transaction-not-in-view input-snapshot");
}

static void test_decide__R137_limit__never_cured(void)
{
	for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++) {
		struct world w;

		world_fill("S{x} | U{n}", LIM, &w);
		cures[i].setup(&w);
		world_check(&w, 'E', NULL);
	}
}

static void test_decide__R137_limit_after_new_snapshot__judges_new_view(void)
{
	struct world w;

	world_fill("S{x} U{x} | S{z} A{n}", LIM, &w);
	world_check(&w, 'N', "input-snapshot");
	world_fill("S{x} | S{z} U{n}", LIM, &w);
	world_check(&w, 'E', "limit-bad-transaction input-snapshot");
}

static void test_decide__retention_allowed__cures_nothing(void)
{
	struct world w;

	world_fill("S{x} A{y} |", RET, &w);
	world_off_path(&w);
	world_retention_delete(&w);
	world_check(&w, 'E', "processed-transaction-not-in-view");
}

/* ---- require_incremental and its let-outs ---- */

static void test_decide__R59_require_let_outs__allow_snapshot(void)
{
	static const world_fn let_outs[] = { world_unbuilt, world_bump,
					     world_forced_snapshot,
					     world_second_unbuilt };

	for (size_t i = 0; i < sizeof(let_outs) / sizeof(let_outs[0]); i++) {
		struct world w;

		world_fill("S{x} | U{x}", REQUIRE, &w);
		let_outs[i](&w);
		world_check(&w, 'N', NULL);
	}
}

static void test_decide__Q1_needs_all_unbuilt__refuses(void)
{
	struct world w;

	world_fill("S{x} | U{x}", REQUIRE, &w);
	world_second_unbuilt(&w);
	world_check_warnings(&w, 1);
	w.facts.settings.needs_all_unbuilt = true;
	world_check(&w, 'R', "input-modified");
	world_check_warnings(&w, 0);
	world_fill("S{x} | U{x}", REQUIRE, &w);
	world_unbuilt(&w);
	w.facts.settings.needs_all_unbuilt = true;
	world_check(&w, 'N', "first-build");
	world_check_warnings(&w, 0);
}

static void test_decide__Q1_explicit_request__no_warning(void)
{
	struct world w;

	world_fill("S{x} | U{x}", REQUIRE, &w);
	world_second_unbuilt(&w);
	world_bump(&w);
	world_check_warnings(&w, 0);
}

static void test_decide__Q6_v2_on_and_require__names_the_cure(void)
{
	struct decide_result result = { 0 };
	struct world w;

	world_fill("S{x} |", REQUIRE, &w);
	world_v2_on(&w);
	CHECK_OK(decide(&w.facts, &result, NULL));
	CHECK_INT_EQ(INCR_DECISION_REFUSED, result.decision);
	REQUIRE_INT_EQ(1, result.n_reasons);
	CHECK(strstr(result.reasons[0].message, "semantic_version") != NULL);
	decide_result_release(&result);
}

static void test_decide__Q6_v2_on_and_bumped__snapshot(void)
{
	struct world w;

	world_fill("S{x} |", REQUIRE, &w);
	world_v2_on(&w);
	world_bump(&w);
	world_check(&w, 'N', "semantic-version v2-changed");
}

static void test_decide__R78_inconsistent_and_require__refused(void)
{
	struct world w;

	world_fill("S{x} | A{n}", REQUIRE, &w);
	world_inconsistent(&w);
	world_check(&w, 'R', "provenance-inconsistent");
	world_bump(&w);
	world_check(&w, 'N', "provenance-inconsistent semantic-version");
}

static void test_decide__Q8_modify_by_hand__warns_when_not_incremental(void)
{
	struct world w;

	world_fill("S{x} | U{x}", NONE, &w);
	w.outputs[0].write_mode = INCR_MODE_MODIFY;
	world_check_warnings(&w, 1);
	w.outputs[0].write_mode = INCR_MODE_APPEND; /* Q24 */
	world_check_warnings(&w, 1);
	w.outputs[0].write_mode = INCR_MODE_REPLACE;
	world_check_warnings(&w, 0);
	world_fill("S{x} | A{n}", NONE, &w);
	w.outputs[0].write_mode = INCR_MODE_MODIFY;
	world_check_warnings(&w, 0);
}

static void test_decide__Q9_strict_append_without_require__warns(void)
{
	struct world w;

	world_fill("S{x} | A{n}", NONE, &w);
	world_strict(&w);
	world_check_warnings(&w, 1);
	w.facts.settings.require_incremental = true;
	world_check_warnings(&w, 0);
}

/* ---- 2.2: what is committed ---- */

struct write_row {
	bool is_incremental, strict_append, is_skip;
	enum incr_write_mode asked, mode;
	enum incr_txn_type type;
};

/* clang-format off */
static const struct write_row write_rows[] = {
	/* incremental, world_strict, skip, asked for -> mode, type */
	{ true, false, false, INCR_MODE_DEFAULT, INCR_MODE_MODIFY, INCR_UPDATE },
	{ true, false, false, INCR_MODE_MODIFY, INCR_MODE_MODIFY, INCR_UPDATE },
	{ true, false, false, INCR_MODE_APPEND, INCR_MODE_APPEND, INCR_APPEND },
	{ true, false, false, INCR_MODE_REPLACE, INCR_MODE_REPLACE, INCR_SNAPSHOT },
	{ true, true, false, INCR_MODE_DEFAULT, INCR_MODE_MODIFY, INCR_APPEND },
	{ true, true, false, INCR_MODE_MODIFY, INCR_MODE_MODIFY, INCR_APPEND },
	{ true, true, false, INCR_MODE_APPEND, INCR_MODE_APPEND, INCR_APPEND },
	/* R127: strict_append is inert when not incremental */
	{ false, false, false, INCR_MODE_DEFAULT, INCR_MODE_REPLACE, INCR_SNAPSHOT },
	{ false, true, false, INCR_MODE_DEFAULT, INCR_MODE_REPLACE, INCR_SNAPSHOT },
	{ false, false, false, INCR_MODE_REPLACE, INCR_MODE_REPLACE, INCR_SNAPSHOT },
	{ false, true, false, INCR_MODE_REPLACE, INCR_MODE_REPLACE, INCR_SNAPSHOT },
	/* Q8, Q24 */
	{ false, false, false, INCR_MODE_MODIFY, INCR_MODE_MODIFY, INCR_UPDATE },
	{ false, true, false, INCR_MODE_MODIFY, INCR_MODE_MODIFY, INCR_UPDATE },
	{ false, false, false, INCR_MODE_APPEND, INCR_MODE_APPEND, INCR_APPEND },
	/* Q7: a skipped run never empties an output */
	{ false, false, true, INCR_MODE_DEFAULT, INCR_MODE_MODIFY, INCR_UPDATE },
	{ false, false, true, INCR_MODE_REPLACE, INCR_MODE_MODIFY, INCR_UPDATE },
	{ true, false, true, INCR_MODE_REPLACE, INCR_MODE_MODIFY, INCR_UPDATE },
	{ true, true, true, INCR_MODE_DEFAULT, INCR_MODE_MODIFY, INCR_APPEND },
	{ false, false, true, INCR_MODE_APPEND, INCR_MODE_APPEND, INCR_APPEND },
};
/* clang-format on */

static void test_decide_write__R106_R107_R108_R125_table_2_2(void)
{
	for (size_t i = 0; i < sizeof(write_rows) / sizeof(write_rows[0]);
	     i++) {
		const struct write_row *row = &write_rows[i];
		struct decide_settings settings = { .strict_append =
							    row->strict_append,
						    .is_skip = row->is_skip };
		struct decide_write got = decide_write(
			&settings, row->is_incremental, row->asked);

		CHECK_INT_EQ(row->mode, got.mode);
		CHECK_INT_EQ(row->type, got.type);
	}
}

/* clang-format off */
static const struct testing_test tests[] = {
	TEST(test_decide__error_before_refused__lists_lower_classes),
	TEST(test_decide__several_inputs__every_reason_in_order),
	TEST(test_decide__R91_one_bad_input__all_snapshot),
	TEST(test_decide__reason__names_input_path_and_transaction),
	TEST(test_decide__transaction_lost__reads_everything),
	TEST(test_decide__row12_flags__leave_the_other_reason),
	TEST(test_decide__fresh__only_when_all_is_the_same),
	TEST(test_decide__R35_not_in_view__cured_by_new_output_view),
	TEST(test_decide__R35_branch_order__cured_by_new_output_view),
	TEST(test_decide__hard_error__not_cured_by_other_inputs),
	TEST(test_decide__R137_limit__never_cured),
	TEST(test_decide__R137_limit_after_new_snapshot__judges_new_view),
	TEST(test_decide__retention_allowed__cures_nothing),
	TEST(test_decide__R59_require_let_outs__allow_snapshot),
	TEST(test_decide__Q1_needs_all_unbuilt__refuses),
	TEST(test_decide__Q1_explicit_request__no_warning),
	TEST(test_decide__Q6_v2_on_and_require__names_the_cure),
	TEST(test_decide__Q6_v2_on_and_bumped__snapshot),
	TEST(test_decide__R78_inconsistent_and_require__refused),
	TEST(test_decide__Q8_modify_by_hand__warns_when_not_incremental),
	TEST(test_decide__Q9_strict_append_without_require__warns),
	TEST(test_decide_write__R106_R107_R108_R125_table_2_2),
	TEST_END,
};
/* clang-format on */

static const struct testing_suite suites[] = {
	{ "decide", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
