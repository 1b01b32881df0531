/* Fuzzer: names, globs and printable forms; the first byte cuts the input in two. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char printable[64], glob[256];
	const char *text = (const char *)data + 1;
	size_t length, cut;

	if (size < 1)
		return 0;
	length = size - 1;
	cut = data[0] < length ? data[0] : length;
	(void)name_check_dataset(text, length, NULL);
	(void)name_check_branch(text, length, NULL);
	(void)name_check_alias(text, length, NULL);
	(void)name_check_origin(text, length, NULL);
	(void)name_check_transform(text, length, NULL);
	if (name_check_path(text, length, NULL) == 0 &&
	    (!length || length > NAME_PATH_MAX || text[0] == '/' ||
	     memchr(text, 0, length)))
		abort();
	name_escape(text, length, printable, sizeof(printable));
	if (!memchr(printable, 0, sizeof(printable)) ||
	    !name_is_utf8(printable, strlen(printable)))
		abort();
	memcpy(glob, text, cut);
	glob[cut] = '\0';
	(void)name_glob_match(glob, text + cut, length - cut);
	return 0;
}
