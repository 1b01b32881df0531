/*
 * Reading all content, for verify.
 *
 * Jobs stand in a ring.  The caller's thread fills it and reports, in order;
 * worker threads take what is filled.  What was read is remembered by a hash
 * of its descriptor and of the file's hash, so that shared content is read
 * once.  Where such content is damaged, a second walk over the manifests names
 * the other files that have it.
 */
#include "config.h"

#include "verify_data.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hash.h"
#include "io.h"

#define READ_SIZE ((size_t)1 << 20)
#define N_THREADS_MAX 16
#define JOBS_PER_THREAD 8
#define SEEN_MAX ((size_t)4 << 20) /* beyond it, content may be read twice */

struct job {
	enum { JOB_FREE, JOB_READY, JOB_BUSY, JOB_DONE } state;
	char *path; /* owned; of the entry */
	struct manifest_entry entry; /* owns its content */
	char *dataset; /* owned */
	uint64_t txn, key;
	int r;
	struct incr_error why;
	uint64_t size; /* read */
};

/* Damaged content, and the first file that was found to have it. */
struct damaged {
	uint64_t key, txn;
	char *path; /* owned */
	size_t path_length;
	struct incr_error why;
};

struct verify_data {
	struct content_reader *reader; /* borrowed */
	verify_failure_fn fn;
	void *closure;
	uint64_t *seen; /* owned: keys; open addressing, 0: free */
	size_t n_seen, seen_capacity;
	struct damaged *damaged; /* owned */
	size_t n_damaged;
	bool has_shared;
	uint64_t size;
	uint64_t alone_size; /* left to be read without threads */
	bool has_threads;

	pthread_mutex_t lock; /* guards the states of jobs and the rest here */
	pthread_cond_t is_ready, is_done;
	bool ends;
	size_t n_jobs;
	struct job *jobs; /* owned */
	size_t head, next; /* oldest job not reported; next to be read */
	size_t n_waiting; /* jobs from head on */
	size_t n_threads;
	pthread_t threads[N_THREADS_MAX];
	struct worker {
		struct verify_data *d;
		struct hasher *hasher; /* owned */
		uint8_t *bytes; /* owned: READ_SIZE */
	} workers[N_THREADS_MAX + 1]; /* the last one: without threads */
};

/* ---- reading one file ---- */

static int read_all(struct worker *w, struct job *j)
{
	uint64_t off = 0;
	size_t n;

	hasher_reset(w->hasher);
	do {
		int r = content_read(w->d->reader, &j->entry.content, off,
				     w->bytes, READ_SIZE, &n, &j->why);

		if (r < 0)
			return r;
		hasher_update(w->hasher, w->bytes, n);
		off += n;
	} while (n == READ_SIZE);
	j->size = off;
	return 0;
}

static int fail_content(struct job *j, const char *word, const char *what)
{
	return incr_fail(&j->why, INCR_E_CORRUPT, word, "packs", "%s", what);
}

static void run_job(struct worker *w, struct job *j)
{
	uint8_t hash[INCR_HASH_SIZE];

	j->r = read_all(w, j);
	if (j->r < 0)
		return;
	hasher_digest(w->hasher, hash);
	if (j->size != j->entry.content.size)
		j->r = fail_content(
			j, "wrong-size",
			"the file's content is not as long as recorded");
	else if (memcmp(hash, j->entry.hash, sizeof(hash)) != 0)
		j->r = fail_content(
			j, "wrong-hash",
			"the file's content does not match its hash");
}

