/*
 * The decision: all reasons in order, then error before refused before
 * snapshot before fresh before incremental.
 */
#include "config.h"

#include "decide.h"

#include "decide_reason.h"
#include "error.h"

#include <inttypes.h>
#include <stdlib.h>

static enum incr_txn_type type_of(enum incr_write_mode mode)
{
	switch (mode) {
	case INCR_MODE_APPEND:
		return INCR_APPEND;
	case INCR_MODE_REPLACE:
		return INCR_SNAPSHOT;
	case INCR_MODE_MODIFY:
	case INCR_MODE_DEFAULT:
		break;
	}
	return INCR_UPDATE;
}

struct decide_write decide_write(const struct decide_settings *settings,
				 bool is_incremental,
				 enum incr_write_mode asked)
{
	/* A skipped run must not empty the output, whatever it would have done. */
	bool keeps = is_incremental || settings->is_skip;
	struct decide_write w = { .mode = asked };

	if (asked == INCR_MODE_DEFAULT ||
	    (asked == INCR_MODE_REPLACE && settings->is_skip))
		w.mode = keeps ? INCR_MODE_MODIFY : INCR_MODE_REPLACE;
	w.type = type_of(w.mode);
	if (settings->strict_append && keeps && w.mode == INCR_MODE_MODIFY)
		w.type = INCR_APPEND;
	return w;
}

static bool has_code(const struct reason_list *list, enum incr_reason_code code)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].code == code)
			return true;
	return false;
}

static int decide_version(const struct decide_facts *facts,
			  struct reason_list *list)
{
	struct reason_facts about = { .code = INCR_REASON_SEMANTIC_VERSION,
				      .count = 1 };
	const struct decide_previous *previous = &facts->previous;
	int64_t was =
		previous->has_semantic_version ? previous->semantic_version : 1;

	if (!previous->exists || was == facts->settings.semantic_version)
		return 0;
	return reason_add(list, &about,
			  "the semantic version was %" PRId64
			  " at the last build and is %" PRId64 " now",
			  was, facts->settings.semantic_version);
}

static int decide_v2(const struct decide_facts *facts, struct reason_list *list)
{
	struct reason_facts about = { .code = INCR_REASON_V2_CHANGED,
				      .count = 1 };
	bool is_on = facts->settings.v2_semantics;

	if (!facts->previous.exists || facts->previous.v2_semantics == is_on)
		return 0;
	return reason_add(
		list, &about,
		"v2_semantics was switched %s since the last build%s",
		is_on ? "on" : "off",
		facts->settings.require_incremental ?
			"; a new semantic_version lets this build run" :
			"");
}

/* The reasons that start a new output view whatever the inputs say. */
static int decide_whole(const struct decide_facts *facts,
			struct reason_list *list)
{
	struct reason_facts forced = { .code = INCR_REASON_FORCED, .count = 1 };
	int r = decide_outputs(facts, list);

	if (r == 0)
		r = decide_version(facts, list);
	if (r == 0)
		r = decide_v2(facts, list);
	if (r == 0 && facts->settings.forces_snapshot)
		r = reason_add(list, &forced, "a snapshot was asked for");
	return r;
}

static bool is_input_fresh(const struct decide_input *in)
{
	return in->has_record && in->record_dataset_id == in->dataset_id &&
	       in->record_kind == in->kind && in->last_read == in->read_end;
}

static bool is_fresh(const struct decide_facts *facts)
{
	const struct decide_previous *previous = &facts->previous;

	if (facts->settings.is_forced || !previous->exists ||
	    !previous->has_same_settings || !previous->has_same_outputs ||
	    !previous->has_same_command ||
	    previous->n_inputs != facts->n_inputs)
		return false;
	for (size_t i = 0; i < facts->n_inputs; i++)
		if (!is_input_fresh(&facts->inputs[i]))
			return false;
	for (size_t i = 0; i < facts->n_outputs; i++)
		if (!facts->outputs[i].record_txn)
			return false;
	return true;
}

/* An explicit request, or the outputs have nothing to lose (R59, Q1, Q17). */
static bool is_let_out_asked(const struct reason_list *list)
{
	return has_code(list, INCR_REASON_FIRST_BUILD) ||
	       has_code(list, INCR_REASON_SEMANTIC_VERSION) ||
	       has_code(list, INCR_REASON_FORCED);
}

static bool is_let_out(const struct decide_facts *facts,
		       const struct reason_list *list)
{
	return is_let_out_asked(list) || (!facts->settings.needs_all_unbuilt &&
					  decide_any_unbuilt(facts));
}

