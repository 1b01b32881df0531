/*
 * incrctl mount: show a build, or the whole store, as files.
 */
#include "config.h"

#include "cleanup.h"
#include "cli.h"
#include "exit.h"
#include "fail.h"
#include "find.h"
#include "mount_daemon.h"
#include "text.h"
#include "transform_args.h"

#include <string.h>

struct mount_cli_options {
	struct transform_args transform;
	const char *staging, *at;
	bool is_readonly, is_foreground, allows_other;
	struct args_number uid, gid;
};

#define OPTION(field) offsetof(struct mount_cli_options, field)

static const struct args_option table[] = {
	{ "staging", 0, ARGS_TEXT, OPTION(staging), "link|fuse",
	  "how programs write: the disk itself, or through the mount" },
	{ "read-only", 0, ARGS_FLAG, OPTION(is_readonly), NULL,
	  "views alone: no staging, no build" },
	{ "at", 0, ARGS_TEXT, OPTION(at), "TIME",
	  "without TRANSFORM: the store as it was then" },
	{ "foreground", 0, ARGS_FLAG, OPTION(is_foreground), NULL,
	  "stay until it is unmounted" },
	{ "allow-other", 0, ARGS_FLAG, OPTION(allows_other), NULL,
	  "let other users in" },
	{ "uid", 0, ARGS_NUMBER, OPTION(uid), "U", "owner of the files" },
	{ "gid", 0, ARGS_NUMBER, OPTION(gid), "G", "group of the files" },
	ARGS_END,
};

static int check_options(struct cli *cli, const struct mount_cli_options *o,
			 int64_t *out_at_ns)
{
	bool has_transform = cli->n_args > 1;

	if (!has_transform && !transform_args_is_empty(&o->transform))
		return fail_usage(&cli->err, NULL,
				  "options of a transform need its name");
	if (!has_transform && o->staging)
		return fail_usage(&cli->err, "--staging",
				  "only the mount of a transform has staging");
	if (has_transform && o->at)
		return fail_usage(&cli->err, "--at",
				  "only the mount of a store takes a time");
	if (o->transform.is_skip)
		return fail_usage(&cli->err, "--skip", "a mount never skips");
	*out_at_ns = 0;
	if (o->at && !text_parse_time(o->at, out_at_ns))
		return fail_usage(&cli->err, o->at,
				  "a time is like 2026-01-05T12:00:00Z");
	if (o->uid.value > UINT32_MAX - 1 || o->gid.value > UINT32_MAX - 1)
		return fail_usage(&cli->err, NULL,
				  "there is no such user or group number");
	return 0;
}

static int run_mount(struct cli *cli, void *options)
{
	const struct mount_cli_options *o = options;
	struct mount_daemon daemon = {
		.cli = cli,
		.transform_args = &o->transform,
		.transform = cli->n_args > 1 ? cli->args[1] : NULL,
		.is_preview = o->is_readonly,
		.allows_empty = o->transform.allow_empty,
		.mount = {
			.mountpoint = cli->args[0],
			.allows_other = o->allows_other,
			.has_uid = o->uid.is_set,
			.has_gid = o->gid.is_set,
			.uid = (uid_t)o->uid.value,
			.gid = (gid_t)o->gid.value,
			.is_readonly = o->is_readonly,
		},
	};
	int r;

	r = check_options(cli, o, &daemon.at_ns);
	if (r < 0)
		return r;
	if (o->staging && strcmp(o->staging, "fuse") == 0)
		daemon.mount.staging = INCR_STAGING_FUSE;
	return o->is_foreground ? mount_daemon_foreground(&daemon) :
				  mount_daemon_background(&daemon);
}

const struct verb verb_mount = {
	.name = "mount",
	.summary =
		"Mount a build of a transform, or the whole store, as files.",
	.synopsis = "MOUNTPOINT TRANSFORM [OPTION]...\n"
		    "MOUNTPOINT [--at TIME] [OPTION]...",
	.details =
		"Unmounting commits what was written below OUTPUT/staging. "
		"Without -i and -o the\n"
		"transform is the one of its last build. Without TRANSFORM the "
		"mount shows all datasets.",
	.tables = { transform_args_table, table },
	.options_size = sizeof(struct mount_cli_options),
	.min_args = 1,
	.max_args = 2,
	.run = run_mount,
};
