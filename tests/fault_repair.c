/*
 * Random damage on many stores: verify names exactly what is lost, and repair
 * keeps everything else.
 *
 * What is lost is found out from an undamaged copy: the records whose bytes
 * have changed, and the files and manifests whose bytes cannot be had from the
 * damaged store at the places where the copy has them.  Verify must name
 * these and no others: transactions, files, and for records where they stand.
 * After repair the same must be all that is missing, no byte of the log is
 * gone, verify finds nothing, a commit works, and a repair that a power cut
 * ended can be done again.
 *
 * A failure prints INCR_REPAIR=seed; set to that, the program runs the one.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repair_damage.h"
#include "repair_world.h"
#include "testing.h"

#define N_STORES 500
#define N_CUT 40 /* of these, stores whose repair is cut short */

/* ---- what is lost ---- */

struct lost {
	bool records[WORLD_RECORDS_MAX];
	size_t size; /* of them */
	struct names places; /* where stretches of the log begin */
	struct names txns, files; /* files: and manifests */
	struct names may_txns, may_files; /* that need not be named */
};

static void lost_release(struct lost *l)
{
	names_release(&l->places);
	names_release(&l->txns);
	names_release(&l->files);
	names_release(&l->may_txns);
	names_release(&l->may_files);
}

static void find_lost_records(const struct world *w, struct sim *sim,
			      struct lost *l)
{
	size_t size, was_size;
	const uint8_t *now = sim_file(sim, WORLD_LOG, &size);
	const uint8_t *was = sim_file(w->sim, WORLD_LOG, &was_size);

	if (memcmp(now, was, LOG_SEGMENT_HEADER_SIZE) != 0)
		names_add(&l->places, "%d", 0);
	for (size_t i = 0; i < w->n_records; i++) {
		size_t off = w->records[i].off, span = w->records[i].span;

		l->records[i] = memcmp(now + off, was + off, span) != 0;
		if (!l->records[i])
			continue;
		l->size += span;
		if (i == 0 || !l->records[i - 1])
			names_add(&l->places, "%zu", off);
	}
}

/* The largest number that a whole record names. */
static uint64_t largest_named(const struct world *w, const struct lost *l)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < w->n_txns; i++)
		if (!l->records[w->txns[i].record] &&
		    w->txns[i].number > largest)
			largest = w->txns[i].number;
	for (size_t i = 0; i < w->n_records; i++)
		if (!l->records[i] && w->records[i].opened > largest)
			largest = w->records[i].opened;
	return largest;
}

static bool is_aborted(const struct world *w, const struct lost *l,
		       uint64_t number)
{
	for (size_t i = 0; i < w->n_records; i++)
		if (!l->records[i] && w->records[i].aborted == number)
			return true;
	return false;
}

/* @knows: the index tells of all committed ones. */
static void find_lost_txns(const struct world *w, bool knows, struct lost *l)
{
	uint64_t largest = largest_named(w, l);

	for (size_t i = 0; i < w->n_txns; i++) {
		uint64_t number = w->txns[i].number;

		if (l->records[w->txns[i].record])
			names_add(knows || number < largest ? &l->txns :
							      &l->may_txns,
				  "t%" PRIu64, number);
	}
	for (size_t i = 0; i < w->n_records; i++) {
		uint64_t number = w->records[i].opened;

		if (number && l->records[i] && !is_aborted(w, l, number))
			names_add(number < largest ? &l->txns : &l->may_txns,
				  "t%" PRIu64, number);
	}
}

static const struct world_txn *txn_of(const struct world *w, uint64_t number)
{
	for (size_t i = 0; i < w->n_txns; i++)
		if (w->txns[i].number == number)
			return &w->txns[i];
	abort();
}

static void find_lost_files(const struct world *w, struct incr_store *st,
			    struct lost *l)
{
	char manifest[64];

