/*
 * Random damage on many stores: verify names exactly what cannot be read, and
 * repair mends what can be without losing anything else.
 *
 * What is lost is found out here by reading every file of every transaction by
 * itself.  Verify must name these and no others, and for a damaged record the
 * segment, the offset and, where the index is whole, its transactions.
 * Repair must leave all that was readable as it was, move a torn tail to lost/,
 * make a damaged index again, remove staging of nothing, and find afterwards
 * only what was lost.
 *
 * A failure prints INCR_REPAIR=seed; set to that, the program runs the one.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "simio.h"
#include "store.h"
#include "store_text.h"
#include "testing.h"

#define STORE "store"
#define LOG STORE "/log/0000000000000000.log"
#define N_STORES 500
#define NAMES_MAX 256
#define PATHS_MAX 8

/* What is lost, or was named: sorted texts. */
struct names {
	char *items[NAMES_MAX]; /* owned */
	size_t n;
};

static void names_add(struct names *names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void names_add(struct names *names, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], text))
			return;
	if (names->n < NAMES_MAX)
		names->items[names->n++] = strdup(text);
}

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	names->n = 0;
}

static bool names_have(const struct names *names, const char *text)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->items[i], text))
			return true;
	return false;
}

static bool is_same(const struct names *a, const struct names *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!names_have(b, a->items[i]))
			return false;
	return a->n == b->n;
}

/* ---- the store ---- */

static int commit(struct incr_store *st, enum incr_txn_type type,
		  const char *const *names, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = 1, .type = type };
	struct incr_source sources[4];
	size_t n = 0;

	for (; names[n]; n++)
		sources[n] = (struct incr_source){ .path = names[n] };
	return incr_commit(st, &options, sources, n, NULL, err);
}

#define COMMIT(st, type, err, ...) \
	commit(st, type, (const char *const[]){ __VA_ARGS__, NULL }, err)

/* Inline and packed transactions; content that several of them share. */
static struct sim *make_store(void)
{
	struct incr_txn_options open = { .dataset_id = 1, .type = INCR_UPDATE };
	struct incr_source source = { .path = "small-1" };
	struct incr_error err = INCR_ERROR_INIT;
	struct sim *sim = sim_new();
	struct incr_store *st;
	uint64_t id;

	sim_make_file(sim, "small-1", 300, 200, 1);
	sim_make_file(sim, "small-2", 900, 900, 2);
	sim_make_file(sim, "tree/large", 150000, 150000, 3);
	sim_make_file(sim, "tree/b", 30000, 30000, 4);
	sim_make_file(sim, "tree/c", 50000, 50000, 5);
	sim_make_file(sim, "big", 400000, 400000, 6);
	if (store_init_with(sim_io(sim), STORE, &err) < 0 ||
	    store_open_with(sim_io(sim), STORE, NULL, &st, &err) < 0 ||
	    incr_dataset_create(st, "dataset", NULL, NULL, &id, &err) < 0 ||
	    COMMIT(st, INCR_APPEND, &err, "small-1") < 0 ||
	    COMMIT(st, INCR_UPDATE, &err, "tree") < 0 ||
	    COMMIT(st, INCR_SNAPSHOT, &err, "tree", "small-2", "big") < 0 ||
	    COMMIT(st, INCR_UPDATE, &err, "small-1") < 0 ||
	    COMMIT(st, INCR_SNAPSHOT, &err, "tree", "small-1") < 0 ||
	    index_flush(st->index, &err) < 0 ||
	    incr_txn_begin(st, &open, &id, &err) < 0 ||
	    incr_txn_put(st, id, "put", &source, false, &err) < 0)
		testing_die("cannot make the store", &err);
	incr_store_close(st);
	return sim;
}

struct found_files {
	char *paths[PATHS_MAX]; /* owned */
	size_t n;
	const char *prefix;
};

static void add_file(void *closure, const char *path)
{
	struct found_files *f = closure;

	if (f->n < PATHS_MAX && !strncmp(path, f->prefix, strlen(f->prefix)))
		f->paths[f->n++] = strdup(path);
}

/* ---- damage ---- */

struct damage {
	uint64_t seed;
	bool has_torn_tail, has_orphans, has_bad_index, has_bad_log;
	size_t record_off; /* of the damaged record */
	uint64_t record_txn; /* 0: none, or not the index's to know */
};

static uint64_t below(struct damage *d, uint64_t n)
{
	return n ? sim_random(&d->seed) % n : 0;
}

