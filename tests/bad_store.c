/* Makes stores that are wrong in their meaning, with right checksums. */
#include "config.h"

#include "bad_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "hash.h"
#include "store.h"

#define LOG BAD_STORE "/log/0000000000000000.log"
#define FORMAT BAD_STORE "/format"
#define FORMAT_HASHED 120
#define SEGMENT_HASHED 56
#define RECORD_HASHED 56
#define PACK_ID UINT64_C(7)

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %d\n", what, r);
	abort();
}

static void set_number(uint8_t *at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static struct sim *make_base(struct incr_store **out_st)
{
	struct incr_txn_options options = { .dataset_id = 1,
					    .type = INCR_APPEND };
	struct incr_source source = { .path = "a" };
	struct sim *sim = sim_new();
	uint64_t id;

	sim_make_file(sim, "a", 500, 500, 1);
	check(store_init_with(sim_io(sim), BAD_STORE, NULL), "init");
	check(store_open_with(sim_io(sim), BAD_STORE, NULL, out_st, NULL),
	      "open");
	check(incr_dataset_create(*out_st, "dataset", NULL, NULL, &id, NULL),
	      "dataset");
	check(incr_commit(*out_st, &options, &source, 1, NULL, NULL), "commit");
	return sim;
}

/* Append one record, durably, without applying it. */
static void append(struct incr_store *st, uint16_t type, const struct buf *head,
		   const struct buf *frames)
{
	const struct index_position *at = index_position(st->index);
	struct log_append a = {
		.type = type,
		.position = at->position,
		.sequence = at->sequence + 1,
		.payload = { head->data, frames ? frames->data : NULL },
		.payload_size = { head->size, frames ? frames->size : 0 },
	};
	uint64_t position, next;

	check(log_append(st->log, &a, &position, &next, NULL), "append");
	check(log_sync(st->log, next, NULL), "sync");
}

/* ---- headers ---- */

static size_t last_record(const uint8_t *log, size_t size)
{
	size_t at = LOG_SEGMENT_HEADER_SIZE, last = at;
	struct record_header h;

	while (at < size && record_decode_header(log + at, &h) == 0) {
		last = at;
		at += (size_t)record_span(h.payload_size);
	}
	return last;
}

static void patch(struct sim *sim, const char *path, size_t base,
		  size_t n_hashed, const struct bad *bad)
{
	size_t size;
	uint8_t *data = sim_file(sim, path, &size) + base;

	set_number(data + bad->off, bad->width, bad->value);
	put_u64(data + n_hashed, hash64(data, n_hashed));
}

static void patch_record(struct sim *sim, const struct bad *bad)
{
	size_t size;
	uint8_t *log = sim_file(sim, LOG, &size);

	patch(sim, LOG, last_record(log, size), RECORD_HASHED, bad);
}

/* ---- facts ---- */

static struct text bad_text(const struct bad *bad)
{
	return (struct text){ bad->text, bad->size };
}

static void put_dataset(struct incr_store *st, const struct bad *bad)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct fact_dataset f = {
		.id = 2, .name = bad_text(bad), .branch_id = 2, .line = 2
	};

	check(fact_encode_dataset(&f, &b), "encode");
	append(st, FACT_DATASET_CREATED, &b, NULL);
}

static void put_branch(struct incr_store *st, const struct bad *bad)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct fact_branch f = { .id = 2,
				 .dataset_id = 1,
				 .line = 2,
				 .name = text_of("side"),
				 .parent_line = 1,
				 .at = 1 };

	if (bad->kind == BAD_BRANCH)
		f.name = bad_text(bad);
	else
		set_number((uint8_t *)&f + bad->off, bad->width, bad->value);
	check(fact_encode_branch(&f, &b), "encode");
	append(st, FACT_BRANCH_CREATED, &b, NULL);
}

/* An UPDATE with this manifest and these frames. */
static void put_commit(struct incr_store *st, const struct bad *bad,
		       struct text manifest, const struct buf *frames)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct fact_txn t = { .number = 2,
			      .dataset_id = 1,
			      .branch_id = 1,
			      .line = 1,
			      .parent = 1,
			      .type = INCR_UPDATE,
			      .origin = text_of("user"),
			      .view_start = 1,
			      .manifest = manifest };
	struct commit_record record = { .n_txns = 1, .txns = &t };

	if (bad->kind == BAD_TXN_FIELD)
		set_number((uint8_t *)&t + bad->off, bad->width, bad->value);
	check(commit_record_encode(&record, &b), "encode");
	if (bad->kind == BAD_TAIL) {
		check(buf_put(&b, bad->text, bad->size), "encode");
		put_u32(b.data, (uint32_t)(b.size - COMMIT_RECORD_HEAD_OFF));
	}
	append(st, FACT_COMMIT, &b, frames);
}

static void put_fact(struct incr_store *st, const struct bad *bad)
{
	struct buf b = { .data = (uint8_t *)(uintptr_t)bad->text,
			 .size = bad->size };

	append(st, (uint16_t)bad->off, &b, NULL);
}

/* ---- manifests ---- */

/* op, path, mode, time, hash: all but the content. */
static void put_entry(struct buf *b, struct text path)
{
	check(buf_put_u8(b, MANIFEST_PUT), "encode");
	check(buf_put_text(b, path), "encode");
	check(buf_put_varint(b, 0644), "encode");
	check(buf_put_zigzag(b, 0), "encode");
	check(buf_put_zeros(b, INCR_HASH_SIZE), "encode");
}

