/*
 * Random file operations on a directory and, the same, on a plain one: every
 * result, errno and byte must agree.  Run by sh/model_staging.sh on staging.
 *
 *   model_staging DIRECTORY PLAIN OPERATIONS SEED
 *
 * Both directories are empty at first.  At the end they hold the same files;
 * symbolic links and what is no file are removed.  A failure prints the
 * operation, and the seed that repeats it.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_OPEN 8
#define FILE_MAX (256 * 1024)
#define IO_MAX (40 * 1024)
#define TREE_EVERY 500
#define PATH_SIZE 64

enum side { SIDE_TESTED, SIDE_PLAIN, N_SIDES };

static struct {
	int dirs[N_SIDES];
	int fds[N_OPEN][N_SIDES]; /* -1: closed */
	int flags[N_OPEN];
	uint64_t random;
	unsigned long op, n_done; /* n_done: of those that succeeded */
	char what[256];
	uint8_t data[IO_MAX], got[N_SIDES][FILE_MAX];
} m;

static uint32_t rnd(uint32_t n)
{
	m.random = m.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m.random >> 33) % n;
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(
	const char *format, ...)
{
	va_list args;

	printf("FAILED operation %lu: %s: ", m.op, m.what);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

/* Both sides returned the same, or failed with the same. */
static bool same(const long long r[N_SIDES], const int errors[N_SIDES])
{
	int e0 = r[0] < 0 ? errors[0] : 0, e1 = r[1] < 0 ? errors[1] : 0;

	if (r[0] != r[1] || e0 != e1)
		fail("it gave %lld %s, a plain directory %lld %s", r[0],
		     e0 ? strerrorname_np(e0) : "", r[1],
		     e1 ? strerrorname_np(e1) : "");
	m.n_done += r[0] >= 0;
	return r[0] >= 0;
}

/* Evaluate @call for both sides, as `dir` and `fd` say; compare. */
#define BOTH(call)                                           \
	__extension__({                                      \
		long long r_[N_SIDES];                       \
		int errors_[N_SIDES];                        \
		for (int side = 0; side < N_SIDES; side++) { \
			int dir = m.dirs[side];              \
			(void)dir;                           \
			errno = 0;                           \
			r_[side] = (call);                   \
			errors_[side] = errno;               \
		}                                            \
		same(r_, errors_);                           \
	})

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(m.what, sizeof(m.what), format, args);
	va_end(args);
	if (getenv("INCR_MODEL_TRACE"))
		printf("%lu %s\n", m.op, m.what);
}

static void random_path(char path[PATH_SIZE])
{
	static const char *const dirs[] = { "",	   "",	  "d0/",
					    "d0/", "d1/", "d0/d2/" };

	(void)snprintf(path, PATH_SIZE, "%s%c", dirs[rnd(6)],
		       'a' + (int)rnd(7));
}

/* Two directories of one level, so that no rename makes the tree deeper. */
static void random_dirs(char from[PATH_SIZE], char to[PATH_SIZE])
{
	const char *below = rnd(2) ? "/d2" : "";

	(void)snprintf(from, PATH_SIZE, "d%u%s", rnd(2), below);
	(void)snprintf(to, PATH_SIZE, "d%u%s", rnd(2), below);
}

static void random_dir(char path[PATH_SIZE])
{
	static const char *const dirs[] = { "d0", "d1", "d0/d2", "d1/d2" };

	(void)snprintf(path, PATH_SIZE, "%s", dirs[rnd(4)]);
}

static void fill_data(size_t size)
{
	uint64_t x = rnd(UINT32_MAX);

	for (size_t i = 0; i < size; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		m.data[i] = (uint8_t)(x >> 56);
	}
}

static void compare_data(long long n, const char *where)
{
	if (n > 0 && memcmp(m.got[0], m.got[1], (size_t)n) != 0) {
		size_t at = 0;

		while (m.got[0][at] == m.got[1][at])
			at++;
		fail("%s: byte %zu of %lld is 0x%02x, should be 0x%02x", where,
		     at, n, m.got[0][at], m.got[1][at]);
	}
}

