/*
 * Every call to the operating system of every workload fails, in each way and
 * for each time, and after each:
 *
 *   - no crash, no leak of memory or descriptors;
 *   - the code says what happened: never "damaged", never "not found";
 *   - a short count makes no difference;
 *   - a failed sync is a failed step, and one of the log ends the handle;
 *   - the handle does its next commit, or says that it is dead;
 *   - after a power cut at once, and without one: the store opens, verify finds
 *     nothing, what was acknowledged is there, the rest whole or not at all.
 *
 * A failure prints INCR_FAULT=workload:call:errno:mode; set to that, the
 * program runs the one case.  Interrupted calls are test_io_interrupted's: no
 * table returns EINTR.  Each error once is always tried; of the other cases every
 * INCR_FAULT_PART-th one (5).
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_alloc.h"
#include "fault_kit.h"

#define FAILURES_MAX 10

static const struct {
	int number;
	const char *name;
} errnos[] = {
	{ EIO, "EIO" },	    { ENOSPC, "ENOSPC" }, { EDQUOT, "EDQUOT" },
	{ EROFS, "EROFS" }, { EMFILE, "EMFILE" }, { FAULT_SHORT, "short" },
};
#define N_ERRNOS (sizeof(errnos) / sizeof(errnos[0]))

struct sweep {
	struct sim *base;
	const struct fault_workload *workload;
	struct fault_run clean;
	size_t part; /* every so many-th case */
	size_t n_cases, n_injected, n_failures;
	size_t n_by_call[FAULT_N_CALLS];
	size_t n_syncs,
		n_poisoned; /* failed syncs; of the log, and handle dead */
};

struct one {
	long at;
	size_t error; /* of errnos */
	enum fault_mode mode;
};

static bool is_invisible(const struct one *c)
{
	return errnos[c->error].number == FAULT_SHORT;
}

static bool is_sync(enum fault_call call)
{
	return call == FAULT_FSYNC || call == FAULT_FDATASYNC ||
	       call == FAULT_FSYNC_DIR;
}

/* Does the code say what happened? */
static bool is_sensible(const struct one *c, const struct incr_error *err)
{
	switch (err->code) {
	case INCR_E_DEAD:
		return true; /* later than the fault, that is told from */
	case INCR_E_IO:
		return err->sys_errno == errnos[c->error].number;
	case INCR_E_NOSPC:
		return errnos[c->error].number == ENOSPC ||
		       errnos[c->error].number == EDQUOT;
	case INCR_E_READONLY:
		return true; /* also: the lock file cannot be opened to write */
	default:
		return false;
	}
}

/* What is wrong with what the workload returned; NULL: nothing. */
static const char *judge_result(const struct one *c,
				const struct fault_table *t,
				const struct fault_run *run,
				const struct sweep *s, int r)
{
	if (r < 0 && is_invisible(c))
		return "a short count is an error";
	if (r < 0 && (enum incr_err)r != run->err.code)
		return "the code and the error differ";
	if (r < 0 && !is_sensible(c, &run->err))
		return "the code does not say what happened";
	if (r == 0 && run->n_acks != s->clean.n_acks)
		return "success without having done everything";
	if (r == 0 && t->n_failed && is_sync(t->hit) && !is_invisible(c))
		return "a failed sync is taken for a success";
	return NULL;
}

/* What the handle says after the fault is over. */
static const char *judge_handle(struct sweep *s, const struct one *c,
				const struct fault_table *t,
				struct fault_run *run, bool is_readonly,
				bool *out_has_after)
{
	struct incr_error err = INCR_ERROR_INIT;
	bool is_log = !strncmp(run->err.thing, "log", 3);
	const char *wrong = NULL;
	int r = fault_commit_after(run->st, &err);

	*out_has_after = r == 0;
	if (r < 0 &&
	    (is_invisible(c) ? !is_readonly : r != INCR_E_DEAD && !is_readonly))
		wrong = "the handle neither works nor says that it is dead";
	if (t->n_failed && is_sync(t->hit) && !is_invisible(c)) {
		s->n_syncs++;
		if (is_log && r == INCR_E_DEAD)
			s->n_poisoned++;
		else if (is_log && t->hit == FAULT_FDATASYNC)
			wrong = "the handle goes on after a failed sync";
	}
	if (wrong)
		printf("  then %d: %s: %s %s\n", r, err.word, err.message,
		       err.thing);
	incr_error_release(&err);
	return wrong;
}

/* After a power cut at the end, and as it is. */
static const char *judge_disk(const struct sweep *s, struct fault_run *run,
			      bool may_be_ahead, bool has_after)
{
	struct sim *cut = sim_crash(run->sim, sim_n_ops(run->sim), SIM_NONE, 0);
	const char *wrong =
		fault_check(cut, &s->clean, run, may_be_ahead, has_after);

	sim_free(cut);
	if (wrong) {
		printf("  after a power cut:\n");
		return wrong;
	}
	return fault_check(run->sim, &s->clean, run, may_be_ahead, has_after);
}