static void damage_pack(struct damage *d, struct sim *sim)
{
	struct found_files f = { .prefix = STORE "/packs/" };
	size_t n_flips = 1 + below(d, 3);

	sim_each_file(sim, STORE "/packs", add_file, &f);
	for (size_t i = 0; i < n_flips; i++) {
		const char *path = f.paths[below(d, f.n)];
		size_t size;
		uint8_t *data = sim_file(sim, path, &size);

		if (!data)
			continue;
		if (below(d, 8) == 0) {
			sim_remove_file(sim, path);
			continue;
		}
		data[below(d, size)] ^= (uint8_t)(1u << below(d, 8));
	}
	for (size_t i = 0; i < f.n; i++)
		free(f.paths[i]);
}

/* A record in the middle: not the last, which nothing proves here. */
static void damage_log(struct damage *d, struct sim *sim)
{
	size_t size, offs[32] = { 0 }, n = 0, at = LOG_SEGMENT_HEADER_SIZE;
	uint8_t *data = sim_file(sim, LOG, &size);
	struct record_header h = { 0 };
	struct commit_record commit;
	size_t i, span;

	while (at < size && n < 32 &&
	       record_decode_header(data + at, &h) == 0) {
		offs[n++] = at;
		at += (size_t)record_span(h.payload_size);
	}
	i = below(d, n - 1);
	d->has_bad_log = true;
	d->record_off = offs[i];
	(void)record_decode_header(data + offs[i], &h);
	if (h.type == FACT_COMMIT &&
	    commit_record_decode(data + offs[i] + RECORD_HEADER_SIZE,
				 h.payload_size, &commit) == 0) {
		d->record_txn = commit.txns[0].number;
		commit_record_release(&commit);
	}
	span = offs[i + 1] - offs[i];
	data[offs[i] + below(d, span)] ^= (uint8_t)(1u << below(d, 8));
}

static void damage_index(struct damage *d, struct sim *sim)
{
	struct found_files f = { .prefix = STORE "/index/" };
	size_t size;
	uint8_t *data;

	sim_each_file(sim, STORE "/index", add_file, &f);
	data = sim_file(sim, f.paths[below(d, f.n)], &size);
	data[below(d, size)] ^= (uint8_t)(1u << below(d, 8));
	d->has_bad_index = true;
	for (size_t i = 0; i < f.n; i++)
		free(f.paths[i]);
}

static void tear_tail(struct damage *d, struct sim *sim)
{
	size_t size, n = 1 + below(d, 300);
	uint8_t *data = sim_file(sim, LOG, &size);
	uint8_t *longer = malloc(size + n);

	if (!longer)
		abort();
	memcpy(longer, data, size);
	for (size_t i = 0; i < n; i++)
		longer[size + i] = (uint8_t)sim_random(&d->seed);
	sim_set_file(sim, LOG, longer, size + n);
	free(longer);
	d->has_torn_tail = true;
}

static void leave_orphans(struct damage *d, struct sim *sim)
{
	sim_set_file(sim, STORE "/spool/t77/put/left", "x", 1);
	sim_set_file(sim, STORE "/spool/t1/put/left", "x", 1);
	d->has_orphans = true;
}

static void do_damage(struct damage *d, struct sim *sim)
{
	uint64_t kinds = 1 + below(d, 31);

	if (kinds & 1)
		damage_pack(d, sim);
	if (kinds & 2 && below(d, 2))
		damage_log(d, sim);
	if (kinds & 4)
		damage_index(d, sim);
	if (kinds & 8)
		tear_tail(d, sim);
	if (kinds & 16)
		leave_orphans(d, sim);
}

/* ---- what is lost ---- */

struct lost {
	struct incr_store *st;
	struct names names;
	struct names good; /* files that can be read */
};

/* 0, 1 when it is damaged. */
static int read_entry(struct incr_store *st, const struct manifest_entry *e)
{
	static uint8_t data[1 << 20];
	uint8_t hash[INCR_HASH_SIZE];
	size_t n;
	int r = content_read(st->reader, &e->content, 0, data, sizeof(data), &n,
			     NULL);

	if (r < 0)
		return 1;
	hash128(data, n, hash);
	return n != e->content.size || memcmp(hash, e->hash, sizeof(hash)) != 0;
}

static void read_txn(struct lost *l, const struct fact_txn *t,
		     uint64_t frames_position)
{
	const struct manifest_entry *e;
	struct manifest_source m;
	int r = manifest_source_open(t, frames_position, l->st->reader, &m,
				     NULL);

	if (r < 0) {
		names_add(&l->names, "t%" PRIu64 " manifest", t->number);
		return;
	}
	while ((r = manifest_reader_next(m.entries, &e, NULL)) == 0) {
		/* of a relative SNAPSHOT: what it does not take over */
		if (e->op == MANIFEST_REMOVE)
			continue;
		names_add(read_entry(l->st, e) ? &l->names : &l->good,
			  "t%" PRIu64 " %.*s", t->number, (int)e->path_length,
			  e->path);
	}
	manifest_source_release(&m);
	if (r < 0)
		names_add(&l->names, "t%" PRIu64 " manifest", t->number);
}

