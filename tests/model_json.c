/*
 * Plans, builds and transactions as the JSON that model_driver answers, with
 * the keys that incrctl uses.
 */
#include "config.h"

#include "model_json.h"

void put_text(FILE *out, const char *text)
{
	if (text == NULL) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if ((unsigned char)*p < ' ')
			fprintf(out, "\\u%04x", *p);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

void put_key_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":", key);
	put_text(out, text);
	fputc(',', out);
}

/* A transaction as incrctl prints it. */
static void put_key_txn(FILE *out, const char *key, uint64_t txn)
{
	if (txn == 0)
		fprintf(out, "\"%s\":null,", key);
	else
		fprintf(out, "\"%s\":\"t%llu\",", key, (unsigned long long)txn);
}

void put_txn_info(FILE *out, const struct incr_txn_info *info)
{
	fputc('{', out);
	put_key_txn(out, "transaction", info->number);
	put_key_text(out, "type", incr_txn_type_name(info->type));
	put_key_text(out, "status", incr_txn_status_name(info->status));
	put_key_text(out, "origin", info->origin);
	fprintf(out, "\"files\":%llu,\"removed\":%llu}",
		(unsigned long long)info->n_files,
		(unsigned long long)info->n_removed);
}

int put_view(FILE *out, struct incr_view *view, struct incr_error *err)
{
	struct incr_view_iter *it = NULL;
	struct incr_node node = INCR_NODE_INIT;
	const char *comma = "";

	int r = incr_view_iter_new(view, NULL, 0, &it, err);
	if (r < 0)
		return r;

	fputc('{', out);
	while ((r = incr_view_iter_next(it, &node, err)) == 0) {
		fputs(comma, out);
		put_text(out, node.path);
		fprintf(out, ":[%llu,\"%04o\"]", (unsigned long long)node.txn,
			node.mode);
		comma = ",";
	}
	fputc('}', out);
	incr_node_release(&node);
	incr_view_iter_free(it);
	return r < 0 ? r : 0;
}

static void put_reasons(FILE *out, const struct incr_plan *plan)
{
	fputs("\"reasons\":[", out);
	for (size_t i = 0; i < plan->n_reasons; i++) {
		const struct incr_reason *reason = &plan->reasons[i];

		fputs(i == 0 ? "{" : ",{", out);
		put_key_text(out, "code", incr_reason_name(reason->code));
		put_key_text(out, "alias", reason->alias);
		put_key_text(out, "dataset", reason->dataset);
		put_key_txn(out, "transaction", reason->txn);
		put_key_text(out, "path", reason->path);
		fprintf(out, "\"count\":%llu}",
			(unsigned long long)reason->count);
	}
	fputs("],", out);
}

static void put_inputs(FILE *out, const struct incr_plan *plan)
{
	static const char *const kinds[] = { "", "normal", "snapshot",
					     "limited" };

	fputs("\"inputs\":{", out);
	for (size_t i = 0; i < plan->n_inputs; i++) {
		const struct incr_plan_input *in = &plan->inputs[i];

		fputs(i == 0 ? "" : ",", out);
		put_text(out, in->alias);
		fputs(":{", out);
		put_key_text(out, "dataset", in->dataset);
		put_key_text(out, "branch", in->branch);
		put_key_text(out, "kind", kinds[in->kind]);
		put_key_txn(out, "view_start", in->view_start);
		put_key_txn(out, "view_end", in->view_end);
		put_key_txn(out, "previous_end", in->previous_end);
		put_key_txn(out, "last_read", in->last_read);
		put_key_txn(out, "read_end", in->read_end);
		fprintf(out,
			"\"files\":{\"added\":%llu,\"previous\":%llu,\"current\":%llu,"
			"\"modified\":%llu,\"removed\":%llu}}",
			(unsigned long long)in->files.added,
			(unsigned long long)in->files.previous,
			(unsigned long long)in->files.current,
			(unsigned long long)in->files.modified,
			(unsigned long long)in->files.removed);
	}
	fputs("},", out);
}

static void put_outputs(FILE *out, const struct incr_plan *plan)
{
	static const char *const modes[] = { "default", "modify", "replace",
					     "append" };

	fputs("\"outputs\":{", out);
	for (size_t i = 0; i < plan->n_outputs; i++) {
		const struct incr_plan_output *o = &plan->outputs[i];

		fputs(i == 0 ? "" : ",", out);
		put_text(out, o->alias);
		fputs(":{", out);
		put_key_text(out, "dataset", o->dataset);
		put_key_text(out, "branch", o->branch);
		put_key_txn(out, "transaction", o->txn);
		put_key_text(out, "write_mode", modes[o->write_mode]);
		put_key_text(out, "transaction_type",
			     incr_txn_type_name(o->txn_type));
		fputs("\"end\":0}", out);
	}
	fputs("},", out);
}

void put_plan(FILE *out, const struct incr_plan *plan)
{
	put_key_text(out, "decision", incr_decision_name(plan->decision));
	fprintf(out, "\"is_incremental\":%s,",
		plan->is_incremental ? "true" : "false");
	put_reasons(out, plan);
	put_inputs(out, plan);
	put_outputs(out, plan);
}

void put_build_info(FILE *out, const struct incr_build_info *info)
{
	fprintf(out, "{\"build\":\"b%llu\",", (unsigned long long)info->number);
	put_key_text(out, "status", incr_build_status_name(info->status));
	put_plan(out, &info->plan);
	fputs("\"end\":0}", out);
}