/* An open file to work on, or -1. */
static int some_open(void)
{
	unsigned first = rnd(N_OPEN);

	for (unsigned i = 0; i < N_OPEN; i++)
		if (m.fds[(first + i) % N_OPEN][0] >= 0)
			return (int)((first + i) % N_OPEN);
	return -1;
}

static uint32_t random_off(void)
{
	/* near pages as often as anywhere */
	return rnd(2) ? rnd(FILE_MAX - IO_MAX) :
			rnd((FILE_MAX - IO_MAX) / 4096) * 4096;
}

/* ---- operations ---- */

static void op_open(void)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	int flags = modes[rnd(4)], slot = (int)rnd(N_OPEN);
	char path[PATH_SIZE];

	random_path(path);
	flags |= rnd(3) ? O_CREAT : 0;
	flags |= rnd(8) ? 0 : O_EXCL & (flags & O_CREAT ? ~0 : 0);
	flags |= rnd(5) || (flags & O_ACCMODE) == O_RDONLY ? 0 : O_TRUNC;
	flags |= rnd(5) ? 0 : O_APPEND;
	say("open %s 0%o as %d", path, flags, slot);
	if (m.fds[slot][0] >= 0) {
		(void)BOTH(close(m.fds[slot][side]));
		m.fds[slot][0] = m.fds[slot][1] = -1;
	}
	if (BOTH((m.fds[slot][side] = openat(dir, path, flags, 0644)) < 0 ? -1 :
									    0))
		m.flags[slot] = flags;
}

static void op_close(void)
{
	int f = some_open();

	if (f < 0)
		return;
	say("close %d", f);
	(void)BOTH(close(m.fds[f][side]));
	m.fds[f][0] = m.fds[f][1] = -1;
}

static void op_read(void)
{
	int f = some_open();
	uint32_t size = 1 + rnd(IO_MAX - 1), off = random_off();
	bool at_offset = rnd(2);
	long long n[N_SIDES] = { 0 };

	if (f < 0)
		return;
	say("%s %d %u at %u", at_offset ? "pread" : "read", f, size, off);
	if (BOTH(n[side] = at_offset ? pread(m.fds[f][side], m.got[side], size,
					     off) :
				       read(m.fds[f][side], m.got[side], size)))
		compare_data(n[0], "read");
}

static void op_write(void)
{
	int f = some_open();
	uint32_t size = rnd(4) ? 1 + rnd(5000) : 1 + rnd(IO_MAX - 1);
	uint32_t off = random_off();
	bool at_offset = rnd(2);
	struct stat st;

	if (f < 0 || fstat(m.fds[f][1], &st) < 0)
		return;
	/* bounded, also where it appends or goes on */
	if (st.st_size + size > FILE_MAX ||
	    lseek(m.fds[f][1], 0, SEEK_CUR) + size > FILE_MAX)
		return;
	fill_data(size);
	say("%s %d %u at %u of %lld", at_offset ? "pwrite" : "write", f, size,
	    off, (long long)st.st_size);
	(void)BOTH(at_offset ? pwrite(m.fds[f][side], m.data, size, off) :
			       write(m.fds[f][side], m.data, size));
}

static void op_seek(void)
{
	static const int whences[] = { SEEK_SET, SEEK_CUR, SEEK_END };
	int f = some_open(), whence = whences[rnd(3)];
	int off = (int)rnd(20000) - (whence == SEEK_SET ? 0 : 10000);

	if (f < 0)
		return;
	say("seek %d %d %d", f, off, whence);
	(void)BOTH(lseek(m.fds[f][side], off, whence));
}

