/*
 * What the parts of repair share: repair.c (order), repair_log.c (damaged
 * records) and repair_note.c (transactions and files that cannot be read).
 */
#ifndef INCR_REPAIR_H
#define INCR_REPAIR_H

#include "lost.h"
#include "store.h"

struct repair {
	struct incr_store *st;
	const struct incr_repair_options *options;
	incr_repair_fn done;
	incr_finding_fn finding;
	void *closure;
	struct incr_repair_result *result;
	struct incr_error *err;
};

/* Tell; a non-zero return of the caller's function ends the repair. */
int repair_tell(struct repair *p, enum incr_repair_action action,
		const char *what, uint64_t size);
int repair_tell_finding(struct repair *p, const struct incr_finding *f);
/* Remove a file that is no one's; not in a dry run. */
int repair_remove_file(struct repair *p, const char *path, uint64_t size);

/*
 * Headers of segments, and stretches without whole records.  The caller holds
 * LOCK_APPEND, unless it is a dry run.  0, or 1: there is damage that nothing
 * can be said about, and all is as it was.
 */
int repair_log(struct repair *p);

/*
 * Verify everything, and give up what cannot be read: an entry in the log for
 * each transaction without a manifest and each file without its content.
 */
int repair_note(struct repair *p);

#endif
