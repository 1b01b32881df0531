/*
 * Writers that are killed at moments of chance: what they share with the parent
 * that kills them, and what they write.
 */
#ifndef INCR_SOAK_WRITER_H
#define INCR_SOAK_WRITER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "incr.h"

#define N_WRITERS 2
#define N_SMALL 6
#define SIZE_MAX_FILE 220000

enum slot_kind { SLOT_SMALL, SLOT_LARGE, SLOT_STAGED, SLOT_BUILD, N_KINDS };
#define N_SLOTS (N_SMALL + 3)

/* What one writer and the parent know of a slot. Number 0: no files. */
struct slot {
	_Atomic uint64_t acked, next;
	atomic_bool is_under_way;
	atomic_uint n_durable; /* parts of @next that were put, or staged whole */
};

struct writer {
	struct slot slots[N_SLOTS];
	_Atomic uint64_t n_acked; /* all calls that returned success */
};

struct shared {
	struct writer writers[N_WRITERS];
	_Atomic uint64_t next; /* numbers are never used twice */
};

struct soak {
	char path[512];
	struct shared *shared;
	uint64_t random, n_kills, n_checks, n_bad, n_orphans, n_open;
	uint64_t dataset, staged[N_WRITERS], built[N_WRITERS];
	uint8_t data[SIZE_MAX_FILE], want[SIZE_MAX_FILE];
};

enum slot_kind soak_kind_of(unsigned slot);
/* What part @part of number @number holds; returns its size. */
size_t soak_fill(uint64_t number, unsigned part, enum slot_kind kind,
		 uint8_t *data);
unsigned soak_n_parts(enum slot_kind kind);
void soak_part_path(unsigned writer, unsigned slot, unsigned part,
		    char path[64]);
uint64_t soak_dataset(const struct soak *s, unsigned writer,
		      enum slot_kind kind);
struct incr_store *soak_open_store(const struct soak *s, uint64_t wait_ms,
				   struct incr_error *err);
/* A process that writes until it is killed. */
pid_t soak_start_writer(struct soak *s, unsigned writer);

#endif
