/*
 * Numbers that name things of the mount without a table.
 */
#include "config.h"

#include "inode.h"

#define SLOT_SHIFT 48
#define PLACE_SHIFT 8

uint64_t inode_pack(uint32_t slot, uint64_t place, uint8_t depth)
{
	return (uint64_t)slot << SLOT_SHIFT | place << PLACE_SHIFT | depth;
}

struct inode inode_unpack(uint64_t id)
{
	struct inode ino = {
		.slot = (uint32_t)(id >> SLOT_SHIFT),
		.place = (id >> PLACE_SHIFT) & INODE_MAX_PLACE,
		.depth = (uint8_t)id,
	};

	return ino;
}

uint64_t inode_cookie(uint64_t place, uint8_t depth)
{
	return inode_pack(0, place, depth) + INODE_COOKIE_FIRST;
}

void inode_from_cookie(uint64_t cookie, uint64_t *out_place, uint8_t *out_depth)
{
	struct inode ino = inode_unpack(cookie - INODE_COOKIE_FIRST);

	*out_place = ino.place;
	*out_depth = ino.depth;
}

/* The finaliser of splitmix64: every bit of the sum moves every bit. */
uint64_t inode_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x == 0 ? 1 : x;
}

uint64_t inode_hash(const void *data, uint64_t size)
{
	const uint8_t *bytes = data;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < size; i++)
		h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
	return h;
}
