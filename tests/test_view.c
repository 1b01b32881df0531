/*
 * Views, listings, places and changes of random histories against a model,
 * with the index in every state it can be in.
 */
#include "config.h"

#include "store_kit.h"
#include "testing.h"
#include "view_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- states of the index ---- */

static void flush(struct world *w)
{
	(void)view_check_failed(
		w, index_flush(w->kit.st->index, store_kit_err(&w->kit)),
		"flush");
}

/* Flip a bit of a random file of the index, or cut it. */
static void damage_index(struct world *w)
{
	struct dirent *entry;
	char path[600], file[900] = "";
	struct stat s;
	unsigned n = 0;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%s/index", w->kit.path);
	d = opendir(path);
	if (!d)
		return;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' &&
		    !store_kit_random(&w->model.random, ++n))
			snprintf(file, sizeof(file), "%s/%s", path,
				 entry->d_name);
	(void)closedir(d);
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &s) == 0 && s.st_size) {
		off_t at = (off_t)store_kit_random(&w->model.random,
						   (uint64_t)s.st_size);
		uint8_t byte = 0;

		if (!store_kit_random(&w->model.random, 4))
			CHECK_INT_EQ(0, ftruncate(fd, at));
		CHECK(pread(fd, &byte, 1, at) >= 0);
		byte ^= (uint8_t)(1u << store_kit_random(&w->model.random, 8));
		CHECK_INT_EQ(1, pwrite(fd, &byte, 1, at));
	}
	(void)close(fd);
}

enum index_state {
	NEVER_FLUSHED,
	FLUSHED_EACH,
	FLUSHED_AT_RANDOM,
	DELETED_BETWEEN,
	DAMAGED_BETWEEN,
	N_STATES
};

static bool between_steps(struct world *w, enum index_state state)
{
	bool now = !store_kit_random(&w->model.random, 4);

	if (state == FLUSHED_EACH ||
	    (state != NEVER_FLUSHED && store_kit_random(&w->model.random, 2)))
		flush(w);
	if (state == DELETED_BETWEEN && now)
		store_kit_remove("store/index");
	if (state == DAMAGED_BETWEEN && now) {
		damage_index(w);
		/* what an open handle may say */
		w->may_be_damaged = true;
		if (store_kit_random(&w->model.random, 2))
			(void)view_check_some(w);
		w->may_be_damaged = false;
	}
	if (now || store_kit_random(&w->model.random, 8) == 0) {
		/* an open rebuilds, but does not read everything at once */
		if (store_kit_random(&w->model.random, 2) &&
		    !view_check_expect(w, store_kit_reopen(&w->kit) == 0,
				       "reopens"))
			return false;
	}
	return true;
}

/* A view that fails says so, and the next call finds the index whole. */
static bool check_healed(struct world *w, bool all)
{
	bool is_good;

	w->may_be_damaged = true;
	w->was_damaged = false;
	is_good = all ? view_check_all(w) : view_check_some(w);
	w->may_be_damaged = false;
	if (is_good || !w->was_damaged)
		return is_good;
	return view_check_expect(w, incr_store_refresh(w->kit.st, NULL) == 0,
				 "heals") &&
	       (all ? view_check_all(w) : view_check_some(w));
}

static bool run_history(enum index_state state, uint64_t seed, unsigned n_steps)
{
	struct world *w = calloc(1, sizeof(*w));
	bool is_good;

	if (!w)
		abort();
	w->seed = seed;
	model_init(&w->model, seed);
	is_good = store_kit_init_with(&w->kit, store_kit_quick_io());
	for (unsigned i = 0; is_good && i < n_steps; i++) {
		if (!check_healed(w, false))
			is_good = false;
		else if (!model_step(&w->model, &w->kit))
			is_good = view_check_expect(w, false, "step");
		else
			is_good = between_steps(w, state) &&
				  (i % 3 || check_healed(w, false));
	}
	is_good = is_good && check_healed(w, true);
	if (is_good && store_kit_reopen(&w->kit) == 0)
		is_good = check_healed(w, true);
	store_kit_release(&w->kit);
	free(w);
	return is_good;
}

static void run_histories(enum index_state state, unsigned n)
{
	static uint64_t base;

	if (!base)
		base = store_kit_seed();
	for (unsigned i = 0; i < n; i++) {
		if (!run_history(state, base + i, 60)) {
			printf("INCR_TEST_SEED=%" PRIu64 " shows it\n",
			       base + i);
			return;
		}
		store_kit_remove("store");
	}
}

static void test_view__index_never_flushed__equals_model(void)
{
	run_histories(NEVER_FLUSHED, 4);
}

static void test_view__index_flushed_each_time__equals_model(void)
{
	run_histories(FLUSHED_EACH, 4);
}

static void test_view__index_flushed_at_random__equals_model(void)
{
	run_histories(FLUSHED_AT_RANDOM, 6);
}

static void test_view__index_deleted_between__equals_model(void)
{
	run_histories(DELETED_BETWEEN, 6);
}

static void test_view__index_damaged_between__equals_model(void)
{
	run_histories(DAMAGED_BETWEEN, 10);
}

static const struct testing_test tests[] = {
	TEST(test_view__index_never_flushed__equals_model),
	TEST(test_view__index_flushed_each_time__equals_model),
	TEST(test_view__index_flushed_at_random__equals_model),
	TEST(test_view__index_deleted_between__equals_model),
	TEST(test_view__index_damaged_between__equals_model),
	TEST_END,
};

static const struct testing_suite suites[] = {
	{ "view", tests },
	SUITE_END,
};

int main(int argc, char **argv)
{
	return testing_main(argc, argv, suites);
}
