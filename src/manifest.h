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

#endif
