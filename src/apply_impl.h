/*
 * What the parts of applying a record share: apply.c (what the facts say) and
 * apply_lost.c (what they may lean on when some before them are lost).
 */
#ifndef INCR_APPLY_IMPL_H
#define INCR_APPLY_IMPL_H

#include "apply.h"

struct apply {
	struct index *ix;
	const struct log_record *record;
	struct content_reader *reader;
	struct incr_error *err;
};

/* ---- apply.c ---- */
int apply_bad_fact(struct apply *a, const char *why);
int apply_put_id(struct apply *a, const struct state_key *k, uint64_t id);
struct state_key apply_dataset_key(struct text name);
struct state_key apply_branch_key(uint64_t dataset_id, struct text name);
/* The transaction is no longer OPEN. */
int apply_close_open(struct apply *a, uint64_t number);

/* ---- apply_lost.c: none of this finds anything to do while no record is lost ---- */

/* A fact contradicts those before it: 1 when some are lost, and it may; else bad-fact. */
int apply_excuse(struct apply *a, const char *why);
/* Its branch is not known: make it, with its dataset, under names that say so. */
int apply_lost_branch(struct apply *a, const struct fact_txn *f,
		      struct buf *storage, struct state_branch *out);
/* It does not follow the head of its branch: what lies between is lost. */
int apply_gap(struct apply *a, const struct fact_txn *f,
	      struct state_branch *b);
/* A transaction that the branch still has open was closed by a lost record. */
int apply_lost_end(struct apply *a, struct state_branch *b);
/* A name is given to @id: whoever has it lost it by a lost record. */
int apply_free_dataset_name(struct apply *a, struct text name, uint64_t id);
int apply_free_branch_name(struct apply *a, uint64_t dataset_id,
			   struct text name, uint64_t id);
/* What the view of a committed transaction lacks. */
int apply_unknown(struct apply *a, const struct fact_txn *f,
		  bool is_manifest_lost);
/* A record of type FACT_LOST. */
int apply_lost(struct apply *a);

#endif
