/* Two directories that are treated alike: comparing them. */
#include "config.h"

#include "model_both.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct both both;

void both_fail(const char *format, ...)
{
	va_list args;

	printf("FAILED operation %lu: %s: ", both.op, both.what);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

bool both_same(const long long r[N_SIDES], const int errors[N_SIDES])
{
	int e0 = r[0] < 0 ? errors[0] : 0, e1 = r[1] < 0 ? errors[1] : 0;

	if (r[0] != r[1] || e0 != e1)
		both_fail("it gave %lld %s, a plain directory %lld %s", r[0],
			  e0 ? strerrorname_np(e0) : "", r[1],
			  e1 ? strerrorname_np(e1) : "");
	both.n_done += r[0] >= 0;
	return r[0] >= 0;
}

void both_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(both.what, sizeof(both.what), format, args);
	va_end(args);
	if (getenv("INCR_MODEL_TRACE"))
		printf("%lu %s\n", both.op, both.what);
}

void both_compare_data(long long n, const char *where)
{
	if (n > 0 && memcmp(both.got[0], both.got[1], (size_t)n) != 0) {
		size_t at = 0;

		while (both.got[0][at] == both.got[1][at])
			at++;
		both_fail("%s: byte %zu of %lld is 0x%02x, should be 0x%02x",
			  where, at, n, both.got[0][at], both.got[1][at]);
	}
}

void both_compare_stat(const struct stat st[N_SIDES], const char *path)
{
	if (st[0].st_mode != st[1].st_mode)
		both_fail("%s: mode 0%o, should be 0%o", path, st[0].st_mode,
			  st[1].st_mode);
	if (S_ISDIR(st[0].st_mode))
		return;
	if (st[0].st_size != st[1].st_size)
		both_fail("%s: size %lld, should be %lld", path,
			  (long long)st[0].st_size, (long long)st[1].st_size);
	if (st[0].st_nlink != st[1].st_nlink)
		both_fail("%s: %lu links, should be %lu", path,
			  (unsigned long)st[0].st_nlink,
			  (unsigned long)st[1].st_nlink);
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
		both_fail("cannot list %s: %s", path, strerror(errno));
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
		fds[side] =
			openat(both.dirs[side], path, O_RDONLY | O_NOFOLLOW);
		n[side] = fds[side] < 0 ?
				  -1 :
				  pread(fds[side], both.got[side], FILE_MAX, 0);
		if (fds[side] >= 0)
			(void)close(fds[side]);
	}
	if (n[0] != n[1] || n[0] < 0)
		both_fail("%s: %lld bytes, should be %lld", path, n[0], n[1]);
	both_compare_data(n[0], path);
}

static void compare_dir(const char *path)
{
	char *names[N_SIDES][64], below[PATH_MAX];
	struct stat st[N_SIDES];
	size_t n[N_SIDES];

	for (int side = 0; side < N_SIDES; side++)
		n[side] = list(both.dirs[side], path, names[side], 64);
	if (n[0] != n[1])
		both_fail("%s: %zu entries, should be %zu", path, n[0], n[1]);
	for (size_t i = 0; i < n[0]; i++) {
		if (strcmp(names[0][i], names[1][i]) != 0)
			both_fail("%s: has %s, should have %s", path,
				  names[0][i], names[1][i]);
		(void)snprintf(below, sizeof(below), "%s/%s", path,
			       names[0][i]);
		(void)BOTH(fstatat(dir, below, &st[side], AT_SYMLINK_NOFOLLOW));
		both_compare_stat(st, below);
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

		if (both.fds[f][0] < 0 ||
		    (both.flags[f] & O_ACCMODE) == O_WRONLY)
			continue;
		(void)BOTH(n[side] = pread(both.fds[f][side], both.got[side],
					   FILE_MAX, 0));
		both_compare_data(n[0], "open file");
	}
}

void both_compare(void)
{
	both_say("compare all");
	compare_open();
	compare_dir(".");
}

void both_remove_links(const char *path)
{
	char *names[64], below[PATH_MAX];
	size_t n = list(both.dirs[SIDE_PLAIN], path, names, 64);
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(below, sizeof(below), "%s/%s", path, names[i]);
		free(names[i]);
		if (fstatat(both.dirs[SIDE_PLAIN], below, &st,
			    AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			both_remove_links(below);
		else if (!S_ISREG(st.st_mode))
			(void)BOTH(unlinkat(dir, below, 0));
	}
}
