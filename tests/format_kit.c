/* Stores with fixed bytes, and their listing. */
#include "config.h"

#include "format_kit.h"

#include "build_record.h"
#include "commit.h"
#include "error.h"
#include "hash.h"
#include "testing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIME_START INT64_C(1767225600000000000) /* 2026-01-01 00:00:00 UTC */
#define SECOND INT64_C(1000000000)

/* ---- an io table without chance ---- */

static uint64_t n_random;
static int64_t n_looks;
static struct incr_io fixed_io;

static int counting_random(const struct incr_io *io, void *data, size_t size)
{
	uint8_t *bytes = data;

	(void)io;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t v = ++n_random;
		uint8_t word[8];

		put_u64(word, v);
		put_u64(word, hash64(word, sizeof(word)));
		memcpy(bytes + i, word, size - i < 8 ? size - i : 8);
	}
	return 0;
}

static int64_t counting_now(const struct incr_io *io)
{
	(void)io;
	return TIME_START + n_looks++ * SECOND;
}

/* One thread and one store at a time: the table may be global. */
static const struct incr_io *begin_io(void)
{
	n_random = 0;
	n_looks = 0;
	fixed_io = io_posix;
	fixed_io.random = counting_random;
	fixed_io.now_ns = counting_now;
	return &fixed_io;
}

/* ---- making ---- */

/* A store being made; after the first failure, r, every step does nothing. */
struct maker {
	struct incr_store *st;
	const char *scratch;
	struct incr_error *err;
	int r;
	int64_t mtime_ns;
	char tree[512]; /* of the sources of the next commit */
	unsigned n_trees;
};

static void begin_store(struct maker *m, const char *path)
{
	const struct incr_io *io = begin_io();

	m->mtime_ns = TIME_START;
	m->r = store_init_with(io, path, m->err);
	if (m->r == 0)
		m->r = store_open_with(io, path, NULL, &m->st, m->err);
}

static void begin_tree(struct maker *m)
{
	(void)snprintf(m->tree, sizeof(m->tree), "%s/tree%u", m->scratch,
		       m->n_trees++);
	if (mkdir(m->tree, 0755) < 0)
		abort();
}

/* A source file; its directory is made too. */
static void add_file(struct maker *m, const char *name, mode_t mode,
		     const void *data, size_t size)
{
	char path[1024];
	struct timespec times[2];
	const char *slash = strchr(name, '/');
	int fd;

	if (slash) {
		(void)snprintf(path, sizeof(path), "%s/%.*s", m->tree,
			       (int)(slash - name), name);
		(void)mkdir(path, 0755); /* may be there */
	}
	(void)snprintf(path, sizeof(path), "%s/%s", m->tree, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	m->mtime_ns += SECOND;
	times[0] = times[1] =
		(struct timespec){ .tv_sec = (time_t)(m->mtime_ns / SECOND),
				   .tv_nsec = (long)(m->mtime_ns % SECOND) };
	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
	    fchmod(fd, mode) < 0 || futimens(fd, times) < 0 || close(fd) < 0)
		abort();
}

static void add_text(struct maker *m, const char *name, const char *text)
{
	add_file(m, name, 0644, text, strlen(text));
}

static void commit(struct maker *m, uint64_t dataset_id, const char *branch,
		   enum incr_txn_type type, const char *message)
{
	struct incr_txn_options options = { .dataset_id = dataset_id,
					    .branch = branch,
					    .type = type,
					    .message = message };
	struct incr_source source = { .path = m->tree };

	if (m->r == 0)
		m->r = incr_commit(m->st, &options, &source, 1, NULL, m->err);
}

static void remove_path(struct maker *m, uint64_t dataset_id, const char *path,
			const char *message)
{
	struct incr_txn_options options = { .dataset_id = dataset_id,
					    .origin = "retention",
					    .message = message };
	struct incr_remove_flags flags = { false, false };

	if (m->r == 0)
		m->r = incr_remove(m->st, &options, &path, 1, flags, NULL,
				   m->err);
}

