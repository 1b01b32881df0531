/* Writers that are killed: what they write. Any failure ends the process. */
#include "config.h"

#include "soak_writer.h"

#include "store_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 20000

/* ---- what the files hold ---- */

enum slot_kind soak_kind_of(unsigned slot)
{
	return slot < N_SMALL ? SLOT_SMALL :
				(enum slot_kind)(slot - N_SMALL + 1);
}

size_t soak_fill(uint64_t number, unsigned part, enum slot_kind kind,
		 uint8_t *data)
{
	uint64_t x = number * 4 + part;
	size_t size = kind == SLOT_LARGE ? 200000 + number % 9973 :
					   16 + (number * 37 + part) % 3000;

	memcpy(data, &number, sizeof(number));
	for (size_t i = sizeof(number); i < size; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		data[i] = (uint8_t)(x >> 56);
	}
	return size;
}

unsigned soak_n_parts(enum slot_kind kind)
{
	return kind == SLOT_LARGE ? 1 : 3;
}

void soak_part_path(unsigned writer, unsigned slot, unsigned part,
		    char path[64])
{
	(void)snprintf(path, 64, "w%u/s%u/%c", writer, slot, 'a' + part);
}

uint64_t soak_dataset(const struct soak *s, unsigned writer,
		      enum slot_kind kind)
{
	return kind == SLOT_STAGED ? s->staged[writer] :
	       kind == SLOT_BUILD  ? s->built[writer] :
				     s->dataset;
}

/* ---- writing ---- */

static void must(int r, const struct incr_error *err, const char *what)
{
	if (r >= 0)
		return;
	printf("%s: %s %s %s\n", what, err->word, err->message, err->thing);
	(void)fflush(stdout);
	_exit(1);
}

static int commit_parts(struct soak *s, struct incr_store *st, unsigned writer,
			unsigned slot, uint64_t number, struct incr_error *err)
{
	/* a stream cannot be read again after a lost race: have none */
	struct incr_txn_options options = { .dataset_id = s->dataset,
					    .type = INCR_UPDATE,
					    .rewrites = true };
	struct incr_source sources[3];
	char paths[3][64];
	unsigned n = soak_n_parts(soak_kind_of(slot));
	int r;

	for (unsigned i = 0; i < n; i++) {
		size_t size = soak_fill(number, i, soak_kind_of(slot), s->data);

		soak_part_path(writer, slot, i, paths[i]);
		sources[i] = store_kit_source(store_kit_stream(s->data, size),
					      paths[i]);
	}
	r = incr_commit(st, &options, sources, n, NULL, err);
	for (unsigned i = 0; i < n; i++)
		(void)close(sources[i].fd);
	return r;
}

static int remove_parts(struct soak *s, struct incr_store *st, unsigned writer,
			unsigned slot, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = s->dataset };
	struct incr_remove_flags flags = { .is_recursive = true };
	char path[64];
	const char *paths[] = { path };

	(void)snprintf(path, sizeof(path), "w%u/s%u", writer, slot);
	return incr_remove(st, &options, paths, 1, flags, NULL, err);
}

static int commit_staged(struct soak *s, struct incr_store *st, unsigned writer,
			 unsigned slot, uint64_t number, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = s->staged[writer],
					    .type = INCR_UPDATE };
	struct slot *shared = &s->shared->writers[writer].slots[slot];
	uint64_t txn;
	int r = incr_txn_begin(st, &options, &txn, err);

	for (unsigned i = 0; r == 0 && i < soak_n_parts(SLOT_STAGED); i++) {
		size_t size = soak_fill(number, i, SLOT_STAGED, s->data);
		struct incr_source source =
			store_kit_source(store_kit_stream(s->data, size), NULL);
		char path[64];

		soak_part_path(writer, slot, i, path);
		r = incr_txn_put(st, txn, path, &source, false, err);
		(void)close(source.fd);
		if (r == 0)
			atomic_store(&shared->n_durable, i + 1);
	}
	return r < 0 ? r : incr_txn_commit(st, txn, false, NULL, err);
}

