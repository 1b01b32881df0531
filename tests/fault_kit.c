/* The store, the workloads and the checks of the fault sweeps. */
#include "config.h"

#include "fault_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fault_alloc.h"
#include "log.h"
#include "testing.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_TEXT "11111111-2222-3333-4444-555555555555\n"
#define DATASET UINT64_C(1)
#define STAGED UINT64_C(2) /* with an open transaction */
#define AFTER "zzz-after" /* the last by name */
#define FIRST_SEGMENT FAULT_STORE "/log/0000000000000000.log"

/* ---- the store to begin with ---- */

static int commit(struct incr_store *st, uint64_t dataset,
		  enum incr_txn_type type, const char *const *names,
		  struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = dataset,
					    .type = type,
					    .message = "a message" };
	struct incr_source sources[8];
	size_t n = 0;

	for (; names[n]; n++)
		sources[n] = (struct incr_source){ .path = names[n] };
	return incr_commit(st, &options, sources, n, NULL, err);
}

#define COMMIT(st, dataset, type, err, ...)                                   \
	commit(st, dataset, type, (const char *const[]){ __VA_ARGS__, NULL }, \
	       err)

struct sim *fault_base(void)
{
	struct sim *sim = sim_new();
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_txn_options open_options = { .dataset_id = STAGED,
						 .type = INCR_UPDATE };
	struct incr_source source = { .path = "small-1" };
	struct incr_store *st;
	uint64_t id, txn;

	sim_set_file(sim, BOOT_ID, BOOT_TEXT, strlen(BOOT_TEXT));
	sim_make_file(sim, "small-1", 300, 300, 1);
	sim_make_file(sim, "small-2", 900, 900, 2);
	sim_make_file(sim, "large-1", 70000, 70000, 3);
	sim_make_file(sim, "large-2", 150000, 150000, 4);
	sim_make_file(sim, "tree/a", 10, 10, 5);
	sim_make_file(sim, "tree/dir/b", 2000, 2000, 6);
	sim_make_file(sim, "tree/dir/c", 0, 0, 7);
	if (store_init_with(sim_io(sim), FAULT_STORE, &err) < 0 ||
	    store_open_with(sim_io(sim), FAULT_STORE, NULL, &st, &err) < 0 ||
	    incr_dataset_create(st, "dataset", "text", NULL, &id, &err) < 0 ||
	    incr_dataset_create(st, "staged", NULL, NULL, &id, &err) < 0 ||
	    incr_dataset_create(st, AFTER, NULL, NULL, &id, &err) < 0 ||
	    COMMIT(st, DATASET, INCR_APPEND, &err, "small-1", "tree") < 0 ||
	    COMMIT(st, DATASET, INCR_UPDATE, &err, "large-1") < 0 ||
	    index_flush(st->index, &err) < 0 ||
	    COMMIT(st, DATASET, INCR_UPDATE, &err, "small-2") < 0 ||
	    COMMIT(st, STAGED, INCR_UPDATE, &err, "small-2") < 0 ||
	    incr_txn_begin(st, &open_options, &txn, &err) < 0 ||
	    incr_txn_put(st, txn, "put/before", &source, false, &err) < 0)
		testing_die("cannot make the store", &err);
	incr_store_close(st);
	/* a new file under the old name, for updates */
	sim_make_file(sim, "small-1", 400, 400, 8);
	sim_make_file(sim, "tree/a", 20, 20, 9);
	return sim;
}

/* ---- workloads ---- */

static void ack(struct fault_run *run)
{
	fault_alloc_pause();
	if (run->is_clean)
		(void)store_text_fill(run->st, STORE_TEXT_ALL_VIEWS,
				      &run->acks[run->n_acks]);
	fault_alloc_resume();
	run->n_acks++;
}

static int acked(struct fault_run *run, int r)
{
	if (r >= 0)
		ack(run);
	return r < 0 ? r : 0;
}

static int run_append(struct fault_run *run)
{
	return acked(run, COMMIT(run->st, STAGED - 1, INCR_APPEND, &run->err,
				 "large-2"));
}

