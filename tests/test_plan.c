/*
 * Plans on a real store: table a again, with facts that the store gives, and
 * branches, lists of inputs, outputs, ranges and counts.
 */
#include "build_fixture.h"
#include "decide_rows.h"
#include "decide_world.h"
#include "testing.h"

#include <string.h>

#define INCREMENTAL INCR_DECISION_INCREMENTAL
#define SNAPSHOT INCR_DECISION_SNAPSHOT
#define FRESH INCR_DECISION_FRESH
#define REFUSED INCR_DECISION_REFUSED
#define ERROR INCR_DECISION_ERROR

static enum incr_decision decision_of(char letter, enum column column)
{
	switch (letter) {
	case 'I':
		return INCREMENTAL;
	case 'N':
		return SNAPSHOT;
	case 'R':
		return REFUSED;
	case 'E':
		return ERROR;
	default:
		/* Here the input was made a snapshot or limited one afterwards. */
		return column == SNAP || column == LIM ? INCREMENTAL : FRESH;
	}
}

static void set_column(struct fixture *f, enum column column)
{
	f->t.allow_retention = column == RET || column == BOTH;
	f->t.allow_user_deletes = column == USR || column == BOTH;
	f->t.v2_semantics = f->t.allow_user_deletes || column == LIM;
	f->t.require_incremental = column == REQUIRE;
}

static void run_row(const char *text, bool is_forced, enum column column,
		    char want, const char *codes)
{
	struct fixture f;
	struct history h;

	fixture_set_up(&f);
	set_column(&f, column);
	CHECK(history_parse(text, &h));
	for (size_t i = 0; i < h.n; i++) {
		if (i == h.n_read)
			fixture_check_run(&f, SNAPSHOT, "x");
		CHECK(fixture_commit(&f, "in", NULL, &h.txns[i]) != 0);
	}
	if (h.n_read == h.n)
		fixture_check_run(&f, SNAPSHOT, "x");
	f.inputs[0].is_snapshot = column == SNAP;
	f.inputs[0].transaction_limit = column == LIM ? 2 : 0;
	f.plan_options.is_forced = is_forced;
	fixture_check_plan(&f, decision_of(want, column),
			   column == NONE ? codes : NULL);
	fixture_tear_down(&f);
}

static void run_columns(const char *text, world_fn setup, const char *want,
			const char *codes)
{
	for (int column = 0; column < N_COLUMNS; column++)
		if (want[column] != '.')
			run_row(text, setup == world_forced,
				(enum column)column, want[column], codes);
}

#define ROW_TEST(name, history, setup, want, codes)               \
	static void test_plan__##name(void)                       \
	{                                                         \
		run_columns((history), (setup), (want), (codes)); \
	}
HISTORY_ROWS(ROW_TEST)

/* ---- branches ---- */

static uint64_t commit_letter(struct fixture *f, const char *dataset,
			      const char *branch, enum incr_txn_type type,
			      char letter)
{
	struct history_txn txn = { .type = type, .paths = { letter, '\0' } };
	uint64_t number = fixture_commit(f, dataset, branch, &txn);

	CHECK(number != 0);
	return number;
}

static void test_plan__row25_R34_fallback_with_history__goes_on(void)
{
	struct fixture f;
	uint64_t in;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a} A{b}");
	fixture_check_run(&f, SNAPSHOT, "x");
	in = fixture_dataset(&f, "in");
	CHECK_OK(incr_branch_create(f.st, in, "dev", "main",
				    fixture_head(&f, "in", NULL), NULL));
	(void)commit_letter(&f, "in", "dev", INCR_APPEND, 'c');
	f.t.branch = (char[]){ "dev" };
	f.t.n_fallbacks = 1;
	f.t.fallbacks = (char *[]){ (char[]){ "main" } };
	fixture_check_run(&f, INCREMENTAL, "y");
	fixture_check_run(&f, FRESH, "");
	/* Trace 17: the other branch is untouched, and still fresh. */
	fixture_check_dataset(&f, "out", "x");
	f.t.branch = NULL;
	f.t.n_fallbacks = 0;
	fixture_check_plan(&f, FRESH, "");
	fixture_tear_down(&f);
}

static void test_plan__row26_R32_new_root_branch__first_build(void)
{
	struct fixture f;
	uint64_t in;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	in = fixture_dataset(&f, "in");
	CHECK_OK(incr_branch_create(f.st, in, "dev", "main",
				    fixture_head(&f, "in", NULL), NULL));
	f.t.branch = (char[]){ "dev" };
	fixture_check_run(&f, SNAPSHOT, "x");
	CHECK(fixture_head(&f, "out", "dev") != 0);
	CHECK_INT_EQ(0, fixture_head(&f, "out", "main"));
	fixture_tear_down(&f);
}

