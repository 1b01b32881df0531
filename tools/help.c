/*
 * The usage text of a verb.
 */
#include "config.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

static void print_synopsis(const struct verb *verb)
{
	const char *line = verb->synopsis ? verb->synopsis : "";
	const char *lead = "usage:";

	/* One line for each form. */
	for (;;) {
		int length = (int)strcspn(line, "\n");

		printf("%s incrctl %s%s%.*s\n", lead, verb->name,
		       length > 0 ? " " : "", length, line);
		if (line[length] == '\0')
			return;
		line += length + 1;
		lead = "      ";
	}
}

static void print_subs(const struct verb *verb)
{
	printf("usage: incrctl %s%sVERB [ARGUMENT]...\n",
	       verb->name ? verb->name : "", verb->name ? " " : "");
	printf("\n%s\n\n", verb->summary);
	for (const struct verb *const *sub = verb->subs; *sub; sub++)
		printf("  %-18s %s\n", (*sub)->name, (*sub)->summary);
	printf("\n`incrctl VERB --help` tells more about one.\n");
}

void cli_help(const struct verb *verb)
{
	if (verb->subs) {
		print_subs(verb);
	} else {
		print_synopsis(verb);
		printf("\n%s\n", verb->summary);
		if (verb->tables[0])
			printf("\nOptions:\n");
		for (size_t i = 0; i < CLI_MAX_TABLES && verb->tables[i]; i++)
			args_print_help(verb->tables[i]);
		if (verb->details)
			printf("\n%s\n", verb->details);
	}
	printf("\nOptions of every verb:\n");
	args_print_help(cli_common_options);
}
