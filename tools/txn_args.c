/*
 * The options of a new transaction.
 */
#include "config.h"

#include "txn_args.h"

#include "fail.h"
#include "text.h"

#include <string.h>
#include <strings.h>

#define OPTION(field) offsetof(struct txn_args, field)

/* clang-format off */
#define SHARED_OPTIONS                                                    \
	{ "branch", 0, ARGS_TEXT, OPTION(branch), "B",                    \
	  "the branch; main unless said otherwise" },                     \
	{ "origin", 0, ARGS_TEXT, OPTION(origin), "ORIGIN",               \
	  "who made it: user (default), retention, or a tag" },           \
	{ "message", 'm', ARGS_TEXT, OPTION(message), "TEXT",             \
	  "why" },                                                        \
	{ "meta", 0, ARGS_LIST, OPTION(meta), "KEY=VALUE",                \
	  "free metadata; may be repeated" }
/* clang-format on */

const struct args_option txn_args_table[] = {
	{ "type", 0, ARGS_TEXT, OPTION(type), "append|update|snapshot",
	  "what it may do to files that exist (append)" },
	SHARED_OPTIONS,
	ARGS_END,
};

const struct args_option txn_args_begin_table[] = {
	{ "type", 0, ARGS_TEXT, OPTION(type), "append|update|snapshot|delete",
	  "what it may do to files that exist (append)" },
	SHARED_OPTIONS,
	ARGS_END,
};

const struct args_option txn_args_untyped_table[] = {
	SHARED_OPTIONS,
	ARGS_END,
};

static enum incr_txn_type read_type(const char *text, enum incr_txn_type type)
{
	static const enum incr_txn_type types[] = {
		INCR_SNAPSHOT,
		INCR_APPEND,
		INCR_UPDATE,
		INCR_DELETE,
	};

	for (size_t i = 0; text && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcasecmp(text, incr_txn_type_name(types[i])) == 0)
			return types[i];
	return type;
}

int txn_args_read(struct cli *cli, const struct txn_args *args,
		  enum incr_txn_type default_type, struct incr_pairs *meta,
		  struct incr_txn_options *out)
{
	int r;

	if (args->message &&
	    !text_is_utf8(args->message, strlen(args->message)))
		return fail_usage(&cli->err, args->message,
				  "the message is not UTF-8");
	r = args_pairs(&args->meta, meta, &cli->err);
	if (r < 0)
		return r;
	*out = (struct incr_txn_options){
		.branch = args->branch,
		.type = read_type(args->type, default_type),
		.origin = args->origin,
		.message = args->message,
		.meta = *meta,
	};
	return 0;
}
