/*
 * Walking one tree.  A directory's names are sorted with '/' appended to those
 * of directories, so that files come in byte order of their whole path.  Each
 * directory is opened at its parent's descriptor, never through a link.
 */
#include "config.h"

#include "source_tree.h"

#include "error.h"
#include "name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define THING_SIZE 512

/* An open directory, and its names. */
struct level {
	int dirfd; /* owned */
	/* For each entry its name, with '/' if a directory, NUL, one byte of
	 * enum io_kind. */
	struct buf bytes;
	char **names; /* owned; into @bytes; sorted */
	size_t n_names;
	size_t next; /* to be given */
	size_t path_length; /* of the tree's path up to and with this '/' */
};

struct source_tree {
	const struct incr_io *io; /* borrowed */
	bool skips_special;
	bool leaves_out; /* the directory that is the next two */
	uint64_t out_device, out_inode;
	int dirfd; /* borrowed */
	char *root; /* owned */
	struct buf path; /* in the store, of the current entry */
	size_t prefix_length; /* with its '/' */
	struct level *levels; /* owned */
	size_t n_levels;
	size_t levels_capacity;
	bool is_started;
};

static void level_release(const struct incr_io *io, struct level *level)
{
	(void)io_close(io, level->dirfd); /* read only */
	buf_release(&level->bytes);
	free(level->names);
}

int source_tree_new(const struct incr_io *io, bool skips_special, int dirfd,
		    const char *path, const char *prefix,
		    struct source_tree **out_tree)
{
	struct source_tree *t = calloc(1, sizeof(*t));
	size_t length = strlen(prefix);
	int r = 0;

	if (!t)
		return INCR_E_NOMEM;

	t->io = io;
	t->skips_special = skips_special;
	t->dirfd = dirfd;
	t->root = strdup(path);
	if (length > 0) {
		r = buf_put(&t->path, prefix, length);
		if (r == 0)
			r = buf_put_u8(&t->path, '/');
	}
	t->prefix_length = t->path.size;
	if (!t->root || r < 0) {
		source_tree_free(t);
		return INCR_E_NOMEM;
	}
	*out_tree = t;
	return 0;
}

void source_tree_leave_out(struct source_tree *t, const struct io_stat *st)
{
	t->leaves_out = true;
	t->out_device = st->device;
	t->out_inode = st->inode;
}

void source_tree_free(struct source_tree *t)
{
	if (!t)
		return;

	while (t->n_levels > 0)
		level_release(t->io, &t->levels[--t->n_levels]);
	free(t->levels);
	buf_release(&t->path);
	free(t->root);
	free(t);
}

/* The current path of the source, for messages; @name is added if not NULL. */
static void describe(const struct source_tree *t, const char *name, char *out)
{
	struct source_entry e = { .root = t->root, .rel = "" };
	size_t used;

	if (t->path.size > t->prefix_length)
		e.rel = (const char *)t->path.data + t->prefix_length;
	source_entry_describe(&e, out, THING_SIZE);
	used = strlen(out);
	if (name && used < THING_SIZE)
		(void)strncat(out, name, THING_SIZE - 1 - used);
}

struct listing {
	const struct source_tree *tree;
	int dirfd;
	struct buf bytes;
	size_t n_names;
	int failed; /* -errno of a stat, or INCR_E_NOMEM as 1 */
	char failed_name[NAME_PART_MAX + 1];
};

