/*
 * Names: renames, links, directories.
 */
#include "config.h"

#include "posix_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As editors and rsync save files, many times. */
static void check_saving(void)
{
	for (int i = 0; i < 50; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%d", i);
		if (put(".saved.tmp", text) < 0 ||
		    rename(".saved.tmp", "saved") < 0 || !has("saved", text))
			TRUE(!"saved by a rename");
	}
	TRUE(has("saved", "49"));
	OK(unlink("saved"));
}

/* Flags. */
static void check_rename_flags(void)
{
	OK(put("x", "x"));
	OK(put("y", "y"));
	ERR(EEXIST, renameat2(AT_FDCWD, "x", AT_FDCWD, "y", RENAME_NOREPLACE));
	OK(renameat2(AT_FDCWD, "x", AT_FDCWD, "z", RENAME_NOREPLACE));
	TRUE(has("z", "x"));
	OK(renameat2(AT_FDCWD, "z", AT_FDCWD, "y", RENAME_EXCHANGE));
	TRUE(has("z", "y") && has("y", "x"));
	OK(renameat2(AT_FDCWD, "z", AT_FDCWD, "g", RENAME_EXCHANGE));
	TRUE(has("g", "y") && has("z/b", "BB"));
	ERR(ENOENT, renameat2(AT_FDCWD, "z", AT_FDCWD, "no", RENAME_EXCHANGE));
	ERR(EINVAL, renameat2(AT_FDCWD, "z", AT_FDCWD, "g",
			      RENAME_EXCHANGE | RENAME_NOREPLACE));
	OK(unlink("z/b"));
	OK(rmdir("z"));
	OK(unlink("g"));
	OK(unlink("y"));
}

void test_rename(void)
{
	ino_t a;
	int fd;

	OK(put("a", "A"));
	OK(put("b", "B"));
	a = look("a").st_ino;
	OK(rename("a", "c"));
	EQ((long long)a, (long long)look("c").st_ino);
	TRUE(!exists("a"));
	OK(rename("c", "b"));
	TRUE(has("b", "A"));
	EQ((long long)a, (long long)look("b").st_ino);
	OK(rename("b", "b"));
	TRUE(has("b", "A"));
	ERR(ENOENT, rename("no", "b"));
	TRUE(has("b", "A"));
	ERR(ENOENT, rename("b", "no/b"));
	ERR(ENOTDIR, rename("b", "b/c"));
	OK(mkdir("d", 0755));
	OK(mkdir("e", 0755));
	ERR(EISDIR, rename("b", "d"));
	ERR(ENOTDIR, rename("d", "b"));
	OK(rename("b", "d/b"));
	TRUE(has("d/b", "A"));
	ERR(EINVAL, rename("d", "d/inside"));
	OK(rename("e", "f"));
	TRUE(exists("f") && !exists("e"));
	ERR(ENOTEMPTY, rename("f", "d"));
	OK(rename("d", "f"));
	TRUE(has("f/b", "A"));
	TRUE(!exists("d"));
	/* what is open moves along */
	fd = open("f/b", O_RDWR);
	OK(rename("f", "g"));
	EQ(2, pwrite(fd, "BB", 2, 0));
	TRUE(has("g/b", "BB"));
	OK(close(fd));
	/* hard links of one file: nothing happens */
	OK(link("g/b", "b"));
	OK(rename("g/b", "b"));
	TRUE(exists("g/b") && exists("b"));
	OK(unlink("b"));
	check_rename_flags();
	EQ(0, n_entries("."));
	check_saving();
}

/* Both names open, one removed and made again. */
static void check_open_names(void)
{
	int fd, fd2;

	OK(put("a", "old"));
	OK(link("a", "b"));
	fd = open("a", O_RDONLY);
	fd2 = open("b", O_RDONLY);
	OK(unlink("a"));
	OK(put("a", "new"));
	TRUE(fd_has(fd, "old") && fd_has(fd2, "old"));
	TRUE(look("a").st_ino != look("b").st_ino);
	OK(close(fd));
	OK(close(fd2));
	OK(unlink("a"));
	OK(unlink("b"));
}

/* A file without a name gets one. */
static void check_unnamed(void)
{
	int fd;

	fd = open(".", O_TMPFILE | O_RDWR, 0644);
	if (fd >= 0) {
		char path[64];

		EQ(3, write(fd, "tmp", 3));
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		OK(linkat(AT_FDCWD, path, AT_FDCWD, "t", AT_SYMLINK_FOLLOW));
		TRUE(has("t", "tmp"));
		OK(close(fd));
		OK(unlink("t"));
	} else {
		/* programs know what to do without it */
		TRUE(errno == EOPNOTSUPP || errno == EISDIR);
	}
}

