/*
 * The table of operating-system calls: the only way src/ touches the disk, so
 * that tests can record, fail and replay every call.  io_posix.c is the real
 * implementation and the only file of src/ that makes these calls.
 */
#ifndef INCR_IO_H
#define INCR_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "incr.h"

struct buf;

enum io_kind { IO_FILE, IO_DIR, IO_SYMLINK, IO_OTHER };

struct io_stat {
	enum io_kind kind;
	uint32_t mode; /* the permission bits 07777 */
	uint32_t uid, gid;
	uint64_t size;
	uint64_t n_links;
	uint64_t device, inode;
	int64_t mtime_ns, ctime_ns;
};

/* Called for each entry but "." and ".."; non-zero ends the walk and is returned. @kind is a hint: IO_OTHER may need a stat. */
typedef int (*io_readdir_fn)(void *closure, const char *name,
			     enum io_kind kind);

/*
 * Every call returns 0 (or a count or descriptor) or -errno.  Paths are
 * relative to @dirfd (AT_FDCWD allowed at the edges only).  Every descriptor
 * is close-on-exec.  A table never returns -EINTR: it makes the call again.
 * Short counts are handled by the helpers below, not by the table.
 */
struct incr_io {
	int (*open_at)(const struct incr_io *io, int dirfd, const char *path,
		       int flags, uint32_t mode);
	int (*close)(const struct incr_io *io, int fd);
	int64_t (*pread)(const struct incr_io *io, int fd, void *data,
			 size_t size, uint64_t off);
	/* For descriptors without an offset: standard input, a pipe. */
	int64_t (*read)(const struct incr_io *io, int fd, void *data,
			size_t size);
	int64_t (*pwrite)(const struct incr_io *io, int fd, const void *data,
			  size_t size, uint64_t off);
	int (*truncate)(const struct incr_io *io, int fd, uint64_t size);
	int (*fsync)(const struct incr_io *io, int fd);
	int (*fdatasync)(const struct incr_io *io, int fd);
	int (*fsync_dir)(const struct incr_io *io, int dirfd);
	/* @flags: RENAME_NOREPLACE or 0 */
	int (*rename_at)(const struct incr_io *io, int from_dirfd,
			 const char *from, int to_dirfd, const char *to,
			 unsigned flags);
	int (*link_at)(const struct incr_io *io, int from_dirfd,
		       const char *from, int to_dirfd, const char *to);
	int (*symlink_at)(const struct incr_io *io, const char *target,
			  int dirfd, const char *path);
	/* @flags: AT_REMOVEDIR or 0 */
	int (*unlink_at)(const struct incr_io *io, int dirfd, const char *path,
			 int flags);
	int (*mkdir_at)(const struct incr_io *io, int dirfd, const char *path,
			uint32_t mode);
	int (*readdir)(const struct incr_io *io, int dirfd, io_readdir_fn fn,
		       void *closure);
	/* Never follows a symbolic link. @path "" stats @dirfd itself. */
	int (*stat_at)(const struct incr_io *io, int dirfd, const char *path,
		       struct io_stat *out_stat);
	/* Absolute path without links, at most @size bytes with its NUL. */
	int (*real_path)(const struct incr_io *io, const char *path, char *out,
			 size_t size);
	/* Room for later writes; the size of the file stays. */
	int (*fallocate)(const struct incr_io *io, int fd, uint64_t off,
			 uint64_t size);
	/* A read lease, F_SETLEASE: 0 when no one can write the open file, -EAGAIN when someone can. */
	int (*lease)(const struct incr_io *io, int fd, bool is_on);
	/* One try at an open-file-description lock on a byte range: -EAGAIN when held by others. */
	int (*lock)(const struct incr_io *io, int fd, bool is_exclusive,
		    uint64_t off, uint64_t size);
	int (*unlock)(const struct incr_io *io, int fd, uint64_t off,
		      uint64_t size);
	/* 1 when lock() would be refused, 0 when not; takes nothing. */
	int (*lock_test)(const struct incr_io *io, int fd, bool is_exclusive,
			 uint64_t off, uint64_t size);
	int (*set_times)(const struct incr_io *io, int fd, int64_t mtime_ns);
	int (*chmod)(const struct incr_io *io, int fd, uint32_t mode);
	int (*reflink)(const struct incr_io *io, int to_fd, int from_fd);
	int (*random)(const struct incr_io *io, void *data, size_t size);
	int64_t (*now_ns)(const struct incr_io *io); /* CLOCK_REALTIME */
	void (*pause_us)(const struct incr_io *io, unsigned us);
	void *closure; /* of a wrapping implementation */
};

extern const struct incr_io io_posix;

/* A descriptor closed at the end of its scope; IO_FILE_INIT: nothing. */
struct io_file {
	const struct incr_io *io; /* borrowed */
	int fd; /* owned; -1: nothing */
};

#define IO_FILE_INIT ((struct io_file){ NULL, -1 })

void cleanup_io_file(struct io_file *file);
#define _cleanup_io_file_ __attribute__((cleanup(cleanup_io_file)))

/*
 * Helpers over any table.  @thing names the file in messages.  They go on after
 * short counts, and fill @err.
 */
int io_open(const struct incr_io *io, int dirfd, const char *path, int flags,
	    uint32_t mode, int *out_fd, struct incr_error *err);
int io_write_all(const struct incr_io *io, int fd, const void *data,
		 size_t size, uint64_t off, const char *thing,
		 struct incr_error *err);
/* Exactly @size bytes; a file that ends early is INCR_E_CORRUPT. */
int io_read_exact(const struct incr_io *io, int fd, void *data, size_t size,
		  uint64_t off, const char *thing, struct incr_error *err);
/* Up to @size bytes; *out_size < size only at the end of the file. */
int io_read_upto(const struct incr_io *io, int fd, void *data, size_t size,
		 uint64_t off, size_t *out_size, const char *thing,
		 struct incr_error *err);
/* A whole small file; one of more than @limit bytes is INCR_E_CORRUPT. */
int io_read_file(const struct incr_io *io, int dirfd, const char *path,
		 size_t limit, struct buf *out, struct incr_error *err);
int io_sync_file(const struct incr_io *io, int fd, const char *thing,
		 struct incr_error *err);
int io_sync_dir(const struct incr_io *io, int dirfd, const char *thing,
		struct incr_error *err);
/* INCR_E_EXISTS when anything of that name is there. */
int io_mkdir(const struct incr_io *io, int dirfd, const char *path,
	     struct incr_error *err);
/* Replace a small file by a temporary one and a rename; is_durable: fsync the file and the directory. */
int io_replace_file(const struct incr_io *io, int dirfd, const char *path,
		    const void *data, size_t size, bool is_durable,
		    struct incr_error *err);
/* Remove a tree below @dirfd, never following a link; a missing one is no error. */
int io_remove_tree(const struct incr_io *io, int dirfd, const char *path,
		   struct incr_error *err);
/* close(), and for fd < 0 nothing. -errno matters only after a write. */
int io_close(const struct incr_io *io, int fd);
/* Processors that this process may use; at least 1. */
size_t io_count_cores(void);

#endif