static void op_truncate(void)
{
	int f = rnd(2) ? some_open() : -1;
	uint32_t size = rnd(3) ? rnd(FILE_MAX / 2) : 0;
	char path[PATH_SIZE];

	random_path(path);
	if (f >= 0) {
		say("ftruncate %d %u", f, size);
		(void)BOTH(ftruncate(m.fds[f][side], size));
	} else {
		int fds[N_SIDES];

		say("truncate %s %u", path, size);
		if (!BOTH((fds[side] = openat(dir, path,
					      O_WRONLY | O_NOFOLLOW)) < 0 ?
				  -1 :
				  0))
			return;
		(void)BOTH(ftruncate(fds[side], size));
		(void)BOTH(close(fds[side]));
	}
}

static void op_allocate(void)
{
	static const int modes[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
	};
	int f = some_open(), mode = modes[rnd(6)];
	uint32_t off = random_off(), size = 1 + rnd(IO_MAX - 1);

	if (f < 0)
		return;
	say("fallocate %d mode %d %u at %u", f, mode, size, off);
	(void)BOTH(fallocate(m.fds[f][side], mode, off, size));
}

static void op_map(void)
{
	int f = some_open();
	bool writes = rnd(2);
	uint32_t off, size;
	uint8_t *maps[N_SIDES];
	struct stat st;

	if (f < 0 || fstat(m.fds[f][1], &st) < 0 || st.st_size < 1)
		return;
	size = (uint32_t)st.st_size;
	off = rnd(size);
	say("map %d, %s at %u of %u", f, writes ? "write" : "read", off, size);
	if (!BOTH((maps[side] = mmap(
			   NULL, size, PROT_READ | (writes ? PROT_WRITE : 0),
			   MAP_SHARED, m.fds[f][side], 0)) == MAP_FAILED ?
			  -1 :
			  0))
		return;
	if (writes) {
		uint32_t n = 1 + rnd(size - off < IO_MAX ? size - off : IO_MAX);

		fill_data(n);
		for (int side = 0; side < N_SIDES; side++)
			memcpy(maps[side] + off, m.data, n);
		if (rnd(3) == 0)
			(void)BOTH(msync(maps[side], size, MS_SYNC));
	}
	for (int side = 0; side < N_SIDES; side++)
		memcpy(m.got[side], maps[side], size);
	compare_data(size, "mapping");
	(void)BOTH(munmap(maps[side], size));
}

static void op_copy_range(void)
{
	int from = some_open(), to = some_open();
	loff_t from_off = random_off(), to_off = random_off();
	loff_t from_offs[N_SIDES] = { from_off, from_off };
	loff_t to_offs[N_SIDES] = { to_off, to_off };
	uint32_t size = 1 + rnd(IO_MAX - 1);

	if (from < 0 || to < 0)
		return;
	say("copy %d at %lld to %d at %lld, %u", from, (long long)from_off, to,
	    (long long)to_off, size);
	(void)BOTH(copy_file_range(m.fds[from][side], &from_offs[side],
				   m.fds[to][side], &to_offs[side], size, 0));
}

static void op_rename(void)
{
	static const unsigned flags[] = { 0, 0, 0, RENAME_NOREPLACE,
					  RENAME_EXCHANGE };
	unsigned flag = flags[rnd(5)];
	char from[PATH_SIZE], to[PATH_SIZE];

	if (rnd(4)) {
		random_path(from);
		random_path(to);
	} else {
		random_dirs(from, to);
	}
	say("rename %s %s %u", from, to, flag);
	(void)BOTH(renameat2(dir, from, dir, to, flag));
}

static void op_link(void)
{
	char from[PATH_SIZE], to[PATH_SIZE];

	random_path(from);
	random_path(to);
	if (rnd(4)) {
		say("link %s %s", from, to);
		(void)BOTH(linkat(dir, from, dir, to, 0));
	} else {
		say("symlink a %s", to);
		(void)BOTH(symlinkat("a", dir, to));
	}
}

static void op_unlink(void)
{
	char path[PATH_SIZE];

	random_path(path);
	say("unlink %s", path);
	(void)BOTH(unlinkat(dir, path, 0));
}