static void test_plan__input_branch_missing__not_found(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;

	fixture_set_up(&f);
	f.t.branch = (char[]){ "dev" };
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_plan_make(f.st, &f.t, NULL, &plan, &f.err));
	CHECK_STR_EQ("no-such-branch", f.err.word);
	f.t.branch = NULL;
	f.outputs[0].dataset = (char[]){ "nowhere" };
	CHECK_ERR(INCR_E_NOTFOUND,
		  incr_plan_make(f.st, &f.t, NULL, &plan, &f.err));
	CHECK_STR_EQ("no-such-dataset", f.err.word);
	fixture_tear_down(&f);
}

static void test_plan__row29_R35_head_moved_back__branch_order(void)
{
	struct fixture f;
	uint64_t first;

	fixture_set_up(&f);
	first = fixture_history(&f, "in", "S{a}");
	fixture_history(&f, "in", "A{b}");
	fixture_check_run(&f, SNAPSHOT, "x");
	CHECK_OK(incr_branch_reset(f.st, fixture_dataset(&f, "in"), "main",
				   first, NULL));
	fixture_check_plan(&f, ERROR, "branch-order");
	/* Row 32: a new version cures it. */
	f.t.semantic_version = 2;
	fixture_check_plan(&f, SNAPSHOT, "semantic-version");
	f.t.semantic_version = 1;
	/* Row 31: new commits on the new line. */
	fixture_history(&f, "in", "A{c}");
	fixture_check_plan(&f, ERROR, "processed-transaction-not-in-view");
	/* Row 31b: a SNAPSHOT among them. */
	fixture_history(&f, "in", "S{d}");
	fixture_check_plan(&f, SNAPSHOT, "input-snapshot");
	fixture_tear_down(&f);
}

