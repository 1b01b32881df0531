/*
 * incrctl dataset: create, list, show, rename, set, delete.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "confirm.h"
#include "fail.h"
#include "find.h"
#include "out.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is told of a dataset, besides its record. */
struct summary {
	json_t *branches;
	uint64_t head, n_files, size; /* of main */
	uint64_t n_branches;
};

static int add_branch(void *closure, const struct incr_branch_info *info)
{
	struct summary *summary = closure;

	(void)json_array_append_new(summary->branches, out_text(info->name));
	summary->n_branches++;
	if (strcmp(info->name, "main") == 0) {
		summary->head = info->head;
		summary->n_files = info->view_files;
		summary->size = info->view_size;
	}
	return 0;
}

static json_t *summary_json(const struct cli *cli,
			    const struct incr_dataset_info *info,
			    const struct summary *summary)
{
	json_t *json = json_object();

	out_put(json, "dataset", out_text(info->name));
	out_put(json, "rid", out_rid(cli->store, "dataset", info->id));
	out_put(json, "description", out_text_or_null(info->description));
	out_put(json, "branches", json_incref(summary->branches));
	out_put(json, "head", out_id('t', summary->head));
	out_put(json, "files", out_u64(summary->n_files));
	out_put(json, "bytes", out_u64(summary->size));
	out_put(json, "meta", out_pairs(&info->meta));
	out_put(json, "created", out_time(info->created_ns));
	return json;
}

static void print_details(const struct cli *cli,
			  const struct incr_dataset_info *info,
			  const struct summary *summary)
{
	struct text text;
	const char *branch;
	size_t idx;
	json_t *item;

	printf("dataset:     %s\n", info->name);
	printf("rid:         ri.incr.%s.dataset.%" PRIu64 "\n",
	       incr_store_uuid(cli->store), info->id);
	printf("created:     %s\n", text_time_short(info->created_ns, &text));
	if (info->description && *info->description)
		printf("description: %s\n", info->description);
	for (size_t i = 0; i < info->meta.n; i++)
		printf("meta:        %s=%s\n", info->meta.items[i].key,
		       info->meta.items[i].value);
	json_array_foreach(summary->branches, idx, item)
	{
		branch = json_string_value(item);
		printf("branch:      %s\n", branch ? branch : "?");
	}
	if (summary->head)
		printf("head:        t%" PRIu64 "\n", summary->head);
	printf("files:       %s\n",
	       text_count(summary->n_files, "file", "files", &text));
	printf("size:        %s\n", text_size(summary->size, &text));
}

static int print_dataset(struct cli *cli, const struct incr_dataset_info *info,
			 bool has_details)
{
	_cleanup_json_ json_t *branches = json_array();
	struct summary summary = { .branches = branches };
	struct text files, size;
	int r;

	r = incr_branch_list(cli->store, info->id, add_branch, &summary,
			     &cli->err);
	if (r < 0)
		return r;
	if (cli->common.is_json) {
		out_line(summary_json(cli, info, &summary));
	} else if (has_details) {
		print_details(cli, info, &summary);
	} else {
		printf("%s: %s, %s\n", info->name,
		       text_count(summary.n_files, "file", "files", &files),
		       text_size(summary.size, &size));
	}
	return 0;
}

struct create_options {
	const char *description;
	struct args_list meta;
};

static const struct args_option create_table[] = {
	{ "description", 0, ARGS_TEXT,
	  offsetof(struct create_options, description), "TEXT",
	  "what it holds" },
	{ "meta", 0, ARGS_LIST, offsetof(struct create_options, meta),
	  "KEY=VALUE", "free metadata; may be repeated" },
	ARGS_END,
};

/* All names are tried against what is there before the first is made. */
static int check_new(struct cli *cli, const char *name)
{
	_cleanup_dataset_ struct incr_dataset_info info = { 0 };
	int r = incr_dataset_find(cli->store, name, &info, &cli->err);

	if (r == 0)
		return fail(&cli->err, INCR_E_EXISTS, "dataset-exists", name,
			    "the dataset exists");
	return r == INCR_E_NOTFOUND ? 0 : r;
}