static void read_record(struct lost *l, const uint8_t *bytes,
			const struct record_header *h)
{
	struct commit_record commit;
	const uint8_t *payload = bytes + RECORD_HEADER_SIZE;
	size_t span = (size_t)record_span(h->payload_size);

	if (h->type != FACT_COMMIT ||
	    record_check_payload(h, payload, span - RECORD_HEADER_SIZE) < 0 ||
	    commit_record_decode(payload, h->payload_size, &commit) < 0)
		return;
	for (size_t i = 0; i < commit.n_txns; i++)
		read_txn(l, &commit.txns[i],
			 h->position + RECORD_HEADER_SIZE + commit.frames_off);
	commit_record_release(&commit);
}

/* Every transaction of every whole record, found by the bytes of the log. */
static void find_lost(struct sim *sim, struct lost *out)
{
	struct incr_store_options options = { .is_readonly = true,
					      .allows_damage = true };
	size_t size;
	uint8_t *data = sim_file(sim, LOG, &size);

	if (store_open_with(sim_io(sim), STORE, &options, &out->st, NULL) < 0)
		abort();
	for (size_t at = LOG_SEGMENT_HEADER_SIZE;
	     at + RECORD_HEADER_SIZE <= size; at += RECORD_ALIGN) {
		struct record_header h;

		if (record_decode_header(data + at, &h) == 0 &&
		    h.position == at &&
		    at + record_span(h.payload_size) <= size)
			read_record(out, data + at, &h);
	}
	incr_store_close(out->st);
	out->st = NULL;
}

/* ---- what verify and repair say ---- */

struct said {
	struct names files; /* as in struct lost */
	size_t n_log, n_index, n_txns, n_other;
	uint64_t log_off, txn;
	bool has_tail, has_index, has_orphan, has_other_orphan;
	size_t n_done;
};

static int note_finding(void *closure, const struct incr_finding *f)
{
	struct said *s = closure;

	if (!strcmp(f->word, "corrupt-log") && !f->path) {
		s->n_log++;
		s->log_off = f->off;
	} else if (!strcmp(f->word, "lost-transaction")) {
		s->n_txns++;
		s->txn = f->txn;
	} else if (f->path) {
		names_add(&s->files, "t%" PRIu64 " %.*s", f->txn,
			  (int)f->path_length, f->path);
	} else if (f->txn) {
		names_add(&s->files, "t%" PRIu64 " manifest", f->txn);
	} else if (!strcmp(f->word, "damaged-table")) {
		s->n_index++;
	} else {
		s->n_other++;
	}
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
	if (action == INCR_REPAIR_INDEX)
		s->has_index = true;
	if (action == INCR_REPAIR_STAGING)
		*(strcmp(what, "spool/t77") != 0 &&
				  strcmp(what, "spool/t1") != 0 ?
			  &s->has_other_orphan :
			  &s->has_orphan) = true;
	return 0;
}

static const char *judge_said(const struct damage *d, const struct lost *lost,
			      const struct said *s)
{
	if (!is_same(&lost->names, &s->files))
		return "the files named are not those that are lost";
	if (s->n_log != (d->has_bad_log ? 1 : 0))
		return "the damage of the log is not named once";
	if (d->has_bad_log && s->log_off != d->record_off)
		return "the damaged record is not where it is said to be";
	if (s->n_txns && s->txn != d->record_txn)
		return "another transaction than the damaged one is named";
	if (d->has_bad_log && d->record_txn && !d->has_bad_index && !s->n_txns)
		return "the transaction of the damaged record is not named";
	if (s->n_index && !d->has_bad_index)
		return "the index is said to be damaged";
	if (s->n_other)
		return "something else is said to be damaged";
	return NULL;
}

static const char *check_verify(struct sim *sim, const struct damage *d,
				const struct lost *lost)
{
	struct incr_store_options options = { .is_readonly = true,
					      .allows_damage = true };
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result;
	struct said said = { 0 };
	struct incr_store *st;
	const char *wrong;

	if (store_open_with(sim_io(sim), STORE, &options, &st, NULL) < 0)
		return "the damaged store does not open to be verified";
	if (incr_verify(st, &verify, note_finding, &said, &result, NULL) < 0)
		wrong = "verify fails";
	else
		wrong = judge_said(d, lost, &said);
	for (size_t i = 0; wrong && i < said.files.n; i++)
		printf("  named: %s\n", said.files.items[i]);
	names_release(&said.files);
	incr_store_close(st);
	return wrong;
}

