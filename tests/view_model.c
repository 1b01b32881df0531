/* Random histories, in a model and in a store. */
#include "config.h"

#include "view_model.h"

#include "testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Neighbours on purpose: '-', '.' and '0' stand around '/', \1 is the least byte. */
const char *const model_paths[MODEL_PATHS] = {
	"a",
	"a\001b",
	"a-b/c",
	"a.b",
	"a/b",
	"a/b\001",
	"a/b-",
	"a/b/c",
	"a/b/c/d/e/f/g",
	"a/b/cc",
	"a/b0",
	"a/c",
	"a/c/d",
	"a0",
	"a0/a",
	"aa",
	"b",
	"b/a",
	"b/b",
	"b/c",
	"b/c.d/e",
	"b/c/d",
	"c/1/x",
	"c/1/y",
	"c/10/x",
	"c/2/x",
	"c/2/y",
	"c/2/z/deep",
	"c/3",
	"dir/sub/file",
	"dir/sub/file2",
	"dir/sub2/file",
	"dir2",
	"long/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"long/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
	"x y",
	"z",
	"z/z",
	"\303\251",
	"\377\376",
};

void model_init(struct model *m, uint64_t seed)
{
	*m = (struct model){ .random = seed, .n_branches = 1 };
}

const char *model_branch(size_t idx)
{
	static const char *const names[MODEL_BRANCHES] = { "main", "one", "two",
							   "three" };

	return names[idx];
}

size_t model_content_size(const struct model *m, size_t path, size_t writer)
{
	uint64_t state = path * 1000 + writer;
	uint64_t kind = store_kit_random(&state, 20);

	(void)m;
	if (kind == 0)
		return 0;
	if (kind == 1)
		return MODEL_CONTENT_MAX / 2 +
		       store_kit_random(&state, MODEL_CONTENT_MAX / 2);
	return 1 + store_kit_random(&state, 60);
}

char *model_content(const struct model *m, size_t path, size_t writer,
		    size_t *out_size)
{
	size_t size = model_content_size(m, path, writer);
	char *content = malloc(size + 1);
	uint64_t state = path * 7777 + writer;

	if (!content)
		abort();
	for (size_t i = 0; i < size; i++)
		content[i] = (char)store_kit_random(&state, 256);
	*out_size = size;
	return content;
}

bool model_is_on_path(const struct model *m, size_t t, size_t head)
{
	while (head && head != t)
		head = m->txns[head].parent;
	return head != 0 && t != 0;
}

/* Do two paths need one name as a file and as a directory? */
static bool is_below(size_t file, size_t other)
{
	size_t length = strlen(model_paths[file]);

	return !strncmp(model_paths[other], model_paths[file], length) &&
	       model_paths[other][length] == '/';
}

static bool has_conflict(const size_t writer[MODEL_PATHS])
{
	for (size_t i = 0; i < MODEL_PATHS; i++)
		for (size_t j = 0; j < MODEL_PATHS; j++)
			if (writer[i] && writer[j] && is_below(i, j))
				return true;
	return false;
}

/* ---- transactions ---- */

struct step {
	struct model_txn txn; /* as it will be */
	size_t branch;
	bool is_touched[MODEL_PATHS];
	size_t n_touched;
	int want; /* what the store is to answer */
};

/* What the rules make of the paths that were drawn. */
static void fold(struct model *m, struct step *s)
{
	struct model_txn *t = &s->txn;
	size_t self = m->n + 1;

	for (size_t i = 0; i < MODEL_PATHS; i++) {
		if (!s->is_touched[i])
			continue;
		if (t->type == INCR_APPEND && t->writer[i])
			s->want = INCR_E_CONFLICT;
		if (t->type == INCR_DELETE && t->writer[i])
			t->remover[i] = self;
		t->writer[i] = t->type == INCR_DELETE ? 0 : self;
	}
	if (s->want == 0 && has_conflict(t->writer))
		s->want = INCR_E_CONFLICT;
}

static void draw(struct model *m, struct step *s)
{
	uint64_t dice = store_kit_random(&m->random, 100);
	uint64_t n = store_kit_random(&m->random, 6);
	size_t head;

	*s = (struct step){ 0 };
	s->branch = store_kit_random(&m->random, m->n_branches);
	head = m->heads[s->branch];
	s->txn = m->txns[head];
	s->txn.parent = head;
	s->txn.type = dice < 40 ? INCR_APPEND :
		      dice < 70 ? INCR_UPDATE :
		      dice < 92 ? INCR_DELETE :
				  INCR_SNAPSHOT;
	if (s->txn.type == INCR_SNAPSHOT) {
		memset(s->txn.writer, 0, sizeof(s->txn.writer));
		memset(s->txn.remover, 0, sizeof(s->txn.remover));
		n += 6;
	}
	if (!head || s->txn.type == INCR_SNAPSHOT)
		s->txn.start = m->n + 1;
	for (; s->n_touched < n; s->n_touched++) {
		/* a few paths get many versions */
		size_t i =
			store_kit_random(&m->random, n % 2 ? 4 : MODEL_PATHS);

		/* an APPEND of what is there is worth a try, but not always */
		if (s->is_touched[i] ||
		    (s->txn.type == INCR_APPEND && s->txn.writer[i] &&
		     store_kit_random(&m->random, 12)))
			continue;
		s->is_touched[i] = true;
	}
	fold(m, s);
}

