/*
 * incrctl: finds the verb, parses its options, runs it.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct verb *const verbs[] = {
	&verb_init,   &verb_dataset, &verb_commit, &verb_rm,	 &verb_txn,
	&verb_log,    &verb_show,    &verb_ls,	   &verb_cat,	 &verb_diff,
	&verb_export, &verb_branch,  &verb_schema, &verb_plan,	 &verb_run,
	&verb_mount,  &verb_unmount, &verb_build,  &verb_status, &verb_changes,
	&verb_sync,   &verb_verify,  &verb_repair, NULL,
};

static const struct verb verb_top = {
	.name = NULL,
	.summary = "Keep datasets of files as transactions, and run programs "
		   "on what is new.",
	.subs = verbs,
};

#define COMMON(field) offsetof(struct cli_common, field)

const struct args_option cli_common_options[] = {
	{ "store", 'S', ARGS_TEXT, COMMON(store), "DIR",
	  "the store; else $INCR_STORE, else the nearest .incr" },
	{ "json", 0, ARGS_FLAG, COMMON(is_json), NULL,
	  "print JSON, also for errors" },
	{ "null", 'z', ARGS_FLAG, COMMON(is_nul), NULL,
	  "print paths alone, each ended by NUL" },
	{ "quiet", 'q', ARGS_FLAG, COMMON(is_quiet), NULL,
	  "print no progress and no summaries" },
	{ "wait", 0, ARGS_NUMBER, COMMON(wait_sec), "SECONDS",
	  "wait this long for a lock (30)" },
	{ "progress", 0, ARGS_TEXT, COMMON(progress), "auto|always|never",
	  "show progress on stderr (auto: on a terminal)" },
	{ "help", 'h', ARGS_FLAG, COMMON(wants_help), NULL, "print this" },
	{ "version", 0, ARGS_FLAG, COMMON(wants_version), NULL,
	  "print the version" },
	ARGS_END,
};

static void print_version(void)
{
	puts("incrctl " VERSION);
	puts("features: fuse3 zstd xxhash json");
}

/* Was --json given? Asked when the options were not understood. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int unknown_verb(struct cli *cli, const struct verb *parent,
			const char *name)
{
	int r;

	if (name)
		r = fail_usage(&cli->err, name, "there is no such verb");
	else
		r = fail_usage(&cli->err, NULL, "%s%sa verb is missing",
			       parent->name ? parent->name : "",
			       parent->name ? ": " : "");
	fail_hint(&cli->err, "incrctl%s%s --help lists them",
		  parent->name ? " " : "", parent->name ? parent->name : "");
	return r;
}

/* "txn begin" is typed as "begin". */
static const char *last_word(const char *name)
{
	const char *space = strrchr(name, ' ');

	return space ? space + 1 : name;
}

/*
 * Follow argv[*at] down to a verb without sub-verbs, taking the common options
 * on the way. Leaves *at at its name. cli->verb NULL on success: print help or
 * the version of the last one reached, *out_parent.
 */
static int find_verb(struct cli *cli, int argc, char **argv, int *at,
		     const struct verb **out_parent)
{
	const struct verb *parent = &verb_top;

	for (;;) {
		struct args_target common = { cli_common_options,
					      &cli->common };
		const struct verb *const *verb;
		struct args_result result;
		char *name;
		int r;

		*out_parent = parent;
		r = args_parse(argc - *at, argv + *at, &common, 1, ARGS_STOP,
			       &result, &cli->err);
		if (r < 0)
			return r;
		free(result.args);
		if (cli->common.wants_help || cli->common.wants_version)
			return 0;
		name = result.n_rest > 0 ? result.rest[0] : NULL;
		if (!name)
			return unknown_verb(cli, parent, NULL);
		*at = (int)(result.rest - argv);

		for (verb = parent->subs; *verb; verb++)
			if (strcmp(last_word((*verb)->name), name) == 0)
				break;
		if (!*verb)
			return unknown_verb(cli, parent, name);
		if (!(*verb)->subs) {
			cli->verb = *verb;
			return 0;
		}
		parent = *verb;
	}
}

