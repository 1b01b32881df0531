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

static int open_at(struct cli *cli, const char *path,
		   const struct incr_store_options *options)
{
	return incr_store_open(path, options, &cli->store, &cli->err);
}

/* A .incr that is no store, such as that of a mount, is passed over. */
static bool is_passed_over(struct cli *cli, int r)
{
	return r == INCR_E_NOTFOUND &&
	       strcmp(cli->err.word, "not-a-store") == 0;
}

/* Open the nearest .incr upward from here. */
static int open_upward(struct cli *cli,
		       const struct incr_store_options *options)
{
	_cleanup_free_ char *dir = getcwd(NULL, 0);
	char *slash;
	int r;

	if (!dir)
		return fail_errno(&cli->err, ".", "cannot tell the directory");
	do {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/" STORE_NAME, dir) < 0) {
			path = NULL;
			return fail_nomem(&cli->err);
		}
		if (is_directory(path)) {
			r = open_at(cli, path, options);
			if (!is_passed_over(cli, r))
				return r;
		}
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
	} while (slash);

	r = fail(&cli->err, INCR_E_NOTFOUND, "no-store", NULL,
		 "no store: there is no " STORE_NAME " here or above");
	fail_hint(&cli->err, "name one with --store or $INCR_STORE, or make "
			     "one with: incrctl init");
	return r;
}

uint64_t find_wait_ms(const struct cli *cli)
{
	uint64_t wait_sec = WAIT_DEFAULT_SEC, wait_ms;

	if (cli->common.wait_sec.is_set)
		wait_sec = cli->common.wait_sec.value;
	return __builtin_mul_overflow(wait_sec, 1000, &wait_ms) ? UINT64_MAX :
								  wait_ms;
}

static int find_with(struct cli *cli, struct incr_store_options options)
{
	const char *path = cli->common.store;

	options.wait_ms = find_wait_ms(cli);
	if (!path)
		path = getenv("INCR_STORE");
	return path && *path ? open_at(cli, path, &options) :
			       open_upward(cli, &options);
}

int find_store(struct cli *cli)
{
	return find_with(cli, (struct incr_store_options){ 0 });
}

int find_store_damaged(struct cli *cli)
{
	return find_with(cli,
			 (struct incr_store_options){ .is_readonly = true,
						      .allows_damage = true });
}
