/* The store that is damaged, and what it may then say. */
#include "config.h"

#include "flips.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_impl.h"
#include "store.h"
#include "testing.h"

/* ---- the store ---- */

static int commit(struct incr_store *st, enum incr_txn_type type,
		  const char *path, struct incr_error *err)
{
	struct incr_pair pair = { (char *)"key", (char *)"value" };
	struct incr_txn_options options = { .dataset_id = 1,
					    .type = type,
					    .message = "a message",
					    .meta = { 1, &pair } };
	struct incr_source source = { .path = path };

	return incr_commit(st, &options, &source, 1, NULL, err);
}

static struct sim *make_store(void)
{
	struct incr_remove_flags flags = { 0 };
	struct incr_txn_options options = { .dataset_id = 1 };
	const char *gone = "small-1";
	struct incr_error err = INCR_ERROR_INIT;
	struct sim *sim = sim_new();
	struct incr_store *st;
	uint64_t id;

	sim_set_file(sim, FLIPS_BOOT_ID, "a boot\n", 7);
	sim_make_file(sim, "small-1", 300, 200, 1);
	sim_make_file(sim, "small-2", 900, 100, 2);
	sim_make_file(sim, "small-3", 1300, 400, 3);
	sim_make_file(sim, "tree/large", 70000, 25000, 4);
	sim_make_file(sim, "tree/dir/b", 1500, 500, 5);
	if (store_init_with(sim_io(sim), FLIPS_STORE, &err) < 0 ||
	    store_open_with(sim_io(sim), FLIPS_STORE, NULL, &st, &err) < 0)
		testing_die("cannot make the store", &err);
	st->log->segment_size = 1024; /* several segments */
	if (incr_dataset_create(st, "dataset", "text", NULL, &id, &err) < 0 ||
	    commit(st, INCR_APPEND, "small-1", &err) < 0 ||
	    commit(st, INCR_UPDATE, "tree", &err) < 0 ||
	    incr_schema_set(st, 1, NULL, "{}", 2, &err) < 0 ||
	    incr_branch_create(st, 1, "side", "main", 1, &err) < 0 ||
	    index_flush(st->index, &err) < 0 ||
	    commit(st, INCR_UPDATE, "small-2", &err) < 0 ||
	    incr_remove(st, &options, &gone, 1, flags, NULL, &err) < 0 ||
	    commit(st, INCR_UPDATE, "small-3", &err) < 0)
		testing_die("cannot make the store", &err);
	incr_store_close(st);
	return sim;
}

static void add_file(void *closure, const char *path)
{
	struct flips *f = closure;

	if (f->n_files < FLIPS_FILES_MAX)
		f->files[f->n_files++] = strdup(path);
}

void flips_init(struct flips *f)
{
	const char *every = getenv("INCR_FLIPS_EVERY");
	struct incr_store *st;

	*f = (struct flips){ .sim = make_store(), .step = 1 };
	/* under a sanitizer every few bits have to do */
#ifdef __SANITIZE_ADDRESS__
	f->step *= 13;
#endif
	if (every && atol(every) > 0)
		f->step = (size_t)atol(every);
	if (store_open_with(sim_io(f->sim), FLIPS_STORE,
			    &(struct incr_store_options){ .is_readonly = true },
			    &st, NULL) < 0 ||
	    store_text_fill(st, STORE_TEXT_TIMES, &f->want) < 0)
		abort();
	incr_store_close(st);
	sim_each_file(f->sim, FLIPS_STORE, add_file, f);
}

void flips_release(struct flips *f)
{
	for (size_t i = 0; i < f->n_files; i++)
		free(f->files[i]);
	store_text_release(&f->want);
	store_text_release(&f->found);
	sim_free(f->sim);
}

/* ---- judging ---- */

static bool is_damage(int code)
{
	return code == INCR_E_CORRUPT || code == INCR_E_UNSUPPORTED;
}

