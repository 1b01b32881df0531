/*
 * The life of a mount: mount, serve, end.
 *
 * How it ended is decided by looking: when the session is over and the mount is
 * gone, somebody unmounted it, and the caller commits; when the mount is still
 * there, the connection was cut, and nothing may be committed.  auto_unmount is
 * never used: a mount whose process died has to fail, not to look empty.
 */
#include "config.h"

#include "browse_fs.h"
#include "error_map.h"
#include "fs.h"
#include "layout.h"
#include "mountinfo.h"
#include "output_fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define MAX_READ TEXT(FS_MAX_READ)
#define READ_AHEAD_KB "1024" /* of requests of FS_MAX_READ bytes */

/* NULL without memory, which @err tells. */
static struct incr_mount *new_mount(const struct incr_mount_options *options,
				    struct incr_error *err)
{
	struct incr_mount *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		(void)mount_fail_nomem(err);
		return NULL;
	}
	m->options = *options;
	m->options.mountpoint = NULL;
	m->uid = options->has_uid ? options->uid : geteuid();
	m->gid = options->has_gid ? options->gid : getegid();
	(void)clock_gettime(CLOCK_REALTIME, &m->started);
	(void)pthread_mutex_init(&m->store_lock, NULL);
	dir_cache_init(&m->dirs);
	push_init(&m->push);
	watch_init(&m->watch);
	ahead_init(&m->ahead);
	if (serve_init(&m->serve, options->n_threads) < 0 ||
	    node_table_init(&m->nodes, m) < 0 ||
	    view_slots_init(&m->slots) < 0) {
		incr_mount_free(m);
		(void)mount_fail_nomem(err);
		return NULL;
	}
	return m;
}

static int check_empty(const char *path, struct incr_error *err)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	if (dir == NULL && errno == ENOTDIR)
		return mount_fail(err, INCR_E_INVALID, "not-a-directory", 0,
				  path, "the mount point is not a directory");
	if (dir == NULL)
		return mount_fail(err, INCR_E_IO, "bad-mountpoint", errno, path,
				  "cannot read the mount point");
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	if (n > 2) /* "." and ".." */
		return mount_fail(err, INCR_E_INVALID, "mountpoint-not-empty",
				  0, path, "the mount point is not empty");
	return 0;
}

/* Find the mount point and make it free. */
static int take_mountpoint(struct incr_mount *m, const char *path,
			   struct incr_error *err)
{
	struct incr_mount_info info;
	char *text = NULL;
	int r;

	r = incr_mount_identify(path, &info, err);
	if (r < 0)
		return r;
	m->path = info.mountpoint;
	info.mountpoint = NULL;
	if (info.is_mounted && info.is_ours && info.is_dead) {
		r = mountinfo_detach(m->path, true, &text);
		if (r < 0)
			r = mount_fail(err, INCR_E_IO, "unmount-failed",
				       text == NULL ? -r : 0, m->path, "%s",
				       text == NULL ?
					       "cannot detach the dead mount" :
					       text);
		free(text);
	} else if (info.is_mounted) {
		r = mount_fail(err, INCR_E_INVALID, "mounted", 0, m->path,
			       "something is mounted there already");
	}
	incr_mount_info_release(&info);
	return r < 0 ? r : check_empty(m->path, err);
}

/* fsname=..., with commas and backslashes escaped for fuse_opt; owned. */
static char *source_option(const struct incr_mount *m)
{
	const char *store = incr_store_path(m->store);
	uint64_t build = m->build == NULL ? 0 : incr_build_number(m->build);
	char *option = malloc(7 + 2 * strlen(store) + 24), *to;

	if (option == NULL)
		return NULL;
	to = stpcpy(option, "fsname=");
	for (const char *from = store; *from != '\0'; from++) {
		if (*from == ',' || *from == '\\')
			*to++ = '\\';
		*to++ = *from;
	}
	*to = '\0';
	if (build != 0)
		(void)sprintf(to, "#b%llu", (unsigned long long)build);
	return option;
}

static int add_options(const struct incr_mount *m, struct fuse_args *args)
{
	char *source = source_option(m);
	int r;

	if (source == NULL)
		return -1;
	r = fuse_opt_add_arg(args, "incr");
	r |= fuse_opt_add_arg(args, "-o");
	r |= fuse_opt_add_arg(args, source);
	free(source);
	r |= fuse_opt_add_arg(args, "-osubtype=incr,default_permissions,nosuid,"
				    "nodev,noatime,max_read=" MAX_READ);
	if (!m->answers_open) /* only a served staging is written through us */
		r |= fuse_opt_add_arg(args, "-oro");
	if (m->options.allows_other)
		r |= fuse_opt_add_arg(args, "-oallow_other");
	return r;
}

/* What libfuse would only print.  Who may not open it leaves it to fusermount3. */
static int check_device(struct incr_error *err)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	if (errno == EACCES || errno == EPERM)
		return 0;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return mount_fail(err, INCR_E_UNSUPPORTED, "no-fuse", errno,
				  "/dev/fuse", "this machine has no FUSE");
	return mount_fail(err, INCR_E_IO, "mount-failed", errno, "/dev/fuse",
			  "cannot open the device");
}

