/*
 * Transactions and files that cannot be read: giving them up.
 *
 * What verify finds of them goes into the log as records of type FACT_LOST.
 * That changes nothing about reading: a damaged file stays an error, and one
 * whose bytes come back from a copy can be read again.  It says that somebody
 * knows, so that verify finds no fault with the rest.
 *
 * Packs that killed processes left are known when all has been verified, so
 * they are removed here too.
 */
#include "config.h"

#include "repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define FACT_SIZE_ENOUGH ((size_t)1 << 20) /* then another record begins */

struct pack_left {
	char path[PACK_PATH_SIZE];
	uint64_t size;
};

struct note {
	struct repair *p;
	struct pack_left *packs; /* owned: that no record names */
	size_t n_packs;
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
	free(n->packs);
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

/* Everything else that is left over was dealt with under the append lock. */
static int add_left(struct note *n, const struct incr_finding *f)
{
	struct pack_left *grown;

	if (strncmp(f->file, "packs/", strlen("packs/")) != 0)
		return 0;
	grown = reallocarray(n->packs, n->n_packs + 1, sizeof(*grown));
	if (!grown)
		return incr_fail_nomem(n->p->err);
	n->packs = grown;
	grown[n->n_packs].size = f->size;
	(void)snprintf(grown[n->n_packs].path, sizeof(grown->path), "%s",
		       f->file);
	n->n_packs++;
	return 0;
}

static int note_finding(void *closure, const struct incr_finding *finding)
{
	struct note *n = closure;
	struct incr_finding f = *finding;
	int r;

	if (f.is_left_over)
		return add_left(n, &f);
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

/* Bytes of the log that stand in lost/ may name a pack; they might be put back. */
static int note_log_bytes(void *closure, const char *name, enum io_kind kind)
{
	bool *has_log_bytes = closure;

	(void)kind;
	if (!strncmp(name, "torn-", strlen("torn-")) ||
	    !strncmp(name, "damaged-", strlen("damaged-")))
		*has_log_bytes = true;
	return 0;
}

static int look_into_lost(struct repair *p, bool *out_has_log_bytes)
{
	const struct incr_io *io = p->st->io;
	_cleanup_io_file_ struct io_file dir = { io, -1 };
	int r;

	*out_has_log_bytes = false;
	dir.fd = io->open_at(io, p->st->dirfd, "lost", O_RDONLY | O_DIRECTORY,
			     0);
	if (dir.fd == -ENOENT)
		return 0;
	r = dir.fd < 0 ?
		    dir.fd :
		    io->readdir(io, dir.fd, note_log_bytes, out_has_log_bytes);
	return r < 0 ? incr_fail_errno(p->err, r, "lost",
				       "cannot list the directory") :
		       0;
}

static int remove_packs(struct note *n)
{
	bool stay = false;
	int r = n->n_packs ? look_into_lost(n->p, &stay) : 0;

	for (size_t i = 0; r == 0 && i < n->n_packs; i++) {
		const struct pack_left *pack = &n->packs[i];
		struct incr_finding f = {
			.word = "left-over",
			.file = pack->path,
			.message =
				"it stays while lost/ holds bytes of the log, "
				"which may name it",
			.is_left_over = true,
			.size = pack->size,
		};

		r = stay ? repair_tell_finding(n->p, &f) :
			   repair_remove_file(n->p, pack->path, pack->size);
	}
	return r;
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
	if (r == 0)
		r = remove_packs(&n);
	note_release(&n);
	return r;
}
