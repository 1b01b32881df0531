/*
 * Names of what stands in plans and builds, and their release.
 */
#include "config.h"

#include "decide.h"
#include "fact.h"

#include <stdlib.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *name_at(const char *const *names, size_t n, int idx)
{
	return idx > 0 && (size_t)idx < n ? names[idx] : "unknown";
}

const char *incr_decision_name(enum incr_decision decision)
{
	static const char *const names[] = {
		[INCR_DECISION_INCREMENTAL] = "incremental",
		[INCR_DECISION_SNAPSHOT] = "snapshot",
		[INCR_DECISION_FRESH] = "fresh",
		[INCR_DECISION_REFUSED] = "refused",
		[INCR_DECISION_ERROR] = "error",
	};

	return name_at(names, N_OF(names), (int)decision);
}

const char *incr_reason_name(enum incr_reason_code code)
{
	static const char *const names[] = {
		[INCR_REASON_FIRST_BUILD] = "first-build",
		[INCR_REASON_OUTPUT_FOREIGN_COMMIT] = "output-foreign-commit",
		[INCR_REASON_OUTPUT_USER_DELETE] = "output-user-delete",
		[INCR_REASON_OUTPUT_RETENTION_DELETE] =
			"output-retention-delete",
		[INCR_REASON_PROVENANCE_INCONSISTENT] =
			"provenance-inconsistent",
		[INCR_REASON_SEMANTIC_VERSION] = "semantic-version",
		[INCR_REASON_V2_CHANGED] = "v2-changed",
		[INCR_REASON_FORCED] = "forced",
		[INCR_REASON_INPUT_SNAPSHOT] = "input-snapshot",
		[INCR_REASON_INPUT_MODIFIED] = "input-modified",
		[INCR_REASON_INPUT_REMOVED_USER] = "input-removed-user",
		[INCR_REASON_INPUT_REMOVED_RETENTION] =
			"input-removed-retention",
		[INCR_REASON_INPUT_SWAPPED] = "input-swapped",
		[INCR_REASON_PROCESSED_NOT_IN_VIEW] =
			"processed-transaction-not-in-view",
		[INCR_REASON_BRANCH_ORDER] = "branch-order",
		[INCR_REASON_LIMIT_BAD_TRANSACTION] = "limit-bad-transaction",
		[INCR_REASON_TRANSACTION_LOST] = "transaction-lost",
	};

	return name_at(names, N_OF(names), (int)code);
}

const char *incr_build_status_name(enum incr_build_status status)
{
	static const char *const names[] = {
		[INCR_BUILD_OPEN] = "open",
		[INCR_BUILD_COMMITTED] = "committed",
		[INCR_BUILD_ABORTED] = "aborted",
		[INCR_BUILD_FAILED] = "failed",
	};

	return name_at(names, N_OF(names), (int)status);
}

const char *incr_view_kind_name(enum incr_view_kind kind)
{
	static const char *const names[INCR_N_VIEW_KINDS] = {
		[INCR_VIEW_ADDED] = "added",
		[INCR_VIEW_PREVIOUS] = "previous",
		[INCR_VIEW_CURRENT] = "current",
		[INCR_VIEW_MODIFIED] = "modified",
		[INCR_VIEW_REMOVED] = "removed",
	};

	return (size_t)kind < INCR_N_VIEW_KINDS ? names[kind] : "unknown";
}

static void release_inputs(struct incr_plan *p)
{
	for (size_t i = 0; i < p->n_inputs; i++) {
		free(p->inputs[i].alias);
		free(p->inputs[i].dataset);
		free(p->inputs[i].branch);
	}
	free(p->inputs);
}

static void release_outputs(struct incr_plan *p)
{
	for (size_t i = 0; i < p->n_outputs; i++) {
		free(p->outputs[i].alias);
		free(p->outputs[i].dataset);
		free(p->outputs[i].branch);
		free(p->outputs[i].fork_parent);
	}
	free(p->outputs);
}

void incr_plan_release(struct incr_plan *p)
{
	struct decide_result lists = { .n_reasons = p->n_reasons,
				       .reasons = p->reasons,
				       .n_warnings = p->n_warnings,
				       .warnings = p->warnings };

	decide_result_release(&lists);
	release_inputs(p);
	release_outputs(p);
	incr_transform_release(&p->transform);
	*p = (struct incr_plan){ 0 };
}

void incr_build_info_release(struct incr_build_info *info)
{
	free(info->user);
	free(info->host);
	free(info->cwd);
	incr_pairs_release(&info->environment);
	incr_plan_release(&info->plan);
	incr_error_release(&info->error);
	*info = (struct incr_build_info){ 0 };
}

void incr_status_release(struct incr_status *s)
{
	free(s->transform);
	for (size_t i = 0; i < s->n_behind; i++)
		free(s->behind[i].alias);
	free(s->behind);
	*s = (struct incr_status){ 0 };
}
