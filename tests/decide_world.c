/*
 * Facts for tests of the decision.
 */
#include "decide_world.h"

#include "history.h"
#include "testing.h"

#include <string.h>

#define LIMIT 2
#define INPUT_DATASET 100
#define RECORD_TXN 50

static const char *const path_names = "abcdefghijklmnopqrstuvwxyz";

static void note_change(struct decide_change *change, int c, uint64_t txn)
{
	if (!change->count++) {
		change->path = path_names + (c - 'a');
		change->path_length = 1;
		change->txn = txn;
	}
}

/* Net changes of what was read before (R81). */
static void compare(const struct history *h, const struct history_view *was,
		    struct decide_input *in)
{
	struct history_view now;

	history_view(h, in->read_end, &now);
	for (int c = 'a'; c <= 'z'; c++) {
		uint64_t txn = now.removed_by[c];

		if (!was->version[c] || was->version[c] == now.version[c])
			continue;
		if (now.version[c])
			note_change(&in->modified, c, now.version[c]);
		else if (txn && h->txns[txn - 1].is_retention)
			note_change(&in->removed_by_retention, c, txn);
		else
			note_change(&in->removed_by_user, c, txn);
	}
}

static void fill_input(const struct history *h, enum incr_input_kind kind,
		       struct decide_input *in)
{
	struct history_view was, now;

	history_view(h, h->n_read, &was);
	history_view(h, h->n, &now);
	*in = (struct decide_input){ .alias = "in",
				     .dataset = "d/in",
				     .dataset_id = INPUT_DATASET,
				     .kind = kind,
				     .view_start = now.start,
				     .head = h->n,
				     .read_end = h->n,
				     .has_record = true,
				     .record_dataset_id = INPUT_DATASET,
				     .record_kind = kind,
				     .record_start = was.start,
				     .last_read = h->n_read };
	if (kind == INCR_INPUT_LIMITED) {
		if (h->n - h->n_read > LIMIT)
			in->read_end = h->n_read + LIMIT;
		in->bad_txn = history_bad_for_limit(h, h->n);
		if (in->bad_txn)
			in->bad_type = h->txns[in->bad_txn - 1].type;
	}
	if (decide_input_state(in) == DECIDE_INPUT_COMPARABLE)
		compare(h, &was, in);
}

void world_fill(const char *text, enum column column, struct world *w)
{
	enum incr_input_kind kind = column == SNAP ? INCR_INPUT_SNAPSHOT :
				    column == LIM  ? INCR_INPUT_LIMITED :
						     INCR_INPUT_NORMAL;
	struct decide_settings *s = &w->facts.settings;
	struct history h;

	memset(w, 0, sizeof(*w));
	CHECK(history_parse(text, &h));
	fill_input(&h, kind, &w->inputs[0]);
	w->outputs[0] = (struct decide_output){ .alias = "out",
						.dataset = "d/out",
						.record_txn = RECORD_TXN };
	s->semantic_version = 1;
	s->allow_retention = column == RET || column == BOTH;
	s->allow_user_deletes = column == USR || column == BOTH;
	s->v2_semantics = s->allow_user_deletes || column == LIM;
	s->require_incremental = column == REQUIRE;
	w->facts.previous =
		(struct decide_previous){ .exists = true,
					  .has_semantic_version = true,
					  .semantic_version = 1,
					  .v2_semantics = s->v2_semantics,
					  .n_inputs = 1,
					  .has_same_settings = true,
					  .has_same_outputs = true,
					  .has_same_command = true };
	w->facts.n_inputs = 1;
	w->facts.inputs = w->inputs;
	w->facts.n_outputs = 1;
	w->facts.outputs = w->outputs;
}

static char letter(enum incr_decision decision)
{
	switch (decision) {
	case INCR_DECISION_INCREMENTAL:
		return 'I';
	case INCR_DECISION_SNAPSHOT:
		return 'N';
	case INCR_DECISION_FRESH:
		return 'F';
	case INCR_DECISION_REFUSED:
		return 'R';
	case INCR_DECISION_ERROR:
		return 'E';
	}
	return '?';
}

static void join_codes(const struct decide_result *result, char *out,
		       size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < result->n_reasons && used + 1 < size; i++) {
		const char *name = incr_reason_name(result->reasons[i].code);
		size_t n = strlen(name);

		if (used + n + 2 > size)
			return;
		if (used)
			out[used++] = ' ';
		memcpy(out + used, name, n + 1);
		used += n;
	}
}

/* Decide and compare decision and codes; NULL codes: any. */
void world_check(const struct world *w, char want, const char *codes)
{
	char want_text[2] = { want, '\0' }, got_text[2] = { 0 };
	struct decide_result result = { 0 };
	char got_codes[1024];

	CHECK_OK(decide(&w->facts, &result, NULL));
	got_text[0] = letter(result.decision);
	CHECK_STR_EQ(want_text, got_text);
	CHECK_INT_EQ(want == 'I' || want == 'F', result.is_incremental);
	join_codes(&result, got_codes, sizeof(got_codes));
	if (codes)
		CHECK_STR_EQ(codes, got_codes);
	for (size_t i = 0; i < result.n_reasons; i++)
		CHECK(result.reasons[i].message != NULL);
	decide_result_release(&result);
}

void world_check_warnings(const struct world *w, size_t want)
{
	struct decide_result result = { 0 };

	CHECK_OK(decide(&w->facts, &result, NULL));
	CHECK_INT_EQ(want, result.n_warnings);
	decide_result_release(&result);
}

