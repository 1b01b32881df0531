/*
 * incrctl branch: list, create, delete and reset branches.
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

struct branch_options {
	struct confirm_options confirm;
	const char *at;
};

static const struct args_option table[] = {
	{ "at", 0, ARGS_TEXT, offsetof(struct branch_options, at), "START",
	  "create: at tN or the head of a branch (main)" },
	CONFIRM_OPTIONS(offsetof(struct branch_options, confirm)),
	ARGS_END,
};

static json_t *branch_json(const struct incr_branch_info *info)
{
	json_t *json = json_object();

	out_put(json, "branch", out_text(info->name));
	out_put(json, "parent", out_text(info->parent));
	out_put(json, "head", out_id('t', info->head));
	out_put(json, "open", out_id('t', info->open_txn));
	out_put(json, "files", out_u64(info->view_files));
	out_put(json, "bytes", out_u64(info->view_size));
	return json;
}

static int print_branch(void *closure, const struct incr_branch_info *info)
{
	const struct cli *cli = closure;
	struct text files, size;

	if (cli->common.is_json) {
		out_line(branch_json(info));
		return 0;
	}
	printf("%s: ", info->name);
	if (info->head)
		printf("t%" PRIu64 ", ", info->head);
	printf("%s, %s", text_count(info->view_files, "file", "files", &files),
	       text_size(info->view_size, &size));
	if (info->open_txn)
		printf(" (t%" PRIu64 " is open)", info->open_txn);
	(void)putchar('\n');
	return 0;
}

static int print_one(struct cli *cli, uint64_t dataset_id, const char *name)
{
	_cleanup_branch_ struct incr_branch_info info = { 0 };
	int r = incr_branch_find(cli->store, dataset_id, name, &info,
				 &cli->err);

	return r < 0 ? r : print_branch(cli, &info);
}

static int create(struct cli *cli, const struct branch_options *o,
		  const struct incr_dataset_info *dataset, const char *name)
{
	_cleanup_branch_ struct incr_branch_info parent = { 0 };
	const char *from = o->at ? o->at : "main";
	uint64_t at;
	int r;

	if (o->at && text_parse_id(o->at, 't', &at)) {
		r = incr_branch_create(cli->store, dataset->id, name, NULL, at,
				       &cli->err);
	} else {
		r = incr_branch_find(cli->store, dataset->id, from, &parent,
				     &cli->err);
		if (r == INCR_E_NOTFOUND && !o->at)
			r = incr_branch_create(cli->store, dataset->id, name,
					       NULL, 0, &cli->err);
		else if (r == 0)
			r = incr_branch_create(cli->store, dataset->id, name,
					       from, parent.head, &cli->err);
	}
	if (r == 0 && !cli->common.is_quiet)
		r = print_one(cli, dataset->id, name);
	return r;
}

static int delete (struct cli *cli, const struct branch_options *o,
		   const struct incr_dataset_info *dataset, const char *name)
{
	_cleanup_branch_ struct incr_branch_info info = { 0 };
	struct text files;
	int r;

	r = incr_branch_find(cli->store, dataset->id, name, &info, &cli->err);
	if (r == 0 && strcmp(name, "main") == 0) {
		r = fail_usage(&cli->err, name,
			       "it is the branch that everything uses unless "
			       "told otherwise");
		fail_hint(&cli->err,
			  "incrctl dataset delete %s deletes all of it",
			  dataset->name);
	}
	if (r < 0)
		return r;
	r = confirm(cli, &o->confirm, "delete the branch %s:%s: %s",
		    dataset->name, name,
		    text_count(info.view_files, "file", "files", &files));
	if (r <= 0)
		return r;
	return incr_branch_delete(cli->store, dataset->id, name, &cli->err);
}

static int reset(struct cli *cli, const struct branch_options *o,
		 const struct incr_dataset_info *dataset)
{
	const char *name = cli->args[2];
	uint64_t to;
	int r;

	r = find_txn_number(cli, cli->args[3], &to);
	if (r < 0)
		return r;
	if (o->confirm.is_dry_run) {
		printf("would reset %s:%s to %s\n", dataset->name, name,
		       cli->args[3]);
		return 0;
	}
	r = incr_branch_reset(cli->store, dataset->id, name, to, &cli->err);
	if (r == 0 && !cli->common.is_quiet)
		r = print_one(cli, dataset->id, name);
	return r;
}

/* How many arguments each form has, DATASET and its word included. */
static int check_form(struct cli *cli, const char *form)
{
	static const struct {
		const char *form;
		size_t n_args;
	} forms[] = {
		{ "list", 2 },
		{ "create", 3 },
		{ "delete", 3 },
		{ "reset", 4 },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(forms[i].form, form) != 0)
			continue;
		if (cli->n_args < forms[i].n_args && cli->n_args > 1)
			r = fail_usage(&cli->err, form,
				       "an argument is missing");
		else if (cli->n_args > forms[i].n_args)
			r = fail_usage(&cli->err, cli->args[forms[i].n_args],
				       "too many arguments");
		else
			return 0;
		break;
	}
	if (r == 0)
		r = fail_usage(&cli->err, form,
			       "not one of list, create, delete, reset");
	fail_hint(&cli->err, "incrctl branch --help");
	return r;
}

static int run_branch(struct cli *cli, void *options)
{
	const struct branch_options *o = options;
	_cleanup_dataset_ struct incr_dataset_info dataset = { 0 };
	const char *form = cli->n_args > 1 ? cli->args[1] : "list";
	int r;

	r = check_form(cli, form);
	if (r == 0)
		r = find_store(cli);
	if (r == 0)
		r = find_dataset(cli, cli->args[0], &dataset);
	if (r < 0)
		return r;
	if (strcmp(form, "create") == 0)
		return create(cli, o, &dataset, cli->args[2]);
	if (strcmp(form, "delete") == 0)
		return delete (cli, o, &dataset, cli->args[2]);
	if (strcmp(form, "reset") == 0)
		return reset(cli, o, &dataset);
	return incr_branch_list(cli->store, dataset.id, print_branch, cli,
				&cli->err);
}

const struct verb verb_branch = {
	.name = "branch",
	.summary = "List, create, delete and reset the branches of a dataset.",
	.synopsis = "DATASET [list]\n"
		    "DATASET create B [--at tN|B2]\n"
		    "DATASET delete B [--yes] [--dry-run]\n"
		    "DATASET reset B tN",
	.details = "reset moves the head back to an earlier transaction; "
		   "nothing is deleted.",
	.tables = { table },
	.options_size = sizeof(struct branch_options),
	.min_args = 1,
	.max_args = 4,
	.run = run_branch,
};
