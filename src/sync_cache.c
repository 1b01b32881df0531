/* The cache of a sync: reading the old table and writing the next one. */
#include "config.h"

#include "sync_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hash.h"

#define SYNC_DIR "sync"
#define KEY_FILE 'p' /* path -> what a stat said */
#define KEY_HEAD 'z' /* the last entry: the head at which all others hold */
#define VALUE_SIZE 40
#define RACY_NS INT64_C(2000000000)

struct sync_cache {
	struct incr_store *st; /* borrowed */
	char path[80]; /* of the table */
	char next_path[80]; /* of the one that is written */
	struct claim claim; /* owned: of that name */
	uint64_t tag;
	struct table *table; /* owned; NULL: none */
	struct iter *it; /* owned */
	int state; /* of the iterator */
	uint64_t head;
	struct table_writer *writer; /* owned; NULL: not written, or no more */
};

static void put_stat(const struct io_stat *st, uint8_t value[VALUE_SIZE])
{
	put_u64(value, st->size);
	put_u64(value + 8, (uint64_t)st->mtime_ns);
	put_u64(value + 16, (uint64_t)st->ctime_ns);
	put_u64(value + 24, st->inode);
	put_u64(value + 32, st->device);
}

static void make_key(struct state_key *k, const char *path, size_t length)
{
	k->bytes[0] = KEY_FILE;
	k->size = 1;
	state_key_bytes(k, path, length);
}

static int read_head(struct sync_cache *c, struct incr_error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	const uint8_t key = KEY_HEAD;
	bool is_tombstone;
	int r = table_get(c->table, &key, 1, &value, &is_tombstone, err);

	if (r == 0 && value.size == 8)
		c->head = get_u64(value.data);
	return r < 0 ? r : 0;
}

/* Whatever is wrong with the old cache: then there is none. */
static int open_old(struct sync_cache *c, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	const uint8_t key = KEY_FILE;
	int r = table_open(c->st->io, c->st->dirfd, c->path, c->tag,
			   c->st->blocks, &c->table, &why);

	c->state = 1;
	if (r == 0)
		r = read_head(c, &why);
	if (r == 0)
		r = table_iter_new(c->table, &c->it, &why);
	if (r == 0)
		c->state = c->it->seek(c->it, &key, 1, &why);
	if (r < 0 || c->state < 0)
		c->head = 0;
	incr_error_release(&why);
	return r == INCR_E_NOMEM ? incr_fail_nomem(err) : 0;
}

static int open_next(struct sync_cache *c, struct incr_error *err)
{
	const struct incr_io *io = c->st->io;
	struct incr_error why = INCR_ERROR_INIT;
	uint64_t number;
	int r = io->random(io, &number, sizeof(number));

	if (r < 0)
		return incr_fail_errno(err, -r, NULL, "no random numbers");
	snprintf(c->next_path, sizeof(c->next_path),
		 SYNC_DIR "/%016" PRIx64 ".next", number);
	r = io->mkdir_at(io, c->st->dirfd, SYNC_DIR, 0777);
	if (r == 0 || r == -EEXIST)
		r = claim_take(io, c->st->dirfd, c->next_path, &c->claim, &why);
	if (r == 0)
		r = table_writer_open(io, c->st->dirfd, c->next_path, c->tag,
				      &c->writer, &why);
	/* without a next cache the next sync reads more; that is all */
	incr_error_release(&why);
	if (r < 0)
		c->writer = NULL;
	return r == INCR_E_NOMEM ? incr_fail_nomem(err) : 0;
}

int sync_cache_open(struct incr_store *st, uint64_t branch_id,
		    const char *directory, struct sync_cache **out_cache,
		    struct incr_error *err)
{
	struct sync_cache *c = calloc(1, sizeof(*c));
	uint8_t identity[16];
	int r;

	if (!c)
		return incr_fail_nomem(err);
	c->st = st;
	put_u64(identity, st->tag);
	put_u64(identity + 8, branch_id);
	c->tag = hash64_two(identity, sizeof(identity), directory,
			    strlen(directory));
	snprintf(c->path, sizeof(c->path), SYNC_DIR "/%016" PRIx64 ".table",
		 c->tag);
	r = open_old(c, err);
	if (r == 0)
		r = open_next(c, err);
	if (r < 0) {
		sync_cache_close(c);
		return r;
	}
	*out_cache = c;
	return 0;
}

void sync_cache_close(struct sync_cache *c)
{
	if (!c)
		return;
	if (c->writer)
		table_writer_abort(c->writer);
	claim_release(&c->claim);
	iter_free(c->it);
	table_unref(c->table);
	free(c);
}

uint64_t sync_cache_head(const struct sync_cache *c)
{
	return c->head;
}

bool sync_cache_knows(struct sync_cache *c, const char *path, size_t length,
		      const struct io_stat *st)
{
	uint8_t value[VALUE_SIZE];
	struct state_key k;
	int order = 1;

	if (!c->head || c->state)
		return false;
	make_key(&k, path, length);
	while (!c->state) {
		const struct table_entry *e = &c->it->entry;

		order = table_key_compare(e->key, e->key_size, k.bytes, k.size);
		if (order >= 0)
			break;
		c->state = c->it->next(c->it, NULL);
	}
	put_stat(st, value);
	return !c->state && order == 0 &&
	       c->it->entry.value_size == VALUE_SIZE &&
	       !memcmp(c->it->entry.value, value, VALUE_SIZE);
}

int sync_cache_add(struct sync_cache *c, const char *path, size_t length,
		   const struct io_stat *st, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	uint8_t value[VALUE_SIZE];
	struct table_entry e;
	struct state_key k;
	int64_t now = store_now(c->st);
	int r;

	if (!c->writer || now - st->ctime_ns < RACY_NS ||
	    now - st->mtime_ns < RACY_NS)
		return 0;
	make_key(&k, path, length);
	put_stat(st, value);
	e = (struct table_entry){ .key = k.bytes,
				  .key_size = k.size,
				  .value = value,
				  .value_size = sizeof(value) };
	r = table_writer_put(c->writer, &e, &why);
	incr_error_release(&why);
	if (r == INCR_E_NOMEM)
		return incr_fail_nomem(err);
	if (r < 0) {
		table_writer_abort(c->writer);
		c->writer = NULL;
	}
	return 0;
}

void sync_cache_publish(struct sync_cache *c, uint64_t head)
{
	const struct incr_io *io = c->st->io;
	const uint8_t key = KEY_HEAD;
	uint8_t value[8];
	struct table_entry e = { .key = &key,
				 .key_size = 1,
				 .value = value,
				 .value_size = sizeof(value) };

	put_u64(value, head);
	if (!c->writer || !head)
		return;
	if (table_writer_put(c->writer, &e, NULL) < 0)
		return; /* close removes it */
	if (table_writer_finish(c->writer, false, NULL) == 0 &&
	    io->rename_at(io, c->st->dirfd, c->next_path, c->st->dirfd, c->path,
			  0) < 0)
		(void)io->unlink_at(io, c->st->dirfd, c->next_path, 0);
	c->writer = NULL;
}
