/*
 * The parts of the ingest pipeline, private to ingest*.c.
 *
 *   reader (caller's thread)  walks, reads each file once, fills jobs
 *   workers                   compare with stored versions, hash, compress
 *   writer (one thread)       takes finished jobs in order into the sink:
 *                             pack, file indexes, manifest
 *
 * What fits in one job runs in the caller's thread alone.
 */
#ifndef INCR_INGEST_PARTS_H
#define INCR_INGEST_PARTS_H

#include "ingest.h"
#include "source_walk.h"

#define INGEST_SMALL_MAX \
	FRAME_RAW_DEFAULT /* larger files have frames of their own */
#define INGEST_SHARED_FRAME \
	(8 *                \
	 FRAME_RAW_DEFAULT) /* raw bytes of small files in one frame, about */
#define INGEST_JOB_SIZE ((size_t)1 << 20) /* raw bytes of a job */
#define INGEST_JOB_ITEMS 4096
#define INGEST_JOB_PATHS \
	((size_t)256 << 10) /* bytes of paths after which a job is full */
#define INGEST_JOB_FRAMES (INGEST_JOB_SIZE / FRAME_RAW_DEFAULT + 1)
#define INGEST_LEVEL 1 /* of zstd */
/* A file that shares frames with so many pieces is written anew. */
#define INGEST_SHARED_EXTENTS_MAX 64

struct ingest_item {
	struct manifest_entry entry; /* its path is set by ingest_job_path() */
	size_t path_off; /* in the job's paths */
	uint32_t raw_off; /* where its bytes are, entry.content.size of them */
	uint64_t front_hash; /* of a large file's first frame */
	size_t same_as; /* an earlier item of the job has its bytes: place plus 1 */
	bool is_done; /* its content and hash are known */
	bool is_dropped; /* unchanged: not in the manifest */
};

struct ingest_job {
	/* From the reader. */
	bool is_large; /* a piece of one file, in frames of its own */
	bool is_first,
		is_last; /* is_large: of the file; the last has the item */
	struct content
		prefix; /* is_first: frames shared with the stored version */
	uint8_t *raw; /* owned; of a small commit no larger than needed */
	size_t raw_size, raw_capacity;
	struct buf paths;
	struct ingest_item *items; /* owned */
	size_t n_items, items_capacity;
	/* From a worker. */
	uint64_t container; /* that the frames are bound to */
	struct buf frames; /* back to back */
	uint32_t frame_sizes[INGEST_JOB_FRAMES]; /* stored, with header */
	size_t n_frames;
};

/* A zeroed job is empty. */
void ingest_job_release(struct ingest_job *job);
void ingest_job_reset(struct ingest_job *job);
/* Room for @size bytes, at most INGEST_JOB_SIZE with what is there. */
int ingest_job_reserve(struct ingest_job *job, size_t size);
/* A new item with a copy of the path, else zeroed; NULL: no memory. */
struct ingest_item *ingest_job_add(struct ingest_job *job, const char *path,
				   size_t length);
/* Point every entry's path into the job; after the last add. */
void ingest_job_set_paths(struct ingest_job *job);

/* ---- ingest_seen.c: what this commit has stored; thread-safe ---- */
struct ingest_seen *ingest_seen_new(void); /* NULL: no memory */
void ingest_seen_free(struct ingest_seen *s);
/* A file within a frame of the pack that is being written, now put there. */
void ingest_seen_add(struct ingest_seen *s, const struct manifest_entry *e);
/* Content of the hash and size of @e; its bytes are to be compared. */
bool ingest_seen_find(struct ingest_seen *s, const struct manifest_entry *e,
		      struct content *out);
/* The same for files in frames of their own, by hash64 of the first one. */
void ingest_seen_add_large(struct ingest_seen *s, uint64_t front,
			   const struct content *content);