static enum incr_decision conclude(const struct decide_facts *facts,
				   const struct reason_list *hard,
				   const struct reason_list *list)
{
	if (hard->n)
		return INCR_DECISION_ERROR;
	if (list->n && facts->settings.require_incremental &&
	    !is_let_out(facts, list))
		return INCR_DECISION_REFUSED;
	if (list->n)
		return INCR_DECISION_SNAPSHOT;
	return is_fresh(facts) ? INCR_DECISION_FRESH :
				 INCR_DECISION_INCREMENTAL;
}

/* Q1: some outputs were never built, so the others lose their history. */
static int warn_replaced(const struct decide_facts *facts,
			 struct warning_list *warnings)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_outputs && r == 0; i++) {
		const struct decide_output *out = &facts->outputs[i];

		if (decide_is_unbuilt(facts, out) ||
		    out->write_mode == INCR_MODE_MODIFY ||
		    out->write_mode == INCR_MODE_APPEND)
			continue;
		r = warning_add(warnings,
				"output %s is replaced although "
				"require_incremental is set, because another "
				"output was never built",
				out->alias);
	}
	return r;
}

/* Q8, Q24: the old content stays below what is written. */
static int warn_modify(const struct decide_facts *facts,
		       struct warning_list *warnings)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_outputs && r == 0; i++) {
		const struct decide_output *out = &facts->outputs[i];

		if (out->write_mode == INCR_MODE_MODIFY ||
		    out->write_mode == INCR_MODE_APPEND)
			r = warning_add(
				warnings,
				"output %s: write mode %s in a run that "
				"is not incremental keeps the old files "
				"below the new ones, and its previous/ "
				"is empty",
				out->alias,
				out->write_mode == INCR_MODE_APPEND ? "append" :
								      "modify");
	}
	return r;
}

/* What is read lacks something, also when all of it is. */
static int warn_unknown(const struct decide_facts *facts,
			struct warning_list *warnings)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_inputs && r == 0; i++) {
		const struct decide_input *in = &facts->inputs[i];

		if (in->unknown_txn)
			r = warning_add(warnings,
					"input %s: t%" PRIu64
					" is lost, and the view is as if it "
					"had not been",
					in->alias, in->unknown_txn);
	}
	return r;
}

static int warn(const struct decide_facts *facts, enum incr_decision decision,
		const struct reason_list *list, struct warning_list *warnings)
{
	const struct decide_settings *settings = &facts->settings;
	bool is_snapshot = decision == INCR_DECISION_SNAPSHOT;
	int r = warn_unknown(facts, warnings);

	if (r == 0 && is_snapshot && !settings->is_skip &&
	    settings->require_incremental && !is_let_out_asked(list))
		r = warn_replaced(facts, warnings);
	if (r == 0 && is_snapshot && !settings->is_skip)
		r = warn_modify(facts, warnings);
	if (r == 0 && settings->strict_append && !settings->require_incremental)
		r = warning_add(warnings,
				"strict_append without require_incremental: a "
				"run that is not incremental still commits a "
				"SNAPSHOT");
	return r;
}

static int decide_lists(const struct decide_facts *facts,
			struct reason_list *hard, struct reason_list *list,
			struct warning_list *warnings,
			enum incr_decision *out_decision)
{
	int r = decide_whole(facts, list);

	if (r == 0)
		r = decide_inputs_hard(facts, list->n > 0, hard);
	if (r == 0)
		r = decide_inputs(facts, list);
	if (r < 0)
		return r;

	*out_decision = conclude(facts, hard, list);
	r = warn(facts, *out_decision, list, warnings);
	return r < 0 ? r : reason_join(hard, list);
}

int decide(const struct decide_facts *facts, struct decide_result *out,
	   struct incr_error *err)
{
	struct reason_list hard = { 0 }, list = { 0 };
	struct warning_list warnings = { 0 };
	enum incr_decision decision = INCR_DECISION_ERROR;
	int r = decide_lists(facts, &hard, &list, &warnings, &decision);

	reason_list_release(&list);
	if (r < 0) {
		reason_list_release(&hard);
		warning_list_release(&warnings);
		return incr_fail_nomem(err);
	}

	*out = (struct decide_result){
		.decision = decision,
		.is_incremental = decision == INCR_DECISION_INCREMENTAL ||
				  decision == INCR_DECISION_FRESH,
		.n_reasons = hard.n,
		.reasons = hard.items,
		.n_warnings = warnings.n,
		.warnings = warnings.items,
	};
	return 0;
}

void decide_result_release(struct decide_result *result)
{
	struct reason_list reasons = { .n = result->n_reasons,
				       .items = result->reasons };
	struct warning_list warnings = { .n = result->n_warnings,
					 .items = result->warnings };

	reason_list_release(&reasons);
	warning_list_release(&warnings);
	*result = (struct decide_result){ 0 };
}
