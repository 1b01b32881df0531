/*
 * Names of the write modes.
 */
#include "config.h"

#include "write_mode.h"

#include <string.h>

const char *write_mode_name(enum incr_write_mode mode)
{
	switch (mode) {
	case INCR_MODE_DEFAULT:
		return "default";
	case INCR_MODE_MODIFY:
		return "modify";
	case INCR_MODE_REPLACE:
		return "replace";
	case INCR_MODE_APPEND:
		return "append";
	}
	return NULL;
}

bool write_mode_parse(const char *name, enum incr_write_mode *out_mode)
{
	static const enum incr_write_mode modes[] = {
		INCR_MODE_MODIFY,
		INCR_MODE_REPLACE,
		INCR_MODE_APPEND,
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(write_mode_name(modes[i]), name) != 0)
			continue;
		*out_mode = modes[i];
		return true;
	}
	return false;
}
