/*
 * A dataset at a point, and ranges.
 */
#include "config.h"

#include "point.h"

#include "cleanup.h"
#include "fail.h"
#include "text.h"

#include <string.h>

int point_parse(const char *text, struct point *out_point,
		struct incr_error *err)
{
	struct point point = { 0 };

	if (text_parse_id(text, 't', &point.txn))
		point.kind = POINT_TXN;
	else if (text_parse_time(text, &point.time_ns))
		point.kind = POINT_TIME;
	else
		return fail_usage(err, text,
				  "a point is a transaction such as t42, or a "
				  "time such as 2026-01-05T12:00:00Z");
	*out_point = point;
	return 0;
}

int dataset_point_parse(const char *text, struct dataset_point *out,
			struct incr_error *err)
{
	const char *at = strrchr(text, '@'), *colon;
	struct dataset_point p = { 0 };
	size_t length = at ? (size_t)(at - text) : strlen(text);
	int r;

	if (at) {
		r = point_parse(at + 1, &p.point, err);
		if (r < 0)
			return r;
	}
	colon = memrchr(text, ':', length);
	if (colon) {
		p.branch =
			strndup(colon + 1, length - 1 - (size_t)(colon - text));
		length = (size_t)(colon - text);
	}
	p.dataset = strndup(text, length);
	if (!p.dataset || (colon && !p.branch)) {
		dataset_point_release(&p);
		return fail_nomem(err);
	}
	if (!*p.dataset || (p.branch && !*p.branch)) {
		dataset_point_release(&p);
		return fail_usage(err, text,
				  "a dataset is NAME[:BRANCH][@POINT]");
	}
	*out = p;
	return 0;
}

void dataset_point_release(struct dataset_point *p)
{
	free(p->dataset);
	free(p->branch);
	*p = (struct dataset_point){ 0 };
}

static int parse_end(const char *text, size_t length, struct point *out_point,
		     struct incr_error *err)
{
	_cleanup_free_ char *copy = NULL;

	if (length == 0) {
		*out_point = (struct point){ 0 };
		return 0;
	}
	copy = strndup(text, length);
	if (!copy)
		return fail_nomem(err);
	return point_parse(copy, out_point, err);
}

int point_range_parse(const char *text, struct point_range *out_range,
		      struct incr_error *err)
{
	const char *dots = strstr(text, "..");
	struct point_range range;
	int r;

	if (!dots)
		return fail_usage(err, text,
				  "a range is FROM..TO, such as t3..t7");
	r = parse_end(text, (size_t)(dots - text), &range.from, err);
	if (r < 0)
		return r;
	r = parse_end(dots + 2, strlen(dots + 2), &range.to, err);
	if (r < 0)
		return r;
	*out_range = range;
	return 0;
}
