/*
 * A store in memory to be damaged, and what an undamaged copy of it holds:
 * where each record stands and what it commits, and each file of each
 * transaction with the hash of its bytes.
 */
#ifndef INCR_REPAIR_WORLD_H
#define INCR_REPAIR_WORLD_H

#include "simio.h"
#include "store.h"

#define WORLD_STORE "store"
#define WORLD_LOG WORLD_STORE "/log/0000000000000000.log"
#define WORLD_RECORDS_MAX 64
#define WORLD_FILES_MAX 128
#define WORLD_TXNS_MAX 64

struct world_file {
	uint64_t txn;
	char *path; /* owned */
	struct content content; /* owned */
	uint8_t hash[INCR_HASH_SIZE];
};

struct world_txn {
	uint64_t number; /* committed */
	size_t record; /* that commits it */
	uint64_t parent; /* 0: none */
	bool is_whole; /* a SNAPSHOT that takes nothing over */
	bool has_pack; /* its manifest stands in one: */
	struct content manifest; /* owned */
	uint8_t manifest_hash[INCR_HASH_SIZE];
};

struct world {
	struct sim *sim; /* owned */
	bool has_index; /* it covers all records */
	size_t n_records, n_files, n_txns;
	struct {
		size_t off, span;
		uint64_t opened, aborted; /* transaction; 0: none */
	} records[WORLD_RECORDS_MAX];
	struct world_file files[WORLD_FILES_MAX];
	struct world_txn txns[WORLD_TXNS_MAX];
	uint64_t open_txn; /* with staging */
};

/* Dies on failure. */
void world_make(struct world *w, bool has_index);
void world_release(struct world *w);

/* Content of the undamaged store, read in another: 0, 1 when it is damaged or another. */
int world_read(struct incr_store *st, const struct content *content,
	       const uint8_t hash[INCR_HASH_SIZE]);

#endif
