/*
 * The decision, row by row of the tables in docs/semantics.md; decide_rows.h
 * explains the letters.
 */
#include "decide_rows.h"
#include "decide_world.h"
#include "testing.h"

static void run_row(const char *history, world_fn setup, const char *want,
		    const char *codes)
{
	for (int column = 0; column < N_COLUMNS; column++) {
		struct world w;

		if (want[column] == '.')
			continue;
		world_fill(history, (enum column)column, &w);
		if (setup)
			setup(&w);
		world_check(&w, want[column], column == NONE ? codes : NULL);
	}
}

/* clang-format off */
#define ROWS(X) \
HISTORY_ROWS(X) \
/* b) branch and head */ \
X(row25_R34_R45_new_branch_with_history, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row26_R74_new_root_branch, "S{x} | A{n}", world_unbuilt, "NNNNNNN", "first-build") \
X(row27_R80_other_branch_on_path, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row28_R35_not_in_view, "S{x} A{y} |", world_off_path, "EEEEIEE", "processed-transaction-not-in-view") \
X(row28b_R36_another_start, "S{x} A{y} |", world_off_path_restarted, "NNNNINR", "input-snapshot") \
X(row29_R35_head_moved_back, "S{x} A{y} |", world_behind, "EEEEIEE", "branch-order") \
X(row30_R35_moved_back_after_pend, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row31_R35_moved_back_then_commits, "S{x} A{y} |", world_off_path, "EEEEIEE", "processed-transaction-not-in-view") \
X(row31b_R36_moved_back_then_snapshot, "S{x} A{y} |", world_off_path_restarted, "NNNNINR", "input-snapshot") \
X(row32_R35_not_in_view_bumped, "S{x} A{y} |", world_off_path_bumped, "NNNNNNN", "semantic-version") \
X(row32_R35_branch_order_bumped, "S{x} A{y} |", world_behind_bumped, "NNNNNNN", "semantic-version") \
X(row33_R37_R45_output_rolled_back, "S{x} | A{n} A{m}", NULL, "IIIIIII", "") \
/* c) the list of inputs */ \
X(row35_R86_input_appears, "S{x} |", world_new_input, "IIIIIII", "") \
X(row36_R64_snapshot_input_appears, "S{x} |", world_new_snapshot_input, "IIIIIII", "") \
X(row36_R64_snapshot_input_goes, "S{x} |", world_lost_input, "IIIIIII", "") \
X(row37_R87_input_goes, "S{x} |", world_lost_input, "IIIIIII", "") \
X(row38_R87_input_comes_back, "S{x} |", world_new_input, "IIIIIII", "") \
X(row39_R88_Q5_swapped, "S{x} |", world_swapped, "NNNNINR", "input-swapped") \
X(row39_Q5_swapped_ends_its_list, "S{x} | U{x}", world_swapped, "NNNNIER", "input-swapped") \
X(row40_R89_Q10_normal_to_snapshot, "S{x} | S{z}", world_was_normal, "....I..", NULL) \
X(row41_R89_Q10_snapshot_to_normal_added, "S{x} | A{n}", world_was_snapshot, "IIII.II", "") \
X(row41_R89_Q10_snapshot_to_normal_changed, "S{x} | U{x}", world_was_snapshot, "NNNN.ER", "input-modified") \
X(row35_input_was_empty, "| S{x}", world_was_empty, "IIIIIII", "") \
X(R36_input_has_no_history_now, "S{x} |", world_empty_input, "NNNNI.R", "input-snapshot") \
/* d) outputs, history, arguments */ \
X(row45_R74_first_build, "S{x} |", world_unbuilt, "NNNNNNN", "first-build") \
X(row46_R76_some_unbuilt, "S{x} | A{n}", world_second_unbuilt, "IIIIIII", "") \
X(row47_R60_Q1_some_unbuilt_and_change, "S{x} | U{x}", world_second_unbuilt, "NNNNIEN", "input-modified") \
X(row48_R75_other_transform, "S{x} |", world_foreign, "NNNNNNR", "output-foreign-commit") \
X(row49_R75_by_hand, "S{x} |", world_foreign, "NNNNNNR", "output-foreign-commit") \
X(row50_R37_by_hand_and_rolled_back, "S{x} |", NULL, "FFFFFFF", "") \
X(row51_R77_user_delete, "S{x} |", world_user_delete, "NNNNNNR", "output-user-delete") \
X(row52_R77_retention_delete, "S{x} | A{n}", world_retention_delete, "NINI..R", "output-retention-delete") \
X(row53_R51_swept_output, "S{x} |", NULL, "FFFFFFF", "") \
X(row54_R2_foreign_aborted, "S{x} |", NULL, "FFFFFFF", "") \
X(row55_R78_partial_abort, "S{x} | A{n}", world_inconsistent, "NNNNNNR", "provenance-inconsistent") \
X(row55_R78_Q23_equal_ranges, "S{x} | A{n}", world_add_output, "IIIIIII", "") \
X(row56_R151_Q7_whole_abort, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row57_R155_failed_run, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row58_R111_replace_before, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row59_R93_snapshot_before, "S{x} | A{n}", NULL, "IIIIIII", "") \
X(row60_R78_output_dropped, "S{x} | A{n}", world_other_settings, "IIIIIII", "") \
X(row61_R75_Q13_renamed_transform, "S{x} |", world_only_foreign, "NNNNNNR", "output-foreign-commit") \
X(row62_R61_R63_version, "S{x} |", world_bump, "NNNNNNN", "semantic-version") \
X(row62_R61_Q16_lower_version, "S{x} |", world_version_lower, "NNNNNNN", "semantic-version") \
X(row63_R61_R62_no_version_now_1, "S{x} | A{n}", world_no_version, "IIIIIII", "") \
X(row64_R62_no_version_now_2, "S{x} |", world_no_version_bumped, "NNNNNNN", "semantic-version") \
X(row65_R70_Q6_v2_on, "S{x} |", world_v2_on, "NN..NNR", "v2-changed") \
X(row66_R70_v2_off, "S{x} |", world_v2_off, "NN..NNR", "v2-changed") \
X(row67_R66_today_flags_judge, "S{x,y} | D{x}", world_other_settings, "NNIIIER", "input-removed-user") \
X(row68_R68_strict_switched, "S{x} | A{n}", world_strict, "IIIIIII", "") \
X(row69_R137_limit_added, "S{x} | A{n}", world_other_settings, "IIIIIII", "") \
X(row70_R43_command_changed, "S{x} |", world_other_command, "IIIIIII", "") \
X(row71_R44_force_build, "S{x} |", world_forced, "IIIIIII", "") \
X(row71_R44_force_build_changed, "S{x} | U{x}", world_forced, "NNNNIER", "input-modified") \
X(row72_R38_Q17_forced_snapshot, "S{x} |", world_forced_snapshot, "NNNNNNN", "forced") \
X(foreign_commit_and_bumped_version, "S{x} |", world_foreign_bumped, "NNNNNNN", \
	"output-foreign-commit semantic-version")
/* clang-format on */

#define ROW_TEST(name, history, setup, want, codes)           \
	static void test_decide__##name(void)                 \
	{                                                     \
		run_row((history), (setup), (want), (codes)); \
	}
ROWS(ROW_TEST)

#define ROW_ENTRY(name, history, setup, want, codes) TEST(test_decide__##name),

/* clang-format off */
static const struct testing_test rows[] = {
	ROWS(ROW_ENTRY)
	TEST_END,
};
/* clang-format on */

static const struct testing_suite suites[] = {
	{ "decide rows", rows },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
