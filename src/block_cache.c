/*
 * A bounded LRU of decoded blocks, shared by all tables of a store handle.
 *
 * Blocks are spread over shards, each with its own lock, hash chains and LRU
 * list.  The cache holds one reference to each block; whoever uses a block
 * holds another, so eviction never waits and never frees bytes in use.  What
 * is bounded is what the cache holds: blocks that iterators stand in come on
 * top.  A block larger than half a shard is not kept, for it would push out
 * everything else.
 */
#include "config.h"

#include "table_format.h"

#include "codec.h"

#include <pthread.h>
#include <stdlib.h>

#define SHARDS_MAX 16
#define SHARD_SIZE_MIN ((size_t)1 << 20)
#define CHAIN_SIZE ((size_t)16 << 10) /* capacity for each hash chain */
#define SCRATCHES_MAX 8 /* idle ones kept */
#define SCRATCH_SIZE_MAX ((size_t)1 << 20)

struct shard {
	pthread_mutex_t lock; /* guards everything below */
	struct block **chains;
	struct block *newest, *oldest;
	size_t size;
};

struct block_cache {
	atomic_uint_fast64_t last_id;
	size_t shard_capacity;
	size_t n_chains; /* of a shard; a power of two */
	unsigned n_shards; /* a power of two */
	struct shard shards[SHARDS_MAX];
	pthread_mutex_t scratch_lock; /* guards the rest */
	struct block_scratch *scratches;
	unsigned n_scratches;
};

static uint64_t place_hash(uint64_t table_id, uint64_t off)
{
	uint64_t h = (off ^ table_id << 44) * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 32;
	return h * UINT64_C(0xd6e8feb86659fd93);
}

static struct shard *cache_shard(struct block_cache *c, uint64_t hash)
{
	return &c->shards[hash >> 60 & (c->n_shards - 1)];
}

static struct block **shard_chain(const struct block_cache *c, struct shard *s,
				  uint64_t hash)
{
	return &s->chains[hash >> 20 & (c->n_chains - 1)];
}

struct block_cache *block_cache_new(size_t capacity_size)
{
	struct block_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;

	c->n_shards = SHARDS_MAX;
	while (c->n_shards > 1 && capacity_size / c->n_shards < SHARD_SIZE_MIN)
		c->n_shards /= 2;
	c->shard_capacity = capacity_size / c->n_shards;
	c->n_chains = 16;
	while (c->n_chains < c->shard_capacity / CHAIN_SIZE)
		c->n_chains *= 2;
	pthread_mutex_init(&c->scratch_lock, NULL);
	for (unsigned i = 0; i < c->n_shards; i++) {
		struct shard *s = &c->shards[i];

		pthread_mutex_init(&s->lock, NULL);
		s->chains = calloc(c->n_chains, sizeof(struct block *));
		if (!s->chains) {
			c->n_shards = i + 1;
			block_cache_free(c);
			return NULL;
		}
	}

	return c;
}

static void scratch_free(struct block_scratch *s)
{
	decompressor_free(s->d);
	buf_release(&s->stored);
	free(s);
}

void block_cache_free(struct block_cache *c)
{
	if (!c)
		return;

	for (unsigned i = 0; i < c->n_shards; i++) {
		struct shard *s = &c->shards[i];

		while (s->newest) {
			struct block *b = s->newest;

			s->newest = b->lru_next;
			block_unref(b);
		}
		free(s->chains);
		pthread_mutex_destroy(&s->lock);
	}
	while (c->scratches) {
		struct block_scratch *s = c->scratches;

		c->scratches = s->next;
		scratch_free(s);
	}
	pthread_mutex_destroy(&c->scratch_lock);
	free(c);
}

uint64_t block_cache_new_id(struct block_cache *c)
{
	return atomic_fetch_add(&c->last_id, 1) + 1;
}

static void lru_remove(struct shard *s, struct block *b)
{
	if (b->lru_prev)
		b->lru_prev->lru_next = b->lru_next;
	else
		s->newest = b->lru_next;
	if (b->lru_next)
		b->lru_next->lru_prev = b->lru_prev;
	else
		s->oldest = b->lru_prev;
}

