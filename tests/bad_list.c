/* The list of bad stores. */
#include "config.h"

#include "bad_store.h"

#include <stddef.h>

#include "fact.h"

#define C INCR_E_CORRUPT
#define U INCR_E_UNSUPPORTED
#define FIELD(type, field)                   \
	.off = offsetof(struct type, field), \
	.width = sizeof(((struct type *)0)->field)
#define TEXT(s) .text = (s), .size = sizeof(s) - 1
#define NUMBERS(...)                \
	.numbers = { __VA_ARGS__ }, \
	.size = sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

#define P16 "xxxxxxxxxxxxxxxx"
#define P64 P16 P16 P16 P16
#define P256 P64 P64 P64 P64
#define D10 "d/d/d/d/d/d/d/d/d/d/"
#define D50 D10 D10 D10 D10 D10
#define D250 D50 D50 D50 D50 D50
#define VARINT_MAX "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

/* clang-format off */
const struct bad bad_stores[] = {
	/* the format file */
	{ "bad-format-version", BAD_FORMAT, U, "newer-format", .off = 8, .width = 4, .value = 2 },
	{ "bad-format-version-0", BAD_FORMAT, C, "damaged-format", .off = 8, .width = 4, .value = 0 },
	{ "bad-format-reserved", BAD_FORMAT, C, "damaged-format", .off = 12, .width = 4, .value = 1 },
	{ "bad-format-tail", BAD_FORMAT, C, "damaged-format", .off = 119, .width = 1, .value = 1 },
	{ "bad-format-feature", BAD_FORMAT, U, "newer-format", .off = 16, .width = 8, .value = 1 },
	{ "bad-format-magic", BAD_FORMAT, INCR_E_NOTFOUND, "not-a-store", .off = 0, .width = 8, .value = 1 },
	{ "bad-format-uuid", BAD_FORMAT, C, "corrupt-log", .off = 40, .width = 8, .value = 1 },

	/* headers of segments and records */
	{ "bad-segment-version", BAD_SEGMENT, U, "unsupported", .off = 8, .width = 4, .value = 2 },
	{ "bad-segment-reserved", BAD_SEGMENT, C, "corrupt-log", .off = 12, .width = 4, .value = 1 },
	{ "bad-segment-uuid", BAD_SEGMENT, C, "corrupt-log", .off = 16, .width = 8, .value = 1 },
	{ "bad-segment-base", BAD_SEGMENT, C, "corrupt-log", .off = 32, .width = 8, .value = 64 },
	{ "bad-segment-sequence", BAD_SEGMENT, C, "corrupt-log", .off = 40, .width = 8, .value = 2 },
	{ "bad-record-version", BAD_RECORD, U, "unsupported", .off = 12, .width = 4, .value = 2 },
	{ "bad-record-flag", BAD_RECORD, U, "unsupported", .off = 6, .width = 2, .value = 1 },
	{ "bad-record-type", BAD_RECORD, U, "newer-format", .off = 4, .width = 2, .value = 999 },
	{ "bad-record-other-type", BAD_RECORD, C, "bad-fact", .off = 4, .width = 2, .value = FACT_DATASET_DELETED },
	{ "bad-record-size", BAD_RECORD, C, "corrupt-log", .off = 8, .width = 4, .value = UINT32_MAX },
	{ "bad-record-size-max", BAD_RECORD, C, "corrupt-log", .off = 8, .width = 4, .value = 64 << 20 },
	{ "bad-record-sequence-0", BAD_RECORD, C, "corrupt-log", .off = 16, .width = 8, .value = 0 },
	{ "bad-record-sequence", BAD_RECORD, C, "corrupt-log", .off = 16, .width = 8, .value = 9 },
	{ "bad-record-position", BAD_RECORD, C, "corrupt-log", .off = 24, .width = 8, .value = 64 },
	{ "bad-record-durable-to", BAD_RECORD, C, "corrupt-log", .off = 32, .width = 8, .value = 1 << 20 },
	{ "bad-record-tag", BAD_RECORD, C, "corrupt-log", .off = 40, .width = 8, .value = 1 },

	/* names */
	{ "bad-dataset-dots", BAD_DATASET, C, "bad-fact", TEXT("..") },
	{ "bad-dataset-escape", BAD_DATASET, C, "bad-fact", TEXT("a/../../etc") },
	{ "bad-dataset-empty", BAD_DATASET, C, "bad-fact", TEXT("") },
	{ "bad-dataset-absolute", BAD_DATASET, C, "bad-fact", TEXT("/a") },
	{ "bad-dataset-nul", BAD_DATASET, C, "bad-fact", TEXT("a\0b") },
	{ "bad-dataset-control", BAD_DATASET, C, "bad-fact", TEXT("a\x1b[31m") },
	{ "bad-dataset-utf8", BAD_DATASET, C, "bad-fact", TEXT("a\xff") },
	{ "bad-dataset-current", BAD_DATASET, C, "bad-fact", TEXT("current") },
	{ "bad-dataset-long", BAD_DATASET, C, "bad-fact", TEXT(P256) },
	{ "bad-branch-slash", BAD_BRANCH, C, "bad-fact", TEXT("a/b") },
	{ "bad-branch-dots", BAD_BRANCH, C, "bad-fact", TEXT("..") },
	{ "bad-branch-empty", BAD_BRANCH, C, "bad-fact", TEXT("") },

	/* numbers of branches: cycles of lines among them */
	{ "bad-branch-id", BAD_BRANCH_FIELD, C, "bad-fact", FIELD(fact_branch, id), .value = 0 },
	{ "bad-branch-dataset", BAD_BRANCH_FIELD, C, "bad-fact", FIELD(fact_branch, dataset_id), .value = 0 },
	{ "bad-line-cycle", BAD_BRANCH_FIELD, C, "bad-fact", FIELD(fact_branch, parent_line), .value = 2 },
	{ "bad-line-later", BAD_BRANCH_FIELD, C, "bad-fact", FIELD(fact_branch, parent_line), .value = 99 },
	{ "bad-line-0", BAD_BRANCH_FIELD, C, "bad-fact", FIELD(fact_branch, line), .value = 0 },

	/* numbers of transactions: cycles of parents among them */
	{ "bad-txn-number", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, number), .value = 0 },
	{ "bad-txn-parent-itself", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, parent), .value = 2 },
	{ "bad-txn-parent-later", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, parent), .value = 99 },
	{ "bad-txn-parent-none", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, parent), .value = 0 },
	{ "bad-txn-view-start", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, view_start), .value = 99 },
	{ "bad-txn-dataset", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, dataset_id), .value = 99 },
	{ "bad-txn-branch", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, branch_id), .value = 99 },
	{ "bad-txn-line", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, line), .value = 99 },
	{ "bad-txn-type", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, type), .value = 9 },
	{ "bad-txn-manifest-kind", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, manifest_kind), .value = 4 },
	{ "bad-txn-relative-update", BAD_TXN_FIELD, C, "bad-fact", FIELD(fact_txn, manifest_kind), .value = 2 },
	{ "bad-txn-files", BAD_TXN_FIELD, C, "wrong-counts", FIELD(fact_txn, n_files), .value = UINT64_MAX },
	{ "bad-txn-size", BAD_TXN_FIELD, C, "wrong-counts", FIELD(fact_txn, size), .value = UINT64_MAX },

	/* facts that do not parse, or contradict those before */
	{ "bad-commit-tail", BAD_TAIL, C, "bad-fact", TEXT("x") },
	{ "bad-commit-head-size", BAD_FACT, C, "bad-fact", .off = FACT_COMMIT, TEXT("\xff\xff\xff\xff\x00\x00\x00") },
	{ "bad-commit-many-branches", BAD_FACT, C, "bad-fact", .off = FACT_COMMIT, TEXT("\x0b\x00\x00\x00" VARINT_MAX "\x00") },
	{ "bad-commit-many-txns", BAD_FACT, C, "bad-fact", .off = FACT_COMMIT, TEXT("\x0b\x00\x00\x00\x00" VARINT_MAX) },
	{ "bad-abort-not-open", BAD_FACT, C, "bad-fact", .off = FACT_TXN_ABORTED, TEXT("\x01\x00") },
	{ "bad-abort-unknown", BAD_FACT, C, "bad-fact", .off = FACT_TXN_ABORTED, TEXT("\x63\x00") },
	{ "bad-rename-unknown", BAD_FACT, C, "bad-fact", .off = FACT_DATASET_RENAMED, TEXT("\x63\x01" "b") },
	{ "bad-rename-dots", BAD_FACT, C, "bad-fact", .off = FACT_DATASET_RENAMED, TEXT("\x01\x02" "..") },
	{ "bad-delete-unknown", BAD_FACT, C, "bad-fact", .off = FACT_DATASET_DELETED, TEXT("\x63") },
	{ "bad-fact-tail", BAD_FACT, C, "bad-fact", .off = FACT_DATASET_DELETED, TEXT("\x01\x00") },
	{ "bad-fact-empty", BAD_FACT, C, "bad-fact", .off = FACT_BRANCH_CREATED, TEXT("") },
	{ "bad-varint-long", BAD_FACT, C, "bad-fact", .off = FACT_DATASET_DELETED, TEXT("\x81\x00") },
	{ "bad-build-status", BAD_FACT, C, "bad-fact", .off = FACT_BUILD_OPENED, TEXT("\x01\x09\x01" "t\x00") },
	{ "bad-build-name", BAD_FACT, C, "bad-fact", .off = FACT_BUILD_OPENED, TEXT("\x01\x01\x02..\x00") },

	/* paths: none may lead out of a directory */
	{ "bad-path-dots", BAD_PATH, C, "damaged-manifest", TEXT("../../etc/passwd") },
	{ "bad-path-inner-dots", BAD_PATH, C, "damaged-manifest", TEXT("a/../b") },
	{ "bad-path-dot", BAD_PATH, C, "damaged-manifest", TEXT("a/./b") },
	{ "bad-path-absolute", BAD_PATH, C, "damaged-manifest", TEXT("/etc/passwd") },
	{ "bad-path-empty", BAD_PATH, C, "damaged-manifest", TEXT("") },
	{ "bad-path-empty-part", BAD_PATH, C, "damaged-manifest", TEXT("a//b") },
	{ "bad-path-slash-end", BAD_PATH, C, "damaged-manifest", TEXT("a/") },
	{ "bad-path-nul", BAD_PATH, C, "damaged-manifest", TEXT("a\0b") },
	{ "bad-path-part-long", BAD_PATH, C, "damaged-manifest", TEXT(P256) },
	{ "bad-path-deep", BAD_PATH, C, "damaged-manifest", TEXT(D250 "f") },

	/* manifests: op 2 removes a path */
	{ "bad-manifest-op", BAD_MANIFEST, C, "damaged-manifest", TEXT("\x03\x01" "a") },
	{ "bad-manifest-order", BAD_MANIFEST, C, "damaged-manifest", TEXT("\x02\x01" "b\x02\x01" "a") },
	{ "bad-manifest-twice", BAD_MANIFEST, C, "damaged-manifest", TEXT("\x02\x01" "a\x02\x01" "a") },
	{ "bad-manifest-length", BAD_MANIFEST, C, "damaged-manifest", TEXT("\x02" VARINT_MAX "a") },
	{ "bad-manifest-cut", BAD_MANIFEST, C, "damaged-manifest", TEXT("\x02\x05" "a") },

	/* content descriptors; the container comes third in a part */
	{ "bad-content-kind", BAD_CONTENT, C, "damaged-manifest", NUMBERS(7, 1) },
	{ "bad-part-beyond", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, 100, 9, 64, 132, 100, 50) },
	{ "bad-part-size", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, UINT64_MAX, 9, 64, 132, 100, 1) },
	{ "bad-part-raw", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, 100, 9, 64, 132, 2 << 20, 0) },
	{ "bad-part-off", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, 100, 9, 3, 132, 100, 0) },
	{ "bad-part-off-overflow", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, 100, 9, UINT64_MAX, 132, 100, 0) },
	{ "bad-part-stored", BAD_CONTENT, C, "damaged-manifest", NUMBERS(1, 100, 9, 64, UINT32_MAX, 100, 0) },
	{ "bad-part-missing-pack", BAD_CONTENT, C, "missing-pack", NUMBERS(1, 100, 9, 64, 132, 100, 0) },
	{ "bad-part-in-log", BAD_CONTENT, C, "damaged-frame", NUMBERS(1, 100, 0, 64, 132, 100, 0) },
	{ "bad-part-beyond-log", BAD_CONTENT, C, "corrupt-log", NUMBERS(1, 100, 0, 1 << 20, 132, 100, 0) },
	{ "bad-extents-none", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 0) },
	{ "bad-extents-many", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, UINT64_MAX, 9, 64, 2, 0, 2) },
	{ "bad-extents-frame-size", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 63, 1, 9, 64, 2, 0, 2) },
	{ "bad-extents-few-frames", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 1, 9, 64, 2, 0, 1) },
	{ "bad-extents-beyond-index", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 1, 9, 64, 2, 1, 2) },
	{ "bad-extents-overflow", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 1, 9, UINT64_MAX - 8, 2, 0, 2) },
	{ "bad-extents-index-overflow", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 1, 9, 64, UINT64_MAX, UINT64_MAX - 1, 2) },
	{ "bad-extents-in-log", BAD_CONTENT, C, "damaged-manifest", NUMBERS(2, 100000, 16, 1, 0, 64, 2, 0, 2) },
	{ "bad-extents-missing-pack", BAD_CONTENT, C, "missing-pack", NUMBERS(2, 100000, 16, 1, 9, 64, 2, 0, 2) },

	/* frames */
	{ "bad-frame-magic", BAD_FRAME, C, "damaged-frame", .off = 0, .width = 4, .value = 1 },
	{ "bad-frame-codec", BAD_FRAME, C, "damaged-frame", .off = 4, .width = 1, .value = 2 },
	{ "bad-frame-not-zstd", BAD_FRAME, C, "damaged-frame", .off = 4, .width = 1, .value = 1 },
	{ "bad-frame-reserved", BAD_FRAME, C, "damaged-frame", .off = 5, .width = 1, .value = 1 },
	{ "bad-frame-raw-size", BAD_FRAME, C, "damaged-frame", .off = 8, .width = 4, .value = 101 },
	{ "bad-frame-container", BAD_FRAME, C, "damaged-frame", .off = 16, .width = 8, .value = 9 },
	{ "bad-bomb-declared", BAD_BOMB, C, "damaged-frame", .off = 1, .value = 64 << 20 },
	{ "bad-bomb-undeclared", BAD_BOMB, C, "damaged-frame", .off = 0, .value = 64 << 20 },
	{ "bad-bomb-small", BAD_BOMB, C, "damaged-frame", .off = 1, .value = 1 << 20, .width = 200 },
	{ .name = NULL },
};
/* clang-format on */
