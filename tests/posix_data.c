/*
 * Files and their bytes.
 */
#include "config.h"

#include "posix_check.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_flags(void)
{
	int fd;
	char buffer[64];

	fd = open("f", O_WRONLY | O_TRUNC);
	EQ(0, look("f").st_size);
	OK(close(fd));
	fd = open("f", O_RDWR | O_CREAT, 0600);
	EQ(0640, look("f").st_mode & 07777);
	EQ(0, write(fd, "", 0));
	EQ(0, look("f").st_size);
	OK(close(fd));
	OK(unlink("f"));
	ERR(ENOENT, unlink("f"));
	fd = creat("f", 0600);
	TRUE(fd >= 0);
	EQ(O_WRONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
	OK(close(fd));
	fd = open("f", O_RDWR | O_NONBLOCK | O_SYNC);
	EQ(3, write(fd, "syn", 3));
	OK(close(fd));
	fd = open("f", O_RDWR | O_DSYNC);
	EQ(3, pwrite(fd, "SYN", 3, 0));
	OK(close(fd));
	TRUE(has("f", "SYN"));
	fd = open("f", O_PATH);
	TRUE(fd >= 0);
	ERR(EBADF, read(fd, buffer, 1));
	OK(fstat(fd, &(struct stat){ 0 }));
	OK(close(fd));
	OK(unlink("f"));
}

/* A duplicate shares the offset, another open does not. */
static void check_two_opens(int fd)
{
	int fd2;
	char buffer[64];

	fd2 = dup(fd);
	EQ(3, lseek(fd2, 3, SEEK_SET));
	EQ(3, lseek(fd, 0, SEEK_CUR));
	OK(close(fd2));
	fd2 = open("f", O_RDONLY);
	EQ(0, lseek(fd2, 0, SEEK_CUR));
	/* two opens see each other's writes at once */
	EQ(2, pwrite(fd, "ZZ", 2, 0));
	EQ(2, pread(fd2, buffer, 2, 0));
	TRUE(memcmp(buffer, "ZZ", 2) == 0);
	ERR(EBADF, write(fd2, "x", 1));
	OK(close(fd2));
	fd2 = open("f", O_WRONLY);
	ERR(EBADF, read(fd2, buffer, 1));
	OK(close(fd2));
	ERR(EBADF, close(fd2));
}

void test_files(void)
{
	char buffer[64];
	struct iovec iov[2] = { { buffer, 3 }, { buffer + 3, 5 } };
	int fd;

	ERR(ENOENT, open("f", O_RDONLY));
	fd = open("f", O_RDWR | O_CREAT | O_EXCL, 0640);
	TRUE(fd >= 0);
	ERR(EEXIST, open("f", O_RDWR | O_CREAT | O_EXCL, 0640));
	EQ(S_IFREG | 0640, look("f").st_mode);
	EQ(0, look("f").st_size);
	EQ(1, look("f").st_nlink);
	EQ(5, write(fd, "hello", 5));
	EQ(5, lseek(fd, 0, SEEK_CUR));
	EQ(5, look("f").st_size);
	EQ(0, lseek(fd, 0, SEEK_SET));
	EQ(5, read(fd, buffer, sizeof(buffer)));
	EQ(0, read(fd, buffer, sizeof(buffer)));
	EQ(3, pwrite(fd, "HEL", 3, 0));
	EQ(2, pread(fd, buffer, sizeof(buffer), 3));
	TRUE(memcmp(buffer, "lo", 2) == 0);
	EQ(5, lseek(fd, 0, SEEK_CUR));
	TRUE(has("f", "HELlo"));
	EQ(0, pread(fd, buffer, 1, 5));
	EQ(0, pread(fd, buffer, 1, 5000));
	EQ(8, (memcpy(buffer, "abcdefgh", 8), writev(fd, iov, 2)));
	TRUE(has("f", "HELloabcdefgh"));
	EQ(0, lseek(fd, 0, SEEK_SET));
	EQ(8, readv(fd, iov, 2));
	TRUE(memcmp(buffer, "HELloabc", 8) == 0);
	EQ(13, lseek(fd, 0, SEEK_END));
	EQ(20, lseek(fd, 7, SEEK_CUR));
	ERR(EINVAL, lseek(fd, -1, SEEK_SET));
	EQ(1, write(fd, "x", 1));
	EQ(21, look("f").st_size);
	EQ(1, pread(fd, buffer, 1, 15));
	EQ(0, buffer[0]);
	check_two_opens(fd);
	OK(fsync(fd));
	OK(fdatasync(fd));
	OK(syncfs(fd));
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	OK(close(fd));
	check_flags();
}

void test_append(void)
{
	int fd, fd2;

	OK(put("log", "1"));
	fd = open("log", O_WRONLY | O_APPEND);
	fd2 = open("log", O_WRONLY | O_APPEND);
	EQ(1, write(fd, "2", 1));
	EQ(1, write(fd2, "3", 1));
	EQ(1, write(fd, "4", 1));
	TRUE(has("log", "1234"));
	EQ(0, lseek(fd, 0, SEEK_SET));
	EQ(1, write(fd, "5", 1));
	TRUE(has("log", "12345"));
	/* Linux: pwrite() on such a descriptor appends too */
	EQ(1, pwrite(fd, "6", 1, 0));
	TRUE(has("log", "123456"));
	OK(ftruncate(fd, 2));
	EQ(1, write(fd2, "7", 1));
	TRUE(has("log", "127"));
	OK(fcntl(fd, F_SETFL, 0));
	EQ(1, (lseek(fd, 0, SEEK_SET), write(fd, "x", 1)));
	TRUE(has("log", "x27"));
	OK(fcntl(fd, F_SETFL, O_APPEND));
	EQ(1, write(fd, "8", 1));
	TRUE(has("log", "x278"));
	OK(close(fd));
	OK(close(fd2));
	OK(unlink("log"));
	/* many processes append whole lines */
	OK(put("lines", ""));
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			fd = open("lines", O_WRONLY | O_APPEND);
			for (int n = 0; n < 50; n++)
				if (write(fd, "a whole line\n", 13) != 13)
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < 4; i++) {
		int status = -1;

		TRUE(wait(&status) > 0 && status == 0);
	}
	EQ(4 * 50 * 13, look("lines").st_size);
	OK(unlink("lines"));
}

