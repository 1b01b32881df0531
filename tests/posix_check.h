/*
 * Checks of POSIX behaviour: each is counted, and says both sides if it fails.
 */
#ifndef INCR_POSIX_CHECK_H
#define INCR_POSIX_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

bool posix_true(bool held, const char *text, int line);
void posix_equal(long long want, long long got, const char *text, int line);
/* @r: what a call returned; @want: the errno that it failed with. */
void posix_error(int want, long long r, const char *text, int line);

#define TRUE(x) posix_true((x), #x, __LINE__)
#define OK(x) posix_equal(0, (x), #x, __LINE__)
#define EQ(want, x) posix_equal((want), (x), #x, __LINE__)
#define ERR(want, x) posix_error((want), (x), #x, __LINE__)

/* Small tools; 0 or -1 with errno. */
int put(const char *path, const char *text);
int touch_mode(const char *path, mode_t mode);
bool has(const char *path, const char *text);
bool fd_has(int fd, const char *text);
bool exists(const char *path);
struct stat look(const char *path); /* size -1: there is nothing */
int n_entries(const char *path); /* without . and .. */

/* Groups of checks; each begins and ends with an empty directory. */
void test_files(void);
void test_append(void);
void test_unlinked(void);
void test_truncate(void);
void test_fallocate(void);
void test_copies(void);
void test_mmap(void);
void test_rename(void);
void test_links(void);
void test_symlinks(void);
void test_dirs(void);
void test_locks(void);
void test_times(void);
void test_modes(void);
void test_users(void);
#endif
