/*
 * Live views of an output: lookup, attributes, reading.
 *
 * A staged file is opened for each read and closed again: a descriptor that
 * stayed open would count as a user of the file when the build is committed.
 */
#include "config.h"

#include "error_map.h"
#include "output_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct node_ops live_ops;

int output_new(struct incr_mount *m, size_t idx, struct output **out_output,
	       struct incr_error *err)
{
	const char *path = incr_build_staging(m->build, idx);
	struct output *o = calloc(1, sizeof(*o));
	int r;

	if (o == NULL)
		return mount_fail_nomem(err);
	o->idx = idx;
	o->staging_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->staging_fd < 0) {
		r = mount_fail(err, INCR_E_IO, "no-staging", errno, path,
			       "cannot open the staging directory");
		free(o);
		return r;
	}
	r = view_slot_new(m, incr_build_output_base(m->build, idx),
			  inode_mix(idx, INODE_N_SLOTS), false, &o->base);
	if (r < 0) {
		output_free(o);
		return mount_fail_nomem(err);
	}
	*out_output = o;
	return 0;
}

void output_free(struct output *o)
{
	if (o == NULL)
		return;
	(void)close(o->staging_fd);
	free(o);
}

int output_open(const struct output *o, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_NOFOLLOW | O_CLOEXEC |
					O_NONBLOCK),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (flags & O_PATH)
		how.flags &= ~(unsigned int)O_NONBLOCK;
	fd = syscall(SYS_openat2, o->staging_fd, *path == '\0' ? "." : path,
		     &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* What is staged at @path: 0, or 1 when no file or directory is. */
static int stat_staged(const struct output *o, const char *path,
		       struct stat *st)
{
	int fd = output_open(o, path, O_PATH), r;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return 1;
	if (fd < 0)
		return fd;
	r = fstat(fd, st) < 0 ? -errno : 0;
	(void)close(fd);
	if (r < 0)
		return r;
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? 0 : 1;
}

bool output_join(const struct live_node *dir, const char *name, char *path)
{
	int n = snprintf(path, PATH_MAX, "%s%s%s", dir->path,
			 *dir->path == '\0' ? "" : "/", name);

	return strlen(name) <= NAME_MAX && n < PATH_MAX;
}

uint64_t output_dir_ino(const struct live_node *dir, const char *path)
{
	uint64_t salt = dir->output->idx * 2 + dir->is_current;

	return inode_mix(inode_hash(path, strlen(path)), salt);
}

uint64_t output_file_ino(dev_t dev, ino_t ino)
{
	return inode_mix(dev, ino);
}

static void fill_stat(const struct incr_mount *m, const struct live_node *l,
		      struct stat *st)
{
	struct stat from = l->st;

	if (l->is_dir) {
		fs_fill_stat(m, st, output_dir_ino(l, l->path), S_IFDIR | 0555,
			     0, from.st_mtim);
		return;
	}
	fs_fill_stat(m, st, output_file_ino(from.st_dev, from.st_ino),
		     S_IFREG | (from.st_mode & 0777), (uint64_t)from.st_size,
		     from.st_mtim);
	st->st_ctim = from.st_ctim;
	st->st_blocks = from.st_blocks;
	st->st_uid = from.st_uid;
	st->st_gid = from.st_gid;
}

/* What tells one node from another; the path follows. */
struct live_key {
	uint64_t kind; /* 0 a file; 1 in `added`, 2 in `current` a directory */
	uint64_t idx;
	uint64_t dev, ino, size;
	int64_t mtime_sec, mtime_nsec, ctime_sec, ctime_nsec;
};

static int set_key(struct live_node *l)
{
	size_t length = strlen(l->path);
	char bytes[sizeof(struct live_key) + PATH_MAX];
	struct live_key key = {
		.kind = l->is_dir ? 1 + (uint64_t)l->is_current : 0,
		.idx = l->output->idx,
	};

	if (length > PATH_MAX)
		return -ENAMETOOLONG;
	if (!l->is_dir) {
		key.dev = l->st.st_dev;
		key.ino = l->st.st_ino;
		key.size = (uint64_t)l->st.st_size;
		key.mtime_sec = l->st.st_mtim.tv_sec;
		key.mtime_nsec = l->st.st_mtim.tv_nsec;
		key.ctime_sec = l->st.st_ctim.tv_sec;
		key.ctime_nsec = l->st.st_ctim.tv_nsec;
	}
	memcpy(bytes, &key, sizeof(key));
	memcpy(bytes + sizeof(key), l->path, length);
	return node_set_key(&l->node, bytes, sizeof(key) + length) < 0 ?
		       -ENOMEM :
		       0;
}

static struct live_node *new_live(struct output *o, const char *path)
{
	struct live_node *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->node.ops = &live_ops;
	l->output = o;
	l->path = strdup(path);
	if (l->path == NULL) {
		free(l);
		return NULL;
	}
	return l;
}

static void live_free(struct incr_mount *m, struct node *n)
{
	(void)m;
	free(((struct live_node *)n)->path);
	free(n);
}

int output_root_new(struct output *o, bool is_current, struct node **out_node)
{
	struct live_node *l = new_live(o, "");

	if (l == NULL)
		return INCR_E_NOMEM;
	l->is_dir = true;
	l->is_current = is_current;
	(void)stat_staged(o, "", &l->st);
	*out_node = &l->node;
	return 0;
}

static int live_entry(struct incr_mount *m, struct node *n, bool is_lookup,
		      struct fuse_entry_param *e)
{
	struct live_node root = *(const struct live_node *)n;

	(void)is_lookup;
	/* A root: the name stays, the times do not. */
	*e = (struct fuse_entry_param){
		.ino = n->id,
		.entry_timeout = FOREVER,
	};
	(void)stat_staged(root.output, root.path, &root.st);
	fill_stat(m, &root, &e->attr);
	return 0;
}

/* Answer a lookup with a node made of @st. */
static void reply_live(struct incr_mount *m, fuse_req_t req,
		       const struct live_node *dir, const char *path,
		       const struct stat *st)
{
	struct live_node *l = new_live(dir->output, path);
	struct fuse_entry_param e;
	struct node *n;

	if (l == NULL) {
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	l->st = *st;
	l->is_dir = S_ISDIR(st->st_mode);
	l->is_current = l->is_dir && dir->is_current;
	if (set_key(l) < 0) {
		live_free(m, &l->node);
		(void)fuse_reply_err(req, ENOMEM);
		return;
	}
	n = node_table_intern(&m->nodes, &l->node);
	e = (struct fuse_entry_param){ .ino = n->id };
	fill_stat(m, (struct live_node *)n, &e.attr);
	if (fuse_reply_entry(req, &e) != 0)
		node_table_forget(&m->nodes, n->id, 1);
}

/* Look in the view below. */
static void reply_base(struct incr_mount *m, fuse_req_t req,
		       const struct live_node *dir, const char *path)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_error err = INCR_ERROR_INIT;
	struct view_slot *base = dir->output->base;
	struct fuse_entry_param e;
	struct stat st = {
		.st_mode = S_IFDIR,
		.st_mtim = base->dir_time,
	};
	int r;

	r = incr_view_find(base->view, path, strlen(path), &node, &err);
	if (r < 0) {
		fs_reply_error(m, req, r, &err);
	} else if (r > 0) {
		(void)fuse_reply_err(req, ENOENT);
	} else if (node.is_dir) {
		reply_live(m, req, dir, path, &st);
	} else {
		view_fs_entry(m, base, &node, &e);
		e.entry_timeout = 0; /* it may be staged any time */
		(void)fuse_reply_entry(req, &e);
	}
	incr_node_release(&node);
	incr_error_release(&err);
}

static void live_lookup(struct incr_mount *m, fuse_req_t req, struct node *n,
			const char *name)
{
	const struct live_node *dir = (const struct live_node *)n;
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (!dir->is_dir || !output_join(dir, name, path)) {
		(void)fuse_reply_err(req, dir->is_dir ? ENAMETOOLONG : ENOTDIR);
		return;
	}
	r = stat_staged(dir->output, path, &st);
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (r == 0)
		reply_live(m, req, dir, path, &st);
	else if (dir->is_current)
		reply_base(m, req, dir, path);
	else
		(void)fuse_reply_err(req, ENOENT);
}

static void live_getattr(struct incr_mount *m, fuse_req_t req, struct node *n)
{
	struct live_node now = *(const struct live_node *)n;
	struct stat st;

	/* The same file, perhaps longer by now; or one that was replaced. */
	if (stat_staged(now.output, now.path, &st) == 0 &&
	    (now.is_dir ?
		     S_ISDIR(st.st_mode) :
		     st.st_dev == now.st.st_dev && st.st_ino == now.st.st_ino))
		now.st = st;
	fill_stat(m, &now, &st);
	(void)fuse_reply_attr(req, &st, 0);
}

static void live_read(struct incr_mount *m, fuse_req_t req, struct node *n,
		      const struct read_request *rr)
{
	const struct live_node *l = (const struct live_node *)n;
	struct fuse_bufvec data = FUSE_BUFVEC_INIT(rr->size);
	struct stat st;
	int fd;

	if (l->is_dir) {
		(void)fuse_reply_err(req, EISDIR);
		return;
	}
	serve_yield(&m->serve);
	fd = output_open(l->output, l->path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != l->st.st_dev ||
	    st.st_ino != l->st.st_ino) {
		(void)fuse_reply_err(req, ESTALE);
	} else {
		data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK |
				    FUSE_BUF_FD_RETRY;
		data.buf[0].fd = fd;
		data.buf[0].pos = (off_t)rr->off;
		(void)fuse_reply_data(req, &data, 0);
	}
	if (fd >= 0)
		(void)close(fd);
}

static const struct node_ops live_ops = {
	.entry = live_entry,
	.getattr = live_getattr,
	.lookup = live_lookup,
	.opendir = output_opendir,
	.readdir = output_readdir,
	.releasedir = output_releasedir,
	.read = live_read,
	.free = live_free,
};
