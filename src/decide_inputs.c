/*
 * What the inputs say: where the last run's end lies, and the net changes of
 * what it has read (R35, R36, R80 to R89, R137).
 */
#include "config.h"

#include "decide_reason.h"
#include "name.h"

#include <inttypes.h>

enum decide_input_state decide_input_state(const struct decide_input *in)
{
	if (in->kind == INCR_INPUT_SNAPSHOT)
		return DECIDE_INPUT_FREE;
	if (!in->has_record)
		return DECIDE_INPUT_NEW;
	if (in->record_dataset_id != in->dataset_id)
		return DECIDE_INPUT_SWAPPED;
	/* It had no transaction at all: there is no start to compare with. */
	if (!in->record_start || !in->last_read)
		return DECIDE_INPUT_NEW;
	/* R36: the start before Pend. */
	if (in->view_start != in->record_start)
		return DECIDE_INPUT_RESTARTED;
	if (in->lost_txn)
		return DECIDE_INPUT_LOST;
	if (in->relation == DECIDE_HEAD_BEHIND)
		return DECIDE_INPUT_BEHIND;
	if (in->relation == DECIDE_OFF_PATH)
		return DECIDE_INPUT_ELSEWHERE;
	return DECIDE_INPUT_COMPARABLE;
}

static struct reason_facts about(const struct decide_input *in,
				 enum incr_reason_code code, uint64_t txn)
{
	return (struct reason_facts){ .code = code,
				      .alias = in->alias,
				      .dataset = in->dataset,
				      .txn = txn,
				      .count = 1 };
}

static int add_limit(const struct decide_input *in, struct reason_list *list)
{
	struct reason_facts facts =
		about(in, INCR_REASON_LIMIT_BAD_TRANSACTION, in->bad_txn);

	return reason_add(list, &facts,
			  "input %s: t%" PRIu64
			  " of its view is of type %s, and an input with a "
			  "transaction limit may hold only APPENDs after its "
			  "first SNAPSHOT",
			  in->alias, in->bad_txn,
			  incr_txn_type_name(in->bad_type));
}

static int add_misplaced(const struct decide_input *in,
			 enum decide_input_state state,
			 struct reason_list *list)
{
	struct reason_facts behind =
		about(in, INCR_REASON_BRANCH_ORDER, in->last_read);
	struct reason_facts elsewhere =
		about(in, INCR_REASON_PROCESSED_NOT_IN_VIEW, in->last_read);

	if (state == DECIDE_INPUT_BEHIND)
		return reason_add(list, &behind,
				  "input %s: the last build read up to "
				  "t%" PRIu64 ", and the branch was moved back "
				  "to t%" PRIu64,
				  in->alias, in->last_read, in->head);
	return reason_add(list, &elsewhere,
			  "input %s: t%" PRIu64 ", which the last build read, "
			  "is not in the view of t%" PRIu64,
			  in->alias, in->last_read, in->head);
}

int decide_inputs_hard(const struct decide_facts *facts, bool is_cured,
		       struct reason_list *list)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_inputs && r == 0; i++) {
		const struct decide_input *in = &facts->inputs[i];
		enum decide_input_state state = decide_input_state(in);

		if (in->kind == INCR_INPUT_LIMITED && in->bad_txn)
			r = add_limit(in, list);
		if (r == 0 && !is_cured &&
		    (state == DECIDE_INPUT_BEHIND ||
		     state == DECIDE_INPUT_ELSEWHERE))
			r = add_misplaced(in, state, list);
	}
	return r;
}

static int add_change(const struct decide_input *in, enum incr_reason_code code,
		      const struct decide_change *change, const char *what,
		      struct reason_list *list)
{
	struct reason_facts facts = about(in, code, change->txn);
	char path[256];

	facts.count = change->count;
	facts.path = change->path;
	facts.path_length = change->path_length;
	name_escape(change->path, change->path_length, path, sizeof(path));
	if (change->count == 1)
		return reason_add(list, &facts,
				  "input %s: %s was read before and has been "
				  "%s by t%" PRIu64,
				  in->alias, path, what, change->txn);
	return reason_add(list, &facts,
			  "input %s: %" PRIu64
			  " files were read before and have been %s, the first "
			  "%s by t%" PRIu64,
			  in->alias, change->count, what, path, change->txn);
}

static int add_changes(const struct decide_settings *settings,
		       const struct decide_input *in, struct reason_list *list)
{
	int r = 0;

	if (in->modified.count)
		r = add_change(in, INCR_REASON_INPUT_MODIFIED, &in->modified,
			       "changed", list);
	if (r == 0 && in->removed_by_user.count &&
	    !settings->allow_user_deletes)
		r = add_change(in, INCR_REASON_INPUT_REMOVED_USER,
			       &in->removed_by_user, "removed by hand", list);
	if (r == 0 && in->removed_by_retention.count &&
	    !settings->allow_retention)
		r = add_change(in, INCR_REASON_INPUT_REMOVED_RETENTION,
			       &in->removed_by_retention,
			       "removed by retention", list);
	return r;
}

static int add_swapped(const struct decide_input *in, struct reason_list *list)
{
	struct reason_facts facts =
		about(in, INCR_REASON_INPUT_SWAPPED, in->head);

	return reason_add(list, &facts,
			  "input %s: %s is another dataset than the one the "
			  "last build read",
			  in->alias, in->dataset);
}

static int add_restarted(const struct decide_input *in,
			 struct reason_list *list)
{
	struct reason_facts facts =
		about(in, INCR_REASON_INPUT_SNAPSHOT, in->view_start);

	if (!in->view_start)
		return reason_add(list, &facts,
				  "input %s: it has no transaction, and the "
				  "last build read the view that starts with "
				  "t%" PRIu64,
				  in->alias, in->record_start);
	return reason_add(list, &facts,
			  "input %s: its view starts with t%" PRIu64
			  ", and the last build read the one that starts with "
			  "t%" PRIu64,
			  in->alias, in->view_start, in->record_start);
}

static int add_lost(const struct decide_input *in, struct reason_list *list)
{
	struct reason_facts facts =
		about(in, INCR_REASON_TRANSACTION_LOST, in->lost_txn);

	return reason_add(list, &facts,
			  "input %s: t%" PRIu64
			  " was lost since the last build, and nothing tells "
			  "what it changed",
			  in->alias, in->lost_txn);
}

int decide_inputs(const struct decide_facts *facts, struct reason_list *list)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_inputs && r == 0; i++) {
		const struct decide_input *in = &facts->inputs[i];

		switch (decide_input_state(in)) {
		case DECIDE_INPUT_SWAPPED:
			r = add_swapped(in, list);
			break;
		case DECIDE_INPUT_RESTARTED:
			r = add_restarted(in, list);
			break;
		case DECIDE_INPUT_LOST:
			r = add_lost(in, list);
			break;
		case DECIDE_INPUT_COMPARABLE:
			r = add_changes(&facts->settings, in, list);
			break;
		case DECIDE_INPUT_FREE:
		case DECIDE_INPUT_NEW:
		case DECIDE_INPUT_BEHIND:
		case DECIDE_INPUT_ELSEWHERE:
			break;
		}
	}
	return r;
}
