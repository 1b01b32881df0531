/*
 * Plans and builds for people.
 */
#include "config.h"

#include "plan_text.h"

#include "cleanup.h"
#include "exit.h"
#include "fail.h"
#include "out_txn.h"
#include "text.h"
#include "write_mode.h"

#include <inttypes.h>
#include <stdio.h>

/* "t4", or "-" for none. */
static const char *id(uint64_t txn, struct text *out)
{
	if (txn == 0)
		return "-";
	(void)snprintf(out->str, sizeof(out->str), "t%" PRIu64, txn);
	return out->str;
}

static void print_counts(const char *name, uint64_t n_files, uint64_t size)
{
	struct text files, bytes;

	printf("    %-9s %s, %s\n", name,
	       text_count(n_files, "file", "files", &files),
	       text_size(size, &bytes));
}

static void print_input(const struct incr_plan_input *input)
{
	struct text start, end, last, read;

	printf("input %s: %s:%s\n", input->alias, input->dataset,
	       input->branch ? input->branch : "main");
	printf("    view %s to %s, last run read to %s, this one reads to %s\n",
	       id(input->view_start, &start), id(input->view_end, &end),
	       id(input->last_read, &last), id(input->read_end, &read));
	print_counts("added", input->files.added, input->bytes.added);
	print_counts("previous", input->files.previous, input->bytes.previous);
	print_counts("current", input->files.current, input->bytes.current);
	if (input->files.modified > 0)
		print_counts("modified", input->files.modified,
			     input->bytes.modified);
	if (input->files.removed > 0)
		print_counts("removed", input->files.removed,
			     input->bytes.removed);
}

void plan_text_print(const struct incr_plan *plan)
{
	printf("%s: %s\n", plan->transform.name,
	       incr_decision_name(plan->decision));
	for (size_t i = 0; i < plan->n_reasons; i++)
		printf("reason %s: %s\n",
		       incr_reason_name(plan->reasons[i].code),
		       plan->reasons[i].message);
	for (size_t i = 0; i < plan->n_warnings; i++)
		printf("warning: %s\n", plan->warnings[i]);
	for (size_t i = 0; i < plan->n_inputs; i++)
		print_input(&plan->inputs[i]);
	for (size_t i = 0; i < plan->n_outputs; i++) {
		const struct incr_plan_output *output = &plan->outputs[i];

		printf("output %s: %s:%s, %s (%s)\n", output->alias,
		       output->dataset,
		       output->branch ? output->branch : "main",
		       write_mode_name(output->write_mode),
		       incr_txn_type_name(output->txn_type));
	}
}

void plan_text_say(const struct cli *cli, const struct incr_plan *plan)
{
	if (!plan->is_incremental)
		for (size_t i = 0; i < plan->n_reasons; i++)
			exit_note(cli, "not running incrementally: %s",
				  plan->reasons[i].message);
	for (size_t i = 0; i < plan->n_warnings; i++)
		exit_note(cli, "warning: %s", plan->warnings[i]);
}

int plan_text_fail(const struct incr_plan *plan, struct incr_error *err)
{
	const struct incr_reason *first =
		plan->n_reasons > 0 ? &plan->reasons[0] : NULL;

	if (plan->decision == INCR_DECISION_REFUSED)
		return fail(err, INCR_E_REFUSED, "require-incremental",
			    plan->transform.name,
			    "refused: an incremental run is required and not "
			    "possible");
	return fail(err, INCR_E_REFUSED,
		    first ? incr_reason_name(first->code) : "error",
		    plan->transform.name,
		    "cannot run: the inputs do not resolve");
}

char *plan_text_output(const struct incr_plan_output *output)
{
	_cleanup_free_ char *counts = out_txn_counts(
		output->txn_type, output->n_files, output->size, 0);
	char *line;
	int r;

	if (output->is_aborted || output->txn == 0)
		r = asprintf(&line, "%s: nothing committed", output->dataset);
	else
		r = asprintf(&line, "t%" PRIu64 " %s %s: %s", output->txn,
			     incr_txn_type_name(output->txn_type),
			     output->dataset, counts ? counts : "");
	return r < 0 ? NULL : line;
}
