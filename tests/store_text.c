/* All that a store says, as one text. */
#include "config.h"

#include "store_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

#define READ_SIZE ((size_t)1 << 20)

struct walk {
	struct incr_store *st;
	struct store_text *out;
	unsigned flags;
	int r; /* of the first failure */
	uint8_t *data; /* owned: READ_SIZE bytes */
	uint64_t dataset;
};

void store_text_release(struct store_text *t)
{
	free(t->text);
	*t = (struct store_text){ 0 };
}

void store_text_add(struct store_text *t, const char *format, ...)
{
	char line[4096];
	va_list args;
	size_t n;

	va_start(args, format);
	n = (size_t)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n >= sizeof(line))
		n = sizeof(line) - 1;
	if (t->size + n + 1 > t->capacity) {
		t->capacity = 2 * (t->size + n + 1);
		t->text = realloc(t->text, t->capacity);
		if (!t->text)
			abort();
	}
	memcpy(t->text + t->size, line, n + 1);
	t->size += n;
}

static int failed(struct walk *w, int r, struct incr_error *err)
{
	store_text_add(w->out, "ERROR %d %s %s %s\n", r, err->word,
		       err->message, err->thing);
	if (w->r == 0)
		w->r = r;
	incr_error_release(err);
	return r;
}

static int add_file(struct walk *w, struct incr_view *view,
		    const struct incr_node *node, struct incr_error *err)
{
	uint64_t off = 0, sum = 0;
	size_t n;

	do {
		int r = incr_file_read(view, node, off, w->data, READ_SIZE, &n,
				       err);

		if (r < 0)
			return r;
		sum = hash64_two(&sum, sizeof(sum), w->data, n);
		off += n;
	} while (n == READ_SIZE);
	store_text_add(w->out,
		       "   %s t%" PRIu64 " mode %o time %" PRId64
		       " size %" PRIu64 " of %" PRIu64 " %016" PRIx64 "\n",
		       node->path, node->txn, node->mode, node->mtime_ns, off,
		       node->size, sum);
	return 0;
}

static int add_view(struct walk *w, uint64_t txn)
{
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	struct incr_view *view;
	int r = incr_view_open(w->st, w->dataset, txn, &view, &err);

	if (r < 0)
		return failed(w, r, &err);
	r = incr_view_iter_new(view, NULL, 0, &it, &err);
	if (r == 0) {
		while ((r = incr_view_iter_next(it, &node, &err)) == 0) {
			r = add_file(w, view, &node, &err);
			if (r < 0)
				break;
		}
		incr_view_iter_free(it);
	}
	incr_node_release(&node);
	incr_view_unref(view);
	return r < 0 ? failed(w, r, &err) : 0;
}

static void add_schema(struct walk *w, uint64_t txn)
{
	struct incr_error err = INCR_ERROR_INIT;
	size_t length;
	char *text;
	int r = incr_schema_get(w->st, w->dataset, txn, &text, &length, &err);

	if (r < 0)
		(void)failed(w, r, &err);
	if (r == 0) {
		store_text_add(w->out, "   schema %.*s\n", (int)length, text);
		free(text);
	}
}

static void add_pairs(struct walk *w, const struct incr_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++)
		store_text_add(w->out, "   %s=%s\n", pairs->items[i].key,
			       pairs->items[i].value ? pairs->items[i].value :
						       "");
}

static int add_txn(void *closure, const struct incr_txn_info *t)
{
	struct walk *w = closure;

	store_text_add(w->out,
		       "  t%" PRIu64 " %s %s files %" PRIu64 " removed %" PRIu64
		       " size %" PRIu64 " view %" PRIu64 " %" PRIu64
		       " from t%" PRIu64 " after t%" PRIu64 " build %" PRIu64
		       " branch %s origin %s user %s message %s\n",
		       t->number, incr_txn_type_name(t->type),
		       incr_txn_status_name(t->status), t->n_files,
		       t->n_removed, t->size, t->view_files, t->view_size,
		       t->view_start, t->parent, t->build, t->branch, t->origin,
		       t->user, t->message);
	if (w->flags & STORE_TEXT_TIMES)
		store_text_add(w->out, "   %" PRId64 " to %" PRId64 "\n",
			       t->opened_ns, t->closed_ns);
	add_pairs(w, &t->meta);
	if (w->flags & STORE_TEXT_ALL_VIEWS && t->status == INCR_COMMITTED) {
		(void)add_view(w, t->number);
		add_schema(w, t->number);
	}
	return 0;
}

static int add_branch(void *closure, const struct incr_branch_info *b)
{
	struct walk *w = closure;
	struct incr_error err = INCR_ERROR_INIT;
	int r;

	store_text_add(w->out, " %s head t%" PRIu64 " open t%" PRIu64 "\n",
		       b->name, b->head, b->open_txn);
	r = incr_txn_log(w->st, b->head, 0, add_txn, w, &err);
	if (r < 0)
		(void)failed(w, r, &err);
	if (b->head && !(w->flags & STORE_TEXT_ALL_VIEWS))
		(void)add_view(w, b->head);
	return 0;
}

static int add_dataset(void *closure, const struct incr_dataset_info *info)
{
	struct walk *w = closure;
	struct incr_error err = INCR_ERROR_INIT;
	int r;

	w->dataset = info->id;
	store_text_add(w->out, "%s %" PRIu64 " %s\n", info->name, info->id,
		       info->description);
	if (w->flags & STORE_TEXT_TIMES)
		store_text_add(w->out, "   %" PRId64 "\n", info->created_ns);
	add_pairs(w, &info->meta);
	r = incr_branch_list(w->st, info->id, add_branch, w, &err);
	if (r < 0)
		(void)failed(w, r, &err);
	return 0;
}

static int add_open(void *closure, const struct incr_txn_info *t)
{
	struct walk *w = closure;

	store_text_add(w->out, "open t%" PRIu64 " of %s\n", t->number,
		       t->dataset);
	return 0;
}

static int add_build(void *closure, const struct incr_build_info *b)
{
	struct walk *w = closure;

	store_text_add(w->out, "build b%" PRIu64 " of %s %s exit %d\n",
		       b->number, b->plan.transform.name,
		       incr_build_status_name(b->status), b->exit_code);
	return 0;
}

int store_text_fill(struct incr_store *st, unsigned flags,
		    struct store_text *out)
{
	struct walk w = { .st = st, .out = out, .flags = flags };
	struct incr_error err = INCR_ERROR_INIT;
	int r;

	w.data = malloc(READ_SIZE);
	if (!w.data)
		abort();
	out->size = 0;
	store_text_add(out, "store %s\n", incr_store_uuid(st));
	r = incr_dataset_list(st, add_dataset, &w, &err);
	if (r < 0)
		(void)failed(&w, r, &err);
	r = incr_txn_list_open(st, add_open, &w, &err);
	if (r < 0)
		(void)failed(&w, r, &err);
	r = flags & STORE_TEXT_BUILDS ?
		    incr_build_list(st, NULL, add_build, &w, &err) :
		    0;
	if (r < 0)
		(void)failed(&w, r, &err);
	free(w.data);
	return w.r;
}
