/*
 * Many writers at once, also ones that are killed: numbers are unique and
 * ascend, nothing acknowledged is lost, nobody is blocked.
 */
#include "config.h"

#include "store_kit.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_WRITERS 8
#define N_EACH 25

/* One acknowledged commit, written to a pipe by the process that made it. */
struct ack {
	uint64_t number;
	uint32_t writer, i;
};

struct job {
	const char *path;
	uint64_t dataset;
	uint32_t writer;
	enum incr_txn_type type;
	bool own_branch;
	uint32_t n;
	int acks; /* pipe */
};

static const char *branch_of(const struct job *j, char out[16])
{
	if (!j->own_branch)
		return "main";
	snprintf(out, 16, "b%u", j->writer);
	return out;
}

/* 0, or what went wrong. */
static int write_all(const struct job *j)
{
	struct incr_store_options store_options = { .wait_ms = 60000 };
	struct store_kit k = { .io = &io_posix };
	struct incr_txn_options options = { .dataset_id = j->dataset,
					    .type = j->type };
	char files[64], branch[16];

	snprintf(k.path, sizeof(k.path), "%s", j->path);
	if (store_kit_reopen_with(&k, &io_posix, &store_options) < 0)
		return 1;
	options.branch = branch_of(j, branch);
	for (uint32_t i = 0; i < j->n; i++) {
		struct ack ack = { .writer = j->writer, .i = i };

		snprintf(files, sizeof(files), "w%u/f%u=%u", j->writer, i, i);
		if (store_kit_commit_with(&k, &options, files, &ack.number) !=
		    0) {
			fprintf(stderr, "writer %u: %s\n", j->writer,
				k.err.message);
			return 2;
		}
		if (write(j->acks, &ack, sizeof(ack)) != sizeof(ack))
			return 3;
	}
	store_kit_release(&k);
	return 0;
}

static pid_t start(const struct job *j)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(write_all(j));
	return pid;
}

/* Every acknowledged file stands in its branch, written by the transaction that was named. */
static void check_acks(struct store_kit *k, const struct job *like, int fd)
{
	struct incr_node node = INCR_NODE_INIT;
	struct ack ack;
	uint64_t last[N_WRITERS * 64] = { 0 };

	while (read(fd, &ack, sizeof(ack)) == sizeof(ack)) {
		struct job j = *like;
		struct incr_view *v;
		char path[64], branch[16];

		j.writer = ack.writer;
		CHECK(ack.number > last[ack.writer]);
		last[ack.writer] = ack.number;
		REQUIRE_OK(incr_view_open(
			k->st, k->dataset,
			store_kit_head(k, branch_of(&j, branch)), &v, NULL));
		snprintf(path, sizeof(path), "w%u/f%u", ack.writer, ack.i);
		if (incr_view_find(v, path, strlen(path), &node, NULL) != 0) {
			CHECK_STR_EQ(path, "");
			return;
		}
		CHECK_INT_EQ(ack.number, node.txn);
		incr_view_unref(v);
	}
	incr_node_release(&node);
}

struct line {
	uint64_t last;
	uint32_t n;
};

static int check_descends(void *closure, const struct incr_txn_info *info)
{
	struct line *l = closure;

	CHECK(!l->last || info->number < l->last);
	CHECK_INT_EQ(INCR_COMMITTED, info->status);
	CHECK_INT_EQ(1, info->n_files);
	l->last = info->number;
	l->n++;
	return 0;
}

static uint32_t check_line(struct store_kit *k, const char *branch)
{
	struct line line = { 0 };

	CHECK_OK(incr_txn_log(k->st, store_kit_head(k, branch), 0,
			      check_descends, &line, NULL));
	return line.n;
}

static void run_writers(enum incr_txn_type type, bool own_branch)
{
	struct store_kit k;
	struct job job = { .type = type,
			   .own_branch = own_branch,
			   .n = N_EACH };
	pid_t pids[N_WRITERS];
	int pipe_fds[2], status;
	char branch[16];
	uint32_t n = 0;

	REQUIRE(store_kit_init(&k));
	job.path = k.path;
	job.dataset = k.dataset;
	CHECK_INT_EQ(0, pipe(pipe_fds));
	job.acks = pipe_fds[1];
	for (job.writer = 0; job.writer < N_WRITERS; job.writer++) {
		if (own_branch)
			CHECK_OK(incr_branch_create(k.st, k.dataset,
						    branch_of(&job, branch),
						    NULL, 0, NULL));
	}
	for (job.writer = 0; job.writer < N_WRITERS; job.writer++)
		pids[job.writer] = start(&job);
	for (int i = 0; i < N_WRITERS; i++) {
		CHECK_INT_EQ(pids[i], waitpid(pids[i], &status, 0));
		CHECK_INT_EQ(0, status);
	}
	(void)close(pipe_fds[1]);
	CHECK_OK(incr_store_refresh(k.st, NULL));
	for (int again = 0; again < 2; again++) {
		n = 0;
		if (!own_branch)
			n = check_line(&k, "main");
		for (job.writer = 0; own_branch && job.writer < N_WRITERS;
		     job.writer++)
			n += check_line(&k, branch_of(&job, branch));
		CHECK_INT_EQ(N_WRITERS * N_EACH, n);
		CHECK_OK(store_kit_reopen(&k));
	}
	check_acks(&k, &job, pipe_fds[0]);
	(void)close(pipe_fds[0]);
	store_kit_release(&k);
}