	for (size_t i = 0; i < w->n_txns; i++) {
		const struct world_txn *t = &w->txns[i];

		if (!l->records[t->record] && t->has_pack &&
		    world_read(st, &t->manifest, t->manifest_hash))
			names_add(&l->files, "t%" PRIu64 " manifest",
				  t->number);
	}
	for (size_t i = 0; i < w->n_files; i++) {
		const struct world_file *f = &w->files[i];

		if (l->records[txn_of(w, f->txn)->record] ||
		    !world_read(st, &f->content, f->hash))
			continue;
		(void)snprintf(manifest, sizeof(manifest),
			       "t%" PRIu64 " manifest", f->txn);
		/* of a damaged manifest nobody can tell all files */
		names_add(names_have(&l->files, manifest) ? &l->may_files :
							    &l->files,
			  "t%" PRIu64 " %s", f->txn, f->path);
	}
}

static struct incr_store *open_damaged(struct sim *sim)
{
	struct incr_store_options options = { .is_readonly = true,
					      .allows_damage = true };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;

	if (store_open_with(sim_io(sim), WORLD_STORE, &options, &st, &err) < 0)
		testing_die("the damaged store does not open to be verified",
			    &err);
	return st;
}

static void find_lost(const struct damage *d, struct sim *sim, struct lost *out)
{
	struct incr_store *st = open_damaged(sim);

	find_lost_records(d->world, sim, out);
	find_lost_txns(d->world, d->world->has_index && !d->has_bad_index, out);
	find_lost_files(d->world, st, out);
	incr_store_close(st);
}

/* ---- what verify and repair say ---- */

struct said {
	struct names places, txns, files;
	size_t n_index, n_other, n_findings, n_done;
	bool has_tail, has_orphan, has_other_orphan;
	bool has_left_orphan, has_other_left; /* left over */
};

static void said_release(struct said *s)
{
	names_release(&s->places);
	names_release(&s->txns);
	names_release(&s->files);
}

static bool is_orphan(const char *file)
{
	return !strcmp(file, "spool/t77") || !strcmp(file, "spool/t1");
}

static int note_finding(void *closure, const struct incr_finding *f)
{
	struct said *s = closure;

	if (f->is_left_over) {
		*(is_orphan(f->file) ? &s->has_left_orphan :
				       &s->has_other_left) = true;
		return 0;
	}
	s->n_findings++;
	if (!strcmp(f->word, "corrupt-log") && !f->path)
		names_add(&s->places, "%" PRIu64, f->off);
	else if (!strcmp(f->word, "lost-transaction"))
		names_add(&s->txns, "t%" PRIu64, f->txn);
	else if (!strcmp(f->word, "lost-change"))
		s->n_findings--;
	else if (f->path)
		names_add(&s->files, "t%" PRIu64 " %.*s", f->txn,
			  (int)f->path_length, f->path);
	else if (f->txn)
		names_add(&s->files, "t%" PRIu64 " manifest", f->txn);
	else if (!strcmp(f->word, "damaged-table"))
		s->n_index++;
	else
		s->n_other++;
	return 0;
}

static int note_done(void *closure, enum incr_repair_action action,
		     const char *what, uint64_t size)
{
	struct said *s = closure;

	(void)size;
	s->n_done++;
	if (action == INCR_REPAIR_TAIL)
		s->has_tail = true;
	if (action == INCR_REPAIR_STAGING)
		*(is_orphan(what) ? &s->has_orphan : &s->has_other_orphan) =
			true;
	if (action == INCR_REPAIR_LOST_STAGING)
		s->has_orphan = s->has_orphan || is_orphan(what);
	if (action == INCR_REPAIR_LEFT_OVER)
		s->has_other_orphan = true;
	return 0;
}