/* Every line that is no error is one of the undamaged store's. */
static bool is_part(const struct store_text *want,
		    const struct store_text *found)
{
	const char *line = found->text, *end;
	char text[4200];

	for (; *line; line = end + 1) {
		size_t n;

		end = strchr(line, '\n');
		n = (size_t)(end - line) + 1;
		if (!strncmp(line, "ERROR ", 6))
			continue;
		snprintf(text, sizeof(text), "\n%.*s", (int)n, line);
		if (!strstr(want->text, text) &&
		    strncmp(want->text, text + 1, n) != 0)
			return false;
	}
	return true;
}

static const char *judge_open(struct flips *f, struct incr_store *st)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	int r = store_text_fill(st, STORE_TEXT_TIMES, &f->found);
	bool is_same = !strcmp(f->want.text, f->found.text);
	int v = incr_verify(st, &verify, NULL, NULL, &result, NULL);

	if (r < 0 && !is_damage(r))
		return "an error that does not say that it is damage";
	if (r == 0 && !is_same)
		return "wrong data, or something is missing without a word";
	if (r < 0 && !is_part(&f->want, &f->found))
		return "wrong data beside what is damaged";
	if (v < 0 && !is_damage(v))
		return "verify fails";
	if (!is_same && v == 0 && result.n_findings == 0)
		return "verify does not find it";
	if (is_same && v == 0 && result.n_findings == 0)
		f->n.n_harmless++;
	else
		f->n.n_found++;
	return NULL;
}

/* Open, read all, verify; nothing is written. @file: what was changed. */
const char *flips_judge(struct flips *f, const char *file)
{
	struct incr_store_options options = { .is_readonly = true };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	const char *wrong;
	int r = store_open_with(sim_io(f->sim), FLIPS_STORE, &options, &st,
				&err);
	bool is_no_store = r == INCR_E_NOTFOUND &&
			   !strcmp(file, FLIPS_STORE "/format") &&
			   !strcmp(err.word, "not-a-store");

	incr_error_release(&err);
	if (r < 0) {
		f->n.n_refused++;
		return is_damage(r) || is_no_store ?
			       NULL :
			       "it does not open, and does not say why";
	}
	wrong = judge_open(f, st);
	incr_store_close(st);
	return wrong;
}

/* ---- a writer over the damage ---- */

struct sizes {
	struct sim *sim;
	uint64_t log, lost, sum;
};

static void add_size(void *closure, const char *path)
{
	struct sizes *s = closure;
	size_t size;
	uint8_t *data = sim_file(s->sim, path, &size);

	if (!strncmp(path, FLIPS_STORE "/log/", 10)) {
		s->log += size;
		for (size_t i = 0; i < size; i++)
			s->sum = s->sum * 31 + data[i];
	}
	if (!strncmp(path, FLIPS_STORE "/lost/", 11))
		s->lost += size;
}

static struct sizes measure(struct sim *sim)
{
	struct sizes s = { .sim = sim };

	sim_each_file(sim, FLIPS_STORE, add_size, &s);
	return s;
}

const char *flips_judge_writer(struct flips *f, bool may_move)
{
	struct sim *sim = sim_copy(f->sim);
	struct sizes before = measure(sim), after;
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	const char *wrong = NULL;
	int r = store_open_with(sim_io(sim), FLIPS_STORE, NULL, &st, &err);

	if (r == 0)
		r = commit(st, INCR_UPDATE, "small-1", &err);
	incr_store_close(st);
	after = measure(sim);
	f->n.n_writers++;
	if (r < 0 && !is_damage(r) && r != INCR_E_NOTFOUND)
		wrong = "a writer fails, and does not say that it is damage";
	else if (r < 0 && (after.log != before.log || after.sum != before.sum))
		wrong = "a writer refuses, and changes the log";
	else if (after.lost && !may_move)
		wrong = "a writer cuts off what was acknowledged";
	else if (after.log + after.lost < before.log)
		wrong = "a writer throws bytes of the log away";
	incr_error_release(&err);
	sim_free(sim);
	return wrong;
}
