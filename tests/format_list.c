/* A store as text. */
#include "config.h"

#include "format_kit.h"

#include "error.h"
#include "hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct lister {
	struct incr_store *st;
	FILE *out;
	struct incr_error *err;
};

/* Any bytes, as one word: %xx for all but the printable ones. */
static void put_word(FILE *out, const char *bytes, size_t size)
{
	if (!size)
		(void)fputc('-', out);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c > ' ' && c < 0x7f && c != '%')
			(void)fputc(c, out);
		else
			(void)fprintf(out, "%%%02x", c);
	}
	(void)fputc(' ', out);
}

static void put_text(FILE *out, const char *text)
{
	put_word(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_hex(FILE *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		(void)fprintf(out, "%02x", bytes[i]);
}

static int list_txn(void *closure, const struct incr_txn_info *t)
{
	struct lister *l = closure;

	(void)fprintf(l->out,
		      "txn t%" PRIu64 " %s %s parent=%" PRIu64 " start=%" PRIu64
		      " put=%" PRIu64 " removed=%" PRIu64 " size=%" PRIu64
		      " view=%" PRIu64 ",%" PRIu64 " build=%" PRIu64
		      " times=%" PRId64 ",%" PRId64 " ",
		      t->number, incr_txn_type_name(t->type),
		      incr_txn_status_name(t->status), t->parent, t->view_start,
		      t->n_files, t->n_removed, t->size, t->view_files,
		      t->view_size, t->build, t->opened_ns, t->closed_ns);
	put_text(l->out, t->origin);
	put_text(l->out, t->user);
	put_text(l->out, t->message);
	(void)fputc('\n', l->out);
	return 0;
}

/* The hash is of the bytes that are read, not the recorded one. */
static int list_file(struct lister *l, struct incr_view *v,
		     const struct incr_node *node)
{
	_cleanup_free_ uint8_t *data = malloc(node->size + 1);
	uint8_t hash[INCR_HASH_SIZE];
	size_t size = 0;
	int r = data ? incr_file_read(v, node, 0, data, node->size, &size,
				      l->err) :
		       incr_fail_nomem(l->err);

	if (r < 0)
		return r;
	hash128(data, size, hash);
	(void)fprintf(l->out, "file ");
	put_word(l->out, node->path, node->path_length);
	(void)fprintf(l->out, "%o %" PRId64 " %" PRIu64 " t%" PRIu64 " ",
		      node->mode, node->mtime_ns, node->size, node->txn);
	put_hex(l->out, hash, sizeof(hash));
	if (memcmp(hash, node->hash, sizeof(hash)) != 0)
		(void)fprintf(l->out, " WRONG");
	(void)fputc('\n', l->out);
	return 0;
}

static int list_view(struct lister *l, uint64_t dataset_id, uint64_t head)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it = NULL;
	struct incr_view *v;
	int r = incr_view_open(l->st, dataset_id, head, &v, l->err);

	if (r < 0)
		return r;
	r = incr_view_iter_new(v, NULL, 0, &it, l->err);
	while (r == 0) {
		r = incr_view_iter_next(it, &node, l->err);
		if (r == 0)
			r = list_file(l, v, &node);
	}
	incr_view_iter_free(it);
	incr_node_release(&node);
	incr_view_unref(v);
	return r < 0 ? r : 0;
}

static int list_schema(struct lister *l, uint64_t dataset_id, uint64_t head)
{
	char *text;
	size_t size;
	int r = incr_schema_get(l->st, dataset_id, head, &text, &size, l->err);

	if (r)
		return r < 0 ? r : 0;
	(void)fprintf(l->out, "schema ");
	put_word(l->out, text, size);
	(void)fputc('\n', l->out);
	free(text);
	return 0;
}

static int list_branch(void *closure, const struct incr_branch_info *b)
{
	struct lister *l = closure;
	int r;

	(void)fprintf(l->out, "branch %" PRIu64 " ", b->id);
	put_text(l->out, b->name);
	put_text(l->out, b->parent);
	(void)fprintf(l->out, "head=%" PRIu64 " open=%" PRIu64 "\n", b->head,
		      b->open_txn);
	r = incr_txn_log(l->st, b->head, 0, list_txn, l, l->err);
	if (r == 0 && b->head)
		r = list_schema(l, b->dataset_id, b->head);
	return r == 0 ? list_view(l, b->dataset_id, b->head) : r;
}

static int list_dataset(void *closure, const struct incr_dataset_info *d)
{
	struct lister *l = closure;

	(void)fprintf(l->out, "dataset %" PRIu64 " ", d->id);
	put_text(l->out, d->name);
	put_text(l->out, d->description);
	(void)fprintf(l->out, "%" PRId64, d->created_ns);
	for (size_t i = 0; i < d->meta.n; i++) {
		(void)fputc(' ', l->out);
		put_text(l->out, d->meta.items[i].key);
		put_text(l->out, d->meta.items[i].value);
	}
	(void)fputc('\n', l->out);
	return incr_branch_list(l->st, d->id, list_branch, l, l->err);
}

static int list_builds(struct lister *l)
{
	uint64_t n = index_counters(l->st->index)->next_build;

	for (uint64_t i = 1; i < n; i++) {
		_cleanup_buf_ struct buf storage = BUF_INIT;
		struct fact_build f;
		int r = state_build(l->st->index, i, &storage, &f, l->err);

		if (r < 0)
			return r;
		if (r == 1)
			continue;
		(void)fprintf(l->out, "build b%" PRIu64 " %d ", i, f.status);
		put_word(l->out, f.transform.data, f.transform.size);
		put_hex(l->out, (const uint8_t *)f.payload.data,
			f.payload.size);
		(void)fputc('\n', l->out);
	}
	return 0;
}

int format_list(struct incr_store *st, FILE *out, struct incr_error *err)
{
	struct lister l = { st, out, err };
	int r;

	(void)fprintf(out, "store %s\n", incr_store_uuid(st));
	r = incr_dataset_list(st, list_dataset, &l, err);
	if (r == 0)
		r = incr_txn_list_open(st, list_txn, &l, err);
	return r == 0 ? list_builds(&l) : r;
}
