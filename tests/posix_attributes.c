/*
 * Locks, times, modes, other users.
 */
#include "config.h"

#include "posix_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What another process gets for a lock: 0 or its errno. */
static int try_lock(const char *path, short type, off_t start, off_t length)
{
	struct flock lock = { .l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = start,
			      .l_len = length };
	int status;

	(void)fflush(stdout);
	if (fork() == 0) {
		int fd = open(path, O_RDWR);

		errno = 0;
		_exit(fcntl(fd, F_SETLK, &lock) < 0 ? errno : 0);
	}
	return wait(&status) < 0 || !WIFEXITED(status) ? -1 :
							 WEXITSTATUS(status);
}

static int try_flock(const char *path, int how)
{
	int fd = open(path, O_RDWR), r;

	errno = 0;
	r = flock(fd, how | LOCK_NB) < 0 ? errno : 0;
	(void)close(fd);
	return r;
}

void test_locks(void)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = 10,
			      .l_len = 10 };
	int fd = open("l", O_RDWR | O_CREAT, 0644), fd2;

	OK(fcntl(fd, F_SETLK, &lock));
	EQ(EAGAIN, try_lock("l", F_WRLCK, 0, 0));
	EQ(EAGAIN, try_lock("l", F_RDLCK, 19, 1));
	EQ(0, try_lock("l", F_WRLCK, 0, 10));
	EQ(0, try_lock("l", F_WRLCK, 20, 1));
	lock.l_type = F_RDLCK;
	OK(fcntl(fd, F_SETLK, &lock));
	EQ(0, try_lock("l", F_RDLCK, 0, 0));
	EQ(EAGAIN, try_lock("l", F_WRLCK, 0, 0));
	lock.l_type = F_UNLCK;
	OK(fcntl(fd, F_SETLK, &lock));
	EQ(0, try_lock("l", F_WRLCK, 0, 0));
	/* closing any descriptor drops them */
	lock.l_type = F_WRLCK;
	OK(fcntl(fd, F_SETLK, &lock));
	fd2 = open("l", O_RDWR);
	OK(close(fd2));
	EQ(0, try_lock("l", F_WRLCK, 0, 0));
	/* but not locks of an open file */
	lock.l_pid = 0;
	OK(fcntl(fd, F_OFD_SETLK, &lock));
	fd2 = open("l", O_RDWR);
	ERR(EAGAIN, fcntl(fd2, F_OFD_SETLK, &lock));
	OK(close(fd2));
	EQ(EAGAIN, try_lock("l", F_WRLCK, 0, 0));
	lock.l_type = F_UNLCK;
	OK(fcntl(fd, F_OFD_SETLK, &lock));
	/* flock */
	OK(flock(fd, LOCK_EX));
	EQ(EWOULDBLOCK, try_flock("l", LOCK_EX));
	EQ(EWOULDBLOCK, try_flock("l", LOCK_SH));
	OK(flock(fd, LOCK_SH));
	EQ(0, try_flock("l", LOCK_SH));
	EQ(EWOULDBLOCK, try_flock("l", LOCK_EX));
	OK(flock(fd, LOCK_UN));
	EQ(0, try_flock("l", LOCK_EX));
	OK(close(fd));
	OK(unlink("l"));
}

