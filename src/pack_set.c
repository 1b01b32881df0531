/*
 * Reading packs: a bounded set of open descriptors.  The lock guards the table
 * of open packs only; bytes are read outside it, while a count keeps the
 * descriptor open.
 */
#include "config.h"

#include "pack.h"

#include "bytes.h"
#include "error.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define N_OPEN_MAX 64

struct open_pack {
	uint64_t id; /* 0: free place */
	int fd; /* owned */
	unsigned n_users;
	uint64_t last_use;
};

struct pack_set {
	const struct incr_io *io; /* borrowed */
	int store_dirfd; /* borrowed */
	struct log *log; /* borrowed; NULL: no log */
	uint8_t uuid[16];
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t freed; /* a place has no user any more */
	uint64_t clock;
	struct pack_writer *writer; /* borrowed; NULL: none attached */
	struct open_pack packs[N_OPEN_MAX];
};

int pack_set_new(const struct incr_io *io, int store_dirfd,
		 const uint8_t uuid[16], struct log *log,
		 struct pack_set **out_set)
{
	struct pack_set *s = calloc(1, sizeof(*s));

	if (!s)
		return INCR_E_NOMEM;

	s->io = io;
	s->store_dirfd = store_dirfd;
	s->log = log;
	memcpy(s->uuid, uuid, sizeof(s->uuid));
	(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&s->freed, NULL);
	*out_set = s;
	return 0;
}

void pack_set_free(struct pack_set *s)
{
	if (!s)
		return;

	for (size_t i = 0; i < N_OPEN_MAX; i++)
		if (s->packs[i].id)
			(void)io_close(s->io, s->packs[i].fd); /* read only */
	(void)pthread_cond_destroy(&s->freed);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

void pack_set_attach(struct pack_set *s, struct pack_writer *w)
{
	(void)pthread_mutex_lock(&s->lock);
	if (!s->writer)
		s->writer = w;
	(void)pthread_mutex_unlock(&s->lock);
}

void pack_set_detach(struct pack_set *s, const struct pack_writer *w)
{
	(void)pthread_mutex_lock(&s->lock);
	if (s->writer == w)
		s->writer = NULL;
	(void)pthread_mutex_unlock(&s->lock);
}

static int fail_damaged(struct incr_error *err, const char *path, uint64_t off,
			const char *what)
{
	(void)incr_fail(err, INCR_E_CORRUPT, "damaged-pack", path,
			"%s at offset %llu", what, (unsigned long long)off);
	incr_error_at(err, off);
	return INCR_E_CORRUPT;
}

static int check_opened(struct pack_set *s, int fd, uint64_t id,
			const char *path, struct incr_error *err)
{
	uint8_t header[PACK_HEADER_SIZE];
	size_t n;
	int r;

	r = io_read_upto(s->io, fd, header, sizeof(header), 0, &n, path, err);
	if (r < 0)
		return r;

	if (n < sizeof(header))
		return fail_damaged(err, path, n, "the pack's header ends");

	r = pack_check_header(header, s->uuid, id);
	if (r == INCR_E_UNSUPPORTED)
		return incr_fail(err, r, NULL, path,
				 "this pack is of a newer format");
	if (r < 0)
		return fail_damaged(err, path, 0,
				    "the pack's header is damaged");
	return 0;
}

static int open_pack(struct pack_set *s, uint64_t id, int *out_fd,
		     struct incr_error *err)
{
	char path[PACK_PATH_SIZE];
	int fd, r;

	pack_path(id, path);
	do {
		fd = s->io->open_at(s->io, s->store_dirfd, path,
				    O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	} while (fd == -EINTR);
	if (fd == -ENOENT)
		return incr_fail(err, INCR_E_CORRUPT, "missing-pack", path,
				 "the pack is missing");
	if (fd < 0)
		return incr_fail_errno(err, -fd, path, "cannot open");

	r = check_opened(s, fd, id, path, err);
	if (r < 0) {
		(void)io_close(s->io, fd); /* read only */
		return r;
	}
	*out_fd = fd;
	return 0;
}

/* A place for one more pack: a free one, or the least recently used one. */
static struct open_pack *find_place(struct pack_set *s)
{
	struct open_pack *best = NULL;

	for (size_t i = 0; i < N_OPEN_MAX; i++) {
		struct open_pack *p = &s->packs[i];

		if (!p->id)
			return p;
		if (p->n_users == 0 && (!best || p->last_use < best->last_use))
			best = p;
	}
	if (best) {
		(void)io_close(s->io, best->fd); /* read only */
		best->id = 0;
	}
	return best;
}

static struct open_pack *find_open(struct pack_set *s, uint64_t id)
{
	for (size_t i = 0; i < N_OPEN_MAX; i++)
		if (s->packs[i].id == id)
			return &s->packs[i];
	return NULL;
}

/* With the lock held. */
static int get_pack(struct pack_set *s, uint64_t id,
		    struct open_pack **out_pack, struct incr_error *err)
{
	struct open_pack *p;
	int r;

	for (;;) {
		p = find_open(s, id);
		if (p)
			break;

		p = find_place(s);
		if (p) {
			r = open_pack(s, id, &p->fd, err);
			if (r < 0)
				return r;

			p->id = id;
			p->n_users = 0;
			break;
		}
		(void)pthread_cond_wait(&s->freed, &s->lock);
	}
	p->last_use = ++s->clock;
	p->n_users++;
	*out_pack = p;
	return 0;
}

static int read_pack(struct pack_set *s, const struct open_pack *p,
		     uint64_t off, void *data, size_t size,
		     struct incr_error *err)
{
	char path[PACK_PATH_SIZE];
	size_t n;
	int r;

	pack_path(p->id, path);
	r = io_read_upto(s->io, p->fd, data, size, off, &n, path, err);
	if (r < 0)
		return r;

	if (n < size)
		return fail_damaged(err, path, off + n, "the pack ends");
	return 0;
}

int pack_set_read(struct pack_set *s, uint64_t container, uint64_t off,
		  void *data, size_t size, struct incr_error *err)
{
	char path[PACK_PATH_SIZE];
	struct pack_writer *writer;
	struct open_pack *p = NULL;
	uint64_t end;
	int r = 0;

	if (container == PACK_LOG) {
		if (!s->log)
			return incr_fail(err, INCR_E_CORRUPT, "damaged-pack",
					 "log", "no log to read content from");
		return log_read_bytes(s->log, off, data, size, err);
	}
	if (container == PACK_SELF || off < PACK_HEADER_SIZE ||
	    !add_ok(off, size, &end) || end > INT64_MAX) {
		pack_path(container, path);
		return fail_damaged(err, path, off, "no frame can be");
	}

	(void)pthread_mutex_lock(&s->lock);
	writer = s->writer;
	if (!writer || pack_writer_id(writer) != container) {
		writer = NULL;
		r = get_pack(s, container, &p, err);
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (writer)
		return pack_writer_read(writer, off, data, size, err);
	if (r < 0)
		return r;

	r = read_pack(s, p, off, data, size, err);
	(void)pthread_mutex_lock(&s->lock);
	if (--p->n_users == 0)
		(void)pthread_cond_signal(&s->freed);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}
