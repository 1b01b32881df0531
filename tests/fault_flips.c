/*
 * Every single bit of every file of a store flipped, every file cut at every
 * byte, segments exchanged, doubled, lost and set back.  After each the store
 * is opened, everything in it is read, and it is verified:
 *
 *   - damage is an error (damaged, or of a newer version), or makes no difference;
 *   - no wrong byte, name or number is ever given;
 *   - what made a difference is found by verify;
 *   - a writer never cuts off what had been acknowledged: it refuses, and leaves
 *     every byte where it is.  Only where nothing proves the last record, it
 *     moves its bytes to lost/.
 *
 * A failure prints INCR_FLIP=file:bit; set to that, the program runs the one.
 * INCR_FLIPS_EVERY=n: every n-th bit and byte only.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log_impl.h"
#include "simio.h"
#include "store.h"
#include "store_text.h"
#include "testing.h"

#define STORE "store"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define LOCK STORE "/lock"
#define N_PROCESSES 2
#define FILES_MAX 64
#define FAILURES_MAX 10
#define WRITER_EVERY 61 /* bits: a prime, so that all fields get their turn */

/* Of one process; sent to the first one when it ends. */
struct counts {
	size_t n_bits, n_cuts, n_writers, n_others;
	size_t n_refused; /* the store did not open */
	size_t n_found; /* something could not be read, or verify found it */
	size_t n_harmless;
	size_t n_failures;
};

struct flips {
	struct sim *sim; /* owned */
	struct store_text want, found; /* owned */
	char *files[FILES_MAX]; /* owned */
	size_t n_files;
	size_t step; /* every so many-th bit is this process's */
	struct counts n;
};

/* ---- the store ---- */

static int commit(struct incr_store *st, enum incr_txn_type type,
		  const char *path, struct incr_error *err)
{
	struct incr_pair pair = { (char *)"key", (char *)"value" };
	struct incr_txn_options options = { .dataset_id = 1,
					    .type = type,
					    .message = "a message",
					    .meta = { 1, &pair } };
	struct incr_source source = { .path = path };

	return incr_commit(st, &options, &source, 1, NULL, err);
}

static struct sim *make_store(void)
{
	struct incr_remove_flags flags = { 0 };
	struct incr_txn_options options = { .dataset_id = 1 };
	const char *gone = "small-1";
	struct incr_error err = INCR_ERROR_INIT;
	struct sim *sim = sim_new();
	struct incr_store *st;
	uint64_t id;

	sim_set_file(sim, BOOT_ID, "a boot\n", 7);
	sim_make_file(sim, "small-1", 300, 200, 1);
	sim_make_file(sim, "small-2", 900, 100, 2);
	sim_make_file(sim, "small-3", 1300, 400, 3);
	sim_make_file(sim, "tree/large", 70000, 25000, 4);
	sim_make_file(sim, "tree/dir/b", 1500, 500, 5);
	if (store_init_with(sim_io(sim), STORE, &err) < 0 ||
	    store_open_with(sim_io(sim), STORE, NULL, &st, &err) < 0)
		testing_die("cannot make the store", &err);
	st->log->segment_size = 1024; /* several segments */
	if (incr_dataset_create(st, "dataset", "text", NULL, &id, &err) < 0 ||
	    commit(st, INCR_APPEND, "small-1", &err) < 0 ||
	    commit(st, INCR_UPDATE, "tree", &err) < 0 ||
	    incr_schema_set(st, 1, NULL, "{}", 2, &err) < 0 ||
	    incr_branch_create(st, 1, "side", "main", 1, &err) < 0 ||
	    index_flush(st->index, &err) < 0 ||
	    commit(st, INCR_UPDATE, "small-2", &err) < 0 ||
	    incr_remove(st, &options, &gone, 1, flags, NULL, &err) < 0 ||
	    commit(st, INCR_UPDATE, "small-3", &err) < 0)
		testing_die("cannot make the store", &err);
	incr_store_close(st);
	return sim;
}

static void add_file(void *closure, const char *path)
{
	struct flips *f = closure;

	if (f->n_files < FILES_MAX)
		f->files[f->n_files++] = strdup(path);
}

static void flips_init(struct flips *f)
{
	const char *every = getenv("INCR_FLIPS_EVERY");
	struct incr_store *st;

	*f = (struct flips){ .sim = make_store(), .step = N_PROCESSES };
	/* under a sanitizer every few bits have to do */
#ifdef __SANITIZE_ADDRESS__
	f->step *= 13;
#endif
	if (every && atol(every) > 0)
		f->step = N_PROCESSES * (size_t)atol(every);
	if (store_open_with(sim_io(f->sim), STORE,
			    &(struct incr_store_options){ .is_readonly = true },
			    &st, NULL) < 0 ||
	    store_text_fill(st, STORE_TEXT_TIMES, &f->want) < 0)
		abort();
	incr_store_close(st);
	sim_each_file(f->sim, STORE, add_file, f);
}

