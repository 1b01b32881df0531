/*
 * POSIX behaviour of a directory, in some hundred checks: what programs that
 * know nothing of this project rely on when they write to staging.  Run by
 * sh/posix_staging.sh on a plain directory, and on staging in both ways.
 *
 *   posix_staging DIRECTORY
 *
 * The directory is empty before and after.  What must be refused to another
 * user is tried as uid and gid 65534, by root only.
 */
#include "config.h"

#include "posix_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned n_passed, n_failed;
static const char *group = "";

static bool note(bool held, const char *text, int line, const char *detail)
{
	if (held) {
		n_passed++;
		return true;
	}
	n_failed++;
	printf("FAILED %s, line %d: %s%s\n", group, line, text, detail);
	return false;
}

bool posix_true(bool held, const char *text, int line)
{
	return note(held, text, line, "");
}

void posix_equal(long long want, long long got, const char *text, int line)
{
	char detail[160];

	(void)snprintf(detail, sizeof(detail), ": want %lld, got %lld (%s)",
		       want, got, got < 0 ? strerror(errno) : "-");
	(void)note(want == got, text, line, detail);
}

void posix_error(int want, long long r, const char *text, int line)
{
	char detail[160];
	int got = r < 0 ? errno : 0;

	(void)snprintf(detail, sizeof(detail), ": want %s, got %s",
		       strerrorname_np(want),
		       got ? strerrorname_np(got) : "success");
	(void)note(got == want, text, line, detail);
}

int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	size_t n = strlen(text);
	bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;

	return fd >= 0 && close(fd) == 0 && ok ? 0 : -1;
}

bool has(const char *path, const char *text)
{
	char got[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof(got));

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text) && memcmp(got, text, (size_t)n) == 0;
}

bool fd_has(int fd, const char *text)
{
	char got[4096];
	ssize_t n = pread(fd, got, sizeof(got), 0);

	return n == (ssize_t)strlen(text) && memcmp(got, text, (size_t)n) == 0;
}

struct stat look(const char *path)
{
	struct stat st = { 0 };

	if (lstat(path, &st) < 0)
		st.st_size = -1;
	return st;
}

bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

int n_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

int touch_mode(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);

	return fd < 0 ? -1 : close(fd);
}

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "files", test_files },       { "append", test_append },
	{ "unlinked", test_unlinked }, { "rename", test_rename },
	{ "links", test_links },       { "symlinks", test_symlinks },
	{ "dirs", test_dirs },	       { "truncate", test_truncate },
	{ "copies", test_copies },     { "fallocate", test_fallocate },
	{ "mmap", test_mmap },	       { "locks", test_locks },
	{ "times", test_times },       { "modes", test_modes },
	{ "users", test_users },
};

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: posix_staging DIRECTORY\n");
		return 2;
	}
	(void)umask(022);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		group = groups[i].name;
		groups[i].run();
		EQ(0, n_entries("."));
	}
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
