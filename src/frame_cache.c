/*
 * The cache of decoded frames: a chained hash table, and a list of the frames
 * that no one uses, oldest first.  A frame in use is on no list, and counts
 * against the capacity all the same.
 */
#include "config.h"

#include "frame_cache.h"

#include <pthread.h>
#include <stdlib.h>

#define N_BUCKETS_MIN 64

struct cached {
	struct frame frame; /* first: what callers hold */
	struct frame_key key;
	unsigned n_users;
	bool is_loading;
	struct cached *chain; /* next of the same bucket */
	struct cached *older, *newer; /* unused frames only */
	uint8_t bytes[];
};

struct frame_cache {
	pthread_mutex_t lock; /* guards all below and every cached */
	pthread_cond_t loaded;
	size_t capacity_size;
	size_t used_size;
	size_t n_buckets; /* a power of two */
	struct cached **buckets;
	struct cached *oldest, *newest;
};

struct frame_cache *frame_cache_new(size_t capacity_size)
{
	struct frame_cache *c = calloc(1, sizeof(*c));
	size_t n = N_BUCKETS_MIN;

	if (!c)
		return NULL;

	while (n < capacity_size / (FRAME_RAW_DEFAULT / 2) &&
	       n < (size_t)1 << 24)
		n *= 2;
	c->capacity_size = capacity_size;
	c->n_buckets = n;
	c->buckets = calloc(n, sizeof(struct cached *));
	if (!c->buckets) {
		free(c);
		return NULL;
	}
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&c->loaded, NULL);
	return c;
}

void frame_cache_free(struct frame_cache *c)
{
	if (!c)
		return;

	while (c->oldest) {
		struct cached *f = c->oldest;

		c->oldest = f->newer;
		free(f);
	}
	(void)pthread_cond_destroy(&c->loaded);
	(void)pthread_mutex_destroy(&c->lock);
	free(c->buckets);
	free(c);
}

static struct cached **bucket_of(struct frame_cache *c,
				 const struct frame_key *key)
{
	uint64_t h = (key->container ^ key->off) * UINT64_C(0x9e3779b97f4a7c15);

	return &c->buckets[(h >> 32) & (c->n_buckets - 1)];
}

static bool is_same(const struct frame_key *a, const struct frame_key *b)
{
	return a->container == b->container && a->off == b->off &&
	       a->stored_size == b->stored_size && a->raw_size == b->raw_size;
}

static struct cached *find(struct frame_cache *c, const struct frame_key *key)
{
	struct cached *f = *bucket_of(c, key);

	while (f && !is_same(&f->key, key))
		f = f->chain;
	return f;
}

static size_t cost_of(const struct cached *f)
{
	return sizeof(*f) + f->key.raw_size;
}

static void list_remove(struct frame_cache *c, struct cached *f)
{
	if (f->older)
		f->older->newer = f->newer;
	else
		c->oldest = f->newer;
	if (f->newer)
		f->newer->older = f->older;
	else
		c->newest = f->older;
	f->older = NULL;
	f->newer = NULL;
}

static void list_add_newest(struct frame_cache *c, struct cached *f)
{
	f->older = c->newest;
	f->newer = NULL;
	if (c->newest)
		c->newest->newer = f;
	else
		c->oldest = f;
	c->newest = f;
}

/* Out of the table and the accounts, and freed. */
static void forget(struct frame_cache *c, struct cached *f)
{
	struct cached **at = bucket_of(c, &f->key);

	while (*at != f)
		at = &(*at)->chain;
	*at = f->chain;
	c->used_size -= cost_of(f);
	free(f);
}

static void shrink(struct frame_cache *c)
{
	while (c->used_size > c->capacity_size && c->oldest) {
		struct cached *f = c->oldest;

		list_remove(c, f);
		forget(c, f);
	}
}