static int run_update(struct fault_run *run)
{
	return acked(run, COMMIT(run->st, DATASET, INCR_UPDATE, &run->err,
				 "small-1", "tree"));
}

static int run_snapshot(struct fault_run *run)
{
	return acked(run, COMMIT(run->st, DATASET, INCR_SNAPSHOT, &run->err,
				 "small-1", "small-2"));
}

static int run_large(struct fault_run *run)
{
	int r = COMMIT(run->st, DATASET, INCR_SNAPSHOT, &run->err, "large-1",
		       "large-2", "tree");

	r = acked(run, r);
	return r < 0 ? r :
		       acked(run, COMMIT(run->st, DATASET, INCR_UPDATE,
					 &run->err, "small-1"));
}

static int run_delete(struct fault_run *run)
{
	const char *patterns[] = { "dir/*", "large-1" };
	struct incr_txn_options options = { .dataset_id = DATASET };
	struct incr_remove_flags flags = { .is_recursive = true };

	return acked(run, incr_remove(run->st, &options, patterns, 2, flags,
				      NULL, &run->err));
}

static int run_txn(struct fault_run *run)
{
	struct incr_txn_options options = { .dataset_id = DATASET,
					    .type = INCR_UPDATE };
	struct incr_source source = { .path = "large-2" };
	struct incr_source small = { .path = "small-2" };
	uint64_t number;
	int r = acked(run,
		      incr_txn_begin(run->st, &options, &number, &run->err));

	if (r == 0)
		r = incr_txn_put(run->st, number, "some/where/large", &source,
				 false, &run->err);
	if (r == 0)
		r = incr_txn_put(run->st, number, "some/small", &small, false,
				 &run->err);
	if (r == 0)
		r = incr_txn_remove(run->st, number, "some/small", &run->err);
	if (r < 0)
		return r;
	return acked(run,
		     incr_txn_commit(run->st, number, false, NULL, &run->err));
}

struct open_txn {
	uint64_t number;
};

static int note_open(void *closure, const struct incr_txn_info *info)
{
	((struct open_txn *)closure)->number = info->number;
	return 0;
}

static int open_number(struct fault_run *run, uint64_t *out_number)
{
	struct open_txn found = { 0 };
	int r = incr_txn_list_open(run->st, note_open, &found, &run->err);

	*out_number = found.number;
	return r;
}

static int run_txn_commit(struct fault_run *run)
{
	uint64_t number;
	int r = open_number(run, &number);

	return r < 0 ? r :
		       acked(run, incr_txn_commit(run->st, number, false, NULL,
						  &run->err));
}

static int run_txn_abort(struct fault_run *run)
{
	uint64_t number;
	int r = open_number(run, &number);

	return r < 0 ? r :
		       acked(run, incr_txn_abort(run->st, number, &run->err));
}

static int run_branches(struct fault_run *run)
{
	struct incr_branch_info main = { 0 };
	int r = incr_branch_find(run->st, DATASET, NULL, &main, &run->err);
	uint64_t head = main.head;

	incr_branch_info_release(&main);
	if (r == 0)
		r = acked(run, incr_branch_create(run->st, DATASET, "side",
						  "main", head, &run->err));
	if (r == 0)
		r = acked(run, incr_branch_reset(run->st, DATASET, "main", 2,
						 &run->err));
	if (r == 0)
		r = acked(run, incr_branch_delete(run->st, DATASET, "side",
						  &run->err));
	return r;
}

static int run_datasets(struct fault_run *run)
{
	struct incr_pair pair = { (char *)"key", (char *)"value" };
	struct incr_pairs pairs = { 1, &pair };
	uint64_t id;
	int r = acked(run, incr_dataset_create(run->st, "a/new one", "text",
					       &pairs, &id, &run->err));

	if (r == 0)
		r = acked(run, incr_dataset_rename(run->st, id, "a/newer",
						   &run->err));
	if (r == 0)
		r = acked(run, incr_dataset_set_meta(run->st, DATASET, &pairs,
						     &run->err));
	if (r == 0)
		r = acked(run, incr_schema_set(run->st, DATASET, NULL, "{}", 2,
					       &run->err));
	if (r == 0)
		r = acked(run, incr_dataset_delete(run->st, id, &run->err));
	return r;
}

