/*
 * Transactions and files that cannot be read: giving them up.
 *
 * What verify finds of them goes into the log as records of type FACT_LOST.
 * That changes nothing about reading: a damaged file stays an error, and one
 * whose bytes come back from a copy can be read again.  It says that somebody
 * knows, so that verify finds no fault with the rest.
 */
#include "config.h"

#include "repair.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

#define FACT_SIZE_ENOUGH ((size_t)1 << 20) /* then another record begins */

struct note {
	struct repair *p;
	struct fact_lost fact; /* owns its arrays, and the paths */
	size_t size; /* of paths */
	struct fact_lost *full; /* owned: facts to be written, oldest first */
	size_t n_full;
};

static void fact_release(struct fact_lost *fact)
{
	for (size_t i = 0; i < fact->n_files; i++)
		free((char *)fact->files[i].path.data);
	fact_lost_release(fact);
}

static void note_release(struct note *n)
{
	fact_release(&n->fact);
	for (size_t i = 0; i < n->n_full; i++)
		fact_release(&n->full[i]);
	free(n->full);
}

/* Begin another fact. */
static int turn(struct note *n)
{
	struct fact_lost *grown =
		reallocarray(n->full, n->n_full + 1, sizeof(*grown));

	if (!grown)
		return INCR_E_NOMEM;
	n->full = grown;
	grown[n->n_full++] = n->fact;
	n->fact = (struct fact_lost){ 0 };
	n->size = 0;
	return 0;
}

static int add_file(struct note *n, const struct incr_finding *f)
{
	struct fact_lost *fact = &n->fact;
	struct lost_file *grown =
		reallocarray(fact->files, fact->n_files + 1, sizeof(*grown));
	struct text path = { f->path, f->path_length };

	if (!grown)
		return INCR_E_NOMEM;
	fact->files = grown;
	path.data = text_dup(path);
	if (!path.data)
		return INCR_E_NOMEM;
	grown[fact->n_files++] = (struct lost_file){ f->txn, path };
	n->size += path.size;
	return n->size < FACT_SIZE_ENOUGH ? 0 : turn(n);
}

static int add_manifest(struct note *n, const struct incr_finding *f)
{
	struct fact_lost *fact = &n->fact;
	uint64_t *grown = reallocarray(fact->manifests, fact->n_manifests + 1,
				       sizeof(*grown));

	if (!grown)
		return INCR_E_NOMEM;
	fact->manifests = grown;
	grown[fact->n_manifests++] = f->txn;
	return 0;
}

/* Damage of the log, and facts that contradict each other, are not for this file. */
static bool is_of_content(const struct incr_finding *f)
{
	static const char *const words[] = {
		"damaged-frame",    "damaged-pack", "missing-pack",
		"damaged-manifest", "wrong-hash",   "wrong-size"
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(f->word, words[i]))
			return f->txn != 0;
	return false;
}

static int note_finding(void *closure, const struct incr_finding *finding)
{
	struct note *n = closure;
	struct incr_finding f = *finding;
	int r;

	if (f.is_given_up)
		return 0; /* by an earlier repair */
	if (n->p->st->is_damaged || !is_of_content(&f)) {
		n->p->result->n_left++;
		return repair_tell_finding(n->p, &f);
	}
	r = f.path ? add_file(n, &f) : add_manifest(n, &f);
	if (r < 0)
		return incr_fail_nomem(n->p->err);
	f.is_given_up = true;
	return repair_tell_finding(n->p, &f);
}

static int append(struct repair *p, struct fact_lost *fact)
{
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct lock lock;
	int r = store_begin_append(p->st, &lock, p->err);

	if (r < 0)
		return r;
	fact->time_ns = store_now(p->st);
	fact->next = store_next_numbers(p->st);
	r = fact_encode_lost(fact, &payload);
	if (r < 0)
		r = incr_fail_nomem(p->err);
	else
		r = store_append(p->st, FACT_LOST, &payload, NULL, p->err);
	return store_end_append(p->st, &lock, r, p->err);
}

int repair_note(struct repair *p)
{
	struct incr_verify_options verify = {
		.reads_data = true,
		.progress = p->options->progress,
		.progress_closure = p->options->progress_closure,
	};
	struct incr_verify_result result;
	struct note n = { .p = p };
	int r = incr_verify(p->st, &verify, note_finding, &n, &result, p->err);

	if (r == 0 && (n.fact.n_files || n.fact.n_manifests) && turn(&n) < 0)
		r = incr_fail_nomem(p->err);
	for (size_t i = 0; r == 0 && !p->options->is_dry_run && i < n.n_full;
	     i++)
		r = append(p, &n.full[i]);
	note_release(&n);
	return r;
}
