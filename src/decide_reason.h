/*
 * Lists of reasons and of warnings while a decision is being made.
 */
#ifndef INCR_DECIDE_REASON_H
#define INCR_DECIDE_REASON_H

#include "decide.h"

struct reason_list {
	size_t n, capacity;
	struct incr_reason *items; /* owned */
};

struct warning_list {
	size_t n;
	char **items; /* owned */
};

/* What a reason is about; zero and NULL where it has none. All borrowed. */
struct reason_facts {
	enum incr_reason_code code;
	const char *alias, *dataset;
	uint64_t txn, count;
	const char *path;
	size_t path_length;
};

/* 0 or INCR_E_NOMEM. */
int reason_add(struct reason_list *list, const struct reason_facts *facts,
	       const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Move all of @tail behind @list. */
int reason_join(struct reason_list *list, struct reason_list *tail);
void reason_list_release(struct reason_list *list);
void reason_release(struct incr_reason *reason);

int warning_add(struct warning_list *list, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void warning_list_release(struct warning_list *list);

/* The two halves of decide(), each in its own file. */
/* first-build, output-*, provenance-inconsistent */
int decide_outputs(const struct decide_facts *facts, struct reason_list *list);
/* No history, but for retention that may be passed over (R74, R77)? */
bool decide_is_unbuilt(const struct decide_facts *facts,
		       const struct decide_output *out);
bool decide_all_unbuilt(const struct decide_facts *facts);
bool decide_any_unbuilt(const struct decide_facts *facts);
/* @is_cured: a new output view starts anyway, so where Pend lies is no matter. */
int decide_inputs_hard(const struct decide_facts *facts, bool is_cured,
		       struct reason_list *list);
/* input-* */
int decide_inputs(const struct decide_facts *facts, struct reason_list *list);

#endif
