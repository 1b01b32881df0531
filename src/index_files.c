/*
 * The index on disk.
 *
 * A checkpoint is a small file that is replaced by a rename; it names tables
 * that were written before it.  Neither is synced: a checkpoint that refers to
 * bytes which a power cut took fails its checksums, and the log is replayed
 * from the beginning.  Old tables are unlinked after the rename; a reader that
 * read the old checkpoint and finds a table gone reads the new one.  Who
 * flushes and finds another checkpoint than its own builds upon that one; who
 * finds none, its own having been forgotten, takes its tables for damaged.
 */
#include "config.h"

#include "index_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "hash.h"
#include "lock.h"

#define LOAD_TRIES 16

void index_table_path(uint64_t id, char out[64])
{
	snprintf(out, 64, INDEX_DIR "/%016" PRIx64 ".table", id);
}

/* A table knows its name: two that changed places are damaged, not misread. */
static uint64_t table_tag(const struct index *ix, uint64_t id)
{
	uint8_t identity[16];

	put_u64(identity, ix->options.tag);
	put_u64(identity + 8, id);
	return hash64(identity, sizeof(identity));
}

static void drop_tables(struct index_table *tables, size_t n)
{
	for (size_t i = 0; i < n; i++)
		table_unref(tables[i].table);
}

/* All tables of @cur, or none. */
static int open_tables(struct index *ix, const struct index_current *cur,
		       struct index_table *out_tables, struct incr_error *err)
{
	for (size_t i = 0; i < cur->n_tables; i++) {
		struct table *t;
		char path[64];
		int r;

		index_table_path(cur->tables[i], path);
		r = table_open(ix->options.io, ix->options.store_dirfd, path,
			       table_tag(ix, cur->tables[i]), ix->options.cache,
			       &t, err);
		if (r < 0) {
			drop_tables(out_tables, i);
			return r;
		}
		out_tables[i] = (struct index_table){ .id = cur->tables[i],
						      .table = t };
	}
	return 0;
}

/* The checkpoint on disk with its tables; 1: there is none that is whole. */
static int read_checkpoint(struct index *ix, struct index_current *out,
			   struct index_table *out_tables,
			   struct incr_error *err)
{
	uint64_t failed_id = 0;

	for (int i = 0; i < LOAD_TRIES; i++) {
		struct incr_error why = INCR_ERROR_INIT;
		int r = index_current_read(ix, out, err);

		if (r)
			return r;
		if (out->id == failed_id)
			return 1;
		r = open_tables(ix, out, out_tables, &why);
		incr_error_release(&why);
		if (r == 0)
			return 0;
		if (r == INCR_E_NOMEM)
			return incr_fail_nomem(err);
		failed_id = out->id;
	}
	return 1;
}

static void use_checkpoint(struct index *ix, const struct index_current *cur,
			   const struct index_table *tables)
{
	drop_tables(ix->tables, ix->n_tables);
	memcpy(ix->tables, tables, cur->n_tables * sizeof(*tables));
	ix->n_tables = cur->n_tables;
	ix->checkpoint = cur->position;
	ix->checkpoint_id = cur->id;
	ix->has_losses = -1;
}

int index_files_load(struct index *ix, struct incr_error *err)
{
	struct index_table tables[INDEX_TABLES_MAX];
	struct incr_error why = INCR_ERROR_INIT;
	struct index_current cur;
	int r;

	index_start_empty(ix);
	r = read_checkpoint(ix, &cur, tables, &why);
	if (r == INCR_E_NOMEM)
		return incr_fail_with(err, r, &why);
	/* one that cannot be read is made again */
	incr_error_release(&why);
	if (r)
		return 0;
	use_checkpoint(ix, &cur, tables);
	ix->position = cur.position;
	ix->counters = cur.counters;
	return 0;
}

/*
 * The memtables hold everything after this handle's checkpoint, so they may lie
 * on top of any checkpoint that is not older: what both have is the same.
 */
