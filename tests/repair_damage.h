/* Random damage to the files of a store in memory, and lists of names. */
#ifndef INCR_REPAIR_DAMAGE_H
#define INCR_REPAIR_DAMAGE_H

#include "repair_world.h"

#define NAMES_MAX 512

/* What is lost, or was named: texts, each once. */
struct names {
	char *items[NAMES_MAX]; /* owned */
	size_t n;
};
void names_add(struct names *names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void names_release(struct names *names);
bool names_have(const struct names *names, const char *text);
/* The first of @a that @b lacks; NULL: none. */
const char *names_more(const struct names *a, const struct names *b);

/* Bytes of all files below @directory. */
size_t size_below(struct sim *sim, const char *directory);

struct damage {
	uint64_t seed;
	const struct world *world;
	bool has_torn_tail, has_orphans, has_bad_index;
};
/* Less than @n, drawn from the seed. */
size_t damage_below(struct damage *d, size_t n);
/* Flips, zeros, garbage, cuts and removals in some kinds of files. */
void damage_do(struct damage *d, struct sim *sim);

#endif
