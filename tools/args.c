/*
 * Options by table, parsed with getopt_long.
 */
#include "config.h"

#include "args.h"

#include "cleanup.h"
#include "fail.h"
#include "text.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* getopt_long returns this plus the index of a long option. */
#define LONG_BASE 1000
#define MAX_OPTIONS 64

struct parser {
	size_t n;
	const struct args_option *options[MAX_OPTIONS];
	void *fields[MAX_OPTIONS];
	struct option longs[MAX_OPTIONS + 1];
	char letters[2 * MAX_OPTIONS + 3];
};

static void parser_init(struct parser *p, const struct args_target *targets,
			size_t n_targets, enum args_order order)
{
	char *letter = p->letters;

	memset(p, 0, sizeof(*p));
	/* '-' hands out the arguments in their order, '+' stops at them. */
	*letter++ = order == ARGS_MIXED ? '-' : '+';
	*letter++ = ':';
	for (size_t t = 0; t < n_targets; t++) {
		const struct args_option *o = targets[t].table;

		for (; o && o->name && p->n < MAX_OPTIONS; o++, p->n++) {
			bool has_value = o->kind != ARGS_FLAG;

			p->options[p->n] = o;
			p->fields[p->n] = (char *)targets[t].options + o->off;
			p->longs[p->n] = (struct option){
				.name = o->name,
				.has_arg = has_value ? required_argument :
						       no_argument,
				.val = LONG_BASE + (int)p->n,
			};
			if (!o->letter)
				continue;
			*letter++ = o->letter;
			if (has_value)
				*letter++ = ':';
		}
	}
}

static int find_option(const struct parser *p, int c)
{
	if (c >= LONG_BASE)
		return c - LONG_BASE;
	for (size_t i = 0; i < p->n; i++)
		if (p->options[i]->letter == c)
			return (int)i;
	return -1;
}

/* Is @value one of "a|b|c"? */
static bool is_choice(const char *choices, const char *value)
{
	size_t length = strlen(value);

	while (*choices) {
		size_t n = strcspn(choices, "|");

		if (n == length && memcmp(choices, value, n) == 0)
			return true;
		choices += n + (choices[n] == '|');
	}
	return false;
}

static int list_add(struct args_list *list, const char *item,
		    struct incr_error *err)
{
	const char **items =
		reallocarray(list->items, list->n + 1, sizeof(*items));

	if (!items)
		return fail_nomem(err);
	items[list->n++] = item;
	list->items = items;
	return 0;
}

static int bad_value(const struct args_option *o, const char *value,
		     const char *what, struct incr_error *err)
{
	return fail_usage(err, value, "--%s needs %s", o->name, what);
}

static int set_field(const struct args_option *o, void *field,
		     const char *value, struct incr_error *err)
{
	struct args_number *number = field;
	struct args_signed *integer = field;

	switch (o->kind) {
	case ARGS_FLAG:
		*(bool *)field = true;
		return 0;
	case ARGS_TEXT:
		if (strchr(o->value, '|') && !is_choice(o->value, value))
			return bad_value(o, value, o->value, err);
		*(const char **)field = value;
		return 0;
	case ARGS_LIST:
		return list_add(field, value, err);
	case ARGS_NUMBER:
		if (!text_parse_u64(value, &number->value))
			return bad_value(o, value, "a whole number", err);
		number->is_set = true;
		return 0;
	case ARGS_SIGNED:
		if (!text_parse_i64(value, &integer->value))
			return bad_value(o, value, "a whole number", err);
		integer->is_set = true;
		return 0;
	case ARGS_TXN:
		if (!text_parse_id(value, 't', &number->value))
			return bad_value(o, value, "a transaction such as t42",
					 err);
		number->is_set = true;
		return 0;
	}
	return fail_usage(err, o->name, "unknown kind of option");
}

/* What getopt rejected: it leaves a letter in optopt, or points at the word. */
static int bad_option(const struct parser *p, int c, char **argv,
		      struct incr_error *err)
{
	char letter[3] = { '-', 0, 0 };
	const char *word;

	if (optopt != 0 && optopt < LONG_BASE) {
		letter[1] = (char)optopt;
		word = letter;
	} else {
		word = argv[optind - 1];
	}
	if (c == ':')
		return fail_usage(err, word, "the option needs a value");
	if (optopt >= LONG_BASE && (size_t)(optopt - LONG_BASE) < p->n)
		return fail_usage(err, word, "the option takes no value");
	return fail_usage(err, word, "unknown or ambiguous option");
}

