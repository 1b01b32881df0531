/*
 * Crash simulation of the whole store.
 *
 * A workload is a sequence of verbs on a store in memory (crash_verbs.h): all
 * sequences of up to three, and some long ones of chance.  After each operation
 * that would reach a disk, ways in which a power cut could leave that disk are
 * built and opened with the code that users run:
 *
 *   - it opens; what was acknowledged is there, byte for byte;
 *   - what was under way is there whole or not at all;
 *   - an open build is an orphan, which blocks nothing and can be aborted;
 *   - verify finds nothing, another commit succeeds, and so does reopening;
 *   - a repair leaves the packs that records name, and no other.
 *
 * Some recoveries are recorded and cut short in their turn.  A failure prints
 * INCR_CRASH=...; set to that, the program runs the one state and leaves it
 * as a directory.  INCR_CRASH_STATES is about how many states are built, evenly
 * spread over all points of all workloads.
 */
#include "config.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash_packs.h"
#include "crash_verbs.h"
#include "shares.h"

#define N_PROCESSES 2
#define SHORT_MAX 3
#define N_LONG 20
#define LONG_MAX 12
#define STATES_DEFAULT 60000
#define NESTED_WORKLOADS 8 /* one of so many has its recoveries cut short */
#define NESTED_PART 12 /* one state of so many is inside a recovery */
#define NESTED_STEP 7
#define FAILURES_MAX 5
#define REPAIR_EVERY 16 /* states */

/* ---- checking one state ---- */

/* Of one process; sent to the first one when it ends. */
struct counts {
	size_t n_states, n_nested, n_failures;
};

struct checker {
	size_t workload; /* its number */
	bool repairs_all; /* not one of REPAIR_EVERY */
	struct counts n;
	struct store_text found;
};

/* A power cut of the workload, and maybe another in the recovery from it. */
struct cut {
	size_t k, x;
	int family;
	bool is_nested;
	size_t nested_k;
	int nested_family;
};

static int print_finding(void *closure, const struct incr_finding *f)
{
	(void)closure;
	if (!f->is_left_over)
		printf("  finding: %s %s %s\n", f->word, f->file, f->message);
	return 0;
}

static const char *failed(const char *call, struct incr_error *err,
			  const char *wrong)
{
	printf("  %s: %s %s %s\n", call, err->word, err->message, err->thing);
	incr_error_release(err);
	return wrong;
}

