/*
 * The report of a build, as text and as HTML.
 */
#include "config.h"

#include "report.h"

#include "cleanup.h"
#include "fail.h"
#include "plan_text.h"
#include "text.h"
#include "write_mode.h"

#include <inttypes.h>
#include <string.h>

static const char *id(uint64_t txn, struct text *out)
{
	if (txn == 0)
		return "-";
	(void)snprintf(out->str, sizeof(out->str), "t%" PRIu64, txn);
	return out->str;
}

static void text_head(FILE *to, const struct incr_build_info *info)
{
	struct text time;

	fprintf(to, "build:     b%" PRIu64 " %s%s\n", info->number,
		incr_build_status_name(info->status),
		info->is_orphaned ? " (orphan)" : "");
	fprintf(to, "transform: %s\n", info->plan.transform.name);
	fprintf(to, "started:   %s\n",
		text_time_short(info->started_ns, &time));
	if (info->ended_ns)
		fprintf(to, "ended:     %s\n",
			text_time_short(info->ended_ns, &time));
	if (info->user)
		fprintf(to, "by:        %s@%s\n", info->user,
			info->host ? info->host : "?");
	if (info->plan.transform.n_command > 0) {
		fputs("command:  ", to);
		for (size_t i = 0; i < info->plan.transform.n_command; i++) {
			const char *word = info->plan.transform.command[i];
			_cleanup_free_ char *quoted =
				text_quote(word, strlen(word));

			fprintf(to, " %s", quoted ? quoted : "?");
		}
		putc('\n', to);
	}
	if (info->exit_code >= 0)
		fprintf(to, "exit code: %d\n", info->exit_code);
	if (info->error.code != 0)
		fprintf(to, "error:     %s%s%s\n", info->error.message,
			info->error.thing[0] ? ": " : "", info->error.thing);
}

static void text_input(FILE *to, const struct incr_plan_input *input)
{
	struct text start, end, previous, last, read, files, size;

	fprintf(to, "input %s: %s:%s\n", input->alias, input->dataset,
		input->branch ? input->branch : "main");
	fprintf(to, "    view %s to %s, at the last run to %s\n",
		id(input->view_start, &start), id(input->view_end, &end),
		id(input->previous_end, &previous));
	fprintf(to, "    last run read to %s, this one to %s\n",
		id(input->last_read, &last), id(input->read_end, &read));
	fprintf(to, "    added %s, %s of %" PRIu64 "\n",
		text_count(input->files.added, "file", "files", &files),
		text_size(input->bytes.added, &size), input->files.current);
}

void report_text(FILE *to, const struct incr_build_info *info)
{
	const struct incr_plan *plan = &info->plan;

	text_head(to, info);
	fprintf(to, "decision:  %s\n", incr_decision_name(plan->decision));
	for (size_t i = 0; i < plan->n_reasons; i++)
		fprintf(to, "reason %s: %s\n",
			incr_reason_name(plan->reasons[i].code),
			plan->reasons[i].message);
	for (size_t i = 0; i < plan->n_inputs; i++)
		text_input(to, &plan->inputs[i]);
	for (size_t i = 0; i < plan->n_outputs; i++) {
		const struct incr_plan_output *output = &plan->outputs[i];
		_cleanup_free_ char *line = plan_text_output(output);

		fprintf(to, "output %s (%s): ", output->alias,
			write_mode_name(output->write_mode));
		if (info->status == INCR_BUILD_OPEN)
			fprintf(to, "%s\n", output->dataset);
		else
			fprintf(to, "%s\n", line ? line : "?");
	}
}

/* Text inside an element or a quoted attribute. */
static void put_escaped(FILE *to, const char *text)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", to);
			break;
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			putc(*text, to);
		}
	}
}

static void put_cell(FILE *to, const char *text)
{
	fputs("<td>", to);
	put_escaped(to, text);
	fputs("</td>", to);
}