/* Exactly @must, and of @may what there is; NULL, or what is wrong. */
static const char *compare(const struct names *said, const struct names *must,
			   const struct names *may)
{
	const char *one = names_more(must, said);

	if (one) {
		printf("  not named: %s\n", one);
		return "something lost is not named";
	}
	for (size_t i = 0; i < said->n; i++)
		if (!names_have(must, said->items[i]) &&
		    !(may && names_have(may, said->items[i]))) {
			printf("  named: %s\n", said->items[i]);
			return "something is named that is not lost";
		}
	return NULL;
}

static const char *judge_content(const struct lost *l, const struct said *s)
{
	const char *wrong = compare(&s->txns, &l->txns, &l->may_txns);

	return wrong ? wrong : compare(&s->files, &l->files, &l->may_files);
}

static const char *check_verify(struct sim *sim, const struct damage *d,
				const struct lost *l)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_store *st = open_damaged(sim);
	struct incr_verify_result result;
	struct said said = { .n_done = 0 };
	const char *wrong = NULL;

	if (incr_verify(st, &verify, note_finding, &said, &result, NULL) < 0)
		wrong = "verify fails";
	if (!wrong)
		wrong = compare(&said.places, &l->places, NULL);
	if (!wrong)
		wrong = judge_content(l, &said);
	if (!wrong && said.n_index && !d->has_bad_index)
		wrong = "the index is said to be damaged";
	if (!wrong && said.n_other)
		wrong = "something else is said to be damaged";
	if (!wrong && said.has_other_left)
		wrong = "something else is said to be left over";
	/* of a damaged log perhaps nobody knows what is open */
	if (!wrong && said.has_left_orphan != d->has_orphans &&
	    (said.has_left_orphan || !l->places.n))
		wrong = "staging of nothing is not what is left over";
	said_release(&said);
	incr_store_close(st);
	return wrong;
}

/* ---- after a repair ---- */

/* Is something that the view of @number is made of not known? */
static bool is_incomplete(const struct world *w, const struct lost *l,
			  uint64_t number)
{
	char manifest[64];

	while (number) {
		const struct world_txn *t = txn_of(w, number);

		(void)snprintf(manifest, sizeof(manifest),
			       "t%" PRIu64 " manifest", number);
		if (l->records[t->record] || names_have(&l->files, manifest))
			return true;
		number = t->is_whole ? 0 : t->parent;
	}
	return false;
}

/* Every transaction and file that was not lost, from the log alone. */
static const char *check_kept(struct incr_store *st, const struct world *w,
			      const struct lost *l)
{
	char name[300];

	for (size_t i = 0; i < w->n_txns; i++) {
		struct incr_txn_info info;

		if (l->records[w->txns[i].record])
			continue;
		if (incr_txn_find(st, w->txns[i].number, &info, NULL) < 0)
			return "an intact transaction is gone";
		incr_txn_info_release(&info);
	}
	for (size_t i = 0; i < w->n_files; i++) {
		const struct world_file *f = &w->files[i];
		struct incr_node node = INCR_NODE_INIT;
		struct incr_view *view;
		int r;

		(void)snprintf(name, sizeof(name), "t%" PRIu64 " manifest",
			       f->txn);
		if (l->records[txn_of(w, f->txn)->record] ||
		    names_have(&l->files, name))
			continue;
		if (incr_view_open(st, 1, f->txn, &view, NULL) < 0)
			return "the view of an intact transaction is gone";
		if ((incr_view_unknown(view) != 0) !=
		    is_incomplete(w, l, f->txn)) {
			incr_view_unref(view);
			return "a view does not say what it lacks";
		}
		r = incr_view_find(view, f->path, strlen(f->path), &node, NULL);
		incr_view_unref(view);
		if (r || node.txn != f->txn ||
		    memcmp(node.hash, f->hash, sizeof(f->hash)) != 0)
			return "an intact file is not in its view";
		(void)snprintf(name, sizeof(name), "t%" PRIu64 " %s", f->txn,
			       f->path);
		if (!names_have(&l->files, name) &&
		    world_read(st, node.content, f->hash))
			r = -1;
		incr_node_release(&node);
		if (r)
			return "an intact file cannot be read";
	}
	return NULL;
}