void test_unlinked(void)
{
	struct stat st;
	int fd, dirfd;

	OK(put("gone", "hello"));
	fd = open("gone", O_RDWR);
	OK(unlink("gone"));
	TRUE(!exists("gone"));
	EQ(0, n_entries("."));
	TRUE(fd_has(fd, "hello"));
	EQ(5, pwrite(fd, "world", 5, 5));
	TRUE(fd_has(fd, "helloworld"));
	OK(fstat(fd, &st));
	EQ(0, st.st_nlink);
	EQ(10, st.st_size);
	OK(ftruncate(fd, 3));
	OK(fchmod(fd, 0600));
	OK(fstat(fd, &st));
	EQ(3, st.st_size);
	EQ(0600, st.st_mode & 07777);
	OK(futimens(fd, (struct timespec[]){ { 1, 2 }, { 3, 4 } }));
	OK(fstat(fd, &st));
	EQ(3, st.st_mtim.tv_sec);
	OK(fsync(fd));
	/* the name is free for another file */
	OK(put("gone", "another"));
	TRUE(fd_has(fd, "hel"));
	TRUE(has("gone", "another"));
	OK(close(fd));
	TRUE(has("gone", "another"));
	/* the same when a rename takes the name */
	fd = open("gone", O_RDWR);
	OK(put("new", "new"));
	OK(rename("new", "gone"));
	TRUE(fd_has(fd, "another"));
	OK(fstat(fd, &st));
	EQ(0, st.st_nlink);
	OK(close(fd));
	TRUE(has("gone", "new"));
	OK(unlink("gone"));
	/* a directory that is open */
	OK(mkdir("d", 0755));
	dirfd = open("d", O_RDONLY | O_DIRECTORY);
	OK(rmdir("d"));
	ERR(ENOENT, openat(dirfd, "f", O_WRONLY | O_CREAT, 0644));
	OK(fstat(dirfd, &st));
	OK(close(dirfd));
	TRUE(!exists("d"));
}

