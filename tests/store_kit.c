/* What the tests of the store share. */
#include "config.h"

#include "store_kit.h"

#include "error.h"
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 256

static void must(bool is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	abort();
}

struct incr_error *store_kit_err(struct store_kit *k)
{
	incr_error_release(&k->err);
	k->err = INCR_ERROR_INIT;
	return &k->err;
}

int store_kit_reopen_with(struct store_kit *k, const struct incr_io *io,
			  const struct incr_store_options *options)
{
	incr_store_close(k->st);
	k->st = NULL;
	k->io = io;
	return store_open_with(io, k->path, options, &k->st, store_kit_err(k));
}

int store_kit_reopen(struct store_kit *k)
{
	return store_kit_reopen_with(k, k->io, NULL);
}

bool store_kit_init_with(struct store_kit *k, const struct incr_io *io)
{
	*k = (struct store_kit){ 0 };
	snprintf(k->path, sizeof(k->path), "%s/store", testing_tmpdir());
	if (store_init_with(io, k->path, &k->err) < 0 ||
	    store_kit_reopen_with(k, io, NULL) < 0 ||
	    incr_dataset_create(k->st, "data", NULL, NULL, &k->dataset,
				&k->err) < 0) {
		fprintf(stderr, "%s\n", k->err.message);
		return false;
	}
	return true;
}

bool store_kit_init(struct store_kit *k)
{
	return store_kit_init_with(k, &io_posix);
}

void store_kit_release(struct store_kit *k)
{
	incr_store_close(k->st);
	incr_error_release(&k->err);
	free(k->text);
	*k = (struct store_kit){ 0 };
}

/* ---- committing ---- */

int store_kit_stream(const void *content, size_t size)
{
	int fd = memfd_create("content", MFD_CLOEXEC);

	must(fd >= 0, "memfd_create");
	must(write(fd, content, size) == (ssize_t)size, "write");
	must(lseek(fd, 0, SEEK_SET) == 0, "lseek");
	return fd;
}

struct incr_source store_kit_source(int fd, const char *path)
{
	return (struct incr_source){ .kind = INCR_SOURCE_STREAM,
				     .fd = fd,
				     .name = path };
}

static int remove_paths(struct store_kit *k,
			const struct incr_txn_options *options, char **paths,
			size_t n, struct incr_txn_info *info)
{
	struct incr_remove_flags flags = { .is_recursive = true };

	return incr_remove(k->st, options, (const char *const *)paths, n, flags,
			   info, store_kit_err(k));
}

/*
 * Files of one content have one time, as those have that nobody touched: a
 * SNAPSHOT of them may be relative.
 */
static char *make_source(size_t i, const char *content)
{
	const struct timespec times[2] = { { .tv_sec = 1700000000 },
					   { .tv_sec = 1700000000 } };
	char name[48];
	char *path;

	/* other processes of the test do the same */
	snprintf(name, sizeof(name), "source-%d-%zu", (int)getpid(), i);
	store_kit_write(name, content, strlen(content));
	path = store_kit_path(name);
	must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
	return path;
}

static int put_snapshot(struct store_kit *k,
			const struct incr_txn_options *options, char **words,
			char **contents, size_t n, struct incr_txn_info *info)
{
	struct incr_source sources[FILES_MAX];
	int r;

	for (size_t i = 0; i < n; i++)
		sources[i] = (struct incr_source){ .kind = INCR_SOURCE_PATH,
						   .fd = -1,
						   .path = make_source(
							   i, contents[i]),
						   .name = words[i] };
	r = incr_commit(k->st, options, sources, n, info, store_kit_err(k));
	for (size_t i = 0; i < n; i++) {
		(void)unlink(sources[i].path);
		free((char *)sources[i].path);
	}
	return r;
}

static int put_files(struct store_kit *k,
		     const struct incr_txn_options *options, char **words,
		     size_t n, struct incr_txn_info *info)
{
	struct incr_source sources[FILES_MAX];
	char *contents[FILES_MAX];
	int r;

	for (size_t i = 0; i < n; i++) {
		contents[i] = strchr(words[i], '=');
		if (contents[i])
			*contents[i]++ = '\0';
		else
			contents[i] = words[i] + strlen(words[i]);
	}
	if (options->type == INCR_SNAPSHOT)
		return put_snapshot(k, options, words, contents, n, info);
	for (size_t i = 0; i < n; i++)
		sources[i] = store_kit_source(
			store_kit_stream(contents[i], strlen(contents[i])),
			words[i]);
	r = incr_commit(k->st, options, sources, n, info, store_kit_err(k));
	for (size_t i = 0; i < n; i++)
		(void)close(sources[i].fd);
	return r;
}

