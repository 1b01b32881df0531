/*
 * Bringing file content into the store: sources are walked in path order,
 * read once, hashed and compressed on all cores, and come out as frames in one
 * pack (or, when small, in memory, for the log record) plus manifest entries
 * in path order.  Memory is bounded by the jobs in flight.
 */
#ifndef INCR_INGEST_H
#define INCR_INGEST_H

#include "io.h"
#include "lock.h"
#include "manifest.h"

#define INGEST_INLINE_MAX \
	(64u << 10) /* frames up to this go into the log record */

struct ingest;

/* What to do with a file of a source. */
enum ingest_verdict { INGEST_READ, INGEST_LEAVE_OUT, INGEST_KNOWN };

/* The files of a view, in path order; used by one thread at a time. */
struct ingest_base {
	int (*rewind)(void *closure, struct incr_error *err);
	/* The next one: 0 (the caller releases it; its path is valid until the
	 * next call), 1 at the end. */
	int (*next)(void *closure, struct manifest_entry *out_entry,
		    struct incr_error *err);
	void *closure;
	uint64_t txn; /* that ends the view */
	uint64_t max_changes; /* a longer difference is not worth it */
};

struct ingest_options {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	uint8_t uuid[16];
	unsigned n_threads; /* 0: one per core */
	bool skips_special; /* leave symlinks, devices, sockets, FIFOs out instead of failing */
	bool leases; /* take a read lease on each file: "staging-busy" when one can still be written */
	incr_progress_fn progress; /* NULL: none */
	void *progress_closure;
	/*
	 * The stored version of a path, to compare with: 0 and *out_entry (the
	 * caller releases it), 1 when there is none.  Thread-safe.  NULL: none.
	 * Equality is proved by bytes, never by hash alone: a small file is hashed
	 * in memory and compared on a hit; a larger one of equal size is compared
	 * frame by frame while it is read, nothing being written until the first
	 * difference, after which the equal prefix shares the stored frames.
	 */
	int (*find_stored)(void *closure, const char *path, size_t length,
			   struct manifest_entry *out_entry,
			   struct incr_error *err);
	/*
	 * Where the bytes of a file may be stored, whatever its path and dataset:
	 * 0 and *out_content (the caller releases it), 1 when nobody knows.
	 * Thread-safe.  NULL: none.  Again the bytes are compared.  @hash: of a
	 * file that fits a frame; NULL: it is larger, and begins with @front.
	 */
	int (*find_content)(void *closure, const uint8_t *hash, uint64_t front,
			    uint64_t size, struct content *out_content,
			    struct incr_error *err);
	void *content_closure;
	struct content_reader *reader; /* borrowed; to read what these gave */
	/* true: a file whose bytes and permission bits equal the stored version is left out of the
	 * manifest (UPDATE); false: it gets an entry that shares the stored content (SNAPSHOT). */
	bool drops_unchanged;
	/*
	 * Asked of each file before it is opened, in path order, with what a stat
	 * says; NULL: every file is read.  INGEST_KNOWN: the stored version (as
	 * find_stored gives it) holds its bytes, so it need not be read.
	 */
	int (*judge)(void *closure, const char *path, size_t length,
		     const struct io_stat *st, enum ingest_verdict *out_verdict,
		     struct incr_error *err);
	void *closure;
	/*
	 * A SNAPSHOT: the view that it follows, as find_stored gives it.  The
	 * manifest becomes the difference to it, if that is short.  Borrowed until
	 * the ingest is freed; NULL: the manifest is whole.
	 */
	const struct ingest_base *base;
	/* What this commit has stored already; the ingest's own. */
	struct ingest_seen *seen;
};

int ingest_new(const struct ingest_options *options, struct ingest **out_ingest,
	       struct incr_error *err);
/*
 * Add sources; nothing is read yet.  Paths in the store are checked by
 * name_check_path() and must be unique over all sources; `x` beside `x/y` is
 * an error (word "path-conflict").
 */
int ingest_add_tree(struct ingest *g, int dirfd, const char *path,
		    const char *prefix, struct incr_error *err);
int ingest_add_file(struct ingest *g, int dirfd, const char *path,
		    const char *name, struct incr_error *err);
/* A descriptor that is read to its end: standard input. */
int ingest_add_stream(struct ingest *g, int fd, const char *name,
		      struct incr_error *err);
/* A path to remove (DELETE). */
int ingest_add_removal(struct ingest *g, const char *path, size_t length,
		       struct incr_error *err);

/* What came out; everything in the pack is durable. */
struct ingest_result {
	uint64_t n_put, n_removed;
	uint64_t size; /* bytes of the files put */
	/* The manifest is the difference to the view that this transaction ends; it
	 * puts n_put files all the same, and what it removes counts for nothing.
	 * 0: it is whole. */
	uint64_t relative_to;
	/* Small: both in memory.  Frame offsets are relative to the start of inline_frames, container
	 * PACK_SELF; whoever decodes an entry calls content_rebase() with the log position of the
	 * first frame.  Shared content of older records keeps PACK_LOG and absolute positions. */
	bool is_inline;
	struct buf manifest; /* owned; is_inline */
	struct buf inline_frames; /* owned; is_inline */
	/* Large */
	uint64_t pack_id;
	uint64_t pack_size;
	struct claim pack_claim; /* owned: of the name of the pack */
	struct content manifest_content; /* owned */
	bool is_recorded; /* a log record names its pack: that stays, whatever fails later */
};
/*
 * Walk, read, hash, compress, write.  Fails on the first special file
 * ("special-file"), on a file that changes while it is read ("source-changed"),
 * on one that cannot be read.  On failure nothing is left on disk.
 */
int ingest_run(struct ingest *g, struct ingest_result *out_result,
	       struct incr_error *err);
/* Not before the record that names its pack is written. */
void ingest_result_release(struct ingest_result *r);
/* The entries of its manifest; @r and @reader are borrowed until the reader is freed. */
int ingest_result_entries(const struct ingest_result *r,
			  struct content_reader *reader,
			  struct manifest_reader **out_entries,
			  struct incr_error *err);
/* Removes the pack of a result whose commit was refused. */
void ingest_result_discard(const struct ingest_options *options,
			   struct ingest_result *r);
void ingest_free(struct ingest *g);

#endif