static int put_files(struct model *m, struct store_kit *k, struct step *s,
		     struct incr_txn_info *info)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .branch = model_branch(s->branch),
					    .type = s->txn.type,
					    .rewrites = true };
	struct incr_source sources[MODEL_PATHS];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < MODEL_PATHS; i++) {
		size_t size;
		char *content;

		if (!s->is_touched[i])
			continue;
		content = model_content(m, i, m->n + 1, &size);
		sources[n++] = store_kit_source(store_kit_stream(content, size),
						model_paths[i]);
		free(content);
	}
	r = incr_commit(k->st, &options, sources, n, info, store_kit_err(k));
	for (size_t i = 0; i < n; i++)
		(void)close(sources[i].fd);
	return r;
}

/* By rm, or by an OPEN transaction, which ignores missing paths just so. */
static int remove_files(struct model *m, struct store_kit *k, struct step *s,
			struct incr_txn_info *info)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .branch = model_branch(s->branch),
					    .type = INCR_DELETE };
	uint64_t number;
	int r = incr_txn_begin(k->st, &options, &number, store_kit_err(k));

	(void)m;
	for (size_t i = 0; r == 0 && i < MODEL_PATHS; i++) {
		/* the name of a directory would take all of it */
		bool is_dir = false;

		for (size_t j = 0; j < MODEL_PATHS; j++)
			is_dir = is_dir || is_below(i, j);
		if (s->is_touched[i] &&
		    (!is_dir || s->txn.remover[i] == m->n + 1))
			r = incr_txn_remove(k->st, number, model_paths[i],
					    &k->err);
	}
	return r < 0 ? r : incr_txn_commit(k->st, number, false, info, &k->err);
}

static bool step_txn(struct model *m, struct store_kit *k)
{
	struct incr_txn_info info = { 0 };
	struct step s;
	int r;

	draw(m, &s);
	r = s.txn.type == INCR_DELETE ? remove_files(m, k, &s, &info) :
					put_files(m, k, &s, &info);
	if (s.want && r == INCR_E_INVALID &&
	    !strcmp(k->err.word, "path-conflict"))
		r = s.want; /* both within the commit */
	if (r != s.want) {
		testing_err_eq(s.want, r, "the model", k->err.message, __FILE__,
			       __LINE__);
		incr_txn_info_release(&info);
		return false;
	}
	if (r == 0) {
		s.txn.number = info.number;
		m->txns[++m->n] = s.txn;
		m->heads[s.branch] = m->n;
	}
	incr_txn_info_release(&info);
	return true;
}

/* ---- branches ---- */

static bool step_branch(struct model *m, struct store_kit *k)
{
	size_t at = store_kit_random(&m->random, m->n + 1);
	size_t idx = m->n_branches;
	int r = incr_branch_create(k->st, k->dataset, model_branch(idx), NULL,
				   m->txns[at].number, store_kit_err(k));

	if (r < 0)
		return testing_err_eq(0, r, "branch", k->err.message, __FILE__,
				      __LINE__);
	m->heads[idx] = at;
	m->n_branches++;
	return true;
}

static bool step_reset(struct model *m, struct store_kit *k)
{
	size_t to = 1 + store_kit_random(&m->random, m->n);
	size_t idx = store_kit_random(&m->random, m->n_branches);
	int r = incr_branch_reset(k->st, k->dataset, model_branch(idx),
				  m->txns[to].number, store_kit_err(k));

	if (r < 0)
		return testing_err_eq(0, r, "reset", k->err.message, __FILE__,
				      __LINE__);
	m->heads[idx] = to;
	return true;
}

/* An aborted transaction: only numbers go. */
static bool step_abort(struct model *m, struct store_kit *k)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = INCR_UPDATE };
	uint64_t number;
	int r = incr_txn_begin(k->st, &options, &number, store_kit_err(k));

	(void)m;
	if (r == 0)
		r = store_kit_put(k, number, "a", "aborted", false);
	if (r == 0)
		r = incr_txn_abort(k->st, number, store_kit_err(k));
	return testing_err_eq(0, r, "abort", k->err.message, __FILE__,
			      __LINE__);
}

bool model_step(struct model *m, struct store_kit *k)
{
	uint64_t dice = store_kit_random(&m->random, 100);

	if (dice < 3)
		return step_abort(m, k);
	if (dice < 9 && m->n)
		return step_reset(m, k);
	if (dice < 15 && m->n && m->n_branches < MODEL_BRANCHES)
		return step_branch(m, k);
	return m->n == MODEL_TXNS || step_txn(m, k);
}