void test_truncate(void)
{
	char buffer[8192];
	int fd;

	OK(put("t", "0123456789"));
	OK(truncate("t", 4));
	TRUE(has("t", "0123"));
	OK(truncate("t", 8));
	fd = open("t", O_RDWR);
	EQ(8, read(fd, buffer, sizeof(buffer)));
	TRUE(memcmp(buffer, "0123\0\0\0\0", 8) == 0);
	OK(ftruncate(fd, 0));
	EQ(0, look("t").st_size);
	OK(ftruncate(fd, 5000));
	EQ(5000, pread(fd, buffer, sizeof(buffer), 0));
	TRUE(buffer[0] == 0 && buffer[4999] == 0);
	ERR(EINVAL, ftruncate(fd, -1));
	ERR(EINVAL, truncate("t", -1));
	ERR(ENOENT, truncate("no", 1));
	ERR(EISDIR, truncate(".", 1));
	OK(close(fd));
	fd = open("t", O_RDONLY);
	ERR(EINVAL, ftruncate(fd, 1));
	OK(close(fd));
	/* what was cut off does not come back */
	fd = open("t", O_RDWR | O_TRUNC);
	memset(buffer, 'z', sizeof(buffer));
	EQ(8192, write(fd, buffer, 8192));
	OK(ftruncate(fd, 100));
	OK(ftruncate(fd, 8192));
	EQ(8192, pread(fd, buffer, 8192, 0));
	TRUE(buffer[99] == 'z' && buffer[100] == 0 && buffer[8191] == 0);
	/* far out */
	OK(ftruncate(fd, (off_t)1 << 33));
	EQ((long long)1 << 33, (long long)look("t").st_size);
	EQ(1, pwrite(fd, "e", 1, ((off_t)1 << 33) - 1));
	EQ(1, pread(fd, buffer, 2, ((off_t)1 << 33) - 1));
	EQ('e', buffer[0]);
	TRUE(look("t").st_blocks < 1000);
	EQ(0, lseek(fd, 0, SEEK_DATA) >= 0 ? 0 : -1);
	TRUE(lseek(fd, 8192, SEEK_HOLE) >= 8192);
	ERR(ENXIO, lseek(fd, (off_t)1 << 34, SEEK_DATA));
	OK(close(fd));
	OK(unlink("t"));
}

void test_fallocate(void)
{
	char buffer[16384], zeros[4096] = { 0 };
	int fd = open("a", O_RDWR | O_CREAT, 0644);

	OK(fallocate(fd, 0, 0, 10000));
	EQ(10000, look("a").st_size);
	EQ(10000, pread(fd, buffer, sizeof(buffer), 0));
	TRUE(buffer[0] == 0 && buffer[9999] == 0);
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 10000, 10000));
	EQ(10000, look("a").st_size);
	OK(posix_fallocate(fd, 0, 16384));
	EQ(16384, look("a").st_size);
	memset(buffer, 'q', sizeof(buffer));
	EQ(16384, pwrite(fd, buffer, 16384, 0));
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096,
		     4096));
	EQ(16384, pread(fd, buffer, sizeof(buffer), 0));
	TRUE(memcmp(buffer + 4096, zeros, 4096) == 0);
	TRUE(buffer[4095] == 'q' && buffer[8192] == 'q');
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 10));
	EQ(16384, pread(fd, buffer, sizeof(buffer), 0));
	TRUE(buffer[99] == 'q' && buffer[100] == 0 && buffer[109] == 0 &&
	     buffer[110] == 'q');
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 12288, 4096));
	EQ(4096, pread(fd, buffer, 4096, 12288));
	TRUE(memcmp(buffer, zeros, 4096) == 0);
	ERR(EINVAL, fallocate(fd, 0, 0, 0));
	ERR(EINVAL, fallocate(fd, 0, -1, 10));
	ERR(EFBIG, fallocate(fd, 0, INT64_MAX - 10, 5));
	OK(close(fd));
	fd = open("a", O_RDONLY);
	ERR(EBADF, fallocate(fd, 0, 0, 10));
	OK(close(fd));
	OK(unlink("a"));
}

