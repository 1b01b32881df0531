/*
 * A transaction's manifest: its sorted list of added, replaced and removed
 * paths.  A manifest is a byte stream of entries; a small one stands in the
 * commit record, a larger one is content (CONTENT_EXTENTS) in the pack.
 * Pure encode and decode of one entry; docs/format.md, "Manifests".
 */
#ifndef INCR_MANIFEST_H
#define INCR_MANIFEST_H

#include "content.h"

enum manifest_op { MANIFEST_PUT = 1, MANIFEST_REMOVE = 2 };

struct manifest_entry {
	enum manifest_op op;
	const char *path; /* borrowed; not NUL-terminated */
	size_t path_length;
	uint32_t mode; /* permission bits 0777 */
	int64_t mtime_ns;
	uint8_t hash[INCR_HASH_SIZE];
	struct content content; /* content.size is the file's size */
};

/* Append one entry: u8 op, string path; for PUT varint mode, zigzag varint mtime_ns, 16 bytes hash, descriptor. */
int manifest_encode(const struct manifest_entry *e, struct buf *out);
/* One entry from @from; the path is borrowed from it, the content is owned by @out. Checks path, mode, sizes. */
int manifest_decode(struct cursor *from, struct manifest_entry *out);
void manifest_entry_release(struct manifest_entry *e);

/*
 * The entries of a whole manifest one after the other, from memory or from
 * content, in bounded memory.  Checks that paths ascend strictly.  A damaged
 * one is INCR_E_CORRUPT, word "damaged-manifest".
 */
struct manifest_reader;
/* @data: borrowed until free.  @frames_position: see content_rebase(). */
int manifest_reader_new_memory(const void *data, size_t size,
			       uint64_t frames_position,
			       struct manifest_reader **out_reader);
/* @reader and @content: borrowed until free. */
int manifest_reader_new_content(struct content_reader *reader,
				const struct content *content,
				struct manifest_reader **out_reader);
/* 0 and a borrowed entry, valid until the next call; 1 at the end. */
int manifest_reader_next(struct manifest_reader *m,
			 const struct manifest_entry **out_entry,
			 struct incr_error *err);
void manifest_reader_free(struct manifest_reader *m);

#endif