static void flips_release(struct flips *f)
{
	for (size_t i = 0; i < f->n_files; i++)
		free(f->files[i]);
	store_text_release(&f->want);
	store_text_release(&f->found);
	sim_free(f->sim);
}

/* ---- judging ---- */

static bool is_damage(int code)
{
	return code == INCR_E_CORRUPT || code == INCR_E_UNSUPPORTED;
}

/* Every line that is no error is one of the undamaged store's. */
static bool is_part(const struct store_text *want,
		    const struct store_text *found)
{
	const char *line = found->text, *end;
	char text[4200];

	for (; *line; line = end + 1) {
		size_t n;

		end = strchr(line, '\n');
		n = (size_t)(end - line) + 1;
		if (!strncmp(line, "ERROR ", 6))
			continue;
		snprintf(text, sizeof(text), "\n%.*s", (int)n, line);
		if (!strstr(want->text, text) &&
		    strncmp(want->text, text + 1, n) != 0)
			return false;
	}
	return true;
}

static const char *judge_open(struct flips *f, struct incr_store *st)
{
	struct incr_verify_options verify = { .reads_data = true };
	struct incr_verify_result result = { 0 };
	int r = store_text_fill(st, STORE_TEXT_TIMES, &f->found);
	bool is_same = !strcmp(f->want.text, f->found.text);
	int v = incr_verify(st, &verify, NULL, NULL, &result, NULL);

	if (r < 0 && !is_damage(r))
		return "an error that does not say that it is damage";
	if (r == 0 && !is_same)
		return "wrong data, or something is missing without a word";
	if (r < 0 && !is_part(&f->want, &f->found))
		return "wrong data beside what is damaged";
	if (v < 0 && !is_damage(v))
		return "verify fails";
	if (!is_same && v == 0 && result.n_findings == 0)
		return "verify does not find it";
	if (is_same && v == 0 && result.n_findings == 0)
		f->n.n_harmless++;
	else
		f->n.n_found++;
	return NULL;
}

/* Open, read all, verify; nothing is written. @file: what was changed. */
static const char *judge(struct flips *f, const char *file)
{
	struct incr_store_options options = { .is_readonly = true };
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st;
	const char *wrong;
	int r = store_open_with(sim_io(f->sim), STORE, &options, &st, &err);
	bool is_no_store = r == INCR_E_NOTFOUND &&
			   !strcmp(file, STORE "/format") &&
			   !strcmp(err.word, "not-a-store");

	incr_error_release(&err);
	if (r < 0) {
		f->n.n_refused++;
		return is_damage(r) || is_no_store ?
			       NULL :
			       "it does not open, and does not say why";
	}
	wrong = judge_open(f, st);
	incr_store_close(st);
	return wrong;
}

static void report(struct flips *f, const char *wrong, const char *what,
		   const char *file, size_t at)
{
	f->n.n_failures++;
	printf("FAILED %s\n  %s INCR_FLIP=%s:%zu\n  found:\n%s\n", wrong, what,
	       file, at, f->found.text ? f->found.text : "");
	fflush(stdout);
}

/* ---- a writer over the damage ---- */

struct sizes {
	struct sim *sim;
	uint64_t log, lost, sum;
};

static void add_size(void *closure, const char *path)
{
	struct sizes *s = closure;
	size_t size;
	uint8_t *data = sim_file(s->sim, path, &size);

	if (!strncmp(path, STORE "/log/", 10)) {
		s->log += size;
		for (size_t i = 0; i < size; i++)
			s->sum = s->sum * 31 + data[i];
	}
	if (!strncmp(path, STORE "/lost/", 11))
		s->lost += size;
}

static struct sizes measure(struct sim *sim)
{
	struct sizes s = { .sim = sim };

	sim_each_file(sim, STORE, add_size, &s);
	return s;
}

/*
 * A commit in a store that is as it is now.  @may_move: nothing proves the last
 * record, so that its bytes may go to lost/.
 */
static const char *judge_writer(struct flips *f, bool may_move)
{
	struct sim *sim = sim_copy(f->sim);
	struct sizes before = measure(sim), after;
	struct incr_error err = INCR_ERROR_INIT;
	struct incr_store *st = NULL;
	const char *wrong = NULL;
	int r = store_open_with(sim_io(sim), STORE, NULL, &st, &err);

	if (r == 0)
		r = commit(st, INCR_UPDATE, "small-1", &err);
	incr_store_close(st);
	after = measure(sim);
	f->n.n_writers++;
	if (r < 0 && !is_damage(r) && r != INCR_E_NOTFOUND)
		wrong = "a writer fails, and does not say that it is damage";
	else if (r < 0 && (after.log != before.log || after.sum != before.sum))
		wrong = "a writer refuses, and changes the log";
	else if (after.lost && !may_move)
		wrong = "a writer cuts off what was acknowledged";
	else if (after.log + after.lost < before.log)
		wrong = "a writer throws bytes of the log away";
	incr_error_release(&err);
	sim_free(sim);
	return wrong;
}