/* What the recovered store may look like: as acknowledged before the cut, or one step on. */
static bool is_allowed(const struct crash_run *run, size_t k,
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
static bool main_is_free(struct incr_store *st, uint64_t dataset)
{
	struct incr_branch_info main = { 0 };
	bool is_free = incr_branch_find(st, dataset, NULL, &main, NULL) == 0 &&
		       !main.open_txn;

	incr_branch_info_release(&main);
	return is_free;
}

static const char *check_commit(const struct crash_run *run,
				struct crash_run *again)
{
	struct incr_error err = INCR_ERROR_INIT;

	if (main_is_free(again->st, run->dataset) &&
	    crash_commit(again, run->dataset, INCR_UPDATE, "after", 500, &err) <
		    0)
		return failed("commit", &err,
			      "the next commit does not succeed");
	return NULL;
}

/* What was put into an open transaction, and acknowledged, is in its commit. */
static const char *check_staged(const struct crash_run *run, size_t k,
				struct incr_store *st, struct store_text *found)
{
	struct incr_error err = INCR_ERROR_INIT;
	char open[40], hash[40];

	snprintf(open, sizeof(open), " open t%" PRIu64 "\n", run->staged);
	snprintf(hash, sizeof(hash), " %016" PRIx64 "\n", run->staged_hash);
	if (!run->staged || k < run->staged_at || !strstr(found->text, open))
		return NULL;
	if (incr_txn_commit(st, run->staged, false, NULL, &err) < 0)
		return failed("commit", &err,
			      "what was staged cannot be committed");
	crash_describe(st, found);
	if (!strstr(found->text, " staged/file ") || !strstr(found->text, hash))
		return "a staged file is lost";
	return NULL;
}

static int note_open(void *closure, const struct incr_build_info *b)
{
	struct incr_build_info *open = closure;

	if (b->status == INCR_BUILD_OPEN) {
		open->number = b->number;
		open->is_orphaned = b->is_orphaned;
	}
	return 0;
}

/* A build that the cut left open has no owner; whoever comes next takes over. */
static const char *check_build(struct crash_run *again)
{
	struct incr_build_info open = { 0 }, ended = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_dataset_info out = { 0 };
	struct incr_build *b = NULL;
	int r;

	if (incr_build_list(again->st, NULL, note_open, &open, &err) < 0)
		return failed("list", &err, "the builds cannot be listed");
	if (!open.number)
		return NULL;
	if (!open.is_orphaned)
		return "a build without a process is no orphan";
	r = incr_dataset_find(again->st, "out-1", &out, &err);
	if (r == 0)
		r = crash_commit(again, out.id, INCR_UPDATE, "by-hand", 40,
				 &err);
	incr_dataset_info_release(&out);
	if (r < 0)
		return failed("commit", &err,
			      "an orphaned build blocks its output");
	r = incr_build_adopt(again->st, open.number, &b, &err);
	if (r == 0)
		r = incr_build_abort(b, false, -1, &ended, &err);
	incr_build_info_release(&ended);
	incr_build_close(b);
	return r < 0 ? failed("abort", &err, "an orphan cannot be aborted") :
		       NULL;
}

/* Neither threads nor a look at /etc/passwd: they cost more than all the rest. */
static void be_quick(struct incr_store *st)
{
	st->verify_alone_size = UINT64_MAX;
	st->user_id = geteuid();
	snprintf(st->user, sizeof(st->user), "user");
}

static const char *check_store(struct checker *c, const struct crash_run *run,
			       size_t k, struct sim *state)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct crash_run again = { .sim = state,
				   .dataset = run->dataset,
				   .n_files = 1000 };
	const char *wrong = NULL;

	if (store_open_with(sim_io(state), CRASH_STORE, NULL, &again.st, &err) <
	    0)
		return failed("open", &err, "the store does not open");
	be_quick(again.st);
	crash_describe(again.st, &c->found);
	if (!is_allowed(run, k, &c->found))
		wrong = "an acknowledged change is lost, or one under way is half there";
	else if (incr_verify(again.st, &verify, print_finding, NULL, &result,
			     &err) < 0 ||
		 result.n_findings)
		wrong = "verify is not content";
	else
		wrong = check_commit(run, &again);
	if (!wrong)
		wrong = check_staged(run, k, again.st, &c->found);
	if (!wrong)
		wrong = check_build(&again);
	incr_error_release(&err);
	incr_store_close(again.st);
	if (!wrong && (c->repairs_all || c->n.n_states % REPAIR_EVERY == 0))
		wrong = crash_check_packs(state, CRASH_STORE);
	return wrong;
}

static void report(struct checker *c, const struct crash_run *run,
		   const struct cut *cut, const char *wrong)
{
	c->n.n_failures++;
	printf("FAILED %s\n  INCR_CRASH=%zu:%zu:%d:%zu", wrong, c->workload,
	       cut->k, cut->family, cut->x);
	if (cut->is_nested)
		printf(":%zu:%d", cut->nested_k, cut->nested_family);
	printf("\n  found:\n%s", c->found.text ? c->found.text : "");
	for (size_t i = 0; i < run->n_acks; i++)
		printf("  acknowledged at %zu:\n%s", run->acks[i].at,
		       run->acks[i].description.text);
	fflush(stdout);
}

static struct sim *crash(struct sim *sim, size_t k, int family, size_t x)
{
	return sim_crash(sim, k, (enum sim_family)family, x);
}

static void check_state(struct checker *c, const struct crash_run *run,
			const struct cut *cut)
{
	struct sim *state = crash(run->sim, cut->k, cut->family, cut->x);
	const char *wrong;

	if (!state)
		return;
	c->n.n_states++;
	wrong = check_store(c, run, cut->k, state);
	if (wrong)
		report(c, run, cut, wrong);
	sim_free(state);
}

/* ---- a recovery cut short ---- */

/*
 * Record the recovery of @state and a commit after it.  What the recovery found
 * is the only thing allowed, then with one more commit.
 */
static int record_recovery(struct crash_run *after, const struct crash_run *run,
			   struct sim *state)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct crash_run again = { .sim = state,
				   .dataset = run->dataset,
				   .n_files = 2000 };

	*after = (struct crash_run){ .sim = state, .dataset = run->dataset };
	sim_start(state);
	if (store_open_with(sim_io(state), CRASH_STORE, NULL, &again.st, &err) <
	    0) {
		incr_error_release(&err);
		return -1; /* reported by the plain check */
	}
	crash_describe(again.st, &after->acks[after->n_acks++].description);
	if (main_is_free(again.st, run->dataset) &&
	    crash_commit(&again, run->dataset, INCR_UPDATE, "nested", 90000,
			 &err) == 0) {
		after->acks[after->n_acks].at = sim_n_ops(state);
		crash_describe(again.st,
			       &after->acks[after->n_acks++].description);
	}
	incr_error_release(&err);
	incr_store_close(again.st);
	return 0;
}

