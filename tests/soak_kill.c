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

#include "soak_writer.h"
#include "store_kit.h"
#include "testing.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_PER_STORE 250
#define VERIFY_EVERY 10
#define DELAY_MAX_US 25000
#define KILLS_DEFAULT 300

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
	soak_part_path(writer, slot, part, path);
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
	return size == soak_fill(*out_number, part, soak_kind_of(slot),
				 s->want) &&
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
	for (unsigned i = 1; i < soak_n_parts(soak_kind_of(slot)); i++)
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
				s, st, soak_dataset(s, w, soak_kind_of(i)));

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
		if (soak_dataset(s, w, kind) == dataset)
			return &s->shared->writers[w]
					.slots[N_SMALL + (unsigned)kind - 1];
	return NULL;
}

/* All parts are durable: by turns, what was left open is committed. */
static bool ends_by_commit(struct soak *s, const struct slot *slot,
			   enum slot_kind kind)
{
	return atomic_load(&slot->is_under_way) &&
	       atomic_load(&slot->n_durable) == soak_n_parts(kind) &&
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
	if (!f->is_left_over)
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
	struct incr_store *st = soak_open_store(s, 0, &err);

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
		pids[w] = soak_start_writer(s, w);
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
