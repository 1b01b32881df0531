/*
 * Plans and builds as JSON.
 */
#include "config.h"

#include "json_plan.h"

#include "exit.h"
#include "out.h"
#include "write_mode.h"

static json_t *reason_json(const struct incr_reason *reason)
{
	json_t *json = json_object();

	out_put(json, "code", out_text(incr_reason_name(reason->code)));
	out_put(json, "alias", out_text(reason->alias));
	out_put(json, "dataset", out_text(reason->dataset));
	out_put(json, "transaction", out_id('t', reason->txn));
	if (reason->path)
		out_put_path(json, reason->path, reason->path_length);
	else
		out_put(json, "path", NULL);
	out_put(json, "count", reason->count ? out_u64(reason->count) : NULL);
	out_put(json, "message", out_text(reason->message));
	return json;
}

static json_t *counts_json(const struct incr_view_counts *counts)
{
	json_t *json = json_object();

	out_put(json, "added", out_u64(counts->added));
	out_put(json, "previous", out_u64(counts->previous));
	out_put(json, "current", out_u64(counts->current));
	out_put(json, "modified", out_u64(counts->modified));
	out_put(json, "removed", out_u64(counts->removed));
	return json;
}

static const char *kind_name(enum incr_input_kind kind)
{
	switch (kind) {
	case INCR_INPUT_NORMAL:
		return "normal";
	case INCR_INPUT_SNAPSHOT:
		return "snapshot";
	case INCR_INPUT_LIMITED:
		return "limited";
	}
	return NULL;
}

static json_t *input_json(const struct incr_plan_input *input)
{
	json_t *json = json_object();

	out_put(json, "dataset", out_text(input->dataset));
	out_put(json, "branch", out_text(input->branch));
	out_put(json, "kind", out_text(kind_name(input->kind)));
	out_put(json, "transaction_limit",
		input->transaction_limit ? out_u64(input->transaction_limit) :
					   NULL);
	out_put(json, "view_start", out_id('t', input->view_start));
	out_put(json, "view_end", out_id('t', input->view_end));
	out_put(json, "previous_end", out_id('t', input->previous_end));
	out_put(json, "last_read", out_id('t', input->last_read));
	out_put(json, "read_end", out_id('t', input->read_end));
	out_put(json, "files", counts_json(&input->files));
	out_put(json, "bytes", counts_json(&input->bytes));
	return json;
}

static json_t *output_json(const struct incr_plan_output *output)
{
	json_t *json = json_object();

	out_put(json, "dataset", out_text(output->dataset));
	out_put(json, "branch", out_text(output->branch));
	out_put(json, "write_mode",
		out_text(write_mode_name(output->write_mode)));
	out_put(json, "transaction_type",
		out_text(incr_txn_type_name(output->txn_type)));
	out_put(json, "head", out_id('t', output->head));
	return json;
}

json_t *json_plan(const struct incr_plan *plan)
{
	json_t *json = json_object(), *reasons = json_array(),
	       *inputs = json_object(), *outputs = json_object(),
	       *warnings = json_array();

	for (size_t i = 0; i < plan->n_reasons; i++)
		(void)json_array_append_new(reasons,
					    reason_json(&plan->reasons[i]));
	for (size_t i = 0; i < plan->n_inputs; i++)
		out_put(inputs, plan->inputs[i].alias,
			input_json(&plan->inputs[i]));
	for (size_t i = 0; i < plan->n_outputs; i++)
		out_put(outputs, plan->outputs[i].alias,
			output_json(&plan->outputs[i]));
	for (size_t i = 0; i < plan->n_warnings; i++)
		(void)json_array_append_new(warnings,
					    out_text(plan->warnings[i]));

	out_put(json, "transform", out_text(plan->transform.name));
	out_put(json, "decision", out_text(incr_decision_name(plan->decision)));
	out_put(json, "is_incremental", json_boolean(plan->is_incremental));
	out_put(json, "reasons", reasons);
	out_put(json, "inputs", inputs);
	out_put(json, "outputs", outputs);
	out_put(json, "warnings", warnings);
	return json;
}

static json_t *command_json(const struct incr_transform *transform)
{
	json_t *command = json_array();

	for (size_t i = 0; i < transform->n_command; i++)
		(void)json_array_append_new(command,
					    out_text(transform->command[i]));
	return command;
}

json_t *json_plan_unbuilt(const struct incr_plan *plan)
{
	json_t *json = json_plan(plan);

	out_put(json, "build", NULL);
	out_put(json, "status", NULL);
	out_put(json, "exit_code", NULL);
	out_put(json, "started", NULL);
	out_put(json, "ended", NULL);
	out_put(json, "command", command_json(&plan->transform));
	return json;
}

/* What a build adds to the plan of an output. */
static void put_result(json_t *outputs, const struct incr_plan_output *output,
		       bool has_ended)
{
	json_t *json = json_object_get(outputs, output->alias);

	out_put(json, "transaction", out_id('t', output->txn));
	out_put(json, "aborted", json_boolean(output->is_aborted));
	out_put(json, "files", has_ended ? out_u64(output->n_files) : NULL);
	out_put(json, "bytes", has_ended ? out_u64(output->size) : NULL);
}

json_t *json_build(const struct incr_build_info *info)
{
	const struct incr_plan *plan = &info->plan;
	json_t *json = json_plan(plan);

	for (size_t i = 0; i < plan->n_outputs; i++)
		put_result(json_object_get(json, "outputs"), &plan->outputs[i],
			   info->status != INCR_BUILD_OPEN);
	out_put(json, "build", out_id('b', info->number));
	out_put(json, "status", out_text(incr_build_status_name(info->status)));
	out_put(json, "exit_code",
		info->exit_code >= 0 ? json_integer(info->exit_code) : NULL);
	out_put(json, "started", out_time(info->started_ns));
	out_put(json, "ended", out_time(info->ended_ns));
	out_put(json, "command", command_json(&plan->transform));
	out_put(json, "orphaned", json_boolean(info->is_orphaned));
	out_put(json, "preview", json_boolean(info->is_preview));
	out_put(json, "user", out_text(info->user));
	out_put(json, "host", out_text(info->host));
	out_put(json, "directory", out_text(info->cwd));
	out_put(json, "environment", out_pairs(&info->environment));
	if (info->error.code != 0)
		out_put(json, "error", exit_error_json(&info->error));
	return json;
}

json_t *json_build_row(const struct incr_build_info *info)
{
	json_t *json = json_object();

	out_put(json, "build", out_id('b', info->number));
	out_put(json, "transform", out_text(info->plan.transform.name));
	out_put(json, "status", out_text(incr_build_status_name(info->status)));
	out_put(json, "decision",
		out_text(incr_decision_name(info->plan.decision)));
	out_put(json, "started", out_time(info->started_ns));
	out_put(json, "ended", out_time(info->ended_ns));
	out_put(json, "orphaned", json_boolean(info->is_orphaned));
	out_put(json, "exit_code",
		info->exit_code >= 0 ? json_integer(info->exit_code) : NULL);
	return json;
}