void test_copies(void)
{
	char buffer[8192];
	int from, to;
	off_t off = 0;

	memset(buffer, 'c', sizeof(buffer));
	from = open("from", O_RDWR | O_CREAT, 0644);
	to = open("to", O_RDWR | O_CREAT, 0644);
	EQ(8192, write(from, buffer, sizeof(buffer)));
	EQ(8192, copy_file_range(from, &off, to, NULL, 10000, 0));
	EQ(8192, look("to").st_size);
	EQ(0, copy_file_range(from, &off, to, NULL, 10000, 0));
	off = 0;
	EQ(8192, sendfile(to, from, &off, 10000));
	EQ(16384, look("to").st_size);
	EQ(8192, pread(to, buffer, 8192, 8192));
	TRUE(buffer[0] == 'c' && buffer[8191] == 'c');
	/* into one's own file */
	off = 0;
	EQ(100, copy_file_range(from, &off, from, &(off_t){ 8192 }, 100, 0));
	EQ(8292, look("from").st_size);
	OK(close(from));
	OK(close(to));
	OK(unlink("from"));
	OK(unlink("to"));
}

/* A mapping of a file that is open for appending is written in place. */
static void check_map_changes(void)
{
	char *shared;
	int fd;

	fd = open("m", O_RDWR | O_CREAT | O_APPEND, 0644);
	EQ(4, write(fd, "1234", 4));
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRUE(shared != MAP_FAILED);
	shared[1] = 'x';
	OK(msync(shared, 4096, MS_SYNC));
	EQ(4, look("m").st_size);
	OK(munmap(shared, 4096));
	EQ(1, write(fd, "5", 1));
	TRUE(has("m", "1x345"));
	OK(close(fd));
	OK(unlink("m"));
	/* new bytes reach a mapping that is there */
	fd = open("m", O_RDWR | O_CREAT, 0644);
	EQ(4, write(fd, "1234", 4));
	shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	EQ('1', shared[0]);
	EQ(1, pwrite(fd, "9", 1, 0));
	EQ('9', shared[0]);
	OK(ftruncate(fd, 8));
	EQ(0, shared[6]);
	OK(munmap(shared, 4096));
	OK(close(fd));
	OK(unlink("m"));
}

void test_mmap(void)
{
	const size_t size = 20000;
	char *shared, *other, *private, c;
	int fd = open("m", O_RDWR | O_CREAT, 0644);

	OK(ftruncate(fd, (off_t)size));
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRUE(shared != MAP_FAILED);
	other = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	TRUE(other != MAP_FAILED);
	private = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	TRUE(private != MAP_FAILED);
	if (shared == MAP_FAILED || other == MAP_FAILED ||
	    private == MAP_FAILED)
		return;
	memcpy(shared + 9000, "mapped", 6);
	TRUE(memcmp(other + 9000, "mapped", 6) == 0);
	EQ(1, pread(fd, &c, 1, 9000));
	EQ('m', c);
	EQ(5, pwrite(fd, "write", 5, 100));
	TRUE(memcmp(shared + 100, "write", 5) == 0);
	private[0] = 'p';
	EQ(0, shared[0]);
	OK(msync(shared, size, MS_SYNC));
	OK(msync(shared, size, MS_ASYNC));
	OK(close(fd)); /* the mapping stays */
	memcpy(shared + 19990, "end", 3);
	OK(munmap(shared, size));
	OK(munmap(other, size));
	OK(munmap(private, size));
	fd = open("m", O_RDONLY);
	EQ(1, pread(fd, &c, 1, 19990));
	EQ('e', c);
	TRUE(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
	     MAP_FAILED);
	EQ(EACCES, errno);
	shared = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	OK(unlink("m"));
	EQ('e', shared[19990]);
	EQ('w', shared[100]);
	OK(munmap(shared, size));
	OK(close(fd));
	check_map_changes();
}
