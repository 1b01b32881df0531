/*
 * What clang-tidy cannot know: it sees one source file at a time.
 * build-aux/lint has it read before every other source file.
 */
#ifndef INCR_TIDY_H
#define INCR_TIDY_H

#include "config.h"

#include "error.h"
#include "testing.h"

/* A failure is not 0. */
#define incr_fail(err, code, ...) (incr_fail(err, code, __VA_ARGS__), (code))
#define incr_fail_errno(...) (incr_fail_errno(__VA_ARGS__), INCR_E_IO)
#define incr_fail_nomem(err) (incr_fail_nomem(err), INCR_E_NOMEM)
#define incr_fail_with(err, r, why)             \
	({                                      \
		int same = (r);                 \
		incr_fail_with(err, same, why); \
		same;                           \
	})

/* What REQUIRE asked for is so. */
#define testing_err_eq(want, got, ...) ((want) == (got))
#define testing_true(held, ...) (held)

#endif