static void check_nested_state(struct checker *c, const struct crash_run *after,
			       const struct cut *cut)
{
	struct sim *inner =
		crash(after->sim, cut->nested_k, cut->nested_family, 0);
	const char *wrong;

	if (!inner)
		return;
	c->n.n_states++;
	c->n.n_nested++;
	wrong = check_store(c, after, cut->nested_k, inner);
	if (wrong)
		report(c, after, cut, wrong);
	sim_free(inner);
}

/* Cut the recovery from @cut everywhere, in one way of each family; or where it says. */
static void check_nested(struct checker *c, const struct crash_run *run,
			 const struct cut *cut)
{
	struct sim *state = crash(run->sim, cut->k, cut->family, cut->x);
	struct cut each = { .k = cut->k,
			    .x = cut->x,
			    .family = cut->family,
			    .is_nested = true };
	struct crash_run after;

	if (!state)
		return;
	if (record_recovery(&after, run, state) == 0 && cut->is_nested)
		check_nested_state(c, &after, cut);
	else
		for (; each.nested_k <= sim_n_ops(state); each.nested_k++)
			for (each.nested_family = 0;
			     each.nested_family < SIM_N_FAMILIES;
			     each.nested_family++)
				if (c->n.n_failures < FAILURES_MAX &&
				    sim_n_variants(state, each.nested_k,
						   (enum sim_family)
							   each.nested_family))
					check_nested_state(c, &after, &each);
	crash_run_release(&after);
}

/* ---- all workloads ---- */

static size_t n_short(void)
{
	size_t n = 0, count = 1;

	for (int i = 0; i < SHORT_MAX; i++)
		n += count *= CRASH_N_VERBS;
	return n;
}

/* Workload number @n as verbs: all short ones, then the long; returns how many. */
static size_t workload_verbs(size_t n, enum crash_verb verbs[LONG_MAX])
{
	size_t length = 1, count = CRASH_N_VERBS;
	uint64_t seed = n;

	if (n >= n_short()) {
		for (size_t i = 0; i < LONG_MAX; i++)
			verbs[i] = (enum crash_verb)(sim_random(&seed) %
						     CRASH_N_VERBS);
		return LONG_MAX;
	}
	while (n >= count) {
		n -= count;
		count *= CRASH_N_VERBS;
		length++;
	}
	for (size_t i = 0; i < length; i++) {
		verbs[i] = (enum crash_verb)(n % CRASH_N_VERBS);
		n /= CRASH_N_VERBS;
	}
	return length;
}

static void record(struct crash_run *run, size_t workload)
{
	enum crash_verb verbs[LONG_MAX];
	size_t n = workload_verbs(workload, verbs);

	crash_run_record(run, verbs, n);
}

/* Ways to cut the power, of one workload. */
struct cuts {
	struct cut *items; /* owned */
	size_t n;
};

static void add_cuts(struct cuts *cuts, const struct crash_run *run, size_t k,
		     int family)
{
	size_t n = sim_n_variants(run->sim, k, (enum sim_family)family);

	cuts->items = reallocarray(cuts->items, cuts->n + n + 1,
				   sizeof(*cuts->items));
	if (!cuts->items)
		abort();
	for (size_t x = 0; x < n; x++)
		cuts->items[cuts->n++] =
			(struct cut){ .k = k, .x = x, .family = family };
}

/* Numbers that share no factor with @n, so that steps of it visit all. */
static size_t step_through(size_t n)
{
	size_t step = n * 5 / 8 + 1, a, b, rest;

	for (;; step++) {
		for (a = n, b = step; b; a = b, b = rest)
			rest = a % b;
		if (a == 1)
			return step;
	}
}

/* A short one ends as a shorter one did, but for its last verb. */
static size_t first_cut(const struct checker *c, const struct crash_run *run)
{
	return c->workload < n_short() ? run->last_at : 0;
}

/*
 * Recoveries of states that are no plain prefix, until there are enough of
 * them.  Each needs a state of its own: a fresh recording skips none.
 */
static void check_recoveries(struct checker *c, size_t budget)
{
	size_t end = c->n.n_nested + budget;
	struct crash_run run;

	record(&run, c->workload);
	for (size_t k = first_cut(c, &run) + 1 + c->workload % NESTED_STEP;
	     k <= sim_n_ops(run.sim); k += NESTED_STEP)
		for (int family = SIM_TORN_LAST; family <= SIM_RANDOM;
		     family++) {
			struct cut cut = { .k = k, .family = family };

			if (c->n.n_nested < end &&
			    c->n.n_failures < FAILURES_MAX &&
			    sim_n_variants(run.sim, k, (enum sim_family)family))
				check_nested(c, &run, &cut);
		}
	crash_run_release(&run);
}