static void lru_push(struct shard *s, struct block *b)
{
	b->lru_prev = NULL;
	b->lru_next = s->newest;
	if (s->newest)
		s->newest->lru_prev = b;
	else
		s->oldest = b;
	s->newest = b;
}

/* A new reference; the block becomes the newest. */
static struct block *shard_find(const struct block_cache *c, struct shard *s,
				uint64_t hash, uint64_t table_id, uint64_t off)
{
	struct block *b = *shard_chain(c, s, hash);

	while (b && (b->table_id != table_id || b->off != off))
		b = b->chain_next;
	if (!b)
		return NULL;

	if (s->newest != b) {
		lru_remove(s, b);
		lru_push(s, b);
	}
	return block_ref(b);
}

static void shard_remove(const struct block_cache *c, struct shard *s,
			 struct block *b)
{
	struct block **at = shard_chain(c, s, place_hash(b->table_id, b->off));

	while (*at != b)
		at = &(*at)->chain_next;
	*at = b->chain_next;
	lru_remove(s, b);
	s->size -= b->charge;
	block_unref(b);
}

struct block *block_cache_find(struct block_cache *c, uint64_t table_id,
			       uint64_t off)
{
	uint64_t hash = place_hash(table_id, off);
	struct shard *s = cache_shard(c, hash);
	struct block *b;

	pthread_mutex_lock(&s->lock);
	b = shard_find(c, s, hash, table_id, off);
	pthread_mutex_unlock(&s->lock);
	return b;
}

struct block *block_cache_add(struct block_cache *c, struct block *b,
			      uint64_t table_id, uint64_t off)
{
	uint64_t hash = place_hash(table_id, off);
	struct shard *s = cache_shard(c, hash);
	struct block **chain = shard_chain(c, s, hash);
	struct block *other;

	if (b->charge > c->shard_capacity / 2)
		return b;

	b->table_id = table_id;
	b->off = off;
	pthread_mutex_lock(&s->lock);
	other = shard_find(c, s, hash, table_id, off);
	if (!other) {
		while (s->oldest && s->size + b->charge > c->shard_capacity)
			shard_remove(c, s, s->oldest);
		b->chain_next = *chain;
		*chain = block_ref(b);
		lru_push(s, b);
		s->size += b->charge;
	}
	pthread_mutex_unlock(&s->lock);
	if (!other)
		return b;

	block_unref(b);
	return other;
}

void block_cache_drop(struct block_cache *c, uint64_t table_id)
{
	for (unsigned i = 0; i < c->n_shards; i++) {
		struct shard *s = &c->shards[i];
		struct block *next;

		pthread_mutex_lock(&s->lock);
		for (struct block *b = s->newest; b; b = next) {
			next = b->lru_next;
			if (b->table_id == table_id)
				shard_remove(c, s, b);
		}
		pthread_mutex_unlock(&s->lock);
	}
}

struct block_scratch *block_cache_take_scratch(struct block_cache *c)
{
	struct block_scratch *s;

	pthread_mutex_lock(&c->scratch_lock);
	s = c->scratches;
	if (s) {
		c->scratches = s->next;
		c->n_scratches--;
	}
	pthread_mutex_unlock(&c->scratch_lock);
	if (s)
		return s;

	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;

	s->d = decompressor_new();
	if (!s->d) {
		free(s);
		return NULL;
	}

	return s;
}

void block_cache_put_scratch(struct block_cache *c, struct block_scratch *s)
{
	bool is_kept;

	if (s->stored.capacity > SCRATCH_SIZE_MAX)
		buf_release(&s->stored);
	pthread_mutex_lock(&c->scratch_lock);
	is_kept = c->n_scratches < SCRATCHES_MAX;
	if (is_kept) {
		s->next = c->scratches;
		c->scratches = s;
		c->n_scratches++;
	}
	pthread_mutex_unlock(&c->scratch_lock);
	if (!is_kept)
		scratch_free(s);
}
