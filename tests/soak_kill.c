/*
 * Writers that are killed at moments of chance, some thousand times.
 *
 * Two processes write to one store without pause: commits small and large,
 * transactions step by step, removals, builds. Every file says which number
 * its writer was at. Memory shared with the parent holds, for each slot of
 * each writer, the last number whose call returned success and the one under
 * way. The parent kills, opens the store and looks:
 *
 *   - each slot is at its acknowledged number, or whole at the one under way;
 *   - open transactions and orphaned builds are listed, and end when told to;
 *   - the next commit waits for nobody; verify finds nothing.
 *
 * INCR_SOAK_KILLS is how many (300). A failure prints the seed; moments are not
 * repeatable, what the writers do is.
 */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_WRITERS 2
#define N_SMALL 6
#define SIZE_MAX_FILE 220000
#define ROUNDS_PER_STORE 250
#define VERIFY_EVERY 10
#define DELAY_MAX_US 25000
#define KILLS_DEFAULT 300
#define WAIT_MS 20000

enum slot_kind { SLOT_SMALL, SLOT_LARGE, SLOT_STAGED, SLOT_BUILD, N_KINDS };
#define N_SLOTS (N_SMALL + 3)

static enum slot_kind kind_of(unsigned slot)
{
	return slot < N_SMALL ? SLOT_SMALL :
				(enum slot_kind)(slot - N_SMALL + 1);
}

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

/* ---- what the files hold ---- */

