/*
 * libincr: incremental computation over datasets of files.
 *
 * The only public header.  Conventions: functions return 0 or a negative enum
 * incr_err; positive values only where the comment says so.  Outputs come
 * last, are named out_* and are untouched on failure.  Pointers are borrowed
 * for the call unless the comment says owned or taken.  A handle may be used
 * by one thread at a time unless said otherwise.
 */
#ifndef INCR_H
#define INCR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INCR_API __attribute__((visibility("default")))

/* ------------------------------------------------------------------ */
/* Errors                                                             */
/* ------------------------------------------------------------------ */

/* What the caller can do about it. */
enum incr_err {
	INCR_E_NOMEM = -1, /* out of memory */
	INCR_E_IO = -2, /* the operating system refused; sys_errno says how */
	INCR_E_NOSPC =
		-3, /* disk or quota full; nothing is lost, try again with space */
	INCR_E_EXISTS = -4, /* the thing is already there */
	INCR_E_NOTFOUND =
		-5, /* no such store, dataset, branch, transaction, build or path */
	INCR_E_BUSY = -6, /* a lock did not come free in time */
	INCR_E_CONFLICT =
		-7, /* branch moved, append names an existing path, open transaction */
	INCR_E_REFUSED =
		-8, /* require_incremental, or a hard rule of incremental resolution */
	INCR_E_CORRUPT = -9, /* bytes on disk do not match their checksums */
	INCR_E_UNSUPPORTED =
		-10, /* a store of a newer format, or a feature this machine lacks */
	INCR_E_INVALID =
		-11, /* the caller's mistake: bad name, bad option, bad source */
	INCR_E_READONLY = -12, /* the store cannot be written */
	INCR_E_RANGE = -13, /* a number outside its limits */
	INCR_E_DEAD = -14, /* a sync failed on this handle: reopen the store */
};

/* Details of a failure: filled once, by the function that knows them. */
struct incr_error {
	enum incr_err code;
	int sys_errno; /* 0 when no system call failed */
	char word[40]; /* stable code word, as in the JSON error form */
	char thing[512]; /* which thing; may be empty; printable */
	char message[1024]; /* what went wrong, without the thing; one line */
	char hint[512]; /* what to do; may be empty */
	char *paths; /* owned: NUL-terminated paths back to back, all collisions */
	size_t paths_size; /* bytes in paths */
	size_t n_paths;
	uint64_t off; /* of damage: where it is in the file @thing; else 0 */
};

#define INCR_ERROR_INIT ((struct incr_error){ 0 })

INCR_API void incr_error_release(struct incr_error *err);
/* One lower-case sentence for a code; static. */
INCR_API const char *incr_strerror(enum incr_err code);

#define INCR_HASH_SIZE 16 /* XXH3-128, canonical */

/* Called now and then during long work. @done of @total; total 0: not known. Never from two threads at once. */
typedef void (*incr_progress_fn)(void *closure, uint64_t n_files_done,
				 uint64_t size_done, uint64_t n_files_total,
				 uint64_t size_total);

/* Key and value texts in the order they were given; NUL-terminated UTF-8. */
struct incr_pair {
	char *key;
	char *value;
};

struct incr_pairs {
	size_t n;
	struct incr_pair *items;
};

/* ------------------------------------------------------------------ */
/* Store                                                              */
/* ------------------------------------------------------------------ */

struct incr_store;

struct incr_store_options {
	bool is_readonly; /* never write, also no derived tables and no locks */
	/* Open a store whose log is damaged too, for incr_verify() alone: everything else fails. */
	bool allows_damage;
	uint64_t wait_ms; /* how long any call waits for a lock */
	size_t frame_cache_size; /* bytes of decoded content kept; 0: 32 MiB */
	size_t block_cache_size; /* bytes of decoded table blocks kept; 0: 16 MiB */
};

/*
 * Make a store in @path, which must be absent or an empty directory.
 * Durable when 0 is returned.  INCR_E_EXISTS: not empty.
 */
INCR_API int incr_store_init(const char *path, struct incr_error *err);
/*
 * INCR_E_NOTFOUND "no-store" (also a directory that is no store: "not-a-store"),
 * INCR_E_UNSUPPORTED "newer-format", INCR_E_CORRUPT.  A store on read-only media or
 * without write permission is opened as if is_readonly were set.
 */
INCR_API int incr_store_open(const char *path,
			     const struct incr_store_options *options,
			     struct incr_store **out_store,
			     struct incr_error *err);