static int run_flush(struct fault_run *run)
{
	int r = index_flush(run->st->index, &run->err);

	if (r == 0)
		r = run_update(run);
	return r < 0 ? r : index_flush(run->st->index, &run->err);
}

/* A read that fails is a finding; everything else is none. */
static int count_other(void *closure, const struct incr_finding *f)
{
	if (!f->is_left_over && strcmp(f->word, "read-error") != 0)
		++*(size_t *)closure;
	return 0;
}

static int run_verify(struct fault_run *run)
{
	struct incr_verify_options options = { .reads_data = true };
	struct incr_verify_result result;
	size_t n_other = 0;
	int r;

	run->st->verify_alone_size = 0; /* threads read it */
	r = incr_verify(run->st, &options, count_other, &n_other, &result,
			&run->err);
	if (r == 0 && n_other)
		return incr_fail(&run->err, INCR_E_CORRUPT, "finding", NULL,
				 "a fault of the system is no damage");
	if (r == 0 && result.n_findings)
		return incr_fail_errno(&run->err, EIO, NULL,
				       "what cannot be read is told");
	return r;
}

static int read_file(struct incr_view *view, const struct incr_node *node,
		     struct incr_error *err)
{
	char data[4096];
	uint64_t off = 0;
	size_t n;
	int r;

	do {
		r = incr_file_read(view, node, off, data, sizeof(data), &n,
				   err);
		off += n;
	} while (r == 0 && n == sizeof(data));
	return r;
}

/* All files of the view, a directory, and what changed. */
static int read_view(struct fault_run *run, struct incr_view *view)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	struct incr_dir_iter *dir;
	int r = incr_view_iter_new(view, NULL, 0, &it, &run->err);

	if (r < 0)
		return r;
	while ((r = incr_view_iter_next(it, &node, &run->err)) == 0) {
		r = read_file(view, &node, &run->err);
		if (r < 0)
			break;
	}
	incr_view_iter_free(it);
	if (r >= 0)
		r = incr_view_find(view, "dir/b", 5, &node, &run->err);
	if (r >= 0)
		r = incr_dir_iter_new(view, "dir", 3, UINT64_MAX, 0, &dir,
				      &run->err);
	if (r >= 0) {
		do
			r = incr_dir_iter_next(dir, &node, &run->err);
		while (r == 0);
		incr_dir_iter_free(dir);
	}
	incr_node_release(&node);
	return r;
}

static int read_changes(struct fault_run *run, struct incr_view *view)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_changes *changes = NULL;
	struct incr_view *first;
	enum incr_change change;
	uint64_t txn;
	int r = incr_view_open(run->st, DATASET, 1, &first, &run->err);

	if (r < 0)
		return r;
	run->st->n_changes_in_memory = 0; /* a table is written */
	r = incr_changes_new(first, view, &changes, &run->err);
	while (r == 0)
		r = incr_changes_next(changes, &change, &node, &txn, &run->err);
	incr_node_release(&node);
	incr_changes_free(changes);
	incr_view_unref(first);
	return r < 0 ? r : 0;
}

static int run_read(struct fault_run *run)
{
	struct incr_branch_info main = { 0 };
	struct incr_view *view = NULL;
	int r = incr_branch_find(run->st, DATASET, NULL, &main, &run->err);
	uint64_t head = main.head;

	incr_branch_info_release(&main);
	if (r == 0)
		r = incr_view_open(run->st, DATASET, head, &view, &run->err);
	if (r < 0)
		return r;
	r = read_view(run, view);
	if (r >= 0)
		r = read_changes(run, view);
	incr_view_unref(view);
	return r;
}

static int open_store(struct fault_run *run, bool is_readonly)
{
	struct incr_store_options options = { .is_readonly = is_readonly };

	return store_open_with(run->io, FAULT_STORE, &options, &run->st,
			       &run->err);
}