int index_adopt(struct index *ix, struct incr_error *err)
{
	struct index_table tables[INDEX_TABLES_MAX];
	struct memtable *fresh = NULL;
	struct index_current cur;
	int r = index_current_read(ix, &cur, err);

	if (r == 0 && (cur.id == ix->checkpoint_id ||
		       cur.position.position < ix->checkpoint.position))
		return 1;
	if (r == 0)
		r = read_checkpoint(ix, &cur, tables, err);
	if (r)
		return r;
	if (cur.position.position >= ix->position.position &&
	    memtable_new(&fresh) < 0) {
		drop_tables(tables, cur.n_tables);
		return incr_fail_nomem(err);
	}
	if (cur.position.position < ix->checkpoint.position) {
		drop_tables(tables, cur.n_tables);
		return 1;
	}
	use_checkpoint(ix, &cur, tables);
	if (!fresh)
		return 0;
	memtable_unref(ix->active);
	ix->active = fresh;
	index_drop_frozen(ix);
	index_drop_spilled(ix);
	ix->position = cur.position;
	ix->counters = cur.counters;
	return 0;
}

int index_files_forget(struct index *ix, uint64_t id, struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct index_current cur;
	int r;

	if (!ix->options.is_writable)
		return 0;
	r = index_current_read(ix, &cur, &why);
	if (r == INCR_E_NOMEM)
		return incr_fail_with(err, r, &why);
	incr_error_release(&why);
	if (r == 0 && cur.id != id)
		return 0; /* somebody has written another one since */
	r = ix->options.io->unlink_at(ix->options.io, ix->options.store_dirfd,
				      INDEX_CURRENT_FILE, 0);
	if (r < 0 && r != -ENOENT)
		return incr_fail_errno(err, -r, INDEX_CURRENT_FILE,
				       "cannot remove the index checkpoint");
	return 0;
}

/* ---- flushing ---- */

/* Which sources become the new newest table, and which tables stay. */
struct flush {
	struct index_sources *merged;
	bool is_short; /* somebody waits: large merges are left to others */
	bool drops_tombstones; /* nothing older is left */
	size_t n_tables_merged; /* the newest so many tables of the index */
};

/*
 * Merge the newest tables up to one that is not much larger than all before it
 * together, as far as that is worth the time of who waits for it.
 */
static void choose_tables(const struct index *ix, uint64_t news_size,
			  struct flush *f)
{
	uint64_t limit = news_size * INDEX_MERGE_FACTOR, run = news_size;
	size_t n = 0;

	if (limit < INDEX_MERGE_SHORT)
		limit = INDEX_MERGE_SHORT;
	for (size_t i = 0; i < ix->n_tables; i++) {
		uint64_t size = table_size(ix->tables[i].table);
		bool is_wanted = size < run * INDEX_MERGE_FACTOR &&
				 (!f->is_short || run + size <= limit);

		if (is_wanted || ix->n_tables - i >= INDEX_TABLES_MAX)
			n = i + 1;
		run += size;
	}
	f->n_tables_merged = n;
	f->drops_tombstones = n == ix->n_tables;
}

static int collect_sources(struct index *ix, struct flush *f)
{
	uint64_t size = 0;

	f->merged = calloc(1, sizeof(*f->merged));
	if (!f->merged)
		return INCR_E_NOMEM;
	for (size_t i = 0; i < ix->n_frozen; i++) {
		size += memtable_size(ix->frozen[i]);
		f->merged->items[f->merged->n++].memtable =
			memtable_ref(ix->frozen[i]);
	}
	/* a table takes about a third of the memory that its entries take */
	size /= 3;
	for (size_t i = 0; i < ix->n_spilled; i++) {
		size += table_size(ix->spilled[i]);
		f->merged->items[f->merged->n++].table =
			table_ref(ix->spilled[i]);
	}
	choose_tables(ix, size, f);
	for (size_t i = 0; i < f->n_tables_merged; i++)
		f->merged->items[f->merged->n++].table =
			table_ref(ix->tables[i].table);
	return 0;
}

