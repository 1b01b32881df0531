/*
 * Writing files below a directory. Each part of a path is opened at the
 * descriptor of the one before it, with O_NOFOLLOW.
 */
#include "config.h"

#include "tree.h"

#include "cleanup.h"
#include "fail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* 1: it holds something. */
static int is_occupied(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	if (!dir)
		return -1;
	while (!found && (entry = readdir(dir)) != NULL)
		found = strcmp(entry->d_name, ".") != 0 &&
			strcmp(entry->d_name, "..") != 0;
	(void)closedir(dir);
	return found;
}

int tree_open(struct tree *tree, const char *path, struct incr_error *err)
{
	int fd, occupied;

	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return fail_errno(err, path, "cannot make the directory");
	occupied = is_occupied(path);
	if (occupied < 0)
		return fail_errno(err, path, "cannot read the directory");
	if (occupied)
		return fail(err, INCR_E_EXISTS, "not-empty", path,
			    "the directory is not empty");
	fd = open(path, DIR_FLAGS);
	if (fd < 0)
		return fail_errno(err, path, "cannot open the directory");

	*tree = (struct tree){ .path = strdup("") };
	if (!tree->path) {
		(void)close(fd); /* only read */
		return fail_nomem(err);
	}
	tree->fds[0] = fd;
	return 0;
}

static void leave(struct tree *tree)
{
	const char *slash = memrchr(tree->path, '/', tree->path_length);

	(void)close(tree->fds[tree->depth]); /* only read */
	tree->depth--;
	tree->path_length = slash ? (size_t)(slash - tree->path) : 0;
	tree->path[tree->path_length] = '\0';
}

void tree_close(struct tree *tree)
{
	if (!tree->path)
		return;
	while (tree->depth > 0)
		leave(tree);
	(void)close(tree->fds[0]); /* only read */
	free(tree->path);
	*tree = (struct tree){ 0 };
}

/* Is the innermost open directory above the file @path? */
static bool is_above(const struct tree *tree, const char *path, size_t length)
{
	return tree->path_length == 0 ||
	       (length > tree->path_length && path[tree->path_length] == '/' &&
		memcmp(path, tree->path, tree->path_length) == 0);
}

/* Open, or make, the directory path[0..length) in the innermost one. */
static int enter(struct tree *tree, const char *path, size_t length,
		 struct incr_error *err)
{
	_cleanup_free_ char *copy = strndup(path, length);
	const char *slash = copy ? strrchr(copy, '/') : NULL;
	const char *name = slash ? slash + 1 : copy;
	int at = tree->fds[tree->depth], fd;
	char *grown;

	if (!copy)
		return fail_nomem(err);
	if (tree->depth + 1 >= TREE_MAX_DEPTH)
		return fail(err, INCR_E_RANGE, "too-deep", copy,
			    "the directories are too deep");
	if (mkdirat(at, name, 0777) != 0 && errno != EEXIST)
		return fail_errno(err, copy, "cannot make the directory");
	fd = openat(at, name, DIR_FLAGS | O_NOFOLLOW);
	if (fd < 0)
		return fail_errno(err, copy, "cannot open the directory");

	grown = realloc(tree->path, length + 1);
	if (!grown) {
		(void)close(fd); /* only read */
		return fail_nomem(err);
	}
	tree->path = grown;
	memcpy(tree->path, path, length);
	tree->path[length] = '\0';
	tree->path_length = length;
	tree->fds[++tree->depth] = fd;
	return 0;
}

int tree_create(struct tree *tree, const char *path, size_t length, int *out_fd,
		struct incr_error *err)
{
	const char *slash;
	int fd, r;

	while (!is_above(tree, path, length))
		leave(tree);
	for (;;) {
		size_t from = tree->path_length > 0 ? tree->path_length + 1 : 0;

		slash = memchr(path + from, '/', length - from);
		if (!slash)
			break;
		r = enter(tree, path, (size_t)(slash - path), err);
		if (r < 0)
			return r;
	}
	fd = openat(tree->fds[tree->depth],
		    path + (tree->path_length > 0 ? tree->path_length + 1 : 0),
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, path, "cannot make the file");
	*out_fd = fd;
	return 0;
}
