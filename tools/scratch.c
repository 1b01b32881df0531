/*
 * A place for previews of a store that cannot be written.
 */
#include "config.h"

#include "scratch.h"

#include "fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int scratch_make(struct cli *cli, char **out_path)
{
	const char *top = getenv("TMPDIR");
	char *path;

	*out_path = NULL;
	if (!incr_store_is_readonly(cli->store))
		return 0;
	if (!top || top[0] != '/')
		top = "/tmp";
	if (asprintf(&path, "%s/incr-preview.XXXXXX", top) < 0)
		return fail_nomem(&cli->err);
	if (!mkdtemp(path)) {
		free(path);
		return fail_errno(&cli->err, top,
				  "cannot make a temporary directory");
	}
	*out_path = path;
	return 0;
}

void scratch_remove(char *path)
{
	if (!path)
		return;
	(void)rmdir(path); /* best effort */
	free(path);
}