/* The first argument that is missing, by its name in the synopsis. */
static int fail_missing(struct cli *cli, const struct verb *verb)
{
	const char *word = verb->synopsis;
	int length;

	for (size_t i = 0; i < cli->n_args; i++)
		word += strcspn(word, " ") + 1;
	length = (int)strcspn(word, "[ \n");
	if (length > 3 && strncmp(word + length - 3, "...", 3) == 0)
		length -= 3;
	return fail_usage(&cli->err, verb->name, "%.*s is missing", length,
			  word);
}

static int check_args(struct cli *cli)
{
	const struct verb *verb = cli->verb;
	int r;

	if (cli->n_args < verb->min_args)
		r = fail_missing(cli, verb);
	else if (verb->max_args != CLI_ANY && cli->n_args > verb->max_args)
		r = fail_usage(&cli->err, cli->args[verb->max_args],
			       verb->takes_command ?
				       "the command goes behind --" :
				       "too many arguments");
	else
		return 0;
	fail_hint(&cli->err, "incrctl %s --help", verb->name);
	return r;
}

static enum cli_when parse_when(const char *text)
{
	if (text && strcmp(text, "always") == 0)
		return CLI_ALWAYS;
	if (text && strcmp(text, "never") == 0)
		return CLI_NEVER;
	return CLI_AUTO;
}

/* What follows `--` is the command, or just more arguments. */
static void take_rest(struct cli *cli, const struct args_result *result)
{
	if (cli->verb->takes_command) {
		cli->has_command = result->has_dashes;
		cli->command = result->rest;
		cli->n_command = result->n_rest;
		return;
	}
	for (size_t i = 0; i < result->n_rest; i++)
		cli->args[cli->n_args++] = result->rest[i];
}

static int run_verb(struct cli *cli, int argc, char **argv)
{
	const struct verb *verb = cli->verb;
	_cleanup_free_ void *options = calloc(1, verb->options_size + 1);
	struct args_target targets[CLI_MAX_TABLES + 1] = {
		{ cli_common_options, &cli->common },
	};
	struct args_result result;
	size_t n = 1;
	int r;

	if (!options)
		return fail_nomem(&cli->err);
	for (size_t i = 0; i < CLI_MAX_TABLES && verb->tables[i]; i++)
		targets[n++] = (struct args_target){ verb->tables[i], options };

	r = args_parse(argc, argv, targets, n, ARGS_MIXED, &result, &cli->err);
	if (r < 0) {
		fail_hint(&cli->err, "incrctl %s --help", verb->name);
		goto undo;
	}
	cli->args = result.args;
	cli->n_args = result.n_args;
	cli->progress = parse_when(cli->common.progress);
	take_rest(cli, &result);

	if (cli->common.wants_help)
		cli_help(verb);
	else if (cli->common.wants_version)
		print_version();
	else if ((r = check_args(cli)) == 0)
		r = verb->run(cli, options);
undo:
	args_release(targets, n);
	return r;
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
	const struct verb *parent;
	int at = 0, r;

	r = find_verb(cli, argc, argv, &at, &parent);
	if (r < 0)
		return r;
	if (cli->verb)
		return run_verb(cli, argc - at, argv + at);

	if (cli->common.wants_version)
		print_version();
	else
		cli_help(parent);
	return 0;
}

/*
 * A descriptor of 0 to 2 that came closed must not become a file of the store.
 * It gets one on which every use fails, as it would have without.
 */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	struct cli cli = { 0 };
	int r, status;

	fill_standard_fds();
	/* `incrctl log | head`: end as other programs do. */
	(void)signal(SIGPIPE, SIG_DFL);
	/* a file that may not grow is an error like a full disk */
	(void)signal(SIGXFSZ, SIG_IGN);
	out_init();

	r = dispatch(&cli, argc, argv);
	if (r < 0 && !cli.args)
		cli.common.is_json = wants_json(argc, argv);
	status = r < 0 ? exit_print(&cli, &cli.err) : r;
	if (out_finish(&cli.err) < 0 && status == 0)
		status = exit_print(&cli, &cli.err);

	incr_store_close(cli.store);
	incr_error_release(&cli.err);
	free(cli.args);
	return status;
}
