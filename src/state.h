/*
 * What the log amounts to: datasets, branches, lines, transactions, builds and
 * file versions, as keys and values of the index.  apply.c turns records into
 * them; everything else reads them here.  docs/format.md, "Index keys".
 *
 * A line is an unbroken run of transactions: a branch starts one when it is
 * made and another when it is reset.  A transaction is on the path of a head
 * if its line is the head's or one that the head's grew out of, up to there.
 */
#ifndef INCR_STATE_H
#define INCR_STATE_H

#include "fact.h"
#include "index.h"
#include "manifest.h"

/* ---- keys ---- */
#define STATE_KEY_MAX TABLE_KEY_MAX

struct state_key {
	uint8_t bytes[STATE_KEY_MAX];
	size_t size;
};

enum state_kind {
	STATE_DATASET = 'D', /* id -> dataset */
	STATE_DATASET_NAME = 'd', /* name -> id */
	STATE_BRANCH = 'B', /* id -> branch */
	STATE_BRANCH_NAME = 'b', /* dataset id, name -> id */
	STATE_LINE = 'L', /* line -> parent line, parent transaction */
	STATE_TXN = 'T', /* number -> transaction */
	STATE_OPEN = 'O', /* number -> nothing: the OPEN ones */
	STATE_SCHEMA = 'S', /* dataset, line, ~after, ~sequence -> text */
	STATE_BUILD = 'R', /* ~number -> build */
	STATE_TRANSFORM = 'X', /* name, 0, ~build -> status */
	STATE_VERSION =
		'v', /* dataset, root, path, 0, ~transaction -> version */
	STATE_CONTENT = 'C', /* print of the bytes -> where they are stored */
	STATE_HOLE = 'H', /* ~position -> end of a stretch that is given up */
	STATE_UNKNOWN =
		'N', /* transaction -> one before it that is not known whole */
	STATE_GIVEN_UP =
		'M', /* transaction -> first build after that was said */
	STATE_LOST_FILE = 'F', /* transaction, path -> nothing */
	STATE_CHANGE =
		'c', /* in change sets only: path, 0, ~transaction -> version */
};

void state_key_start(struct state_key *k, enum state_kind kind);
void state_key_number(struct state_key *k, uint64_t v); /* big-endian */
void state_key_bytes(struct state_key *k, const void *data,
		     size_t size); /* cut at the limit */
struct state_key state_key_of(enum state_kind kind, uint64_t number);

/* ---- values ---- */
struct state_dataset {
	struct fact_dataset fact;
	bool is_deleted;
};

struct state_branch {
	struct fact_branch fact; /* line: the one it is on now */
	uint64_t head; /* 0: none */
	uint64_t open_txn; /* 0: none */
	bool is_deleted;
};

struct state_line {
	uint64_t parent, at; /* 0: a root */
};

struct state_txn {
	struct fact_txn fact; /* manifest empty: it stands in the record */
	enum incr_txn_status status;
	uint64_t record_position; /* of its commit; 0: it is lost */
	/* Of its view, once it is committed: where the entries that the view is
	 * made of begin, and how many they are from there on. */
	uint64_t root, n_entries;
};

/* A file version, or its removal. */
struct version {
	enum manifest_op op;
	uint64_t line;
	uint32_t mode;
	int64_t mtime_ns;
	uint8_t hash[INCR_HASH_SIZE];
	struct content content; /* owned */
	uint64_t change_txn; /* change sets only: who made the change */
};
void version_release(struct version *v);
int version_encode(const struct version *v, struct buf *out);
int version_decode(const uint8_t *value, size_t size, struct version *out);
/* Only op and line, for deciding visibility without decoding the rest. */
int version_peek(const uint8_t *value, size_t size, enum manifest_op *out_op,
		 uint64_t *out_line);

/*
 * Look-ups: 0, 1 when there is none, or an error.  Texts are borrowed from
 * @storage, which the caller owns.
 */
int state_dataset(struct index *ix, uint64_t id, struct buf *storage,
		  struct state_dataset *out, struct incr_error *err);
int state_dataset_id(struct index *ix, struct text name, uint64_t *out_id,
		     struct incr_error *err);
