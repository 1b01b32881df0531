/*
 * The main function of a fuzzer that is built without libFuzzer: runs it once
 * on every file of its corpus, tests/fuzz/corpus/NAME/ for fuzz_NAME, or on
 * the files given as arguments. It counts as one test; an input that breaks
 * the parser ends the program, and its name is the last line of the log.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *read_all(FILE *file, size_t *out_size)
{
	uint8_t *data = NULL;
	size_t size = 0, room = 0, n;

	do {
		if (size == room) {
			uint8_t *grown;

			room = room ? 2 * room : 4096;
			grown = realloc(data, room);
			if (!grown)
				abort();
			data = grown;
		}
		n = fread(data + size, 1, room - size, file);
		size += n;
	} while (n > 0);

	*out_size = size;
	return data;
}

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *data, *exact;
	size_t size;

	puts(path);
	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	data = read_all(file, &size);
	(void)fclose(file);

	/* A block of exactly this size lets the sanitizer see its end. */
	exact = malloc(size ? size : 1);
	if (!exact)
		abort();
	memcpy(exact, data, size);
	free(data);
	(void)LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* @program: argv[0], which may be .libs/lt-fuzz_NAME */
static void replay_corpus(const char *program)
{
	const char *top = getenv("INCR_SRCDIR");
	const char *name = strstr(program, "fuzz_");
	struct dirent **entries;
	char dir[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	int n;

	if (!name || strlen(name) == strlen("fuzz_")) {
		fprintf(stderr, "%s: not called fuzz_NAME\n", program);
		exit(1);
	}
	(void)snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s",
		       top ? top : ".", name + strlen("fuzz_"));
	n = scandir(dir, &entries, is_visible, alphasort);
	if (n <= 0) {
		fprintf(stderr, "%s: no corpus: %s\n", dir,
			n < 0 ? strerror(errno) : "empty");
		exit(1);
	}
	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir,
			       entries[i]->d_name);
		replay_file(path);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		replay_file(argv[i]);
	if (argc < 2)
		replay_corpus(argv[0]);
	puts("1 passed, 0 failed");
	return 0;
}