void test_links(void)
{
	struct stat st;
	int fd;

	OK(put("a", "1"));
	OK(link("a", "b"));
	OK(mkdir("d", 0755));
	OK(link("b", "d/c"));
	EQ(3, look("a").st_nlink);
	EQ(3, look("d/c").st_nlink);
	EQ((long long)look("a").st_ino, (long long)look("b").st_ino);
	EQ((long long)look("a").st_ino, (long long)look("d/c").st_ino);
	ERR(EEXIST, link("a", "b"));
	ERR(ENOENT, link("no", "x"));
	ERR(ENOENT, link("a", "no/x"));
	ERR(EPERM, link("d", "e"));
	/* one file: content, mode, times */
	fd = open("a", O_WRONLY | O_APPEND);
	EQ(1, write(fd, "2", 1));
	TRUE(has("b", "12") && has("d/c", "12"));
	EQ(2, look("d/c").st_size);
	OK(chmod("b", 0600));
	EQ(0600, look("a").st_mode & 07777);
	OK(truncate("d/c", 1));
	EQ(1, look("b").st_size);
	OK(utimensat(AT_FDCWD, "b", (struct timespec[]){ { 7, 0 }, { 8, 9 } },
		     0));
	EQ(8, look("d/c").st_mtim.tv_sec);
	EQ(9, look("a").st_mtim.tv_nsec);
	OK(unlink("a"));
	OK(fstat(fd, &st));
	EQ(2, st.st_nlink);
	EQ(2, look("b").st_nlink);
	EQ(1, write(fd, "3", 1));
	TRUE(has("d/c", "13"));
	OK(unlink("b"));
	EQ(1, look("d/c").st_nlink);
	OK(rename("d/c", "a"));
	TRUE(has("a", "13"));
	OK(close(fd));
	OK(unlink("a"));
	OK(rmdir("d"));
	check_unnamed();
	check_open_names();
}

void test_symlinks(void)
{
	char buffer[64];
	int fd;

	OK(put("f", "file"));
	OK(symlink("f", "s"));
	EQ(1, readlink("s", buffer, sizeof(buffer)));
	TRUE(S_ISLNK(look("s").st_mode));
	EQ(1, look("s").st_size);
	TRUE(has("s", "file"));
	ERR(EEXIST, symlink("x", "s"));
	ERR(EINVAL, readlink("f", buffer, sizeof(buffer)));
	ERR(ENOENT, readlink("no", buffer, sizeof(buffer)));
	ERR(ELOOP, open("s", O_RDONLY | O_NOFOLLOW));
	ERR(EEXIST, open("s", O_WRONLY | O_CREAT | O_EXCL, 0644));
	fd = open("s", O_PATH | O_NOFOLLOW);
	TRUE(fd >= 0);
	OK(close(fd));
	OK(symlink("no", "dangling"));
	ERR(ENOENT, open("dangling", O_RDONLY));
	fd = open("dangling", O_WRONLY | O_CREAT, 0644);
	TRUE(fd >= 0);
	OK(close(fd));
	TRUE(exists("no"));
	OK(unlink("no"));
	OK(symlink("loop", "loop"));
	ERR(ELOOP, open("loop", O_RDONLY));
	OK(mkdir("d", 0755));
	OK(symlink("../f", "d/up"));
	TRUE(has("d/up", "file"));
	OK(symlink("d", "dir"));
	TRUE(has("dir/up", "file"));
	ERR(ENOTDIR, rmdir("dir"));
	ERR(ENOTDIR, open("s", O_RDONLY | O_DIRECTORY));
	OK(rename("s", "s2"));
	TRUE(S_ISLNK(look("s2").st_mode));
	OK(link("s2", "s3"));
	TRUE(S_ISLNK(look("s3").st_mode));
	OK(unlink("s2"));
	OK(unlink("s3"));
	TRUE(has("f", "file"));
	OK(utimensat(AT_FDCWD, "dangling",
		     (struct timespec[]){ { 5, 0 }, { 6, 0 } },
		     AT_SYMLINK_NOFOLLOW));
	EQ(6, look("dangling").st_mtim.tv_sec);
	memset(buffer, 'x', sizeof(buffer));
	ERR(ENOENT, symlink("", "empty"));
	OK(unlink("dangling"));
	OK(unlink("loop"));
	OK(unlink("d/up"));
	OK(unlink("dir"));
	OK(rmdir("d"));
	OK(unlink("f"));
}

