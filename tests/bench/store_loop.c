/*
 * Many transactions through the library, in one process:
 *
 *	store_loop small STORE DATASET N    N commits of one small file each
 *	store_loop tree STORE DATASET N DIR N commits of DIR, below d000000, ...
 *
 * The dataset is made if it is not there.  Paths go on where the dataset's
 * number of files ends.
 */
#include "config.h"

#include "incr.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct loop {
	struct incr_store *store;
	uint64_t dataset_id;
	uint64_t n_before; /* files in the dataset */
	const char *dir; /* NULL: small files */
	int fd; /* of the small file's bytes */
};

static int find_dataset(struct loop *l, const char *name,
			struct incr_error *err)
{
	struct incr_error why = INCR_ERROR_INIT;
	struct incr_branch_info branch;
	struct incr_dataset_info info;
	int r = incr_dataset_find(l->store, name, &info, &why);

	incr_error_release(&why);
	if (r == INCR_E_NOTFOUND)
		return incr_dataset_create(l->store, name, NULL, NULL,
					   &l->dataset_id, err);
	if (r < 0)
		return r;
	l->dataset_id = info.id;
	incr_dataset_info_release(&info);
	r = incr_branch_find(l->store, l->dataset_id, "main", &branch, &why);
	incr_error_release(&why);
	if (r == INCR_E_NOTFOUND)
		return 0;
	if (r < 0)
		return r;
	l->n_before = branch.view_files;
	incr_branch_info_release(&branch);
	return 0;
}

/* The bytes of a small file, ready to be read. */
static int write_small(struct loop *l, uint64_t i)
{
	char text[128];
	int n = snprintf(text, sizeof(text),
			 "record %" PRIu64 " of the day, with %" PRIu64
			 " bytes of something small in it\n",
			 i, i * 7919 % 1000);

	if (ftruncate(l->fd, 0) < 0 || pwrite(l->fd, text, (size_t)n, 0) != n ||
	    lseek(l->fd, 0, SEEK_SET) < 0)
		return INCR_E_IO;
	return 0;
}

static int commit_one(struct loop *l, uint64_t i, struct incr_error *err)
{
	struct incr_txn_options options = { .dataset_id = l->dataset_id,
					    .type = INCR_APPEND };
	struct incr_source source = { .kind = INCR_SOURCE_PATH,
				      .path = l->dir };
	char name[64];

	if (l->dir) {
		snprintf(name, sizeof(name), "d%06" PRIu64, i);
		source.prefix = name;
	} else {
		snprintf(name, sizeof(name), "f%08" PRIu64 ".txt", i);
		source.kind = INCR_SOURCE_STREAM;
		source.fd = l->fd;
		source.name = name;
		if (write_small(l, i) < 0)
			return INCR_E_IO;
	}
	return incr_commit(l->store, &options, &source, 1, NULL, err);
}

static int run(struct loop *l, const char *dataset, uint64_t n,
	       struct incr_error *err)
{
	int r = find_dataset(l, dataset, err);

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = commit_one(l, l->n_before + i, err);
	return r;
}

int main(int argc, char **argv)
{
	struct incr_store_options options = { .wait_ms = 30000 };
	struct incr_error err = INCR_ERROR_INIT;
	struct loop l = { .dir = argc == 6 ? argv[5] : NULL };
	int r;

	if (argc < 5 || strcmp(argv[1], argc == 6 ? "tree" : "small") != 0) {
		fprintf(stderr,
			"store_loop: wrong arguments; see its source\n");
		return 2;
	}
	l.fd = memfd_create("small", MFD_CLOEXEC);
	if (l.fd < 0)
		return 1;
	r = incr_store_open(argv[2], &options, &l.store, &err);
	if (r == 0)
		r = run(&l, argv[3], strtoull(argv[4], NULL, 10), &err);
	if (r < 0)
		fprintf(stderr, "store_loop: %s: %s\n",
			err.message[0] ? err.message : incr_strerror(r),
			err.thing);
	incr_store_close(l.store);
	incr_error_release(&err);
	close(l.fd);
	return r < 0;
}
