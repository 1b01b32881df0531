/*
 * Incremental or not: facts about inputs, outputs and the last run go in, the
 * decision and every reason come out.  Pure: no I/O, no store types.  The
 * rules are in docs/semantics.md.
 *
 * "Last run": the newest build record of the transform on any of its outputs.
 * "Pend": the last transaction of an input that the last run read.
 */
#ifndef INCR_DECIDE_H
#define INCR_DECIDE_H

#include "incr.h"

/* Files of one class of net change from View(Pend); count 0: none. */
struct decide_change {
	uint64_t count;
	const char *path; /* borrowed: the first in path order */
	size_t path_length;
	uint64_t txn; /* the transaction that changed it */
};

/* Where Pend lies, seen from the head of the branch. */
enum decide_relation {
	DECIDE_ON_PATH = 0, /* the head comes after it, or is it */
	DECIDE_HEAD_BEHIND =
		1, /* the head comes before it: it was moved back */
	DECIDE_OFF_PATH = 2, /* on another line */
};

struct decide_input {
	const char *alias, *dataset; /* borrowed */
	uint64_t dataset_id;
	enum incr_input_kind kind;
	uint64_t view_start, head; /* of the view that is there now; 0: empty */
	uint64_t read_end; /* E: what an incremental run would read up to */
	/* what the last run recorded under this alias */
	bool has_record;
	uint64_t record_dataset_id;
	enum incr_input_kind record_kind;
	uint64_t record_start; /* 0: it had no transaction */
	uint64_t last_read; /* Pend; 0: none */
	/*
	 * A transaction of the view, or Pend itself, that was lost since the
	 * last run; 0: none
	 */
	uint64_t lost_txn;
	/* A transaction of the view whose changes are lost, whenever that was; 0: none */
	uint64_t unknown_txn;
	/* gathered only where decide_input_state() says so */
	enum decide_relation relation; /* COMPARABLE, BEHIND, ELSEWHERE */
	struct decide_change modified, removed_by_user, removed_by_retention;
	/* LIMITED: first transaction of the view that may not be there; 0: none */
	uint64_t bad_txn;
	enum incr_txn_type bad_type;
};

/* How an input stands to what the last run read of it. */
enum decide_input_state {
	DECIDE_INPUT_FREE, /* a snapshot input: never compared */
	DECIDE_INPUT_NEW, /* nothing recorded: its whole view is added */
	DECIDE_INPUT_SWAPPED, /* another dataset under the same alias */
	DECIDE_INPUT_RESTARTED, /* its view has another start */
	DECIDE_INPUT_LOST, /* part of what the last run read, or missed, is lost */
	DECIDE_INPUT_BEHIND, /* the head was moved back to before Pend */
	DECIDE_INPUT_ELSEWHERE, /* the same start, but Pend is not on its path */
	DECIDE_INPUT_COMPARABLE, /* net changes against View(Pend) judge it */
};

/*
 * relation is looked at last, so a caller may ask with DECIDE_ON_PATH first:
 * only an answer of COMPARABLE makes relation and changes worth gathering.
 */
enum decide_input_state decide_input_state(const struct decide_input *in);

/* Committed transactions of one class above the record; count 0: none. */
struct decide_above {
	uint64_t count;
	uint64_t txn; /* the newest */
};

struct decide_output {
	const char *alias, *dataset; /* borrowed */
	enum incr_write_mode write_mode; /* as asked for */
	/* newest transaction of this transform on its path; 0: none */
	uint64_t record_txn;
	uint64_t lost_txn; /* of its view, lost since the last run; 0: none */
	/* the ranges recorded there are not those of the last run */
	bool is_inconsistent;
	/* what stands above record_txn (in the whole history without one) */
	struct decide_above foreign, user_deletes, retention_deletes;
};

struct decide_settings {
	int64_t semantic_version;
	bool require_incremental, allow_retention, allow_user_deletes;
	bool strict_append, v2_semantics;
	bool is_forced; /* run even when fresh */
	bool forces_snapshot; /* this one time */
	bool is_skip; /* nothing will be run */
	/* the first-build let-out of require_incremental asks for all outputs */
	bool needs_all_unbuilt;
};

struct decide_previous {
	bool exists;
	bool has_semantic_version; /* else it counts as 1 */
	int64_t semantic_version;
	bool v2_semantics;
	size_t n_inputs;
	/* compared by the caller: transform_same_settings() and its kin */
	bool has_same_settings, has_same_outputs, has_same_command;
};

struct decide_facts {
	struct decide_settings settings;
	struct decide_previous previous;
	size_t n_inputs;
	const struct decide_input *inputs; /* borrowed */
	size_t n_outputs;
	const struct decide_output *outputs; /* borrowed */
};

struct decide_result {
	enum incr_decision decision;
	bool is_incremental; /* also when fresh */
	size_t n_reasons;
	struct incr_reason *reasons; /* owned; hard ones first */
	size_t n_warnings;
	char **warnings; /* owned */
};

/* Every reason that holds, in a fixed order. INCR_E_NOMEM is the only failure. */
int decide(const struct decide_facts *facts, struct decide_result *out,
	   struct incr_error *err);
void decide_result_release(struct decide_result *result);

/* How an output is written, and the type of its transaction. */
struct decide_write {
	enum incr_write_mode mode; /* modify, replace or append */
	enum incr_txn_type type;
};
struct decide_write decide_write(const struct decide_settings *settings,
				 bool is_incremental,
				 enum incr_write_mode asked);

#endif