/* Keys that the filter of a merge is for; those in two sources count twice. */
static uint64_t count_filtered(const struct index *ix,
			       const struct index_sources *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->items[i].table ? table_n_filtered(s->items[i].table) :
					 memtable_count(s->items[i].memtable,
							ix->options.filtered);
	return n;
}

static int write_table(struct index *ix, struct index_sources *s,
		       bool drops_tombstones, uint64_t id,
		       struct incr_error *err)
{
	_cleanup_iter_ struct iter *it = NULL;
	struct table_writer *w;
	char path[64];
	int r = drops_tombstones ? index_sources_iter(s, &it, err) :
				   index_sources_iter_raw(s, &it, err);

	if (r < 0)
		return r;
	index_table_path(id, path);
	r = table_writer_open(ix->options.io, ix->options.store_dirfd, path,
			      table_tag(ix, id), &w, err);
	if (r < 0)
		return r;
	r = table_writer_filter(w, ix->options.filtered, count_filtered(ix, s),
				err);
	if (r == 0)
		r = it->seek(it, "", 0, err);
	while (r == 0) {
		r = table_writer_put(w, &it->entry, err);
		if (r == 0)
			r = it->next(it, err);
	}
	if (r < 0) {
		table_writer_abort(w);
		return r;
	}
	return table_writer_finish(w, false, err);
}

int index_write_table(struct index *ix, struct index_sources *s,
		      bool drops_tombstones, uint64_t id,
		      struct table **out_table, struct incr_error *err)
{
	const struct incr_io *io = ix->options.io;
	char path[64];
	int r = io->mkdir_at(io, ix->options.store_dirfd, INDEX_DIR, 0777);

	if (r < 0 && r != -EEXIST)
		return incr_fail_errno(err, -r, INDEX_DIR,
				       "cannot make the directory");
	r = write_table(ix, s, drops_tombstones, id, err);
	if (r < 0)
		return r;
	index_table_path(id, path);
	return table_open(io, ix->options.store_dirfd, path, table_tag(ix, id),
			  ix->options.cache, out_table, err);
}

/* Is the file @name of the directory the checkpoint, or named by it? */
static bool is_of(const struct index_current *cur, const char *name)
{
	char known[64];

	if (!strcmp(name, &INDEX_CURRENT_FILE[strlen(INDEX_DIR "/")]))
		return true;
	for (size_t i = 0; i < cur->n_tables; i++) {
		index_table_path(cur->tables[i], known);
		if (!strcmp(name, known + strlen(INDEX_DIR "/")))
			return true;
	}
	return false;
}

int index_keep_strays(const struct index *ix, size_t *n, char **names,
		      struct incr_error *err)
{
	struct index_current cur = { 0 };
	size_t n_strays = 0;
	int r = index_current_read(ix, &cur, err);

	for (size_t i = 0; i < *n; i++) {
		/* without a checkpoint, the next flush removes all */
		if (r || is_of(&cur, names[i]))
			free(names[i]);
		else
			names[n_strays++] = names[i];
	}
	*n = n_strays;
	return r < 0 ? r : 0;
}

struct sweep {
	const struct index_current *cur;
	const struct index *ix;
	int dirfd;
};

static int sweep_entry(void *closure, const char *name, enum io_kind kind)
{
	const struct sweep *s = closure;

	(void)kind;
	if (is_of(s->cur, name))
		return 0;
	/* what stays costs space only, and the next flush tries again */
	(void)s->ix->options.io->unlink_at(s->ix->options.io, s->dirfd, name,
					   0);
	return 0;
}

/* Remove what the checkpoint does not name: merged tables, and what a crash left. */
static void sweep(const struct index *ix, const struct index_current *cur)
{
	const struct incr_io *io = ix->options.io;
	struct sweep s = { .cur = cur, .ix = ix };

	s.dirfd = io->open_at(io, ix->options.store_dirfd, INDEX_DIR,
			      O_RDONLY | O_DIRECTORY, 0);
	if (s.dirfd < 0)
		return;
	(void)io->readdir(io, s.dirfd, sweep_entry, &s);
	(void)io_close(io, s.dirfd); /* only read from */
}