static size_t fill(uint64_t number, unsigned part, enum slot_kind kind,
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

static unsigned n_parts(enum slot_kind kind)
{
	return kind == SLOT_LARGE ? 1 : 3;
}

static void part_path(unsigned writer, unsigned slot, unsigned part,
		      char path[64])
{
	(void)snprintf(path, 64, "w%u/s%u/%c", writer, slot, 'a' + part);
}

static uint64_t slot_dataset(const struct soak *s, unsigned writer,
			     enum slot_kind kind)
{
	return kind == SLOT_STAGED ? s->staged[writer] :
	       kind == SLOT_BUILD  ? s->built[writer] :
				     s->dataset;
}

/* ---- writers: any failure ends the process ---- */

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
	unsigned n = n_parts(kind_of(slot));
	int r;

	for (unsigned i = 0; i < n; i++) {
		size_t size = fill(number, i, kind_of(slot), s->data);

		part_path(writer, slot, i, paths[i]);
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

	for (unsigned i = 0; r == 0 && i < n_parts(SLOT_STAGED); i++) {
		size_t size = fill(number, i, SLOT_STAGED, s->data);
		struct incr_source source =
			store_kit_source(store_kit_stream(s->data, size), NULL);
		char path[64];

		part_path(writer, slot, i, path);
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
	for (unsigned i = 0; i < n_parts(SLOT_BUILD); i++) {
		size_t size = fill(number, i, SLOT_BUILD, s->data);
		char path[64];

		part_path(writer, slot, i, path);
		write_file(incr_build_staging(b, 0), path, s->data, size);
	}
	atomic_store(&shared->n_durable, n_parts(SLOT_BUILD));
	r = incr_build_commit(b, &commit, &info, err);
	incr_build_info_release(&info);
	incr_build_close(b);
	return r;
}

static void write_slot(struct soak *s, struct incr_store *st, unsigned writer,
		       unsigned slot)
{
	struct slot *shared = &s->shared->writers[writer].slots[slot];
	enum slot_kind kind = kind_of(slot);
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

static struct incr_store *open_store(const struct soak *s, uint64_t wait_ms,
				     struct incr_error *err)
{
	struct incr_store_options options = { .wait_ms = wait_ms };
	struct incr_store *st = NULL;

	(void)incr_store_open(s->path, &options, &st, err);
	return st;
}

static pid_t start_writer(struct soak *s, unsigned writer)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	pid_t pid;

	s->random += 7919;
	(void)fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	st = open_store(s, WAIT_MS, &err);
	must(st ? 0 : -1, &err, "a writer cannot open");
	for (;;)
		write_slot(s, st, writer,
			   (unsigned)store_kit_random(&s->random, N_SLOTS));
}

/* ---- the parent ---- */

static void complain(struct soak *s, unsigned writer, unsigned slot,
		     const char *what, uint64_t found)
{
	const struct slot *shared = &s->shared->writers[writer].slots[slot];

	s->n_bad++;
	printf("after %" PRIu64 " kills, writer %u slot %u: %s: found %" PRIu64
	       ", acknowledged %" PRIu64 ", under way %" PRIu64 " (%d)\n",
	       s->n_kills, writer, slot, what, found,
	       atomic_load(&shared->acked), atomic_load(&shared->next),
	       atomic_load(&shared->is_under_way));
}

/* The number of a part: 0 when it is not there; false: it is wrong. */
static bool read_part(struct soak *s, struct incr_view *v, unsigned writer,
		      unsigned slot, unsigned part, uint64_t *out_number)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	char path[64];
	size_t size = 0;
	int r;

	*out_number = 0;
	part_path(writer, slot, part, path);
	r = incr_view_find(v, path, strlen(path), &node, &err);
	if (r == 0)
		r = incr_file_read(v, &node, 0, s->data, SIZE_MAX_FILE, &size,
				   &err);
	incr_node_release(&node);
	if (r < 0)
		printf("%s: %s %s\n", path, err.word, err.message);
	incr_error_release(&err);
	if (r != 0)
		return r > 0;
	if (size < sizeof(*out_number))
		return false;
	memcpy(out_number, s->data, sizeof(*out_number));
	return size == fill(*out_number, part, kind_of(slot), s->want) &&
	       memcmp(s->data, s->want, size) == 0;
}

static void check_slot(struct soak *s, struct incr_view *v, unsigned writer,
		       unsigned slot)
{
	struct slot *shared = &s->shared->writers[writer].slots[slot];
	uint64_t found, other, acked = atomic_load(&shared->acked);

	if (!read_part(s, v, writer, slot, 0, &found)) {
		complain(s, writer, slot, "wrong bytes", found);
		return;
	}
	for (unsigned i = 1; i < n_parts(kind_of(slot)); i++)
		if (!read_part(s, v, writer, slot, i, &other) ||
		    other != found) {
			complain(s, writer, slot, "in part", found);
			return;
		}
	if (found != acked && !(atomic_load(&shared->is_under_way) &&
				found == atomic_load(&shared->next)))
		complain(s, writer, slot, "lost", found);
	atomic_store(&shared->acked, found);
	atomic_store(&shared->is_under_way, false);
}

static struct incr_view *head_view(struct soak *s, struct incr_store *st,
				   uint64_t dataset)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_branch_info info = { 0 };
	struct incr_view *v = NULL;

	if (incr_branch_find(st, dataset, NULL, &info, &err) < 0 ||
	    incr_view_open(st, dataset, info.head, &v, &err) < 0) {
		s->n_bad++;
		printf("no view: %s %s\n", err.word, err.message);
	}
	incr_branch_info_release(&info);
	incr_error_release(&err);
	return v;
}

static void check_slots(struct soak *s, struct incr_store *st)
{
	for (unsigned w = 0; w < N_WRITERS; w++)
		for (unsigned i = 0; i < N_SLOTS; i++) {
			struct incr_view *v = head_view(
				s, st, slot_dataset(s, w, kind_of(i)));

			if (v)
				check_slot(s, v, w, i);
			incr_view_unref(v);
		}
}

struct numbers {
	uint64_t items[16];
	uint64_t datasets[16];
	size_t n;
};

static int note_txn(void *closure, const struct incr_txn_info *info)
{
	struct numbers *n = closure;

	if (n->n < 16) {
		n->datasets[n->n] = info->dataset_id;
		n->items[n->n++] = info->number;
	}
	return 0;
}

/* The slot that an open transaction or build belongs to. */
static struct slot *slot_of(struct soak *s, uint64_t dataset,
			    enum slot_kind kind)
{
	for (unsigned w = 0; w < N_WRITERS; w++)
		if (slot_dataset(s, w, kind) == dataset)
			return &s->shared->writers[w]
					.slots[N_SMALL + (unsigned)kind - 1];
	return NULL;
}

/* All parts are durable: by turns, what was left open is committed. */
static bool ends_by_commit(struct soak *s, const struct slot *slot,
			   enum slot_kind kind)
{
	return atomic_load(&slot->is_under_way) &&
	       atomic_load(&slot->n_durable) == n_parts(kind) &&
	       store_kit_random(&s->random, 2) == 0;
}

