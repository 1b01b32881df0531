/* Fuzzer: every payload of a log record, the first byte says which. */
#include "config.h"

#include <stdlib.h>

#include "build_record.h"
#include "commit_record.h"
#include "fact.h"
#include "lost.h"

static void try_lost(const uint8_t *data, size_t size)
{
	struct fact_lost fact;

	if (fact_decode_lost(data, size, &fact) == 0)
		fact_lost_release(&fact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_commit(const uint8_t *data, size_t size)
{
	struct commit_record record;
	struct buf again = BUF_INIT;

	if (commit_record_decode(data, size, &record) < 0)
		return;
	if (record.frames_off > size ||
	    commit_record_encode(&record, &again) < 0)
		abort();
	buf_release(&again);
	commit_record_release(&record);
}

static void try_build(const uint8_t *data, size_t size)
{
	struct incr_build_info info = { 0 };
	struct buf again = BUF_INIT;

	if (build_record_decode(data, size, &info, NULL) < 0)
		return;
	if (build_record_encode(&info, &again) < 0)
		abort();
	buf_release(&again);
	incr_build_info_release(&info);
}

static void try_pairs(const uint8_t *data, size_t size)
{
	struct incr_pairs pairs = { 0 };

	if (fact_pairs_decode((struct text){ (const char *)data, size }, &pairs,
			      NULL) == 0)
		incr_pairs_release(&pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c;
	union {
		struct fact_dataset dataset;
		struct fact_branch branch;
		struct fact_reset reset;
		struct fact_txn txn;
		struct fact_build build;
		struct fact_schema schema;
	} out;

	if (!size)
		return 0;
	c = cursor_over(data + 1, size - 1);
	switch (data[0] % 10) {
	case 0:
		(void)fact_decode_dataset(&c, &out.dataset);
		break;
	case 1:
		(void)fact_decode_branch(&c, &out.branch);
		break;
	case 2:
		(void)fact_decode_reset(&c, &out.reset);
		break;
	case 3:
		(void)fact_decode_txn(&c, &out.txn);
		break;
	case 4:
		(void)fact_decode_build(&c, &out.build);
		break;
	case 5:
		(void)fact_decode_schema(&c, &out.schema);
		break;
	case 6:
		try_commit(data + 1, size - 1);
		break;
	case 7:
		try_build(data + 1, size - 1);
		break;
	case 8:
		try_pairs(data + 1, size - 1);
		break;
	default:
		try_lost(data + 1, size - 1);
	}
	return 0;
}
