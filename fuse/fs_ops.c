/*
 * The operations of the session: each finds out whose node it is about.
 *
 * Ids with a slot belong to a view, the others to the node table.  What writes
 * is in staging_ops.c.
 */
#include "config.h"

#include "fs.h"
#include "staging_fs.h"

#include <errno.h>
#include <sys/statvfs.h>

static struct incr_mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	unsigned int want = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
			    FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS |
			    FUSE_CAP_NO_OPENDIR_SUPPORT |
			    FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_ATOMIC_O_TRUNC;

	(void)userdata;
	conn->want = conn->capable & want;
	conn->max_read = FS_MAX_READ; /* as the mount option says */
	conn->max_readahead = FS_MAX_READ;
	conn->max_write = FS_MAX_READ;
	conn->time_gran = 1;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct incr_mount *m = mount_of(req);
	struct inode ino = inode_unpack(parent);
	struct view_slot *slot;
	struct node *n;

	if (ino.slot != 0) {
		slot = view_slot_find(m, parent);
		view_fs_lookup(m, req, slot, ino, name);
		return;
	}
	n = node_table_find(&m->nodes, parent);
	if (n == NULL || n->ops->lookup == NULL)
		(void)fuse_reply_err(req, n == NULL ? ESTALE : ENOTDIR);
	else
		n->ops->lookup(m, req, n, name);
}

static void forget_one(struct incr_mount *m, fuse_ino_t id, uint64_t n_lookups)
{
	struct view_slot *slot;

	if (inode_unpack(id).slot == 0) {
		node_table_forget(&m->nodes, id, n_lookups);
		return;
	}
	slot = view_slot_find(m, id);
	if (slot != NULL)
		view_slot_put(m, slot, n_lookups);
}

static void op_forget(fuse_req_t req, fuse_ino_t id, uint64_t n_lookups)
{
	forget_one(mount_of(req), id, n_lookups);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
			    struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget_one(mount_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct inode ino = inode_unpack(id);
	struct node *n;

	(void)fi;
	if (ino.slot != 0) {
		view_fs_getattr(m, req, view_slot_find(m, id), ino);
		return;
	}
	n = node_table_find(&m->nodes, id);
	if (n == NULL)
		(void)fuse_reply_err(req, ESTALE);
	else
		n->ops->getattr(m, req, n);
}

static void op_readlink(fuse_req_t req, fuse_ino_t id)
{
	struct incr_mount *m = mount_of(req);
	struct node *n = NULL;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n == NULL || n->ops->readlink == NULL)
		(void)fuse_reply_err(req, EINVAL);
	else
		n->ops->readlink(m, req, n);
}

static void op_open(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct node *n = NULL;

	/* The first ENOSYS tells the kernel to open everything by itself. */
	if (!m->answers_open) {
		(void)fuse_reply_err(req, ENOSYS);
		return;
	}
	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n != NULL && n->ops->open != NULL) {
		n->ops->open(m, req, n, fi);
	} else if ((fi->flags & O_ACCMODE) != O_RDONLY ||
		   (fi->flags & O_TRUNC) != 0) {
		(void)fuse_reply_err(req, EROFS);
	} else {
		fi->keep_cache = 1;
		(void)fuse_reply_open(req, fi);
	}
}

static void op_read(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct read_request rr = {
		.fi = fi,
		.size = size,
		.off = (uint64_t)off,
	};
	struct node *n;

	if (inode_unpack(id).slot != 0) {
		view_fs_read(m, req, view_slot_find(m, id), inode_unpack(id),
			     &rr);
		return;
	}
	n = node_table_find(&m->nodes, id);
	if (n == NULL || n->ops->read == NULL)
		(void)fuse_reply_err(req, n == NULL ? ESTALE : EISDIR);
	else
		n->ops->read(m, req, n, &rr);
}

static void op_release(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct node *n = NULL;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n != NULL && n->ops->release != NULL)
		n->ops->release(m, req, n, fi);
	else
		(void)fuse_reply_err(req, 0);
}

static void op_opendir(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct node *n = NULL;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n != NULL && n->ops->opendir != NULL) {
		n->ops->opendir(m, req, n, fi);
		return;
	}
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	(void)fuse_reply_open(req, fi);
}

static void list(fuse_req_t req, fuse_ino_t id, const struct dir_request *dr)
{
	struct incr_mount *m = mount_of(req);
	struct node *n;

	if (inode_unpack(id).slot != 0) {
		view_fs_readdir(m, req, view_slot_find(m, id), inode_unpack(id),
				dr);
		return;
	}
	n = node_table_find(&m->nodes, id);
	if (n == NULL || n->ops->readdir == NULL)
		(void)fuse_reply_err(req, n == NULL ? ESTALE : ENOTDIR);
	else
		n->ops->readdir(m, req, n, dr);
}

static void op_readdir(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct dir_request dr = {
		.fi = fi,
		.size = size,
		.off = (uint64_t)off,
	};

	list(req, id, &dr);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t id, size_t size,
			   off_t off, struct fuse_file_info *fi)
{
	struct dir_request dr = {
		.fi = fi,
		.size = size,
		.off = (uint64_t)off,
		.has_attrs = true,
	};

	list(req, id, &dr);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t id,
			  struct fuse_file_info *fi)
{
	struct incr_mount *m = mount_of(req);
	struct node *n = NULL;

	if (inode_unpack(id).slot == 0)
		n = node_table_find(&m->nodes, id);
	if (n != NULL && n->ops->releasedir != NULL)
		n->ops->releasedir(m, req, n, fi);
	else
		(void)fuse_reply_err(req, 0);
}

/* The space is that of the filesystem below, where staging takes it from. */
static void op_statfs(fuse_req_t req, fuse_ino_t id)
{
	const struct incr_mount *m = mount_of(req);
	struct statvfs st;

	(void)id;
	if (statvfs(incr_store_path(m->store), &st) < 0) {
		(void)fuse_reply_err(req, errno);
		return;
	}
	st.f_namemax = 255;
	(void)fuse_reply_statfs(req, &st);
}

const struct fuse_lowlevel_ops fs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.open = op_open,
	.read = op_read,
	.release = op_release,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	/* What only --staging=fuse allows. */
	.setattr = staging_op_setattr,
	.mknod = staging_op_mknod,
	.mkdir = staging_op_mkdir,
	.unlink = staging_op_unlink,
	.rmdir = staging_op_rmdir,
	.symlink = staging_op_symlink,
	.rename = staging_op_rename,
	.link = staging_op_link,
	.create = staging_op_create,
	.write = staging_op_write,
	.fsync = staging_op_fsync,
	.fsyncdir = staging_op_fsyncdir,
	.fallocate = staging_op_fallocate,
	.copy_file_range = staging_op_copy_file_range,
	.lseek = staging_op_lseek,
};
