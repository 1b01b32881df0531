/*
 * incrctl init: make a store.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "fail.h"
#include "out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_init(struct cli *cli, void *options)
{
	struct incr_store_options open_options = { 0 };
	const char *path = ".incr", *env = getenv("INCR_STORE");
	int r;

	(void)options;
	if (cli->n_args > 0 && cli->common.store &&
	    strcmp(cli->args[0], cli->common.store) != 0)
		return fail_usage(&cli->err, cli->args[0],
				  "--store names another directory");
	if (cli->n_args > 0)
		path = cli->args[0];
	else if (cli->common.store)
		path = cli->common.store;
	else if (env && *env)
		path = env;

	r = incr_store_init(path, &cli->err);
	if (r < 0)
		return r;
	r = incr_store_open(path, &open_options, &cli->store, &cli->err);
	if (r < 0)
		return r;

	if (cli->common.is_json) {
		json_t *json = json_object();

		out_put(json, "store", out_text(incr_store_path(cli->store)));
		out_put(json, "uuid", out_text(incr_store_uuid(cli->store)));
		out_line(json);
	} else if (!cli->common.is_quiet) {
		printf("new store in ");
		out_path(cli, incr_store_path(cli->store),
			 strlen(incr_store_path(cli->store)));
	}
	return 0;
}

const struct verb verb_init = {
	.name = "init",
	.summary = "Make a store in DIR (default $INCR_STORE, else ./.incr), "
		   "which must be new or empty.",
	.synopsis = "[DIR]",
	.max_args = 1,
	.run = run_init,
};
