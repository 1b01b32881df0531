/*
 * Data for the benchmarks, the same bytes on every run:
 *
 *	make_data tree DIR N_DIRS N_FILES SIZE    log-like text files
 *	make_data file PATH SIZE text|half|random
 *	make_data csv PATH SIZE
 *	make_data small DIR N_FILES               a few bytes each
 *
 * Half: 4 KiB of random bytes, 4 KiB of text, and so on.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 4096
#define N_WORDS 2000
#define LINE_MAX_SIZE 256

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
static char words[N_WORDS][12];

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static void make_words(void)
{
	for (size_t i = 0; i < N_WORDS; i++) {
		size_t length = 3 + draw() % 8;

		for (size_t k = 0; k < length; k++)
			words[i][k] = (char)('a' + draw() % 26);
		words[i][length] = '\0';
	}
}

/* Some words are far more common than others, as in any language. */
static const char *word(void)
{
	return words[draw() % (1 + draw() % N_WORDS)];
}

static const char *level(void)
{
	static const char *const levels[] = { "INFO", "INFO", "INFO", "WARN",
					      "ERROR" };

	return levels[draw() % 5];
}

static size_t log_line(char *out)
{
	uint64_t r = draw();

	return (size_t)snprintf(
		out, LINE_MAX_SIZE,
		"2026-01-%02u %02u:%02u:%02u %s %s: %s %s %s id=%" PRIu64
		" bytes=%u\n",
		1 + (unsigned)(r % 28), (unsigned)(r >> 8) % 24,
		(unsigned)(r >> 16) % 60, (unsigned)(r >> 24) % 60, level(),
		word(), word(), word(), word(), (r >> 32) % 100000,
		(unsigned)(r >> 50));
}

static size_t csv_line(char *out)
{
	uint64_t r = draw();

	return (size_t)snprintf(out, LINE_MAX_SIZE,
				"%" PRIu64 ",%s,%s,2026-%02u-%02u,%u.%02u,%u\n",
				r % 10000000, word(), word(),
				1 + (unsigned)(r >> 24) % 12,
				1 + (unsigned)(r >> 32) % 28,
				(unsigned)(r >> 40) % 1000,
				(unsigned)(r >> 50) % 100, (unsigned)(r >> 57));
}

static void fill_text(char *data, size_t size)
{
	char line[LINE_MAX_SIZE];
	size_t n = 0;

	while (n < size) {
		size_t length = log_line(line);

		if (length > size - n)
			length = size - n;
		memcpy(data + n, line, length);
		n += length;
	}
}

static void fill_random(char *data, size_t size)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t r = draw();

		memcpy(data + i, &r, 8);
	}
}

static void fail(const char *path)
{
	fprintf(stderr, "make_data: %s: %s\n", path, strerror(errno));
	exit(1);
}

static FILE *create(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		fail(path);
	return f;
}

static void finish(FILE *f, const char *path)
{
	if (ferror(f) || fclose(f) != 0)
		fail(path);
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		fail(path);
}

static void make_tree(const char *dir, unsigned n_dirs, unsigned n_files,
		      size_t size)
{
	char path[4096];
	char *data = malloc(size);

	if (!data)
		fail(dir);
	make_dir(dir);
	for (unsigned i = 0; i < n_files; i++) {
		unsigned in = (unsigned)((uint64_t)i * n_dirs / n_files);
		FILE *f;

		snprintf(path, sizeof(path), "%s/d%03u", dir, in);
		make_dir(path);
		snprintf(path, sizeof(path), "%s/d%03u/f%06u.log", dir, in, i);
		f = create(path);
		fill_text(data, size);
		fwrite(data, 1, size, f);
		finish(f, path);
	}
	free(data);
}

static void make_file(const char *path, uint64_t size, const char *kind)
{
	char data[BLOCK];
	bool is_random = strcmp(kind, "text") != 0;
	bool alternates = strcmp(kind, "half") == 0;
	FILE *f = create(path);

	for (uint64_t n = 0; n < size; n += sizeof(data)) {
		if (is_random)
			fill_random(data, sizeof(data));
		else
			fill_text(data, sizeof(data));
		fwrite(data, 1, sizeof(data), f);
		if (alternates)
			is_random = !is_random;
	}
	finish(f, path);
}

static void make_csv(const char *path, uint64_t size)
{
	char line[LINE_MAX_SIZE];
	FILE *f = create(path);

	fputs("id,name,group,day,price,count\n", f);
	for (uint64_t n = 0; n < size;) {
		size_t length = csv_line(line);

		fwrite(line, 1, length, f);
		n += length;
	}
	finish(f, path);
}

static void make_small(const char *dir, unsigned n_files)
{
	char path[4096];

	make_dir(dir);
	for (unsigned i = 0; i < n_files; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/f%04u.txt", dir, i);
		f = create(path);
		fprintf(f, "file %u %s %" PRIu64 "\n", i, word(), draw());
		finish(f, path);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	make_words();
	if (argc == 6 && !strcmp(what, "tree"))
		make_tree(argv[2], (unsigned)strtoul(argv[3], NULL, 10),
			  (unsigned)strtoul(argv[4], NULL, 10),
			  strtoul(argv[5], NULL, 10));
	else if (argc == 5 && !strcmp(what, "file"))
		make_file(argv[2], strtoull(argv[3], NULL, 10), argv[4]);
	else if (argc == 4 && !strcmp(what, "csv"))
		make_csv(argv[2], strtoull(argv[3], NULL, 10));
	else if (argc == 4 && !strcmp(what, "small"))
		make_small(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
	else {
		fprintf(stderr, "make_data: wrong arguments; see its source\n");
		return 2;
	}
	return 0;
}