static const char *check_goes_on(struct incr_store *st)
{
	struct incr_txn_options options = { .dataset_id = 1,
					    .type = INCR_SNAPSHOT };
	struct incr_source source = { .path = "small-1" };
	struct incr_error err = INCR_ERROR_INIT;
	uint64_t number;

	if (incr_commit(st, &options, &source, 1, NULL, &err) == 0)
		return NULL;
	/* unless the record of the dataset itself is what was lost */
	if (!strcmp(err.word, "no-such-branch") &&
	    incr_dataset_create(st, "new", NULL, NULL, &number, NULL) == 0)
		return NULL;
	if (!strcmp(err.word, "no-such-dataset") &&
	    incr_dataset_create(st, "new", NULL, NULL, &number, NULL) == 0)
		return NULL;
	printf("  %s: %s\n", err.word, err.message);
	return "a commit fails after the repair";
}

static const char *check_clean(struct incr_store *st)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result;

	if (incr_verify(st, &verify, NULL, NULL, &result, NULL) < 0)
		return "verify fails after the repair";
	return result.n_findings ? "verify is not clean after the repair" :
				   NULL;
}

static const char *check_after(struct sim *sim, const struct damage *d,
			       const struct lost *l, bool goes_on)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	const char *wrong;

	if (store_open_with(sim_io(sim), WORLD_STORE, NULL, &st, &err) < 0) {
		printf("  %s: %s\n", err.word, err.message);
		return "the store does not open after the repair";
	}
	wrong = check_clean(st);
	if (!wrong)
		wrong = check_kept(st, d->world, l);
	if (!wrong && goes_on)
		wrong = check_goes_on(st);
	if (!wrong)
		wrong = check_clean(st);
	incr_store_close(st);
	return wrong;
}

static int repair(struct sim *sim, struct said *said,
		  struct incr_repair_result *result)
{
	struct incr_repair_options options = { .wait_ms = 0 };
	struct incr_error err = INCR_ERROR_INIT;
	int r = store_repair_with(sim_io(sim), WORLD_STORE, &options, note_done,
				  note_finding, said, result, &err);

	if (r < 0)
		printf("  %s: %s\n", err.word, err.message);
	incr_error_release(&err);
	return r;
}

static const char *judge_repair(struct sim *sim, const struct damage *d,
				const struct lost *l, const struct said *s,
				const struct incr_repair_result *result)
{
	if (result->n_left)
		return "repair leaves damage";
	if (size_below(sim, WORLD_STORE "/lost") < l->size)
		return "the damaged records are not in lost/";
	if (s->has_other_orphan)
		return "repair removed staging that is open";
	if (d->has_torn_tail != s->has_tail &&
	    !(s->places.n == 0 && l->places.n))
		return "the torn tail is not what was cut off";
	if (d->has_orphans != s->has_orphan)
		return "staging of nothing is not what was removed";
	return judge_content(l, s);
}

/* The log has all bytes that it had, but for a torn tail and its header. */
static bool is_log_kept(struct sim *before, struct sim *after, size_t size)
{
	size_t now_size;
	const uint8_t *was = sim_file(before, WORLD_LOG, &now_size);
	const uint8_t *now = sim_file(after, WORLD_LOG, &now_size);

	return now_size >= size && !memcmp(was + LOG_SEGMENT_HEADER_SIZE,
					   now + LOG_SEGMENT_HEADER_SIZE,
					   size - LOG_SEGMENT_HEADER_SIZE);
}

