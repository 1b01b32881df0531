/* The store that fault_repair damages, and what it holds. */
#include "config.h"

#include "repair_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "testing.h"

static int commit(struct incr_store *st, const char *branch,
		  enum incr_txn_type type, const char *const *names,
		  struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = 1,
					    .branch = branch,
					    .type = type };
	struct incr_source sources[4];
	size_t n = 0;

	for (; names[n]; n++)
		sources[n] = (struct incr_source){ .path = names[n] };
	return incr_commit(st, &options, sources, n, NULL, err);
}

#define COMMIT(branch, type, ...)                                            \
	commit(st, branch, type, (const char *const[]){ __VA_ARGS__, NULL }, \
	       err)

/* Every kind of fact that is no build's, and content that transactions share. */
static int fill(struct incr_store *st, struct world *w, struct incr_error *err)
{
	struct incr_txn_options open = { .dataset_id = 2, .type = INCR_UPDATE };
	struct incr_source source = { .path = "small-1" };
	uint64_t id, other;

	if (incr_dataset_create(st, "dataset", NULL, NULL, &id, err) < 0 ||
	    COMMIT(NULL, INCR_APPEND, "small-1") < 0 ||
	    COMMIT(NULL, INCR_APPEND, "small-3") < 0 ||
	    incr_dataset_create(st, "other", NULL, NULL, &other, err) < 0 ||
	    COMMIT(NULL, INCR_UPDATE, "tree") < 0 ||
	    incr_branch_create(st, id, "branch", "main", 0, err) < 0 ||
	    COMMIT("branch", INCR_UPDATE, "small-2") < 0 ||
	    COMMIT(NULL, INCR_SNAPSHOT, "tree", "small-2", "big") < 0 ||
	    incr_txn_begin(st, &open, &w->open_txn, err) < 0 ||
	    incr_txn_put(st, w->open_txn, "put", &source, false, err) < 0 ||
	    incr_txn_abort(st, w->open_txn, err) < 0 ||
	    incr_dataset_rename(st, other, "renamed", err) < 0 ||
	    COMMIT(NULL, INCR_UPDATE, "small-1") < 0 ||
	    COMMIT("branch", INCR_APPEND, "small-4", "big") < 0 ||
	    incr_txn_begin(st, &open, &w->open_txn, err) < 0 ||
	    incr_txn_put(st, w->open_txn, "put", &source, false, err) < 0 ||
	    COMMIT(NULL, INCR_SNAPSHOT, "many", "small-1") < 0 ||
	    COMMIT(NULL, INCR_APPEND, "small-5") < 0)
		return -1;
	return 0;
}

static void make_files(struct sim *sim)
{
	char name[32];

	sim_make_file(sim, "small-1", 300, 200, 1);
	sim_make_file(sim, "small-2", 900, 900, 2);
	sim_make_file(sim, "small-3", 700, 20, 7);
	sim_make_file(sim, "small-4", 50, 50, 8);
	sim_make_file(sim, "small-5", 70, 50, 9);
	sim_make_file(sim, "tree/large", 150000, 150000, 3);
	sim_make_file(sim, "tree/b", 30000, 30000, 4);
	sim_make_file(sim, "tree/c", 50000, 50000, 5);
	sim_make_file(sim, "big", 400000, 400000, 6);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof(name), "many/%d", i);
		sim_make_file(sim, name, 4000, 4000, (uint64_t)(100 + i));
	}
}

int world_read(struct incr_store *st, const struct content *content,
	       const uint8_t hash[INCR_HASH_SIZE])
{
	static uint8_t data[1 << 20];
	uint8_t got[INCR_HASH_SIZE];
	size_t n;

	if (content_read(st->reader, content, 0, data, sizeof(data), &n, NULL) <
	    0)
		return 1;
	hash128(data, n, got);
	return n != content->size || memcmp(got, hash, sizeof(got)) != 0;
}

/* ---- what it holds ---- */

