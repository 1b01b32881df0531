/*
 * A place for previews of a store that cannot be written.
 */
#ifndef INCR_TOOLS_SCRATCH_H
#define INCR_TOOLS_SCRATCH_H

#include "cli.h"

/*
 * A new directory below $TMPDIR or /tmp, mode 0700, if the store cannot be
 * written; else NULL. *out_path is for scratch_remove().
 */
int scratch_make(struct cli *cli, char **out_path);
/* Remove the directory, which is empty by now. NULL allowed. */
void scratch_remove(char *path);

#endif
