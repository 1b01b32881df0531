/*
 * A real store for tests of plans and builds.
 */
#include "build_fixture.h"

#include "store.h"
#include "testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The library never writes through these. */
static char *lit(const char *s)
{
	union {
		const char *in;
		char *out;
	} u = { .in = s };

	return u.out;
}

static int sync_nothing(const struct incr_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

static void open_store(struct fixture *f)
{
	struct incr_store_options options = { .wait_ms = 0 };
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	CHECK_OK(store_open_with(&f->io, path, &options, &f->st, NULL));
}

void fixture_reopen(struct fixture *f)
{
	incr_store_close(f->st);
	f->st = NULL;
	open_store(f);
}

void fixture_set_up(struct fixture *f)
{
	static const char *const names[] = { "in", "in2", "out", "out2" };
	char path[512];
	uint64_t id;

	memset(f, 0, sizeof(*f));
	f->io = io_posix;
	f->io.fsync = sync_nothing;
	f->io.fdatasync = sync_nothing;
	f->io.fsync_dir = sync_nothing;
	(void)snprintf(f->dir, sizeof(f->dir), "%s/XXXXXX", testing_tmpdir());
	CHECK(mkdtemp(f->dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	CHECK_OK(store_init_with(&f->io, path, NULL));
	open_store(f);
	for (size_t i = 0; i < 4; i++)
		CHECK_OK(incr_dataset_create(f->st, names[i], NULL, NULL, &id,
					     NULL));
	f->inputs[0].alias = lit("in");
	f->inputs[0].dataset = lit("in");
	f->inputs[1].alias = lit("in2");
	f->inputs[1].dataset = lit("in2");
	f->outputs[0].alias = lit("out");
	f->outputs[0].dataset = lit("out");
	f->outputs[1].alias = lit("out2");
	f->outputs[1].dataset = lit("out2");
	f->t.name = lit("copy");
	f->t.semantic_version = 1;
	f->t.n_inputs = 1;
	f->t.inputs = f->inputs;
	f->t.n_outputs = 1;
	f->t.outputs = f->outputs;
	f->build_options.cwd = "/";
}

void fixture_tear_down(struct fixture *f)
{
	incr_store_close(f->st);
	incr_error_release(&f->err);
}

uint64_t fixture_dataset(struct fixture *f, const char *name)
{
	struct incr_dataset_info info = { 0 };
	uint64_t id;

	CHECK_OK(incr_dataset_find(f->st, name, &info, NULL));
	id = info.id;
	incr_dataset_info_release(&info);
	return id;
}

uint64_t fixture_head(struct fixture *f, const char *name, const char *branch)
{
	struct incr_branch_info info = { 0 };
	uint64_t head;

	if (incr_branch_find(f->st, fixture_dataset(f, name), branch, &info,
			     NULL) < 0)
		return 0;
	head = info.head;
	incr_branch_info_release(&info);
	return head;
}

static void write_letter(struct fixture *f, const char *dir, char letter)
{
	char path[600], content[32];
	int fd, n;

	(void)snprintf(path, sizeof(path), "%s/%c", dir, letter);
	n = snprintf(content, sizeof(content), "content %u\n", f->n_written++);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_INT_EQ(n, write(fd, content, (size_t)n));
	CHECK_INT_EQ(0, close(fd));
}

static uint64_t take_number(struct fixture *f, int r,
			    struct incr_txn_info *info)
{
	uint64_t number = info->number;

	(void)f;
	incr_txn_info_release(info);
	return r == 0 ? number : 0;
}

static uint64_t remove_letters(struct fixture *f,
			       const struct incr_txn_options *options,
			       const char *letters)
{
	struct incr_remove_flags flags = { .ignores_missing = true };
	struct incr_txn_info info = { 0 };
	const char *patterns[16];
	char texts[16][2];
	size_t n = 0;
	int r;

	for (; letters[n]; n++) {
		texts[n][0] = letters[n];
		texts[n][1] = '\0';
		patterns[n] = texts[n];
	}
	if (!n)
		patterns[n++] = "nothing-there";
	r = incr_remove(f->st, options, patterns, n, flags, &info, &f->err);
	return take_number(f, r, &info);
}

uint64_t fixture_commit(struct fixture *f, const char *dataset,
			const char *branch, const struct history_txn *txn)
{
	struct incr_txn_options options = {
		.dataset_id = fixture_dataset(f, dataset),
		.branch = branch,
		.type = txn->type,
		.origin = txn->is_retention ? "retention" : NULL,
	};
	struct incr_source source = { .kind = INCR_SOURCE_PATH, .fd = -1 };
	struct incr_txn_info info = { 0 };
	char dir[512];
	int r;

	if (txn->type == INCR_DELETE)
		return remove_letters(f, &options, txn->paths);
	(void)snprintf(dir, sizeof(dir), "%s/source-%u", f->dir,
		       f->n_written++);
	CHECK_INT_EQ(0, mkdir(dir, 0755));
	for (const char *p = txn->paths; *p; p++)
		write_letter(f, dir, *p);
	source.path = dir;
	r = incr_commit(f->st, &options, &source, 1, &info, &f->err);
	return take_number(f, r, &info);
}

uint64_t fixture_history(struct fixture *f, const char *dataset,
			 const char *text)
{
	uint64_t number = 0;
	struct history h;

	CHECK(history_parse(text, &h));
	for (size_t i = 0; i < h.n; i++) {
		number = fixture_commit(f, dataset, NULL, &h.txns[i]);
		CHECK(number != 0);
	}
	return number;
}

void fixture_stage(struct fixture *f, const struct incr_build *b, size_t idx,
		   const char *letters)
{
	for (; *letters; letters++)
		write_letter(f, incr_build_staging(b, idx), *letters);
}

void fixture_stage_text(const struct incr_build *b, size_t idx,
			const char *name, const char *text)
{
	char path[600];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", incr_build_staging(b, idx),
		       name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_INT_EQ(strlen(text), write(fd, text, strlen(text)));
	CHECK_INT_EQ(0, close(fd));
}

struct incr_build *fixture_begin(struct fixture *f,
				 enum incr_decision *out_decision)
{
	struct incr_build *b = NULL;
	struct incr_plan plan = { 0 };
	enum incr_decision ignored;

	if (!out_decision)
		out_decision = &ignored;
	*out_decision = (enum incr_decision)0;
	if (incr_build_begin(f->st, &f->t, &f->plan_options, &f->build_options,
			     &b, &plan, &f->err) < 0)
		return NULL;
	*out_decision = plan.decision;
	incr_plan_release(&plan);
	return b;
}

int fixture_end(struct fixture *f, struct incr_build *b,
		struct incr_build_info *out_info)
{
	struct incr_build_info info = { 0 };
	int r = incr_build_commit(b, &f->commit_options,
				  out_info ? out_info : &info, &f->err);

	incr_build_info_release(&info);
	incr_build_close(b);
	return r;
}

enum incr_decision fixture_run(struct fixture *f, const char *letters)
{
	enum incr_decision decision;
	struct incr_build *b = fixture_begin(f, &decision);

	if (!b)
		return decision;
	fixture_stage(f, b, 0, letters);
	return fixture_end(f, b, NULL) == 0 ? decision : (enum incr_decision)0;
}

static void check_decision(enum incr_decision want, enum incr_decision got)
{
	CHECK_STR_EQ(incr_decision_name(want),
		     got ? incr_decision_name(got) : "failed");
}

void fixture_check_run(struct fixture *f, enum incr_decision want,
		       const char *letters)
{
	check_decision(want, fixture_run(f, letters));
}

static void join_codes(const struct incr_plan *plan, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < plan->n_reasons && used < size; i++) {
		int n = snprintf(out + used, size - used, "%s%s", i ? " " : "",
				 incr_reason_name(plan->reasons[i].code));

		used += n > 0 ? (size_t)n : 0;
	}
}

void fixture_check_plan(struct fixture *f, enum incr_decision want,
			const char *codes)
{
	struct incr_plan plan = { 0 };
	char got[1024];

	CHECK_OK(
		incr_plan_make(f->st, &f->t, &f->plan_options, &plan, &f->err));
	check_decision(want, plan.decision);
	join_codes(&plan, got, sizeof(got));
	if (codes)
		CHECK_STR_EQ(codes, got);
	incr_plan_release(&plan);
}

void fixture_check_view(struct incr_view *v, const char *letters)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it = NULL;
	char got[64];
	size_t n = 0;

	REQUIRE(v != NULL);
	REQUIRE_OK(incr_view_iter_new(v, NULL, 0, &it, NULL));
	while (incr_view_iter_next(it, &node, NULL) == 0 && n + 1 < sizeof(got))
		got[n++] = node.path[0];
	got[n] = '\0';
	CHECK_STR_EQ(letters, got);
	CHECK_INT_EQ(n, incr_view_n_files(v));
	incr_node_release(&node);
	incr_view_iter_free(it);
}

void fixture_check_dataset(struct fixture *f, const char *dataset,
			   const char *letters)
{
	struct incr_view *v = NULL;

	REQUIRE_OK(incr_view_open(f->st, fixture_dataset(f, dataset),
				  fixture_head(f, dataset, NULL), &v, NULL));
	fixture_check_view(v, letters);
	incr_view_unref(v);
}

void fixture_check_type(struct fixture *f, const char *dataset,
			enum incr_txn_type want)
{
	struct incr_txn_info info = { 0 };

	REQUIRE_OK(incr_txn_find(f->st, fixture_head(f, dataset, NULL), &info,
				 NULL));
	CHECK_STR_EQ(incr_txn_type_name(want), incr_txn_type_name(info.type));
	incr_txn_info_release(&info);
}
