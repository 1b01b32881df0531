/*
 * Read-only views: directories and files that never change.
 *
 * Nothing is kept for a file: its node id says where the view has it.
 */
#ifndef INCR_VIEW_FS_H
#define INCR_VIEW_FS_H

#include "fuse_api.h"
#include "incr.h"
#include "inode.h"
#include "push.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

struct incr_mount;

/* A view that is shown. */
struct view_slot {
	uint32_t idx; /* never 0 */
	struct incr_view *view; /* shared(ref) */
	uint64_t salt; /* tells its directories from those of other views */
	struct timespec dir_time;
	bool is_counted; /* freed when nobody knows it */
	uint64_t n_refs; /* kernel lookups and holders; guarded by slots.lock */
	struct push_streams streams;
	_Atomic uint64_t asked; /* place of a file asked for during a run */
};

struct view_slots {
	pthread_mutex_t lock;
	uint32_t n_used; /* slots that were ever used, with slot 0 */
	uint32_t first_free; /* below n_used, or n_used */
	_Atomic(struct view_slot *) *items;
};

int view_slots_init(struct view_slots *s);
void view_slots_release(struct view_slots *s);

/*
 * Show @view (a reference is taken).  is_counted: with one holder, see
 * view_slot_put().  0, INCR_E_NOMEM, or INCR_E_BUSY when there is no slot left.
 */
int view_slot_new(struct incr_mount *m, struct incr_view *view, uint64_t salt,
		  bool is_counted, struct view_slot **out_slot);
/* Count @n more lookups or holders. */
void view_slot_get(struct incr_mount *m, struct view_slot *slot, uint64_t n);
/* Take back @n of them; the last one frees the slot. */
void view_slot_put(struct incr_mount *m, struct view_slot *slot, uint64_t n);
/* The slot of a node id; NULL if there is none. */
struct view_slot *view_slot_find(struct incr_mount *m, fuse_ino_t id);

/* The entry that leads to the root of a view; endless timeouts. */
void view_fs_root_entry(struct incr_mount *m, struct view_slot *slot,
			struct fuse_entry_param *e);
/* The entry of a node of the view; endless timeouts; not counted. */
void view_fs_entry(struct incr_mount *m, struct view_slot *slot,
		   const struct incr_node *node, struct fuse_entry_param *e);

/* Operations; @ino.place and @ino.depth are a place of the slot's view. */
void view_fs_lookup(struct incr_mount *m, fuse_req_t req,
		    struct view_slot *slot, struct inode ino, const char *name);
void view_fs_getattr(struct incr_mount *m, fuse_req_t req,
		     struct view_slot *slot, struct inode ino);
void view_fs_readdir(struct incr_mount *m, fuse_req_t req,
		     struct view_slot *slot, struct inode ino,
		     const struct dir_request *dr);
void view_fs_read(struct incr_mount *m, fuse_req_t req, struct view_slot *slot,
		  struct inode ino, const struct read_request *rr);

/* The node at a place, also the root: 0 or an error. */
int view_fs_node(struct view_slot *slot, struct inode ino,
		 struct incr_node *out_node, struct incr_error *err);

/* Open listings, to go on where the last request ended. */
#define DIR_CACHE_SIZE 16

struct dir_cursor {
	struct view_slot *slot; /* borrowed */
	fuse_ino_t id; /* of the directory */
	uint64_t cookie; /* of the last entry that was sent */
	uint64_t stamp;
	struct incr_dir_iter *iter;
	struct incr_node node; /* the next entry, if has_node */
	bool has_node, is_at_end;
	size_t dir_length; /* of the directory's path and its slash */
};

struct dir_cache {
	pthread_mutex_t lock;
	uint64_t stamp;
	struct dir_cursor *items[DIR_CACHE_SIZE];
};

void dir_cache_init(struct dir_cache *c);
void dir_cache_release(struct dir_cache *c);
/* Drop the listings of a slot that goes away. */
void dir_cache_purge(struct dir_cache *c, const struct view_slot *slot);

#endif