INCR_API void incr_store_close(struct incr_store *st);
/* 36 characters and a NUL; borrowed. */
INCR_API const char *incr_store_uuid(const struct incr_store *st);
INCR_API const char *incr_store_path(const struct incr_store *st); /* absolute */
INCR_API bool incr_store_is_readonly(const struct incr_store *st);
/* See what others appended since the last call.  Every writing call does this by itself. */
INCR_API int incr_store_refresh(struct incr_store *st, struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Datasets and branches                                              */
/* ------------------------------------------------------------------ */

struct incr_dataset_info {
	uint64_t id; /* never reused; rid is ri.incr.<uuid>.dataset.<id> */
	char *name;
	char *description; /* never NULL */
	struct incr_pairs meta;
	int64_t created_ns;
};
INCR_API void incr_dataset_info_release(struct incr_dataset_info *info);

INCR_API int incr_dataset_create(struct incr_store *st, const char *name,
				 const char *description,
				 const struct incr_pairs *meta,
				 uint64_t *out_id, struct incr_error *err);
INCR_API int incr_dataset_find(struct incr_store *st, const char *name,
			       struct incr_dataset_info *out_info,
			       struct incr_error *err);
INCR_API int incr_dataset_by_id(struct incr_store *st, uint64_t id,
				struct incr_dataset_info *out_info,
				struct incr_error *err);
/* In name order; a non-zero return of @fn ends the walk and is returned. */
typedef int (*incr_dataset_fn)(void *closure,
			       const struct incr_dataset_info *info);
INCR_API int incr_dataset_list(struct incr_store *st, incr_dataset_fn fn,
			       void *closure, struct incr_error *err);
INCR_API int incr_dataset_rename(struct incr_store *st, uint64_t id,
				 const char *new_name, struct incr_error *err);
INCR_API int incr_dataset_delete(struct incr_store *st, uint64_t id,
				 struct incr_error *err);
/* Set (value not NULL) or clear keys. */
INCR_API int incr_dataset_set_meta(struct incr_store *st, uint64_t id,
				   const struct incr_pairs *meta,
				   struct incr_error *err);

struct incr_branch_info {
	uint64_t id;
	uint64_t dataset_id;
	char *name;
	char *parent; /* branch it was made from; NULL for a root */
	uint64_t head; /* newest committed transaction on its path; 0: none */
	uint64_t open_txn; /* the OPEN transaction; 0: none */
	uint64_t view_start; /* of the head's view; 0: none */
	uint64_t view_files, view_size; /* of the head's view */
};
INCR_API void incr_branch_info_release(struct incr_branch_info *info);

INCR_API int incr_branch_find(struct incr_store *st, uint64_t dataset_id,
			      const char *name,
			      struct incr_branch_info *out_info,
			      struct incr_error *err);
typedef int (*incr_branch_fn)(void *closure,
			      const struct incr_branch_info *info);
INCR_API int incr_branch_list(struct incr_store *st, uint64_t dataset_id,
			      incr_branch_fn fn, void *closure,
			      struct incr_error *err);
/* @at: a committed transaction of the dataset; 0: a root without history. @parent: name or NULL. */
INCR_API int incr_branch_create(struct incr_store *st, uint64_t dataset_id,
				const char *name, const char *parent,
				uint64_t at, struct incr_error *err);
INCR_API int incr_branch_delete(struct incr_store *st, uint64_t dataset_id,
				const char *name, struct incr_error *err);
/* Rollback: move the head to @to, which must be committed, of this dataset and with data. */
INCR_API int incr_branch_reset(struct incr_store *st, uint64_t dataset_id,
			       const char *name, uint64_t to,
			       struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Transactions                                                       */
/* ------------------------------------------------------------------ */

/* What became of a path between two views. */
enum incr_change { INCR_ADDED = 1, INCR_MODIFIED = 2, INCR_REMOVED = 3 };

enum incr_txn_type {
	INCR_SNAPSHOT = 1,
	INCR_APPEND = 2,
	INCR_UPDATE = 3,
	INCR_DELETE = 4
};
enum incr_txn_status {
	INCR_OPEN = 1,
	INCR_COMMITTED = 2,
	INCR_ABORTED = 3,
	INCR_LOST = 4, /* its record is damaged: only its place is known */
};

INCR_API const char *incr_txn_type_name(
	enum incr_txn_type type); /* "SNAPSHOT" ... */
INCR_API const char *incr_txn_status_name(
	enum incr_txn_status status); /* "OPEN" ... */

struct incr_txn_info {
	uint64_t number; /* printed t<number> */
	uint64_t dataset_id;
	char *dataset; /* its name now */
	uint64_t branch_id;
	char *branch; /* the branch it was made on */
	enum incr_txn_type type;
	enum incr_txn_status status;
	char *origin;
	char *user;
	char *message; /* never NULL */
	struct incr_pairs meta;
	int64_t opened_ns, closed_ns; /* closed_ns 0 while OPEN */
	uint64_t parent; /* transaction before it on its path; 0: first */
	uint64_t view_start; /* first transaction of the view it ends */
	uint64_t n_files, n_removed,
		size; /* paths put, paths removed, bytes put */
	uint64_t view_files, view_size; /* of the view it ends */
	uint64_t build; /* 0: by hand */
};
INCR_API void incr_txn_info_release(struct incr_txn_info *info);

INCR_API int incr_txn_find(struct incr_store *st, uint64_t number,
			   struct incr_txn_info *out_info,
			   struct incr_error *err);
typedef int (*incr_txn_fn)(void *closure, const struct incr_txn_info *info);
/* Newest first along the path of @head down to but without @after (0: to the beginning). */
INCR_API int incr_txn_log(struct incr_store *st, uint64_t head, uint64_t after,
			  incr_txn_fn fn, void *closure,
			  struct incr_error *err);
/* All OPEN transactions, by number. */
INCR_API int incr_txn_list_open(struct incr_store *st, incr_txn_fn fn,
				void *closure, struct incr_error *err);
/* Newest transaction on the path of @head closed at or before @time_ns; 0 when there is none. */
INCR_API int incr_txn_at_time(struct incr_store *st, uint64_t head,
			      int64_t time_ns, uint64_t *out_number,
			      struct incr_error *err);
/* Does @number lie on the path that ends in @head? */
INCR_API int incr_txn_is_on_path(struct incr_store *st, uint64_t number,
				 uint64_t head, bool *out_is_on_path,
				 struct incr_error *err);

/* What every new transaction is told. */
struct incr_txn_options {
	uint64_t dataset_id;
	const char *
		branch; /* NULL: main; created as a root if absent and named main */
	enum incr_txn_type type;
	const char *origin; /* NULL: user */
	const char *message; /* NULL: empty */
	struct incr_pairs meta;
	bool has_expect; /* commit only if the head is @expect: else INCR_E_CONFLICT "branch-moved" */
	uint64_t expect;
	bool skips_empty; /* nothing to record: commit nothing, return 1 */
	bool skips_special;
	bool rewrites; /* UPDATE records files that equal the view's too */
	incr_progress_fn progress;
	void *progress_closure;
};

enum incr_source_kind { INCR_SOURCE_PATH, INCR_SOURCE_STREAM };

struct incr_source {
	enum incr_source_kind kind;
	const char *
		path; /* INCR_SOURCE_PATH: a directory gives its files at their relative paths, a file its base name */
	int fd; /* INCR_SOURCE_STREAM: read to its end; borrowed */
	const char *
		name; /* path in the dataset of a file or stream; NULL: base name of a file */
	const char *
		prefix; /* directory in the dataset that everything goes below; may be NULL */
};

/*
 * Read the sources and commit them as one transaction.
 *
 * Durability: when 0 is returned the transaction survives power loss.
 * Atomicity: on any failure, and after any crash, the branch shows all or nothing.
 * Returns 0; 1 with skips_empty when there was nothing; or
 *   INCR_E_CONFLICT  "append-collision" (err->paths lists all), "open-transaction", "branch-moved"
 *   INCR_E_INVALID   "special-file", "source-changed", "duplicate-path", "path-conflict", "bad-path"
 *   INCR_E_BUSY      a live build holds the branch
 */
INCR_API int incr_commit(struct incr_store *st,
			 const struct incr_txn_options *options,
			 const struct incr_source *sources, size_t n_sources,
			 struct incr_txn_info *out_info,
			 struct incr_error *err);

/*
 * One DELETE of paths.  Each argument equal to an existing path is that path,
 * else a glob.  "no-such-path" INCR_E_NOTFOUND when one matches nothing (unless
 * ignores_missing); "is-directory" INCR_E_INVALID for a directory without
 * is_recursive.  options->type is ignored.
 */
struct incr_remove_flags {
	bool is_recursive;
	bool ignores_missing;
};
INCR_API int incr_remove(struct incr_store *st,
			 const struct incr_txn_options *options,
			 const char *const *patterns, size_t n_patterns,
			 struct incr_remove_flags flags,
			 struct incr_txn_info *out_info,
			 struct incr_error *err);

/* How `sync` turns a folder into a transaction (rulebook R171). */
enum incr_sync_mode {
	INCR_SYNC_MIRROR, /* the view becomes the folder: UPDATE, and DELETE of what is gone */
	INCR_SYNC_APPEND, /* only paths that the branch never had */
	INCR_SYNC_UPDATE, /* new and changed paths */
	INCR_SYNC_SNAPSHOT, /* a SNAPSHOT of the folder, if anything differs */
};

struct incr_sync_options {
	struct incr_txn_options txn; /* type is ignored */
	enum incr_sync_mode mode;
	const char *directory;
	/* Globs over paths below the folder; a file takes part if an include (or none is given)
	 * and no exclude matches.  What takes no part is neither added nor removed. */
	size_t n_includes, n_excludes;
	const char *const *includes;
	const char *const *excludes;
	int64_t settle_ns; /* files changed less than this ago are left for next time */
	bool is_dry_run; /* find out and tell, change nothing */
	/* Told of each path that is added, modified or removed; NULL: nobody. */
	void (*changed)(void *closure, enum incr_change change,
			const char *path, size_t length);
	void *changed_closure;
};

struct incr_sync_result {
	uint64_t n_added, n_modified, n_removed;
	uint64_t n_known; /* not read, because size, times and inode are as they were */
	uint64_t n_young; /* left for next time */
	uint64_t size; /* bytes of added and modified files */
	size_t n_txns; /* 0: nothing changed */
	uint64_t txns[2]; /* in order */
};

/*
 * The smallest transaction that brings a branch to where the folder is.
 * Returns 0, or 1 when nothing changed (or with is_dry_run); errors as
 * incr_commit().  A sync that was killed leaves the branch as it was, and the
 * next one does what was left.
 */
INCR_API int incr_sync(struct incr_store *st,
		       const struct incr_sync_options *options,
		       struct incr_sync_result *out_result,
		       struct incr_error *err);

/* OPEN transactions, by hand.  Staged content is durable when put returns. */
INCR_API int incr_txn_begin(struct incr_store *st,
			    const struct incr_txn_options *options,
			    uint64_t *out_number, struct incr_error *err);
/* "already-staged" INCR_E_CONFLICT without @overwrites. */
INCR_API int incr_txn_put(struct incr_store *st, uint64_t number,
			  const char *path, const struct incr_source *source,
			  bool overwrites, struct incr_error *err);
/* APPEND, UPDATE, SNAPSHOT: unstage ("committed-path" INCR_E_INVALID if only committed); DELETE: stage a removal. */
INCR_API int incr_txn_remove(struct incr_store *st, uint64_t number,
			     const char *path, struct incr_error *err);
INCR_API int incr_txn_commit(struct incr_store *st, uint64_t number,
			     bool rewrites, struct incr_txn_info *out_info,
			     struct incr_error *err);
INCR_API int incr_txn_abort(struct incr_store *st, uint64_t number,
			    struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Views: fixed sets of path -> file version                          */
/* ------------------------------------------------------------------ */

/*
 * A view never changes and stays readable while the store handle is open,
 * whatever is committed meanwhile.  Reference counted; all reading calls are
 * thread-safe.
 */
struct incr_view;

/* The view at transaction @txn of a dataset; 0: the empty view. */
INCR_API int incr_view_open(struct incr_store *st, uint64_t dataset_id,
			    uint64_t txn, struct incr_view **out_view,
			    struct incr_error *err);
INCR_API struct incr_view *incr_view_ref(struct incr_view *v);
INCR_API void incr_view_unref(struct incr_view *v);
INCR_API uint64_t incr_view_n_files(const struct incr_view *v);
INCR_API uint64_t
incr_view_size(const struct incr_view *v); /* bytes of all files */
INCR_API uint64_t incr_view_dataset_id(const struct incr_view *v);
INCR_API uint64_t incr_view_txn(const struct incr_view *v);
INCR_API uint64_t incr_view_start(const struct incr_view *v);
/*
 * The newest transaction of the view whose record or manifest is lost, after a
 * repair has given it up; 0: there is none.  What it put is missing, and what
 * it replaced or removed stands as it was before.
 */
INCR_API uint64_t incr_view_unknown(const struct incr_view *v);

/*
 * A file or directory of a view.  For a file, place and depth 0 name it for
 * the life of the view; for a directory, place is that of the first file below
 * it and depth its number of path parts (the root: depth 0 of no place).
 * place < 2^40, depth <= 250.
 */
struct incr_node {
	bool is_dir;
	uint8_t depth; /* 0 for files */
	uint64_t place;
	/* the rest is for files only */
	char *path; /* owned: path_length bytes and a NUL; for a directory its path without a slash */
	size_t path_length;
	uint64_t size;
	int64_t mtime_ns;
	uint32_t mode; /* permission bits */
	uint64_t txn; /* that wrote it */
	uint8_t hash[INCR_HASH_SIZE];
	uint64_t stable_id; /* hash of dataset rid, path and version (directory: dataset and path): an inode number */
	void *content; /* owned, private */
};
#define INCR_NODE_INIT ((struct incr_node){ 0 })
INCR_API void incr_node_release(struct incr_node *n);

/* 0, or 1 when there is no such path. "" is the root. */
INCR_API int incr_view_find(struct incr_view *v, const char *path,
			    size_t length, struct incr_node *out_node,
			    struct incr_error *err);
/* The node at a place and depth given before by this view; INCR_E_RANGE otherwise. */
INCR_API int incr_view_at(struct incr_view *v, uint64_t place, uint8_t depth,
			  struct incr_node *out_node, struct incr_error *err);

/* Files in byte order of their paths, from the first one >= @from (NULL: all). */
struct incr_view_iter;
INCR_API int incr_view_iter_new(struct incr_view *v, const char *from,
				size_t length, struct incr_view_iter **out_iter,
				struct incr_error *err);
/* 0, or 1 at the end. @node is reused: init once, release once. */
INCR_API int incr_view_iter_next(struct incr_view_iter *it,
				 struct incr_node *node,
				 struct incr_error *err);
INCR_API void incr_view_iter_free(struct incr_view_iter *it);

/* Shell-like glob over a whole path: `*` and `?` do not cross '/', `**` does, `[...]` sets, `\` escapes. */
INCR_API bool incr_glob_match(const char *glob, const char *path,
			      size_t path_length);

/*
 * Entries of one directory in byte order, in time and memory that follow the
 * directory.  @after_place, @after_depth: continue behind the entry with that
 * place and depth (place UINT64_MAX: from the start).
 * 0, or INCR_E_NOTFOUND; next: 0, or 1 at the end; node->path is the whole path.
 */
struct incr_dir_iter;
INCR_API int incr_dir_iter_new(struct incr_view *v, const char *dir,
			       size_t length, uint64_t after_place,
			       uint8_t after_depth,
			       struct incr_dir_iter **out_iter,
			       struct incr_error *err);
INCR_API int incr_dir_iter_next(struct incr_dir_iter *it,
				struct incr_node *node, struct incr_error *err);
INCR_API void incr_dir_iter_free(struct incr_dir_iter *it);

/* Read a file of a view: up to @size bytes; *out_size is less only at its end. Thread-safe. */
INCR_API int incr_file_read(struct incr_view *v, const struct incr_node *file,
			    uint64_t off, void *data, size_t size,
			    size_t *out_size, struct incr_error *err);
/*
 * Decode ahead: have these bytes of a large file in the cache of the store
 * handle, so that incr_file_read() by another thread finds them there.  What
 * was decoded already costs nothing; a small file is left alone.  Thread-safe.
 */
INCR_API int incr_file_prefetch(struct incr_view *v,
				const struct incr_node *file, uint64_t off,
				size_t size, struct incr_error *err);
/*
 * The decoded frame that holds a small file whole (files that share one are
 * neighbours in path order): *out_off is where the file starts in it.  Returns
 * 0, or 1 when the file spans several frames or is empty.  Borrowed until
 * incr_frame_put().  *out_frame_id tells files of the same frame.
 */
struct incr_frame_ref {
	const uint8_t *data;
	uint32_t raw_size;
	uint32_t off;
	uint64_t id;
	const void *handle;
};
INCR_API int incr_file_frame(struct incr_view *v, const struct incr_node *file,
			     struct incr_frame_ref *out_ref,
			     struct incr_error *err);
/*
 * The decoded frame of a large file that holds its byte @at: *out_ref's off is
 * where in the frame that byte is.  Returns 0, or 1 when the file is not cut
 * into frames or has no such byte.  Borrowed until incr_frame_put(); without id.
 */
INCR_API int incr_file_frame_at(struct incr_view *v,
				const struct incr_node *file, uint64_t at,
				struct incr_frame_ref *out_ref,
				struct incr_error *err);
/* Which frame the file is in, without reading it: 0 and its id, or 1. */
INCR_API int incr_file_frame_id(const struct incr_node *file, uint64_t *out_id,
				uint32_t *out_off);
INCR_API void incr_frame_put(struct incr_view *v, struct incr_frame_ref *ref);

/* ------------------------------------------------------------------ */
/* Changes between two views of one dataset                           */
/* ------------------------------------------------------------------ */

/* Net change from one view to another (rulebook R81); time follows the change where both share their start. */
struct incr_changes;
INCR_API int incr_changes_new(struct incr_view *from, struct incr_view *to,
			      struct incr_changes **out_changes,
			      struct incr_error *err);
INCR_API void incr_changes_free(struct incr_changes *c);
/* added and modified hold current versions, removed the last version there was. Borrowed. */
INCR_API struct incr_view *incr_changes_view(struct incr_changes *c,
					     enum incr_change which);
/* All of them in path order. 0, or 1 at the end. *out_txn: the transaction that made the change. */
INCR_API int incr_changes_next(struct incr_changes *c,
			       enum incr_change *out_change,
			       struct incr_node *node, uint64_t *out_txn,
			       struct incr_error *err);
INCR_API void incr_changes_rewind(struct incr_changes *c);

/* ------------------------------------------------------------------ */
/* Schemas                                                            */
/* ------------------------------------------------------------------ */

/* The text is JSON, checked by the caller; versioned with the view of @branch. */
INCR_API int incr_schema_set(struct incr_store *st, uint64_t dataset_id,
			     const char *branch, const char *text,
			     size_t length, struct incr_error *err);
/* Newest schema at or before @txn on its path: 0, or 1 when there is none. *out_text owned, free(). */
INCR_API int incr_schema_get(struct incr_store *st, uint64_t dataset_id,
			     uint64_t txn, char **out_text, size_t *out_length,
			     struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Transforms and plans                                               */
/* ------------------------------------------------------------------ */

enum incr_write_mode {
	INCR_MODE_DEFAULT = 0, /* modify when incremental, replace when not */
	INCR_MODE_MODIFY = 1,
	INCR_MODE_REPLACE = 2,
	INCR_MODE_APPEND = 3,
};

struct incr_transform_input {
	char *alias;
	char *dataset; /* name */
	char *branch; /* NULL: build branch and fallbacks */
	bool is_snapshot;
	uint64_t transaction_limit; /* 0: none */
};

struct incr_transform_output {
	char *alias;
	char *dataset;
	enum incr_write_mode write_mode; /* as asked for */
	char *schema; /* JSON text to compare `previous` with, or NULL */
};

/* The definition of a transform: all strings owned by it. */
struct incr_transform {
	char *name;
	size_t n_inputs;
	struct incr_transform_input *inputs;
	size_t n_outputs;
	struct incr_transform_output *outputs;
	int64_t semantic_version;
	bool require_incremental, allow_retention, allow_user_deletes,
		strict_append, v2_semantics;
	bool abort_if_empty;
	char *branch; /* NULL: main */
	size_t n_fallbacks;
	char **fallbacks;
	size_t n_command;
	char **command; /* before placeholders are replaced; may be empty */
	bool empty_previous_csv;
};
INCR_API void incr_transform_release(struct incr_transform *t);
INCR_API int incr_transform_copy(const struct incr_transform *from,
				 struct incr_transform *out,
				 struct incr_error *err);
/* The definition that the transform's newest build record holds: INCR_E_NOTFOUND if there is none. */
INCR_API int incr_transform_recorded(struct incr_store *st, const char *name,
				     struct incr_transform *out,
				     struct incr_error *err);

enum incr_decision {
	INCR_DECISION_INCREMENTAL = 1,
	INCR_DECISION_SNAPSHOT = 2,
	INCR_DECISION_FRESH = 3,
	INCR_DECISION_REFUSED = 4,
	INCR_DECISION_ERROR = 5,
};
INCR_API const char *incr_decision_name(enum incr_decision decision);

enum incr_reason_code {
	INCR_REASON_FIRST_BUILD = 1,
	INCR_REASON_OUTPUT_FOREIGN_COMMIT,
	INCR_REASON_OUTPUT_USER_DELETE,
	INCR_REASON_OUTPUT_RETENTION_DELETE,
	INCR_REASON_PROVENANCE_INCONSISTENT,
	INCR_REASON_SEMANTIC_VERSION,
	INCR_REASON_V2_CHANGED,
	INCR_REASON_FORCED,
	INCR_REASON_INPUT_SNAPSHOT,
	INCR_REASON_INPUT_MODIFIED,
	INCR_REASON_INPUT_REMOVED_USER,
	INCR_REASON_INPUT_REMOVED_RETENTION,
	INCR_REASON_INPUT_SWAPPED,
	INCR_REASON_PROCESSED_NOT_IN_VIEW, /* processed-transaction-not-in-view */
	INCR_REASON_BRANCH_ORDER,
	INCR_REASON_LIMIT_BAD_TRANSACTION,
	INCR_REASON_TRANSACTION_LOST,
};
INCR_API const char *incr_reason_name(
	enum incr_reason_code code); /* "first-build" ... */

struct incr_reason {
	enum incr_reason_code code;
	char *alias; /* NULL where it has none */
	char *dataset;
	uint64_t txn; /* 0: none */
	char *path; /* first path; NULL: none */
	size_t path_length;
	uint64_t count;
	char *message; /* one line; never NULL */
};

enum incr_input_kind {
	INCR_INPUT_NORMAL = 1,
	INCR_INPUT_SNAPSHOT = 2,
	INCR_INPUT_LIMITED = 3
};

/* Files and bytes of the five views of an input. */
struct incr_view_counts {
	uint64_t added, previous, current, modified, removed;
};

struct incr_plan_input {
	char *alias;
	char *dataset;
	uint64_t dataset_id;
	char *branch; /* resolved */
	enum incr_input_kind kind;
	uint64_t transaction_limit;
	uint64_t view_start, view_end; /* of the whole view; 0: empty dataset */
	uint64_t previous_end; /* end of the whole view at the previous build; 0: none */
	uint64_t last_read; /* last transaction the previous build read (Pend); 0: none */
	uint64_t read_end; /* last transaction this build reads (E) */
	bool is_new; /* no usable record: previous is empty */
	struct incr_view_counts files, bytes;
};

struct incr_plan_output {
	char *alias;
	char *dataset;
	uint64_t dataset_id;
	char *branch;
	bool branch_exists; /* else created at commit from fork_from */
	uint64_t head; /* pinned; 0: none (also the fork point of a new branch) */
	uint64_t branch_id; /* 0 while the branch does not exist */
	char *fork_parent; /* fallback the new branch is made from, or NULL */
	enum incr_write_mode write_mode; /* resolved: modify, replace or append */
	enum incr_txn_type txn_type;
	/* after the build ended */
	uint64_t txn; /* committed; 0: none */
	bool is_aborted;
	uint64_t n_files, size; /* committed */
};

struct incr_plan {
	struct incr_transform transform; /* owned copy */
	enum incr_decision decision;
	bool is_incremental;
	bool is_forced, is_skip;
	size_t n_reasons;
	struct incr_reason *reasons;
	size_t n_inputs;
	struct incr_plan_input *inputs; /* in the order of the transform */
	size_t n_outputs;
	struct incr_plan_output *outputs;
	size_t n_warnings;
	char **warnings; /* sentences for stderr: Q1, Q8, Q9 */
};
INCR_API void incr_plan_release(struct incr_plan *p);

struct incr_plan_options {
	bool is_forced; /* --force: run even when fresh */
	bool forces_snapshot; /* --force-snapshot, this one time */
	bool is_skip; /* --skip */
	bool ignores_command; /* plan without a command: freshness does not compare it */
	/* require_incremental is let out by a first build only when no output was ever built (else: any) */
	bool needs_all_unbuilt;
};

/*
 * Decide, and say everything about it; changes nothing.  A decision of refused
 * or error is a plan, not a failure.  INCR_E_INVALID: the definition is wrong
 * ("no-input", "no-output", "duplicate-alias", "unknown-alias",
 * "duplicate-output", "input-is-output", "needs-v2", "bad-limit",
 * "limit-on-snapshot-input", "strict-append-replace").
 * INCR_E_NOTFOUND: an input dataset or branch, or an output dataset.
 */
INCR_API int incr_plan_make(struct incr_store *st,
			    const struct incr_transform *transform,
			    const struct incr_plan_options *options,
			    struct incr_plan *out_plan, struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Builds                                                             */
/* ------------------------------------------------------------------ */

enum incr_build_status {
	INCR_BUILD_OPEN = 1,
	INCR_BUILD_COMMITTED = 2,
	INCR_BUILD_ABORTED = 3,
	INCR_BUILD_FAILED = 4,
};
INCR_API const char *incr_build_status_name(enum incr_build_status status);

struct incr_build_info {
	uint64_t number; /* printed b<number> */
	enum incr_build_status status;
	bool is_orphaned; /* open, and its owner is gone */
	bool is_preview;
	int exit_code; /* of the command; -1: none ran or not ended */
	int64_t started_ns, ended_ns; /* 0: not yet */
	char *user, *host, *cwd;
	struct incr_pairs environment; /* the chosen variables */
	struct incr_plan
		plan; /* decision, reasons, inputs, outputs as of its end */
	struct incr_error error; /* of a commit that was refused; code 0: none */
};
INCR_API void incr_build_info_release(struct incr_build_info *info);
INCR_API int incr_build_find(struct incr_store *st, uint64_t number,
			     struct incr_build_info *out_info,
			     struct incr_error *err);
typedef int (*incr_build_fn)(void *closure, const struct incr_build_info *info);
/* Newest first; @transform NULL: all. */
INCR_API int incr_build_list(struct incr_store *st, const char *transform,
			     incr_build_fn fn, void *closure,
			     struct incr_error *err);

struct incr_build; /* an open build that this process owns */

struct incr_build_options {
	const char *cwd; /* recorded */
	struct incr_pairs environment; /* recorded */
	bool is_preview; /* takes no locks, commits nothing, leaves no record */
	/* An empty directory that a preview keeps its folder in; NULL: the store, if it can be written. */
	const char *scratch;
	bool skips_special; /* at commit: leave special files in staging out */
};

/*
 * Lock the outputs' branches, decide on what is there now, and if it may run
 * record the build and make its staging.  *out_plan is always filled on 0;
 * *out_build is NULL when the decision is fresh, refused or error.
 * INCR_E_BUSY: another live build or a commit holds an output's branch.
 * INCR_E_CONFLICT "open-transaction" on an output.
 */
INCR_API int incr_build_begin(struct incr_store *st,
			      const struct incr_transform *transform,
			      const struct incr_plan_options *plan_options,
			      const struct incr_build_options *options,
			      struct incr_build **out_build,
			      struct incr_plan *out_plan,
			      struct incr_error *err);
/* Take over an open, orphaned build (`build commit`, `build abort`). INCR_E_BUSY: it has an owner. */
INCR_API int incr_build_adopt(struct incr_store *st, uint64_t number,
			      struct incr_build **out_build,
			      struct incr_error *err);

INCR_API uint64_t
incr_build_number(const struct incr_build *b); /* 0 in a preview */
INCR_API const struct incr_plan *incr_build_plan(const struct incr_build *b);
INCR_API struct incr_store *incr_build_store(const struct incr_build *b);
/* Absolute path of the build's folder in the spool: build.json and abort markers lie there. */
INCR_API const char *incr_build_spool(const struct incr_build *b);
/* Absolute path of the staging directory of output @idx. */
INCR_API const char *incr_build_staging(const struct incr_build *b, size_t idx);

enum incr_view_kind {
	INCR_VIEW_ADDED,
	INCR_VIEW_PREVIOUS,
	INCR_VIEW_CURRENT,
	INCR_VIEW_MODIFIED,
	INCR_VIEW_REMOVED,
};
#define INCR_N_VIEW_KINDS 5
INCR_API const char *incr_view_kind_name(
	enum incr_view_kind kind); /* "added" ... */
/* Views of input @idx, fixed when the build began; borrowed. */
INCR_API struct incr_view *incr_build_input_view(struct incr_build *b,
						 size_t idx,
						 enum incr_view_kind kind);
/* `previous` of output @idx as the program sees it (empty when not incremental); borrowed. */
INCR_API struct incr_view *incr_build_output_previous(struct incr_build *b,
						      size_t idx);
/* What `current` is laid upon: the head's view under modify and append, empty under replace; borrowed. */
INCR_API struct incr_view *incr_build_output_base(struct incr_build *b,
						  size_t idx);

/* A file of @size bytes for programs that fail on an empty `previous` (R159); NULL: none. Borrowed. */
INCR_API const char *incr_build_empty_previous(struct incr_build *b, size_t idx,
					       size_t *out_size);

/* Throw one output away at the end (also done by a marker file abort-<alias> in the spool folder). */
INCR_API int incr_build_abort_output(struct incr_build *b, size_t idx,
				     struct incr_error *err);

struct incr_commit_build_options {
	int exit_code; /* of the command; -1: none */
	bool allows_empty; /* let a replace empty an output that is not empty */
	bool skips_special;
	incr_progress_fn progress;
	void *progress_closure;
	/*
	 * Called when all is ready, before the record is written: from here on
	 * ending the process takes nothing back.  NULL: none.
	 */
	void (*recording)(void *closure);
	void *recording_closure;
};
/*
 * Seal staging, read it once, and commit all outputs in one record.  A marker
 * `abort` in the spool folder aborts instead (*out_info says so).  On
 * INCR_E_CONFLICT ("append-collision", "strict-append-collision",
 * "branch-moved", "staging-busy"), INCR_E_REFUSED ("empty-replace",
 * "schema-mismatch"), INCR_E_NOSPC and the like staging is kept and the build
 * stays open: adopt it later.  "staging-busy" names path, pid and program.
 * The handle is still to be closed.
 */
INCR_API int incr_build_commit(struct incr_build *b,
			       const struct incr_commit_build_options *options,
			       struct incr_build_info *out_info,
			       struct incr_error *err);
/* Throw staging away and record it: aborted (success) or failed with the command's exit code. */
INCR_API int incr_build_abort(struct incr_build *b, bool is_failure,
			      int exit_code, struct incr_build_info *out_info,
			      struct incr_error *err);
/* Release the owner's lock; an uncommitted build becomes an orphan. NULL allowed. */
INCR_API void incr_build_close(struct incr_build *b);

enum incr_freshness { INCR_FRESH = 1, INCR_STALE = 2, INCR_NEVER = 3 };
/* How far an input is ahead of what the transform's last build read. */
struct incr_behind {
	char *alias;
	uint64_t n_txns, n_files, size;
};
struct incr_status {
	char *transform;
	enum incr_freshness freshness;
	size_t n_behind;
	struct incr_behind *behind;
};
INCR_API void incr_status_release(struct incr_status *s);
/* By the recorded definition.  INCR_E_NOTFOUND: no such transform in any build record. */
INCR_API int incr_status_get(struct incr_store *st, const char *transform,
			     struct incr_status *out, struct incr_error *err);
typedef int (*incr_name_fn)(void *closure, const char *name);
/* Names of all transforms with a build record. */
INCR_API int incr_transform_list(struct incr_store *st, incr_name_fn fn,
				 void *closure, struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Verify                                                             */
/* ------------------------------------------------------------------ */

struct incr_verify_options {
	bool reads_data; /* every file's hash too */
	uint64_t time_limit_ms; /* 0: none */
	uint64_t dataset_id; /* 0: all */
	incr_progress_fn progress;
	void *progress_closure;
};
/* One damage: where it is and what it takes with it. */
struct incr_finding {
	const char
		*word; /* "damaged-frame", "missing-pack", "corrupt-log", ... */
	const char *file; /* file of the store; NULL where unknown */
	uint64_t off; /* of the damaged record, frame or block in it */
	const char *dataset; /* NULL where unknown */
	uint64_t txn;
	const char *path;
	size_t path_length;
	const char *message;
	bool is_given_up; /* a repair has said that it is lost */
	/*
	 * No damage: a file, or a directory of staging, that a killed process left.
	 * Nothing tells of it, nobody is making it, and a repair removes it.
	 */
	bool is_left_over;
	uint64_t size; /* of what is left over, in bytes */
};
typedef int (*incr_finding_fn)(void *closure,
			       const struct incr_finding *finding);
struct incr_verify_result {
	uint64_t n_records, n_txns, n_files, n_findings, size;
	uint64_t n_given_up; /* findings that a repair has told of before */
	uint64_t n_left_over, left_over_size; /* no findings */
	bool is_complete; /* false: the time limit ended it */
};
/*
 * Read on behind what is damaged, and name each thing that is lost with it: a
 * transaction whose record is damaged, as far as the index knows it
 * ("lost-transaction"), and each file of each transaction whose content is.
 * What the disk does not give is damage too ("read-error").
 * Content that several files share is read once, with all cores.  What killed
 * processes left over is told at the end; packs among it only when all of the
 * log was read, and nothing in it is damaged or given up.
 * Returns 0 also with findings.
 */
INCR_API int incr_verify(struct incr_store *st,
			 const struct incr_verify_options *options,
			 incr_finding_fn fn, void *closure,
			 struct incr_verify_result *out_result,
			 struct incr_error *err);

/* ------------------------------------------------------------------ */
/* Repair                                                             */
/* ------------------------------------------------------------------ */

struct incr_repair_options {
	bool is_dry_run; /* say what would be done */
	uint64_t wait_ms; /* as of incr_store_options */
	incr_progress_fn progress;
	void *progress_closure;
};
enum incr_repair_action {
	INCR_REPAIR_TAIL = 1, /* a torn tail of the log was moved to lost/ */
	INCR_REPAIR_INDEX = 2, /* a damaged index was made again from the log */
	INCR_REPAIR_STAGING =
		3, /* staging of nothing that is open was removed */
	INCR_REPAIR_HEADER = 4, /* a header of the log was written again */
	INCR_REPAIR_LOG = 5, /* damaged records were given up */
	INCR_REPAIR_LOST_STAGING =
		6, /* staging of what may be lost was moved to lost/ */
	INCR_REPAIR_LEFT_OVER =
		7, /* a file that a killed process left was removed */
};
/* @what: the file or directory, below the store. @size: bytes moved or copied aside. */
typedef int (*incr_repair_fn)(void *closure, enum incr_repair_action action,
			      const char *what, uint64_t size);
struct incr_repair_result {
	uint64_t n_done; /* actions */
	uint64_t n_given_up; /* transactions and files that are lost */
	uint64_t n_left; /* findings that stay: nothing but a copy can help */
};
/*
 * Mend what can be mended, and give up what cannot, without losing anything
 * that is whole: a torn tail of the log is moved to lost/, a damaged index is
 * made again, staging that belongs to nothing is removed, and so are files that
 * killed processes left; packs among them stay, and are told to @finding, while
 * lost/ holds bytes of the log, which may name them.  Damaged records are
 * copied to lost/ and passed over from then on; transactions and files that
 * cannot be read are noted in the log as lost.  Each is told to @finding, with
 * is_given_up set.  No byte of what was acknowledged is removed or changed, so
 * that a copy of a file still puts it right.
 * Returns 0 also when something is left.
 */
INCR_API int incr_repair(const char *path,
			 const struct incr_repair_options *options,
			 incr_repair_fn done, incr_finding_fn finding,
			 void *closure, struct incr_repair_result *out_result,
			 struct incr_error *err);

#ifdef __cplusplus
}
#endif

#endif