static int list_entry(void *closure, const char *name, enum io_kind kind)
{
	struct listing *l = closure;
	const struct incr_io *io = l->tree->io;
	struct io_stat st;
	int r = 0;

	/* The kind must be certain before names are sorted. */
	if (kind == IO_OTHER) {
		r = io->stat_at(io, l->dirfd, name, &st);
		if (r == -ENOENT)
			return 0; /* gone: as if it had never been */
		if (r < 0) {
			(void)strncpy(l->failed_name, name, NAME_PART_MAX);
			l->failed = r;
			return 1;
		}
		kind = st.kind;
	}
	r = buf_put(&l->bytes, name, strlen(name));
	if (r == 0 && kind == IO_DIR)
		r = buf_put_u8(&l->bytes, '/');
	if (r == 0)
		r = buf_put_u8(&l->bytes, 0);
	if (r == 0)
		r = buf_put_u8(&l->bytes, (uint8_t)kind);
	if (r < 0) {
		l->failed = 1;
		return 1;
	}
	l->n_names++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int sort_names(struct level *level)
{
	char *at = (char *)level->bytes.data;

	if (level->n_names == 0)
		return 0;

	level->names = calloc(level->n_names, sizeof(*level->names));
	if (!level->names)
		return INCR_E_NOMEM;

	for (size_t i = 0; i < level->n_names; i++) {
		level->names[i] = at;
		at += strlen(at) + 2;
	}
	qsort(level->names, level->n_names, sizeof(*level->names),
	      compare_names);
	return 0;
}

/* @level is taken if this gives 0. */
static int add_level(struct source_tree *t, const struct level *level)
{
	size_t n = t->levels_capacity ? 2 * t->levels_capacity : 8;
	struct level *grown;

	if (t->n_levels == t->levels_capacity) {
		grown = reallocarray(t->levels, n, sizeof(*grown));
		if (!grown)
			return INCR_E_NOMEM;
		t->levels = grown;
		t->levels_capacity = n;
	}
	t->levels[t->n_levels++] = *level;
	return 0;
}

/* Read and sort a directory into a new level; @dirfd is taken in any case. */
static int push_level(struct source_tree *t, int dirfd, struct incr_error *err)
{
	struct listing l = { .tree = t, .dirfd = dirfd };
	struct level level = { .dirfd = dirfd, .path_length = t->path.size };
	char thing[THING_SIZE];
	int r;

	r = t->io->readdir(t->io, dirfd, list_entry, &l);
	level.bytes = l.bytes;
	level.n_names = l.n_names;
	if (l.failed < 0 || (r < 0 && l.failed == 0)) {
		describe(t, l.failed < 0 ? l.failed_name : NULL, thing);
		r = incr_fail_errno(err, l.failed < 0 ? -l.failed : -r, thing,
				    "cannot read");
		level_release(t->io, &level);
		return r;
	}
	if (l.failed || sort_names(&level) < 0 || add_level(t, &level) < 0) {
		level_release(t->io, &level);
		return incr_fail_nomem(err);
	}
	return 0;
}

/* A store that is kept among its sources is none of them. */
static int is_left_out(const struct source_tree *t, int dirfd,
		       bool *out_is_left_out, struct incr_error *err)
{
	char thing[THING_SIZE];
	struct io_stat st;
	int r;

	*out_is_left_out = false;
	if (!t->leaves_out)
		return 0;

	r = t->io->stat_at(t->io, dirfd, "", &st);
	if (r < 0) {
		describe(t, NULL, thing);
		return incr_fail_errno(err, -r, thing, "cannot stat");
	}
	*out_is_left_out = st.device == t->out_device &&
			   st.inode == t->out_inode;
	return 0;
}

/* Only the argument itself may be a link to a directory. */
static int open_root(struct source_tree *t, struct incr_error *err)
{
	bool is_out;
	int fd, r;

	r = io_open(t->io, t->dirfd, t->root,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, &fd, err);
	if (r < 0)
		return r;

	r = is_left_out(t, fd, &is_out, err);
	if (r == 0 && is_out)
		r = incr_fail(err, INCR_E_INVALID, "source-is-store", t->root,
			      "the store cannot be committed to itself");
	if (r < 0) {
		(void)io_close(t->io, fd); /* read only */
		return r;
	}
	t->is_started = true;
	return push_level(t, fd, err);
}

static int open_dir(struct source_tree *t, int dirfd, const char *name,
		    struct incr_error *err)
{
	char thing[THING_SIZE];
	bool is_out;
	int fd, r;

	/* Also bounds the depth. */
	r = name_check_path((const char *)t->path.data, t->path.size - 1, err);
	if (r < 0)
		return r;

	do {
		fd = t->io->open_at(
			t->io, dirfd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	} while (fd == -EINTR);
	if (fd >= 0) {
		r = is_left_out(t, fd, &is_out, err);
		if (r == 0 && !is_out)
			return push_level(t, fd, err);
		(void)io_close(t->io, fd); /* read only */
		return r;
	}

	describe(t, NULL, thing);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return source_fail_changed(err, thing,
					   "it was replaced or removed");
	return incr_fail_errno(err, -fd, thing, "cannot open");
}

/* path := directory of @level, then @name; NUL behind it. */
static int set_path(struct source_tree *t, const struct level *level,
		    const char *name)
{
	int r;

	t->path.size = level->path_length;
	r = buf_put(&t->path, name, strlen(name) + 1);
	if (r == 0)
		t->path.size--;
	return r;
}

/* One name: a file into @out_entry (0), or nothing to give (1). */
static int step(struct source_tree *t, struct source_entry *out_entry,
		struct incr_error *err)
{
	struct level *level = &t->levels[t->n_levels - 1];
	char *name, thing[THING_SIZE];
	size_t length;
	enum io_kind kind;
	int r;

	if (level->next == level->n_names) {
		level_release(t->io, level);
		t->n_levels--;
		return 1;
	}
	name = level->names[level->next++];
	length = strlen(name);
	kind = (enum io_kind)name[length + 1];
	if (set_path(t, level, name) < 0)
		return incr_fail_nomem(err);

	if (kind == IO_DIR) {
		name[length - 1] = '\0'; /* a '/' would follow a link */
		r = open_dir(t, level->dirfd, name, err);
		return r < 0 ? r : 1;
	}
	if (kind != IO_FILE) {
		if (t->skips_special)
			return 1;
		describe(t, NULL, thing);
		return source_fail_special(err, thing, kind);
	}
	*out_entry = (struct source_entry){
		.kind = SOURCE_FILE,
		.path = (const char *)t->path.data,
		.path_length = t->path.size,
		.dirfd = level->dirfd,
		.name = name,
		.fd = -1,
		.root = t->root,
		.rel = (const char *)t->path.data + t->prefix_length,
	};
	return 0;
}

int source_tree_next(struct source_tree *t, struct source_entry *out_entry,
		     struct incr_error *err)
{
	int r;

	if (!t->is_started) {
		r = open_root(t, err);
		if (r < 0)
			return r;
	}
	while (t->n_levels > 0) {
		r = step(t, out_entry, err);
		if (r <= 0)
			return r;
	}
	return 1;
}