/* ---- what is done to the files ---- */

static void flip(struct flips *f, const char *file, size_t bit)
{
	size_t size;
	uint8_t *data = sim_file(f->sim, file, &size);

	data[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void check_bit(struct flips *f, const char *file, size_t bit)
{
	const char *wrong;

	flip(f, file, bit);
	f->n.n_bits++;
	wrong = judge(f, file);
	if (!wrong && bit % WRITER_EVERY == 0)
		wrong = judge_writer(f, false);
	flip(f, file, bit);
	if (wrong)
		report(f, wrong, "flipped", file, bit);
}

static void check_bits(struct flips *f, size_t share)
{
	for (size_t i = 0; i < f->n_files; i++) {
		size_t size;

		(void)sim_file(f->sim, f->files[i], &size);
		for (size_t bit = share; bit < size * 8; bit += f->step) {
			if (f->n.n_failures >= FAILURES_MAX)
				return;
			check_bit(f, f->files[i], bit);
		}
	}
}

static void check_cuts(struct flips *f, const char *file, size_t share)
{
	size_t size;
	uint8_t *data = sim_file(f->sim, file, &size);
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	for (size_t cut = share; cut < size; cut += f->step) {
		const char *wrong;

		/* of a long file the ends, and every so many-th byte */
		if (cut > 4096 && cut + 4096 < size && cut % 97)
			continue;
		sim_set_file(f->sim, file, copy, cut);
		f->n.n_cuts++;
		wrong = judge(f, file);
		if (!wrong && cut % WRITER_EVERY == 0)
			wrong = judge_writer(f, false);
		if (wrong)
			report(f, wrong, "cut", file, cut);
		if (f->n.n_failures >= FAILURES_MAX)
			break;
	}
	sim_set_file(f->sim, file, copy, size);
	free(copy);
}

/* A copy of a file, to be put back. */
struct saved {
	const char *path;
	uint8_t *data; /* owned */
	size_t size;
};

static struct saved save(struct flips *f, const char *path)
{
	struct saved s = { .path = path };
	uint8_t *data = sim_file(f->sim, path, &s.size);

	s.data = malloc(s.size + 1);
	if (!s.data)
		abort();
	memcpy(s.data, data, s.size);
	return s;
}

static void put_back(struct flips *f, struct saved *s)
{
	sim_set_file(f->sim, s->path, s->data, s->size);
	free(s->data);
}

static void check_other(struct flips *f, const char *what, const char *file,
			size_t with, bool may_move)
{
	const char *wrong = judge(f, file);

	f->n.n_others++;
	if (!wrong)
		wrong = judge_writer(f, may_move);
	if (wrong)
		report(f, wrong, what, file, with);
}

/* Files of one directory in each other's place, and missing. */
static void check_exchanges(struct flips *f, const char *dir)
{
	size_t n = strlen(dir);

	for (size_t i = 0; i < f->n_files; i++) {
		struct saved a;

		if (strncmp(f->files[i], dir, n) != 0)
			continue;
		a = save(f, f->files[i]);
		sim_remove_file(f->sim, a.path);
		check_other(f, "missing", a.path, i, false);
		put_back(f, &a);
		for (size_t j = 0; j < f->n_files; j++) {
			struct saved b;

			if (j == i || strncmp(f->files[j], dir, n) != 0)
				continue;
			a = save(f, f->files[i]);
			b = save(f, f->files[j]);
			sim_set_file(f->sim, a.path, b.data, b.size);
			check_other(f, "doubled", a.path, j, false);
			sim_set_file(f->sim, b.path, a.data, a.size);
			check_other(f, "exchanged", a.path, j, false);
			put_back(f, &a);
			put_back(f, &b);
		}
	}
}

/* The newest segment: the one with the largest name. */
static const char *last_segment(const struct flips *f)
{
	const char *last = "";

	for (size_t i = 0; i < f->n_files; i++)
		if (!strncmp(f->files[i], STORE "/log/", 10) &&
		    strcmp(f->files[i], last) > 0)
			last = f->files[i];
	return last;
}

/* A segment doubled behind the end, where the next one would be: no one's. */
static void check_appended(struct flips *f)
{
	struct saved last = save(f, last_segment(f));
	uint64_t base = strtoull(last.path + 10, NULL, 16);
	char path[64];

	snprintf(path, sizeof(path), STORE "/log/%016" PRIx64 ".log",
		 base + last.size);
	sim_set_file(f->sim, path, last.data, last.size);
	check_other(f, "doubled behind the end", path, 0, true);
	sim_remove_file(f->sim, path);
	put_back(f, &last);
}

/* Where the last record of the last segment begins. */
static size_t last_record(struct flips *f)
{
	size_t size, at = LOG_SEGMENT_HEADER_SIZE, last = at;
	uint8_t *data = sim_file(f->sim, last_segment(f), &size);
	struct record_header h;

	while (at < size && record_decode_header(data + at, &h) == 0) {
		last = at;
		at += (size_t)record_span(h.payload_size);
	}
	return last;
}

/*
 * The last record, after a restart: the boot is another one.  With the mark in
 * the lock file it is damage as ever.  Without it, it looks like a torn tail:
 * then its bytes are kept aside.
 */
static void check_last_record(struct flips *f, size_t share)
{
	struct saved lock = save(f, LOCK), boot = save(f, BOOT_ID);
	const char *file = last_segment(f);
	uint8_t zeros[64] = { 0 };
	size_t size, begin = last_record(f);

	(void)sim_file(f->sim, file, &size);
	sim_set_file(f->sim, BOOT_ID, "another boot\n", 13);
	for (size_t bit = begin * 8 + share; bit < size * 8; bit += f->step) {
		const char *wrong;
		uint8_t *bytes;

		flip(f, file, bit);
		f->n.n_bits++;
		wrong = judge(f, file);
		if (!wrong)
			wrong = judge_writer(f, false);
		if (wrong)
			report(f, wrong, "flipped after a restart", file, bit);
		bytes = sim_file(f->sim, LOCK, &lock.size);
		memcpy(bytes + 64, zeros, sizeof(zeros));
		wrong = judge_writer(f, true);
		if (wrong)
			report(f, wrong, "flipped without a proof", file, bit);
		sim_set_file(f->sim, LOCK, lock.data, lock.size);
		flip(f, file, bit);
		if (f->n.n_failures >= FAILURES_MAX)
			break;
	}
	put_back(f, &lock);
	put_back(f, &boot);
}

/* ---- running ---- */

static void run_share(size_t share, int result_fd)
{
	struct flips f;

	flips_init(&f);
	check_bits(&f, share);
	for (size_t i = 0; i < f.n_files; i++)
		check_cuts(&f, f.files[i], share);
	check_last_record(&f, share);
	if (share == 0) {
		check_exchanges(&f, STORE "/log/");
		check_exchanges(&f, STORE "/packs/");
		check_exchanges(&f, STORE "/index/");
		check_appended(&f);
	}
	if (write(result_fd, &f.n, sizeof(f.n)) != sizeof(f.n))
		abort();
	flips_release(&f);
}

static int replay(const char *text)
{
	const char *colon = strrchr(text, ':');
	struct flips f;
	char file[4096];
	int r;

	if (!colon)
		return 2;
	snprintf(file, sizeof(file), "%.*s", (int)(colon - text), text);
	flips_init(&f);
	check_bit(&f, file, strtoul(colon + 1, NULL, 10));
	r = f.n.n_failures != 0;
	flips_release(&f);
	return r;
}

static void add_counts(struct counts *to, const struct counts *from)
{
	to->n_bits += from->n_bits;
	to->n_cuts += from->n_cuts;
	to->n_writers += from->n_writers;
	to->n_others += from->n_others;
	to->n_refused += from->n_refused;
	to->n_found += from->n_found;
	to->n_harmless += from->n_harmless;
	to->n_failures += from->n_failures;
}

int main(void)
{
	const char *one = getenv("INCR_FLIP");
	struct counts sum = { 0 };
	int pipes[2], status, is_bad = 0;

	if (one)
		return replay(one);
	if (pipe(pipes) < 0)
		return 1;
	for (size_t i = 0; i < N_PROCESSES; i++)
		if (fork() == 0) {
			run_share(i, pipes[1]);
			_exit(0);
		}
	close(pipes[1]);
	for (size_t i = 0; i < N_PROCESSES; i++) {
		struct counts n;

		if (wait(&status) < 0 || status)
			is_bad = 1;
		else if (read(pipes[0], &n, sizeof(n)) == sizeof(n))
			add_counts(&sum, &n);
	}
	printf("%zu bits flipped, %zu cuts, %zu exchanges; %zu writers\n",
	       sum.n_bits, sum.n_cuts, sum.n_others, sum.n_writers);
	printf("%zu refused, %zu found, %zu harmless, %zu bad\n", sum.n_refused,
	       sum.n_found, sum.n_harmless, sum.n_failures);
	if (sum.n_failures)
		is_bad = 1;
	printf("%d passed, %d failed\n", !is_bad, is_bad);
	return is_bad;
}
