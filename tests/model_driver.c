/*
 * The store on a leash: executes requests from standard input, one a line with
 * fields separated by tabs, and answers each with one line of JSON.  It lets
 * tests/model/drive.py do thousands of steps a second in one process; the
 * tests of incrctl itself go the long way.  See the table at the end.
 */
#include "config.h"

#include "incr.h"
#include "model_json.h"
#include "model_transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 128

struct driver {
	struct incr_store *st;
	struct incr_transform transform;
	struct incr_build *build; /* the one that runs; NULL: none */
	FILE *out; /* the answer, dropped when the request fails */
	size_t n_args;
	char *args[MAX_FIELDS];
	struct incr_error err;
};

static bool has_flag(const struct driver *d, size_t idx, char flag)
{
	return idx < d->n_args && strchr(d->args[idx], flag) != NULL;
}

static uint64_t number_of(const char *text)
{
	return strtoull(text, NULL, 10);
}

static int find_dataset(struct driver *d, const char *name, uint64_t *out_id)
{
	struct incr_dataset_info info;

	int r = incr_dataset_find(d->st, name, &info, &d->err);
	if (r < 0)
		return r;
	*out_id = info.id;
	incr_dataset_info_release(&info);
	return 0;
}

static int find_head(struct driver *d, uint64_t *out_dataset,
		     uint64_t *out_head)
{
	struct incr_branch_info info;

	int r = find_dataset(d, d->args[1], out_dataset);
	if (r < 0)
		return r;
	if (d->args[2][0] == '@') {
		*out_head = number_of(d->args[2] + 2);
		return 0;
	}
	r = incr_branch_find(d->st, *out_dataset, d->args[2], &info, &d->err);
	if (r < 0)
		return r;
	*out_head = info.head;
	incr_branch_info_release(&info);
	return 0;
}

