/*
 * Helpers that every kind of node needs: attributes, directory buffers, errors.
 */
#include "config.h"

#include "error_map.h"
#include "fs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 131072 /* what programs should read at once */

void fs_log(const struct incr_mount *m, const char *format, ...)
{
	char line[2048];
	va_list args;

	if (m->options.log == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	m->options.log(m->options.log_closure, line);
}

void fs_reply_error(struct incr_mount *m, fuse_req_t req, int code,
		    const struct incr_error *err)
{
	int reply = error_map_errno(code);

	if (reply == EIO)
		fs_log(m, "%s: %s: %s", err->word, err->message, err->thing);
	(void)fuse_reply_err(req, reply);
}

void fs_reply_unreadable(struct incr_mount *m, fuse_req_t req,
			 const struct incr_node *file, int code,
			 const struct incr_error *err)
{
	char name[256];
	size_t n = file->path_length;
	bool is_cut = n >= sizeof(name);

	/* the kernel asks again, for pieces of it */
	if (code != INCR_E_CORRUPT ||
	    __atomic_exchange_n(&m->told_damage, file->stable_id,
				__ATOMIC_RELAXED) == file->stable_id) {
		if (code != INCR_E_CORRUPT)
			fs_reply_error(m, req, code, err);
		else
			(void)fuse_reply_err(req, EIO);
		return;
	}
	if (is_cut)
		n = sizeof(name) - 1;
	/* one line, whatever the name holds */
	for (size_t i = 0; i < n; i++)
		name[i] = (unsigned char)file->path[i] < 0x20 ? '?' :
								file->path[i];
	name[n] = '\0';
	fs_log(m, "%s: %s%s of t%" PRIu64 ": %s at byte %" PRIu64 ": %s",
	       err->word, name, is_cut ? "..." : "", file->txn, err->thing,
	       err->off, err->message);
	(void)fuse_reply_err(req, EIO);
}

struct timespec fs_timespec(int64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};

	if (ts.tv_nsec < 0) {
		ts.tv_sec--;
		ts.tv_nsec += 1000000000;
	}
	return ts;
}

void fs_fill_stat(const struct incr_mount *m, struct stat *st, uint64_t ino,
		  mode_t mode, uint64_t size, struct timespec mtime)
{
	*st = (struct stat){
		.st_ino = ino,
		.st_mode = mode,
		.st_nlink = 1,
		.st_uid = m->uid,
		.st_gid = m->gid,
		.st_size = (off_t)size,
		.st_blksize = BLOCK_SIZE,
		.st_blocks = (blkcnt_t)(size / 512 + (size % 512 != 0)),
		.st_atim = mtime,
		.st_mtim = mtime,
		.st_ctim = mtime,
	};
}

int dir_buffer_init(struct dir_buffer *b, fuse_req_t req,
		    const struct dir_request *dr)
{
	*b = (struct dir_buffer){
		.req = req,
		.size = dr->size,
		.has_attrs = dr->has_attrs,
	};
	b->data = malloc(dr->size);
	return b->data == NULL ? INCR_E_NOMEM : 0;
}

void dir_buffer_release(struct dir_buffer *b)
{
	free(b->data);
	b->data = NULL;
}

bool dir_buffer_add(struct dir_buffer *b, const char *name,
		    const struct fuse_entry_param *e, uint64_t cookie)
{
	size_t left = b->size - b->used, size;
	char *at = b->data + b->used;

	if (b->has_attrs)
		size = fuse_add_direntry_plus(b->req, at, left, name, e,
					      (off_t)cookie);
	else
		size = fuse_add_direntry(b->req, at, left, name, &e->attr,
					 (off_t)cookie);
	if (size > left)
		return false;
	b->used += size;
	return true;
}

bool dir_buffer_add_dots(struct dir_buffer *b, uint64_t off, uint64_t ino)
{
	/* Without a node id the kernel takes the name and type alone. */
	struct fuse_entry_param e = {
		.attr = { .st_ino = ino, .st_mode = S_IFDIR },
	};

	if (off < INODE_COOKIE_DOT &&
	    !dir_buffer_add(b, ".", &e, INODE_COOKIE_DOT))
		return false;
	return off >= INODE_COOKIE_DOTDOT ||
	       dir_buffer_add(b, "..", &e, INODE_COOKIE_DOTDOT);
}

void dir_buffer_reply(struct dir_buffer *b)
{
	(void)fuse_reply_buf(b->req, b->data, b->used);
}