/* Depth. */
static void check_depth(void)
{
	char name[300];

	name[0] = '\0';
	for (int i = 0; i < 60; i++) {
		strcat(name, i ? "/dd" : "dd");
		if (mkdir(name, 0755) < 0)
			TRUE(!"a deep directory");
	}
	strcat(name, "/f");
	OK(put(name, "deep"));
	TRUE(has(name, "deep"));
	OK(unlink(name));
	name[strlen(name) - 2] = '\0';
	while (*name) {
		char *slash = strrchr(name, '/');

		if (rmdir(name) < 0)
			TRUE(!"a deep directory is removed");
		*(slash ? slash : name) = '\0';
	}
	EQ(0, n_entries("."));
}

/* A long listing: all once, types, places. */
static void check_listing(void)
{
	struct dirent *entry;
	long place = -1;
	char name[300];
	DIR *dir;
	int n = 0, seen = 0;

	for (int i = 0; i < 700; i++) {
		(void)snprintf(name, sizeof(name), "d/%04d-%060d", i, i);
		n += put(name, "x") == 0;
	}
	EQ(700, n);
	dir = opendir("d");
	TRUE(dir != NULL);
	n = 0;
	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
			seen = -10000;
		seen++;
		if (++n == 300)
			place = telldir(dir);
	}
	EQ(700, seen);
	if (dir) {
		seekdir(dir, place);
		for (n = 0; readdir(dir);)
			n++;
		TRUE(n >= 400 && n <= 402);
		rewinddir(dir);
		for (n = 0; readdir(dir);)
			n++;
		EQ(702, n);
		/* entries removed while they are listed, as rm -r does */
		rewinddir(dir);
		n = 0;
		while ((entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				n += unlinkat(dirfd(dir), entry->d_name, 0) ==
				     0;
		EQ(700, n);
		OK(closedir(dir));
	}
}

/* Names. */
static void check_names(void)
{
	char name[300];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	OK(put(name, "255"));
	TRUE(has(name, "255"));
	OK(unlink(name));
	name[255] = 'n';
	name[256] = '\0';
	ERR(ENAMETOOLONG, open(name, O_WRONLY | O_CREAT, 0644));
	ERR(ENAMETOOLONG, mkdir(name, 0755));
	ERR(ENAMETOOLONG, rename("f", name));
	ERR(ENOENT, open("", O_RDONLY));
	OK(put("with space\tand\nnewline", "x"));
	OK(put("\xff\xfe bytes", "x"));
	OK(put("\xc3\xa4\xe4\xb8\xad", "x"));
	OK(put("-dash", "x"));
	OK(put(".hidden", "x"));
	EQ(7, n_entries("."));
	OK(unlink("with space\tand\nnewline"));
	OK(unlink("\xff\xfe bytes"));
	OK(unlink("\xc3\xa4\xe4\xb8\xad"));
	OK(unlink("-dash"));
	OK(unlink(".hidden"));
}

void test_dirs(void)
{
	char byte;
	int fd;

	OK(mkdir("d", 0750));
	ERR(EEXIST, mkdir("d", 0755));
	ERR(ENOENT, mkdir("no/d", 0755));
	EQ(S_IFDIR | 0750, look("d").st_mode);
	OK(put("f", ""));
	ERR(EEXIST, mkdir("f", 0755));
	ERR(ENOTDIR, mkdir("f/d", 0755));
	ERR(ENOTDIR, open("f/x", O_RDONLY));
	ERR(ENOTDIR, rmdir("f"));
	ERR(EISDIR, unlink("d"));
	ERR(EISDIR, open("d", O_WRONLY));
	ERR(EISDIR, open("d", O_RDWR));
	ERR(ENOTDIR, open("f", O_RDONLY | O_DIRECTORY));
	ERR(ENOENT, rmdir("no"));
	ERR(EINVAL, rmdir("d/."));
	ERR(ENOTEMPTY, rmdir("d/.."));
	fd = open("d", O_RDONLY | O_DIRECTORY);
	ERR(EISDIR, read(fd, &byte, 1));
	OK(mkdirat(fd, "sub", 0755));
	TRUE(exists("d/sub"));
	ERR(ENOTEMPTY, rmdir("d"));
	OK(unlinkat(fd, "sub", AT_REMOVEDIR));
	OK(fsync(fd));
	OK(fchdir(fd));
	OK(put("inside", "1"));
	OK(chdir(".."));
	TRUE(has("d/inside", "1"));
	OK(unlinkat(fd, "inside", 0));
	OK(close(fd));
	/* link count of a directory: two and its directories, or always one */
	EQ(0, (look("d").st_nlink - 1) & ~1U);
	check_names();
	check_listing();
	EQ(0, n_entries("d"));
	OK(rmdir("d"));
	OK(unlink("f"));
	check_depth();
}