void test_times(void)
{
	struct timespec now,
		times[2] = { { 1000, 123456789 }, { 2000, 987654321 } };
	struct stat st, later;
	int fd;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	OK(put("t", "1"));
	st = look("t");
	TRUE(st.st_mtim.tv_sec >= now.tv_sec - 1 &&
	     st.st_mtim.tv_sec <= now.tv_sec + 5);
	OK(utimensat(AT_FDCWD, "t", times, 0));
	st = look("t");
	EQ(1000, st.st_atim.tv_sec);
	EQ(123456789, st.st_atim.tv_nsec);
	EQ(2000, st.st_mtim.tv_sec);
	EQ(987654321, st.st_mtim.tv_nsec);
	TRUE(st.st_ctim.tv_sec >= now.tv_sec - 1);
	times[0].tv_nsec = UTIME_OMIT;
	times[1].tv_nsec = UTIME_NOW;
	OK(utimensat(AT_FDCWD, "t", times, 0));
	EQ(1000, look("t").st_atim.tv_sec);
	TRUE(look("t").st_mtim.tv_sec >= now.tv_sec - 1);
	times[0] = (struct timespec){ -5, 0 };
	times[1] = (struct timespec){ 0, 1 };
	OK(utimensat(AT_FDCWD, "t", times, 0));
	EQ(0, look("t").st_mtim.tv_sec);
	EQ(1, look("t").st_mtim.tv_nsec);
	EQ(-5, look("t").st_atim.tv_sec);
	fd = open("t", O_WRONLY);
	OK(futimens(fd, (struct timespec[]){ { 1, 0 }, { 1, 0 } }));
	EQ(1, write(fd, "2", 1));
	OK(close(fd));
	TRUE(look("t").st_mtim.tv_sec > 1);
	/* a change of the directory */
	OK(mkdir("d", 0755));
	OK(utimensat(AT_FDCWD, "d", (struct timespec[]){ { 1, 0 }, { 1, 0 } },
		     0));
	OK(put("d/x", ""));
	TRUE(look("d").st_mtim.tv_sec > 1);
	OK(utimensat(AT_FDCWD, "d", (struct timespec[]){ { 1, 0 }, { 1, 0 } },
		     0));
	OK(unlink("d/x"));
	TRUE(look("d").st_mtim.tv_sec > 1);
	OK(rmdir("d"));
	/* ctime moves with the mode, mtime does not */
	OK(utimensat(AT_FDCWD, "t", (struct timespec[]){ { 1, 0 }, { 1, 0 } },
		     0));
	st = look("t");
	(void)usleep(20000);
	OK(chmod("t", 0600));
	later = look("t");
	EQ(1, later.st_mtim.tv_sec);
	TRUE(later.st_ctim.tv_sec > st.st_ctim.tv_sec ||
	     later.st_ctim.tv_nsec > st.st_ctim.tv_nsec);
	ERR(ENOENT, utimensat(AT_FDCWD, "no", NULL, 0));
	OK(unlink("t"));
}

void test_modes(void)
{
	static const mode_t modes[] = { 0,    0400,  0644,  0777,
					0711, 01777, 02755, 04755 };
	struct statvfs vfs;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		OK(touch_mode("m", 0666));
		OK(chmod("m", modes[i]));
		EQ(modes[i], look("m").st_mode & 07777);
		OK(unlink("m"));
	}
	(void)umask(077);
	OK(touch_mode("m", 0666));
	EQ(0600, look("m").st_mode & 07777);
	OK(unlink("m"));
	OK(mkdir("m", 0777));
	EQ(0700, look("m").st_mode & 07777);
	OK(rmdir("m"));
	(void)umask(0);
	OK(touch_mode("m", 0666));
	EQ(0666, look("m").st_mode & 07777);
	OK(unlink("m"));
	OK(mkfifo("m", 0640));
	EQ(S_IFIFO | 0640, look("m").st_mode);
	OK(unlink("m"));
	(void)umask(022);
	OK(access(".", R_OK | W_OK | X_OK));
	ERR(ENOENT, access("no", F_OK));
	ERR(ENOENT, chmod("no", 0644));
	OK(statvfs(".", &vfs));
	TRUE(vfs.f_bsize > 0 && vfs.f_blocks > 0 && vfs.f_namemax >= 255);
	/* a FIFO works, a socket can be bound */
	OK(mkfifo("p", 0600));
	{
		int r = open("p", O_RDONLY | O_NONBLOCK);
		int w = open("p", O_WRONLY);
		char c = 0;

		EQ(1, write(w, "x", 1));
		EQ(1, read(r, &c, 1));
		EQ('x', c);
		OK(close(r));
		OK(close(w));
	}
	OK(unlink("p"));
	{
		struct sockaddr_un name = { .sun_family = AF_UNIX,
					    .sun_path = "s" };
		int s = socket(AF_UNIX, SOCK_STREAM, 0);

		OK(bind(s, (struct sockaddr *)&name, sizeof(name)));
		TRUE(S_ISSOCK(look("s").st_mode));
		OK(close(s));
	}
	OK(unlink("s"));
}

#define NOBODY 65534

