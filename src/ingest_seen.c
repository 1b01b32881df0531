/*
 * Which content this commit has stored already, so that the second of two
 * equal files shares it, wherever it stands.
 *
 * This says what to compare with, and no more: files are equal when their
 * bytes are.  What is not kept, because memory is bounded or short, is stored
 * once more.
 */
#include "config.h"

#include "ingest_parts.h"

#include "bytes.h"

#include <pthread.h>
#include <stdlib.h>

#define SMALL_MAX ((size_t)1 << 20) /* 48 MiB with its slots */
#define LARGE_MAX ((size_t)1 << 14)
#define SLOTS_MIN ((size_t)256)

struct small {
	uint64_t key;
	uint64_t frame_off;
	uint32_t size, frame_stored, frame_raw, part_off;
};

struct ingest_seen {
	pthread_mutex_t lock; /* guards all below */
	uint64_t container; /* of the small ones: the pack */
	struct small *small; /* owned */
	size_t n_small, small_capacity;
	uint32_t *slots; /* owned: place in @small plus 1; 0: free */
	size_t n_slots; /* a power of two, above twice n_small */
	/* LARGE_MAX of each; owned; NULL until used */
	uint64_t *large_keys;
	struct content *large;
	size_t n_large;
};

struct ingest_seen *ingest_seen_new(void)
{
	struct ingest_seen *s = calloc(1, sizeof(*s));

	if (s)
		(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail */
	return s;
}

void ingest_seen_free(struct ingest_seen *s)
{
	if (!s)
		return;

	for (size_t i = 0; i < s->n_large; i++)
		content_release(&s->large[i]);
	free(s->large_keys);
	free(s->large);
	free(s->small);
	free(s->slots);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- small files ---- */

static uint64_t small_key(const uint8_t hash[INCR_HASH_SIZE], uint64_t size)
{
	return get_u64(hash) ^ size;
}

static uint32_t *find_slot(const struct ingest_seen *s, uint64_t key)
{
	size_t i = (size_t)key & (s->n_slots - 1);

	while (s->slots[i] && s->small[s->slots[i] - 1].key != key)
		i = (i + 1) & (s->n_slots - 1);
	return &s->slots[i];
}

static bool grow_slots(struct ingest_seen *s)
{
	size_t n = s->n_slots ? 2 * s->n_slots : SLOTS_MIN;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	for (size_t i = 0; i < s->n_small; i++)
		*find_slot(s, s->small[i].key) = (uint32_t)i + 1;
	return true;
}

static bool make_room(struct ingest_seen *s)
{
	size_t n = s->small_capacity ? 2 * s->small_capacity : SLOTS_MIN / 2;
	struct small *grown;

	if (s->n_small == SMALL_MAX)
		return false;
	if (2 * s->n_small >= s->n_slots && !grow_slots(s))
		return false;
	if (s->n_small < s->small_capacity)
		return true;
	grown = reallocarray(s->small, n, sizeof(*grown));
	if (!grown)
		return false;
	s->small = grown;
	s->small_capacity = n;
	return true;
}

void ingest_seen_add(struct ingest_seen *s, const struct manifest_entry *e)
{
	const struct content *c = &e->content;
	uint64_t key = small_key(e->hash, c->size);
	uint32_t *slot;

	(void)pthread_mutex_lock(&s->lock);
	if (make_room(s)) {
		slot = find_slot(s, key);
		if (!*slot) {
			s->container = c->container;
			s->small[s->n_small] = (struct small){
				.key = key,
				.frame_off = c->frame_off,
				.size = (uint32_t)c->size,
				.frame_stored = c->frame_stored,
				.frame_raw = c->frame_raw,
				.part_off = c->part_off,
			};
			*slot = (uint32_t)++s->n_small;
		}
	}
	(void)pthread_mutex_unlock(&s->lock);
}

bool ingest_seen_find(struct ingest_seen *s, const struct manifest_entry *e,
		      struct content *out)
{
	uint64_t size = e->content.size;
	const struct small *found = NULL;
	uint32_t slot = 0;

	(void)pthread_mutex_lock(&s->lock);
	if (s->n_small)
		slot = *find_slot(s, small_key(e->hash, size));
	if (slot)
		found = &s->small[slot - 1];
	if (found && found->size == size)
		*out = (struct content){
			.kind = CONTENT_PART,
			.size = size,
			.container = s->container,
			.frame_off = found->frame_off,
			.frame_stored = found->frame_stored,
			.frame_raw = found->frame_raw,
			.part_off = found->part_off,
		};
	else
		found = NULL;
	(void)pthread_mutex_unlock(&s->lock);
	return found != NULL;
}

/* ---- large files ---- */

static bool make_large(struct ingest_seen *s)
{
	if (!s->large_keys)
		s->large_keys = calloc(LARGE_MAX, sizeof(*s->large_keys));
	if (!s->large)
		s->large = calloc(LARGE_MAX, sizeof(*s->large));
	return s->large_keys && s->large && s->n_large < LARGE_MAX;
}

void ingest_seen_add_large(struct ingest_seen *s, uint64_t front,
			   const struct content *content)
{
	(void)pthread_mutex_lock(&s->lock);
	if (make_large(s) && content_copy(content, &s->large[s->n_large]) == 0)
		s->large_keys[s->n_large++] = front ^ content->size;
	(void)pthread_mutex_unlock(&s->lock);
}

bool ingest_seen_find_large(struct ingest_seen *s, uint64_t front,
			    uint64_t size, struct content *out)
{
	bool is_found = false;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n_large && !is_found; i++)
		is_found = s->large_keys[i] == (front ^ size) &&
			   s->large[i].size == size &&
			   content_copy(&s->large[i], out) == 0;
	(void)pthread_mutex_unlock(&s->lock);
	return is_found;
}