/* What the handle says now is what was acknowledged. */
static void note_more(struct sweep *s, struct fault_run *run, int r)
{
	if (r < 0 || !run->st || !s->workload->may_store_more)
		return;
	(void)store_text_fill(run->st, STORE_TEXT_ALL_VIEWS,
			      &run->acks[run->n_acks - 1]);
	fault_alloc.n_live--; /* the text itself stays */
}

static const char *run_one(struct sweep *s, const struct one *c,
			   struct fault_table *t, struct fault_run *run)
{
	const struct fault_workload *w = s->workload;
	const char *wrong, *then = NULL, *leak;
	bool has_after = false;
	int r = 0;

	fault_run_init(run, w, s->base);
	fault_table_init(t, run->io);
	t->enter = fault_alloc_pause;
	t->leave = fault_alloc_resume;
	run->io = &t->io;
	sim_start(run->sim);
	fault_alloc = (struct fault_alloc){ 0 };
	fault_alloc_start();
	run->n_acks = 1; /* what was there before */
	if (w->start == FAULT_IS_OPEN)
		r = store_open_with(run->io, FAULT_STORE, NULL, &run->st,
				    &run->err);
	if (r < 0)
		abort();
	t->n_calls = 0;
	t->fail_at = c->at;
	t->fail_errno = errnos[c->error].number;
	t->mode = c->mode;
	r = w->run(run);
	wrong = judge_result(c, t, run, s, r);
	t->fail_at = 0;
	note_more(s, run, r);
	if (run->st)
		then = judge_handle(s, c, t, run,
				    incr_store_is_readonly(run->st),
				    &has_after);
	leak = fault_close(run);
	if (!wrong)
		wrong = then ? then : leak;
	if (!wrong)
		wrong = judge_disk(s, run, r < 0, has_after);
	return wrong;
}

/* False: no call of this number is made any more. */
static bool check_one(struct sweep *s, const struct one *c)
{
	struct fault_table t;
	struct fault_run run;
	const char *wrong = run_one(s, c, &t, &run);
	bool is_over = t.n_failed == 0 &&
		       errnos[c->error].number != FAULT_SHORT;

	if (t.n_failed) {
		s->n_injected++;
		s->n_by_call[t.hit]++;
	}
	if (wrong) {
		s->n_failures++;
		printf("FAILED %s\n  INCR_FAULT=%s:%ld:%s:%d, a %s; %s: %s %s\n",
		       wrong, s->workload->name, c->at, errnos[c->error].name,
		       (int)c->mode,
		       t.n_failed ? fault_call_names[t.hit] : "nothing",
		       run.err.word, run.err.message, run.err.thing);
	}
	fault_run_release(&run);
	return !is_over;
}

static void sweep(struct sweep *s)
{
	struct one c = { .at = 1 };
	bool goes_on = true;

	fault_run_clean(s->workload, s->base, &s->clean);
	for (; goes_on && s->n_failures < FAILURES_MAX; c.at++)
		for (c.error = 0; c.error < N_ERRNOS; c.error++)
			for (int mode = 0; mode < FAULT_N_MODES; mode++) {
				c.mode = (enum fault_mode)mode;
				/* the first error of each call tells the end */
				if (mode && s->n_cases++ % s->part)
					continue;
				if (!check_one(s, &c) && c.error == 0)
					goes_on = false;
			}
	fault_run_release(&s->clean);
}

static int replay(struct sweep *s, const char *text)
{
	char workload[32], error[16];
	struct one c = { 0 };
	int mode;

	if (sscanf(text, "%31[^:]:%ld:%15[^:]:%d", workload, &c.at, error,
		   &mode) != 4)
		return 2;
	c.mode = (enum fault_mode)mode;
	while (c.error < N_ERRNOS && strcmp(errnos[c.error].name, error) != 0)
		c.error++;
	for (s->workload = fault_workloads; s->workload->name; s->workload++)
		if (!strcmp(s->workload->name, workload) &&
		    c.error < N_ERRNOS) {
			fault_run_clean(s->workload, s->base, &s->clean);
			(void)check_one(s, &c);
			fault_run_release(&s->clean);
			return s->n_failures != 0;
		}
	return 2;
}

int main(void)
{
	const char *one = getenv("INCR_FAULT"),
		   *part = getenv("INCR_FAULT_PART");
	struct sweep s = { .base = fault_base(), .part = 5 };
	unsigned n_passed = 0, n_failed = 0;
	int r = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (part && atol(part) > 0)
		s.part = (size_t)atol(part);
	if (one) {
		r = replay(&s, one);
		sim_free(s.base);
		return r;
	}
	for (s.workload = fault_workloads; s.workload->name; s.workload++) {
		size_t before = s.n_failures, injected = s.n_injected;

		sweep(&s);
		printf("%s: %zu faults\n", s.workload->name,
		       s.n_injected - injected);
		if (s.n_failures == before)
			n_passed++;
		else
			n_failed++;
		s.n_failures = 0;
	}
	for (int i = 0; i < FAULT_N_CALLS; i++)
		if (s.n_by_call[i])
			printf("%s %zu, ", fault_call_names[i], s.n_by_call[i]);
	printf("%zu faults injected; %zu failed syncs, %zu of them of the log: handle dead\n",
	       s.n_injected, s.n_syncs, s.n_poisoned);
	sim_free(s.base);
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
