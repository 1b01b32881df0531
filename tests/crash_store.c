/*
 * Crash simulation of the whole store.
 *
 * A workload is a short sequence of verbs on a store in memory (simio.h).
 * After each operation that would reach a disk, each way in which a power cut
 * could leave that disk is built and opened with the code that users run:
 *
 *   - it opens; what was acknowledged is there, byte for byte;
 *   - what was under way is there whole or not at all;
 *   - verify finds nothing, another commit succeeds, and so does reopening.
 *
 * Some recoveries are recorded and cut short in their turn.  A failure prints
 * INCR_CRASH=...; set to that, the program runs the one state and leaves it
 * as a directory.  INCR_CRASH_STATES bounds the number of states (0: all).
 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash.h"
#include "simio.h"
#include "store.h"
#include "store_text.h"

#define STORE "store"
#define N_PROCESSES 2
#define VERBS_MAX 3
#define ACKS_MAX 16
#define STATES_DEFAULT 60000
#define NESTED_EVERY 40
#define FAILURES_MAX 5

/* ---- verbs ---- */

enum verb {
	VERB_SNAPSHOT,
	VERB_APPEND,
	VERB_UPDATE,
	VERB_DELETE,
	VERB_LARGE, /* an UPDATE with a pack */
	VERB_ABORT, /* begin, put, abort */
	VERB_STAGED, /* begin, put, commit */
	VERB_BRANCH,
	VERB_RESET,
	VERB_RENAME,
	VERB_FLUSH, /* the index to disk */
	N_VERBS,
};

struct run {
	struct sim *sim;
	struct incr_store *st;
	uint64_t dataset;
	bool has_kept; /* the source of what stays is made */
	unsigned n_files; /* made so far: names and contents differ */
	size_t staged_at; /* operations when a put into @staged was acknowledged */
	uint64_t staged; /* 0: none */
	uint64_t staged_hash; /* as in a text of the store */
	size_t n_acks;
	struct ack {
		size_t at; /* operations when it was acknowledged */
		struct store_text description;
	} acks[ACKS_MAX];
};

static void acknowledge(struct run *run)
{
	struct ack *a = &run->acks[run->n_acks++];

	a->at = sim_n_ops(run->sim);
	(void)store_text_fill(run->st, 0, &a->description);
}

/* A source file in the simulated file system; its making is no part of the store. */
static void make_source(struct run *run, const char *name, size_t size)
{
	const struct incr_io *io = sim_io(run->sim);
	uint8_t *data = malloc(size);
	uint64_t state = ++run->n_files;
	int fd = io->open_at(io, AT_FDCWD, name, O_RDWR | O_CREAT | O_TRUNC,
			     0644);

	if (!data || fd < 0)
		abort();
	for (size_t i = 0; i < size; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		data[i] = (uint8_t)(state >> 56);
	}
	(void)io->pwrite(io, fd, data, size, 0);
	(void)io->close(io, fd);
	free(data);
}

/* Mostly files that stay: from the second one on it is relative. */
static int commit_snapshot(struct run *run, const char *name,
			   struct incr_error *err)
{
	static const char *const names[] = { "kept/1", "kept/2", "kept/3",
					     "kept/4", "kept/5", "kept/6" };
	struct incr_txn_options options = { .dataset_id = run->dataset,
					    .type = INCR_SNAPSHOT };
	struct incr_source sources[8] = { { .path = "source", .name = name },
					  { .path = "source",
					    .name = "always/here" } };

	if (!run->has_kept)
		make_source(run, "kept", 300);
	run->has_kept = true;
	for (size_t i = 0; i < 6; i++)
		sources[i + 2] = (struct incr_source){ .path = "kept",
						       .name = names[i] };
	make_source(run, "source", 900);
	return incr_commit(run->st, &options, sources, 8, NULL, err);
}

static int commit(struct run *run, enum incr_txn_type type, const char *name,
		  size_t size, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = run->dataset,
					    .type = type };
	struct incr_source sources[2] = { { .path = "source", .name = name },
					  { .path = "source",
					    .name = "always/here" } };
	size_t n = type == INCR_APPEND ? 1 : 2;

	make_source(run, "source", size);
	return incr_commit(run->st, &options, sources, n, NULL, err);
}