bool ingest_seen_find_large(struct ingest_seen *s, uint64_t front,
			    uint64_t size, struct content *out_owned);

/* ---- ingest_encode.c: what one worker does ---- */
enum ingest_kind {
	INGEST_RAW, /* not compressed */
	INGEST_SHARED, /* of small files */
	INGEST_LARGE, /* of one large file */
	INGEST_LITERALS_RAW /* the same, with literals that do not compress */
};

struct ingest_worker {
	const struct ingest_options *options; /* borrowed */
	struct compressor *compressor; /* owned; NULL until used */
	enum ingest_kind kind; /* that it is set for; INGEST_RAW: none yet */
	uint8_t *stored; /* owned; INGEST_SMALL_MAX bytes to compare with; NULL until used */
	uint16_t *places; /* owned; of a job's items by hash, plus 1; NULL until used */
	/* What comparing with files elsewhere may cost, in bytes to decode. */
	uint64_t credit;
	uint64_t last_container,
		last_off; /* of the frame decoded last for that */
};

void ingest_worker_init(struct ingest_worker *w,
			const struct ingest_options *options);
void ingest_worker_release(struct ingest_worker *w);
/* Frames of @job, bound to @container. */
int ingest_encode(struct ingest_worker *w, struct ingest_job *job,
		  uint64_t container, struct incr_error *err);

/* ---- ingest_same.c: equal files within one job ---- */
/* Mark what has the bytes of an earlier item; hashes are known. */
int ingest_same_find(struct ingest_worker *w, struct ingest_job *job);
/* Their content, once that of the others is known. */
void ingest_same_fill(struct ingest_job *job);

/* ---- ingest_index.c: the frames of one file, and their index ---- */
struct ingest_index {
	struct buf entries;
	uint64_t n_entries;
	struct content content; /* extents written so far */
};

void ingest_index_release(struct ingest_index *index);
/* One more frame; writes the index when it has become long. */
int ingest_index_add(struct ingest_index *index, struct pack_writer *pack,
		     uint64_t off, uint32_t stored_size,
		     struct incr_error *err);
/* Write what is left; *out_content: a file of @size bytes in frames of FRAME_RAW_DEFAULT. */
int ingest_index_finish(struct ingest_index *index, struct pack_writer *pack,
			uint64_t size, struct content *out_content,
			struct incr_error *err);

/* ---- ingest_base.c: the difference to a view ---- */
struct ingest_base_walk {
	const struct ingest_base *base; /* borrowed; NULL: not used (any more) */
	struct manifest_entry stored; /* owned; the next one that was not met */
	bool is_at_end; /* there is none */
	uint64_t n_changes; /* entries of the difference */
};
typedef int (*ingest_entry_fn)(void *closure, const struct manifest_entry *e,
			       struct incr_error *err);

int ingest_base_start(struct ingest_base_walk *b,
		      const struct ingest_base *base, struct incr_error *err);
void ingest_base_release(struct ingest_base_walk *b);
/* What @e, the next file in path order, adds to the difference. */
int ingest_base_put(struct ingest_base_walk *b, const struct manifest_entry *e,
		    struct buf *out, struct incr_error *err);
/* There are no more files; ends early when the difference gets long. */
int ingest_base_finish(struct ingest_base_walk *b, struct buf *out,
		       struct incr_error *err);
bool ingest_base_is_long(const struct ingest_base_walk *b,
			 const struct buf *difference);
/* Give all files up to @last (NULL: all) to @put: those of the base with the difference applied. */
int ingest_base_merge(struct ingest_base_walk *b, const struct buf *difference,
		      const struct manifest_entry *last, ingest_entry_fn put,
		      void *closure, struct incr_error *err);

