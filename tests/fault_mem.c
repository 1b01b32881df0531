/*
 * Every request for memory of every workload is refused, once and for good,
 * and so is every thread.  After each: no crash, no leak of memory or
 * descriptors; the step succeeds all the same or fails with "out of memory";
 * the handle does its next commit or says that it is dead; the store opens,
 * verify finds nothing, what was acknowledged is there.
 *
 * A failure prints INCR_FAULT=workload:request:for-good; set to that, the
 * program runs the one case.  INCR_FAULT_PART=n: every n-th request only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_alloc.h"
#include "fault_kit.h"

#define FAILURES_MAX 10

struct sweep {
	struct sim *base;
	const struct fault_workload *workload;
	struct fault_run clean;
	size_t n_refused, n_invisible, n_failures;
};

static int start(struct sweep *s, struct fault_run *run, struct fault_table *t)
{
	const struct fault_workload *w = s->workload;

	fault_run_init(run, w, s->base);
	fault_table_init(t,
			 run->io); /* so that the simulation does not count */
	t->enter = fault_alloc_pause;
	t->leave = fault_alloc_resume;
	run->io = &t->io;
	run->n_acks = 1; /* what was there before */
	fault_alloc = (struct fault_alloc){ 0 };
	fault_alloc_start();
	if (w->start != FAULT_IS_OPEN)
		return 0;
	return store_open_with(run->io, FAULT_STORE, NULL, &run->st, &run->err);
}

static const char *judge(struct sweep *s, struct fault_run *run, int r)
{
	if (r < 0 && (enum incr_err)r != run->err.code)
		return "the code and the error differ";
	/* EAGAIN: a thread was refused */
	if (r < 0 && r != INCR_E_NOMEM && r != INCR_E_DEAD &&
	    run->err.sys_errno != EAGAIN)
		return "the error is not that memory is short";
	if (r == 0 && run->n_acks != s->clean.n_acks)
		return "success without having done everything";
	return NULL;
}

static const char *judge_handle(struct fault_run *run, bool *out_has_after)
{
	struct incr_error err = INCR_ERROR_INIT;
	int r = fault_commit_after(run->st, &err);
	const char *wrong = NULL;

	*out_has_after = r == 0;
	if (r < 0 && r != INCR_E_DEAD && r != INCR_E_READONLY) {
		wrong = "the handle neither works nor says that it is dead";
		printf("  then %d: %s: %s %s\n", r, err.word, err.message,
		       err.thing);
	}
	incr_error_release(&err);
	return wrong;
}

static const char *run_one(struct sweep *s, struct fault_run *run, long at,
			   bool for_good)
{
	const char *wrong, *then = NULL, *leak;
	struct fault_table t;
	bool has_after = false;
	int r = start(s, run, &t);

	if (r < 0)
		abort();
	fault_alloc.n_calls = 0;
	fault_alloc.fails_for_good = for_good;
	fault_alloc.fail_at = at;
	r = s->workload->run(run);
	fault_alloc.fail_at = 0;
	wrong = judge(s, run, r);
	if (run->st)
		then = judge_handle(run, &has_after);
	if (r == 0 && run->st && s->workload->may_store_more) {
		(void)store_text_fill(run->st, STORE_TEXT_ALL_VIEWS,
				      &run->acks[run->n_acks - 1]);
		fault_alloc.n_live--; /* the text itself stays */
	}
	leak = fault_close(run);
	if (!wrong)
		wrong = then ? then : leak;
	if (!wrong)
		wrong = fault_check(run->sim, &s->clean, run, r < 0, has_after);
	if (fault_alloc.n_failed && r == 0)
		s->n_invisible++;
	return wrong;
}

/* False: no request of this number is made any more. */
static bool check_one(struct sweep *s, long at, bool for_good)
{
	struct fault_run run;
	const char *wrong = run_one(s, &run, at, for_good);
	bool has_hit = fault_alloc.n_failed > 0;

	if (has_hit)
		s->n_refused++;
	if (wrong) {
		s->n_failures++;
		printf("FAILED %s\n  INCR_FAULT=%s:%ld:%d; %s: %s %s\n", wrong,
		       s->workload->name, at, for_good, run.err.word,
		       run.err.message, run.err.thing);
	}
	fault_run_release(&run);
	return has_hit;
}

static void sweep(struct sweep *s, long part)
{
	long at = 1;

	fault_run_clean(s->workload, s->base, &s->clean);
	while (s->n_failures < FAILURES_MAX && check_one(s, at, false)) {
		(void)check_one(s, at, true);
		at += part;
	}
	fault_run_release(&s->clean);
}

static int replay(struct sweep *s, const char *text)
{
	char workload[32];
	int for_good;
	long at;

	if (sscanf(text, "%31[^:]:%ld:%d", workload, &at, &for_good) != 3)
		return 2;
	for (s->workload = fault_workloads; s->workload->name; s->workload++)
		if (!strcmp(s->workload->name, workload)) {
			fault_run_clean(s->workload, s->base, &s->clean);
			(void)check_one(s, at, for_good);
			fault_run_release(&s->clean);
			return s->n_failures != 0;
		}
	return 2;
}

int main(void)
{
	const char *one = getenv("INCR_FAULT"),
		   *part = getenv("INCR_FAULT_PART");
	struct sweep s = { .base = fault_base() };
	unsigned n_passed = 0, n_failed = 0;
	int r = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (one) {
		r = replay(&s, one);
		sim_free(s.base);
		return r;
	}
	for (s.workload = fault_workloads; s.workload->name; s.workload++) {
		size_t refused = s.n_refused;

		sweep(&s, part && atol(part) > 0 ? atol(part) : 1);
		printf("%s: %zu refused\n", s.workload->name,
		       s.n_refused - refused);
		if (s.n_failures == 0)
			n_passed++;
		else
			n_failed++;
		s.n_failures = 0;
	}
	printf("%zu requests for memory refused, %zu of them did not matter\n",
	       s.n_refused, s.n_invisible);
	sim_free(s.base);
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
