/*
 * The operations that write.  They act in a served staging directory only;
 * everywhere else the answer is EROFS.
 *
 * What is made belongs to the caller: a process that serves many users as root
 * gives it away.
 */
#include "config.h"

#include "output_fs.h"
#include "staging_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct incr_mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Lock the staging and open the directory; a negative errno is not locked. */
static int begin(struct staging_node *parent)
{
	int fd;

	(void)pthread_mutex_lock(&parent->staging->lock);
	fd = staging_open_dir(parent);
	if (fd < 0)
		(void)pthread_mutex_unlock(&parent->staging->lock);
	return fd;
}

static void end(struct staging_node *parent, int dir_fd)
{
	(void)close(dir_fd);
	(void)pthread_mutex_unlock(&parent->staging->lock);
}

/* Give what was made to the caller, with the mode that was asked for. */
static int give_away(fuse_req_t req, int dir_fd, const char *name, mode_t mode)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct stat dir, st;

	if (fstat(dir_fd, &dir) < 0 ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (geteuid() == 0 &&
	    fchownat(dir_fd, name, ctx->uid,
		     (dir.st_mode & S_ISGID) ? (gid_t)-1 : ctx->gid,
		     AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) || (st.st_mode & 0777) == (mode & 0777))
		return 0;
	mode = (mode & 07777) | (st.st_mode & S_ISGID);
	return fchmodat(dir_fd, name, mode, 0) < 0 ? -errno : 0;
}

/* Answer with the entry of what was just made. */
static void reply_made(fuse_req_t req, struct staging_node *parent, int dir_fd,
		       const char *name, int r)
{
	struct incr_mount *m = mount_of(req);
	struct fuse_entry_param e = { 0 };

	if (r == 0)
		r = staging_look_up(m, parent, dir_fd, name, &e);
	end(parent, dir_fd);
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &e) != 0)
		node_table_forget(&m->nodes, e.ino, 1);
}

void staging_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode, dev_t rdev)
{
	struct staging_node *p = staging_need(req, parent);
	int fd, r;

	if (p == NULL)
		return;
	if (S_ISCHR(mode) || S_ISBLK(mode)) {
		(void)fuse_reply_err(req, EPERM); /* no part of a dataset */
		return;
	}
	fd = begin(p);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	r = mknodat(fd, name, mode, rdev) < 0 ? -errno :
						give_away(req, fd, name, mode);
	reply_made(req, p, fd, name, r);
}

void staging_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode)
{
	struct staging_node *p = staging_need(req, parent);
	int fd, r;

	if (p == NULL)
		return;
	fd = begin(p);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	r = mkdirat(fd, name, mode) < 0 ? -errno :
					  give_away(req, fd, name, mode);
	reply_made(req, p, fd, name, r);
}

void staging_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
			const char *name)
{
	struct staging_node *p = staging_need(req, parent);
	int fd, r;

	if (p == NULL)
		return;
	fd = begin(p);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	r = symlinkat(target, fd, name) < 0 ? -errno :
					      give_away(req, fd, name, 0777);
	reply_made(req, p, fd, name, r);
}

void staging_op_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t new_parent,
		     const char *new_name)
{
	struct staging_node *s = staging_need(req, id), *p;
	char path[32];
	int fd, from, r;

	if (s == NULL)
		return;
	p = staging_need(req, new_parent);
	if (p == NULL)
		return;
	if (s->staging != p->staging) {
		(void)fuse_reply_err(req, EXDEV);
		return;
	}
	fd = begin(p);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	from = staging_open(s, O_PATH);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	r = from;
	if (from >= 0) {
		r = linkat(AT_FDCWD, path, fd, new_name, AT_SYMLINK_FOLLOW) <
				    0 ?
			    -errno :
			    0;
		(void)close(from);
	}
	reply_made(req, p, fd, new_name, r < 0 ? r : 0);
}

static void remove_entry(fuse_req_t req, fuse_ino_t parent, const char *name,
			 int flags)
{
	struct incr_mount *m = mount_of(req);
	struct staging_node *p = staging_need(req, parent);
	struct fuse_entry_param e;
	bool is_last;
	int fd, r;

	if (p == NULL)
		return;
	fd = begin(p);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	r = staging_look_up(m, p, fd, name, &e);
	if (r == 0) {
		r = unlinkat(fd, name, flags) < 0 ? -errno : 0;
		is_last = flags != 0 || e.attr.st_nlink == 1;
		if (r == 0)
			staging_forget_name(m, staging_of(m, &e), p, name,
					    is_last);
		node_table_forget(&m->nodes, e.ino, 1);
	}
	end(p, fd);
	(void)fuse_reply_err(req, -r);
}

