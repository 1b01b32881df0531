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

#include "model_both.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TREE_EVERY 500

static uint32_t rnd(uint32_t n)
{
	both.random = both.random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(both.random >> 33) % n;
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
		both.data[i] = (uint8_t)(x >> 56);
	}
}

/* An open file to work on, or -1. */
static int some_open(void)
{
	unsigned first = rnd(N_OPEN);

	for (unsigned i = 0; i < N_OPEN; i++)
		if (both.fds[(first + i) % N_OPEN][0] >= 0)
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
	both_say("open %s 0%o as %d", path, flags, slot);
	if (both.fds[slot][0] >= 0) {
		(void)BOTH(close(both.fds[slot][side]));
		both.fds[slot][0] = both.fds[slot][1] = -1;
	}
	if (BOTH((both.fds[slot][side] = openat(dir, path, flags, 0644)) < 0 ?
			 -1 :
			 0))
		both.flags[slot] = flags;
}

static void op_close(void)
{
	int f = some_open();

	if (f < 0)
		return;
	both_say("close %d", f);
	(void)BOTH(close(both.fds[f][side]));
	both.fds[f][0] = both.fds[f][1] = -1;
}

static void op_read(void)
{
	int f = some_open();
	uint32_t size = 1 + rnd(IO_MAX - 1), off = random_off();
	bool at_offset = rnd(2);
	long long n[N_SIDES] = { 0 };

	if (f < 0)
		return;
	both_say("%s %d %u at %u", at_offset ? "pread" : "read", f, size, off);
	if (BOTH(n[side] = at_offset ? pread(both.fds[f][side], both.got[side],
					     size, off) :
				       read(both.fds[f][side], both.got[side],
					    size)))
		both_compare_data(n[0], "read");
}

static void op_write(void)
{
	int f = some_open();
	uint32_t size = rnd(4) ? 1 + rnd(5000) : 1 + rnd(IO_MAX - 1);
	uint32_t off = random_off();
	bool at_offset = rnd(2);
	struct stat st;

	if (f < 0 || fstat(both.fds[f][1], &st) < 0)
		return;
	/* bounded, also where it appends or goes on */
	if (st.st_size + size > FILE_MAX ||
	    lseek(both.fds[f][1], 0, SEEK_CUR) + size > FILE_MAX)
		return;
	fill_data(size);
	both_say("%s %d %u at %u of %lld", at_offset ? "pwrite" : "write", f,
		 size, off, (long long)st.st_size);
	(void)BOTH(at_offset ? pwrite(both.fds[f][side], both.data, size, off) :
			       write(both.fds[f][side], both.data, size));
}

static void op_seek(void)
{
	static const int whences[] = { SEEK_SET, SEEK_CUR, SEEK_END };
	int f = some_open(), whence = whences[rnd(3)];
	int off = (int)rnd(20000) - (whence == SEEK_SET ? 0 : 10000);

	if (f < 0)
		return;
	both_say("seek %d %d %d", f, off, whence);
	(void)BOTH(lseek(both.fds[f][side], off, whence));
}

