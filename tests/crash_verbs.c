/* The crash simulation: what is done to the store. */
#include "config.h"

#include "crash_verbs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "testing.h"

#define FOLDER "folder"

void crash_describe(struct incr_store *st, struct store_text *out)
{
	(void)store_text_fill(st, STORE_TEXT_BUILDS, out);
}

static void acknowledge(struct crash_run *run)
{
	struct crash_ack *a = &run->acks[run->n_acks++];

	if (run->n_acks > CRASH_ACKS_MAX)
		abort();
	a->at = sim_n_ops(run->sim);
	crash_describe(run->st, &a->description);
}

/* A file of the simulated file system; its making is no part of the store. */
static void make_file(struct crash_run *run, const char *path, size_t size)
{
	const struct incr_io *io = sim_io(run->sim);
	uint8_t *data = malloc(size);
	uint64_t state = ++run->n_files;
	int fd = io->open_at(io, AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC,
			     0644);

	if (!data || fd < 0)
		abort();
	for (size_t i = 0; i < size; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		data[i] = (uint8_t)(state >> 56);
	}
	(void)io->pwrite(io, fd, data, size, 0);
	(void)io->close(io, fd);
	free(data);
}

int crash_commit(struct crash_run *run, uint64_t dataset,
		 enum incr_txn_type type, const char *name, size_t size,
		 struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = dataset,
					    .type = type };
	struct incr_source sources[3] = { { .path = "source", .name = name },
					  { .path = "source",
					    .name = "always/here" },
					  { .path = "known" } };
	size_t n = type == INCR_APPEND ? 1 : 3;
	char known[32];

	/* the same bytes at ever another path: the first commit has stored them */
	if (!run->has_known)
		make_file(run, "known", 3000);
	run->has_known = true;
	snprintf(known, sizeof(known), "known/%u", (unsigned)run->n_files);
	sources[2].name = known;
	make_file(run, "source", size);
	return incr_commit(run->st, &options, sources, n, NULL, err);
}

/* Mostly files that stay: from the second one on it is relative. */
static int commit_snapshot(struct crash_run *run, const char *name,
			   struct incr_error *err)
{
	static const char *const names[] = { "kept/1", "kept/2", "kept/3",
					     "kept/4", "kept/5", "kept/6" };
	struct incr_txn_options options = { .dataset_id = run->dataset,
					    .type = INCR_SNAPSHOT };
	struct incr_source sources[8] = { { .path = "source", .name = name },
					  { .path = "source",
					    .name = "always/here" } };

	if (!run->has_kept)
		make_file(run, "kept", 300);
	run->has_kept = true;
	for (size_t i = 0; i < 6; i++)
		sources[i + 2] = (struct incr_source){ .path = "kept",
						       .name = names[i] };
	make_file(run, "source", 900);
	return incr_commit(run->st, &options, sources, 8, NULL, err);
}

static int staged(struct crash_run *run, bool commits, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = run->dataset,
					    .type = INCR_UPDATE };
	struct incr_source source = { .path = "source" };
	uint64_t number;
	uint8_t *data;
	size_t size;
	int r;

	make_file(run, "source", 700);
	r = incr_txn_begin(run->st, &options, &number, err);
	if (r < 0)
		return r;
	acknowledge(run);
	r = incr_txn_put(run->st, number, "staged/file", &source, false, err);
	if (r < 0)
		return r;
	run->staged_at = sim_n_ops(run->sim);
	run->staged = number;
	data = sim_file(run->sim, "source", &size);
	run->staged_hash = 0;
	run->staged_hash = hash64_two(&run->staged_hash,
				      sizeof(run->staged_hash), data, size);
	return commits ? incr_txn_commit(run->st, number, false, NULL, err) :
			 incr_txn_abort(run->st, number, err);
}

static int reset_back(struct crash_run *run, struct incr_error *err)
{
	struct incr_branch_info info = { 0 };
	struct incr_txn_info t = { 0 };
	int r = incr_branch_find(run->st, run->dataset, NULL, &info, err);
	uint64_t head = info.head;

	incr_branch_info_release(&info);
	if (r < 0 || !head)
		return r;
	r = incr_txn_find(run->st, head, &t, err);
	if (r == 0)
		r = incr_branch_reset(run->st, run->dataset, "main",
				      t.parent ? t.parent : head, err);
	incr_txn_info_release(&t);
	return r;
}

/* The folder has one file that was there before, one changed and one new. */
static int sync_folder(struct crash_run *run, struct incr_error *err)
{
	const struct incr_io *io = sim_io(run->sim);
	struct incr_sync_options options = { .txn = { .dataset_id =
							      run->dataset },
					     .mode = INCR_SYNC_MIRROR,
					     .directory = FOLDER };
	struct incr_sync_result result;
	char path[64];
	int r;

	(void)io->mkdir_at(io, AT_FDCWD, FOLDER, 0755); /* or it is there */
	snprintf(path, sizeof(path), FOLDER "/new-%u", run->n_files);
	make_file(run, path, 400);
	make_file(run, FOLDER "/changes", 300);
	r = incr_sync(run->st, &options, &result, err);
	return r < 0 ? r : 0;
}

/* The id of a dataset, which is made if there is none. */
static int output_dataset(struct crash_run *run, const char *name,
			  struct incr_error *err)
{
	struct incr_dataset_info info = { 0 };
	uint64_t id;
	int r = incr_dataset_find(run->st, name, &info, NULL);