static void put_manifest(struct incr_store *st, const struct bad *bad)
{
	_cleanup_buf_ struct buf m = BUF_INIT;

	if (bad->kind == BAD_PATH) {
		put_entry(&m, bad_text(bad));
		check(buf_put_varint(&m, CONTENT_EMPTY), "encode");
	} else if (bad->kind == BAD_CONTENT) {
		put_entry(&m, text_of("b"));
		for (size_t i = 0; i < bad->size; i++)
			check(buf_put_varint(&m, bad->numbers[i]), "encode");
	} else {
		check(buf_put(&m, bad->text, bad->size), "encode");
	}
	put_commit(st, bad, (struct text){ (const char *)m.data, m.size },
		   NULL);
}

/* ---- frames ---- */

/* A manifest with file "b" in one frame of a container, at @off. */
static void put_file(struct incr_store *st, const struct bad *bad,
		     uint64_t container, uint64_t off, const uint8_t *frame,
		     const struct buf *frames)
{
	_cleanup_buf_ struct buf m = BUF_INIT;
	struct content c = { .kind = CONTENT_PART,
			     .size = 100,
			     .container = container,
			     .frame_off = off,
			     .frame_stored = 32 + get_u32(frame + 12),
			     .frame_raw = get_u32(frame + 8) };

	put_entry(&m, text_of("b"));
	check(content_encode(&c, &m), "encode");
	put_commit(st, bad, (struct text){ (const char *)m.data, m.size },
		   frames);
}

static void put_frame(struct incr_store *st, const struct bad *bad)
{
	_cleanup_buf_ struct buf frame = BUF_INIT;
	uint8_t raw[100] = { 0 };
	struct bad whole = *bad;

	check(frame_encode(NULL, raw, sizeof(raw), FRAME_IN_LOG, &frame),
	      "frame");
	set_number(frame.data + bad->off, bad->width, bad->value);
	put_u64(frame.data + 24,
		hash64_two(frame.data, 24, frame.data + 32, frame.size - 32));
	/* the descriptor is right but for the sizes that the header says */
	whole.kind = BAD_FRAME;
	put_file(st, &whole, PACK_SELF, 0, frame.data, &frame);
}

/* 100 bytes, says the header; 512 MiB, says the zstd frame in it. */
static void put_bomb(struct sim *sim, struct incr_store *st,
		     const struct bad *bad)
{
	size_t raw_size = (size_t)bad->value;
	_cleanup_buf_ struct buf pack = BUF_INIT;
	ZSTD_CCtx *c = ZSTD_createCCtx();
	uint8_t zeros[4096] = { 0 }, out[65536], *frame;
	ZSTD_inBuffer in = { zeros, sizeof(zeros), 0 };
	ZSTD_outBuffer to = { out, sizeof(out), 0 };
	char path[64];

	if (!c)
		abort();
	/* @off: does it declare its size? */
	if (bad->off)
		(void)ZSTD_CCtx_setPledgedSrcSize(c, raw_size);
	for (size_t done = 0; done < raw_size; done += sizeof(zeros)) {
		in.pos = 0;
		while (in.pos < in.size)
			if (ZSTD_isError(ZSTD_compressStream2(c, &to, &in,
							      ZSTD_e_continue)))
				abort();
	}
	in = (ZSTD_inBuffer){ zeros, 0, 0 };
	(void)ZSTD_compressStream2(c, &to, &in, ZSTD_e_end);
	ZSTD_freeCCtx(c);

	check(buf_put_zeros(&pack, PACK_HEADER_SIZE + FRAME_HEADER_SIZE),
	      "pack");
	check(buf_put(&pack, out, to.pos), "pack");
	memcpy(pack.data, "INCRPACK", 8);
	put_u32(pack.data + 8, 1);
	memcpy(pack.data + 16, st->uuid, 16);
	put_u64(pack.data + 32, PACK_ID);
	put_u64(pack.data + 56, hash64(pack.data, 56));
	frame = pack.data + PACK_HEADER_SIZE;
	put_u32(frame, FRAME_MAGIC);
	frame[4] = CODEC_ZSTD;
	put_u32(frame + 8, bad->width ? bad->width : FRAME_RAW_MAX);
	put_u32(frame + 12, (uint32_t)to.pos);
	put_u64(frame + 16, PACK_ID);
	put_u64(frame + 24, hash64_two(frame, 24, frame + 32, to.pos));
	frame_place(frame, (struct frame_place){ PACK_ID, PACK_HEADER_SIZE });
	snprintf(path, sizeof(path), BAD_STORE "/packs/%016x.pack",
		 (unsigned)PACK_ID);
	sim_set_file(sim, path, pack.data, pack.size);
	put_file(st, bad, PACK_ID, PACK_HEADER_SIZE, frame, NULL);
}

struct sim *bad_store_make(const struct bad *bad)
{
	struct incr_store *st;
	struct sim *sim = make_base(&st);

	switch (bad->kind) {
	case BAD_FORMAT:
		patch(sim, FORMAT, 0, FORMAT_HASHED, bad);
		break;
	case BAD_SEGMENT:
		patch(sim, LOG, 0, SEGMENT_HASHED, bad);
		break;
	case BAD_RECORD:
		patch_record(sim, bad);
		break;
	case BAD_DATASET:
		put_dataset(st, bad);
		break;
	case BAD_BRANCH:
	case BAD_BRANCH_FIELD:
		put_branch(st, bad);
		break;
	case BAD_TXN_FIELD:
	case BAD_TAIL:
		put_commit(st, bad, text_of(NULL), NULL);
		break;
	case BAD_FACT:
		put_fact(st, bad);
		break;
	case BAD_PATH:
	case BAD_MANIFEST:
	case BAD_CONTENT:
		put_manifest(st, bad);
		break;
	case BAD_FRAME:
		put_frame(st, bad);
		break;
	case BAD_BOMB:
		put_bomb(sim, st, bad);
		break;
	}
	incr_store_close(st);
	return sim;
}
