/*
 * The nodes of a served staging directory.
 *
 * No descriptor is kept for a node, since there may be more files than
 * descriptors: a node has the names under which it was looked up, and its path
 * is put together from them.  All calls here hold the lock of the staging.
 */
#include "config.h"

#include "error_map.h"
#include "inode.h"
#include "output_fs.h"
#include "staging_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What tells one inode from another that gets its number later. */
struct staging_key {
	uint64_t kind, idx, dev, ino;
	int64_t born_sec, born_nsec;
};

void staging_fill_stat(struct stat *st)
{
	st->st_ino = output_file_ino(st->st_dev, st->st_ino);
}

static void drop_link(struct incr_mount *m, struct staging_link *link)
{
	struct staging_link **at = &link->child->links;

	while (*at != link)
		at = &(*at)->next_of_child;
	*at = link->next_of_child;
	/* As deep as a path at most: the parent may go with its last child. */
	node_table_forget(&m->nodes, link->parent->node.id, 1);
	free(link->name);
	free(link);
}

void staging_free(struct incr_mount *m, struct node *n)
{
	struct staging_node *s = (struct staging_node *)n;

	if (s->is_root) {
		(void)close(s->staging->root_fd);
		(void)pthread_mutex_destroy(&s->staging->lock);
		free(s->staging);
	} else if (m->nodes.is_closing) {
		/* The parents go with the whole table. */
		while (s->links != NULL) {
			struct staging_link *next = s->links->next_of_child;

			free(s->links->name);
			free(s->links);
			s->links = next;
		}
	} else {
		while (s->links != NULL)
			drop_link(m, s->links);
	}
	free(s);
}

int staging_root_new(struct incr_mount *m, size_t idx, struct node **out_node,
		     struct incr_error *err)
{
	const char *path = incr_build_staging(m->build, idx);
	struct staging_node *s = calloc(1, sizeof(*s));
	struct staging *shared = calloc(1, sizeof(*shared));
	struct stat st;
	int fd;

	if (s == NULL || shared == NULL) {
		free(s);
		free(shared);
		return mount_fail_nomem(err);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		free(s);
		free(shared);
		return mount_fail(err, INCR_E_IO, "no-staging", errno, path,
				  "cannot open the staging directory");
	}
	if (fstat(fd, &st) == 0)
		s->dev = st.st_dev;
	shared->idx = idx;
	shared->root_fd = fd;
	(void)pthread_mutex_init(&shared->lock, NULL);
	s->node.ops = &staging_node_ops;
	s->staging = shared;
	s->is_root = true;
	*out_node = &s->node;
	return 0;
}

/* The path of a node, ending at the end of @path.  NULL: it has none. */
static const char *path_of(const struct staging_node *s, char *path)
{
	char *at = path + PATH_MAX - 1;

	*at = '\0';
	while (!s->is_root) {
		size_t length;

		if (s->links == NULL)
			return NULL;
		length = strlen(s->links->name);
		if (at - path < (ptrdiff_t)length + 1)
			return NULL;
		if (*at != '\0')
			*--at = '/';
		at -= length;
		memcpy(at, s->links->name, length);
		s = s->links->parent;
	}
	return *at == '\0' ? "." : at;
}

static int open_beneath(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)flags | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* By an open file: the node has lost its last name. */
static int open_again(const struct staging_node *s, int flags)
{
	char path[32];
	int fd;

	if (s->handles == NULL)
		return -ESTALE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->handles->fd);
	fd = open(path, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int staging_open(struct staging_node *s, int flags)
{
	char buffer[PATH_MAX];
	const char *path = path_of(s, buffer);
	struct stat st;
	int fd;

	if (path == NULL)
		return open_again(s, flags);
	fd = open_beneath(s->staging->root_fd, path, flags);
	if (fd < 0)
		return fd;
	if (!s->is_root && (fstat(fd, &st) < 0 || st.st_dev != s->dev ||
			    st.st_ino != s->ino)) {
		(void)close(fd);
		return s->handles != NULL ? open_again(s, flags) : -ESTALE;
	}
	return fd;
}

int staging_open_dir(struct staging_node *parent)
{
	return staging_open(parent, O_PATH | O_DIRECTORY);
}

static struct staging_link *find_link(const struct staging_node *child,
				      const struct staging_node *parent,
				      const char *name)
{
	struct staging_link *link = child->links;

	while (link != NULL &&
	       (link->parent != parent || strcmp(link->name, name) != 0))
		link = link->next_of_child;
	return link;
}

int staging_add_name(struct incr_mount *m, struct staging_node *child,
		     struct staging_node *parent, const char *name)
{
	struct staging_link *link;

	if (find_link(child, parent, name) != NULL)
		return 0;
	link = calloc(1, sizeof(*link));
	if (link == NULL)
		return -ENOMEM;
	link->name = strdup(name);
	if (link->name == NULL) {
		free(link);
		return -ENOMEM;
	}
	link->parent = parent;
	link->child = child;
	/* The newest name first: it is the most likely to be still there. */
	link->next_of_child = child->links;
	child->links = link;
	node_table_count(&m->nodes, &parent->node);
	return 0;
}

void staging_forget_name(struct incr_mount *m, struct staging_node *s,
			 struct staging_node *parent, const char *name,
			 bool is_last)
{
	struct staging_link *link = find_link(s, parent, name);

	if (link != NULL)
		drop_link(m, link);
	if (is_last)
		node_table_drop_key(&m->nodes, &s->node);
}

struct staging_node *staging_of(struct incr_mount *m,
				const struct fuse_entry_param *e)
{
	return (struct staging_node *)node_table_find(&m->nodes, e->ino);
}

int staging_look_up(struct incr_mount *m, struct staging_node *parent,
		    int dir_fd, const char *name, struct fuse_entry_param *e)
{
	struct staging_key key = { .kind = 's', .idx = parent->staging->idx };
	struct staging_node *s;
	struct statx stx;

	*e = (struct fuse_entry_param){ 0 };
	if (fstatat(dir_fd, name, &e->attr, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	key.dev = e->attr.st_dev;
	key.ino = e->attr.st_ino;
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) == 0 &&
	    stx.stx_ino == key.ino && (stx.stx_mask & STATX_BTIME) != 0) {
		key.born_sec = stx.stx_btime.tv_sec;
		key.born_nsec = stx.stx_btime.tv_nsec;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->node.ops = &staging_node_ops;
	s->staging = parent->staging;
	s->dev = e->attr.st_dev;
	s->ino = e->attr.st_ino;
	if (node_set_key(&s->node, &key, sizeof(key)) < 0) {
		free(s);
		return -ENOMEM;
	}
	s = (struct staging_node *)node_table_intern(&m->nodes, &s->node);
	if (staging_add_name(m, s, parent, name) < 0) {
		node_table_forget(&m->nodes, s->node.id, 1);
		return -ENOMEM;
	}
	e->ino = s->node.id;
	staging_fill_stat(&e->attr);
	return 0;
}