	incr_dataset_info_release(&info);
	if (r == 0)
		return 0;
	r = incr_dataset_create(run->st, name, NULL, NULL, &id, err);
	if (r == 0)
		acknowledge(run);
	return r;
}

/* No build: the input's branch was moved behind what was read. */
static int begin_build(struct crash_run *run, struct incr_build **out_build,
		       struct incr_error *err)
{
	char in[] = "in", out1[] = "out-1", out2[] = "out-2", name[] = "copy";
	struct incr_dataset_info info = { 0 };
	struct incr_transform_input input = { .alias = in };
	struct incr_transform_output outputs[] = {
		{ .alias = out1, .dataset = out1 },
		{ .alias = out2, .dataset = out2 },
	};
	struct incr_transform t = { .name = name,
				    .n_inputs = 1,
				    .inputs = &input,
				    .n_outputs = 2,
				    .outputs = outputs,
				    .semantic_version = 1 };
	struct incr_plan_options plan_options = { .is_forced = true };
	struct incr_build_options options = { .cwd = "/" };
	struct incr_plan plan = { 0 };
	int r = incr_dataset_by_id(run->st, run->dataset, &info, err);

	input.dataset = info.name;
	if (r == 0)
		r = incr_build_begin(run->st, &t, &plan_options, &options,
				     out_build, &plan, err);
	incr_dataset_info_release(&info);
	incr_plan_release(&plan);
	return r;
}

static void stage(struct crash_run *run, const struct incr_build *b, size_t idx,
		  size_t size)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/part-%u", incr_build_staging(b, idx),
		 run->n_files);
	make_file(run, path, size);
}

static int build(struct crash_run *run, bool commits, struct incr_error *err)
{
	struct incr_commit_build_options options = { .exit_code = 0,
						     .allows_empty = true };
	struct incr_build_info info = { 0 };
	struct incr_build *b = NULL;
	int r = output_dataset(run, "out-1", err);

	if (r == 0)
		r = output_dataset(run, "out-2", err);
	if (r == 0)
		r = begin_build(run, &b, err);
	if (r < 0 || !b)
		return r;
	acknowledge(run);
	stage(run, b, 0, 800);
	stage(run, b, 1, 70000);
	if (commits)
		r = incr_build_commit(b, &options, &info, err);
	else
		r = incr_build_abort(b, true, 3, &info, err);
	incr_build_info_release(&info);
	incr_build_close(b);
	return r;
}

static int run_verb(struct crash_run *run, enum crash_verb verb,
		    struct incr_error *err)
{
	const char *patterns[] = { "always/here" };
	struct incr_txn_options options = { .dataset_id = run->dataset };
	struct incr_remove_flags flags = { .ignores_missing = true };
	uint64_t dataset = run->dataset;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "file-%u", run->n_files);
	switch (verb) {
	case CRASH_SNAPSHOT:
		return commit_snapshot(run, name, err);
	case CRASH_APPEND:
		return crash_commit(run, dataset, INCR_APPEND, name, 1500, err);
	case CRASH_UPDATE:
		return crash_commit(run, dataset, INCR_UPDATE, name, 600, err);
	case CRASH_LARGE:
		return crash_commit(run, dataset, INCR_UPDATE, name, 90000,
				    err);
	case CRASH_DELETE:
		r = incr_remove(run->st, &options, patterns, 1, flags, NULL,
				err);
		return r < 0 ? r : 0;
	case CRASH_ABORT:
	case CRASH_STAGED:
		return staged(run, verb == CRASH_STAGED, err);
	case CRASH_BRANCH:
		snprintf(name, sizeof(name), "branch-%u", ++run->n_files);
		return incr_branch_create(run->st, dataset, name, "main", 0,
					  err);
	case CRASH_RESET:
		return reset_back(run, err);
	case CRASH_RENAME:
		snprintf(name, sizeof(name), "renamed-%u", ++run->n_files);
		return incr_dataset_rename(run->st, dataset, name, err);
	case CRASH_SYNC:
		return sync_folder(run, err);
	case CRASH_BUILD:
	case CRASH_BUILD_ABORT:
		return build(run, verb == CRASH_BUILD, err);
	case CRASH_FLUSH:
		return index_flush(run->st->index, err);
	default:
		return 0;
	}
}

void crash_run_record(struct crash_run *run, const enum crash_verb *verbs,
		      size_t n_verbs)
{
	struct incr_error err = INCR_ERROR_INIT;

	*run = (struct crash_run){ .sim = sim_new() };
	if (store_init_with(sim_io(run->sim), CRASH_STORE, &err) < 0 ||
	    store_open_with(sim_io(run->sim), CRASH_STORE, NULL, &run->st,
			    &err) < 0 ||
	    incr_dataset_create(run->st, "dataset", NULL, NULL, &run->dataset,
				&err) < 0 ||
	    crash_commit(run, run->dataset, INCR_APPEND, "first", 300, &err) <
		    0)
		testing_die("cannot start", &err);
	sim_start(run->sim);
	acknowledge(run);
	for (size_t i = 0; i < n_verbs; i++) {
		run->last_at = sim_n_ops(run->sim);
		if (run_verb(run, verbs[i], &err) < 0)
			testing_die("a verb failed without a fault", &err);
		acknowledge(run);
	}
	incr_store_close(run->st);
	run->st = NULL;
}

void crash_run_release(struct crash_run *run)
{
	for (size_t i = 0; i < run->n_acks; i++)
		store_text_release(&run->acks[i].description);
	sim_free(run->sim);
}
