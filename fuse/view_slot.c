/*
 * The views that are shown: a slot each.
 *
 * Slots are found without a lock, by the id of a node.  A slot is freed only
 * when the kernel knows none of its nodes, so that no request can be under way.
 */
#include "config.h"

#include "fs.h"

#include <stdlib.h>

int view_slots_init(struct view_slots *s)
{
	*s = (struct view_slots){ .n_used = 1, .first_free = 1 };
	s->items = calloc(INODE_N_SLOTS, sizeof(*s->items));
	if (s->items == NULL)
		return INCR_E_NOMEM;
	(void)pthread_mutex_init(&s->lock, NULL);
	return 0;
}

static void free_slot(struct view_slot *slot)
{
	incr_view_unref(slot->view);
	free(slot);
}

void view_slots_release(struct view_slots *s)
{
	if (s->items == NULL)
		return;
	for (uint32_t i = 1; i < s->n_used; i++) {
		struct view_slot *slot = atomic_load(&s->items[i]);

		if (slot != NULL)
			free_slot(slot);
	}
	free(s->items);
	(void)pthread_mutex_destroy(&s->lock);
	*s = (struct view_slots){ 0 };
}

/* Give @slot a number.  False: there is none left. */
static bool place_slot(struct view_slots *s, struct view_slot *slot)
{
	while (s->first_free < s->n_used &&
	       atomic_load(&s->items[s->first_free]) != NULL)
		s->first_free++;
	if (s->first_free >= INODE_N_SLOTS)
		return false;
	if (s->first_free == s->n_used)
		s->n_used++;
	slot->idx = s->first_free++;
	atomic_store(&s->items[slot->idx], slot);
	return true;
}

int view_slot_new(struct incr_mount *m, struct incr_view *view, uint64_t salt,
		  bool is_counted, struct view_slot **out_slot)
{
	struct view_slot *slot = calloc(1, sizeof(*slot));
	bool is_placed;

	if (slot == NULL)
		return INCR_E_NOMEM;
	slot->view = incr_view_ref(view);
	slot->salt = salt;
	slot->dir_time = m->started;
	slot->is_counted = is_counted;
	slot->n_refs = 1;
	atomic_store(&slot->asked, UINT64_MAX);
	(void)pthread_mutex_lock(&m->slots.lock);
	is_placed = place_slot(&m->slots, slot);
	(void)pthread_mutex_unlock(&m->slots.lock);
	if (!is_placed) {
		free_slot(slot);
		return INCR_E_BUSY;
	}
	*out_slot = slot;
	return 0;
}

void view_slot_get(struct incr_mount *m, struct view_slot *slot, uint64_t n)
{
	if (!slot->is_counted)
		return;
	(void)pthread_mutex_lock(&m->slots.lock);
	slot->n_refs += n;
	(void)pthread_mutex_unlock(&m->slots.lock);
}

void view_slot_put(struct incr_mount *m, struct view_slot *slot, uint64_t n)
{
	struct view_slots *s = &m->slots;
	bool is_last;

	if (!slot->is_counted)
		return;
	(void)pthread_mutex_lock(&s->lock);
	slot->n_refs -= n < slot->n_refs ? n : slot->n_refs;
	is_last = slot->n_refs == 0;
	if (is_last) {
		atomic_store(&s->items[slot->idx], NULL);
		if (slot->idx < s->first_free)
			s->first_free = slot->idx;
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!is_last)
		return;
	dir_cache_purge(&m->dirs, slot);
	free_slot(slot);
}

struct view_slot *view_slot_find(struct incr_mount *m, fuse_ino_t id)
{
	return atomic_load(&m->slots.items[inode_unpack(id).slot]);
}
