/*
 * The part of verify that reads content: files are read by all cores, and
 * content that several files share once.
 */
#ifndef INCR_VERIFY_DATA_H
#define INCR_VERIFY_DATA_H

#include "content.h"
#include "manifest.h"

/* One file of one transaction that cannot be read, or is not what it should be. */
struct verify_failure {
	const struct manifest_entry *entry;
	const char *dataset;
	uint64_t txn;
	const struct incr_error *why;
};
/* Never called by two threads at once; non-zero ends the verification. */
typedef int (*verify_failure_fn)(void *closure,
				 const struct verify_failure *failure);

/* Threads take as long to start as this to read. */
#define VERIFY_ALONE_SIZE (UINT64_C(256) << 10)

struct verify_data;
/*
 * @alone_size: as many bytes are read by the caller's thread; the others start
 * with what is more.
 */
int verify_data_new(struct content_reader *reader, uint64_t alone_size,
		    verify_failure_fn fn, void *closure,
		    struct verify_data **out_data, struct incr_error *err);
void verify_data_free(struct verify_data *d);
/*
 * Check a file of a manifest; what comes of it may be reported by a later call.
 * @reads: its bytes against its hash; else only that its place is there.
 * Returns 0, a code that is no damage, or what the function returned.
 */
int verify_data_check(struct verify_data *d, const struct manifest_entry *entry,
		      const char *dataset, uint64_t txn,
		      struct incr_error *err);
/* Wait for and report all. */
int verify_data_finish(struct verify_data *d, struct incr_error *err);
/* Was content found damaged that more than one file may have?  Then all manifests are to be given to verify_data_again(). */
bool verify_data_has_shared(const struct verify_data *d);
int verify_data_again(struct verify_data *d, const struct manifest_entry *entry,
		      const char *dataset, uint64_t txn,
		      struct incr_error *err);
/* Bytes read so far. */
uint64_t verify_data_size(const struct verify_data *d);

#endif