static void end_txns(struct soak *s, struct incr_store *st)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct numbers open = { .n = 0 };
	int r = incr_txn_list_open(st, note_txn, &open, &err);

	for (size_t i = 0; r == 0 && i < open.n; i++) {
		struct slot *slot = slot_of(s, open.datasets[i], SLOT_STAGED);

		s->n_open++;
		if (!slot) {
			s->n_bad++;
			printf("a transaction nobody began is open\n");
		} else if (ends_by_commit(s, slot, SLOT_STAGED)) {
			r = incr_txn_commit(st, open.items[i], false, NULL,
					    &err);
			/* what was put is durable: now it must be there */
			atomic_store(&slot->acked, atomic_load(&slot->next));
			atomic_store(&slot->is_under_way, false);
		} else {
			r = incr_txn_abort(st, open.items[i], &err);
		}
	}
	if (r < 0) {
		s->n_bad++;
		printf("open transactions: %s %s\n", err.word, err.message);
	}
	incr_error_release(&err);
}

static int note_build(void *closure, const struct incr_build_info *info)
{
	struct numbers *n = closure;

	if (info->status == INCR_BUILD_OPEN && n->n < 16) {
		n->datasets[n->n] = info->is_orphaned ?
					    info->plan.outputs[0].dataset_id :
					    0;
		n->items[n->n++] = info->number;
	}
	return 0;
}

static void end_builds(struct soak *s, struct incr_store *st)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_commit_build_options commit = { .exit_code = 0 };
	struct numbers open = { .n = 0 };
	int r = incr_build_list(st, NULL, note_build, &open, &err);

	for (size_t i = 0; r == 0 && i < open.n; i++) {
		struct slot *slot = slot_of(s, open.datasets[i], SLOT_BUILD);
		struct incr_build_info info = { 0 };
		struct incr_build *b = NULL;

		s->n_orphans++;
		if (!slot) {
			s->n_bad++;
			printf("a build of the dead is no orphan\n");
			continue;
		}
		r = incr_build_adopt(st, open.items[i], &b, &err);
		if (r < 0)
			break;
		if (ends_by_commit(s, slot, SLOT_BUILD)) {
			r = incr_build_commit(b, &commit, &info, &err);
			atomic_store(&slot->acked, atomic_load(&slot->next));
			atomic_store(&slot->is_under_way, false);
		} else {
			r = incr_build_abort(b, false, -1, &info, &err);
		}
		incr_build_info_release(&info);
		incr_build_close(b);
	}
	if (r < 0) {
		s->n_bad++;
		printf("orphaned builds: %s %s\n", err.word, err.message);
	}
	incr_error_release(&err);
}

static int print_finding(void *closure, const struct incr_finding *f)
{
	(void)closure;
	printf("finding: %s %s %s\n", f->word, f->file, f->message);
	return 0;
}

static void verify(struct soak *s, struct incr_store *st)
{
	struct incr_verify_options options = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;

	if (incr_verify(st, &options, print_finding, NULL, &result, &err) < 0)
		printf("verify: %s %s\n", err.word, err.message);
	else if (result.n_findings == 0)
		return;
	s->n_bad++;
	incr_error_release(&err);
}

/* Nobody alive holds anything. */
static void check_not_blocked(struct soak *s, struct incr_store *st)
{
	static const uint64_t nothing;
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_txn_options options = { .type = INCR_UPDATE };
	int fd = store_kit_stream(&nothing, sizeof(nothing));
	struct incr_source source = store_kit_source(fd, "parent");
	uint64_t datasets[1 + 2 * N_WRITERS] = { s->dataset };

	memcpy(&datasets[1], s->staged, sizeof(s->staged));
	memcpy(&datasets[1 + N_WRITERS], s->built, sizeof(s->built));
	/* a commit to an output would make its next build start anew: rarely */
	for (size_t i = 0;
	     i < (s->n_checks % 5 ? 1 + N_WRITERS : 1 + 2 * N_WRITERS); i++) {
		options.dataset_id = datasets[i];
		(void)lseek(fd, 0, SEEK_SET);
		if (incr_commit(st, &options, &source, 1, NULL, &err) < 0) {
			s->n_bad++;
			printf("blocked after %" PRIu64 " kills: %s %s\n",
			       s->n_kills, err.word, err.message);
		}
	}
	(void)close(fd);
	incr_error_release(&err);
}