void staging_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, 0);
}

void staging_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, AT_REMOVEDIR);
}

/* One end of a rename. */
struct rename_end {
	struct staging_node *parent;
	const char *name;
	int dir_fd;
	struct fuse_entry_param e; /* ino 0: there is nothing of this name */
};

/* Rename, and move the names of the nodes along.  All is locked. */
static int rename_locked(struct incr_mount *m, struct rename_end *from,
			 struct rename_end *to, unsigned int flags)
{
	struct staging_node *s;
	int r;

	r = staging_look_up(m, from->parent, from->dir_fd, from->name,
			    &from->e);
	if (r < 0)
		return r;
	if (staging_look_up(m, to->parent, to->dir_fd, to->name, &to->e) < 0)
		to->e.ino = 0;
	r = renameat2(from->dir_fd, from->name, to->dir_fd, to->name, flags) <
			    0 ?
		    -errno :
		    0;
	/* Two names of one file: nothing happens. */
	if (r == 0 && from->e.ino != to->e.ino) {
		s = staging_of(m, &from->e);
		r = staging_add_name(m, s, to->parent, to->name);
		staging_forget_name(m, s, from->parent, from->name, false);
		if (to->e.ino != 0) {
			struct staging_node *old = staging_of(m, &to->e);
			bool is_swap = (flags & RENAME_EXCHANGE) != 0;
			bool is_last = !is_swap &&
				       (S_ISDIR(to->e.attr.st_mode) ||
					to->e.attr.st_nlink == 1);

			if (is_swap)
				r |= staging_add_name(m, old, from->parent,
						      from->name);
			staging_forget_name(m, old, to->parent, to->name,
					    is_last);
		}
	}
	node_table_forget(&m->nodes, from->e.ino, 1);
	if (to->e.ino != 0)
		node_table_forget(&m->nodes, to->e.ino, 1);
	return r;
}

void staging_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		       fuse_ino_t new_parent, const char *new_name,
		       unsigned int flags)
{
	struct rename_end from = { .name = name }, to = { .name = new_name };
	int r;

	from.parent = staging_need(req, parent);
	if (from.parent == NULL)
		return;
	to.parent = staging_need(req, new_parent);
	if (to.parent == NULL)
		return;
	if (from.parent->staging != to.parent->staging) {
		(void)fuse_reply_err(req, EXDEV);
		return;
	}
	from.dir_fd = begin(from.parent);
	if (from.dir_fd < 0) {
		(void)fuse_reply_err(req, -from.dir_fd);
		return;
	}
	to.dir_fd = staging_open_dir(to.parent);
	r = to.dir_fd;
	if (r >= 0) {
		r = rename_locked(mount_of(req), &from, &to, flags);
		(void)close(to.dir_fd);
	}
	end(from.parent, from.dir_fd);
	(void)fuse_reply_err(req, -r);
}

void staging_op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		       mode_t mode, struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct staging_node *p = staging_need(req, parent);
	int flags = fi->flags & (O_ACCMODE | O_TRUNC | O_EXCL);
	struct fuse_entry_param e;
	int dir_fd, fd, r;

	if (p == NULL)
		return;
	dir_fd = begin(p);
	if (dir_fd < 0) {
		(void)fuse_reply_err(req, -dir_fd);
		return;
	}
	/* Only what is new is given away; there may be a file by now. */
	fd = openat(dir_fd, name,
		    flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	r = fd < 0 ? -errno : give_away(req, dir_fd, name, mode);
	if (r == -EEXIST && (flags & O_EXCL) == 0) {
		fd = openat(dir_fd, name,
			    flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = staging_look_up(m, p, dir_fd, name, &e);
	end(p, dir_fd);
	if (r == 0) {
		staging_reply_create(req, staging_of(m, &e), fd, &e, fi);
		return;
	}
	if (fd >= 0)
		(void)close(fd);
	(void)fuse_reply_err(req, -r);
}
