/*
 * Finding mounts, and detaching them.
 */
#include "config.h"

#include "error_map.h"
#include "mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 3000 /* how long a mount may take to show that it lives */
#define END_TRIES 100

extern char **environ;

void mountinfo_release(struct mountinfo *mi)
{
	free(mi->mountpoint);
	free(mi->fstype);
	free(mi->source);
	*mi = (struct mountinfo){ 0 };
}

/* Undo the octal escapes of the kernel, in place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s != '\0') {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* One line, which is cut up.  Fields point into it.  False: not understood. */
static bool parse_line(char *line, struct mountinfo *out)
{
	unsigned int major, minor;
	char *fields[5] = { NULL }, *save = NULL, *field;
	size_t n = 0;

	for (field = strtok_r(line, " \n", &save); field != NULL && n < 5;
	     field = strtok_r(NULL, " \n", &save))
		fields[n++] = field;
	/* Behind the point: options, optional fields and a hyphen. */
	while (field != NULL && strcmp(field, "-") != 0)
		field = strtok_r(NULL, " \n", &save);
	if (field == NULL || sscanf(fields[2], "%u:%u", &major, &minor) != 2)
		return false;
	out->dev = makedev(major, minor);
	out->mountpoint = fields[4];
	out->fstype = strtok_r(NULL, " \n", &save);
	out->source = strtok_r(NULL, " \n", &save);
	if (out->source == NULL)
		return false;
	unescape(out->mountpoint);
	unescape(out->source);
	return true;
}

/* Call @fn for each mount; a non-zero return ends it and is returned. */
static int each_mount(int (*fn)(void *closure, const struct mountinfo *mi),
		      void *closure)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	struct mountinfo mi;
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (in == NULL)
		return -errno;
	while (r == 0 && getline(&line, &size, in) >= 0) {
		if (parse_line(line, &mi))
			r = fn(closure, &mi);
	}
	free(line);
	(void)fclose(in);
	return r;
}

struct search {
	const char *path;
	dev_t dev;
	struct mountinfo found; /* owned strings */
};

static int keep_last(void *closure, const struct mountinfo *mi)
{
	struct search *s = closure;

	if (strcmp(mi->mountpoint, s->path) != 0)
		return 0;
	mountinfo_release(&s->found);
	s->found.dev = mi->dev;
	s->found.mountpoint = strdup(mi->mountpoint);
	s->found.fstype = strdup(mi->fstype);
	s->found.source = strdup(mi->source);
	return s->found.mountpoint == NULL || s->found.fstype == NULL ||
			       s->found.source == NULL ?
		       -ENOMEM :
		       0;
}

int mountinfo_find(const char *path, struct mountinfo *out_mount,
		   struct incr_error *err)
{
	struct search s = { .path = path };
	int r;

	r = each_mount(keep_last, &s);
	if (r < 0) {
		mountinfo_release(&s.found);
		return mount_fail(err, INCR_E_IO, "no-mountinfo", -r, path,
				  "cannot list mounts");
	}
	if (s.found.mountpoint == NULL)
		return 1;
	*out_mount = s.found;
	return 0;
}

static int is_same(void *closure, const struct mountinfo *mi)
{
	const struct search *s = closure;

	return mi->dev == s->dev && strcmp(mi->mountpoint, s->path) == 0;
}

bool mountinfo_has(const char *path, dev_t dev)
{
	struct search s = { .path = path, .dev = dev };

	return each_mount(is_same, &s) == 1;
}

int mountinfo_resolve(const char *path, char **out_path)
{
	char *copy, *parent, *name, *whole = NULL;

	*out_path = realpath(path, NULL);
	if (*out_path != NULL)
		return 0;
	if (errno != ENOTCONN)
		return -errno;
	/* Dead: its parent still tells where it is. */
	copy = strdup(path);
	name = strdup(path);
	parent = copy == NULL ? NULL : realpath(dirname(copy), NULL);
	if (parent != NULL && name != NULL &&
	    asprintf(&whole, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent,
		     basename(name)) < 0)
		whole = NULL;
	free(copy);
	free(name);
	free(parent);
	*out_path = whole;
	return whole == NULL ? -ENOTCONN : 0;
}

/*
 * Ask for something that is never answered by a cache, and tell the other end
 * of the pipe.  The directory is closed before that: the mount may be unmounted
 * next.  Of the caller's files nothing is kept: whoever waits for their end
 * would wait for a mount that hangs.
 */
static void answer_dead(const char *path, int pipe_fd)
{
	char is_dead;
	int fd;

	if (dup2(pipe_fd, STDIN_FILENO) < 0 || close_range(1, ~0U, 0) < 0)
		_exit(1);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	is_dead = fd < 0 && errno == ENOTCONN;
	if (fd >= 0)
		(void)close(fd);
	_exit(write(STDIN_FILENO, &is_dead, 1) == 1 ? 0 : 1);
}

/* It does not answer: end it, or it would hold the mount itself. */
static void end_question(pid_t child)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	(void)kill(child, SIGKILL);
	/* One that the mount has begun to answer cannot be called back. */
	for (int i = 0; i < END_TRIES && waitpid(child, NULL, WNOHANG) == 0;
	     i++)
		(void)nanosleep(&pause, NULL);
}

/*
 * The question goes to a process of its own, since nothing else can be called
 * back from waiting for a mount that hangs.
 */
bool mountinfo_is_dead(const char *path)
{
	struct pollfd answer = { .events = POLLIN };
	int fds[2];
	pid_t child;
	char is_dead = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (child == 0)
		answer_dead(path, fds[1]);
	(void)close(fds[1]);
	answer.fd = fds[0];
	if (child > 0 && poll(&answer, 1, ANSWER_MS) == 1) {
		if (read(fds[0], &is_dead, 1) != 1)
			is_dead = 0;
		(void)waitpid(child, NULL, 0);
	} else if (child > 0) {
		end_question(child);
	}
	(void)close(fds[0]);
	return is_dead != 0;
}

/* Run fusermount3 and keep what it says. */
static int run_fusermount(const char *path, bool is_lazy, char **out_text)
{
	const char *argv[] = { "fusermount3",	      "-u",
			       is_lazy ? "-z" : "--", is_lazy ? "--" : path,
			       is_lazy ? path : NULL, NULL };
	posix_spawn_file_actions_t actions;
	char text[1024];
	ssize_t n;
	size_t used = 0;
	int fds[2], r, status = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
	/* the prototype is older than const; nothing writes to the words */
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char **)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(fds[1]);
	while (r == 0 && used < sizeof(text) - 1 &&
	       (n = read(fds[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	(void)close(fds[0]);
	if (r != 0)
		return -r;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	text[used] = '\0';
	text[strcspn(text, "\n")] = '\0';
	r = strstr(text, "busy") != NULL ? -EBUSY : -EPERM;
	*out_text = strdup(text);
	return r;
}

int mountinfo_detach(const char *path, bool is_lazy, char **out_text)
{
	int flags = UMOUNT_NOFOLLOW | (is_lazy ? MNT_DETACH : 0);

	*out_text = NULL;
	if (umount2(path, flags) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	return run_fusermount(path, is_lazy, out_text);
}
