/*
 * Listing live directories.
 *
 * What is staged is read when the directory is opened; in `current` the entries
 * of the view below follow, without those that are staged.  Attributes are not
 * sent along: the kernel may not keep them.
 */
#include "config.h"

#include "output_fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASE_COOKIE (UINT64_C(1) << 56) /* set for entries of the view below */

struct staged {
	char *name; /* owned */
	uint64_t ino;
	mode_t type;
};

struct listing {
	size_t n, n_allocated;
	struct staged *items; /* in byte order */
};

static void free_listing(struct listing *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].name);
	free(l->items);
	free(l);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct staged *)a)->name,
		      ((const struct staged *)b)->name);
}

static bool contains(const struct listing *l, const char *name)
{
	struct staged key = { .name = (char *)name };

	return l->n > 0 &&
	       bsearch(&key, l->items, l->n, sizeof(key), compare) != NULL;
}

static int add(struct listing *l, const struct staged *item)
{
	if (l->n == l->n_allocated) {
		size_t n = l->n_allocated == 0 ? 64 : l->n_allocated * 2;
		struct staged *items =
			reallocarray(l->items, n, sizeof(*items));

		if (items == NULL)
			return -ENOMEM;
		l->items = items;
		l->n_allocated = n;
	}
	l->items[l->n] = *item;
	l->items[l->n].name = strdup(item->name);
	if (l->items[l->n].name == NULL)
		return -ENOMEM;
	l->n++;
	return 0;
}

/* Type and inode number of an entry: 0, or 1 if it is not shown. */
static int look_at(const struct live_node *dir, int fd, const struct dirent *d,
		   struct staged *out_item)
{
	char path[PATH_MAX];
	struct stat st;

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 1;
	*out_item = (struct staged){ .name = (char *)d->d_name };
	if (d->d_type == DT_REG) {
		out_item->type = S_IFREG;
	} else if (d->d_type == DT_DIR) {
		out_item->type = S_IFDIR;
	} else if (d->d_type == DT_UNKNOWN &&
		   fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		   (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
		out_item->type = st.st_mode & S_IFMT;
	} else {
		return 1;
	}
	out_item->ino = output_file_ino(dir->st.st_dev, d->d_ino);
	if (out_item->type == S_IFDIR) {
		output_join(dir, d->d_name, path);
		out_item->ino = output_dir_ino(dir, path);
	}
	return 0;
}

static int read_staged(const struct live_node *dir, struct listing *l)
{
	int fd = output_open(dir->output, dir->path, O_RDONLY | O_DIRECTORY);
	struct dirent *d;
	struct staged item;
	DIR *stream;
	int r = 0;

	if (fd < 0) /* only in the view below, or gone: nothing is staged */
		return fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE ? fd : 0;
	stream = fdopendir(fd);
	if (stream == NULL) {
		(void)close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (errno = 0, d = readdir(stream)) != NULL) {
		if (look_at(dir, fd, d, &item) == 0)
			r = add(l, &item);
	}
	if (r == 0)
		r = -errno;
	(void)closedir(stream);
	if (l->n > 0)
		qsort(l->items, l->n, sizeof(*l->items), compare);
	return r;
}

void output_opendir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    struct fuse_file_info *fi)
{
	const struct live_node *dir = (const struct live_node *)n;
	struct listing *l = calloc(1, sizeof(*l));
	int r;

	serve_yield(&m->serve);
	r = l == NULL ? -ENOMEM : read_staged(dir, l);
	if (r < 0) {
		free_listing(l);
		(void)fuse_reply_err(req, -r);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)l;
	if (fuse_reply_open(req, fi) != 0)
		free_listing(l);
}

void output_releasedir(struct incr_mount *m, fuse_req_t req, struct node *n,
		       struct fuse_file_info *fi)
{
	(void)m;
	(void)n;
	free_listing((struct listing *)(uintptr_t)fi->fh);
	(void)fuse_reply_err(req, 0);
}

/* False: the buffer is full. */
static bool add_staged(struct dir_buffer *b, const struct listing *l,
		       uint64_t off)
{
	uint64_t first = 0;

	if (off > INODE_COOKIE_DOTDOT)
		first = off - INODE_COOKIE_DOTDOT;
	for (uint64_t i = first; i < l->n; i++) {
		struct fuse_entry_param e = {
			.attr = { .st_mode = l->items[i].type,
				  .st_ino = l->items[i].ino },
		};

		if (!dir_buffer_add(b, l->items[i].name, &e,
				    INODE_COOKIE_FIRST + i))
			return false;
	}
	return true;
}

static int add_base(struct dir_buffer *b, const struct live_node *dir,
		    const struct listing *l, uint64_t off)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_dir_iter *it;
	uint64_t place = UINT64_MAX;
	uint8_t depth = 0;
	size_t skip = *dir->path == '\0' ? 0 : strlen(dir->path) + 1;
	int r;

	if (off >= BASE_COOKIE)
		inode_from_cookie(off - BASE_COOKIE, &place, &depth);
	r = incr_dir_iter_new(dir->output->base->view, dir->path,
			      strlen(dir->path), place, depth, &it, NULL);
	if (r < 0)
		return r == INCR_E_NOTFOUND ? 0 : r;
	while ((r = incr_dir_iter_next(it, &node, NULL)) == 0) {
		struct fuse_entry_param e = { .ino = 0 };
		uint8_t at = node.is_dir ? node.depth : 0;

		if (contains(l, node.path + skip))
			continue;
		e.attr.st_mode = node.is_dir ? S_IFDIR : S_IFREG;
		e.attr.st_ino = node.is_dir ? output_dir_ino(dir, node.path) :
					      node.stable_id;
		if (!dir_buffer_add(b, node.path + skip, &e,
				    BASE_COOKIE + inode_cookie(node.place, at)))
			break;
	}
	incr_dir_iter_free(it);
	incr_node_release(&node);
	return r < 0 ? r : 0;
}

void output_readdir(struct incr_mount *m, fuse_req_t req, struct node *n,
		    const struct dir_request *dr)
{
	const struct live_node *dir = (const struct live_node *)n;
	const struct listing *l = (const struct listing *)(uintptr_t)dr->fi->fh;
	struct dir_buffer b;
	bool has_room = true;
	int r;

	r = dir_buffer_init(&b, req, dr);
	if (r == 0 && dr->off < BASE_COOKIE)
		has_room = dir_buffer_add_dots(&b, dr->off, n->id) &&
			   add_staged(&b, l, dr->off);
	if (r == 0 && has_room && dir->is_current)
		r = add_base(&b, dir, l, dr->off);
	if (r == 0)
		dir_buffer_reply(&b);
	else
		fs_reply_error(m, req, r, &INCR_ERROR_INIT);
	dir_buffer_release(&b);
}
