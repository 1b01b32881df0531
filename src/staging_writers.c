/*
 * Who can still write a staged file: the open descriptors and the shared
 * writable mappings of all processes, as /proc shows them.
 *
 * Processes come and go meanwhile, and those of other users show nothing:
 * whatever cannot be read is passed over.  First the writers on the device of
 * the staging are gathered (few), then the tree is walked against them, so
 * that memory does not follow the tree.
 */
#include "config.h"

#include "buf.h"
#include "error.h"
#include "name.h"
#include "source_tree.h"
#include "staging.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define LINE_MAX_SIZE 8192 /* a line of maps: at most a path and some numbers */

struct writer {
	uint64_t inode;
	uint32_t pid;
};

struct scan {
	const struct incr_io *io;
	uint64_t device; /* that counts */
	int proc; /* descriptor of /proc */
	int fds; /* of /proc/<pid>/fd */
	uint32_t pid;
	struct buf writers; /* of struct writer */
	bool is_nomem;
};

static void add_writer(struct scan *s, uint64_t inode)
{
	struct writer w = { .inode = inode, .pid = s->pid };

	if (buf_put(&s->writers, &w, sizeof(w)) < 0)
		s->is_nomem = true;
}

/* A small file of /proc as a string; empty when it cannot be read. */
static void read_proc(struct scan *s, const char *path, char *out, size_t size)
{
	_cleanup_io_file_ struct io_file file = { s->io, -1 };
	size_t n = 0;

	out[0] = '\0';
	file.fd = s->io->open_at(s->io, s->proc, path, O_RDONLY, 0);
	if (file.fd >= 0 &&
	    io_read_upto(s->io, file.fd, out, size - 1, 0, &n, path, NULL) == 0)
		out[n] = '\0';
}

static bool is_number(const char *name)
{
	return *name && strspn(name, "0123456789") == strlen(name);
}

/* "flags:" of fdinfo is the open mode in octal. */
static bool is_open_for_writing(struct scan *s, const char *fd)
{
	char path[64], text[512];
	const char *flags;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/fdinfo/%.10s", s->pid,
		       fd);
	read_proc(s, path, text, sizeof(text));
	flags = strstr(text, "flags:");
	return flags && (strtoul(flags + strlen("flags:"), NULL, 8) &
			 O_ACCMODE) != O_RDONLY;
}

static int look_at_fd(void *closure, const char *name, enum io_kind kind)
{
	struct scan *s = closure;
	_cleanup_io_file_ struct io_file file = { s->io, -1 };
	struct io_stat st;

	(void)kind;
	if (!is_number(name) || !is_open_for_writing(s, name))
		return 0;
	file.fd = s->io->open_at(s->io, s->fds, name, O_PATH, 0);
	if (file.fd >= 0 && s->io->stat_at(s->io, file.fd, "", &st) == 0 &&
	    st.kind == IO_FILE && st.device == s->device)
		add_writer(s, st.inode);
	return 0;
}

/* "from-to perms offset major:minor inode path" */
static void look_at_mapping(struct scan *s, const char *line)
{
	unsigned major_id, minor_id;
	uint64_t inode;
	char perms[5];

	if (sscanf(line, "%*x-%*x %4s %*x %x:%x %" SCNu64, perms, &major_id,
		   &minor_id, &inode) != 4)
		return;
	if (perms[1] == 'w' && perms[3] == 's' &&
	    makedev(major_id, minor_id) == s->device)
		add_writer(s, inode);
}

/* Each whole line of @text; what stands behind the last one is kept. */
static void look_at_lines(struct scan *s, char *text, size_t *size)
{
	char *line = text, *end;

	while ((end = memchr(line, '\n', *size - (size_t)(line - text)))) {
		*end = '\0';
		look_at_mapping(s, line);
		line = end + 1;
	}
	*size -= (size_t)(line - text);
	memmove(text, line, *size);
}

static void look_at_mappings(struct scan *s)
{
	_cleanup_io_file_ struct io_file file = { s->io, -1 };
	char path[32], text[LINE_MAX_SIZE + 1];
	size_t size = 0, n;
	uint64_t off = 0;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/maps", s->pid);
	file.fd = s->io->open_at(s->io, s->proc, path, O_RDONLY, 0);
	if (file.fd < 0)
		return;
	do {
		if (size == LINE_MAX_SIZE)
			size = 0; /* no such line is of interest */
		if (io_read_upto(s->io, file.fd, text + size,
				 LINE_MAX_SIZE - size, off, &n, path, NULL) < 0)
			return;
		off += n;
		size += n;
		look_at_lines(s, text, &size);
	} while (n);
}

