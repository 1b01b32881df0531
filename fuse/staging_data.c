/*
 * The operations that write data and attributes of staged files.
 */
#include "config.h"

#include "output_fs.h"
#include "staging_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int set_size(struct staging_node *s, off_t size,
		    const struct fuse_file_info *fi)
{
	int fd, r;

	if (fi != NULL)
		return ftruncate(staging_fd(fi), size) < 0 ? -errno : 0;
	fd = staging_open_node(s, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	r = ftruncate(fd, size) < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

static struct timespec chosen_time(int to_set, int set, int set_now,
				   struct timespec time)
{
	struct timespec now = { .tv_nsec = UTIME_NOW };
	struct timespec omit = { .tv_nsec = UTIME_OMIT };

	if ((to_set & set_now) != 0)
		return now;
	return (to_set & set) != 0 ? time : omit;
}

/* All but the size, through the path that /proc has for @fd. */
static int set_attributes(int fd, const struct stat *attr, int to_set)
{
	struct timespec times[2];
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 &&
	    fchownat(fd, "",
		     to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
		     to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1,
		     AT_EMPTY_PATH) < 0)
		return -errno;
	if ((to_set & FUSE_SET_ATTR_MODE) != 0 &&
	    chmod(path, attr->st_mode & 07777) < 0)
		return -errno;
	if ((to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
		       FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)) == 0)
		return 0;
	times[0] = chosen_time(to_set, FUSE_SET_ATTR_ATIME,
			       FUSE_SET_ATTR_ATIME_NOW, attr->st_atim);
	times[1] = chosen_time(to_set, FUSE_SET_ATTR_MTIME,
			       FUSE_SET_ATTR_MTIME_NOW, attr->st_mtim);
	return utimensat(AT_FDCWD, path, times, 0) < 0 ? -errno : 0;
}

void staging_op_setattr(fuse_req_t req, fuse_ino_t id, struct stat *attr,
			int to_set, struct fuse_file_info *fi)
{
	struct staging_node *s = staging_need(req, id);
	struct stat st;
	int fd, r = 0;

	if (s == NULL)
		return;
	fd = staging_open_node(s, O_PATH);
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0)
		r = set_size(s, attr->st_size, fi);
	if (r == 0)
		r = set_attributes(fd, attr, to_set);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	(void)close(fd);
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	staging_fill_stat(&st);
	(void)fuse_reply_attr(req, &st, 0);
}

/*
 * No descriptor is open for appending: the pages of a mapping are written at
 * their places, through whichever descriptor there is.
 */
static ssize_t write_some(const struct fuse_file_info *fi, const char *data,
			  size_t size, off_t off)
{
	/* the prototype is older than const; nothing writes to the data */
	struct iovec iov = { .iov_base = (char *)data, .iov_len = size };

	if ((fi->flags & O_APPEND) != 0 && !fi->writepage)
		return pwritev2(staging_fd(fi), &iov, 1, off, RWF_APPEND);
	return pwrite(staging_fd(fi), data, size, off);
}

void staging_op_write(fuse_req_t req, fuse_ino_t id, const char *data,
		      size_t size, off_t off, struct fuse_file_info *fi)
{
	struct incr_mount *m = fuse_req_userdata(req);
	size_t done = 0;
	ssize_t n = 0;

	if (staging_need(req, id) == NULL)
		return;
	serve_yield(&m->serve);
	while (done < size) {
		n = write_some(fi, data + done, size - done, off + (off_t)done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (n < 0 && done == 0)
		(void)fuse_reply_err(req, errno);
	else
		(void)fuse_reply_write(req, done);
}

void staging_op_fsync(fuse_req_t req, fuse_ino_t id, int is_data_only,
		      struct fuse_file_info *fi)
{
	struct incr_mount *m = fuse_req_userdata(req);
	int r;

	if (staging_need(req, id) == NULL)
		return;
	serve_yield(&m->serve);
	r = is_data_only ? fdatasync(staging_fd(fi)) : fsync(staging_fd(fi));
	(void)fuse_reply_err(req, r < 0 ? errno : 0);
}

void staging_op_fsyncdir(fuse_req_t req, fuse_ino_t id, int is_data_only,
			 struct fuse_file_info *fi)
{
	struct incr_mount *m = fuse_req_userdata(req);
	struct staging_node *s = staging_need(req, id);
	int fd, r;

	(void)is_data_only;
	(void)fi;
	if (s == NULL)
		return;
	serve_yield(&m->serve);
	fd = staging_open_node(s, O_RDONLY | O_DIRECTORY);
	r = fd < 0 ? -fd : fsync(fd) < 0 ? errno : 0;
	if (fd >= 0)
		(void)close(fd);
	(void)fuse_reply_err(req, r);
}

void staging_op_fallocate(fuse_req_t req, fuse_ino_t id, int mode, off_t off,
			  off_t length, struct fuse_file_info *fi)
{
	if (staging_need(req, id) == NULL)
		return;
	(void)fuse_reply_err(
		req,
		fallocate(staging_fd(fi), mode, off, length) < 0 ? errno : 0);
}

void staging_op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_off,
				struct fuse_file_info *from_fi, fuse_ino_t to,
				off_t to_off, struct fuse_file_info *to_fi,
				size_t size, int flags)
{
	struct incr_mount *m = fuse_req_userdata(req);
	struct node *source = NULL;
	ssize_t n;

	if (staging_need(req, to) == NULL)
		return;
	if (inode_unpack(from).slot == 0)
		source = node_table_find(&m->nodes, from);
	if (source == NULL || !source->ops->is_writable) {
		(void)fuse_reply_err(req, EXDEV); /* the kernel copies itself */
		return;
	}
	serve_yield(&m->serve);
	n = copy_file_range(staging_fd(from_fi), &from_off, staging_fd(to_fi),
			    &to_off, size, (unsigned int)flags);
	if (n < 0)
		(void)fuse_reply_err(req, errno);
	else
		(void)fuse_reply_write(req, (size_t)n);
}

void staging_op_lseek(fuse_req_t req, fuse_ino_t id, off_t off, int whence,
		      struct fuse_file_info *fi)
{
	const struct incr_mount *m = fuse_req_userdata(req);
	struct node *n = NULL;
	off_t at;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&((struct incr_mount *)m)->nodes, id);
	/* ENOSYS for one is for all: the kernel sees no holes then. */
	if (!m->answers_open) {
		(void)fuse_reply_err(req, ENOSYS);
	} else if (n == NULL || !n->ops->is_writable) {
		(void)fuse_reply_err(req, EINVAL);
	} else {
		at = lseek(staging_fd(fi), off, whence);
		if (at < 0)
			(void)fuse_reply_err(req, errno);
		else
			(void)fuse_reply_lseek(req, at);
	}
}