static void *work(void *closure)
{
	struct worker *w = closure;
	struct verify_data *d = w->d;

	(void)pthread_mutex_lock(&d->lock);
	while (!d->ends) {
		struct job *j = &d->jobs[d->next];

		if (j->state != JOB_READY) {
			(void)pthread_cond_wait(&d->is_ready, &d->lock);
			continue;
		}
		j->state = JOB_BUSY;
		d->next = (d->next + 1) % d->n_jobs;
		(void)pthread_mutex_unlock(&d->lock);
		run_job(w, j);
		(void)pthread_mutex_lock(&d->lock);
		j->state = JOB_DONE;
		(void)pthread_cond_signal(&d->is_done);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* ---- making and freeing ---- */

static int worker_init(struct worker *w, struct verify_data *d)
{
	w->d = d;
	w->hasher = hasher_new();
	w->bytes = malloc(READ_SIZE);
	return w->hasher && w->bytes ? 0 : INCR_E_NOMEM;
}

/* Threads begin when so much is read that they are worth their start. */
static void start_threads(struct verify_data *d, uint64_t size)
{
	if (d->has_threads)
		return;
	if (size <= d->alone_size) {
		d->alone_size -= size;
		return;
	}
	d->has_threads = true;
	while (d->n_threads < d->n_jobs / JOBS_PER_THREAD) {
		struct worker *w = &d->workers[d->n_threads];

		/* fewer will do, and none too */
		if (worker_init(w, d) < 0 ||
		    pthread_create(&d->threads[d->n_threads], NULL, work, w) !=
			    0)
			return;
		d->n_threads++;
	}
}

int verify_data_new(struct content_reader *reader, uint64_t alone_size,
		    verify_failure_fn fn, void *closure,
		    struct verify_data **out_data, struct incr_error *err)
{
	struct verify_data *d = calloc(1, sizeof(*d));
	size_t n_cores;

	if (!d)
		return incr_fail_nomem(err);
	d->reader = reader;
	d->alone_size = alone_size;
	d->fn = fn;
	d->closure = closure;
	n_cores = io_count_cores();
	d->n_jobs = JOBS_PER_THREAD *
		    (n_cores < N_THREADS_MAX ? n_cores : N_THREADS_MAX);
	(void)pthread_mutex_init(&d->lock, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&d->is_ready, NULL);
	(void)pthread_cond_init(&d->is_done, NULL);
	d->jobs = calloc(d->n_jobs, sizeof(*d->jobs));
	if (!d->jobs || worker_init(&d->workers[N_THREADS_MAX], d) < 0) {
		verify_data_free(d);
		return incr_fail_nomem(err);
	}
	*out_data = d;
	return 0;
}

/* All but the state: threads that have nothing to do look at that one. */
static void job_release(struct job *j)
{
	free(j->path);
	free(j->dataset);
	j->path = NULL;
	j->dataset = NULL;
	content_release(&j->entry.content);
	incr_error_release(&j->why);
	j->entry = (struct manifest_entry){ 0 };
	j->why = INCR_ERROR_INIT;
	j->size = 0;
	j->r = 0;
}

void verify_data_free(struct verify_data *d)
{
	if (!d)
		return;
	(void)pthread_mutex_lock(&d->lock);
	d->ends = true;
	(void)pthread_cond_broadcast(&d->is_ready);
	(void)pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < d->n_threads; i++)
		(void)pthread_join(d->threads[i], NULL);
	for (size_t i = 0; i <= N_THREADS_MAX; i++) {
		hasher_free(d->workers[i].hasher);
		free(d->workers[i].bytes);
	}
	for (size_t i = 0; d->jobs && i < d->n_jobs; i++)
		job_release(&d->jobs[i]);
	for (size_t i = 0; i < d->n_damaged; i++) {
		free(d->damaged[i].path);
		incr_error_release(&d->damaged[i].why);
	}
	free(d->damaged);
	free(d->jobs);
	free(d->seen);
	(void)pthread_cond_destroy(&d->is_done);
	(void)pthread_cond_destroy(&d->is_ready);
	(void)pthread_mutex_destroy(&d->lock);
	free(d);
}

/* ---- what was seen ---- */

static int key_of(const struct manifest_entry *e, uint64_t *out_key,
		  struct incr_error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	if (content_encode(&e->content, &place) < 0)
		return incr_fail_nomem(err);
	*out_key =
		hash64_two(place.data, place.size, e->hash, sizeof(e->hash)) |
		1;
	return 0;
}

/* True when the key was there. */
static bool insert(uint64_t *seen, size_t capacity, uint64_t key)
{
	size_t i = key / 2 % capacity;

	for (; seen[i]; i = (i + 1) % capacity)
		if (seen[i] == key)
			return true;
	seen[i] = key;
	return false;
}

/* 1: was there before; without memory, or with too many, nothing is. */
static bool was_seen(struct verify_data *d, uint64_t key)
{
	if (2 * d->n_seen >= d->seen_capacity && d->n_seen < SEEN_MAX) {
		size_t capacity = d->seen_capacity ? 2 * d->seen_capacity :
						     1024;
		uint64_t *grown = calloc(capacity, sizeof(*grown));

		if (!grown)
			return false;
		for (size_t i = 0; i < d->seen_capacity; i++)
			if (d->seen[i])
				(void)insert(grown, capacity, d->seen[i]);
		free(d->seen);
		d->seen = grown;
		d->seen_capacity = capacity;
	}
	if (d->n_seen >= SEEN_MAX)
		return false;
	if (insert(d->seen, d->seen_capacity, key))
		return true;
	d->n_seen++;
	return false;
}

static struct damaged *find_damaged(struct verify_data *d, uint64_t key)
{
	for (size_t i = 0; i < d->n_damaged; i++)
		if (d->damaged[i].key == key)
			return &d->damaged[i];
	return NULL;
}

static int note_damaged(struct verify_data *d, const struct job *j,
			struct incr_error *err)
{
	struct damaged *grown, *at;

	if (find_damaged(d, j->key))
		return 0;
	grown = reallocarray(d->damaged, d->n_damaged + 1, sizeof(*grown));
	if (!grown)
		return incr_fail_nomem(err);
	d->damaged = grown;
	at = &grown[d->n_damaged];
	*at = (struct damaged){ .key = j->key,
				.txn = j->txn,
				.path_length = j->entry.path_length };
	at->path = strndup(j->path, j->entry.path_length);
	if (!at->path)
		return incr_fail_nomem(err);
	at->why = j->why;
	at->why.paths = NULL;
	d->n_damaged++;
	return 0;
}

/* ---- filling and reporting ---- */

static int give(struct verify_data *d, struct job *j, struct incr_error *err)
{
	struct verify_failure failure = { &j->entry, j->dataset, j->txn,
					  &j->why };
	int r = j->r;

	d->size += j->size;
	/* what the disk does not give, too: verify.c says which it is */
	if (r == INCR_E_CORRUPT || incr_is_unreadable(&j->why)) {
		r = note_damaged(d, j, err);
		if (r == 0)
			r = d->fn(d->closure, &failure);
	} else if (r < 0) {
		r = incr_fail_with(err, r, &j->why);
	}
	job_release(j);
	return r;
}

/* Report the oldest job, when it is done. */
static int give_oldest(struct verify_data *d, struct incr_error *err)
{
	struct job *j = &d->jobs[d->head];

	(void)pthread_mutex_lock(&d->lock);
	while (j->state != JOB_DONE)
		(void)pthread_cond_wait(&d->is_done, &d->lock);
	j->state = JOB_FREE;
	(void)pthread_mutex_unlock(&d->lock);
	d->head = (d->head + 1) % d->n_jobs;
	d->n_waiting--;
	return give(d, j, err);
}

static int fill(struct job *j, const struct manifest_entry *e,
		const char *dataset, uint64_t txn, uint64_t key)
{
	j->entry = *e;
	j->entry.content = (struct content){ 0 };
	j->path = strndup(e->path, e->path_length);
	j->dataset = strdup(dataset);
	j->entry.path = j->path;
	j->txn = txn;
	j->key = key;
	if (!j->path || !j->dataset ||
	    content_copy(&e->content, &j->entry.content) < 0)
		return INCR_E_NOMEM;
	return 0;
}

int verify_data_check(struct verify_data *d, const struct manifest_entry *entry,
		      const char *dataset, uint64_t txn, struct incr_error *err)
{
	struct job *j;
	uint64_t key;
	int r = key_of(entry, &key, err);

	if (r < 0)
		return r;
	if (was_seen(d, key)) {
		d->has_shared = true;
		return 0;
	}
	if (d->n_waiting == d->n_jobs) {
		r = give_oldest(d, err);
		if (r)
			return r;
	}
	j = &d->jobs[(d->head + d->n_waiting) % d->n_jobs];
	if (fill(j, entry, dataset, txn, key) < 0) {
		job_release(j);
		return incr_fail_nomem(err);
	}
	start_threads(d, entry->content.size);
	if (d->n_threads == 0) {
		run_job(&d->workers[N_THREADS_MAX], j);
		return give(d, j, err);
	}
	d->n_waiting++;
	(void)pthread_mutex_lock(&d->lock);
	j->state = JOB_READY;
	(void)pthread_cond_signal(&d->is_ready);
	(void)pthread_mutex_unlock(&d->lock);
	return 0;
}

int verify_data_finish(struct verify_data *d, struct incr_error *err)
{
	int r = 0;

	while (r == 0 && d->n_waiting)
		r = give_oldest(d, err);
	return r;
}

bool verify_data_has_shared(const struct verify_data *d)
{
	return d->has_shared && d->n_damaged;
}

int verify_data_again(struct verify_data *d, const struct manifest_entry *entry,
		      const char *dataset, uint64_t txn, struct incr_error *err)
{
	struct verify_failure failure = { entry, dataset, txn, NULL };
	struct damaged *damaged;
	uint64_t key;
	int r = key_of(entry, &key, err);

	if (r < 0)
		return r;
	damaged = find_damaged(d, key);
	if (!damaged ||
	    (damaged->txn == txn &&
	     damaged->path_length == entry->path_length &&
	     !memcmp(damaged->path, entry->path, entry->path_length)))
		return 0;
	failure.why = &damaged->why;
	return d->fn(d->closure, &failure);
}

uint64_t verify_data_size(const struct verify_data *d)
{
	return d->size;
}
