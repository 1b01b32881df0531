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
 * A failure prints INCR_FLIP=what:file:number; set to that, the program runs the
 * one case.
 * INCR_FLIPS_EVERY=n: every n-th bit and byte only.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flips.h"
#include "log_impl.h"
#include "shares.h"

#define N_PROCESSES 2
#define FAILURES_MAX 10
#define WRITER_EVERY 61 /* bits: a prime, so that all fields get their turn */

/* With INCR_FLIP, one case alone. */
static bool is_wanted(const struct flips *f, const char *what, const char *file,
		      size_t at)
{
	char name[512];

	if (!f->only)
		return true;
	snprintf(name, sizeof(name), "%s:%s:%zu", what, file, at);
	return !strcmp(name, f->only);
}

static void report(struct flips *f, const char *wrong, const char *what,
		   const char *file, size_t at)
{
	f->n.n_failures++;
	printf("FAILED %s\n  INCR_FLIP=%s:%s:%zu\n  found:\n%s\n", wrong, what,
	       file, at, f->found.text ? f->found.text : "");
	fflush(stdout);
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

	if (!is_wanted(f, "bit", file, bit))
		return;
	flip(f, file, bit);
	f->n.n_bits++;
	wrong = flips_judge(f, file);
	if (!wrong && bit % WRITER_EVERY == 0)
		wrong = flips_judge_writer(f, false);
	flip(f, file, bit);
	if (wrong)
		report(f, wrong, "bit", file, bit);
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
		if ((cut > 4096 && cut + 4096 < size && cut % 97) ||
		    !is_wanted(f, "cut", file, cut))
			continue;
		sim_set_file(f->sim, file, copy, cut);
		f->n.n_cuts++;
		wrong = flips_judge(f, file);
		if (!wrong && cut % WRITER_EVERY == 0)
			wrong = flips_judge_writer(f, false);
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
	const char *wrong;

	if (!is_wanted(f, what, file, with))
		return;
	f->n.n_others++;
	wrong = flips_judge(f, file);
	if (!wrong)
		wrong = flips_judge_writer(f, may_move);
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
		if (!strncmp(f->files[i], FLIPS_STORE "/log/", 10) &&
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

	snprintf(path, sizeof(path), FLIPS_STORE "/log/%016" PRIx64 ".log",
		 base + last.size);
	sim_set_file(f->sim, path, last.data, last.size);
	check_other(f, "appended", path, 0, true);
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
	struct saved lock = save(f, FLIPS_LOCK), boot = save(f, FLIPS_BOOT_ID);
	const char *file = last_segment(f);
	uint8_t zeros[64] = { 0 };
	size_t size, begin = last_record(f);

	(void)sim_file(f->sim, file, &size);
	sim_set_file(f->sim, FLIPS_BOOT_ID, "another boot\n", 13);
	for (size_t bit = begin * 8 + share; bit < size * 8; bit += f->step) {
		const char *wrong;
		uint8_t *bytes;

		if (!is_wanted(f, "last-bit", file, bit))
			continue;
		flip(f, file, bit);
		f->n.n_bits++;
		wrong = flips_judge(f, file);
		if (!wrong)
			wrong = flips_judge_writer(f, false);
		if (wrong)
			report(f, wrong, "last-bit", file, bit);
		bytes = sim_file(f->sim, FLIPS_LOCK, &lock.size);
		memcpy(bytes + 64, zeros, sizeof(zeros));
		wrong = flips_judge_writer(f, true);
		if (wrong)
			report(f, wrong, "last-bit", file, bit);
		sim_set_file(f->sim, FLIPS_LOCK, lock.data, lock.size);
		flip(f, file, bit);
		if (f->n.n_failures >= FAILURES_MAX)
			break;
	}
	put_back(f, &lock);
	put_back(f, &boot);
}

/* ---- running ---- */

static void run_cases(struct flips *f, size_t share)
{
	check_bits(f, share);
	for (size_t i = 0; i < f->n_files; i++)
		check_cuts(f, f->files[i], share);
	check_last_record(f, share);
	if (share == 0) {
		check_exchanges(f, FLIPS_STORE "/log/");
		check_exchanges(f, FLIPS_STORE "/packs/");
		check_exchanges(f, FLIPS_STORE "/index/");
		check_appended(f);
	}
}

static void run_share(size_t share, void *result)
{
	struct flips f;

	flips_init(&f);
	f.step *= N_PROCESSES;
	run_cases(&f, share);
	*(struct counts *)result = f.n;
	flips_release(&f);
}

static int replay(const char *text)
{
	struct flips f;
	size_t n;
	int r;

	flips_init(&f);
	f.only = text;
	f.step = 1;
	run_cases(&f, 0);
	n = f.n.n_bits + f.n.n_cuts + f.n.n_others;
	r = f.n.n_failures != 0;
	flips_release(&f);
	if (!n)
		fprintf(stderr, "INCR_FLIP: there is no such case\n");
	return n ? r : 2;
}

static void add_counts(void *sum, const void *result)
{
	const struct counts *from = result;
	struct counts *to = sum;

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
	const struct shares shares = { N_PROCESSES, sizeof(struct counts),
				       run_share, add_counts };
	const char *one = getenv("INCR_FLIP");
	struct counts sum = { 0 };
	bool is_bad;

	if (one)
		return replay(one);
	is_bad = !shares_run(&shares, &sum) || sum.n_failures;
	printf("%zu bits flipped, %zu cuts, %zu exchanges; %zu writers\n",
	       sum.n_bits, sum.n_cuts, sum.n_others, sum.n_writers);
	printf("%zu refused, %zu found, %zu harmless, %zu bad\n", sum.n_refused,
	       sum.n_found, sum.n_harmless, sum.n_failures);
	printf("%d passed, %d failed\n", !is_bad, is_bad);
	return is_bad;
}