int store_kit_commit_with(struct store_kit *k,
			  const struct incr_txn_options *options,
			  const char *files, uint64_t *out_number)
{
	struct incr_txn_info info = { 0 };
	char *copy = strdup(files);
	char *words[FILES_MAX], *save = NULL;
	size_t n = 0;
	int r;

	must(copy != NULL, "strdup");
	for (char *w = strtok_r(copy, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		must(n < FILES_MAX, "too many files");
		words[n++] = w;
	}
	r = options->type == INCR_DELETE ?
		    remove_paths(k, options, words, n, &info) :
		    put_files(k, options, words, n, &info);
	if (r == 0 && out_number)
		*out_number = info.number;
	incr_txn_info_release(&info);
	free(copy);
	return r;
}

uint64_t store_kit_commit(struct store_kit *k, enum incr_txn_type type,
			  const char *branch, const char *files)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .branch = branch,
					    .type = type };
	uint64_t number = 0;

	(void)store_kit_commit_with(k, &options, files, &number);
	return number;
}

int store_kit_put(struct store_kit *k, uint64_t txn, const char *path,
		  const char *content, bool overwrites)
{
	int fd = store_kit_stream(content, strlen(content));
	struct incr_source source = store_kit_source(fd, NULL);
	int r = incr_txn_put(k->st, txn, path, &source, overwrites,
			     store_kit_err(k));

	(void)close(fd);
	return r;
}

uint64_t store_kit_begin(struct store_kit *k, enum incr_txn_type type)
{
	struct incr_txn_options options = { .dataset_id = k->dataset,
					    .type = type };
	uint64_t number = 0;

	CHECK_OK(incr_txn_begin(k->st, &options, &number, store_kit_err(k)));
	return number;
}

int store_kit_txn_commit(struct store_kit *k, uint64_t txn)
{
	return incr_txn_commit(k->st, txn, false, NULL, store_kit_err(k));
}

int store_kit_txn_abort(struct store_kit *k, uint64_t txn)
{
	return incr_txn_abort(k->st, txn, store_kit_err(k));
}

int store_kit_make_branch(struct store_kit *k, const char *name, uint64_t at)
{
	return incr_branch_create(k->st, k->dataset, name, "main", at,
				  store_kit_err(k));
}

int store_kit_reset(struct store_kit *k, const char *name, uint64_t to)
{
	return incr_branch_reset(k->st, k->dataset, name, to, store_kit_err(k));
}

bool store_kit_is_on_path(struct store_kit *k, uint64_t txn, uint64_t head)
{
	bool is = false;

	CHECK_OK(incr_txn_is_on_path(k->st, txn, head, &is, store_kit_err(k)));
	return is;
}

uint64_t store_kit_head(struct store_kit *k, const char *branch)
{
	struct incr_branch_info info;
	uint64_t head;

	if (incr_branch_find(k->st, k->dataset, branch, &info,
			     store_kit_err(k)) < 0)
		return 0;
	head = info.head;
	incr_branch_info_release(&info);
	return head;
}

/* ---- looking ---- */

static void put_content(FILE *out, struct incr_view *v,
			const struct incr_node *node, struct incr_error *err)
{
	char data[256];
	size_t n;
	int r = incr_file_read(v, node, 0, data, sizeof(data), &n, err);

	if (r < 0)
		fprintf(out, "!%d", r);
	else
		fwrite(data, 1, n, out);
}

const char *store_kit_view_text(struct store_kit *k, struct incr_view *v)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	size_t size;
	FILE *out;
	int r;

	free(k->text);
	k->text = NULL;
	r = incr_view_iter_new(v, NULL, 0, &it, store_kit_err(k));
	if (r < 0)
		return k->err.word;
	out = open_memstream(&k->text, &size);
	must(out != NULL, "open_memstream");
	while ((r = incr_view_iter_next(it, &node, &k->err)) == 0) {
		fprintf(out, "%s%s=", ftell(out) ? " " : "", node.path);
		put_content(out, v, &node, &k->err);
		fprintf(out, "@t%" PRIu64, node.txn);
	}
	if (r < 0)
		fprintf(out, " !%s", k->err.word);
	incr_view_iter_free(it);
	incr_node_release(&node);
	(void)fclose(out);
	return k->text;
}

const char *store_kit_view(struct store_kit *k, uint64_t txn)
{
	struct incr_view *v;
	const char *text;

	if (incr_view_open(k->st, k->dataset, txn, &v, store_kit_err(k)) < 0)
		return k->err.word;
	text = store_kit_view_text(k, v);
	incr_view_unref(v);
	return text;
}

