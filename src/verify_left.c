/*
 * Packs that no record names are known when all manifests have been read, so
 * they are listed before the walk, and those that it meets are taken out.
 * Where something is damaged, or was given up, it may have named any pack; a
 * copy of it may turn up, so then no pack is said to be no one's.
 */
#include "config.h"

#include "verify_left.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

static int add_file(void *closure, enum leftover_kind kind, const char *path,
		    uint64_t size)
{
	struct verify_left *left = closure;
	struct left_file *grown =
		reallocarray(left->files, left->n_files + 1, sizeof(*grown));

	(void)kind;
	if (!grown)
		return incr_fail_nomem(left->err);
	left->files = grown;
	grown[left->n_files].path = strdup(path);
	if (!grown[left->n_files].path)
		return incr_fail_nomem(left->err);
	grown[left->n_files++].size = size;
	return 0;
}

static void files_release(struct verify_left *left)
{
	for (size_t i = 0; i < left->n_files; i++)
		free(left->files[i].path);
	free(left->files);
	left->files = NULL;
	left->n_files = 0;
}

int verify_left_init(struct verify_left *left, struct incr_store *st,
		     struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	int r;

	*left = (struct verify_left){ .st = st, .err = err };
	/* of a log that is damaged, too little is known */
	if (st->is_damaged || st->is_broken)
		return 0;
	r = leftover_each(st, add_file, left, &why);
	if (r == 0)
		r = leftover_packs_list(&left->packs, st, &why);
	if (r == 0)
		r = state_has_losses(st->index, &why);
	if (r == INCR_E_NOMEM) {
		verify_left_release(left);
		return incr_fail_with(err, r, &why);
	}
	/* what is damaged, the walk says */
	incr_error_release(&why);
	if (r != 0)
		left->is_unsure = true;
	if (r < 0)
		files_release(left);
	return 0;
}

void verify_left_release(struct verify_left *left)
{
	files_release(left);
	leftover_packs_release(&left->packs);
}

void verify_left_name(struct verify_left *left, const struct content *place)
{
	leftover_packs_name(&left->packs, place);
}

void verify_left_doubt(struct verify_left *left)
{
	left->is_unsure = true;
}

struct telling {
	verify_left_fn fn;
	void *closure;
};

static int tell_pack(void *closure, enum leftover_kind kind, const char *path,
		     uint64_t size)
{
	const struct telling *t = closure;

	(void)kind;
	return t->fn(t->closure, path, size);
}

int verify_left_report(struct verify_left *left, bool is_whole,
		       verify_left_fn fn, void *closure)
{
	struct telling t = { fn, closure };
	int r = 0;

	for (size_t i = 0; r == 0 && i < left->n_files; i++)
		r = fn(closure, left->files[i].path, left->files[i].size);
	if (r || !is_whole || left->is_unsure)
		return r;
	return leftover_packs_each(&left->packs, left->st, tell_pack, &t,
				   left->err);
}