static int create_all(struct cli *cli, const struct create_options *o,
		      const struct incr_pairs *meta)
{
	uint64_t id;
	int r;

	for (size_t i = 0; i < cli->n_args; i++) {
		r = check_new(cli, cli->args[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < cli->n_args; i++) {
		_cleanup_dataset_ struct incr_dataset_info info = { 0 };

		r = incr_dataset_create(cli->store, cli->args[i],
					o->description, meta, &id, &cli->err);
		if (r < 0)
			return r;
		if (!cli->common.is_json)
			continue;
		r = incr_dataset_by_id(cli->store, id, &info, &cli->err);
		if (r == 0)
			r = print_dataset(cli, &info, false);
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_create(struct cli *cli, void *options)
{
	const struct create_options *o = options;
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	int r;

	r = args_pairs(&o->meta, &meta, &cli->err);
	if (r == 0)
		r = find_store(cli);
	return r < 0 ? r : create_all(cli, o, &meta);
}

/* Names first: the walk and what is asked of each do not overlap. */
struct names {
	size_t n;
	char **items;
};

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

static int add_name(void *closure, const struct incr_dataset_info *info)
{
	struct names *names = closure;
	char **items = reallocarray(names->items, names->n + 1, sizeof(*items));

	if (!items)
		return INCR_E_NOMEM;
	names->items = items;
	items[names->n] = strdup(info->name);
	if (!items[names->n])
		return INCR_E_NOMEM;
	names->n++;
	return 0;
}

static int print_name(void *closure, const struct incr_dataset_info *info)
{
	out_path(closure, info->name, strlen(info->name));
	return 0;
}

struct list_options {
	bool is_long;
};

static const struct args_option list_table[] = {
	{ "long", 'l', ARGS_FLAG, offsetof(struct list_options, is_long), NULL,
	  "with files and size of each" },
	ARGS_END,
};

static int run_list(struct cli *cli, void *options)
{
	const struct list_options *o = options;
	_cleanup_(names_release) struct names names = { 0 };
	int r;

	r = find_store(cli);
	if (r == 0 && !o->is_long && !cli->common.is_json)
		return incr_dataset_list(cli->store, print_name, cli,
					 &cli->err);
	if (r == 0)
		r = incr_dataset_list(cli->store, add_name, &names, &cli->err);
	if (r == INCR_E_NOMEM)
		return fail_nomem(&cli->err);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		_cleanup_dataset_ struct incr_dataset_info info = { 0 };

		r = incr_dataset_find(cli->store, names.items[i], &info,
				      &cli->err);
		if (r == 0)
			r = print_dataset(cli, &info, false);
		else if (r == INCR_E_NOTFOUND) /* deleted meanwhile */
			r = 0;
	}
	return r;
}

static int run_show(struct cli *cli, void *options)
{
	_cleanup_dataset_ struct incr_dataset_info info = { 0 };
	int r;

	(void)options;
	r = find_store(cli);
	if (r == 0)
		r = find_dataset(cli, cli->args[0], &info);
	return r < 0 ? r : print_dataset(cli, &info, true);
}

static int run_rename(struct cli *cli, void *options)
{
	_cleanup_dataset_ struct incr_dataset_info info = { 0 };
	int r;

	(void)options;
	r = find_store(cli);
	if (r == 0)
		r = find_dataset(cli, cli->args[0], &info);
	if (r < 0)
		return r;
	return incr_dataset_rename(cli->store, info.id, cli->args[1],
				   &cli->err);
}

struct set_options {
	struct args_list meta, unset;
};

static const struct args_option set_table[] = {
	{ "meta", 0, ARGS_LIST, offsetof(struct set_options, meta), "KEY=VALUE",
	  "set this; may be repeated" },
	{ "unset", 0, ARGS_LIST, offsetof(struct set_options, unset), "KEY",
	  "remove this; may be repeated" },
	ARGS_END,
};

static int run_set(struct cli *cli, void *options)
{
	const struct set_options *o = options;
	_cleanup_dataset_ struct incr_dataset_info info = { 0 };
	_cleanup_(args_pairs_release) struct incr_pairs meta = { 0 };
	struct incr_pair *items;
	int r;

	if (o->meta.n + o->unset.n == 0)
		return fail_usage(&cli->err, NULL,
				  "--meta or --unset is missing");
	r = args_pairs(&o->meta, &meta, &cli->err);
	if (r < 0)
		return r;
	items = reallocarray(meta.items, meta.n + o->unset.n, sizeof(*items));
	if (!items)
		return fail_nomem(&cli->err);
	meta.items = items;
	for (size_t i = 0; i < o->unset.n; i++) {
		items[meta.n] = (struct incr_pair){
			.key = strdup(o->unset.items[i]),
		};
		if (!items[meta.n].key)
			return fail_nomem(&cli->err);
		meta.n++;
	}

	r = find_store(cli);
	if (r == 0)
		r = find_dataset(cli, cli->args[0], &info);
	if (r < 0)
		return r;
	return incr_dataset_set_meta(cli->store, info.id, &meta, &cli->err);
}

static const struct args_option delete_table[] = {
	CONFIRM_OPTIONS(0),
	ARGS_END,
};

static int run_delete(struct cli *cli, void *options)
{
	_cleanup_json_ json_t *branches = json_array();
	_cleanup_dataset_ struct incr_dataset_info info = { 0 };
	struct summary summary = { .branches = branches };
	struct text files, size, n_branches;
	int r;

	r = find_store(cli);
	if (r == 0)
		r = find_dataset(cli, cli->args[0], &info);
	if (r == 0)
		r = incr_branch_list(cli->store, info.id, add_branch, &summary,
				     &cli->err);
	if (r < 0)
		return r;
	r = confirm(cli, options,
		    "delete the dataset %s: %s; main holds %s, %s", info.name,
		    text_count(summary.n_branches, "branch", "branches",
			       &n_branches),
		    text_count(summary.n_files, "file", "files", &files),
		    text_size(summary.size, &size));
	if (r <= 0)
		return r;
	return incr_dataset_delete(cli->store, info.id, &cli->err);
}

static const struct verb dataset_create = {
	.name = "dataset create",
	.summary = "Make datasets.",
	.synopsis = "NAME... [OPTION]...",
	.tables = { create_table },
	.options_size = sizeof(struct create_options),
	.min_args = 1,
	.max_args = CLI_ANY,
	.run = run_create,
};

static const struct verb dataset_list = {
	.name = "dataset list",
	.summary = "List all datasets.",
	.synopsis = "[-l]",
	.tables = { list_table },
	.options_size = sizeof(struct list_options),
	.run = run_list,
};

static const struct verb dataset_show = {
	.name = "dataset show",
	.summary = "Show one dataset.",
	.synopsis = "NAME",
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};

static const struct verb dataset_rename = {
	.name = "dataset rename",
	.summary = "Give a dataset another name; no decision changes by it.",
	.synopsis = "OLD NEW",
	.min_args = 2,
	.max_args = 2,
	.run = run_rename,
};

static const struct verb dataset_set = {
	.name = "dataset set",
	.summary = "Set or remove metadata of a dataset.",
	.synopsis = "NAME [--meta KEY=VALUE]... [--unset KEY]...",
	.tables = { set_table },
	.options_size = sizeof(struct set_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_set,
};

static const struct verb dataset_delete = {
	.name = "dataset delete",
	.summary = "Delete a dataset.",
	.synopsis = "NAME [--yes] [--dry-run]",
	.tables = { delete_table },
	.options_size = sizeof(struct confirm_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_delete,
};

static const struct verb *const subs[] = {
	&dataset_create, &dataset_list,	  &dataset_show, &dataset_rename,
	&dataset_set,	 &dataset_delete, NULL,
};

const struct verb verb_dataset = {
	.name = "dataset",
	.summary = "Make, list, show, rename and delete datasets.",
	.subs = subs,
};
