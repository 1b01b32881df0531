/*
 * Stores that come out the same byte for byte, and a listing of any store as
 * text, for the tests of the format.
 */
#ifndef INCR_FORMAT_KIT_H
#define INCR_FORMAT_KIT_H

#include <stdio.h>

#include "io.h"
#include "store.h"

/* Defined by the program in place of the C library's, so that a user's name is fixed. */
#define FORMAT_USER "reader"

/*
 * The store of docs/format.md, "A whole store": a dataset, a SNAPSHOT of two
 * files and a DELETE of one.  @path is new; sources are made below @scratch.
 * Random numbers and times are fixed.
 */
int format_make_example(const char *path, const char *scratch,
			struct incr_error *err);
/* One of everything: packs, branches, resets, open transactions, builds, tables. */
int format_make_full(const char *path, const char *scratch,
		     struct incr_error *err);

/*
 * Datasets, branches, transactions and the files of every branch's view, one a
 * line, with a hash of the bytes that were read; tests/format/read_store.py
 * prints the same.
 */
int format_list(struct incr_store *st, FILE *out, struct incr_error *err);

/* ---- what the tests share ---- */
#define FORMAT_PATH_SIZE 1024
const char *format_srcdir(void); /* the top of the source tree */
void format_join(char out[FORMAT_PATH_SIZE], const char *dir, const char *name);
bool format_read(const char *dir, const char *name, struct buf *out);
/* The store of the running test, in its temporary directory; nobody makes it here. */
const char *format_store(void);
int format_open(bool is_readonly, struct incr_store **out_st);

#endif