static int staged(struct run *run, bool commits, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = run->dataset,
					    .type = INCR_UPDATE };
	struct incr_source source = { .path = "source" };
	uint64_t number;
	uint8_t *data;
	size_t size;
	int r;

	make_source(run, "source", 700);
	r = incr_txn_begin(run->st, &options, &number, err);
	if (r < 0)
		return r;
	acknowledge(run);
	r = incr_txn_put(run->st, number, "staged/file", &source, false, err);
	if (r < 0)
		return r;
	run->staged_at = sim_n_ops(run->sim);
	run->staged = number;
	data = sim_file(run->sim, "source", &size);
	run->staged_hash = 0;
	run->staged_hash = hash64_two(&run->staged_hash,
				      sizeof(run->staged_hash), data, size);
	return commits ? incr_txn_commit(run->st, number, false, NULL, err) :
			 incr_txn_abort(run->st, number, err);
}

static int reset_back(struct run *run, struct incr_error *err)
{
	struct incr_branch_info info = { 0 };
	struct incr_txn_info t = { 0 };
	int r = incr_branch_find(run->st, run->dataset, NULL, &info, err);
	uint64_t head = info.head;

	incr_branch_info_release(&info);
	if (r < 0 || !head)
		return r;
	r = incr_txn_find(run->st, head, &t, err);
	if (r == 0)
		r = incr_branch_reset(run->st, run->dataset, "main",
				      t.parent ? t.parent : head, err);
	incr_txn_info_release(&t);
	return r;
}

static int run_verb(struct run *run, enum verb verb, struct incr_error *err)
{
	const char *patterns[] = { "always/here" };
	struct incr_txn_options options = { .dataset_id = run->dataset };
	struct incr_remove_flags flags = { .ignores_missing = true };
	char name[32];
	int r;

	snprintf(name, sizeof(name), "file-%u", run->n_files);
	switch (verb) {
	case VERB_SNAPSHOT:
		return commit_snapshot(run, name, err);
	case VERB_APPEND:
		return commit(run, INCR_APPEND, name, 1500, err);
	case VERB_UPDATE:
		return commit(run, INCR_UPDATE, name, 600, err);
	case VERB_LARGE:
		return commit(run, INCR_UPDATE, name, 90000, err);
	case VERB_DELETE:
		r = incr_remove(run->st, &options, patterns, 1, flags, NULL,
				err);
		return r < 0 ? r : 0;
	case VERB_ABORT:
	case VERB_STAGED:
		return staged(run, verb == VERB_STAGED, err);
	case VERB_BRANCH:
		snprintf(name, sizeof(name), "branch-%u", ++run->n_files);
		return incr_branch_create(run->st, run->dataset, name, "main",
					  0, err);
	case VERB_RESET:
		return reset_back(run, err);
	case VERB_RENAME:
		snprintf(name, sizeof(name), "renamed-%u", ++run->n_files);
		return incr_dataset_rename(run->st, run->dataset, name, err);
	case VERB_FLUSH:
		return index_flush(run->st->index, err);
	default:
		return 0;
	}
}

static void fail(const char *what, const struct incr_error *err)
{
	fprintf(stderr, "%s: %s %s %s\n", what, err->word, err->message,
		err->thing);
	abort();
}

/* The workload, recorded: every verb succeeds, the disk is whole. */
static void record(struct run *run, const enum verb *verbs, size_t n_verbs)
{
	struct incr_error err = INCR_ERROR_INIT;

	*run = (struct run){ .sim = sim_new() };
	if (store_init_with(sim_io(run->sim), STORE, &err) < 0 ||
	    store_open_with(sim_io(run->sim), STORE, NULL, &run->st, &err) <
		    0 ||
	    incr_dataset_create(run->st, "dataset", NULL, NULL, &run->dataset,
				&err) < 0 ||
	    commit(run, INCR_APPEND, "first", 300, &err) < 0)
		fail("cannot start", &err);
	sim_start(run->sim);
	acknowledge(run);
	for (size_t i = 0; i < n_verbs; i++) {
		if (run_verb(run, verbs[i], &err) < 0)
			fail("a verb failed without a fault", &err);
		acknowledge(run);
	}
	incr_store_close(run->st);
	run->st = NULL;
}

