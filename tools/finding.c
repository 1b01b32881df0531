/*
 * What verify and repair found, as text and as JSON.
 */
#include "config.h"

#include "finding.h"

#include "out.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

static json_t *finding_json(const struct incr_finding *finding)
{
	json_t *json = json_object();

	out_put(json, "code", out_text(finding->word));
	out_put(json, "file", out_text(finding->file));
	out_put(json, "offset", out_u64(finding->off));
	out_put(json, "dataset", out_text(finding->dataset));
	out_put(json, "transaction", out_id('t', finding->txn));
	if (finding->path)
		out_put_path(json, finding->path, finding->path_length);
	else
		out_put(json, "path", NULL);
	out_put(json, "message", out_text(finding->message));
	out_put(json, "given_up", json_boolean(finding->is_given_up));
	return json;
}

static void finding_print(const struct incr_finding *finding)
{
	const char *separator = "";

	printf("%s: ", finding->word);
	if (finding->file) {
		printf("%s at byte %" PRIu64, finding->file, finding->off);
		separator = ", ";
	}
	if (finding->dataset) {
		printf("%s%s", separator, finding->dataset);
		separator = ", ";
	}
	if (finding->txn) {
		printf("%st%" PRIu64, separator, finding->txn);
		separator = ", ";
	}
	if (finding->path) {
		fputs(separator, stdout);
		out_quoted(finding->path, finding->path_length);
	}
	printf(": %s%s\n", finding->message ? finding->message : "damaged",
	       finding->is_given_up ? ", given up" : "");
}

void finding_out(json_t *findings, struct progress *progress,
		 const struct incr_finding *finding)
{
	if (findings) {
		(void)json_array_append_new(findings, finding_json(finding));
	} else {
		progress_clear(progress);
		finding_print(finding);
	}
}

void left_over_out(json_t *left_over, struct progress *progress,
		   const struct incr_finding *finding)
{
	struct text size;
	json_t *json;

	if (!left_over) {
		progress_clear(progress);
		printf("left over: %s (%s): %s\n", finding->file,
		       text_size(finding->size, &size), finding->message);
		return;
	}
	json = json_object();
	out_put(json, "file", out_text(finding->file));
	out_put(json, "bytes", out_u64(finding->size));
	(void)json_array_append_new(left_over, json);
}
