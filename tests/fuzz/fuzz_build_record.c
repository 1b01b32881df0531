/* Fuzzer: the record of a build, the result beside its staging, and schemas. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "build_record.h"
#include "schema_columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What decodes must be the one encoding of what it says. */
static void check_record(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf again = BUF_INIT;
	struct incr_build_info info;

	if (build_record_decode(data, size, &info, NULL) < 0)
		return;
	if (build_record_encode(&info, &again) < 0 || again.size != size ||
	    memcmp(again.data, data, size) != 0)
		abort();
	incr_build_info_release(&info);
}

static void check_result(const uint8_t *data, size_t size)
{
	struct incr_error error;

	if (build_error_decode(data, size, &error) == 0)
		incr_error_release(&error);
}

static void check_schema(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf line = BUF_INIT;
	struct schema_columns columns;

	if (schema_columns_parse((const char *)data, size, &columns, NULL) < 0)
		return;
	(void)schema_columns_compare(&columns, &columns, "out", NULL);
	(void)schema_columns_csv(&columns, &line);
	schema_columns_release(&columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] & 3) {
	case 0:
		check_result(data + 1, size - 1);
		break;
	case 1:
		check_schema(data + 1, size - 1);
		break;
	default:
		check_record(data + 1, size - 1);
		break;
	}
	return 0;
}