/* ---- ingest_sink.c: what comes out, in order ---- */
struct ingest_sink {
	const struct ingest_options *options; /* borrowed */
	struct pack_writer *pack; /* owned; NULL: all in memory so far */
	struct compressor *compressor; /* owned; of the manifest */
	struct buf frames; /* without a pack */
	uint64_t inline_off; /* where they went in the pack */
	struct buf manifest; /* the part that is not in the pack */
	uint64_t manifest_size; /* the part that is */
	struct ingest_base_walk base; /* while the manifest is relative */
	struct ingest_index manifest_index;
	struct ingest_index file_index; /* of the large file at hand */
	uint64_t n_put, n_removed, size; /* of the result */
	uint64_t n_done, size_done; /* of the progress */
};

int ingest_sink_start(struct ingest_sink *s, struct incr_error *err);
/* Removes the pack, unless the sink is finished. */
void ingest_sink_release(struct ingest_sink *s);
/* The container that frames should be bound to. */
uint64_t ingest_sink_container(const struct ingest_sink *s);
int ingest_sink_take(struct ingest_sink *s, struct ingest_job *job,
		     struct incr_error *err);
int ingest_sink_finish(struct ingest_sink *s, struct ingest_result *out_result,
		       struct incr_error *err);

/* ---- ingest_pipe.c: threads ---- */
struct ingest_pipe;
int ingest_pipe_new(const struct ingest_options *options,
		    struct ingest_sink *sink, struct ingest_pipe **out_pipe);
void ingest_pipe_free(struct ingest_pipe *p);
/* An empty job to fill; NULL: the pipe has failed. Waits for a free one. */
struct ingest_job *ingest_pipe_take(struct ingest_pipe *p);
/* The job of the last take is full; 0 or the failure of the pipe (see finish). */
int ingest_pipe_push(struct ingest_pipe *p);
/* The first failure wins; @err is moved from. */
void ingest_pipe_fail(struct ingest_pipe *p, int code, struct incr_error *err);
/* Wait until all jobs are in the sink; 0 or the first failure. */
int ingest_pipe_finish(struct ingest_pipe *p, struct incr_error *err);

/* ---- ingest_file.c: one source into jobs ---- */
struct ingest_reader {
	const struct ingest_options *options; /* borrowed */
	struct ingest_pipe *pipe; /* borrowed */
	struct ingest_job *job; /* borrowed from the pipe; NULL: none at hand */
	struct hasher *hasher; /* owned; NULL until used */
	struct buf mine; /* the piece at hand */
	uint8_t *theirs; /* owned; INGEST_JOB_SIZE; NULL until used */
};

void ingest_reader_release(struct ingest_reader *r);
int ingest_reader_add(struct ingest_reader *r, const struct source_entry *e,
		      struct incr_error *err);
/* Push the job at hand. */
int ingest_reader_flush(struct ingest_reader *r);
/* ingest_large.c: a file of more than INGEST_SMALL_MAX bytes, or a stream. */
struct ingest_source {
	const struct source_entry *e; /* borrowed */
	int fd; /* borrowed */
	bool is_stream;
	bool has_lease;
	struct io_stat st; /* before it was read; streams: size 0 */
};
int ingest_reader_add_large(struct ingest_reader *r,
			    const struct ingest_source *source,
			    struct incr_error *err);
/* Up to @size bytes at @off; *out_n < size only at the end. */
int ingest_source_read(struct ingest_reader *r,
		       const struct ingest_source *source, uint64_t off,
		       uint8_t *data, size_t size, size_t *out_n,
		       struct incr_error *err);
/* After the last byte was read: "source-changed" if the file is another now. */
int ingest_source_check(struct ingest_reader *r,
			const struct ingest_source *source,
			struct incr_error *err);
/* A PUT item with mode and time of the source in the job at hand, with room for @size bytes. */
int ingest_reader_item(struct ingest_reader *r,
		       const struct ingest_source *source, size_t size,
		       struct ingest_item **out_item, struct incr_error *err);
/* The pipe has failed; the cause is in it. */
#define INGEST_STOPPED INCR_E_DEAD

#endif