static int run_open(struct fault_run *run)
{
	return open_store(run, false);
}

static int run_open_readonly(struct fault_run *run)
{
	int r = open_store(run, true);

	return r < 0 ? r : run_read(run);
}

static int run_open_update(struct fault_run *run)
{
	int r = open_store(run, false);

	return r < 0 ? r : run_update(run);
}

const struct fault_workload fault_workloads[] = {
	{ "append", FAULT_IS_OPEN, run_append, false },
	{ "update", FAULT_IS_OPEN, run_update, true },
	{ "snapshot", FAULT_IS_OPEN, run_snapshot, true },
	{ "large", FAULT_IS_OPEN, run_large, true },
	{ "delete", FAULT_IS_OPEN, run_delete, false },
	{ "txn", FAULT_IS_OPEN, run_txn, false },
	{ "txn-commit", FAULT_IS_OPEN, run_txn_commit, false },
	{ "txn-abort", FAULT_IS_OPEN, run_txn_abort, false },
	{ "branches", FAULT_IS_OPEN, run_branches, false },
	{ "datasets", FAULT_IS_OPEN, run_datasets, false },
	{ "flush", FAULT_IS_OPEN, run_flush, true },
	{ "verify", FAULT_IS_OPEN, run_verify, false },
	{ "read", FAULT_IS_OPEN, run_read, false },
	{ "open", FAULT_IS_CLOSED, run_open, false },
	{ "open-readonly", FAULT_IS_CLOSED, run_open_readonly, false },
	{ "open-replay", FAULT_IS_TORN, run_open_update, true },
	{ "open-unsynced", FAULT_IS_UNSYNCED, run_open_update, true },
	{ NULL, FAULT_IS_OPEN, NULL, false },
};

/* ---- running ---- */

/* Half a record behind the last one, and no index: as after a power cut. */
static void tear(struct sim *sim)
{
	size_t size, half = 100;
	uint8_t *log = sim_file(sim, FIRST_SEGMENT, &size);
	uint8_t *bytes = malloc(size + half);

	if (!bytes)
		abort();
	memcpy(bytes, log, size);
	memcpy(bytes + size, log + LOG_SEGMENT_HEADER_SIZE, half);
	sim_set_file(sim, FIRST_SEGMENT, bytes, size + half);
	free(bytes);
	sim_remove_file(sim, FAULT_STORE "/index/current");
}

/* A sync of the log failed in another process, which noted it in the hint. */
static void fail_sync(struct sim *sim)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct fault_table table;
	struct incr_store *st;

	fault_table_init(&table, sim_io(sim));
	table.only = FAULT_FDATASYNC;
	table.fail_errno = EIO;
	table.fail_at = 1;
	if (store_open_with(&table.io, FAULT_STORE, NULL, &st, &err) < 0)
		testing_die("cannot open", &err);
	if (incr_dataset_set_meta(st, DATASET, &(struct incr_pairs){ 0 },
				  &err) != INCR_E_IO)
		testing_die("no sync failed", &err);
	incr_store_close(st);
	incr_error_release(&err);
}

void fault_run_init(struct fault_run *run, const struct fault_workload *w,
		    struct sim *base)
{
	*run = (struct fault_run){ .sim = sim_copy(base) };
	run->io = sim_io(run->sim);
	if (w->start == FAULT_IS_TORN)
		tear(run->sim);
	if (w->start == FAULT_IS_UNSYNCED)
		fail_sync(run->sim);
}

const char *fault_close(struct fault_run *run)
{
	long n_live;

	incr_store_close(run->st);
	run->st = NULL;
	n_live = fault_alloc.n_live;
	fault_alloc_stop();
	if (n_live != 0)
		return "memory leaks";
	return sim_n_open(run->sim) != 0 ? "descriptors leak" : NULL;
}

void fault_run_release(struct fault_run *run)
{
	incr_store_close(run->st);
	for (size_t i = 0; i < FAULT_ACKS_MAX; i++)
		store_text_release(&run->acks[i]);
	incr_error_release(&run->err);
	sim_free(run->sim);
}

