/*
 * What the outputs say: never built, touched by others, or left behind by a
 * sibling (R74 to R78).
 */
#include "config.h"

#include "decide_reason.h"

#include <inttypes.h>

bool decide_all_unbuilt(const struct decide_facts *facts)
{
	for (size_t i = 0; i < facts->n_outputs; i++)
		if (facts->outputs[i].head)
			return false;
	return true;
}

bool decide_any_unbuilt(const struct decide_facts *facts)
{
	for (size_t i = 0; i < facts->n_outputs; i++)
		if (!facts->outputs[i].head)
			return true;
	return false;
}

static struct reason_facts about(const struct decide_output *out,
				 enum incr_reason_code code,
				 const struct decide_above *above)
{
	return (struct reason_facts){ .code = code,
				      .alias = out->alias,
				      .dataset = out->dataset,
				      .txn = above->txn,
				      .count = above->count };
}

static int add_above(const struct decide_output *out,
		     enum incr_reason_code code,
		     const struct decide_above *above, const char *what,
		     struct reason_list *list)
{
	struct reason_facts facts = about(out, code, above);

	if (above->count == 1)
		return reason_add(list, &facts, "output %s: t%" PRIu64 " %s",
				  out->alias, above->txn, what);
	return reason_add(list, &facts,
			  "output %s: %" PRIu64
			  " transactions since its last build, the newest "
			  "t%" PRIu64 ", %s",
			  out->alias, above->count, above->txn, what);
}

static int decide_foreign(const struct decide_output *out,
			  struct reason_list *list)
{
	struct decide_above head = { .count = 1, .txn = out->head };
	const struct decide_above *above = &out->foreign;

	/* History that holds no record of this transform is somebody else's. */
	if (!out->record_txn && !above->count && !out->user_deletes.count)
		above = &head;
	if (!above->count)
		return 0;
	return add_above(out, INCR_REASON_OUTPUT_FOREIGN_COMMIT, above,
			 "not made by this transform", list);
}

static int decide_output(const struct decide_facts *facts,
			 const struct decide_output *out,
			 struct reason_list *list)
{
	int r;

	if (!out->head)
		return 0; /* R76: exempt */

	r = decide_foreign(out, list);
	if (r == 0 && out->user_deletes.count)
		r = add_above(out, INCR_REASON_OUTPUT_USER_DELETE,
			      &out->user_deletes,
			      "removing files of it by hand", list);
	if (r == 0 && out->retention_deletes.count &&
	    !facts->settings.allow_retention)
		r = add_above(out, INCR_REASON_OUTPUT_RETENTION_DELETE,
			      &out->retention_deletes,
			      "removing files of it by retention", list);
	return r;
}

static int decide_provenance(const struct decide_output *out,
			     struct reason_list *list)
{
	struct decide_above record = { .count = 1, .txn = out->record_txn };
	struct reason_facts facts =
		about(out, INCR_REASON_PROVENANCE_INCONSISTENT, &record);

	if (!out->record_txn || !out->is_inconsistent)
		return 0;
	return reason_add(list, &facts,
			  "output %s: its last build, t%" PRIu64
			  ", did not read the same input as the last build of "
			  "the other outputs",
			  out->alias, out->record_txn);
}

int decide_outputs(const struct decide_facts *facts, struct reason_list *list)
{
	struct reason_facts first = { .code = INCR_REASON_FIRST_BUILD };
	int r = 0;

	if (decide_all_unbuilt(facts))
		return reason_add(list, &first,
				  "no output has been built before");

	for (size_t i = 0; i < facts->n_outputs && r == 0; i++)
		r = decide_output(facts, &facts->outputs[i], list);
	for (size_t i = 0; i < facts->n_outputs && r == 0; i++)
		r = decide_provenance(&facts->outputs[i], list);
	return r;
}