/*
 * @budget: states of this workload.  They are spread evenly over all its points,
 * in steps that come by each cut once.
 */
static void run_workload(struct checker *c, size_t budget)
{
	size_t end = c->n.n_states + budget, step, at;
	struct cuts cuts = { 0 };
	struct crash_run run;

	record(&run, c->workload);
	for (size_t k = first_cut(c, &run); k <= sim_n_ops(run.sim); k++)
		for (int family = 0; family < SIM_N_FAMILIES; family++)
			add_cuts(&cuts, &run, k, family);
	step = step_through(cuts.n);
	at = c->workload % cuts.n;
	for (size_t i = 0; i < cuts.n && c->n.n_states < end &&
			   c->n.n_failures < FAILURES_MAX;
	     i++) {
		check_state(c, &run, &cuts.items[at]);
		at = (at + step) % cuts.n;
	}
	free(cuts.items);
	crash_run_release(&run);
	if (c->workload % NESTED_WORKLOADS == 0)
		check_recoveries(c, budget * NESTED_WORKLOADS / NESTED_PART);
}

static int replay(const char *text)
{
	struct checker c = { .repairs_all = true };
	struct cut cut = { 0 };
	struct crash_run run;
	struct sim *state;
	int n = sscanf(text, "%zu:%zu:%d:%zu:%zu:%d", &c.workload, &cut.k,
		       &cut.family, &cut.x, &cut.nested_k, &cut.nested_family);

	if (n != 4 && n != 6) {
		fprintf(stderr,
			"INCR_CRASH is workload:point:family:variant, and :point:family in the recovery\n");
		return 2;
	}
	cut.is_nested = n == 6;
	record(&run, c.workload);
	if (cut.k > sim_n_ops(run.sim)) {
		fprintf(stderr, "INCR_CRASH: there are %zu points\n",
			sim_n_ops(run.sim));
		crash_run_release(&run);
		return 2;
	}
	state = crash(run.sim, cut.k, cut.family, cut.x);
	if (state && sim_export(state, "crash-state") == 0)
		printf("the state is in crash-state/\n");
	sim_free(state);
	crash_run_release(&run);
	record(&run, c.workload);
	if (cut.is_nested)
		check_nested(&c, &run, &cut);
	else
		check_state(&c, &run, &cut);
	crash_run_release(&run);
	store_text_release(&c.found);
	printf("%zu bad\n", c.n.n_failures);
	return c.n.n_failures != 0;
}

static size_t n_states_wanted(void)
{
	const char *limit = getenv("INCR_CRASH_STATES");

	return limit ? strtoul(limit, NULL, 10) : STATES_DEFAULT;
}

/* One process, with its share of those whose recoveries are cut short. */
static void run_share(size_t share, void *result)
{
	struct checker c = { 0 };
	size_t total = n_short() + N_LONG;
	size_t n_states = n_states_wanted() / N_PROCESSES + 1;

	for (size_t i = 0; i < total && c.n.n_failures < FAILURES_MAX; i++) {
		size_t left =
			n_states > c.n.n_states ? n_states - c.n.n_states : 0;

		if ((i + i / NESTED_WORKLOADS) % N_PROCESSES != share)
			continue;
		c.workload = i;
		/* what one has too few points for is left to the others */
		run_workload(&c, left / ((total - i - 1) / N_PROCESSES + 1));
	}
	store_text_release(&c.found);
	*(struct counts *)result = c.n;
}

static void add_counts(void *sum, const void *result)
{
	const struct counts *n = result;
	struct counts *to = sum;

	to->n_states += n->n_states;
	to->n_nested += n->n_nested;
	to->n_failures += n->n_failures;
}

int main(void)
{
	const struct shares shares = { N_PROCESSES, sizeof(struct counts),
				       run_share, add_counts };
	const char *one = getenv("INCR_CRASH");
	struct counts sum = { 0 };
	bool is_bad;

	/* what is freed is asked for again at once */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (one)
		return replay(one);
	is_bad = !shares_run(&shares, &sum) || sum.n_failures;
	printf("%zu crash states, %zu of them inside a recovery, %zu bad\n",
	       sum.n_states, sum.n_nested, sum.n_failures);
	printf("%d passed, %d failed\n", !is_bad, is_bad);
	return is_bad;
}