static uint64_t create_dataset(struct maker *m, const char *name,
			       const char *description,
			       const struct incr_pairs *meta)
{
	uint64_t id = 0;

	if (m->r == 0)
		m->r = incr_dataset_create(m->st, name, description, meta, &id,
					   m->err);
	return id;
}

int format_make_example(const char *path, const char *scratch,
			struct incr_error *err)
{
	struct maker m = { .scratch = scratch, .err = err };
	uint64_t id;

	begin_store(&m, path);
	id = create_dataset(&m, "books", "A shelf", NULL);
	begin_tree(&m);
	add_text(&m, "a.txt", "hello\n");
	add_text(&m, "b/c.txt", "world\n");
	commit(&m, id, NULL, INCR_SNAPSHOT, "first");
	remove_path(&m, id, "b/c.txt", NULL);
	incr_store_close(m.st);
	return m.r;
}

#define LARGE_SIZE ((size_t)200000)
#define NOISE_SIZE ((size_t)1500)

/* Lines of text, which compress well. */
static void fill_text(uint8_t *data, size_t size)
{
	char line[48];
	size_t n = 0;

	for (unsigned i = 0; n < size; i++) {
		size_t length = (size_t)snprintf(
			line, sizeof(line), "%u bottles of beer\n", i % 99);

		if (length > size - n)
			length = size - n;
		memcpy(data + n, line, length);
		n += length;
	}
}

static void fill_noise(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint8_t word[8];

		put_u64(word, i);
		data[i] = (uint8_t)hash64(word, sizeof(word));
	}
}

/* t1 to t3 and t5, t6 on main, t4 on dev. */
static void make_apples(struct maker *m)
{
	static uint8_t large[LARGE_SIZE], noise[NOISE_SIZE];
	struct incr_pair pair = { (char *)"season", (char *)"autumn" };
	struct incr_pairs meta = { 1, &pair };
	uint64_t id = create_dataset(m, "fruit/apples", "By day", &meta);

	fill_text(large, sizeof(large));
	fill_noise(noise, sizeof(noise));
	begin_tree(m);
	add_text(m, "a.txt", "golden delicious\n");
	add_text(m, "dir/b.txt", "braeburn\n");
	add_text(m, "empty", "");
	add_file(m, "poem.txt", 0600, large, 4000);
	commit(m, id, NULL, INCR_SNAPSHOT, "first");
	if (m->r == 0)
		m->r = incr_schema_set(m->st, id, NULL, "{\"a\": 1}", 8,
				       m->err);
	begin_tree(m);
	add_file(m, "large.txt", 0644, large, sizeof(large));
	add_file(m, "no\xffise\n", 0444, noise, sizeof(noise));
	commit(m, id, NULL, INCR_APPEND, "a pack");
	begin_tree(m);
	large[150000] = '*';
	add_file(m, "large.txt", 0755, large, sizeof(large));
	add_text(m, "a.txt", "gala\n");
	commit(m, id, NULL, INCR_UPDATE, "shares two frames");
	if (m->r == 0)
		m->r = incr_branch_create(m->st, id, "dev", "main", 2, m->err);
	begin_tree(m);
	add_text(m, "dev.txt", "on a branch\n");
	commit(m, id, "dev", INCR_APPEND, NULL);
	remove_path(m, id, "dir/b.txt", "expired");
	if (m->r == 0)
		m->r = incr_branch_reset(m->st, id, "main", 3, m->err);
	begin_tree(m);
	add_text(m, "z.txt", "after the reset\n");
	commit(m, id, NULL, INCR_APPEND, NULL);
	if (m->r == 0)
		m->r = incr_branch_create(m->st, id, "gone", NULL, 0, m->err);
	if (m->r == 0)
		m->r = incr_branch_delete(m->st, id, "gone", m->err);
}