static size_t lost_size(struct sim *sim)
{
	struct found_files f = { .prefix = STORE "/lost/" };
	size_t size, sum = 0;

	sim_each_file(sim, STORE "/lost", add_file, &f);
	for (size_t i = 0; i < f.n; i++) {
		(void)sim_file(sim, f.paths[i], &size);
		sum += size;
		free(f.paths[i]);
	}
	return sum;
}

static const char *judge_repair(struct sim *sim, const struct damage *d,
				const struct said *s, bool opens,
				size_t log_before)
{
	size_t log_after;

	(void)sim_file(sim, LOG, &log_after);
	if (log_after + lost_size(sim) < log_before)
		return "repair threw bytes of the log away";
	if (s->has_other_orphan)
		return "repair removed staging that is open";
	if (!opens)
		return s->n_done ? "repair changed a store it cannot mend" :
				   NULL;
	if (d->has_torn_tail && (!s->has_tail || !lost_size(sim)))
		return "the torn tail is not in lost/";
	if (!d->has_torn_tail && s->has_tail)
		return "repair cut off what is no torn tail";
	if (d->has_orphans != s->has_orphan)
		return "staging of nothing is not what was removed";
	return NULL;
}

/* From the log, or from the index where the log is damaged before it. */
static bool opens_normally(struct sim *sim)
{
	struct incr_store_options options = { .is_readonly = true };
	struct incr_store *st = NULL;
	int r = store_open_with(sim_io(sim), STORE, &options, &st, NULL);

	incr_store_close(st);
	return r == 0;
}

static const char *check_repair(struct sim *sim, const struct damage *d,
				const struct lost *before)
{
	struct incr_repair_options options = { 0 };
	struct incr_repair_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct said said = { 0 }, again = { 0 };
	struct damage left = *d;
	bool opens = opens_normally(sim);
	struct lost after = { 0 };
	const char *wrong;
	size_t log_before;
	int r;

	(void)sim_file(sim, LOG, &log_before);
	r = store_repair_with(sim_io(sim), STORE, &options, note_done,
			      note_finding, &said, &result, &err);
	if (r < 0) {
		printf("  %s: %s %s\n", err.word, err.message, err.thing);
		incr_error_release(&err);
		return "repair fails";
	}
	wrong = judge_repair(sim, d, &said, opens, log_before);
	find_lost(sim, &after);
	if (!wrong && (!is_same(&before->good, &after.good) ||
		       !is_same(&before->names, &after.names)))
		wrong = "repair lost a file, or made one up";
	if (opens && !d->has_bad_log)
		left.has_bad_index = false;
	if (!wrong)
		wrong = judge_said(&left, &after, &said);
	/* once more: nothing is left to do */
	r = store_repair_with(sim_io(sim), STORE, &options, note_done,
			      note_finding, &again, &result, &err);
	if (!wrong && (r < 0 || again.n_done))
		wrong = "a second repair does something";
	if (!wrong)
		wrong = check_verify(sim, &left, &after);
	names_release(&said.files);
	names_release(&again.files);
	names_release(&after.names);
	names_release(&after.good);
	incr_error_release(&err);
	return wrong;
}

static const char *check_one(struct sim *base, uint64_t seed)
{
	struct damage d = { .seed = seed };
	struct sim *sim = sim_copy(base);
	struct lost lost = { 0 };
	const char *wrong;

	do_damage(&d, sim);
	find_lost(sim, &lost);
	wrong = check_verify(sim, &d, &lost);
	if (!wrong)
		wrong = check_repair(sim, &d, &lost);
	if (wrong) {
		printf("FAILED %s\n  INCR_REPAIR=%" PRIu64
		       "; log %d at %zu (t%" PRIu64
		       "), index %d, tail %d, orphans %d\n",
		       wrong, seed, d.has_bad_log, d.record_off, d.record_txn,
		       d.has_bad_index, d.has_torn_tail, d.has_orphans);
		for (size_t i = 0; i < lost.names.n; i++)
			printf("  lost: %s\n", lost.names.items[i]);
	}
	names_release(&lost.names);
	names_release(&lost.good);
	sim_free(sim);
	return wrong;
}

int main(void)
{
	const char *one = getenv("INCR_REPAIR");
	struct sim *base = make_store();
	unsigned n_passed = 0, n_failed = 0;

	for (uint64_t seed = 1; seed <= N_STORES && n_failed < 10; seed++) {
		if (one)
			seed = strtoull(one, NULL, 10);
		if (check_one(base, seed))
			n_failed++;
		else
			n_passed++;
		if (one)
			break;
	}
	sim_free(base);
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
