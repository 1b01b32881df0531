/*
 * Packs: files of frames, written once, front to back, by one writer.
 * docs/format.md, "Packs".  Pack header: 64 bytes (magic "INCRPACK", version,
 * store uuid, pack id, hash), then frames back to back, then nothing: the log
 * says how much of a pack is committed; bytes after that are no one's.
 */
#ifndef INCR_PACK_H
#define INCR_PACK_H

#include "frame.h"
#include "io.h"
#include "lock.h"

#define PACK_HEADER_SIZE 64
#define PACK_LOG \
	UINT64_C(0) /* the container "log": offsets are log positions */
/*
 * "In this very record": offsets count from the first inline frame of the log
 * record that holds the descriptor, so that it can be written before the
 * record's position is known.  The frames themselves say PACK_LOG.  A reader
 * turns it into PACK_LOG with content_rebase() as soon as it knows the position.
 */
#define PACK_SELF UINT64_MAX
#define PACK_PATH_SIZE 32

/* "packs/<16 hex>.pack", below the store's directory; NUL-terminated. */
void pack_path(uint64_t id, char out[PACK_PATH_SIZE]);
/* 0; INCR_E_CORRUPT; INCR_E_UNSUPPORTED for a whole header of another version. */
int pack_check_header(const uint8_t bytes[PACK_HEADER_SIZE],
		      const uint8_t uuid[16], uint64_t id);

struct pack_writer;
/*
 * A new pack with a random id, named packs/<16 hex>.pack; the header is written
 * with the first frames.  While the lock of its name is held, it is somebody's.
 */
int pack_writer_open(const struct incr_io *io, int store_dirfd,
		     const uint8_t uuid[16], struct pack_writer **out_writer,
		     struct incr_error *err);
uint64_t pack_writer_id(const struct pack_writer *w);
/* Append encoded frames (whole frames, back to back), which are bound to their
 * places; few at a time are buffered into writes of 4 MiB.  *out_off: where the first byte stands in the pack. */
int pack_writer_put(struct pack_writer *w, uint8_t *frames, size_t size,
		    uint64_t *out_off, struct incr_error *err);
/* Bytes put so far; by any thread, while one other puts.  0 or a code; short: INCR_E_RANGE. */
int pack_writer_read(struct pack_writer *w, uint64_t off, void *data,
		     size_t size, struct incr_error *err);
/* Flush, fdatasync, fsync of packs/; after it the pack is durable. *out_size: its length. */
int pack_writer_finish(struct pack_writer *w, uint64_t *out_size,
		       struct incr_error *err);
/* The lock of its name, to be held until a record names the pack, or it is removed. */
void pack_writer_take_claim(struct pack_writer *w, struct claim *out_claim);
/* Remove the file; NULL allowed. Also after finish, when the commit was refused. Frees the writer. */
void pack_writer_discard(struct pack_writer *w);
void pack_writer_free(struct pack_writer *w); /* keep the file */

/* Open packs, a bounded number of descriptors at once (LRU); thread-safe. */
struct pack_set;
struct log;
int pack_set_new(const struct incr_io *io, int store_dirfd,
		 const uint8_t uuid[16], struct log *log,
		 struct pack_set **out_set);
void pack_set_free(struct pack_set *s);
/*
 * Have bytes of the pack that @w writes read through it, as not all of them are
 * in the file yet.  One at a time: while there is another, @w goes without.
 */
void pack_set_attach(struct pack_set *s, struct pack_writer *w);
/* Before @w is finished or discarded; nobody may read its bytes meanwhile. */
void pack_set_detach(struct pack_set *s, const struct pack_writer *w);
/*
 * Raw bytes of a container (pack, or PACK_LOG through log_read_bytes()).
 * A missing pack: INCR_E_CORRUPT, word "missing-pack". Short: "damaged-pack".
 */
int pack_set_read(struct pack_set *s, uint64_t container, uint64_t off,
		  void *data, size_t size, struct incr_error *err);

#endif
