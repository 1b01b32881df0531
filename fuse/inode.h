/*
 * Numbers that name things of the mount without a table.
 *
 * A node id of FUSE is slot (16 bits), place (40) and depth (8).  A slot is a
 * view that is shown; place and depth are those of struct incr_node.  Slot 0
 * holds the ids of the node table: a counter that starts at FUSE_ROOT_ID.
 */
#ifndef INCR_INODE_H
#define INCR_INODE_H

#include <stdbool.h>
#include <stdint.h>

#define INODE_N_SLOTS 65536
#define INODE_ROOT_DEPTH 255 /* with place 0: the root of a view */
#define INODE_MAX_PLACE ((UINT64_C(1) << 40) - 1)

struct inode {
	uint32_t slot; /* 0: an id of the node table */
	uint64_t place;
	uint8_t depth;
};

uint64_t inode_pack(uint32_t slot, uint64_t place, uint8_t depth);
struct inode inode_unpack(uint64_t id);

/*
 * Offsets of directory entries: 0 is the start, 1 behind ".", 2 behind "..",
 * the rest behind the entry with a place and depth.
 */
#define INODE_COOKIE_DOT 1
#define INODE_COOKIE_DOTDOT 2
#define INODE_COOKIE_FIRST 3

uint64_t inode_cookie(uint64_t place, uint8_t depth);
void inode_from_cookie(uint64_t cookie, uint64_t *out_place,
		       uint8_t *out_depth);

/* An inode number made of two others; never 0. */
uint64_t inode_mix(uint64_t a, uint64_t b);

/* Bytes of @data into one number, FNV-1a. */
uint64_t inode_hash(const void *data, uint64_t size);

#endif