int state_branch(struct index *ix, uint64_t id, struct buf *storage,
		 struct state_branch *out, struct incr_error *err);
int state_branch_id(struct index *ix, uint64_t dataset_id, struct text name,
		    uint64_t *out_id, struct incr_error *err);
int state_line(struct index *ix, uint64_t line, struct state_line *out,
	       struct incr_error *err);
int state_txn(struct index *ix, uint64_t number, struct buf *storage,
	      struct state_txn *out, struct incr_error *err);
int state_build(struct index *ix, uint64_t number, struct buf *storage,
		struct fact_build *out, struct incr_error *err);

int state_put_dataset(struct index *ix, const struct state_dataset *d,
		      struct incr_error *err);
int state_put_branch(struct index *ix, const struct state_branch *b,
		     struct incr_error *err);
int state_put_line(struct index *ix, uint64_t line, struct state_line l,
		   struct incr_error *err);
int state_put_txn(struct index *ix, const struct state_txn *t,
		  struct incr_error *err);

/*
 * The lines that lead to a transaction, newest first, each with the newest
 * transaction on it that counts; ends at the line where @from_txn (the view's
 * root) stands; 0: all.
 */
struct lineage {
	size_t n;
	struct lineage_part {
		uint64_t line, up_to;
	} * parts; /* owned */
};
void lineage_release(struct lineage *l);
int lineage_of(struct index *ix, uint64_t line, uint64_t txn, uint64_t from_txn,
	       struct lineage *out, struct incr_error *err);
bool lineage_holds(const struct lineage *l, uint64_t line, uint64_t txn);

/* ---- stored content by what it holds: state_content.c ---- */

/*
 * Says where the bytes of a file may be stored already.  Two contents may have
 * one key, the newer one is found: whoever shares it compares the bytes.
 */
#define STATE_CONTENT_KEY_SIZE 6
struct state_content_key {
	uint8_t bytes[STATE_CONTENT_KEY_SIZE];
};
/* Of a file within one frame, by its hash. */
struct state_content_key state_content_small(const uint8_t hash[INCR_HASH_SIZE]);
/* Of a larger one, by hash64 of its first frame. */
struct state_content_key state_content_large(uint64_t front, uint64_t size);
/* Does it pay to note it?  Then with *out_key. */
bool state_content_key_of(const struct manifest_entry *e,
			  struct state_content_key *out_key);
/* 0 and *out (the caller releases it), or 1; like index_peek(). */
int state_find_content(struct index *ix, struct state_content_key key,
		       uint64_t size, struct content *out,
		       struct incr_error *err);

/* ---- losses: state_lost.c ---- */

/* Is anything lost?  0: no, 1: yes; costs nothing where nothing is. */
int state_has_losses(struct index *ix, struct incr_error *err);
/* Stretches of the log that are given up. */
int state_put_hole(struct index *ix, uint64_t from, uint64_t to,
		   struct incr_error *err);
/* Lies [from, to) in one of them?  0: yes, 1: no. */
int state_find_hole(struct index *ix, uint64_t from, uint64_t to,
		    struct incr_error *err);
/*
 * The newest transaction of the view that @txn ends whose changes are not
 * known: its record or its manifest is lost.  0, or 1: all are known.
 */
int state_unknown(struct index *ix, uint64_t txn, uint64_t *out_unknown,
		  struct incr_error *err);
int state_put_unknown(struct index *ix, uint64_t txn, uint64_t unknown,
		      struct incr_error *err);
/* Has a repair given up a transaction's changes?  0 and the number of the first build after it, or 1. */
int state_given_up(struct index *ix, uint64_t txn, uint64_t *out_build,
		   struct incr_error *err);
int state_put_given_up(struct index *ix, uint64_t txn, uint64_t build,
		       struct incr_error *err);
/* Has a repair given up the content of @path as @txn put it?  0: yes, 1: no. */
int state_lost_file(struct index *ix, uint64_t txn, struct text path,
		    struct incr_error *err);
int state_put_lost_file(struct index *ix, uint64_t txn, struct text path,
			struct incr_error *err);

#endif