/* Renamed, described and deleted datasets; t7 stays open, t8 is aborted. */
static void make_others(struct maker *m)
{
	struct incr_pair pair = { (char *)"kept", (char *)"yes" };
	struct incr_pairs meta = { 1, &pair };
	struct incr_txn_options options = { .type = INCR_APPEND };
	struct incr_source source = { .path = m->tree, .name = "pear" };
	uint64_t number, id = create_dataset(m, "pears", NULL, NULL), trash;
	char path[1024];

	if (m->r == 0)
		m->r = incr_dataset_rename(m->st, id, "fruit/pears and more",
					   m->err);
	if (m->r == 0)
		m->r = incr_dataset_set_meta(m->st, id, &meta, m->err);
	trash = create_dataset(m, "trash", NULL, NULL);
	if (m->r == 0)
		m->r = incr_dataset_delete(m->st, trash, m->err);
	begin_tree(m);
	add_text(m, "pear", "conference\n");
	(void)snprintf(path, sizeof(path), "%s/pear", m->tree);
	source.path = path;
	options.dataset_id = id;
	if (m->r == 0)
		m->r = incr_txn_begin(m->st, &options, &number, m->err);
	if (m->r == 0)
		m->r = incr_txn_put(m->st, number, "x/pear", &source, false,
				    m->err);
	options.dataset_id = 1;
	if (m->r == 0)
		m->r = incr_txn_begin(m->st, &options, &number, m->err);
	if (m->r == 0)
		m->r = incr_txn_abort(m->st, number, m->err);
}

/* What a build of transform "press" from fruit/apples to juice would record. */
static int encode_build(struct maker *m, uint64_t txn, struct buf *out)
{
	struct incr_transform_input in = { .alias = (char *)"apples",
					   .dataset = (char *)"fruit/apples" };
	struct incr_transform_output to = { .alias = (char *)"juice",
					    .dataset = (char *)"juice" };
	struct incr_reason reason = { .code = INCR_REASON_FIRST_BUILD,
				      .message = (char *)"no build before" };
	struct incr_plan_input input = { .branch = (char *)"main",
					 .dataset_id = 1,
					 .view_start = 1,
					 .view_end = 6,
					 .read_end = 6,
					 .is_new = true };
	struct incr_plan_output output = { .branch = (char *)"main",
					   .dataset_id = 4,
					   .branch_exists = true,
					   .branch_id = 6,
					   .write_mode = INCR_MODE_REPLACE,
					   .txn_type = INCR_SNAPSHOT,
					   .txn = txn };
	char *command[] = { (char *)"press", (char *)"--dry" };
	struct incr_build_info info = { .exit_code = txn ? 0 : -1,
					.started_ns = TIME_START,
					.ended_ns = txn ? TIME_START + 1 : 0,
					.user = (char *)FORMAT_USER,
					.host = (char *)"mill",
					.cwd = (char *)"/srv" };

	info.plan = (struct incr_plan){ .decision = INCR_DECISION_SNAPSHOT,
					.n_reasons = 1,
					.reasons = &reason,
					.n_inputs = 1,
					.inputs = &input,
					.n_outputs = 1,
					.outputs = &output };
	info.plan.transform = (struct incr_transform){ .name = (char *)"press",
						       .n_inputs = 1,
						       .inputs = &in,
						       .n_outputs = 1,
						       .outputs = &to,
						       .semantic_version = 1,
						       .n_command = 2,
						       .command = command };
	return build_record_encode(&info, out) < 0 ? incr_fail_nomem(m->err) :
						     0;
}

static void append_build(struct maker *m, enum fact_type type, uint64_t number,
			 enum incr_build_status status)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, record = BUF_INIT;
	struct fact_build f = { .number = number,
				.status = status,
				.transform = text_of("press") };

	if (m->r == 0)
		m->r = encode_build(m, 0, &record);
	f.payload = (struct text){ (const char *)record.data, record.size };
	if (m->r == 0 && fact_encode_build(&f, &payload) < 0)
		m->r = incr_fail_nomem(m->err);
	if (m->r == 0)
		m->r = store_append_fact(m->st, type, &payload, m->err);
}