static void note_manifest(struct world *w, struct incr_store *st,
			  const struct fact_txn *t, size_t record)
{
	struct world_txn *to = &w->txns[w->n_txns++];
	struct cursor c = cursor_over(t->manifest.data, t->manifest.size);
	static uint8_t data[1 << 20];
	size_t n;

	*to = (struct world_txn){
		.number = t->number,
		.record = record,
		.parent = t->parent,
		.is_whole = t->type == INCR_SNAPSHOT && !t->is_relative,
	};
	to->has_pack = t->manifest_kind == FACT_MANIFEST_PACK;
	if (!to->has_pack)
		return;
	if (content_decode(&c, &to->manifest) < 0 ||
	    content_read(st->reader, &to->manifest, 0, data, sizeof(data), &n,
			 NULL) < 0)
		abort();
	hash128(data, n, to->manifest_hash);
}

static void note_txn(struct world *w, struct incr_store *st,
		     const struct fact_txn *t, uint64_t frames_position)
{
	const struct manifest_entry *e;
	struct manifest_source m;

	if (manifest_source_open(t, frames_position, st->reader, &m, NULL) < 0)
		abort();
	while (manifest_reader_next(m.entries, &e, NULL) == 0) {
		struct world_file *f = &w->files[w->n_files];

		if (e->op != MANIFEST_PUT)
			continue;
		if (w->n_files++ == WORLD_FILES_MAX)
			abort();
		f->txn = t->number;
		f->path = strndup(e->path, e->path_length);
		memcpy(f->hash, e->hash, sizeof(f->hash));
		if (content_copy(&e->content, &f->content) < 0)
			abort();
	}
	manifest_source_release(&m);
}

static void note_record(struct world *w, struct incr_store *st,
			const uint8_t *bytes, const struct record_header *h)
{
	struct cursor c =
		cursor_over(bytes + RECORD_HEADER_SIZE, h->payload_size);
	struct commit_record commit;
	struct fact_txn opened;

	if (h->type == FACT_TXN_OPENED && fact_decode_txn(&c, &opened) == 0)
		w->records[w->n_records].opened = opened.number;
	if (h->type == FACT_TXN_ABORTED)
		w->records[w->n_records].aborted = cursor_varint(&c);
	if (h->type != FACT_COMMIT ||
	    commit_record_decode(bytes + RECORD_HEADER_SIZE, h->payload_size,
				 &commit) < 0)
		return;
	for (size_t i = 0; i < commit.n_txns; i++) {
		note_manifest(w, st, &commit.txns[i], w->n_records);
		note_txn(w, st, &commit.txns[i],
			 h->position + RECORD_HEADER_SIZE + commit.frames_off);
	}
	commit_record_release(&commit);
}

static void note_all(struct world *w)
{
	struct incr_store_options options = { .is_readonly = true };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	struct record_header h;
	size_t size, at = LOG_SEGMENT_HEADER_SIZE;
	const uint8_t *data = sim_file(w->sim, WORLD_LOG, &size);

	if (store_open_with(sim_io(w->sim), WORLD_STORE, &options, &st, &err) <
	    0)
		testing_die("cannot read the store", &err);
	while (at < size && w->n_records < WORLD_RECORDS_MAX &&
	       record_decode_header(data + at, &h) == 0) {
		note_record(w, st, data + at, &h);
		w->records[w->n_records].off = at;
		w->records[w->n_records].span =
			(size_t)record_span(h.payload_size);
		at += w->records[w->n_records++].span;
	}
	incr_store_close(st);
}

void world_make(struct world *w, bool has_index)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;

	*w = (struct world){ .sim = sim_new(), .has_index = has_index };
	make_files(w->sim);
	if (store_init_with(sim_io(w->sim), WORLD_STORE, &err) < 0 ||
	    store_open_with(sim_io(w->sim), WORLD_STORE, NULL, &st, &err) < 0 ||
	    fill(st, w, &err) < 0 ||
	    (has_index && index_flush(st->index, &err) < 0))
		testing_die("cannot make the store", &err);
	incr_store_close(st);
	note_all(w);
}

void world_release(struct world *w)
{
	for (size_t i = 0; i < w->n_files; i++) {
		free(w->files[i].path);
		content_release(&w->files[i].content);
	}
	for (size_t i = 0; i < w->n_txns; i++)
		content_release(&w->txns[i].manifest);
	sim_free(w->sim);
}