/*
 * The kernel reads ahead as far as the mount's device says, 128 KiB unless
 * somebody changes it, whatever was agreed on in the protocol.  Only root may;
 * without it large files are read in smaller pieces.
 */
static void raise_read_ahead(dev_t dev)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
		       major(dev), minor(dev));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, READ_AHEAD_KB, strlen(READ_AHEAD_KB));
	(void)close(fd);
}

static int mount_session(struct incr_mount *m, struct incr_error *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct mountinfo mi;
	int r = check_device(err);

	if (r < 0)
		return r;
	if (add_options(m, &args) == 0)
		m->se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), m);
	fuse_opt_free_args(&args);
	if (m->se == NULL)
		return mount_fail(err, INCR_E_IO, "mount-failed", 0, m->path,
				  "cannot make a FUSE session");
	if (fuse_session_mount(m->se, m->path) != 0)
		return mount_fail(err, INCR_E_IO, "mount-failed", 0, m->path,
				  "the mount was refused");
	r = mountinfo_find(m->path, &mi, err);
	if (r == 0) {
		m->dev = mi.dev;
		mountinfo_release(&mi);
		raise_read_ahead(m->dev);
	}
	return r < 0 ? r : 0;
}

static int start(struct incr_mount *m, const char *mountpoint,
		 struct incr_error *err)
{
	int r;

	r = take_mountpoint(m, mountpoint, err);
	if (r < 0)
		return r;
	r = m->build == NULL ? browse_init(m, err) : layout_build(m, err);
	return r < 0 ? r : mount_session(m, err);
}

int incr_mount_build(struct incr_build *b,
		     const struct incr_mount_options *options,
		     struct incr_mount **out_mount, struct incr_error *err)
{
	struct incr_mount *m = new_mount(options, err);
	int r;

	if (m == NULL)
		return INCR_E_NOMEM;
	m->build = b;
	m->store = incr_build_store(b);
	m->answers_open = options->staging == INCR_STAGING_FUSE &&
			  !options->is_readonly;
	r = start(m, options->mountpoint, err);
	if (r < 0)
		incr_mount_free(m);
	else
		*out_mount = m;
	return r;
}

int incr_mount_browse(struct incr_store *st, int64_t at_ns,
		      const struct incr_mount_options *options,
		      struct incr_mount **out_mount, struct incr_error *err)
{
	struct incr_mount *m = new_mount(options, err);
	int r;

	if (m == NULL)
		return INCR_E_NOMEM;
	m->store = st;
	m->at_ns = at_ns;
	r = start(m, options->mountpoint, err);
	if (r < 0)
		incr_mount_free(m);
	else
		*out_mount = m;
	return r;
}

/* Detach our mount, if it is still there. */
static void detach(struct incr_mount *m)
{
	char *text = NULL;

	if (m->dev == 0 || !mountinfo_has(m->path, m->dev))
		return;
	if (mountinfo_detach(m->path, true, &text) < 0)
		fs_log(m, "cannot unmount %s", m->path);
	free(text);
}

int incr_mount_serve(struct incr_mount *m, enum incr_mount_end *out_end,
		     struct incr_error *err)
{
	int r;

	r = serve_run(&m->serve, m->se);
	if (r < 0)
		return mount_fail(err, INCR_E_IO, "mount-failed", -r, m->path,
				  "cannot serve the mount");
	m->was_served = true;
	if (atomic_load(&m->serve.is_interrupted)) {
		detach(m);
		*out_end = INCR_MOUNT_INTERRUPTED;
	} else if (mountinfo_has(m->path, m->dev)) {
		*out_end = INCR_MOUNT_LOST;
	} else {
		*out_end = INCR_MOUNT_UNMOUNTED;
	}
	return 0;
}

void incr_mount_interrupt(struct incr_mount *m)
{
	serve_interrupt(&m->serve);
}

const char *incr_mount_path(const struct incr_mount *m)
{
	return m->path;
}

/*
 * Free the session.  libfuse unmounts by name, which may be another mount by
 * now; it does not once the connection is over.
 */
static void free_session(struct fuse_session *se)
{
	struct pollfd fd = { .fd = fuse_session_fd(se) };

	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR) != 0)
		fuse_session_unmount(se);
	fuse_session_destroy(se);
}

void incr_mount_free(struct incr_mount *m)
{
	if (m == NULL)
		return;
	if (!m->was_served)
		detach(m);
	if (m->se != NULL)
		free_session(m->se);
	ahead_release(&m->ahead);
	/* nodes that go drop the listings of their views */
	node_table_release(&m->nodes);
	dir_cache_release(&m->dirs);
	view_slots_release(&m->slots);
	for (size_t i = 0; i < m->n_outputs; i++)
		output_free(m->outputs[i]);
	free(m->outputs);
	push_release(&m->push);
	watch_release(&m->watch);
	serve_release(&m->serve);
	(void)pthread_mutex_destroy(&m->store_lock);
	free(m->path);
	free(m);
}
