/*
 * What killed processes left in a store: files that the log does not tell of,
 * and that nobody is making.
 */
#ifndef INCR_LEFTOVER_H
#define INCR_LEFTOVER_H

#include "content.h"
#include "store.h"

enum leftover_kind {
	LEFTOVER_FILE,
	LEFTOVER_STAGING, /* a directory of the spool */
	LEFTOVER_OF_LOST, /* the same; the record that tells of it may be lost */
};

/* @path: below the store. @size: bytes of the file, or of those below it. */
typedef int (*leftover_fn)(void *closure, enum leftover_kind kind,
			   const char *path, uint64_t size);

/*
 * All but packs.  What is told to @fn stays no one's, and may be removed at any
 * time; a non-zero return of it ends the walk and is returned.  The log must be
 * whole: it is read to its end.
 */
int leftover_each(struct incr_store *st, leftover_fn fn, void *closure,
		  struct incr_error *err);

/* Packs that nobody is making.  Zeroed: none. */
struct leftover_packs {
	size_t n;
	struct leftover_pack {
		uint64_t id;
		bool is_named;
	} * items; /* owned; by id */
};

/*
 * In this order: list them; read the whole log, and name the packs in all
 * places of all its manifests; what was not named then never will be.
 */
int leftover_packs_list(struct leftover_packs *p, struct incr_store *st,
			struct incr_error *err);
void leftover_packs_name(struct leftover_packs *p, const struct content *c);
int leftover_packs_each(const struct leftover_packs *p, struct incr_store *st,
			leftover_fn fn, void *closure, struct incr_error *err);
void leftover_packs_release(struct leftover_packs *p);

#endif