static int do_open(struct driver *d)
{
	struct incr_store_options options = { .wait_ms = 5000 };

	int r = incr_store_init(d->args[1], &d->err);
	if (r < 0)
		return r;
	r = incr_store_open(d->args[1], &options, &d->st, &d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static int do_create(struct driver *d)
{
	uint64_t id;

	int r = incr_dataset_create(d->st, d->args[1], NULL, NULL, &id,
				    &d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static enum incr_txn_type type_of(const char *text)
{
	for (int type = INCR_SNAPSHOT; type <= INCR_DELETE; type++)
		if (strcmp(text, incr_txn_type_name(type)) == 0)
			return type;
	return INCR_DELETE;
}

static int txn_options(struct driver *d, struct incr_txn_options *options)
{
	*options = (struct incr_txn_options){
		.branch = d->args[2],
		.type = type_of(d->args[3]),
		.origin = d->args[4],
		.rewrites = has_flag(d, 5, 'r'),
		.skips_empty = has_flag(d, 5, 's'),
	};
	return find_dataset(d, d->args[1], &options->dataset_id);
}

static int do_commit(struct driver *d)
{
	struct incr_source source = { .kind = INCR_SOURCE_PATH,
				      .path = d->args[6],
				      .fd = -1 };
	struct incr_txn_options options;
	struct incr_txn_info info;

	int r = txn_options(d, &options);
	if (r < 0)
		return r;
	r = incr_commit(d->st, &options, &source, 1, &info, &d->err);
	if (r == 0) {
		put_txn_info(d->out, &info);
		incr_txn_info_release(&info);
	} else if (r > 0) {
		fputs("{\"transaction\":null}", d->out);
	}
	return r < 0 ? r : 0;
}

static int do_remove(struct driver *d)
{
	struct incr_remove_flags flags = { .ignores_missing =
						   has_flag(d, 5, 'i') };
	struct incr_txn_options options;
	struct incr_txn_info info;

	int r = txn_options(d, &options);
	if (r < 0)
		return r;
	r = incr_remove(d->st, &options, (const char *const *)d->args + 6,
			d->n_args - 6, flags, &info, &d->err);
	if (r == 0) {
		put_txn_info(d->out, &info);
		incr_txn_info_release(&info);
	} else if (r > 0) {
		fputs("{\"transaction\":null}", d->out);
	}
	return r < 0 ? r : 0;
}

static int do_begin(struct driver *d)
{
	struct incr_txn_options options;
	uint64_t number;

	int r = txn_options(d, &options);
	if (r < 0)
		return r;
	r = incr_txn_begin(d->st, &options, &number, &d->err);
	if (r == 0)
		fprintf(d->out, "{\"transaction\":\"t%llu\"}",
			(unsigned long long)number);
	return r;
}

static int do_put(struct driver *d)
{
	struct incr_source source = { .kind = INCR_SOURCE_PATH,
				      .path = d->args[3],
				      .fd = -1 };

	int r = incr_txn_put(d->st, number_of(d->args[1]), d->args[2], &source,
			     has_flag(d, 4, 'o'), &d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static int do_unput(struct driver *d)
{
	int r = incr_txn_remove(d->st, number_of(d->args[1]), d->args[2],
				&d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static int do_commit_txn(struct driver *d)
{
	struct incr_txn_info info;

	int r = incr_txn_commit(d->st, number_of(d->args[1]), false, &info,
				&d->err);
	if (r == 0) {
		put_txn_info(d->out, &info);
		incr_txn_info_release(&info);
	}
	return r;
}

static int do_abort_txn(struct driver *d)
{
	int r = incr_txn_abort(d->st, number_of(d->args[1]), &d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static int do_branch(struct driver *d)
{
	const char *name = d->args[2];
	uint64_t dataset;

	int r = find_dataset(d, d->args[1], &dataset);
	if (r < 0)
		return r;
	uint64_t at = d->n_args > 3 ? number_of(d->args[3]) : 0;
	if (strcmp(d->args[0], "branch-create") == 0)
		r = incr_branch_create(d->st, dataset, name, NULL, at, &d->err);
	else if (strcmp(d->args[0], "branch-reset") == 0)
		r = incr_branch_reset(d->st, dataset, name, at, &d->err);
	else
		r = incr_branch_delete(d->st, dataset, name, &d->err);
	if (r == 0)
		fputs("{}", d->out);
	return r;
}

static int do_ls(struct driver *d)
{
	struct incr_view *view = NULL;
	uint64_t dataset, head;

	int r = find_head(d, &dataset, &head);
	if (r < 0)
		return r;
	r = incr_view_open(d->st, dataset, head, &view, &d->err);
	if (r < 0)
		return r;
	r = put_view(d->out, view, &d->err);
	incr_view_unref(view);
	return r;
}

static int put_changes(struct driver *d, struct incr_changes *changes)
{
	static const char *const names[] = { "", "added", "modified",
					     "removed" };
	struct incr_node node = INCR_NODE_INIT;
	enum incr_change change;
	const char *comma = "";
	uint64_t txn;
	int r;

	fputc('{', d->out);
	while ((r = incr_changes_next(changes, &change, &node, &txn,
				      &d->err)) == 0) {
		fputs(comma, d->out);
		put_text(d->out, node.path);
		fprintf(d->out, ":[\"%s\",%llu]", names[change],
			(unsigned long long)txn);
		comma = ",";
	}
	fputc('}', d->out);
	incr_node_release(&node);
	return r < 0 ? r : 0;
}

static int do_diff(struct driver *d)
{
	struct incr_view *from = NULL, *to = NULL;
	struct incr_changes *changes = NULL;
	uint64_t dataset;

	int r = find_dataset(d, d->args[1], &dataset);
	if (r == 0)
		r = incr_view_open(d->st, dataset, number_of(d->args[2]), &from,
				   &d->err);
	if (r == 0)
		r = incr_view_open(d->st, dataset, number_of(d->args[3]), &to,
				   &d->err);
	if (r == 0)
		r = incr_changes_new(from, to, &changes, &d->err);
	if (r == 0)
		r = put_changes(d, changes);
	if (changes != NULL)
		incr_changes_free(changes);
	if (to != NULL)
		incr_view_unref(to);
	if (from != NULL)
		incr_view_unref(from);
	return r;
}

static int put_log_line(void *closure, const struct incr_txn_info *info)
{
	FILE *out = closure;

	put_txn_info(out, info);
	fputc(',', out);
	return 0;
}

static int do_log(struct driver *d)
{
	uint64_t dataset, head;

	int r = find_head(d, &dataset, &head);
	if (r < 0)
		return r;
	fputc('[', d->out);
	r = incr_txn_log(d->st, head, 0, put_log_line, d->out, &d->err);
	fputs("null]", d->out);
	return r;
}

static int do_transform(struct driver *d)
{
	incr_transform_release(&d->transform);
	d->transform = (struct incr_transform){ .name = strdup(d->args[1]) };
	for (size_t i = 2; i < d->n_args; i++)
		model_transform_set(&d->transform, d->args[i]);
	fputs("{}", d->out);
	return 0;
}

static struct incr_plan_options plan_options(const struct driver *d)
{
	return (struct incr_plan_options){
		.is_forced = has_flag(d, 1, 'f'),
		.forces_snapshot = has_flag(d, 1, 's'),
		.is_skip = has_flag(d, 1, 'k'),
		.ignores_command = has_flag(d, 1, 'c'),
	};
}

static int do_plan(struct driver *d)
{
	struct incr_plan_options options = plan_options(d);
	struct incr_plan plan;

	int r = incr_plan_make(d->st, &d->transform, &options, &plan, &d->err);
	if (r < 0)
		return r;
	fputc('{', d->out);
	put_plan(d->out, &plan);
	fputs("\"end\":0}", d->out);
	incr_plan_release(&plan);
	return 0;
}

static int put_views(struct driver *d, const struct incr_plan *plan)
{
	int r = 0;

	fputs("\"views\":{", d->out);
	for (size_t i = 0; r == 0 && i < plan->n_inputs; i++) {
		fputs(i == 0 ? "" : ",", d->out);
		put_text(d->out, plan->inputs[i].alias);
		for (enum incr_view_kind k = 0; r == 0 && k < INCR_N_VIEW_KINDS;
		     k++) {
			fprintf(d->out, "%s\"%s\":", k == 0 ? ":{" : ",",
				incr_view_kind_name(k));
			r = put_view(d->out,
				     incr_build_input_view(d->build, i, k),
				     &d->err);
		}
		fputc('}', d->out);
	}
	for (size_t i = 0; r == 0 && i < plan->n_outputs; i++) {
		fputc(',', d->out);
		put_text(d->out, plan->outputs[i].alias);
		fputs(":{\"previous\":", d->out);
		r = put_view(d->out, incr_build_output_previous(d->build, i),
			     &d->err);
		fputs(",\"base\":", d->out);
		if (r == 0)
			r = put_view(d->out,
				     incr_build_output_base(d->build, i),
				     &d->err);
		fputc('}', d->out);
	}
	fputs("},\"staging\":{", d->out);
	for (size_t i = 0; i < plan->n_outputs; i++) {
		fputs(i == 0 ? "" : ",", d->out);
		put_text(d->out, plan->outputs[i].alias);
		fputc(':', d->out);
		put_text(d->out, incr_build_staging(d->build, i));
	}
	fputs("},", d->out);
	return r;
}

static int do_build(struct driver *d)
{
	struct incr_plan_options options = plan_options(d);
	struct incr_build_options more = { .cwd = "/",
					   .is_preview = has_flag(d, 1, 'p') };
	struct incr_plan plan;

	int r = incr_build_begin(d->st, &d->transform, &options, &more,
				 &d->build, &plan, &d->err);
	if (r < 0)
		return r;
	fputc('{', d->out);
	put_plan(d->out, &plan);
	if (d->build != NULL) {
		r = put_views(d, &plan);
		fprintf(d->out, "\"build\":\"b%llu\",",
			(unsigned long long)incr_build_number(d->build));
	}
	fputs("\"end\":0}", d->out);
	incr_plan_release(&plan);
	return r;
}

static int do_abort_output(struct driver *d)
{
	const struct incr_plan *plan = incr_build_plan(d->build);

	for (size_t i = 0; i < plan->n_outputs; i++) {
		if (strcmp(plan->outputs[i].alias, d->args[1]) == 0) {
			int r = incr_build_abort_output(d->build, i, &d->err);
			if (r < 0)
				return r;
		}
	}
	fputs("{}", d->out);
	return 0;
}

/* End the build that runs, or adopt another: commit, abort, fail or leave. */
static int do_end(struct driver *d)
{
	struct incr_commit_build_options options = { .exit_code = 0 };
	struct incr_build_info info;
	int r = 0;

	if (d->n_args > 3)
		r = incr_build_adopt(d->st, number_of(d->args[3]), &d->build,
				     &d->err);
	if (r < 0)
		return r;
	options.allows_empty = has_flag(d, 2, 'a');
	if (strcmp(d->args[1], "commit") == 0)
		r = incr_build_commit(d->build, &options, &info, &d->err);
	else if (strcmp(d->args[1], "leave") != 0)
		r = incr_build_abort(d->build, d->args[1][0] == 'f', 3, &info,
				     &d->err);
	incr_build_close(d->build);
	d->build = NULL;
	if (r < 0)
		return r;
	if (strcmp(d->args[1], "leave") == 0) {
		fputs("{}", d->out);
		return 0;
	}
	put_build_info(d->out, &info);
	incr_build_info_release(&info);
	return 0;
}

static int do_status(struct driver *d)
{
	static const char *const names[] = { "", "fresh", "stale", "never" };
	struct incr_status status;

	int r = incr_status_get(d->st, d->args[1], &status, &d->err);
	if (r < 0)
		return r;
	fputc('{', d->out);
	put_key_text(d->out, "state", names[status.freshness]);
	fputs("\"behind\":{", d->out);
	for (size_t i = 0; i < status.n_behind; i++) {
		fputs(i == 0 ? "" : ",", d->out);
		put_text(d->out, status.behind[i].alias);
		fprintf(d->out, ":{\"transactions\":%llu,\"files\":%llu}",
			(unsigned long long)status.behind[i].n_txns,
			(unsigned long long)status.behind[i].n_files);
	}
	fputs("}}", d->out);
	incr_status_release(&status);
	return 0;
}

static const struct request {
	const char *name;
	size_t n_fields; /* at least, with the name */
	int (*run)(struct driver *d);
} requests[] = {
	{ "open", 2, do_open }, /* DIR: new */
	{ "create", 2, do_create }, /* DATASET */
	{ "commit", 7, do_commit }, /* DATASET BRANCH TYPE ORIGIN [rs]- DIR */
	{ "rm", 6, do_remove }, /* DATASET BRANCH DELETE ORIGIN [i]- PATH... */
	{ "begin", 5, do_begin }, /* DATASET BRANCH TYPE ORIGIN */
	{ "put", 5, do_put }, /* N PATH FILE [o]- */
	{ "unput", 3, do_unput }, /* N PATH */
	{ "commit-txn", 2, do_commit_txn }, /* N */
	{ "abort-txn", 2, do_abort_txn }, /* N */
	{ "branch-create", 4, do_branch }, /* DATASET NAME N */
	{ "branch-reset", 4, do_branch }, /* DATASET NAME N */
	{ "branch-delete", 3, do_branch }, /* DATASET NAME */
	{ "ls", 3, do_ls }, /* DATASET BRANCH|@tN */
	{ "diff", 4, do_diff }, /* DATASET N N */
	{ "log", 3, do_log }, /* DATASET BRANCH */
	{ "transform", 2,
	  do_transform }, /* NAME KEY=VALUE...: for what follows */
	{ "plan", 2, do_plan }, /* [fskc]- */
	{ "build", 2, do_build }, /* [fskp]- */
	{ "abort-output", 2, do_abort_output }, /* ALIAS */
	{ "end", 3, do_end }, /* commit|abort|fail|leave [a]- [N] */
	{ "status", 2, do_status }, /* TRANSFORM */
};

static int execute(struct driver *d, char *line)
{
	d->n_args = 0;
	while (line != NULL && d->n_args < MAX_FIELDS)
		d->args[d->n_args++] = strsep(&line, "\t");
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		const struct request *request = &requests[i];

		if (strcmp(request->name, d->args[0]) == 0 &&
		    d->n_args >= request->n_fields)
			return request->run(d);
	}
	return INCR_E_INVALID;
}

static void answer(struct driver *d, char *line)
{
	char *text = NULL;
	size_t size = 0;

	d->out = open_memstream(&text, &size);
	if (d->out == NULL)
		abort();
	int r = execute(d, line);
	fclose(d->out);
	if (r < 0) {
		fputs("{\"error\":{", stdout);
		put_key_text(stdout, "code", d->err.word);
		put_key_text(stdout, "message", d->err.message);
		printf("\"number\":%d,\"paths\":[", r);
		const char *path = d->err.paths;
		for (size_t i = 0; i < d->err.n_paths;
		     i++, path += strlen(path) + 1) {
			fputs(i == 0 ? "" : ",", stdout);
			put_text(stdout, path);
		}
		fputs("]}}\n", stdout);
	} else {
		printf("%s\n", text);
	}
	fflush(stdout);
	free(text);
	incr_error_release(&d->err);
	d->err = INCR_ERROR_INIT;
}

int main(void)
{
	struct driver d = { .err = INCR_ERROR_INIT };
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		answer(&d, line);
	}
	free(line);
	incr_transform_release(&d.transform);
	if (d.build != NULL)
		incr_build_close(d.build);
	incr_store_close(d.st);
	return 0;
}
