/*
 * Unmounting, and telling our mounts from others.
 */
#include "config.h"

#include "error_map.h"
#include "holders.h"
#include "mount.h"
#include "mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUSY_TRIES 20
#define BUSY_PAUSE_NS 50000000

void incr_mount_info_release(struct incr_mount_info *info)
{
	free(info->mountpoint);
	free(info->store);
	*info = (struct incr_mount_info){ 0 };
}

/* STORE or STORE#bN, which is cut; returns N. */
static uint64_t cut_build(char *source)
{
	char *mark = strrchr(source, '#'), *end;
	uint64_t build;

	if (mark == NULL || mark[1] != 'b' || mark[2] < '1' || mark[2] > '9')
		return 0;
	build = strtoull(mark + 2, &end, 10);
	if (*end != '\0')
		return 0;
	*mark = '\0';
	return build;
}

int incr_mount_identify(const char *path, struct incr_mount_info *out_info,
			struct incr_error *err)
{
	struct incr_mount_info info = { 0 };
	struct mountinfo mi;
	int r;

	r = mountinfo_resolve(path, &info.mountpoint);
	if (r < 0)
		return mount_fail(
			err, r == -ENOENT ? INCR_E_NOTFOUND : INCR_E_IO,
			r == -ENOENT ? "no-mountpoint" : "bad-mountpoint", -r,
			path, "cannot look at the mount point");
	r = mountinfo_find(info.mountpoint, &mi, err);
	if (r < 0) {
		incr_mount_info_release(&info);
		return r;
	}
	if (r == 0) {
		info.is_mounted = true;
		info.is_ours = strcmp(mi.fstype, MOUNTINFO_FSTYPE) == 0;
		if (info.is_ours) {
			info.store = mi.source;
			mi.source = NULL;
			info.build = cut_build(info.store);
			info.is_dead = mountinfo_is_dead(info.mountpoint);
		}
		mountinfo_release(&mi);
	}
	*out_info = info;
	return 0;
}

/* Holders, as text for the message. */
struct report {
	char text[900];
	size_t used;
};

static bool report_holder(void *closure, const struct holder *h)
{
	struct report *rep = closure;
	size_t left = sizeof(rep->text) - rep->used;
	int n = snprintf(rep->text + rep->used, left, "%s%d (%s) uses %s",
			 rep->used == 0 ? ": " : ", ", (int)h->pid, h->program,
			 h->path);

	if (n < 0 || (size_t)n >= left) {
		rep->text[rep->used] = '\0';
		return true; /* enough of them are named */
	}
	rep->used += (size_t)n;
	return false;
}

static int fail_busy(const struct mountinfo *mi, struct incr_error *err)
{
	struct report rep = { 0 };
	int r;

	holders_find(mi->dev, report_holder, &rep);
	r = mount_fail(err, INCR_E_BUSY, "mount-busy", 0, mi->mountpoint,
		       "the mount is in use%s", rep.text);
	if (err != NULL)
		(void)snprintf(err->hint, sizeof(err->hint),
			       "end these programs, or unmount with --lazy");
	return r;
}

/*
 * Detach, patiently: a program that has just ended may hold the mount for a
 * moment longer, as the kernel puts files away behind it.
 */
static int detach(const struct mountinfo *mi, bool is_lazy, char **out_text)
{
	static const struct timespec pause = { .tv_nsec = BUSY_PAUSE_NS };
	int r = mountinfo_detach(mi->mountpoint, is_lazy, out_text);

	for (int i = 0; r == -EBUSY && i < BUSY_TRIES; i++) {
		(void)nanosleep(&pause, NULL);
		free(*out_text);
		r = mountinfo_detach(mi->mountpoint, is_lazy, out_text);
	}
	return r;
}

int incr_unmount(const char *mountpoint, bool is_lazy, struct incr_error *err)
{
	struct mountinfo mi;
	char *path, *text = NULL;
	int r;

	r = mountinfo_resolve(mountpoint, &path);
	if (r < 0)
		return mount_fail(err, INCR_E_NOTFOUND, "not-mounted", -r,
				  mountpoint, "cannot look at the mount point");
	r = mountinfo_find(path, &mi, err);
	if (r == 1)
		r = mount_fail(err, INCR_E_NOTFOUND, "not-mounted", 0, path,
			       "nothing is mounted there");
	free(path);
	if (r < 0)
		return r;
	if (strcmp(mi.fstype, MOUNTINFO_FSTYPE) != 0) {
		r = mount_fail(err, INCR_E_INVALID, "not-ours", 0,
			       mi.mountpoint, "not a mount of this program");
		mountinfo_release(&mi);
		return r;
	}
	if (!is_lazy)
		is_lazy = mountinfo_is_dead(mi.mountpoint);
	r = detach(&mi, is_lazy, &text);
	if (r == -EBUSY)
		r = fail_busy(&mi, err);
	else if (r < 0)
		r = mount_fail(err, INCR_E_IO, "unmount-failed",
			       text == NULL ? -r : 0, mi.mountpoint, "%s",
			       text == NULL ? "cannot unmount" : text);
	free(text);
	mountinfo_release(&mi);
	return r;
}