/* The new checkpoint is on disk: make the index in memory look like it. */
static void adopt_flush(struct index *ix, struct flush *f,
			const struct index_current *cur, struct table *fresh)
{
	size_t kept = ix->n_tables - f->n_tables_merged;

	drop_tables(ix->tables, f->n_tables_merged);
	memmove(&ix->tables[1], &ix->tables[f->n_tables_merged],
		kept * sizeof(ix->tables[0]));
	ix->tables[0] =
		(struct index_table){ .id = cur->tables[0], .table = fresh };
	ix->n_tables = kept + 1;
	index_drop_frozen(ix);
	index_drop_spilled(ix);
	ix->checkpoint = cur->position;
	ix->checkpoint_id = cur->id;
}

/* Is there anything that the checkpoint does not have? */
static bool index_has_news(const struct index *ix)
{
	return memtable_n_entries(ix->active) || ix->n_frozen || ix->n_spilled;
}

/* Stand on the checkpoint that is on disk; 1: nothing is to be flushed on top of it. */
static int meet_checkpoint(struct index *ix, struct incr_error *err)
{
	struct index_current cur;
	int r = index_current_read(ix, &cur, err);

	if (r < 0 || (r == 0 && cur.id == ix->checkpoint_id))
		return r;
	if (r == 0) {
		r = index_adopt(ix, err);
		if (r < 0)
			return r;
		if (r == 0)
			return index_has_news(ix) ? 0 : 1;
		if (cur.position.position < ix->checkpoint.position)
			return 1; /* somebody is rebuilding it */
	}
	/* there is none, or none that is whole */
	if (!ix->checkpoint_id)
		return 0;
	index_note_damage(ix);
	return 1;
}

static int flush_locked(struct index *ix, bool is_short, struct incr_error *err)
{
	const struct incr_io *io = ix->options.io;
	struct flush f = { .is_short = is_short };
	struct index_current cur = { 0 };
	struct table *fresh;
	uint64_t ids[2];
	int r = meet_checkpoint(ix, err);

	if (r)
		return r < 0 ? r : 0;
	cur.position = ix->position;
	cur.counters = ix->counters;
	r = io->random(io, ids, sizeof(ids));
	if (r < 0)
		return incr_fail_errno(err, -r, NULL, "no random numbers");
	if (collect_sources(ix, &f) < 0)
		return incr_fail_nomem(err);
	r = index_write_table(ix, f.merged, f.drops_tombstones, ids[0], &fresh,
			      err);
	if (r == 0) {
		cur.id = ids[1] | 1;
		cur.n_tables = 1 + ix->n_tables - f.n_tables_merged;
		cur.tables[0] = ids[0];
		for (size_t i = 1; i < cur.n_tables; i++)
			cur.tables[i] =
				ix->tables[f.n_tables_merged + i - 1].id;
		r = index_current_write(ix, &cur, err);
		if (r == 0) {
			adopt_flush(ix, &f, &cur, fresh);
			sweep(ix, &cur);
		} else {
			table_unref(fresh);
		}
	}
	if (r == INCR_E_CORRUPT)
		index_note_damage(ix);
	index_sources_free(f.merged);
	return r;
}

static int flush(struct index *ix, bool is_short, struct incr_error *err)
{
	_cleanup_lock_file_ struct lock_file file =
		LOCK_FILE_INIT(ix->options.io, ix->options.store_dirfd);
	struct incr_error why = INCR_ERROR_INIT;
	struct lock lock;
	int r;

	if (!ix->options.is_writable)
		return 0;
	r = index_freeze_active(ix, err);
	if (r < 0 || !index_has_news(ix))
		return r;
	r = lock_take(&file, LOCK_MAINTENANCE, true, 0, "the index", &lock,
		      &why);
	incr_error_release(&why);
	if (r < 0)
		return 0;
	r = flush_locked(ix, is_short, err);
	lock_release(&lock);
	return r;
}

int index_flush(struct index *ix, struct incr_error *err)
{
	return flush(ix, false, err);
}

int index_flush_short(struct index *ix, struct incr_error *err)
{
	return flush(ix, true, err);
}