static void op_dir(void)
{
	char path[PATH_SIZE];
	bool makes = rnd(3);

	random_dir(path);
	say("%s %s", makes ? "mkdir" : "rmdir", path);
	(void)BOTH(makes ? mkdirat(dir, path, 0755) :
			   unlinkat(dir, path, AT_REMOVEDIR));
}

static void compare_stat(const struct stat st[N_SIDES], const char *path)
{
	if (st[0].st_mode != st[1].st_mode)
		fail("%s: mode 0%o, should be 0%o", path, st[0].st_mode,
		     st[1].st_mode);
	if (S_ISDIR(st[0].st_mode))
		return;
	if (st[0].st_size != st[1].st_size)
		fail("%s: size %lld, should be %lld", path,
		     (long long)st[0].st_size, (long long)st[1].st_size);
	if (st[0].st_nlink != st[1].st_nlink)
		fail("%s: %lu links, should be %lu", path,
		     (unsigned long)st[0].st_nlink,
		     (unsigned long)st[1].st_nlink);
}

static void op_stat(void)
{
	char path[PATH_SIZE];
	struct stat st[N_SIDES] = { 0 };
	int f = some_open();

	if (f >= 0 && rnd(2)) {
		say("fstat %d", f);
		(void)BOTH(fstat(m.fds[f][side], &st[side]));
		compare_stat(st, "open file");
		return;
	}
	random_path(path);
	say("stat %s", path);
	if (BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW)))
		compare_stat(st, path);
}

static void op_attributes(void)
{
	char path[PATH_SIZE];
	struct timespec times[2] = { { rnd(1000), rnd(1000) },
				     { rnd(1000), rnd(1000) } };
	struct stat st[N_SIDES];
	mode_t mode = 0600 | (mode_t)rnd(0100);

	random_path(path);
	say("chmod %s 0%o", path, mode);
	if (!BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW)) ||
	    !S_ISREG(st[0].st_mode))
		return;
	(void)BOTH(fchmodat(dir, path, mode, 0));
	(void)BOTH(utimensat(dir, path, times, 0));
	(void)BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW));
	compare_stat(st, path);
	if (st[0].st_mtim.tv_sec != st[1].st_mtim.tv_sec ||
	    st[0].st_mtim.tv_nsec != st[1].st_mtim.tv_nsec)
		fail("%s: another mtime", path);
}

static void op_sync(void)
{
	int f = some_open();
	bool is_data = rnd(2);

	if (f < 0)
		return;
	say("fsync %d", f);
	(void)BOTH(is_data ? fdatasync(m.fds[f][side]) : fsync(m.fds[f][side]));
}

