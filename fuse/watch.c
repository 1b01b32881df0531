/*
 * Watching the log of a store.
 *
 * The kernel queues an event before the write that caused it returns.  So an
 * empty queue proves that every commit that anybody was told of had been seen
 * when the queue was emptied last: who looks first and reads the store then
 * misses nothing.  That holds where all writers go through this kernel; on
 * other filesystems there is no watch.
 */
#include "config.h"

#include "watch.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#define XFS_MAGIC 0x58465342
#define EVENTS                                                          \
	(IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | \
	 IN_MOVE_SELF)

void watch_init(struct watch *w)
{
	*w = (struct watch){ .fd = -1, .generation = 1 };
	(void)pthread_mutex_init(&w->lock, NULL);
}

void watch_release(struct watch *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	(void)pthread_mutex_destroy(&w->lock);
}

static bool is_local(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case BTRFS_SUPER_MAGIC:
	case EXT4_SUPER_MAGIC: /* and those before it */
	case F2FS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case XFS_MAGIC:
		return true;
	default:
		return false;
	}
}

void watch_open(struct watch *w, const char *store_path)
{
	char *path;

	if (asprintf(&path, "%s/log", store_path) < 0)
		return;
	if (is_local(path))
		w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd >= 0 && inotify_add_watch(w->fd, path, EVENTS) < 0) {
		(void)close(w->fd);
		w->fd = -1;
	}
	free(path);
}

uint64_t watch_generation(struct watch *w)
{
	char events[4096];
	uint64_t generation;
	ssize_t n;

	(void)pthread_mutex_lock(&w->lock);
	n = w->fd < 0 ? 1 : read(w->fd, events, sizeof(events));
	if (n >= 0 || errno != EAGAIN)
		w->generation++;
	/* Empty the queue: what is left would tell of the same writes again. */
	while (w->fd >= 0 && n > 0)
		n = read(w->fd, events, sizeof(events));
	generation = w->generation;
	(void)pthread_mutex_unlock(&w->lock);
	return generation;
}