static void run_release(struct run *run)
{
	for (size_t i = 0; i < run->n_acks; i++)
		free(run->acks[i].description.text);
	sim_free(run->sim);
}

/* ---- checking one state ---- */

struct checker {
	const char *workload; /* its number and what it does, for messages */
	size_t n_states, n_nested, n_failures;
	struct store_text found;
};

static int print_finding(void *closure, const struct incr_finding *f)
{
	(void)closure;
	printf("  finding: %s %s %s\n", f->word, f->file, f->message);
	return 0;
}

/* What the recovered store may look like: as acknowledged before the cut, or one step on. */
static bool is_allowed(const struct run *run, size_t k,
		       const struct store_text *found)
{
	size_t last = 0;

	for (size_t i = 0; i < run->n_acks; i++)
		if (run->acks[i].at <= k)
			last = i;
	for (size_t i = last; i < run->n_acks && i <= last + 1; i++)
		if (!strcmp(run->acks[i].description.text, found->text))
			return true;
	return false;
}

/* An OPEN transaction keeps everyone else off its branch, as it should. */
static bool main_is_free(const struct store_text *d)
{
	const char *main = strstr(d->text, " main head ");
	const char *open = main ? strstr(main, " open t") : NULL;

	return open && !strncmp(open, " open t0\n", 9);
}

/* What was put into an open transaction, and acknowledged, is in its commit. */
static const char *check_staged(const struct run *run, size_t k,
				struct incr_store *st, struct store_text *found)
{
	struct incr_error err = INCR_ERROR_INIT;
	const char *wrong = NULL;
	char open[40], hash[40];

	snprintf(open, sizeof(open), " open t%" PRIu64 "\n", run->staged);
	snprintf(hash, sizeof(hash), " %016" PRIx64 "\n", run->staged_hash);
	if (!run->staged || k < run->staged_at || !strstr(found->text, open))
		return NULL;
	if (incr_txn_commit(st, run->staged, false, NULL, &err) < 0) {
		printf("  commit: %s %s %s\n", err.word, err.message,
		       err.thing);
		wrong = "what was staged cannot be committed";
	}
	incr_error_release(&err);
	(void)store_text_fill(st, 0, found);
	if (!wrong && (!strstr(found->text, " staged/file ") ||
		       !strstr(found->text, hash)))
		wrong = "a staged file is lost";
	return wrong;
}

static const char *check_store(struct checker *c, const struct run *run,
			       size_t k, struct sim *state)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct run again = { .sim = state,
			     .dataset = run->dataset,
			     .n_files = 1000 };
	const char *wrong = NULL;

	if (store_open_with(sim_io(state), STORE, NULL, &again.st, &err) < 0) {
		printf("  open: %s %s %s\n", err.word, err.message, err.thing);
		incr_error_release(&err);
		return "the store does not open";
	}
	(void)store_text_fill(again.st, 0, &c->found);
	if (!is_allowed(run, k, &c->found))
		wrong = "an acknowledged change is lost, or one under way is half there";
	else if (incr_verify(again.st, &verify, print_finding, NULL, &result,
			     &err) < 0 ||
		 result.n_findings)
		wrong = "verify is not content";
	else if (main_is_free(&c->found) &&
		 commit(&again, INCR_UPDATE, "after", 500, &err) < 0) {
		printf("  commit: %s %s %s\n", err.word, err.message,
		       err.thing);
		wrong = "the next commit does not succeed";
	}
	if (!wrong)
		wrong = check_staged(run, k, again.st, &c->found);
	incr_error_release(&err);
	incr_store_close(again.st);
	return wrong;
}

static void report(struct checker *c, const struct run *run, size_t k,
		   int family, size_t x, const char *wrong)
{
	c->n_failures++;
	printf("FAILED %s\n  INCR_CRASH=%s:%zu:%d:%zu\n  found:\n%s", wrong,
	       c->workload, k, family, x, c->found.text ? c->found.text : "");
	for (size_t i = 0; i < run->n_acks; i++)
		printf("  acknowledged at %zu:\n%s", run->acks[i].at,
		       run->acks[i].description.text);
	fflush(stdout);
}