static void html_reasons(FILE *to, const struct incr_plan *plan)
{
	if (plan->n_reasons == 0)
		return;
	fputs("<h2>Reasons</h2>\n<table>\n<tr><th>code</th><th>input</th>"
	      "<th>what</th></tr>\n",
	      to);
	for (size_t i = 0; i < plan->n_reasons; i++) {
		const struct incr_reason *reason = &plan->reasons[i];

		fputs("<tr>", to);
		put_cell(to, incr_reason_name(reason->code));
		put_cell(to, reason->alias);
		put_cell(to, reason->message);
		fputs("</tr>\n", to);
	}
	fputs("</table>\n", to);
}

static void html_inputs(FILE *to, const struct incr_plan *plan)
{
	struct text text;

	fputs("<h2>Inputs</h2>\n<table>\n<tr><th>input</th><th>dataset</th>"
	      "<th>view</th><th>to</th><th>last read</th><th>read to</th>"
	      "<th>added</th><th>current</th></tr>\n",
	      to);
	for (size_t i = 0; i < plan->n_inputs; i++) {
		const struct incr_plan_input *input = &plan->inputs[i];

		fputs("<tr>", to);
		put_cell(to, input->alias);
		put_cell(to, input->dataset);
		put_cell(to, id(input->view_start, &text));
		put_cell(to, id(input->view_end, &text));
		put_cell(to, id(input->last_read, &text));
		put_cell(to, id(input->read_end, &text));
		put_cell(to, text_count(input->files.added, "file", "files",
					&text));
		put_cell(to, text_count(input->files.current, "file", "files",
					&text));
		fputs("</tr>\n", to);
	}
	fputs("</table>\n", to);
}

static void html_outputs(FILE *to, const struct incr_plan *plan)
{
	struct text text;

	fputs("<h2>Outputs</h2>\n<table>\n<tr><th>output</th><th>dataset</th>"
	      "<th>type</th><th>transaction</th><th>files</th><th>size</th>"
	      "</tr>\n",
	      to);
	for (size_t i = 0; i < plan->n_outputs; i++) {
		const struct incr_plan_output *output = &plan->outputs[i];

		fputs("<tr>", to);
		put_cell(to, output->alias);
		put_cell(to, output->dataset);
		put_cell(to, incr_txn_type_name(output->txn_type));
		put_cell(to, id(output->txn, &text));
		put_cell(to,
			 text_count(output->n_files, "file", "files", &text));
		put_cell(to, text_size(output->size, &text));
		fputs("</tr>\n", to);
	}
	fputs("</table>\n", to);
}

static void html_page(FILE *to, const struct incr_build_info *info)
{
	const struct incr_plan *plan = &info->plan;
	struct text time;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	      "<meta charset=\"utf-8\">\n<title>",
	      to);
	put_escaped(to, plan->transform.name);
	fprintf(to,
		" b%" PRIu64 "</title>\n<style>\n"
		"body { font-family: sans-serif; margin: 2em; }\n"
		"td, th { text-align: left; padding: 0.2em 1em 0.2em 0; }\n"
		"</style>\n</head>\n<body>\n<h1>",
		info->number);
	put_escaped(to, plan->transform.name);
	fprintf(to, " b%" PRIu64 "</h1>\n<p>%s, %s; started %s", info->number,
		incr_decision_name(plan->decision),
		incr_build_status_name(info->status),
		text_time_short(info->started_ns, &time));
	if (info->ended_ns)
		fprintf(to, ", ended %s",
			text_time_short(info->ended_ns, &time));
	fputs(".</p>\n", to);
	html_reasons(to, plan);
	html_inputs(to, plan);
	html_outputs(to, plan);
	fputs("</body>\n</html>\n", to);
}

int report_html(const char *path, const struct incr_build_info *info,
		struct incr_error *err)
{
	FILE *to = fopen(path, "we");
	bool is_bad;

	if (!to)
		return fail_errno(err, path, "cannot write");
	html_page(to, info);
	is_bad = ferror(to) != 0;
	if (fclose(to) != 0 || is_bad)
		return fail_errno(err, path, "cannot write");
	return 0;
}