static void test_plan__row30_head_moved_back_after_pend__goes_on(void)
{
	struct fixture f;
	uint64_t middle;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	middle = fixture_history(&f, "in", "A{b}");
	fixture_history(&f, "in", "A{c}");
	CHECK_OK(incr_branch_reset(f.st, fixture_dataset(&f, "in"), "main",
				   middle, NULL));
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

static void test_plan__row33_R37_output_rolled_back__reads_again(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;
	uint64_t first, pend;

	fixture_set_up(&f);
	pend = fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	first = fixture_head(&f, "out", NULL);
	fixture_history(&f, "in", "A{b}");
	fixture_check_run(&f, INCREMENTAL, "y");
	fixture_history(&f, "in", "A{c}");
	fixture_check_run(&f, INCREMENTAL, "z");
	/* Trace 19: two runs back. */
	CHECK_OK(incr_branch_reset(f.st, fixture_dataset(&f, "out"), "main",
				   first, NULL));
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	CHECK_INT_EQ(INCREMENTAL, plan.decision);
	CHECK_INT_EQ(pend, plan.inputs[0].last_read);
	CHECK_INT_EQ(2, plan.inputs[0].files.added);
	incr_plan_release(&plan);
	fixture_tear_down(&f);
}

/* ---- the list of inputs ---- */

static void test_plan__row35_R86_new_input__is_read_whole(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_history(&f, "in2", "S{p,q} U{p}");
	fixture_check_run(&f, SNAPSHOT, "x");
	f.t.n_inputs = 2;
	fixture_history(&f, "in", "A{b}");
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	CHECK_INT_EQ(INCREMENTAL, plan.decision);
	CHECK_INT_EQ(1, plan.inputs[0].files.added);
	CHECK(!plan.inputs[0].is_new);
	CHECK(plan.inputs[1].is_new);
	CHECK_INT_EQ(2, plan.inputs[1].files.added);
	CHECK_INT_EQ(0, plan.inputs[1].files.previous);
	CHECK_INT_EQ(0, plan.inputs[1].last_read);
	incr_plan_release(&plan);
	fixture_check_run(&f, INCREMENTAL, "y");
	/* Row 37: it goes; row 38: it comes back as new. */
	f.t.n_inputs = 1;
	fixture_check_run(&f, INCREMENTAL, "");
	f.t.n_inputs = 2;
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	CHECK_INT_EQ(INCREMENTAL, plan.decision);
	CHECK_INT_EQ(2, plan.inputs[1].files.added);
	incr_plan_release(&plan);
	fixture_tear_down(&f);
}

static void test_plan__row39_Q5_swapped_dataset__snapshot(void)
{
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_history(&f, "in2", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	f.inputs[0].dataset = f.inputs[1].dataset;
	fixture_check_plan(&f, SNAPSHOT, "input-swapped");
	/* A rename is no swap: records go by id. */
	f.inputs[0].dataset = (char[]){ "renamed" };
	CHECK_OK(incr_dataset_rename(f.st, fixture_dataset(&f, "in"), "renamed",
				     NULL));
	fixture_check_plan(&f, FRESH, "");
	fixture_tear_down(&f);
}

static void test_plan__two_aliases_of_one_dataset__both_read(void)
{
	struct fixture f;

	fixture_set_up(&f);
	f.inputs[1].dataset = f.inputs[0].dataset;
	f.inputs[1].is_snapshot = true;
	f.t.n_inputs = 2;
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	fixture_history(&f, "in", "A{b}");
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

/* ---- outputs ---- */

static void test_plan__row49_R75_touched_by_hand__snapshot(void)
{
	struct fixture f;
	uint64_t own;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "xy");
	own = fixture_head(&f, "out", NULL);
	fixture_history(&f, "out", "A{h}");
	fixture_check_plan(&f, SNAPSHOT, "output-foreign-commit");
	/* The last run's record still serves behind it. */
	f.t.semantic_version = 2;
	fixture_check_plan(&f, SNAPSHOT,
			   "output-foreign-commit semantic-version");
	f.t.semantic_version = 1;
	/* Row 51, on top of it. */
	fixture_history(&f, "out", "D{x}");
	fixture_check_plan(&f, SNAPSHOT,
			   "output-foreign-commit output-user-delete");
	/* Row 50: rolled back to its own commit. */
	CHECK_OK(incr_branch_reset(f.st, fixture_dataset(&f, "out"), "main",
				   own, NULL));
	fixture_check_plan(&f, FRESH, "");
	/* Row 52. */
	fixture_history(&f, "out", "Dr{x}");
	fixture_check_plan(&f, SNAPSHOT, "output-retention-delete");
	f.t.allow_retention = true;
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

static void test_plan__row48_row61_other_transform__snapshot(void)
{
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	f.t.name = (char[]){ "renamed" };
	fixture_check_plan(&f, SNAPSHOT, "output-foreign-commit");
	f.t.require_incremental = true;
	fixture_check_plan(&f, REFUSED, "output-foreign-commit");
	fixture_tear_down(&f);
}

static void test_plan__row46_R76_output_added__gets_the_increment(void)
{
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_run(&f, SNAPSHOT, "x");
	f.t.n_outputs = 2;
	fixture_history(&f, "in", "A{b}");
	fixture_check_run(&f, INCREMENTAL, "y");
	fixture_check_type(&f, "out2", INCR_UPDATE);
	/* Row 60: and an output that is dropped. */
	f.t.n_outputs = 1;
	fixture_check_plan(&f, INCREMENTAL, "");
	fixture_tear_down(&f);
}

/* ---- limits ---- */

static void check_range(struct fixture *f, uint64_t last_read, uint64_t end,
			uint64_t view_end)
{
	struct incr_plan plan = { 0 };

	REQUIRE_OK(incr_plan_make(f->st, &f->t, NULL, &plan, NULL));
	CHECK_INT_EQ(last_read, plan.inputs[0].last_read);
	CHECK_INT_EQ(end, plan.inputs[0].read_end);
	CHECK_INT_EQ(view_end, plan.inputs[0].view_end);
	incr_plan_release(&plan);
}

static void test_plan__R142_R148_limit__reads_in_batches(void)
{
	uint64_t t[11];
	struct fixture f;

	fixture_set_up(&f);
	f.t.v2_semantics = true;
	f.inputs[0].transaction_limit = 3;
	t[1] = fixture_history(&f, "in", "S{a}");
	for (int i = 2; i <= 10; i++)
		t[i] = commit_letter(&f, "in", NULL, INCR_APPEND,
				     (char)('a' + i - 1));
	check_range(&f, 0, t[3], t[10]);
	fixture_check_run(&f, SNAPSHOT, "A");
	check_range(&f, t[3], t[6], t[10]);
	fixture_check_run(&f, INCREMENTAL, "B");
	check_range(&f, t[6], t[9], t[10]);
	fixture_check_run(&f, INCREMENTAL, "C");
	check_range(&f, t[9], t[10], t[10]);
	fixture_check_run(&f, INCREMENTAL, "D");
	check_range(&f, t[10], t[10], t[10]);
	fixture_check_plan(&f, FRESH, "");
	/* After a reset it begins again with A to C. */
	f.plan_options.forces_snapshot = true;
	fixture_check_run(&f, SNAPSHOT, "E");
	f.plan_options.forces_snapshot = false;
	check_range(&f, t[3], t[6], t[10]);
	/* Trace 11: an UPDATE of a new path. */
	fixture_history(&f, "in", "U{z}");
	fixture_check_plan(&f, ERROR, "limit-bad-transaction");
	fixture_tear_down(&f);
}

static void test_plan__bad_transaction__names_the_first(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;
	uint64_t bad;

	fixture_set_up(&f);
	f.t.v2_semantics = true;
	f.inputs[0].transaction_limit = 1;
	fixture_history(&f, "in", "S{a} A{b}");
	fixture_check_run(&f, SNAPSHOT, "x");
	bad = fixture_history(&f, "in", "U{c}");
	fixture_history(&f, "in", "A{d} D{a}");
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	CHECK_INT_EQ(ERROR, plan.decision);
	REQUIRE(plan.n_reasons > 0);
	CHECK_INT_EQ(INCR_REASON_LIMIT_BAD_TRANSACTION, plan.reasons[0].code);
	CHECK_INT_EQ(bad, plan.reasons[0].txn);
	incr_plan_release(&plan);
	fixture_tear_down(&f);
}

/* ---- counts ---- */

static void check_counts(const struct incr_view_counts *got, uint64_t added,
			 uint64_t previous, uint64_t current, uint64_t modified,
			 uint64_t removed)
{
	CHECK_INT_EQ(added, got->added);
	CHECK_INT_EQ(previous, got->previous);
	CHECK_INT_EQ(current, got->current);
	CHECK_INT_EQ(modified, got->modified);
	CHECK_INT_EQ(removed, got->removed);
}

static void test_plan__R95_R98_permitted_delete__counts_views(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;

	fixture_set_up(&f);
	f.t.v2_semantics = f.t.allow_user_deletes = true;
	fixture_history(&f, "in", "S{a,b,c}");
	fixture_check_run(&f, SNAPSHOT, "x");
	fixture_history(&f, "in", "D{a} A{d}");
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	check_counts(&plan.inputs[0].files, 1, 3, 3, 0, 1);
	incr_plan_release(&plan);
	/* Not incremental: the whole is added. */
	fixture_history(&f, "in", "U{b}");
	REQUIRE_OK(incr_plan_make(f.st, &f.t, NULL, &plan, NULL));
	CHECK_INT_EQ(SNAPSHOT, plan.decision);
	check_counts(&plan.inputs[0].files, 3, 0, 3, 0, 0);
	incr_plan_release(&plan);
	fixture_tear_down(&f);
}

static void test_plan__bad_definition__is_invalid(void)
{
	struct incr_plan plan = { 0 };
	struct fixture f;

	fixture_set_up(&f);
	f.t.n_inputs = 0;
	CHECK_ERR(INCR_E_INVALID,
		  incr_plan_make(f.st, &f.t, NULL, &plan, &f.err));
	CHECK_STR_EQ("no-input", f.err.word);
	fixture_tear_down(&f);
}

static void test_plan__changes_nothing(void)
{
	struct fixture f;

	fixture_set_up(&f);
	fixture_history(&f, "in", "S{a}");
	fixture_check_plan(&f, SNAPSHOT, "first-build");
	fixture_check_plan(&f, SNAPSHOT, "first-build");
	CHECK_INT_EQ(0, fixture_head(&f, "out", NULL));
	fixture_tear_down(&f);
}

#define ROW_ENTRY(name, history, setup, want, codes) TEST(test_plan__##name),

/* clang-format off */
static const struct testing_test rows[] = {
	HISTORY_ROWS(ROW_ENTRY)
	TEST_END,
};

static const struct testing_test tests[] = {
	TEST(test_plan__row25_R34_fallback_with_history__goes_on),
	TEST(test_plan__row26_R32_new_root_branch__first_build),
	TEST(test_plan__input_branch_missing__not_found),
	TEST(test_plan__row29_R35_head_moved_back__branch_order),
	TEST(test_plan__row30_head_moved_back_after_pend__goes_on),
	TEST(test_plan__row33_R37_output_rolled_back__reads_again),
	TEST(test_plan__row35_R86_new_input__is_read_whole),
	TEST(test_plan__row39_Q5_swapped_dataset__snapshot),
	TEST(test_plan__two_aliases_of_one_dataset__both_read),
	TEST(test_plan__row49_R75_touched_by_hand__snapshot),
	TEST(test_plan__row48_row61_other_transform__snapshot),
	TEST(test_plan__row46_R76_output_added__gets_the_increment),
	TEST(test_plan__R142_R148_limit__reads_in_batches),
	TEST(test_plan__bad_transaction__names_the_first),
	TEST(test_plan__R95_R98_permitted_delete__counts_views),
	TEST(test_plan__bad_definition__is_invalid),
	TEST(test_plan__changes_nothing),
	TEST_END,
};
/* clang-format on */

static const struct testing_suite suites[] = {
	{ "plan rows", rows },
	{ "plan", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
