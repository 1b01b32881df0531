/*
 * What a folder's files looked like (size, times, inode) when they were last
 * synced, so that unchanged ones need a stat and no read.
 *
 * Derived: one table for each branch and folder in sync/, replaced as a whole.
 * An entry says: at the head of the cache the view's version of the path had
 * the bytes of the file that has this stat.  It counts as long as the view's
 * version is not newer than that head.  A file that was changed within two
 * seconds of being looked at has no entry: its times could not tell another
 * change.
 */
#ifndef INCR_SYNC_CACHE_H
#define INCR_SYNC_CACHE_H

#include "store.h"

struct sync_cache;
/* Absent or damaged: an empty one. @directory: absolute. */
int sync_cache_open(struct incr_store *st, uint64_t branch_id,
		    const char *directory, struct sync_cache **out_cache,
		    struct incr_error *err);
void sync_cache_close(struct sync_cache *c);
/* The transaction at which the entries held; 0: none. */
uint64_t sync_cache_head(const struct sync_cache *c);

/*
 * Paths ascend from call to call.  True: the cache knows the file, and it
 * looks as it did.
 */
bool sync_cache_knows(struct sync_cache *c, const char *path, size_t length,
		      const struct io_stat *st);
/* Remember the file for the next cache. */
int sync_cache_add(struct sync_cache *c, const char *path, size_t length,
		   const struct io_stat *st, struct incr_error *err);
/* The next cache holds at @head from now on; a failure costs only time. */
void sync_cache_publish(struct sync_cache *c, uint64_t head);

#endif