/* ---- whole trees ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list(int dir, const char *path, char **names, size_t max)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t n = 0;

	if (!stream)
		fail("cannot list %s: %s", path, strerror(errno));
	while ((entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0 && n < max)
			if (asprintf(&names[n++], "%s", entry->d_name) < 0)
				abort();
	(void)closedir(stream);
	qsort(names, n, sizeof(*names), by_name);
	return n;
}

static void compare_file(const char *path)
{
	int fds[N_SIDES];
	long long n[N_SIDES];

	for (int side = 0; side < N_SIDES; side++) {
		fds[side] = openat(m.dirs[side], path, O_RDONLY | O_NOFOLLOW);
		n[side] = fds[side] < 0 ?
				  -1 :
				  pread(fds[side], m.got[side], FILE_MAX, 0);
		if (fds[side] >= 0)
			(void)close(fds[side]);
	}
	if (n[0] != n[1] || n[0] < 0)
		fail("%s: %lld bytes, should be %lld", path, n[0], n[1]);
	compare_data(n[0], path);
}

static void compare_dir(const char *path)
{
	char *names[N_SIDES][64], below[PATH_MAX];
	struct stat st[N_SIDES];
	size_t n[N_SIDES];

	for (int side = 0; side < N_SIDES; side++)
		n[side] = list(m.dirs[side], path, names[side], 64);
	if (n[0] != n[1])
		fail("%s: %zu entries, should be %zu", path, n[0], n[1]);
	for (size_t i = 0; i < n[0]; i++) {
		if (strcmp(names[0][i], names[1][i]) != 0)
			fail("%s: has %s, should have %s", path, names[0][i],
			     names[1][i]);
		(void)snprintf(below, sizeof(below), "%s/%s", path,
			       names[0][i]);
		(void)BOTH(fstatat(dir, below, &st[side], AT_SYMLINK_NOFOLLOW));
		compare_stat(st, below);
		if (S_ISDIR(st[0].st_mode))
			compare_dir(below);
		else if (S_ISREG(st[0].st_mode))
			compare_file(below);
		free(names[0][i]);
		free(names[1][i]);
	}
}

static void compare_open(void)
{
	for (int f = 0; f < N_OPEN; f++) {
		long long n[N_SIDES];

		if (m.fds[f][0] < 0 || (m.flags[f] & O_ACCMODE) == O_WRONLY)
			continue;
		(void)BOTH(n[side] = pread(m.fds[f][side], m.got[side],
					   FILE_MAX, 0));
		compare_data(n[0], "open file");
	}
}

static void compare_all(void)
{
	say("compare all");
	compare_open();
	compare_dir(".");
}

/* Leave files only, so that they can be committed. */
static void remove_links(const char *path)
{
	char *names[64], below[PATH_MAX];
	size_t n = list(m.dirs[SIDE_PLAIN], path, names, 64);
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		free(names[i]);
		if (fstatat(m.dirs[SIDE_PLAIN], below, &st,
			    AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			remove_links(below);
		else if (!S_ISREG(st.st_mode))
			(void)BOTH(unlinkat(dir, below, 0));
	}
}

static const struct {
	unsigned weight;
	void (*run)(void);
} ops[] = {
	{ 12, op_open },    { 5, op_close }, { 18, op_read },
	{ 18, op_write },   { 4, op_seek },  { 6, op_truncate },
	{ 6, op_allocate }, { 10, op_map },  { 4, op_copy_range },
	{ 8, op_rename },   { 5, op_link },  { 6, op_unlink },
	{ 4, op_dir },	    { 8, op_stat },  { 3, op_attributes },
	{ 1, op_sync },
};
#define N_OPS (sizeof(ops) / sizeof(ops[0]))

static void run_some_op(void)
{
	unsigned sum = 0, at;

	for (size_t i = 0; i < N_OPS; i++)
		sum += ops[i].weight;
	at = rnd(sum);
	for (size_t i = 0; i < N_OPS; i++) {
		if (at < ops[i].weight) {
			ops[i].run();
			return;
		}
		at -= ops[i].weight;
	}
}

int main(int argc, char **argv)
{
	unsigned long n_ops;

	if (argc != 5) {
		fprintf(stderr, "usage: model_staging DIRECTORY PLAIN "
				"OPERATIONS SEED\n");
		return 2;
	}
	n_ops = strtoul(argv[3], NULL, 10);
	m.random = strtoull(argv[4], NULL, 10);
	for (int side = 0; side < N_SIDES; side++) {
		m.dirs[side] = open(argv[1 + side], O_RDONLY | O_DIRECTORY);
		if (m.dirs[side] < 0) {
			perror(argv[1 + side]);
			return 2;
		}
	}
	for (int f = 0; f < N_OPEN; f++)
		m.fds[f][0] = m.fds[f][1] = -1;
	(void)umask(022);
	printf("seed %s\n", argv[4]);
	for (m.op = 1; m.op <= n_ops; m.op++) {
		run_some_op();
		if (m.op % TREE_EVERY == 0 || m.op == n_ops)
			compare_all();
	}
	for (int f = 0; f < N_OPEN; f++)
		if (m.fds[f][0] >= 0)
			(void)BOTH(close(m.fds[f][side]));
	remove_links(".");
	printf("%lu operations, %lu calls that succeeded, no difference\n",
	       n_ops, m.n_done);
	return 0;
}
