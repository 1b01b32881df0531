/*
 * Builds and transforms as the log knows them.
 */
#include "config.h"

#include "build.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

/* What is not in the record: has it an owner, and why did it not commit? */
static void add_state(struct incr_store *st, struct incr_build_info *info)
{
	struct staging staging;

	if (info->status != INCR_BUILD_OPEN)
		return;
	info->is_orphaned =
		!lock_is_held(st->io, st->dirfd, LOCK_BUILD(info->number));
	staging_of_build(st->io, st->dirfd, info->number, &staging);
	(void)staging_read_result(&staging,
				  &info->error); /* 1: there is none */
}

int incr_build_find(struct incr_store *st, uint64_t number,
		    struct incr_build_info *out_info, struct incr_error *err)
{
	int r = build_load(st, number, out_info, err);

	if (r == 0)
		add_state(st, out_info);
	return r;
}

static struct state_key prefix_of(const char *transform)
{
	struct state_key k;

	if (!transform) {
		state_key_start(&k, STATE_BUILD);
		return k;
	}
	state_key_start(&k, STATE_TRANSFORM);
	state_key_bytes(&k, transform, strlen(transform) + 1);
	return k;
}

/* Does the entry's key begin with @k? */
static bool is_below(const struct iter *it, const struct state_key *k)
{
	return it->entry.key_size >= k->size &&
	       memcmp(it->entry.key, k->bytes, k->size) == 0;
}

/* Both kinds of key end in the number's complement, so the newest comes first. */
static uint64_t number_at(const struct iter *it, const struct state_key *k)
{
	return it->entry.key_size == k->size + 8 ?
		       ~get_be64(it->entry.key + k->size) :
		       0;
}

int incr_build_list(struct incr_store *st, const char *transform,
		    incr_build_fn fn, void *closure, struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key k = prefix_of(transform);
	int r = index_iter(st->index, &it, err);

	if (r == 0)
		r = it->seek(it, k.bytes, k.size, err);
	for (; r == 0 && is_below(it, &k); r = it->next(it, err)) {
		struct incr_build_info info = { 0 };

		r = incr_build_find(st, number_at(it, &k), &info, err);
		if (r < 0)
			return r;
		r = fn(closure, &info);
		incr_build_info_release(&info);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

int incr_transform_list(struct incr_store *st, incr_name_fn fn, void *closure,
			struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key kind, k;
	int r = index_iter(st->index, &it, err);

	state_key_start(&kind, STATE_TRANSFORM);
	k = kind;
	if (r == 0)
		r = it->seek(it, k.bytes, k.size, err);
	while (r == 0 && is_below(it, &kind)) {
		const char *at = (const char *)it->entry.key + kind.size;
		size_t length = strnlen(at, it->entry.key_size - kind.size);
		_cleanup_free_ char *name =
			text_dup((struct text){ at, length });

		if (!name)
			return incr_fail_nomem(err);
		r = fn(closure, name);
		if (r)
			return r;
		/* Behind all builds of this one. */
		k = kind;
		state_key_bytes(&k, name, length);
		state_key_bytes(&k, "\1", 1);
		r = it->seek(it, k.bytes, k.size, err);
	}
	return r < 0 ? r : 0;
}

/* Newest committed build: its number, 0 for none; *out_exists: any build at all. */
static int find_committed(struct incr_store *st, const char *transform,
			  uint64_t *out_build, bool *out_exists,
			  struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct state_key k = prefix_of(transform);
	int r = index_iter(st->index, &it, err);

	*out_build = 0;
	*out_exists = false;
	if (r == 0)
		r = it->seek(it, k.bytes, k.size, err);
	for (; r == 0 && is_below(it, &k); r = it->next(it, err)) {
		*out_exists = true;
		if (it->entry.value_size == 1 &&
		    it->entry.value[0] == INCR_BUILD_COMMITTED) {
			*out_build = number_at(it, &k);
			return 0;
		}
	}
	return r < 0 ? r : 0;
}

int build_find_recorded(struct incr_store *st, const char *transform,
			struct incr_transform *out, struct incr_error *err)
{
	struct incr_build_info info = { 0 };
	uint64_t build;
	bool exists;
	int r = find_committed(st, transform, &build, &exists, err);

	if (r < 0)
		return r;
	if (!exists)
		return incr_fail(err, INCR_E_NOTFOUND, "no-such-transform",
				 transform,
				 "no build of this transform was recorded");
	if (!build)
		return 1;
	r = build_load(st, build, &info, err);
	if (r < 0)
		return r;
	*out = info.plan.transform;
	info.plan.transform = (struct incr_transform){ 0 };
	incr_build_info_release(&info);
	return 0;
}

int incr_transform_recorded(struct incr_store *st, const char *name,
			    struct incr_transform *out, struct incr_error *err)
{
	int r = build_find_recorded(st, name, out, err);

	return r == 1 ? incr_fail(err, INCR_E_NOTFOUND, "no-such-transform",
				  name,
				  "no build of this transform was committed") :
			r;
}