/* Run @fn as another user, in a process of its own: its return, or -errno. */
static int as_nobody(int (*fn)(void))
{
	int status;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(255);
		errno = 0;
		_exit(fn() < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int other_reads_private(void)
{
	return open("private", O_RDONLY);
}
static int other_reads_public(void)
{
	return open("public", O_RDONLY);
}
static int other_writes_public(void)
{
	return open("public", O_WRONLY);
}
static int other_truncates(void)
{
	return truncate("public", 0);
}
static int other_chmods(void)
{
	return chmod("public", 0777);
}
static int other_utimes(void)
{
	return utimensat(AT_FDCWD, "public",
			 (struct timespec[]){ { 1, 0 }, { 1, 0 } }, 0);
}
static int other_creates(void)
{
	return touch_mode("closed/x", 0644);
}
static int other_unlinks(void)
{
	return unlink("closed/f");
}
static int other_renames(void)
{
	return rename("closed/f", "closed/g");
}
static int other_mkdirs(void)
{
	return mkdir("closed/d", 0755);
}
static int other_symlinks(void)
{
	return symlink("x", "closed/s");
}
static int other_links(void)
{
	return link("public", "closed/l");
}
static int other_enters(void)
{
	return open("sealed/f", O_RDONLY);
}
static int other_lists(void)
{
	return opendir("sealed") ? 0 : -1;
}
static int other_makes_own(void)
{
	return touch_mode("shared/mine", 0644) < 0 ||
			       mkdir("shared/dir", 0755) < 0 ||
			       symlink("x", "shared/link") < 0 ||
			       mkfifo("shared/fifo", 0600) < 0 ?
		       -1 :
		       0;
}
static int other_uses_own(void)
{
	return chmod("shared/mine", 0600) < 0 || put("shared/mine", "x") < 0 ||
			       truncate("shared/mine", 1) < 0 ||
			       rename("shared/mine", "shared/mine2") < 0 ?
		       -1 :
		       0;
}
static int other_gives_away(void)
{
	return chown("shared/mine2", 0, 0);
}
static int other_unlinks_sticky(void)
{
	return unlink("shared/of-root");
}
static int other_renames_sticky(void)
{
	return rename("shared/of-root", "shared/x");
}
static int other_is_denied_access(void)
{
	return access("private", R_OK);
}

static void remove_all(void)
{
	OK(unlink("shared/mine2"));
	OK(unlink("shared/link"));
	OK(unlink("shared/fifo"));
	OK(unlink("shared/of-root"));
	OK(rmdir("shared/dir"));
	OK(rmdir("shared"));
	OK(unlink("sealed/f"));
	OK(rmdir("sealed"));
	OK(unlink("closed/f"));
	OK(rmdir("closed"));
	OK(unlink("private"));
	OK(unlink("public"));
}

void test_users(void)
{
	struct stat st;

	if (geteuid() != 0) {
		printf("not root: checks of other users are left out\n");
		return;
	}
	OK(put("private", "secret"));
	OK(chmod("private", 0600));
	OK(put("public", "open"));
	OK(mkdir("closed", 0755));
	OK(put("closed/f", "x"));
	OK(mkdir("sealed", 0700));
	OK(put("sealed/f", "x"));
	OK(mkdir("shared", 0777));
	OK(chmod("shared", 01777));
	OK(put("shared/of-root", "x"));
	EQ(EACCES, as_nobody(other_reads_private));
	EQ(0, as_nobody(other_reads_public));
	EQ(EACCES, as_nobody(other_writes_public));
	EQ(EACCES, as_nobody(other_truncates));
	EQ(EPERM, as_nobody(other_chmods));
	EQ(EPERM, as_nobody(other_utimes));
	EQ(EACCES, as_nobody(other_creates));
	EQ(EACCES, as_nobody(other_unlinks));
	EQ(EACCES, as_nobody(other_renames));
	EQ(EACCES, as_nobody(other_mkdirs));
	EQ(EACCES, as_nobody(other_symlinks));
	TRUE(as_nobody(other_links) != 0); /* EPERM or EACCES: a setting */
	EQ(EACCES, as_nobody(other_enters));
	EQ(EACCES, as_nobody(other_lists));
	EQ(EACCES, as_nobody(other_is_denied_access));
	/* what they make is theirs */
	EQ(0, as_nobody(other_makes_own));
	st = look("shared/mine");
	EQ(NOBODY, st.st_uid);
	EQ(NOBODY, st.st_gid);
	EQ(NOBODY, look("shared/dir").st_uid);
	EQ(NOBODY, look("shared/dir").st_gid);
	EQ(NOBODY, look("shared/link").st_uid);
	EQ(NOBODY, look("shared/fifo").st_uid);
	EQ(0, as_nobody(other_uses_own));
	TRUE(has("shared/mine2", "x"));
	EQ(EPERM, as_nobody(other_gives_away));
	EQ(EPERM, as_nobody(other_unlinks_sticky));
	EQ(EPERM, as_nobody(other_renames_sticky));
	/* what root gives them is theirs too */
	OK(chown("private", NOBODY, NOBODY));
	EQ(NOBODY, look("private").st_uid);
	EQ(0, as_nobody(other_reads_private));
	OK(lchown("shared/link", 0, 0));
	EQ(0, look("shared/link").st_uid);
	remove_all();
}
