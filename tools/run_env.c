/*
 * What a command is told.
 */
#include "config.h"

#include "run_env.h"

#include "cleanup.h"
#include "fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct teller {
	const char *top;
	struct placeholders *placeholders;
	struct incr_error *err;
};

static int set(struct teller *t, const char *name, const char *value)
{
	return setenv(name, value, 1) == 0 ? 0 : fail_nomem(t->err);
}

/* INCR_<WHAT>_<ALIAS>: upper-cased, what is no letter or digit as '_'. */
static int set_of_alias(struct teller *t, const char *what, const char *alias,
			const char *value)
{
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "INCR_%s_%s", what, alias) < 0) {
		name = NULL;
		return fail_nomem(t->err);
	}
	for (char *at = name; *at; at++) {
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
		else if (!(*at >= 'A' && *at <= 'Z') &&
			 !(*at >= '0' && *at <= '9'))
			*at = '_';
	}
	return set(t, name, value);
}

/* One directory of an alias: {ALIAS.VIEW}, and a variable if it has one. */
static int tell(struct teller *t, const char *alias, const char *view,
		const char *variable)
{
	_cleanup_free_ char *path = NULL, *name = NULL;

	if (asprintf(&path, "%s/%s/%s", t->top, alias, view) < 0) {
		path = NULL;
		return fail_nomem(t->err);
	}
	if (asprintf(&name, "%s.%s", alias, view) < 0) {
		name = NULL;
		return fail_nomem(t->err);
	}
	if (!placeholders_add(t->placeholders, name, path))
		return fail_nomem(t->err);
	return variable ? set_of_alias(t, variable, alias, path) : 0;
}

static int tell_input(struct teller *t, const char *alias)
{
	static const char *const variables[INCR_N_VIEW_KINDS] = {
		[INCR_VIEW_ADDED] = "ADDED",
		[INCR_VIEW_PREVIOUS] = "PREVIOUS",
		[INCR_VIEW_CURRENT] = "CURRENT",
	};
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", t->top, alias) < 0) {
		path = NULL;
		return fail_nomem(t->err);
	}
	r = set_of_alias(t, "IN", alias, path);
	for (size_t i = 0; r == 0 && i < INCR_N_VIEW_KINDS; i++)
		r = tell(t, alias, incr_view_kind_name((enum incr_view_kind)i),
			 variables[i]);
	return r;
}

static int tell_output(struct teller *t, const char *alias)
{
	int r = tell(t, alias, "staging", "OUT");

	if (r == 0)
		r = tell(t, alias, "added", NULL);
	if (r == 0)
		r = tell(t, alias, "previous", "PREVIOUS");
	if (r == 0)
		r = tell(t, alias, "current", "CURRENT");
	return r;
}

static int tell_reasons(struct teller *t, const struct incr_plan *plan)
{
	_cleanup_free_ char *codes = strdup("");

	for (size_t i = 0; codes && i < plan->n_reasons; i++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", codes, i > 0 ? " " : "",
			     incr_reason_name(plan->reasons[i].code)) < 0)
			return fail_nomem(t->err);
		free(codes);
		codes = longer;
	}
	return codes ? set(t, "INCR_REASONS", codes) : fail_nomem(t->err);
}

static int tell_build(struct teller *t, const struct incr_plan *plan,
		      uint64_t number)
{
	const char *name = plan->transform.name;
	char build[32];
	int r;

	(void)snprintf(build, sizeof(build), "b%" PRIu64, number);
	r = set(t, "INCR_BUILD", build);
	if (r == 0)
		r = set(t, "INCR_TRANSFORM", name);
	if (r == 0)
		r = set(t, "INCR_MOUNT", t->top);
	if (r == 0)
		r = set(t, "INCR_IS_INCREMENTAL",
			plan->is_incremental ? "1" : "0");
	if (r == 0)
		r = tell_reasons(t, plan);
	if (r == 0 && (!placeholders_add(t->placeholders, "build", build) ||
		       !placeholders_add(t->placeholders, "transform", name) ||
		       !placeholders_add(t->placeholders, "mount", t->top)))
		r = fail_nomem(t->err);
	return r;
}

int run_env_set(const struct incr_plan *plan, uint64_t number, const char *top,
		struct placeholders *placeholders, struct incr_error *err)
{
	struct teller t = {
		.top = top,
		.placeholders = placeholders,
		.err = err,
	};
	int r = tell_build(&t, plan, number);

	for (size_t i = 0; r == 0 && i < plan->n_inputs; i++)
		r = tell_input(&t, plan->inputs[i].alias);
	for (size_t i = 0; r == 0 && i < plan->n_outputs; i++)
		r = tell_output(&t, plan->outputs[i].alias);
	return r;
}
