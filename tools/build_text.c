/*
 * How a build ended.
 */
#include "config.h"

#include "build_text.h"

#include "cleanup.h"
#include "fail.h"
#include "json_plan.h"
#include "plan_text.h"

#include <inttypes.h>
#include <string.h>

void build_text_result(FILE *to, const struct incr_build_info *info)
{
	if (info->status == INCR_BUILD_ABORTED) {
		fprintf(to, "b%" PRIu64 " aborted: nothing committed\n",
			info->number);
		return;
	}
	for (size_t i = 0; i < info->plan.n_outputs; i++) {
		_cleanup_free_ char *line =
			plan_text_output(&info->plan.outputs[i]);

		fprintf(to, "%s\n", line ? line : "?");
	}
}

void build_text_hint(struct incr_error *err, uint64_t number)
{
	size_t length = strlen(err->hint);

	if (strstr(err->hint, "build commit"))
		return;
	(void)snprintf(err->hint + length, sizeof(err->hint) - length,
		       "%sincrctl build commit b%" PRIu64
		       ", or incrctl build abort b%" PRIu64,
		       length > 0 ? "; then " : "", number, number);
}

char *build_text_json(struct incr_store *st, uint64_t number,
		      const struct incr_plan *plan, struct incr_error *err)
{
	_cleanup_build_info_ struct incr_build_info info = { 0 };
	_cleanup_json_ json_t *json = NULL;
	char *text;

	if (number == 0)
		json = json_plan_unbuilt(plan);
	else if (incr_build_find(st, number, &info, err) < 0)
		return NULL;
	else
		json = json_build(&info);
	text = json_dumps(json, JSON_COMPACT);
	if (!text)
		(void)fail_nomem(err);
	return text;
}
