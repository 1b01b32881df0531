/*
 * Finding and opening the store.
 */
#include "config.h"

#include "find.h"

#include "cleanup.h"
#include "fail.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_NAME ".incr"
#define WAIT_DEFAULT_SEC 30

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The nearest .incr upward from here. Owned; NULL with @err filled. */
static char *find_upward(struct incr_error *err)
{
	_cleanup_free_ char *dir = getcwd(NULL, 0);

	if (!dir) {
		(void)fail_errno(err, ".", "cannot tell the directory");
		return NULL;
	}
	for (;;) {
		char *path, *slash;

		if (asprintf(&path, "%s/" STORE_NAME, dir) < 0) {
			(void)fail_nomem(err);
			return NULL;
		}
		if (is_directory(path))
			return path;
		free(path);
		slash = strrchr(dir, '/');
		if (!slash || *dir == '\0')
			break;
		*slash = '\0';
	}
	(void)fail(err, INCR_E_NOTFOUND, "no-store", NULL,
		   "no store: there is no " STORE_NAME
		   " directory here or above");
	fail_hint(err, "name one with --store or $INCR_STORE, or make one "
		       "with: incrctl init");
	return NULL;
}

static int open_store(struct cli *cli, bool is_readonly)
{
	_cleanup_free_ char *found = NULL;
	struct incr_store_options options = { .is_readonly = is_readonly };
	const char *path = cli->common.store;
	uint64_t wait_sec = WAIT_DEFAULT_SEC;

	if (!path)
		path = getenv("INCR_STORE");
	if (!path || !*path)
		path = found = find_upward(&cli->err);
	if (!path)
		return cli->err.code;

	if (cli->common.wait_sec.is_set)
		wait_sec = cli->common.wait_sec.value;
	if (__builtin_mul_overflow(wait_sec, 1000, &options.wait_ms))
		options.wait_ms = UINT64_MAX;
	return incr_store_open(path, &options, &cli->store, &cli->err);
}

int find_store(struct cli *cli)
{
	return open_store(cli, false);
}

int find_readonly_store(struct cli *cli)
{
	return open_store(cli, true);
}