static void test_commit__8_appenders_on_one_branch__all_succeed(void)
{
	run_writers(INCR_APPEND, false);
}

static void test_commit__8_updaters_on_one_branch__all_succeed(void)
{
	run_writers(INCR_UPDATE, false);
}

static void test_commit__8_writers_on_own_branches__all_succeed(void)
{
	run_writers(INCR_APPEND, true);
}

static void test_commit__killed_at_random__nothing_acknowledged_is_lost(void)
{
	uint64_t random = store_kit_seed();
	struct store_kit k;
	struct job job = { .type = INCR_APPEND, .n = 100000 };
	struct incr_store_options options = { .wait_ms = 10000 };
	int pipe_fds[2];

	REQUIRE(store_kit_init(&k));
	job.path = k.path;
	job.dataset = k.dataset;
	CHECK_INT_EQ(0, pipe(pipe_fds));
	CHECK(fcntl(pipe_fds[0], F_SETPIPE_SZ, 1 << 20) > 0);
	job.acks = pipe_fds[1];
	for (int round = 0; round < 20; round++) {
		pid_t pids[3];
		struct timespec pause = { 0 };

		for (int i = 0; i < 3; i++) {
			pids[i] = start(&job);
			job.writer++;
		}
		pause.tv_nsec = (long)store_kit_random(&random, 60) * 1000000;
		(void)nanosleep(&pause, NULL);
		for (int i = 0; i < 3; i++)
			CHECK_INT_EQ(0, kill(pids[i], SIGKILL));
		for (int i = 0; i < 3; i++)
			CHECK_INT_EQ(pids[i], waitpid(pids[i], NULL, 0));
		/* and no lock is left */
		REQUIRE_OK(store_kit_reopen_with(&k, &io_posix, &options));
		{
			char files[32];

			snprintf(files, sizeof(files), "r/%d=1", round);
			CHECK(store_kit_commit(&k, INCR_APPEND, NULL, files));
		}
	}
	(void)close(pipe_fds[1]);
	CHECK(check_line(&k, "main") >= 20);
	check_acks(&k, &job, pipe_fds[0]);
	(void)close(pipe_fds[0]);
	store_kit_release(&k);
}

/* ---- how long the log is held ---- */

/* The store of the test, and what happened after its record was written. */
static struct {
	int dirfd;
	bool is_written;
	unsigned n_later, n_held;
} held;

static void look_at_lock(void)
{
	if (!held.is_written)
		return;
	held.n_later++;
	held.n_held += lock_is_held(&io_posix, held.dirfd, LOCK_APPEND);
}

static int64_t pwrite_noting(const struct incr_io *io, int fd, const void *data,
			     size_t size, uint64_t off)
{
	(void)io;
	look_at_lock();
	/* the record of a commit (format.md, chapter 6) */
	held.is_written = held.is_written ||
			  (size > 64 && !memcmp(data, "INCR\v", 5));
	return io_posix.pwrite(&io_posix, fd, data, size, off);
}

static int64_t pread_noting(const struct incr_io *io, int fd, void *data,
			    size_t size, uint64_t off)
{
	(void)io;
	look_at_lock();
	return io_posix.pread(&io_posix, fd, data, size, off);
}

static int fdatasync_noting(const struct incr_io *io, int fd)
{
	(void)io;
	look_at_lock();
	return io_posix.fdatasync(&io_posix, fd);
}

/* Nothing but the record is written while others wait for the log. */
static void test_commit__record_written__log_is_free(void)
{
	_cleanup_free_ char *files = malloc(200001);
	struct incr_io io = io_posix;
	uint64_t random = 1;
	struct store_kit k;

	/* too much for the record: its list of files is read from a pack */
	memcpy(files, "a=", 2);
	for (size_t i = 2; i < 200000; i++)
		files[i] = (char)('0' + store_kit_random(&random, 70));
	files[200000] = '\0';
	io.pwrite = pwrite_noting;
	io.pread = pread_noting;
	io.fdatasync = fdatasync_noting;
	REQUIRE(store_kit_init(&k));
	REQUIRE_OK(store_kit_reopen_with(&k, &io, NULL));
	held.dirfd = open(k.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	held.is_written = false;
	CHECK(store_kit_commit(&k, INCR_APPEND, NULL, files));
	/* the sync, and looks at what was written */
	CHECK(held.n_later >= 3);
	CHECK_INT_EQ(0, held.n_held);
	(void)close(held.dirfd);
	store_kit_release(&k);
}

static const struct testing_test tests[] = {
	TEST(test_commit__record_written__log_is_free),
	TEST(test_commit__8_appenders_on_one_branch__all_succeed),
	TEST(test_commit__8_updaters_on_one_branch__all_succeed),
	TEST(test_commit__8_writers_on_own_branches__all_succeed),
	TEST(test_commit__killed_at_random__nothing_acknowledged_is_lost),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "commit_race", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
