/*
 * Processes that use a mounted filesystem, found through /proc.
 *
 * Of other users' processes an ordinary user learns little; what cannot be read
 * is left out.  Nothing here asks the filesystem itself, which may hang.
 */
#include "config.h"

#include "holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Whether a link of /proc leads to the device; its text goes to @path. */
static bool leads_to(int dir_fd, const char *name, dev_t dev, char *path)
{
	struct statx stx;
	ssize_t n;

	if (statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO,
		  &stx) < 0 ||
	    makedev(stx.stx_dev_major, stx.stx_dev_minor) != dev)
		return false;
	n = readlinkat(dir_fd, name, path, PATH_MAX - 1);
	path[n < 0 ? 0 : n] = '\0';
	return true;
}

static bool has_descriptor(int proc_fd, dev_t dev, char *path)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	bool found = false;

	if (dir == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while (!found && (d = readdir(dir)) != NULL)
		found = d->d_name[0] != '.' &&
			leads_to(fd, d->d_name, dev, path);
	(void)closedir(dir);
	return found;
}

static bool has_mapping(int proc_fd, dev_t dev, char *path)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int major, minor;
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (maps == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while (!found && getline(&line, &size, maps) >= 0) {
		const char *name = strchr(line, '/');

		found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) ==
				2 &&
			makedev(major, minor) == dev && name != NULL;
		if (found)
			(void)snprintf(path, PATH_MAX, "%.*s",
				       (int)strcspn(name, "\n"), name);
	}
	free(line);
	(void)fclose(maps);
	return found;
}

static bool uses(int proc_fd, dev_t dev, char *path)
{
	return leads_to(proc_fd, "cwd", dev, path) ||
	       leads_to(proc_fd, "root", dev, path) ||
	       leads_to(proc_fd, "exe", dev, path) ||
	       has_descriptor(proc_fd, dev, path) ||
	       has_mapping(proc_fd, dev, path);
}

static void read_program(int proc_fd, char *program, size_t size)
{
	int fd = openat(proc_fd, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, program, size - 1);

	if (fd >= 0)
		(void)close(fd);
	program[n < 0 ? 0 : n] = '\0';
	program[strcspn(program, "\n")] = '\0';
}

void holders_find(dev_t dev, holder_fn fn, void *closure)
{
	DIR *proc = opendir("/proc");
	char path[PATH_MAX];
	struct dirent *d;
	bool is_over = false;

	if (proc == NULL)
		return;
	while (!is_over && (d = readdir(proc)) != NULL) {
		struct holder h = { .path = path };
		int fd;

		h.pid = (pid_t)strtol(d->d_name, NULL, 10);
		if (h.pid <= 0)
			continue;
		fd = openat(dirfd(proc), d->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (uses(fd, dev, path)) {
			read_program(fd, h.program, sizeof(h.program));
			is_over = fn(closure, &h);
		}
		(void)close(fd);
	}
	(void)closedir(proc);
}
