/*
 * From names on the command line to datasets, branches and transactions.
 */
#include "config.h"

#include "find.h"

#include "cleanup.h"
#include "exit.h"
#include "fail.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAIN_BRANCH "main"

static void cleanup_point(struct dataset_point *p)
{
	dataset_point_release(p);
}

#define _cleanup_dataset_point_ _cleanup_(cleanup_point)

int find_dataset(struct cli *cli, const char *name,
		 struct incr_dataset_info *out_info)
{
	return incr_dataset_find(cli->store, name, out_info, &cli->err);
}

void found_branch_release(struct found_branch *found)
{
	incr_dataset_info_release(&found->dataset);
	free(found->branch);
	*found = (struct found_branch){ 0 };
}

int find_branch(struct cli *cli, const char *text, const char *branch,
		struct found_branch *out_found)
{
	_cleanup_dataset_point_ struct dataset_point p = { 0 };
	struct found_branch found = { 0 };
	int r;

	r = dataset_point_parse(text, &p, &cli->err);
	if (r < 0)
		return r;
	if (p.point.kind != POINT_NONE)
		return fail_usage(&cli->err, text,
				  "a dataset without @POINT is wanted");
	if (p.branch && branch && strcmp(p.branch, branch) != 0)
		return fail_usage(&cli->err, text,
				  "--branch names another branch");
	r = find_dataset(cli, p.dataset, &found.dataset);
	if (r < 0)
		return r;
	if (!branch)
		branch = p.branch ? p.branch : MAIN_BRANCH;
	found.branch = strdup(branch);
	if (!found.branch) {
		found_branch_release(&found);
		return fail_nomem(&cli->err);
	}
	*out_found = found;
	return 0;
}

void found_point_release(struct found_point *found)
{
	incr_dataset_info_release(&found->dataset);
	free(found->branch);
	*found = (struct found_point){ 0 };
}

/* The head of a branch; a main branch that is not there yet has none. */
static int find_head(struct cli *cli, uint64_t dataset_id, const char *branch,
		     uint64_t *out_head)
{
	_cleanup_branch_ struct incr_branch_info info = { 0 };
	int r = incr_branch_find(cli->store, dataset_id, branch, &info,
				 &cli->err);

	if (r == INCR_E_NOTFOUND && strcmp(branch, MAIN_BRANCH) == 0) {
		*out_head = 0;
		return 0;
	}
	if (r == 0)
		*out_head = info.head;
	return r;
}

static int find_txn_point(struct cli *cli, const struct found_point *found,
			  uint64_t number, uint64_t *out_txn)
{
	_cleanup_txn_ struct incr_txn_info info = { 0 };
	struct text id;
	bool is_on_path;
	int r;

	(void)snprintf(id.str, sizeof(id.str), "t%" PRIu64, number);
	r = incr_txn_find(cli->store, number, &info, &cli->err);
	if (r < 0)
		return r;
	if (info.dataset_id != found->dataset.id)
		return fail(&cli->err, INCR_E_NOTFOUND, "no-such-transaction",
			    id.str, "%s has no such transaction",
			    found->dataset.name);
	if (info.status != INCR_COMMITTED)
		return fail(&cli->err, INCR_E_NOTFOUND, "not-committed", id.str,
			    "the transaction is not committed");
	if (found->branch) {
		r = incr_txn_is_on_path(cli->store, number, found->head,
					&is_on_path, &cli->err);
		if (r < 0)
			return r;
		if (!is_on_path)
			return fail(&cli->err, INCR_E_NOTFOUND, "not-on-branch",
				    id.str,
				    "branch %s does not hold the transaction",
				    found->branch);
	}
	*out_txn = number;
	return 0;
}

int find_point_of(struct cli *cli, const struct found_point *found,
		  const struct point *point, uint64_t *out_txn)
{
	switch (point->kind) {
	case POINT_NONE:
		*out_txn = found->head;
		return 0;
	case POINT_TXN:
		return find_txn_point(cli, found, point->txn, out_txn);
	case POINT_TIME:
		return incr_txn_at_time(cli->store, found->head, point->time_ns,
					out_txn, &cli->err);
	}
	return fail_usage(&cli->err, NULL, "unknown kind of point");
}

static int find_parsed(struct cli *cli, struct dataset_point *p,
		       struct found_point *found)
{
	const char *branch = p->branch ? p->branch : MAIN_BRANCH;
	int r;

	r = find_dataset(cli, p->dataset, &found->dataset);
	if (r < 0)
		return r;
	r = find_head(cli, found->dataset.id, branch, &found->head);
	if (r < 0)
		return r;
	found->branch = p->branch;
	p->branch = NULL;
	return find_point_of(cli, found, &p->point, &found->txn);
}

int find_point(struct cli *cli, const char *text, struct found_point *out_found)
{
	_cleanup_dataset_point_ struct dataset_point p = { 0 };
	struct found_point found = { 0 };
	int r;

	r = dataset_point_parse(text, &p, &cli->err);
	if (r < 0)
		return r;
	r = find_parsed(cli, &p, &found);
	if (r < 0) {
		found_point_release(&found);
		return r;
	}
	*out_found = found;
	return 0;
}

int find_range(struct cli *cli, const char *text, const char *range,
	       struct found_point *out_found, uint64_t *out_from,
	       uint64_t *out_to)
{
	_cleanup_found_point_ struct found_point found = { 0 };
	struct point_range ends = { 0 };
	uint64_t from = 0, to = 0;
	int r;

	r = point_range_parse(range, &ends, &cli->err);
	if (r < 0)
		return r;
	if (strrchr(text, '@'))
		return fail_usage(&cli->err, text,
				  "a dataset without @POINT is wanted");
	r = find_point(cli, text, &found);
	if (r < 0)
		return r;
	if (ends.from.kind != POINT_NONE)
		r = find_point_of(cli, &found, &ends.from, &from);
	if (r == 0)
		r = find_point_of(cli, &found, &ends.to, &to);
	if (r < 0)
		return r;
	*out_found = found;
	found = (struct found_point){ 0 };
	*out_from = from;
	*out_to = to;
	return 0;
}

int find_view(struct cli *cli, const struct found_point *found,
	      struct incr_view **out_view)
{
	return find_view_at(cli, found->dataset.id, found->txn, out_view);
}

int find_view_at(struct cli *cli, uint64_t dataset_id, uint64_t txn,
		 struct incr_view **out_view)
{
	int r = incr_view_open(cli->store, dataset_id, txn, out_view,
			       &cli->err);
	uint64_t unknown = r == 0 ? incr_view_unknown(*out_view) : 0;

	if (unknown)
		exit_note(cli,
			  "warning: t%" PRIu64 " is lost, and the view of "
			  "t%" PRIu64 " is as if it had not been",
			  unknown, txn);
	return r;
}

static int find_number(struct cli *cli, const char *text, char letter,
		       const char *what, uint64_t *out_number)
{
	if (text_parse_id(text, letter, out_number))
		return 0;
	return fail_usage(&cli->err, text, "%s such as %c42 is wanted", what,
			  letter);
}

int find_txn_number(struct cli *cli, const char *text, uint64_t *out_number)
{
	return find_number(cli, text, 't', "a transaction", out_number);
}

int find_build_number(struct cli *cli, const char *text, uint64_t *out_number)
{
	return find_number(cli, text, 'b', "a build", out_number);
}