static const char *check_repair(struct sim *sim, const struct damage *d,
				const struct lost *l)
{
	const struct world *w = d->world;
	size_t size = w->records[w->n_records - 1].off +
		      w->records[w->n_records - 1].span;
	struct sim *before = sim_copy(sim);
	struct incr_repair_result result = { 0 };
	struct said said = { .n_done = 0 }, again = { .n_done = 0 };
	const char *wrong = repair(sim, &said, &result) < 0 ? "repair fails" :
							      NULL;

	if (!wrong)
		wrong = judge_repair(sim, d, l, &said, &result);
	if (!wrong && !is_log_kept(before, sim, size))
		wrong = "bytes of the log are gone";
	if (!wrong && repair(sim, &again, &result) < 0)
		wrong = "a second repair fails";
	if (!wrong && (again.n_done || again.n_findings))
		wrong = "a second repair does something";
	if (!wrong)
		wrong = check_after(sim, d, l, true);
	said_release(&said);
	said_release(&again);
	sim_free(before);
	return wrong;
}

/* A power cut at any moment of a repair, and then another repair. */
static const char *check_cut(struct sim *sim, const struct damage *d,
			     const struct lost *l, unsigned *n_states)
{
	struct incr_repair_result result = { 0 };
	struct said said = { .n_done = 0 };
	const char *wrong = NULL;
	struct damage draw = *d;

	sim_start(sim);
	if (repair(sim, &said, &result) < 0)
		wrong = "repair fails";
	said_release(&said);
	for (size_t k = 0; !wrong && k <= sim_n_ops(sim); k++) {
		enum sim_family family =
			(enum sim_family)damage_below(&draw, SIM_N_FAMILIES);
		size_t n = sim_n_variants(sim, k, family);
		struct sim *cut =
			n ? sim_crash(sim, k, family, damage_below(&draw, n)) :
			    NULL;

		if (!cut)
			continue;
		(*n_states)++;
		if (repair(cut, &said, &result) < 0)
			wrong = "repair fails after a power cut in another";
		if (!wrong)
			wrong = check_after(cut, d, l, false);
		if (wrong)
			printf("  cut at %zu, family %d\n", k, (int)family);
		said_release(&said);
		sim_free(cut);
	}
	return wrong;
}

static const char *check_one(const struct world *world, uint64_t seed,
			     unsigned *n_states)
{
	struct damage d = { .seed = seed, .world = world };
	struct sim *sim = sim_copy(world->sim), *to_cut;
	struct lost lost = { .size = 0 };
	const char *wrong;

	damage_do(&d, sim);
	find_lost(&d, sim, &lost);
	to_cut = sim_copy(sim);
	wrong = check_verify(sim, &d, &lost);
	if (!wrong)
		wrong = check_repair(sim, &d, &lost);
	if (!wrong && seed <= N_CUT)
		wrong = check_cut(to_cut, &d, &lost, n_states);
	if (wrong) {
		printf("FAILED %s\n  INCR_REPAIR=%" PRIu64
		       "; index %d, tail %d, orphans %d\n",
		       wrong, seed, d.has_bad_index, d.has_torn_tail,
		       d.has_orphans);
		for (size_t i = 0; i < lost.places.n; i++)
			printf("  log damaged at %s\n", lost.places.items[i]);
		for (size_t i = 0; i < lost.txns.n; i++)
			printf("  lost: %s\n", lost.txns.items[i]);
		for (size_t i = 0; i < lost.files.n; i++)
			printf("  lost: %s\n", lost.files.items[i]);
	}
	lost_release(&lost);
	sim_free(sim);
	sim_free(to_cut);
	return wrong;
}

int main(void)
{
	const char *one = getenv("INCR_REPAIR");
	unsigned n_passed = 0, n_failed = 0, n_states = 0;
	struct world worlds[2];

	world_make(&worlds[0], true);
	world_make(&worlds[1], false);
	for (uint64_t seed = 1; seed <= N_STORES && n_failed < 10; seed++) {
		if (one)
			seed = strtoull(one, NULL, 10);
		if (check_one(&worlds[seed % 2], seed, &n_states))
			n_failed++;
		else
			n_passed++;
		if (one)
			break;
	}
	world_release(&worlds[0]);
	world_release(&worlds[1]);
	printf("%u power cuts in repairs\n", n_states);
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