/* Cut the recovery of @state short, everywhere but in few ways. */
static void check_nested(struct checker *c, const struct run *run, size_t k,
			 int family, size_t x)
{
	struct sim *state = sim_crash(run->sim, k, (enum sim_family)family, x);
	struct run again = { .sim = state,
			     .dataset = run->dataset,
			     .n_files = 2000 };
	struct run both = *run;
	struct incr_error err = INCR_ERROR_INIT;
	struct ack *acks = both.acks;

	if (!state)
		return;
	sim_start(state);
	if (store_open_with(sim_io(state), STORE, NULL, &again.st, &err) < 0) {
		incr_error_release(&err);
		sim_free(state);
		return; /* reported by the plain check */
	}
	/* what was found is now the only thing allowed, then with one more commit */
	both.n_acks = 0;
	both.staged = 0;
	acks[both.n_acks++] = (struct ack){ 0 };
	(void)store_text_fill(again.st, 0, &acks[0].description);
	if (main_is_free(&acks[0].description) &&
	    commit(&again, INCR_UPDATE, "nested", 90000, &err) == 0) {
		acks[1] = (struct ack){ .at = sim_n_ops(state) };
		(void)store_text_fill(again.st, 0, &acks[1].description);
		both.n_acks = 2;
	}
	incr_error_release(&err);
	incr_store_close(again.st);
	for (size_t at = 0; at <= sim_n_ops(state); at++)
		for (int f = SIM_ALL; f <= SIM_NONE; f++) {
			struct sim *inner =
				sim_crash(state, at, (enum sim_family)f, 0);
			const char *wrong;

			if (!inner)
				continue;
			c->n_states++;
			c->n_nested++;
			wrong = check_store(c, &both, at, inner);
			if (wrong)
				report(c, &both, k, family, x, wrong);
			sim_free(inner);
		}
	for (size_t i = 0; i < both.n_acks; i++)
		free(acks[i].description.text);
	sim_free(state);
}

static void check_state(struct checker *c, const struct run *run, size_t k,
			int family, size_t x)
{
	struct sim *state = sim_crash(run->sim, k, (enum sim_family)family, x);
	const char *wrong;

	if (!state)
		return;
	c->n_states++;
	wrong = check_store(c, run, k, state);
	if (wrong)
		report(c, run, k, family, x, wrong);
	sim_free(state);
}

static void check_workload(struct checker *c, const struct run *run,
			   size_t budget)
{
	size_t n_ops = sim_n_ops(run->sim), end = c->n_states + budget;

	for (size_t k = 0; k <= n_ops; k++)
		for (int family = 0; family < SIM_N_FAMILIES; family++) {
			size_t n = sim_n_variants(run->sim, k,
						  (enum sim_family)family);

			for (size_t x = 0; x < n; x++) {
				if (c->n_failures >= FAILURES_MAX ||
				    (budget && c->n_states >= end))
					return;
				check_state(c, run, k, family, x);
			}
		}
}

/* A nested check needs a state of its own: from a fresh recording, so that none is skipped. */
static void check_recoveries(struct checker *c, const enum verb *verbs,
			     size_t n_verbs)
{
	struct run run;

	record(&run, verbs, n_verbs);
	for (size_t k = n_verbs; k <= sim_n_ops(run.sim); k += NESTED_EVERY / 4)
		for (int family = SIM_TORN_LAST; family <= SIM_GARBAGE;
		     family++)
			if (sim_n_variants(run.sim, k,
					   (enum sim_family)family) &&
			    c->n_failures < FAILURES_MAX)
				check_nested(c, &run, k, family, 0);
	run_release(&run);
}

/* ---- all workloads ---- */

