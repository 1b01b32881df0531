/*
 * random_read PATH N SEED: read 4 KiB at N random offsets, each a multiple of
 * 4 KiB, one after another.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096

int main(int argc, char **argv)
{
	uint64_t seed, n_blocks;
	char data[BLOCK];
	struct stat st;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: random_read PATH N SEED\n");
		return 2;
	}
	seed = strtoull(argv[3], NULL, 10) * 2 + 1;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "random_read: %s: %s\n", argv[1],
			strerror(errno));
		return 1;
	}
	n_blocks = (uint64_t)st.st_size / BLOCK;
	for (unsigned long n = strtoul(argv[2], NULL, 10); n > 0; n--) {
		off_t off;

		seed = seed * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
		off = (off_t)((seed >> 33) % n_blocks * BLOCK);
		if (pread(fd, data, sizeof(data), off) != BLOCK) {
			fprintf(stderr, "random_read: %s: %s\n", argv[1],
				strerror(errno));
			return 1;
		}
	}
	close(fd);
	return 0;
}