static void list_add_oldest(struct frame_cache *c, struct cached *f)
{
	f->older = NULL;
	f->newer = c->oldest;
	if (c->oldest)
		c->oldest->older = f;
	else
		c->newest = f;
	c->oldest = f;
}

static void use(struct frame_cache *c, struct cached *f)
{
	if (f->n_users++ == 0)
		list_remove(c, f);
}

/* A new frame in loading state with one user; NULL: no memory. */
static struct cached *add(struct frame_cache *c, const struct frame_key *key)
{
	struct cached *f = malloc(sizeof(*f) + key->raw_size);
	struct cached **bucket = bucket_of(c, key);

	if (!f)
		return NULL;

	*f = (struct cached){
		.frame = { .data = f->bytes, .raw_size = key->raw_size },
		.key = *key,
		.n_users = 1,
		.is_loading = true,
		.chain = *bucket,
	};
	*bucket = f;
	c->used_size += cost_of(f);
	shrink(c);
	return f;
}

/* NULL: nobody has loaded it, and nobody is about to. */
static struct cached *find_loaded(struct frame_cache *c,
				  const struct frame_key *key)
{
	struct cached *f;

	while ((f = find(c, key)) != NULL && f->is_loading)
		(void)pthread_cond_wait(&c->loaded, &c->lock);
	return f;
}

int frame_cache_get(struct frame_cache *c, const struct frame_key *key,
		    struct frame **out_frame)
{
	struct cached *f;
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	f = find_loaded(c, key);
	if (f) {
		use(c, f);
	} else {
		f = add(c, key);
		r = f ? 1 : INCR_E_NOMEM;
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (f)
		*out_frame = &f->frame;
	return r;
}

struct frame *frame_cache_wait(struct frame_cache *c,
			       const struct frame_key *key)
{
	struct cached *f;

	(void)pthread_mutex_lock(&c->lock);
	f = find_loaded(c, key);
	if (f)
		use(c, f);
	(void)pthread_mutex_unlock(&c->lock);
	return f ? &f->frame : NULL;
}

bool frame_cache_has(struct frame_cache *c, const struct frame_key *key)
{
	bool has;

	(void)pthread_mutex_lock(&c->lock);
	has = find(c, key) != NULL;
	(void)pthread_mutex_unlock(&c->lock);
	return has;
}

bool frame_cache_claim(struct frame_cache *c, const struct frame_key *key,
		       struct frame **out_frame)
{
	struct cached *f = NULL;

	(void)pthread_mutex_lock(&c->lock);
	if (!find(c, key))
		f = add(c, key);
	(void)pthread_mutex_unlock(&c->lock);
	if (f)
		*out_frame = &f->frame;
	return f != NULL;
}

uint8_t *frame_cache_bytes(struct frame *frame)
{
	return ((struct cached *)frame)->bytes;
}

void frame_cache_loaded(struct frame_cache *c, struct frame *frame,
			bool is_good)
{
	struct cached *f = (struct cached *)frame;

	(void)pthread_mutex_lock(&c->lock);
	f->is_loading = false;
	if (!is_good)
		forget(c, f); /* those who wait load it themselves */
	(void)pthread_cond_broadcast(&c->loaded);
	(void)pthread_mutex_unlock(&c->lock);
}

/* End one use; to the place in the list that @list_in says, if it was the last. */
static void end_use(struct frame_cache *c, const struct frame *frame,
		    void (*list_in)(struct frame_cache *, struct cached *))
{
	struct cached *f = (struct cached *)(uintptr_t)frame;

	(void)pthread_mutex_lock(&c->lock);
	if (--f->n_users == 0) {
		list_in(c, f);
		shrink(c);
	}
	(void)pthread_mutex_unlock(&c->lock);
}

void frame_cache_put(struct frame_cache *c, const struct frame *frame)
{
	end_use(c, frame, list_add_newest);
}

void frame_cache_put_read(struct frame_cache *c, const struct frame *frame)
{
	end_use(c, frame, list_add_oldest);
}