/* Workload number @n as verbs, shortest first; returns how many. */
static size_t workload_verbs(size_t n, enum verb verbs[VERBS_MAX])
{
	size_t length = 1, count = N_VERBS;

	while (n >= count) {
		n -= count;
		count *= N_VERBS;
		length++;
	}
	for (size_t i = 0; i < length; i++) {
		verbs[i] = (enum verb)(n % N_VERBS);
		n /= N_VERBS;
	}
	return length;
}

static size_t n_workloads(void)
{
	size_t n = 0, count = 1;

	for (int i = 0; i < VERBS_MAX; i++)
		n += count *= N_VERBS;
	return n;
}

static void run_workload(struct checker *c, size_t n, size_t budget)
{
	enum verb verbs[VERBS_MAX];
	size_t n_verbs = workload_verbs(n, verbs);
	char name[32];
	struct run run;

	snprintf(name, sizeof(name), "%zu", n);
	c->workload = name;
	record(&run, verbs, n_verbs);
	check_workload(c, &run, budget);
	run_release(&run);
	if (n % 8 == 0)
		check_recoveries(c, verbs, n_verbs);
	c->workload = NULL;
}

static int replay(const char *text)
{
	size_t n, k, x;
	int family;
	struct checker c = { .workload = text };
	enum verb verbs[VERBS_MAX];
	struct run run;
	struct sim *state;

	if (sscanf(text, "%zu:%zu:%d:%zu", &n, &k, &family, &x) != 4) {
		fprintf(stderr,
			"INCR_CRASH is workload:point:family:variant\n");
		return 2;
	}
	record(&run, verbs, workload_verbs(n, verbs));
	if (k > sim_n_ops(run.sim)) {
		fprintf(stderr, "INCR_CRASH: there are %zu points\n",
			sim_n_ops(run.sim));
		run_release(&run);
		return 2;
	}
	state = sim_crash(run.sim, k, (enum sim_family)family, x);
	if (state && sim_export(state, "crash-state") == 0)
		printf("the state is in crash-state/\n");
	sim_free(state);
	run_release(&run);
	record(&run, verbs, workload_verbs(n, verbs));
	check_state(&c, &run, k, family, x);
	run_release(&run);
	free(c.found.text);
	return c.n_failures != 0;
}

/* One process: every N_PROCESSES-th workload, evenly spread over all of them. */
static void run_share(size_t share, size_t n_states, int result_fd)
{
	struct checker c = { 0 };
	size_t total = n_workloads();
	size_t budget = n_states ? n_states / total + 200 : 0;
	/* a step without a common factor visits all, in an order that mixes lengths */
	size_t step = 389;

	for (size_t i = share; i < total; i += N_PROCESSES) {
		if (c.n_failures >= FAILURES_MAX ||
		    (n_states && c.n_states >= n_states / N_PROCESSES))
			break;
		run_workload(&c, i * step % total, budget);
	}
	free(c.found.text);
	c.found.text = NULL;
	if (write(result_fd, &c, sizeof(c)) != sizeof(c))
		abort();
}

int main(void)
{
	const char *one = getenv("INCR_CRASH"),
		   *limit = getenv("INCR_CRASH_STATES");
	size_t n_states = limit ? strtoul(limit, NULL, 10) : STATES_DEFAULT;
	struct checker sum = { 0 };
	int pipes[2], status, n_died = 0;

	if (one)
		return replay(one);
	if (pipe(pipes) < 0)
		return 1;
	for (size_t i = 0; i < N_PROCESSES; i++)
		if (fork() == 0) {
			run_share(i, n_states, pipes[1]);
			_exit(0);
		}
	close(pipes[1]);
	for (size_t i = 0; i < N_PROCESSES; i++) {
		struct checker c;

		if (wait(&status) < 0 || status)
			n_died++;
		else if (read(pipes[0], &c, sizeof(c)) == sizeof(c)) {
			sum.n_states += c.n_states;
			sum.n_nested += c.n_nested;
			sum.n_failures += c.n_failures;
		}
	}
	printf("%zu crash states, %zu of them inside a recovery, %zu bad\n",
	       sum.n_states, sum.n_nested, sum.n_failures);
	printf("%d passed, %d failed\n", !(sum.n_failures || n_died),
	       !!(sum.n_failures || n_died));
	return sum.n_failures || n_died;
}