static void op_truncate(void)
{
	int f = rnd(2) ? some_open() : -1;
	uint32_t size = rnd(3) ? rnd(FILE_MAX / 2) : 0;
	char path[PATH_SIZE];

	random_path(path);
	if (f >= 0) {
		both_say("ftruncate %d %u", f, size);
		(void)BOTH(ftruncate(both.fds[f][side], size));
	} else {
		int fds[N_SIDES];

		both_say("truncate %s %u", path, size);
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
	both_say("fallocate %d mode %d %u at %u", f, mode, size, off);
	(void)BOTH(fallocate(both.fds[f][side], mode, off, size));
}

static void op_map(void)
{
	int f = some_open();
	bool writes = rnd(2);
	uint32_t off, size;
	uint8_t *maps[N_SIDES];
	struct stat st;

	if (f < 0 || fstat(both.fds[f][1], &st) < 0 || st.st_size < 1)
		return;
	size = (uint32_t)st.st_size;
	off = rnd(size);
	both_say("map %d, %s at %u of %u", f, writes ? "write" : "read", off,
		 size);
	if (!BOTH((maps[side] = mmap(
			   NULL, size, PROT_READ | (writes ? PROT_WRITE : 0),
			   MAP_SHARED, both.fds[f][side], 0)) == MAP_FAILED ?
			  -1 :
			  0))
		return;
	if (writes) {
		uint32_t n = 1 + rnd(size - off < IO_MAX ? size - off : IO_MAX);

		fill_data(n);
		for (int side = 0; side < N_SIDES; side++)
			memcpy(maps[side] + off, both.data, n);
		if (rnd(3) == 0)
			(void)BOTH(msync(maps[side], size, MS_SYNC));
	}
	for (int side = 0; side < N_SIDES; side++)
		memcpy(both.got[side], maps[side], size);
	both_compare_data(size, "mapping");
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
	both_say("copy %d at %lld to %d at %lld, %u", from, (long long)from_off,
		 to, (long long)to_off, size);
	(void)BOTH(copy_file_range(both.fds[from][side], &from_offs[side],
				   both.fds[to][side], &to_offs[side], size,
				   0));
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
	both_say("rename %s %s %u", from, to, flag);
	(void)BOTH(renameat2(dir, from, dir, to, flag));
}

static void op_link(void)
{
	char from[PATH_SIZE], to[PATH_SIZE];

	random_path(from);
	random_path(to);
	if (rnd(4)) {
		both_say("link %s %s", from, to);
		(void)BOTH(linkat(dir, from, dir, to, 0));
	} else {
		both_say("symlink a %s", to);
		(void)BOTH(symlinkat("a", dir, to));
	}
}

static void op_unlink(void)
{
	char path[PATH_SIZE];

	random_path(path);
	both_say("unlink %s", path);
	(void)BOTH(unlinkat(dir, path, 0));
}

static void op_dir(void)
{
	char path[PATH_SIZE];
	bool makes = rnd(3);

	random_dir(path);
	both_say("%s %s", makes ? "mkdir" : "rmdir", path);
	(void)BOTH(makes ? mkdirat(dir, path, 0755) :
			   unlinkat(dir, path, AT_REMOVEDIR));
}

static void op_stat(void)
{
	char path[PATH_SIZE];
	struct stat st[N_SIDES] = { 0 };
	int f = some_open();

	if (f >= 0 && rnd(2)) {
		both_say("fstat %d", f);
		(void)BOTH(fstat(both.fds[f][side], &st[side]));
		both_compare_stat(st, "open file");
		return;
	}
	random_path(path);
	both_say("stat %s", path);
	if (BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW)))
		both_compare_stat(st, path);
}

static void op_attributes(void)
{
	char path[PATH_SIZE];
	struct timespec times[2] = { { rnd(1000), rnd(1000) },
				     { rnd(1000), rnd(1000) } };
	struct stat st[N_SIDES];
	mode_t mode = 0600 | (mode_t)rnd(0100);

	random_path(path);
	both_say("chmod %s 0%o", path, mode);
	if (!BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW)) ||
	    !S_ISREG(st[0].st_mode))
		return;
	(void)BOTH(fchmodat(dir, path, mode, 0));
	(void)BOTH(utimensat(dir, path, times, 0));
	(void)BOTH(fstatat(dir, path, &st[side], AT_SYMLINK_NOFOLLOW));
	both_compare_stat(st, path);
	if (st[0].st_mtim.tv_sec != st[1].st_mtim.tv_sec ||
	    st[0].st_mtim.tv_nsec != st[1].st_mtim.tv_nsec)
		both_fail("%s: another mtime", path);
}

static void op_sync(void)
{
	int f = some_open();
	bool is_data = rnd(2);

	if (f < 0)
		return;
	both_say("fsync %d", f);
	(void)BOTH(is_data ? fdatasync(both.fds[f][side]) :
			     fsync(both.fds[f][side]));
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
	both.random = strtoull(argv[4], NULL, 10);
	for (int side = 0; side < N_SIDES; side++) {
		both.dirs[side] = open(argv[1 + side], O_RDONLY | O_DIRECTORY);
		if (both.dirs[side] < 0) {
			perror(argv[1 + side]);
			return 2;
		}
	}
	for (int f = 0; f < N_OPEN; f++)
		both.fds[f][0] = both.fds[f][1] = -1;
	(void)umask(022);
	printf("seed %s\n", argv[4]);
	for (both.op = 1; both.op <= n_ops; both.op++) {
		run_some_op();
		if (both.op % TREE_EVERY == 0 || both.op == n_ops)
			both_compare();
	}
	for (int f = 0; f < N_OPEN; f++)
		if (both.fds[f][0] >= 0)
			(void)BOTH(close(both.fds[f][side]));
	both_remove_links(".");
	printf("%lu operations, %lu calls that succeeded, no difference\n",
	       n_ops, both.n_done);
	return 0;
}