void fault_run_clean(const struct fault_workload *w, struct sim *base,
		     struct fault_run *out_clean)
{
	struct fault_run *run = out_clean;

	fault_run_init(run, w, base);
	run->is_clean = true;
	/* in a handle of its own: what stands there before the first step */
	if (open_store(run, true) < 0)
		testing_die(w->name, &run->err);
	ack(run);
	incr_store_close(run->st);
	run->st = NULL;
	if ((w->start == FAULT_IS_OPEN && open_store(run, false) < 0) ||
	    w->run(run) < 0)
		testing_die(w->name, &run->err);
	incr_store_close(run->st);
	run->st = NULL;
}

/* ---- checking ---- */

int fault_commit_after(struct incr_store *st, struct incr_error *err)
{
	struct incr_dataset_info info = { 0 };
	int r = incr_dataset_find(st, AFTER, &info, err);

	if (r == 0)
		r = COMMIT(st, info.id, INCR_SNAPSHOT, err, "small-2",
			   "large-1");
	incr_dataset_info_release(&info);
	return r;
}

static bool has_after(const char *text)
{
	const char *at = strstr(text, "\n" AFTER);

	return at && strstr(at, "   large-1 ") && strstr(at, "   small-2 ");
}

/* The same up to the dataset of fault_commit_after(). */
static bool is_same(const struct store_text *want, const struct store_text *got)
{
	const char *end = strstr(want->text, "\n" AFTER);
	size_t n = end ? (size_t)(end - want->text) + strlen("\n" AFTER) : 0;

	return n && !strncmp(want->text, got->text, n);
}

static int print_finding(void *closure, const struct incr_finding *f)
{
	(void)closure;
	if (!f->is_left_over)
		printf("  finding: %s %s %" PRIu64 " t%" PRIu64 " %s\n",
		       f->word, f->file, f->off, f->txn, f->message);
	return 0;
}

static const char *check_open(struct incr_store *st,
			      const struct fault_run *clean,
			      const struct fault_run *run, bool may_be_ahead,
			      bool wants_after)
{
	size_t n_acks = run->n_acks;
	const struct store_text *want = run->acks[n_acks - 1].text ?
						&run->acks[n_acks - 1] :
						&clean->acks[n_acks - 1];
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	struct incr_error err = INCR_ERROR_INIT;
	struct store_text text = { 0 };
	const char *wrong = NULL;
	int r = store_text_fill(st, STORE_TEXT_ALL_VIEWS, &text);

	if (r < 0)
		wrong = "what is there cannot be read";
	else if (!is_same(want, &text) &&
		 !(may_be_ahead && n_acks < clean->n_acks &&
		   is_same(&clean->acks[n_acks], &text)))
		wrong = "an acknowledged change is lost, or one is half there";
	else if (wants_after && !has_after(text.text))
		wrong = "the commit after the fault is lost";
	if (wrong)
		printf("  want:\n%s  found:\n%s", want->text, text.text);
	store_text_release(&text);
	r = incr_verify(st, &verify, print_finding, NULL, &result, &err);
	if (!wrong && (r < 0 || result.n_findings))
		wrong = "verify is not content";
	if (!wrong && fault_commit_after(st, &err) < 0)
		wrong = "the next commit does not succeed";
	if (err.code)
		printf("  %s: %s %s\n", err.word, err.message, err.thing);
	incr_error_release(&err);
	return wrong;
}

const char *fault_check(struct sim *sim, const struct fault_run *clean,
			const struct fault_run *run, bool may_be_ahead,
			bool wants_after)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	const char *wrong;

	if (store_open_with(sim_io(sim), FAULT_STORE, NULL, &st, &err) < 0) {
		printf("  open: %s: %s %s\n", err.word, err.message, err.thing);
		incr_error_release(&err);
		return "the store does not open";
	}
	wrong = check_open(st, clean, run, may_be_ahead, wants_after);
	incr_store_close(st);
	return wrong;
}
