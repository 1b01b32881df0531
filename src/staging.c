/*
 * The spool of a build.
 */
#include "config.h"

#include "staging.h"

#include "buf.h"
#include "build_record.h"
#include "error.h"
#include "source_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RESULT_MAX (UINT32_C(64) << 20)

static const char open_name[] = "staging";
static const char sealed_name[] = "sealed";

void staging_of_build(const struct incr_io *io, int store_dirfd, uint64_t build,
		      struct staging *out)
{
	*out = (struct staging){ .io = io, .store_dirfd = store_dirfd };
	(void)snprintf(out->dir, sizeof(out->dir), STAGING_SPOOL "/b%" PRIu64,
		       build);
}

int staging_of_preview(const struct incr_io *io, int store_dirfd,
		       struct staging *out, struct incr_error *err)
{
	uint64_t tag;
	int r = io->random(io, &tag, sizeof(tag));

	if (r < 0)
		return incr_fail_errno(err, r, NULL, "no random number");

	*out = (struct staging){ .io = io, .store_dirfd = store_dirfd };
	(void)snprintf(out->dir, sizeof(out->dir),
		       STAGING_SPOOL "/p%016" PRIx64, tag);
	return 0;
}

/* "<dir>/<name>", and "/<rest>" behind it unless that is NULL. */
static void below(const struct staging *s, const char *name, const char *rest,
		  char out[STAGING_PATH_MAX])
{
	(void)snprintf(out, STAGING_PATH_MAX, "%s/%s%s%s", s->dir, name,
		       rest ? "/" : "", rest ? rest : "");
}

void staging_path(const struct staging *s, const char *alias, bool is_sealed,
		  char out[STAGING_PATH_MAX])
{
	below(s, is_sealed ? sealed_name : open_name, alias, out);
}

/* @mode: of the new directory, whatever the umask. */
static int make_dir(const struct staging *s, const char *path, uint32_t mode,
		    struct incr_error *err)
{
	_cleanup_io_file_ struct io_file dir = { s->io, -1 };
	int r = io_mkdir(s->io, s->store_dirfd, path, err);

	if (r < 0)
		return r;
	r = io_open(s->io, s->store_dirfd, path,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir.fd, err);
	if (r < 0)
		return r;
	r = s->io->chmod(s->io, dir.fd, mode);
	return r < 0 ? incr_fail_errno(err, r, path, "cannot set its mode") : 0;
}

static int sync_dir(const struct staging *s, const char *path,
		    struct incr_error *err)
{
	_cleanup_io_file_ struct io_file dir = { s->io, -1 };
	int r = io_open(s->io, s->store_dirfd, path,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir.fd, err);

	return r < 0 ? r : io_sync_dir(s->io, dir.fd, path, err);
}

static int make_dirs(const struct staging *s, const char *const *aliases,
		     size_t n, struct incr_error *err)
{
	char path[STAGING_PATH_MAX];
	int r;

	below(s, open_name, NULL, path);
	r = make_dir(s, path, 0755, err);
	for (size_t i = 0; i < n && r == 0; i++) {
		staging_path(s, aliases[i], false, path);
		r = make_dir(s, path, 0755, err);
	}
	if (r < 0)
		return r;

	below(s, open_name, NULL, path);
	r = sync_dir(s, path, err);
	return r < 0 ? r : sync_dir(s, s->dir, err);
}

int staging_create(const struct staging *s, const char *const *aliases,
		   size_t n, struct incr_error *err)
{
	int r = make_dir(s, s->dir, 0755, err);

	if (r < 0)
		return r;

	r = make_dirs(s, aliases, n, err);
	if (r < 0)
		(void)staging_remove(s, NULL); /* r says more */
	return r;
}

int staging_name_build(struct staging *s, uint64_t build,
		       struct incr_error *err)
{
	struct staging named;
	int r;

	staging_of_build(s->io, s->store_dirfd, build, &named);
	/* Of a build that a power cut undid before its record was durable. */
	r = staging_remove(&named, err);
	if (r < 0)
		return r;
	r = s->io->rename_at(s->io, s->store_dirfd, s->dir, s->store_dirfd,
			     named.dir, RENAME_NOREPLACE);
	if (r < 0)
		return incr_fail_errno(err, r, named.dir,
				       "cannot rename to it");

	*s = named;
	return 0;
}

int staging_sync(const struct staging *s, struct incr_error *err)
{
	return sync_dir(s, STAGING_SPOOL, err);
}

int staging_remove(const struct staging *s, struct incr_error *err)
{
	return io_remove_tree(s->io, s->store_dirfd, s->dir, err);
}

/* *out_exists: is there a directory of this name? */
static int look(const struct staging *s, const char *name, bool *out_exists,
		struct incr_error *err)
{
	char path[STAGING_PATH_MAX];
	struct io_stat st;
	int r;

