/*
 * Two directories, one under test and a plain one, that are treated alike:
 * every result, errno and byte must agree.  What differs ends the program.
 */
#ifndef INCR_MODEL_BOTH_H
#define INCR_MODEL_BOTH_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define N_OPEN 8
#define FILE_MAX (256 * 1024)
#define IO_MAX (40 * 1024)
#define PATH_SIZE 64

enum side { SIDE_TESTED, SIDE_PLAIN, N_SIDES };

extern struct both {
	int dirs[N_SIDES];
	int fds[N_OPEN][N_SIDES]; /* -1: closed */
	int flags[N_OPEN];
	uint64_t random;
	unsigned long op, n_done; /* n_done: of those that succeeded */
	char what[256];
	uint8_t data[IO_MAX], got[N_SIDES][FILE_MAX];
} both;

__attribute__((format(printf, 1, 2), noreturn)) void both_fail(
	const char *format, ...);
/* What is done next, for messages; INCR_MODEL_TRACE prints it. */
__attribute__((format(printf, 1, 2))) void both_say(const char *format, ...);
/* Both sides returned the same, or failed with the same; whether they did it. */
bool both_same(const long long r[N_SIDES], const int errors[N_SIDES]);

/* Evaluate @call for both sides, as `dir` and `fd` say; compare. */
#define BOTH(call)                                           \
	__extension__({                                      \
		long long r_[N_SIDES];                       \
		int errors_[N_SIDES];                        \
		for (int side = 0; side < N_SIDES; side++) { \
			int dir = both.dirs[side];           \
			(void)dir;                           \
			errno = 0;                           \
			r_[side] = (call);                   \
			errors_[side] = errno;               \
		}                                            \
		both_same(r_, errors_);                      \
	})

/* The first @n bytes of both.got. */
void both_compare_data(long long n, const char *where);
void both_compare_stat(const struct stat st[N_SIDES], const char *path);
/* Open files and whole trees. */
void both_compare(void);
/* Leave files only, so that they can be committed. */
void both_remove_links(const char *path);

#endif
