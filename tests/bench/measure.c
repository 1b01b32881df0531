/*
 * measure OUT COMMAND [ARGUMENT]...: run a command and append a line with its
 * wall-clock seconds and the peak memory in KiB of it and its children to OUT.
 * Ends with the command's exit status.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int append_line(const char *path, double seconds, long rss_kib)
{
	FILE *f = fopen(path, "a");

	if (!f) {
		fprintf(stderr, "measure: %s: %s\n", path, strerror(errno));
		return -1;
	}
	fprintf(f, "%.6f %ld\n", seconds, rss_kib);
	return fclose(f);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double start = seconds_now();
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: measure OUT COMMAND [ARGUMENT]...\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "measure: %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		fprintf(stderr, "measure: %s\n", strerror(errno));
		return 126;
	}
	if (append_line(argv[1], seconds_now() - start, usage.ru_maxrss) < 0)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
