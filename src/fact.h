/*
 * The payload of each type of log record: one record is one atomic fact.
 * Pure encode and decode; docs/format.md, "Facts".
 */
#ifndef INCR_FACT_H
#define INCR_FACT_H

#include "buf.h"
#include "bytes.h"
#include "incr.h"

enum fact_type {
	FACT_STORE_CREATED = 1,
	FACT_DATASET_CREATED = 2,
	FACT_DATASET_RENAMED = 3,
	FACT_DATASET_DELETED = 4,
	FACT_DATASET_META = 5,
	FACT_BRANCH_CREATED = 6,
	FACT_BRANCH_DELETED = 7,
	FACT_BRANCH_RESET = 8,
	FACT_TXN_OPENED = 9,
	FACT_TXN_ABORTED = 10,
	FACT_COMMIT = 11,
	FACT_SCHEMA = 12,
	FACT_BUILD_OPENED = 13,
	FACT_BUILD_ENDED = 14,
	FACT_LOST = 15, /* lost.h */
};

/* Bytes borrowed from a record or from the caller. */
struct text {
	const char *data;
	size_t size;
};

struct text text_of(const char *s); /* NULL gives the empty text */
bool text_equals(struct text a, const char *s);
char *text_dup(
	struct text t); /* NUL-terminated, owned; NULL when out of memory */

struct fact_dataset {
	uint64_t id;
	struct text name, description;
	struct text pairs; /* encoded by fact_pairs_encode() */
	int64_t time_ns;
	struct text user;
	uint64_t branch_id, line; /* of its main branch */
};

struct fact_branch {
	uint64_t id, dataset_id, line;
	struct text name, parent; /* parent empty: a root */
	uint64_t parent_line, at; /* at 0: no history */
	int64_t time_ns;
};

struct fact_reset {
	uint64_t branch_id, line, parent_line, to;
	int64_t time_ns;
};

/* Where a committed transaction's manifest stands. */
enum fact_manifest { FACT_MANIFEST_INLINE = 0, FACT_MANIFEST_PACK = 1 };
#define FACT_MANIFEST_RELATIVE 2 /* bit of the same byte */

struct fact_txn {
	uint64_t number, dataset_id, branch_id, line, parent;
	enum incr_txn_type type;
	struct text origin, user, message, pairs;
	int64_t opened_ns, closed_ns;
	uint64_t view_start;
	uint64_t n_files, n_removed, size;
	uint64_t view_files, view_size;
	uint64_t build;
	enum fact_manifest manifest_kind;
	bool is_relative; /* a SNAPSHOT whose manifest is the difference to its parent's view */
	struct text
		manifest; /* inline: entries; pack: an encoded content descriptor */
	uint64_t frames_off; /* of this transaction's frames in the record's frames */
};

struct fact_build {
	uint64_t number;
	enum incr_build_status status;
	struct text transform;
	struct text payload; /* build_record.h */
};

struct fact_schema {
	uint64_t dataset_id, line, after;
	struct text text;
};

/* key -> value texts; a NULL value clears the key. */
#define FACT_TEXT_MAX ((size_t)1 << 20) /* of a message, of all pairs */
/* INCR_E_INVALID "bad-text": not UTF-8; INCR_E_RANGE "text-too-long".  NULL is fine. */
int fact_check_text(const char *what, const char *text, struct incr_error *err);
int fact_pairs_check(const struct incr_pairs *pairs, bool may_clear,
		     struct incr_error *err);
int fact_pairs_encode(const struct incr_pairs *pairs, struct buf *out);
int fact_pairs_decode(struct text from, struct incr_pairs *out,
		      struct incr_error *err);
void incr_pairs_release(struct incr_pairs *pairs);
int incr_pairs_copy(const struct incr_pairs *from, struct incr_pairs *out);

int fact_encode_dataset(const struct fact_dataset *f, struct buf *out);
int fact_decode_dataset(struct cursor *c, struct fact_dataset *out);
int fact_encode_branch(const struct fact_branch *f, struct buf *out);
int fact_decode_branch(struct cursor *c, struct fact_branch *out);
int fact_encode_reset(const struct fact_reset *f, struct buf *out);
int fact_decode_reset(struct cursor *c, struct fact_reset *out);
int fact_encode_txn(const struct fact_txn *f, struct buf *out);
int fact_decode_txn(struct cursor *c, struct fact_txn *out);
int fact_encode_build(const struct fact_build *f, struct buf *out);
int fact_decode_build(struct cursor *c, struct fact_build *out);
int fact_encode_schema(const struct fact_schema *f, struct buf *out);
int fact_decode_schema(struct cursor *c, struct fact_schema *out);

struct text cursor_text(struct cursor *c);
int buf_put_text(struct buf *b, struct text t);
int buf_put_zigzag(struct buf *b, int64_t v);
int64_t cursor_zigzag(struct cursor *c);

#endif
