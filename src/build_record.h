/*
 * The payload of a build's record: the definition of its transform, its plan
 * with decision, reasons and ranges, and its provenance.  Pure: bytes in,
 * bytes out; docs/format.md, "Builds".
 *
 * Number, status and the transform's name as a key stand in the fact around it
 * (fact.h), not in the payload.
 */
#ifndef INCR_BUILD_RECORD_H
#define INCR_BUILD_RECORD_H

#include "buf.h"
#include "incr.h"

#define BUILD_RECORD_VERSION 1
#define BUILD_RECORD_REASONS_MAX 65536
#define BUILD_RECORD_PAIRS_MAX 65536

/* Append the payload. number, status, is_orphaned, is_preview and error are left out. */
int build_record_encode(const struct incr_build_info *info, struct buf *out);

/*
 * All bytes of @data, which are not trusted.  The fields that the payload
 * leaves out are zero.
 * INCR_E_UNSUPPORTED "newer-format"; INCR_E_CORRUPT "bad-build-record".
 */
int build_record_decode(const void *data, size_t size,
			struct incr_build_info *out, struct incr_error *err);

/* Why a build was not committed, for the file `result` in its spool folder. */
int build_error_encode(const struct incr_error *error, struct buf *out);
int build_error_decode(const void *data, size_t size, struct incr_error *out);

#endif