static int parse_all(const struct parser *p, int argc, char **argv,
		     struct args_result *result, struct incr_error *err)
{
	optind = 0; /* glibc: start over */
	opterr = 0;
	for (;;) {
		int before = optind == 0 ? 1 : optind, idx, r;
		int c = getopt_long(argc, argv, p->letters, p->longs, NULL);

		if (c == -1) {
			result->has_dashes = optind > before;
			break;
		}
		if (c == 1) {
			result->args[result->n_args++] = optarg;
			continue;
		}
		if (c == '?' || c == ':')
			return bad_option(p, c, argv, err);
		idx = find_option(p, c);
		if (idx < 0)
			return bad_option(p, '?', argv, err);
		r = set_field(p->options[idx], p->fields[idx], optarg, err);
		if (r < 0)
			return r;
	}
	result->rest = argv + optind;
	result->n_rest = (size_t)(argc - optind);
	return 0;
}

int args_parse(int argc, char **argv, const struct args_target *targets,
	       size_t n_targets, enum args_order order,
	       struct args_result *out_result, struct incr_error *err)
{
	struct args_result result = { 0 };
	struct parser parser;
	int r;

	result.args = calloc((size_t)argc + 1, sizeof(*result.args));
	if (!result.args)
		return fail_nomem(err);
	parser_init(&parser, targets, n_targets, order);
	r = parse_all(&parser, argc, argv, &result, err);
	if (r < 0) {
		free(result.args);
		return r;
	}
	*out_result = result;
	return 0;
}

void args_release(const struct args_target *targets, size_t n_targets)
{
	for (size_t t = 0; t < n_targets; t++) {
		const struct args_option *o = targets[t].table;

		for (; o && o->name; o++) {
			struct args_list *list;

			if (o->kind != ARGS_LIST)
				continue;
			list = (void *)((char *)targets[t].options + o->off);
			free(list->items);
			*list = (struct args_list){ 0 };
		}
	}
}

static bool is_given(const struct args_option *o, const void *field)
{
	switch (o->kind) {
	case ARGS_FLAG:
		return *(const bool *)field;
	case ARGS_TEXT:
		return *(const char *const *)field != NULL;
	case ARGS_LIST:
		return ((const struct args_list *)field)->n > 0;
	case ARGS_NUMBER:
	case ARGS_TXN:
		return ((const struct args_number *)field)->is_set;
	case ARGS_SIGNED:
		return ((const struct args_signed *)field)->is_set;
	}
	return false;
}

bool args_is_empty(const struct args_option *table, const void *options)
{
	for (const struct args_option *o = table; o->name; o++)
		if (is_given(o, (const char *)options + o->off))
			return false;
	return true;
}

void args_print_help(const struct args_option *table)
{
	for (const struct args_option *o = table; o && o->name; o++) {
		char left[128];
		int length;

		length = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s",
				  o->letter ? '-' : ' ',
				  o->letter ? o->letter : ' ',
				  o->letter ? ',' : ' ', o->name,
				  o->value ? " " : "",
				  o->value ? o->value : "");
		if (length < 30)
			printf("%-30s %s\n", left, o->help);
		else
			printf("%s\n%31s%s\n", left, "", o->help);
	}
}

char *args_split_pair(const char *text, const char **out_value)
{
	const char *equals = strchr(text, '=');
	char *key;

	if (!equals || equals == text)
		return NULL;
	key = strndup(text, (size_t)(equals - text));
	if (key)
		*out_value = equals + 1;
	return key;
}

int args_pairs(const struct args_list *list, struct incr_pairs *out_pairs,
	       struct incr_error *err)
{
	struct incr_pairs pairs = { 0 };

	pairs.items = calloc(list->n + 1, sizeof(*pairs.items));
	if (!pairs.items)
		return fail_nomem(err);
	for (size_t i = 0; i < list->n; i++) {
		struct incr_pair *pair = &pairs.items[pairs.n];
		const char *value = NULL;

		if (!text_is_utf8(list->items[i], strlen(list->items[i])))
			pair->key = NULL;
		else
			pair->key = args_split_pair(list->items[i], &value);
		if (!pair->key) {
			args_pairs_release(&pairs);
			return fail_usage(err, list->items[i],
					  "metadata is KEY=VALUE, in UTF-8");
		}
		pairs.n++;
		pair->value = strdup(value);
		if (!pair->value) {
			args_pairs_release(&pairs);
			return fail_nomem(err);
		}
	}
	*out_pairs = pairs;
	return 0;
}

void args_pairs_release(struct incr_pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		free(pairs->items[i].key);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct incr_pairs){ 0 };
}
