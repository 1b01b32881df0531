/* Helpers of the content layer's tests. */
#include "config.h"

#include "content_kit.h"

#include "bytes.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const uint8_t kit_uuid[16] = { 1, 2,  3,  4,  5,  6,  7,  8,
			       9, 10, 11, 12, 13, 14, 15, 16 };

static void must(bool is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	abort();
}

char *kit_path(const char *path)
{
	char *full;

	must(asprintf(&full, "%s/%s", testing_tmpdir(), path) >= 0, path);
	return full;
}

void kit_open(struct kit *k, const struct incr_io *io)
{
	_cleanup_free_ char *packs = kit_path("store/packs");
	_cleanup_free_ char *store = kit_path("store");
	int lock;

	memset(k, 0, sizeof(*k));
	must(mkdir(store, 0777) == 0 || errno == EEXIST, store);
	must(mkdir(packs, 0777) == 0 || errno == EEXIST, packs);
	k->dirfd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(k->dirfd >= 0, store);
	lock = openat(k->dirfd, "lock", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	must(lock >= 0 && close(lock) == 0, "lock");
	must(pack_set_new(&io_posix, k->dirfd, kit_uuid, NULL, &k->packs) == 0,
	     "pack_set_new");
	k->cache = frame_cache_new((size_t)1 << 20);
	must(k->cache != NULL, "frame_cache_new");
	must(content_reader_new(k->packs, k->cache, &k->reader) == 0,
	     "content_reader_new");
	k->options.io = io ? io : &io_posix;
	k->options.store_dirfd = k->dirfd;
	memcpy(k->options.uuid, kit_uuid, sizeof(kit_uuid));
	k->options.reader = k->reader;
}

void kit_close(struct kit *k)
{
	content_reader_free(k->reader);
	frame_cache_free(k->cache);
	pack_set_free(k->packs);
	(void)close(k->dirfd);
}

static int count_one(void *closure, const char *name, enum io_kind kind)
{
	(void)name;
	(void)kind;
	(*(size_t *)closure)++;
	return 0;
}

size_t kit_count_packs(const struct kit *k)
{
	int fd = openat(k->dirfd, "packs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;

	must(fd >= 0, "packs");
	must(io_posix.readdir(&io_posix, fd, count_one, &n) == 0, "readdir");
	(void)close(fd);
	return n;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

void kit_fill_noise(uint8_t *data, size_t size, uint64_t seed)
{
	uint64_t state = seed * 2 + 1;

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(next_random(&state) >> 32);
}

void kit_fill_text(uint8_t *data, size_t size, uint64_t seed)
{
	static const char words[] =
		"the quick brown fox jumps over a lazy dog ";
	uint64_t state = seed * 2 + 1;

	for (size_t i = 0; i < size; i++)
		if (i % 16 < 13)
			data[i] = (uint8_t)
				words[(i + seed) % (sizeof(words) - 1)];
		else
			data[i] = (uint8_t)('0' + next_random(&state) % 10);
}

void kit_write(const char *path, const void *data, size_t size)
{
	_cleanup_free_ char *full = kit_path(path);
	size_t top = strlen(testing_tmpdir()) + 1;
	int fd;

	for (char *at = strchr(full + top, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		must(mkdir(full, 0777) == 0 || errno == EEXIST, full);
		*at = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(fd >= 0, full);
	must(size == 0 || write(fd, data, size) == (ssize_t)size, full);
	(void)close(fd);
}

void kit_list(struct kit *k, const struct ingest_result *r,
	      struct kit_files *out)
{
	struct manifest_reader *m = NULL;
	const struct manifest_entry *e;
	int result;

	memset(out, 0, sizeof(*out));
	result = r->is_inline ?
			 manifest_reader_new_memory(r->manifest.data,
						    r->manifest.size, 0, &m) :
			 manifest_reader_new_content(k->reader,
						     &r->manifest_content, &m);
	must(result == 0, "manifest_reader_new");
	while ((result = manifest_reader_next(m, &e, NULL)) == 0) {
		struct manifest_entry *copy;

		out->entries = reallocarray(out->entries, out->n + 1,
					    sizeof(*out->entries));
		must(out->entries != NULL, "memory");
		copy = &out->entries[out->n++];
		*copy = *e;
		copy->path = strndup(e->path, e->path_length);
		must(content_copy(&e->content, &copy->content) == 0, "copy");
	}
	CHECK_INT_EQ(1, result);
	manifest_reader_free(m);
}

void kit_files_release(struct kit_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free((char *)(uintptr_t)f->entries[i].path);
		manifest_entry_release(&f->entries[i]);
	}
	free(f->entries);
}

const struct manifest_entry *kit_find(const struct kit_files *f,
				      const char *path)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->entries[i].path, path) == 0)
			return &f->entries[i];
	return NULL;
}

/* The bytes of a part in an inline frame. */
static bool inline_is(const struct ingest_result *r, const struct content *c,
		      const void *data, size_t size)
{
	struct decompressor *d = decompressor_new();
	_cleanup_buf_ struct buf raw = BUF_INIT;
	bool is_same;

	if (buf_put_zeros(&raw, c->frame_raw) < 0 ||
	    c->frame_off + c->frame_stored > r->inline_frames.size) {
		decompressor_free(d);
		return false;
	}
	is_same = c->size == size &&
		  frame_decode(d, r->inline_frames.data + c->frame_off,
			       c->frame_stored,
			       (struct frame_place){ PACK_LOG, 0 }, raw.data,
			       c->frame_raw) == 0 &&
		  memcmp(raw.data + c->part_off, data, size) == 0;
	decompressor_free(d);
	return is_same;
}

bool kit_content_is(struct kit *k, const struct ingest_result *r,
		    const struct manifest_entry *e, const void *data,
		    size_t size, size_t step)
{
	_cleanup_free_ uint8_t *got = malloc(step);
	size_t n = 0;

	if (r && r->is_inline && e->content.kind == CONTENT_PART &&
	    e->content.container == PACK_LOG)
		return inline_is(r, &e->content, data, size);
	if (e->content.size != size)
		return false;
	for (size_t off = 0; off <= size; off += step) {
		size_t want = size - off < step ? size - off : step;

		if (content_read(k->reader, &e->content, off, got, step, &n,
				 NULL) < 0 ||
		    n != want ||
		    (n > 0 && memcmp(got, (const uint8_t *)data + off, n) != 0))
			return false;
	}
	return true;
}

int kit_ingest(struct kit *k, const char *tree, struct ingest_result *out,
	       struct incr_error *err)
{
	_cleanup_free_ char *path = kit_path(tree);
	struct ingest *g;
	int r = ingest_new(&k->options, &g, err);

	if (r < 0)
		return r;
	r = ingest_add_tree(g, AT_FDCWD, path, "", err);
	if (r == 0)
		r = ingest_run(g, out, err);
	ingest_free(g);
	return r;
}

/* ---- faults ---- */

static struct fault_io *fault_of(const struct incr_io *io)
{
	return io->closure;
}

/* Whether this call is the one that fails. */
static bool fails(const struct incr_io *io)
{
	struct fault_io *f = fault_of(io);
	long n = __atomic_add_fetch(&f->n_calls, 1, __ATOMIC_SEQ_CST);

	return n == f->fail_at;
}

static int fault_open_at(const struct incr_io *io, int dirfd, const char *path,
			 int flags, uint32_t mode)
{
	if (fails(io))
		return fault_of(io)->fail_with;
	return io_posix.open_at(&io_posix, dirfd, path, flags, mode);
}

static int fault_close(const struct incr_io *io, int fd)
{
	int r = io_posix.close(&io_posix, fd);

	return fails(io) ? fault_of(io)->fail_with : r;
}

static int64_t fault_pread(const struct incr_io *io, int fd, void *data,
			   size_t size, uint64_t off)
{
	struct fault_io *f = fault_of(io);

	if (fails(io))
		return f->fail_with;
	if (f->at_pread)
		f->at_pread(f->closure, fd);
	return io_posix.pread(&io_posix, fd, data, size, off);
}

static int64_t fault_pwrite(const struct incr_io *io, int fd, const void *data,
			    size_t size, uint64_t off)
{
	if (fails(io))
		return fault_of(io)->fail_with;
	(void)__atomic_add_fetch(&fault_of(io)->n_written, size,
				 __ATOMIC_SEQ_CST);
	return io_posix.pwrite(&io_posix, fd, data, size, off);
}

static int fault_fdatasync(const struct incr_io *io, int fd)
{
	return fails(io) ? fault_of(io)->fail_with :
			   io_posix.fdatasync(&io_posix, fd);
}

static int fault_fsync_dir(const struct incr_io *io, int dirfd)
{
	return fails(io) ? fault_of(io)->fail_with :
			   io_posix.fsync_dir(&io_posix, dirfd);
}

static int fault_readdir(const struct incr_io *io, int dirfd, io_readdir_fn fn,
			 void *closure)
{
	return fails(io) ? fault_of(io)->fail_with :
			   io_posix.readdir(&io_posix, dirfd, fn, closure);
}

static int fault_stat_at(const struct incr_io *io, int dirfd, const char *path,
			 struct io_stat *out_stat)
{
	return fails(io) ? fault_of(io)->fail_with :
			   io_posix.stat_at(&io_posix, dirfd, path, out_stat);
}

static int fault_random(const struct incr_io *io, void *data, size_t size)
{
	return fails(io) ? fault_of(io)->fail_with :
			   io_posix.random(&io_posix, data, size);
}

static int fault_lease(const struct incr_io *io, int fd, bool is_on)
{
	struct fault_io *f = fault_of(io);

	(void)fd;
	if (!is_on)
		f->n_leases_off++;
	else if (f->lease_result == 0)
		f->n_leases_on++;
	return is_on ? f->lease_result : 0;
}

void fault_io_init(struct fault_io *f)
{
	memset(f, 0, sizeof(*f));
	f->io = io_posix;
	f->io.closure = f;
	f->fail_with = -EIO;
	f->io.open_at = fault_open_at;
	f->io.close = fault_close;
	f->io.pread = fault_pread;
	f->io.pwrite = fault_pwrite;
	f->io.fdatasync = fault_fdatasync;
	f->io.fsync_dir = fault_fsync_dir;
	f->io.readdir = fault_readdir;
	f->io.stat_at = fault_stat_at;
	f->io.random = fault_random;
	f->io.lease = fault_lease;
}