static void write_file(const char *dir, const char *path, const uint8_t *data,
		       size_t size)
{
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	char folder[64];

	/* the folders of the path, which are there from the second part on */
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(folder, sizeof(folder), "%.*s", (int)(p - path),
			       path);
		(void)mkdirat(dirfd, folder, 0755);
	}
	fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		    0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		printf("cannot stage %s: %s\n", path, strerror(errno));
		_exit(1);
	}
	(void)close(fd);
	(void)close(dirfd);
}

static int commit_build(struct soak *s, struct incr_store *st, unsigned writer,
			unsigned slot, uint64_t number, struct incr_error *err)
{
	struct slot *shared = &s->shared->writers[writer].slots[slot];
	char name[16], in[] = "in", out[] = "out", data[] = "data", built[16];
	struct incr_transform_input input = { .alias = in, .dataset = data };
	struct incr_transform_output output = { .alias = out,
						.dataset = built };
	struct incr_transform transform = { .name = name,
					    .n_inputs = 1,
					    .inputs = &input,
					    .n_outputs = 1,
					    .outputs = &output,
					    .semantic_version = 1 };
	struct incr_plan_options plan_options = { .is_forced = true };
	struct incr_build_options options = { .cwd = "/" };
	struct incr_commit_build_options commit = { .exit_code = 0 };
	struct incr_plan plan = { 0 };
	struct incr_build_info info = { 0 };
	struct incr_build *b = NULL;
	int r;

	(void)snprintf(name, sizeof(name), "tr%u", writer);
	(void)snprintf(built, sizeof(built), "built%u", writer);
	r = incr_build_begin(st, &transform, &plan_options, &options, &b, &plan,
			     err);
	incr_plan_release(&plan);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < soak_n_parts(SLOT_BUILD); i++) {
		size_t size = soak_fill(number, i, SLOT_BUILD, s->data);
		char path[64];

		soak_part_path(writer, slot, i, path);
		write_file(incr_build_staging(b, 0), path, s->data, size);
	}
	atomic_store(&shared->n_durable, soak_n_parts(SLOT_BUILD));
	r = incr_build_commit(b, &commit, &info, err);
	incr_build_info_release(&info);
	incr_build_close(b);
	return r;
}

static void write_slot(struct soak *s, struct incr_store *st, unsigned writer,
		       unsigned slot)
{
	struct slot *shared = &s->shared->writers[writer].slots[slot];
	enum slot_kind kind = soak_kind_of(slot);
	bool removes = kind == SLOT_SMALL && atomic_load(&shared->acked) != 0 &&
		       store_kit_random(&s->random, 4) == 0;
	uint64_t number = removes ? 0 : atomic_fetch_add(&s->shared->next, 1);
	struct incr_error err = INCR_ERROR_INIT;
	int r;

	atomic_store(&shared->n_durable, 0);
	atomic_store(&shared->next, number);
	atomic_store(&shared->is_under_way, true);
	if (removes)
		r = remove_parts(s, st, writer, slot, &err);
	else if (kind == SLOT_STAGED)
		r = commit_staged(s, st, writer, slot, number, &err);
	else if (kind == SLOT_BUILD)
		r = commit_build(s, st, writer, slot, number, &err);
	else
		r = commit_parts(s, st, writer, slot, number, &err);
	must(r, &err, "a writer");
	atomic_store(&shared->acked, number);
	atomic_store(&shared->is_under_way, false);
	atomic_fetch_add(&s->shared->writers[writer].n_acked, 1);
}

struct incr_store *soak_open_store(const struct soak *s, uint64_t wait_ms,
				   struct incr_error *err)
{
	struct incr_store_options options = { .wait_ms = wait_ms };
	struct incr_store *st = NULL;

	(void)incr_store_open(s->path, &options, &st, err);
	return st;
}

pid_t soak_start_writer(struct soak *s, unsigned writer)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	pid_t pid;

	s->random += 7919;
	(void)fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	st = soak_open_store(s, WAIT_MS, &err);
	must(st ? 0 : -1, &err, "a writer cannot open");
	for (;;)
		write_slot(s, st, writer,
			   (unsigned)store_kit_random(&s->random, N_SLOTS));
}