static int look_at_process(void *closure, const char *name, enum io_kind kind)
{
	struct scan *s = closure;
	_cleanup_io_file_ struct io_file fds = { s->io, -1 };
	char path[32];

	(void)kind;
	if (!is_number(name) || strlen(name) > 10)
		return 0;
	s->pid = (uint32_t)strtoul(name, NULL, 10);
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/fd", s->pid);
	fds.fd =
		s->io->open_at(s->io, s->proc, path, O_RDONLY | O_DIRECTORY, 0);
	if (fds.fd < 0)
		return 0;
	s->fds = fds.fd;
	/* A process that ends meanwhile writes nothing. */
	(void)s->io->readdir(s->io, fds.fd, look_at_fd, s);
	look_at_mappings(s);
	return s->is_nomem;
}

static const struct writer *find_writer(const struct scan *s, uint64_t inode)
{
	const struct writer *writers = (const void *)s->writers.data;

	for (size_t i = 0; i < s->writers.size / sizeof(*writers); i++)
		if (writers[i].inode == inode)
			return &writers[i];
	return NULL;
}

static int report(struct scan *s, const struct writer *w, const char *path,
		  struct incr_error *err)
{
	char file[32], program[64], printable[64];

	(void)snprintf(file, sizeof(file), "%" PRIu32 "/comm", w->pid);
	read_proc(s, file, program, sizeof(program));
	program[strcspn(program, "\n")] = '\0';
	name_escape(program, strlen(program), printable, sizeof(printable));
	return incr_fail(err, INCR_E_CONFLICT, "staging-busy", path,
			 "process %" PRIu32 " (%s) can still write it", w->pid,
			 printable[0] ? printable : "?");
}

static int walk(struct scan *s, struct source_tree *tree,
		struct incr_error *err)
{
	struct source_entry e;
	bool is_busy = false;
	int r;

	while ((r = source_tree_next(tree, &e, err)) == 0) {
		const struct writer *w;
		struct io_stat st;

		if (s->io->stat_at(s->io, e.dirfd, e.name, &st) < 0)
			continue;
		w = find_writer(s, st.inode);
		if (!w)
			continue;
		if (!is_busy)
			(void)report(s, w, e.path, err);
		is_busy = true;
		incr_fail_add_path(err, e.path, e.path_length);
	}
	if (r < 0 && !is_busy)
		return r;
	return is_busy ? INCR_E_CONFLICT : 0;
}

static int scan_processes(struct scan *s, struct incr_error *err)
{
	int r = s->io->readdir(s->io, s->proc, look_at_process, s);

	if (s->is_nomem)
		return incr_fail_nomem(err);
	return r < 0 ? incr_fail_errno(err, r, "/proc", "cannot list") : 0;
}

static int check(struct scan *s, const struct staging *staging,
		 const char *path, struct incr_error *err)
{
	_cleanup_io_file_ struct io_file proc = { s->io, -1 };
	struct source_tree *tree;
	int r;

	proc.fd = s->io->open_at(s->io, AT_FDCWD, "/proc",
				 O_RDONLY | O_DIRECTORY, 0);
	if (proc.fd < 0)
		return 0; /* a system that does not tell */
	s->proc = proc.fd;
	r = scan_processes(s, err);
	if (r < 0 || !s->writers.size)
		return r;

	r = source_tree_new(s->io, true, staging->store_dirfd, path, "", &tree);
	if (r < 0)
		return incr_fail_nomem(err);
	r = walk(s, tree, err);
	source_tree_free(tree);
	return r;
}

int staging_check_writers(const struct staging *s, const char *alias,
			  struct incr_error *err)
{
	struct scan scan = { .io = s->io, .proc = -1 };
	char path[STAGING_PATH_MAX];
	struct io_stat st;
	int r;

	staging_path(s, alias, true, path);
	r = s->io->stat_at(s->io, s->store_dirfd, path, &st);
	if (r < 0)
		return incr_fail_errno(err, r, path, "cannot look at it");

	scan.device = st.device;
	r = check(&scan, s, path, err);
	buf_release(&scan.writers);
	return r;
}