/* ---- b) branches: the input's head is elsewhere than the history says ---- */

void world_off_path(struct world *w)
{
	w->inputs[0].relation = DECIDE_OFF_PATH;
	w->inputs[0].head = w->inputs[0].read_end = 30;
}

void world_off_path_restarted(struct world *w)
{
	world_off_path(w);
	w->inputs[0].view_start = 29;
}

void world_behind(struct world *w)
{
	w->inputs[0].relation = DECIDE_HEAD_BEHIND;
	w->inputs[0].head = w->inputs[0].read_end = 1;
}

void world_bump(struct world *w)
{
	w->facts.settings.semantic_version = 2;
}

void world_off_path_bumped(struct world *w)
{
	world_off_path(w);
	world_bump(w);
}

void world_behind_bumped(struct world *w)
{
	world_behind(w);
	world_bump(w);
}

void world_unbuilt(struct world *w)
{
	w->outputs[0].record_txn = 0;
	w->facts.previous = (struct decide_previous){ 0 };
	w->inputs[0].has_record = false;
}

/* ---- c) the list of inputs ---- */

static void add_input(struct world *w, enum incr_input_kind kind,
		      bool has_record)
{
	w->inputs[1] = (struct decide_input){ .alias = "second",
					      .dataset = "d/second",
					      .dataset_id = 200,
					      .kind = kind,
					      .view_start = 20,
					      .head = 22,
					      .read_end = 22,
					      .has_record = has_record,
					      .record_dataset_id = 200,
					      .record_kind = kind,
					      .record_start = 20,
					      .last_read = 22 };
	w->facts.n_inputs = 2;
	w->facts.previous.n_inputs = has_record ? 2 : 1;
}

void world_new_input(struct world *w)
{
	add_input(w, INCR_INPUT_NORMAL, false);
}

void world_new_snapshot_input(struct world *w)
{
	add_input(w, INCR_INPUT_SNAPSHOT, false);
}

void world_lost_input(struct world *w)
{
	w->facts.previous.n_inputs = 2;
}

void world_swapped(struct world *w)
{
	w->inputs[0].record_dataset_id = 999;
}

void world_was_normal(struct world *w)
{
	w->inputs[0].record_kind = INCR_INPUT_NORMAL;
	w->facts.previous.has_same_settings = false;
}

void world_was_snapshot(struct world *w)
{
	w->inputs[0].record_kind = INCR_INPUT_SNAPSHOT;
	w->facts.previous.has_same_settings = false;
}

void world_was_empty(struct world *w)
{
	w->inputs[0].record_start = w->inputs[0].last_read = 0;
	w->inputs[0].modified = (struct decide_change){ 0 };
}

/* ---- d) outputs, history, arguments ---- */

void world_add_output(struct world *w)
{
	w->outputs[1] = (struct decide_output){ .alias = "aux",
						.dataset = "d/aux",
						.record_txn = RECORD_TXN + 1 };
	w->facts.n_outputs = 2;
}

void world_second_unbuilt(struct world *w)
{
	world_add_output(w);
	w->outputs[1].record_txn = 0;
	w->facts.previous.has_same_outputs = false;
}

void world_inconsistent(struct world *w)
{
	world_add_output(w);
	w->outputs[1].is_inconsistent = true;
	w->outputs[1].record_txn = RECORD_TXN - 10;
}

void world_foreign(struct world *w)
{
	w->outputs[0].foreign = (struct decide_above){ 1, 60 };
}

void world_foreign_bumped(struct world *w)
{
	world_foreign(w);
	world_bump(w);
}

void world_only_foreign(struct world *w)
{
	world_unbuilt(w);
	w->outputs[0].foreign = (struct decide_above){ 2, 60 };
}

void world_user_delete(struct world *w)
{
	w->outputs[0].user_deletes = (struct decide_above){ 1, 60 };
}

void world_retention_delete(struct world *w)
{
	w->outputs[0].retention_deletes = (struct decide_above){ 1, 60 };
}

void world_no_version(struct world *w)
{
	w->facts.previous.has_semantic_version = false;
	w->facts.previous.semantic_version = 0;
}

void world_no_version_bumped(struct world *w)
{
	world_no_version(w);
	world_bump(w);
}

void world_version_lower(struct world *w)
{
	w->facts.settings.semantic_version = INT64_MIN;
	w->facts.previous.semantic_version = INT64_MAX;
}

void world_v2_on(struct world *w)
{
	w->facts.settings.v2_semantics = true;
	w->facts.previous.v2_semantics = false;
}

void world_v2_off(struct world *w)
{
	w->facts.settings.v2_semantics = false;
	w->facts.previous.v2_semantics = true;
}

void world_other_settings(struct world *w)
{
	w->facts.previous.has_same_settings = false;
}

void world_other_command(struct world *w)
{
	w->facts.previous.has_same_command = false;
}

void world_strict(struct world *w)
{
	world_other_settings(w);
	w->facts.settings.strict_append = true;
}

void world_forced(struct world *w)
{
	w->facts.settings.is_forced = true;
}

void world_forced_snapshot(struct world *w)
{
	w->facts.settings.forces_snapshot = true;
}

void world_empty_input(struct world *w)
{
	w->inputs[0].view_start = w->inputs[0].head = w->inputs[0].read_end = 0;
}