static const char *changes_text(struct store_kit *k, struct incr_changes *c)
{
	static const char marks[] = " +~-";
	struct incr_node node = INCR_NODE_INIT;
	enum incr_change change;
	uint64_t txn;
	size_t size;
	FILE *out;
	int r;

	free(k->text);
	k->text = NULL;
	out = open_memstream(&k->text, &size);
	must(out != NULL, "open_memstream");
	while ((r = incr_changes_next(c, &change, &node, &txn, &k->err)) == 0)
		fprintf(out, "%s%c%s@t%" PRIu64, ftell(out) ? " " : "",
			marks[change], node.path, txn);
	if (r < 0)
		fprintf(out, " !%s", k->err.word);
	incr_node_release(&node);
	(void)fclose(out);
	return k->text;
}

const char *store_kit_changes(struct store_kit *k, uint64_t from, uint64_t to)
{
	struct incr_view *a, *b;
	struct incr_changes *c;
	const char *text;
	int r;

	if (incr_view_open(k->st, k->dataset, from, &a, store_kit_err(k)) < 0)
		return k->err.word;
	if (incr_view_open(k->st, k->dataset, to, &b, &k->err) < 0) {
		incr_view_unref(a);
		return k->err.word;
	}
	r = incr_changes_new(a, b, &c, &k->err);
	text = k->err.word;
	if (r == 0) {
		text = changes_text(k, c);
		incr_changes_free(c);
	}
	incr_view_unref(a);
	incr_view_unref(b);
	return text;
}

void store_kit_commit_n(struct store_kit *k, int from, int to)
{
	char files[64];

	for (int i = from; i < to; i++) {
		snprintf(files, sizeof(files), "d%d/f%d=%d", i % 10, i, i);
		if (!store_kit_commit(k, INCR_APPEND, NULL, files)) {
			CHECK_STR_EQ("", k->err.message);
			return;
		}
	}
}

void store_kit_check_n_files(struct store_kit *k, uint64_t want)
{
	struct incr_branch_info info;
	struct incr_view_iter *it;
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view *v;
	uint64_t n = 0;
	int r;

	REQUIRE_OK(incr_branch_find(k->st, k->dataset, NULL, &info,
				    store_kit_err(k)));
	CHECK_INT_EQ(want, info.view_files);
	REQUIRE_OK(incr_view_open(k->st, k->dataset, info.head, &v, NULL));
	incr_branch_info_release(&info);
	REQUIRE_OK(incr_view_iter_new(v, NULL, 0, &it, NULL));
	while ((r = incr_view_iter_next(it, &node, &k->err)) == 0)
		n++;
	CHECK_INT_EQ(1, r);
	CHECK_INT_EQ(want, n);
	incr_view_iter_free(it);
	incr_node_release(&node);
	incr_view_unref(v);
}

/* ---- files ---- */

char *store_kit_path(const char *name)
{
	char *full;

	must(asprintf(&full, "%s/%s", testing_tmpdir(), name) >= 0, name);
	return full;
}

void store_kit_remove(const char *name)
{
	int dirfd = open(testing_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(dirfd >= 0, testing_tmpdir());
	must(io_remove_tree(&io_posix, dirfd, name, NULL) == 0, name);
	(void)close(dirfd);
}

void store_kit_write(const char *path, const void *data, size_t size)
{
	char *full = store_kit_path(path);
	int fd;

	for (size_t i = strlen(testing_tmpdir()) + 1; full[i]; i++) {
		if (full[i] != '/')
			continue;
		full[i] = '\0';
		must(mkdir(full, 0777) == 0 || errno == EEXIST, full);
		full[i] = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(fd >= 0, full);
	must(write(fd, data, size) == (ssize_t)size, full);
	must(close(fd) == 0, full);
	free(full);
}

uint64_t store_kit_size(struct store_kit *k, const char *dir, size_t *out_n)
{
	uint64_t size = 0;
	struct dirent *entry;
	char path[1024];
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", k->path, dir);
	d = opendir(path);
	if (out_n)
		*out_n = 0;
	if (!d)
		return 0;
	while ((entry = readdir(d))) {
		struct stat s;

		if (fstatat(dirfd(d), entry->d_name, &s, 0) < 0 ||
		    !S_ISREG(s.st_mode))
			continue;
		size += (uint64_t)s.st_size;
		if (out_n)
			(*out_n)++;
	}
	(void)closedir(d);
	return size;
}

/* ---- chance and time ---- */

double store_kit_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t store_kit_seed(void)
{
	const char *given = getenv("INCR_TEST_SEED");
	struct timespec t;
	uint64_t seed;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	seed = given ? strtoull(given, NULL, 0) :
		       (uint64_t)t.tv_sec * 1000003 + (uint64_t)t.tv_nsec;
	printf("INCR_TEST_SEED=%" PRIu64 "\n", seed);
	return seed;
}

uint64_t store_kit_random(uint64_t *state, uint64_t n)
{
	/* splitmix64 */
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % n;
}
