/*
 * Committing transactions whose content is durable already: preconditions
 * under the append lock, numbers, one record.  Used by commit, rm, txn and
 * builds alike.
 */
#ifndef INCR_COMMIT_H
#define INCR_COMMIT_H

#include "ingest.h"
#include "store.h"
#include "view.h"

/* What the content of a transaction does to the view it lands on. */
struct commit_effect {
	bool is_known;
	uint64_t head; /* it was worked out against this one */
	uint64_t view_files, view_size;
};

/* One transaction to be. */
struct commit_item {
	uint64_t dataset_id;
	uint64_t branch_id; /* 0: made by this commit, see new_branch */
	struct fact_branch new_branch; /* name, parent, parent_line, at */
	enum incr_txn_type type;
	uint64_t open_number; /* of the OPEN transaction that this commits; 0: none */
	struct text origin, user, message, pairs;
	int64_t opened_ns;
	bool has_expect; /* the head must be @expect: "branch-moved" */
	uint64_t expect;
	/* An earlier item of the request, on the same branch, that this one comes after, and the
	 * paths that it removes; NULL: none.  Their paths are disjoint. */
	const struct commit_item *before;
	const struct memtable *gone;
	const char *collision_word; /* NULL: "append-collision" */
	struct ingest_result *content; /* borrowed */
	struct commit_effect effect;
	uint64_t number; /* out: the transaction's number */
};

struct commit_request {
	size_t n_items;
	struct commit_item *items;
	/* The record of the build that the transactions come from, made when their numbers are
	 * known: @out is empty.  NULL: none. */
	int (*encode_build)(void *closure, const struct commit_request *request,
			    struct fact_build *out_build,
			    struct buf *out_payload, struct incr_error *err);
	void *closure;
	uint64_t build; /* number; 0: none */
};

/*
 * Check, number, append and sync.  On failure the content (packs) is the
 * caller's to discard; where the record was written all the same, because the
 * sync or what comes after it failed, its packs stay (is_recorded).
 *   INCR_E_CONFLICT "append-collision", "path-conflict", "branch-moved", "open-transaction"
 */
int commit_append(struct incr_store *st, struct commit_request *request,
		  struct incr_error *err);

/* INCR_E_CONFLICT "branch-moved" */
int commit_branch_moved(uint64_t expect, uint64_t head, struct incr_error *err);
/* Work out item->effect against @head; INCR_E_CONFLICT as above.  commit_check.c */
int commit_check(struct incr_store *st, struct commit_item *item, uint64_t head,
		 struct incr_error *err);

/*
 * Options for an ingest that compares with what stands in @view (NULL: nothing).
 * @view is borrowed until the ingest is freed.
 */
void commit_ingest_options(struct incr_store *st, struct incr_view *view,
			   bool drops_unchanged, struct ingest_options *out);

/* The branch that options name, if nothing holds it; a missing main is made. */
int commit_find_branch(struct incr_store *st,
		       const struct incr_txn_options *options,
		       struct buf *storage, struct state_branch *out,
		       struct incr_error *err);

/*
 * A SNAPSHOT: let the ingest write the difference to @view, if that may pay.
 * Only for a commit that lands on the head that @view was opened at.  @b is
 * zeroed, released after the ingest, and borrowed by @options until then.
 */
struct commit_base {
	struct ingest_base base;
	struct view_walk walk;
	bool has_begun;
};
int commit_base_init(struct commit_base *b, struct incr_store *st,
		     struct incr_view *view, struct ingest_options *options,
		     struct incr_error *err);
void commit_base_release(struct commit_base *b);
/* The version that a walk stands at; its path is borrowed from the walk. */
int commit_version_entry(const struct view_walk *w,
			 struct manifest_entry *out_entry,
			 struct incr_error *err);

/* The find_stored of these options; @closure is the view. */
int commit_find_stored(void *closure, const char *path, size_t length,
		       struct manifest_entry *out_entry,
		       struct incr_error *err);

/* origin, user, message, pairs of public options, checked and encoded into @storage. */
struct commit_texts {
	char user[256];
	struct buf pairs;
};
int commit_fill_texts(struct incr_store *st,
		      const struct incr_txn_options *options,
		      struct commit_texts *texts, struct commit_item *item,
		      struct incr_error *err);

#endif