static void check_store(struct soak *s)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = open_store(s, 0, &err);

	if (!st) {
		s->n_bad++;
		printf("the store does not open: %s %s\n", err.word,
		       err.message);
		incr_error_release(&err);
		return;
	}
	end_txns(s, st);
	end_builds(s, st);
	check_slots(s, st);
	check_not_blocked(s, st);
	if (++s->n_checks % VERIFY_EVERY == 0)
		verify(s, st);
	incr_store_close(st);
}

static void kill_writer(struct soak *s, pid_t pid)
{
	int status;

	(void)usleep((useconds_t)store_kit_random(&s->random, DELAY_MAX_US));
	(void)kill(pid, SIGKILL);
	s->n_kills++;
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status)) {
		s->n_bad++;
		printf("a writer had ended by itself\n");
	}
}

static bool make_store(struct soak *s)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	char name[16];
	int r;

	memset(s->shared, 0, sizeof(*s->shared));
	atomic_store(&s->shared->next, 1);
	r = incr_store_init(s->path, &err);
	if (r == 0)
		r = incr_store_open(s->path, NULL, &st, &err);
	if (r == 0)
		r = incr_dataset_create(st, "data", NULL, NULL, &s->dataset,
					&err);
	for (unsigned w = 0; r == 0 && w < N_WRITERS; w++) {
		(void)snprintf(name, sizeof(name), "staged%u", w);
		r = incr_dataset_create(st, name, NULL, NULL, &s->staged[w],
					&err);
		(void)snprintf(name, sizeof(name), "built%u", w);
		if (r == 0)
			r = incr_dataset_create(st, name, NULL, NULL,
						&s->built[w], &err);
	}
	if (r < 0)
		printf("no store: %s %s\n", err.word, err.message);
	incr_store_close(st);
	incr_error_release(&err);
	return r == 0;
}

static uint64_t n_acked(const struct soak *s)
{
	uint64_t n = 0;

	for (unsigned w = 0; w < N_WRITERS; w++)
		n += atomic_load(&s->shared->writers[w].n_acked);
	return n;
}

/* Both writers, killed one after the other: the second loses the first. */
static void soak_round(struct soak *s)
{
	pid_t pids[N_WRITERS];

	for (unsigned w = 0; w < N_WRITERS; w++)
		pids[w] = start_writer(s, w);
	for (unsigned w = 0; w < N_WRITERS; w++)
		kill_writer(s, pids[w]);
	check_store(s);
}

static void test_store__writers_killed__keeps_all_acknowledged(void)
{
	const char *text = getenv("INCR_SOAK_KILLS");
	uint64_t wanted = text ? strtoull(text, NULL, 10) : KILLS_DEFAULT;
	static struct soak s;
	uint64_t acked = 0;

	s.random = store_kit_seed();
	s.shared = mmap(NULL, sizeof(*s.shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(s.shared != MAP_FAILED);
	for (unsigned n = 0; s.n_kills < wanted && s.n_bad == 0; n++) {
		if (n % ROUNDS_PER_STORE == 0) {
			acked += n_acked(&s);
			(void)snprintf(s.path, sizeof(s.path), "%s/store%u",
				       testing_tmpdir(), n);
			REQUIRE(make_store(&s));
		}
		soak_round(&s);
	}
	acked += n_acked(&s);
	printf("%" PRIu64 " kills, %" PRIu64 " acknowledged changes, %" PRIu64
	       " transactions and %" PRIu64 " builds left open, %" PRIu64
	       " violations\n",
	       s.n_kills, acked, s.n_open, s.n_orphans, s.n_bad);
	CHECK_INT_EQ(0, s.n_bad);
	CHECK(acked > s.n_kills);
	(void)munmap(s.shared, sizeof(*s.shared));
}

static const struct testing_test tests[] = {
	TEST(test_store__writers_killed__keeps_all_acknowledged),
	TEST_END,
};
static const struct testing_suite suites[] = {
	{ "soak", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
