/*
 * Fuzzer: a whole store whose log says what the input says.  The input is a
 * sequence of facts (u8 type, u16 size, payload), which are put into records
 * with right checksums, so that everything behind the checksums is reached:
 * replay, views, content, verify, and a commit on top.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../simio.h"
#include "hash.h"
#include "store.h"

#define STORE "store"
#define FACTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append_facts(struct incr_store *st, struct cursor *c)
{
	struct index_position at = *index_position(st->index);

	for (int i = 0; i < FACTS_MAX && cursor_left(c) >= 3; i++) {
		uint16_t type = cursor_u8(c), length = cursor_u16(c);
		struct log_append a = { .type = type,
					.position = at.position,
					.sequence = at.sequence + 1 };
		uint64_t position;

		if (length > cursor_left(c))
			length = (uint16_t)cursor_left(c);
		a.payload[0] = cursor_bytes(c, length);
		a.payload_size[0] = length;
		if (log_append(st->log, &a, &position, &at.position, NULL) < 0)
			abort();
		at.sequence++;
	}
}

static void read_view(struct incr_store *st, uint64_t dataset, uint64_t txn)
{
	struct incr_node node = INCR_NODE_INIT;
	struct incr_view_iter *it;
	struct incr_view *view;
	char bytes[4096];
	size_t n;

	if (incr_view_open(st, dataset, txn, &view, NULL) < 0)
		return;
	if (incr_view_iter_new(view, NULL, 0, &it, NULL) == 0) {
		while (incr_view_iter_next(it, &node, NULL) == 0)
			(void)incr_file_read(view, &node, 0, bytes,
					     sizeof(bytes), &n, NULL);
		incr_view_iter_free(it);
	}
	incr_node_release(&node);
	incr_view_unref(view);
}

static int read_txn(void *closure, const struct incr_txn_info *t)
{
	read_view(closure, t->dataset_id, t->number);
	return 0;
}

static int read_branch(void *closure, const struct incr_branch_info *b)
{
	(void)incr_txn_log(closure, b->head, 0, read_txn, closure, NULL);
	return 0;
}

static int read_dataset(void *closure, const struct incr_dataset_info *d)
{
	(void)incr_branch_list(closure, d->id, read_branch, closure, NULL);
	return 0;
}

static int ignore_build(void *closure, const struct incr_build_info *b)
{
	(void)closure;
	(void)b;
	return 0;
}

static void use(struct incr_store *st)
{
	struct incr_verify_options options = { .reads_data = true };
	struct incr_verify_result result;

	(void)incr_dataset_list(st, read_dataset, st, NULL);
	(void)incr_txn_list_open(st, read_txn, st, NULL);
	(void)incr_build_list(st, NULL, ignore_build, NULL, NULL);
	(void)incr_verify(st, &options, NULL, NULL, &result, NULL);
	(void)incr_dataset_create(st, "made/after", NULL, NULL, NULL, NULL);
	(void)index_flush(st->index, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	struct sim *sim = sim_new();
	struct incr_store *st;

	if (store_init_with(sim_io(sim), STORE, NULL) < 0 ||
	    store_open_with(sim_io(sim), STORE, NULL, &st, NULL) < 0)
		abort();
	append_facts(st, &c);
	incr_store_close(st);
	if (store_open_with(sim_io(sim), STORE, NULL, &st, NULL) == 0) {
		use(st);
		incr_store_close(st);
	}
	sim_free(sim);
	return 0;
}