	below(s, name, NULL, path);
	r = s->io->stat_at(s->io, s->store_dirfd, path, &st);
	if (r < 0 && r != -ENOENT)
		return incr_fail_errno(err, r, path, "cannot look at it");

	*out_exists = r == 0 && st.kind == IO_DIR;
	return 0;
}

int staging_state(const struct staging *s, enum staging_state *out,
		  struct incr_error *err)
{
	bool is_open = false, is_sealed = false;
	int r = look(s, sealed_name, &is_sealed, err);

	if (r == 0)
		r = look(s, open_name, &is_open, err);
	if (r < 0)
		return r;

	*out = is_sealed ? STAGING_SEALED :
	       is_open	 ? STAGING_OPEN :
			   STAGING_MISSING;
	return 0;
}

static int no_staging(const struct staging *s, struct incr_error *err)
{
	return incr_fail(err, INCR_E_NOTFOUND, "no-staging", s->dir,
			 "the staging of this build is gone");
}

static int move(const struct staging *s, const char *from, const char *to,
		enum staging_state wanted, struct incr_error *err)
{
	char from_path[STAGING_PATH_MAX], to_path[STAGING_PATH_MAX];
	enum staging_state state;
	int r = staging_state(s, &state, err);

	if (r < 0 || state == wanted)
		return r;
	if (state == STAGING_MISSING)
		return no_staging(s, err);

	below(s, from, NULL, from_path);
	below(s, to, NULL, to_path);
	r = s->io->rename_at(s->io, s->store_dirfd, from_path, s->store_dirfd,
			     to_path, RENAME_NOREPLACE);
	return r < 0 ? incr_fail_errno(err, r, from_path, "cannot rename it") :
		       0;
}

int staging_seal(const struct staging *s, struct incr_error *err)
{
	return move(s, open_name, sealed_name, STAGING_SEALED, err);
}

int staging_unseal(const struct staging *s, struct incr_error *err)
{
	return move(s, sealed_name, open_name, STAGING_OPEN, err);
}

int staging_is_empty(const struct staging *s, const char *alias, bool is_sealed,
		     bool *out_is_empty, struct incr_error *err)
{
	char path[STAGING_PATH_MAX];
	struct source_tree *tree;
	struct source_entry e;
	struct io_stat st;
	int r;

	staging_path(s, alias, is_sealed, path);
	r = s->io->stat_at(s->io, s->store_dirfd, path, &st);
	if (r == -ENOENT || (r == 0 && st.kind != IO_DIR))
		return no_staging(s, err);
	if (r < 0)
		return incr_fail_errno(err, r, path, "cannot look at it");

	r = source_tree_new(s->io, true, s->store_dirfd, path, "", &tree);
	if (r < 0)
		return incr_fail_nomem(err);
	r = source_tree_next(tree, &e, err);
	source_tree_free(tree);
	if (r < 0)
		return r;

	*out_is_empty = r == 1;
	return 0;
}

static void marker_path(const struct staging *s, const char *alias,
			char out[STAGING_PATH_MAX])
{
	(void)snprintf(out, STAGING_PATH_MAX, "%s/abort%s%s", s->dir,
		       alias ? "-" : "", alias ? alias : "");
}

int staging_mark_abort(const struct staging *s, const char *alias,
		       struct incr_error *err)
{
	_cleanup_io_file_ struct io_file file = { s->io, -1 };
	char path[STAGING_PATH_MAX];

	marker_path(s, alias, path);
	return io_open(s->io, s->store_dirfd, path,
		       O_WRONLY | O_CREAT | O_NOFOLLOW, 0644, &file.fd, err);
}

int staging_is_marked(const struct staging *s, const char *alias,
		      bool *out_is_marked, struct incr_error *err)
{
	char path[STAGING_PATH_MAX];
	struct io_stat st;
	int r;

	marker_path(s, alias, path);
	r = s->io->stat_at(s->io, s->store_dirfd, path, &st);
	if (r < 0 && r != -ENOENT)
		return incr_fail_errno(err, r, path, "cannot look at it");

	*out_is_marked = r == 0;
	return 0;
}

int staging_write_result(const struct staging *s,
			 const struct incr_error *result,
			 struct incr_error *err)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	char path[STAGING_PATH_MAX];

	if (build_error_encode(result, &bytes) < 0)
		return incr_fail_nomem(err);
	below(s, "result", NULL, path);
	return io_replace_file(s->io, s->store_dirfd, path, bytes.data,
			       bytes.size, false, err);
}

int staging_read_result(const struct staging *s, struct incr_error *out)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	char path[STAGING_PATH_MAX];

	below(s, "result", NULL, path);
	if (io_read_file(s->io, s->store_dirfd, path, RESULT_MAX, &bytes,
			 NULL) < 0)
		return 1;
	return build_error_decode(bytes.data, bytes.size, out) < 0 ? 1 : 0;
}
