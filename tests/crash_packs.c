/*
 * What records name is found here by the lists of files alone: the pack of a
 * commit holds its list, so no other pack belongs to it.
 */
#include "config.h"

#include "crash_packs.h"

#include "commit_record.h"
#include "content.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKS_MAX 256

struct packs {
	struct sim *sim;
	const char *store;
	size_t n, n_files, n_strays;
	uint64_t named[PACKS_MAX];
};

static void remove_torn(void *closure, const char *path)
{
	struct packs *p = closure;
	const char *name = strrchr(path, '/');

	if (name && !strncmp(name, "/torn-", 6))
		sim_remove_file(p->sim, path);
}

static void name(struct packs *p, uint64_t id)
{
	if (id == PACK_LOG)
		return;
	if (p->n == PACKS_MAX)
		abort();
	p->named[p->n++] = id;
}

static void name_of_commit(struct packs *p, const struct log_record *record)
{
	struct commit_record commit;

	if (commit_record_decode(record->payload, record->header.payload_size,
				 &commit) < 0)
		abort();
	for (size_t i = 0; i < commit.n_txns; i++) {
		const struct fact_txn *t = &commit.txns[i];
		struct cursor c =
			cursor_over(t->manifest.data, t->manifest.size);
		struct content place;

		if (t->manifest_kind != FACT_MANIFEST_PACK)
			continue;
		if (content_decode(&c, &place) < 0)
			abort();
		if (place.kind == CONTENT_PART)
			name(p, place.container);
		for (size_t k = 0;
		     place.kind == CONTENT_EXTENTS && k < place.n_extents; k++)
			name(p, place.extents[k].container);
		content_release(&place);
	}
	commit_record_release(&commit);
}

static void look_at_file(void *closure, const char *path)
{
	struct packs *p = closure;
	char want[PACK_PATH_SIZE];

	p->n_files++;
	for (size_t i = 0; i < p->n; i++) {
		pack_path(p->named[i], want);
		if (!strcmp(path + strlen(p->store) + 1, want))
			return;
	}
	p->n_strays++;
}

static const char *compare(struct packs *p, struct incr_store *st)
{
	uint64_t at = log_begin(st->log);
	struct log_record record;
	char dir[64];
	int r;

	while ((r = log_read(st->log, at, &record, &at, NULL)) == 0)
		if (record.header.type == FACT_COMMIT)
			name_of_commit(p, &record);
	if (r < 0)
		return "the log cannot be read after a repair";
	(void)snprintf(dir, sizeof(dir), "%s/packs", p->store);
	sim_each_file(p->sim, dir, look_at_file, p);
	if (p->n_strays)
		return "a repair leaves a pack that no record names";
	return p->n_files < p->n ? "a repair removed a pack" : NULL;
}

const char *crash_check_packs(struct sim *sim, const char *store)
{
	struct incr_repair_options options = { 0 };
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_repair_result repaired = { 0 };
	struct incr_verify_result result = { 0 };
	struct packs p = { .sim = sim, .store = store };
	struct incr_store *st = NULL;
	const char *wrong = NULL;
	char lost[64];

	(void)snprintf(lost, sizeof(lost), "%s/lost", store);
	sim_each_file(sim, lost, remove_torn, &p);
	if (store_repair_with(sim_io(sim), store, &options, NULL, NULL, NULL,
			      &repaired, NULL) < 0 ||
	    repaired.n_left || repaired.n_given_up)
		return "a repair fails, or gives something up";
	if (store_open_with(sim_io(sim), store, NULL, &st, NULL) < 0)
		return "the store does not open after a repair";
	wrong = compare(&p, st);
	if (!wrong &&
	    (incr_verify(st, &verify, NULL, NULL, &result, NULL) < 0 ||
	     result.n_findings || result.n_left_over))
		wrong = "verify is not content after a repair";
	incr_store_close(st);
	return wrong;
}