static int build_of_commit(void *closure, const struct commit_request *request,
			   struct fact_build *out_build,
			   struct buf *out_payload, struct incr_error *err)
{
	(void)err;
	out_build->number = request->build;
	out_build->status = INCR_BUILD_COMMITTED;
	out_build->transform = text_of("press");
	return encode_build(closure, request->items[0].number, out_payload);
}

/* b1, with t9; b2 fails; t10 by hand. */
static void make_builds(struct maker *m)
{
	uint64_t id = create_dataset(m, "juice", NULL, NULL);
	struct ingest_result content = { 0 };
	struct commit_item item = { .dataset_id = id,
				    .branch_id = 6,
				    .type = INCR_SNAPSHOT,
				    .origin = text_of("build"),
				    .user = text_of(FORMAT_USER),
				    .message = text_of(NULL),
				    .pairs = text_of(NULL),
				    .opened_ns = TIME_START,
				    .content = &content };
	struct commit_request request = { .n_items = 1,
					  .items = &item,
					  .encode_build = build_of_commit,
					  .closure = m,
					  .build = 1 };
	struct ingest_options options;
	struct ingest *g = NULL;

	append_build(m, FACT_BUILD_OPENED, 1, INCR_BUILD_OPEN);
	begin_tree(m);
	add_text(m, "juice.txt", "sweet\n");
	if (m->r < 0)
		return;
	commit_ingest_options(m->st, NULL, false, &options);
	m->r = ingest_new(&options, &g, m->err);
	if (m->r == 0)
		m->r = ingest_add_tree(g, AT_FDCWD, m->tree, NULL, m->err);
	if (m->r == 0)
		m->r = ingest_run(g, &content, m->err);
	if (m->r == 0)
		m->r = commit_append(m->st, &request, m->err);
	ingest_result_release(&content);
	ingest_free(g);
	append_build(m, FACT_BUILD_OPENED, 2, INCR_BUILD_OPEN);
	append_build(m, FACT_BUILD_ENDED, 2, INCR_BUILD_FAILED);
	if (m->r == 0)
		m->r = index_flush(m->st->index, m->err);
	begin_tree(m);
	add_text(m, "juice.txt", "sour\n");
	commit(m, id, NULL, INCR_UPDATE, "by hand");
}

int format_make_full(const char *path, const char *scratch,
		     struct incr_error *err)
{
	struct maker m = { .scratch = scratch, .err = err };

	begin_store(&m, path);
	make_apples(&m);
	make_others(&m);
	make_builds(&m);
	incr_store_close(m.st);
	return m.r;
}

/* ---- files ---- */

const char *format_srcdir(void)
{
	const char *dir = getenv("INCR_SRCDIR");

	return dir ? dir : ".";
}

void format_join(char out[FORMAT_PATH_SIZE], const char *dir, const char *name)
{
	if (snprintf(out, FORMAT_PATH_SIZE, "%s/%s", dir, name) >=
	    FORMAT_PATH_SIZE)
		abort();
}

bool format_read(const char *dir, const char *name, struct buf *out)
{
	char path[FORMAT_PATH_SIZE];

	format_join(path, dir, name);
	return io_read_file(&io_posix, AT_FDCWD, path, SIZE_MAX, out, NULL) ==
	       0;
}

const char *format_store(void)
{
	static char path[FORMAT_PATH_SIZE];

	format_join(path, testing_tmpdir(), "store");
	return path;
}

int format_open(bool is_readonly, struct incr_store **out_st)
{
	struct incr_store_options options = { .is_readonly = is_readonly };

	return incr_store_open(format_store(), &options, out_st, NULL);
}
