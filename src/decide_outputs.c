/*
 * What the outputs say: never built, touched by others, or left behind by a
 * sibling (R74 to R78).
 */
#include "config.h"

#include "buf.h"
#include "decide_reason.h"

#include <inttypes.h>
#include <string.h>

bool decide_is_unbuilt(const struct decide_facts *facts,
		       const struct decide_output *out)
{
	return !out->record_txn && !out->foreign.count &&
	       !out->user_deletes.count &&
	       (!out->retention_deletes.count ||
		facts->settings.allow_retention);
}

bool decide_all_unbuilt(const struct decide_facts *facts)
{
	for (size_t i = 0; i < facts->n_outputs; i++)
		if (!decide_is_unbuilt(facts, &facts->outputs[i]))
			return false;
	return true;
}

bool decide_any_unbuilt(const struct decide_facts *facts)
{
	for (size_t i = 0; i < facts->n_outputs; i++)
		if (decide_is_unbuilt(facts, &facts->outputs[i]))
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

static int add_lost(const struct decide_output *out, struct reason_list *list)
{
	struct decide_above lost = { 1, out->lost_txn };
	struct reason_facts facts =
		about(out, INCR_REASON_TRANSACTION_LOST, &lost);

	return reason_add(list, &facts,
			  "output %s: t%" PRIu64
			  " was lost since the last build, and nothing tells "
			  "what it changed",
			  out->alias, lost.txn);
}

static int decide_output(const struct decide_facts *facts,
			 const struct decide_output *out,
			 struct reason_list *list)
{
	int r = 0;

	if (out->lost_txn)
		r = add_lost(out, list);
	if (r == 0 && out->foreign.count)
		r = add_above(out, INCR_REASON_OUTPUT_FOREIGN_COMMIT,
			      &out->foreign, "not made by this transform",
			      list);
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

/* The outputs that are behind, as one text; NULL when memory ran out. */
static char *list_inconsistent(const struct decide_facts *facts,
			       struct reason_facts *about_all)
{
	struct buf text = BUF_INIT;
	int r = 0;

	for (size_t i = 0; i < facts->n_outputs && r == 0; i++) {
		const struct decide_output *out = &facts->outputs[i];

		if (!out->record_txn || !out->is_inconsistent)
			continue;
		if (about_all->count++)
			r = buf_put(&text, ", ", 2);
		if (r == 0)
			r = buf_put(&text, out->alias, strlen(out->alias));
		if (out->record_txn > about_all->txn)
			about_all->txn = out->record_txn;
	}
	if (r == 0)
		r = buf_put_u8(&text, 0);
	if (r < 0)
		buf_release(&text);
	return (char *)text.data;
}

/* One reason for all of them: it is about how they stand to each other. */
static int decide_provenance(const struct decide_facts *facts,
			     struct reason_list *list)
{
	struct reason_facts about_all = {
		.code = INCR_REASON_PROVENANCE_INCONSISTENT
	};
	_cleanup_free_ char *names = list_inconsistent(facts, &about_all);

	if (!names)
		return INCR_E_NOMEM;
	if (!about_all.count)
		return 0;
	return reason_add(list, &about_all,
			  "outputs do not come from the same input: %s %s "
			  "behind the last build (t%" PRIu64 ")",
			  names, about_all.count == 1 ? "is" : "are",
			  about_all.txn);
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
	return r < 0 ? r : decide_provenance(facts, list);
}
