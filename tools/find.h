/*
 * From names on the command line to things in the store.
 */
#ifndef INCR_TOOLS_FIND_H
#define INCR_TOOLS_FIND_H

#include "cli.h"
#include "incr.h"
#include "point.h"

/* --wait in milliseconds. */
uint64_t find_wait_ms(const struct cli *cli);

/* All others return 0, or a negative code with cli->err filled. */

/* Open --store, $INCR_STORE or the nearest .incr as cli->store. */
int find_store(struct cli *cli);
/* The same of one that may be damaged, to look at its damage alone. */
int find_store_damaged(struct cli *cli);

int find_dataset(struct cli *cli, const char *name,
		 struct incr_dataset_info *out_info);

/* A dataset and a branch of it. */
struct found_branch {
	struct incr_dataset_info dataset;
	char *branch; /* owned; "main" unless said otherwise */
};
void found_branch_release(struct found_branch *found);
/* NAME[:BRANCH], and the value of --branch or NULL. */
int find_branch(struct cli *cli, const char *text, const char *branch,
		struct found_branch *out_found);

/* A dataset at a transaction. */
struct found_point {
	struct incr_dataset_info dataset;
	char *branch; /* owned; NULL: a transaction without a branch was given */
	uint64_t head; /* of the branch; 0 also if there is no branch */
	uint64_t txn; /* 0: the empty view */
};
void found_point_release(struct found_point *found);
/* NAME[:BRANCH][@POINT]; without @POINT the head. */
int find_point(struct cli *cli, const char *text,
	       struct found_point *out_found);
/* A point on the branch that @found names. */
int find_point_of(struct cli *cli, const struct found_point *found,
		  const struct point *point, uint64_t *out_txn);
/* NAME[:BRANCH] (no @POINT) and a range; both ends may be 0. */
int find_range(struct cli *cli, const char *text, const char *range,
	       struct found_point *out_found, uint64_t *out_from,
	       uint64_t *out_to);
int find_view(struct cli *cli, const struct found_point *found,
	      struct incr_view **out_view);
/* The same by number; what is lost in it is noted. */
int find_view_at(struct cli *cli, uint64_t dataset_id, uint64_t txn,
		 struct incr_view **out_view);

/* "t42", "b7" as an argument. */
int find_txn_number(struct cli *cli, const char *text, uint64_t *out_number);
int find_build_number(struct cli *cli, const char *text, uint64_t *out_number);

#define _cleanup_found_branch_ _cleanup_(found_branch_release)
#define _cleanup_found_point_ _cleanup_(found_point_release)

#endif
