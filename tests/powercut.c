/*
 * Stops the file system below a directory as a power cut would: nothing that
 * it has not written yet is written, its log included.  Used by sh/powercut.sh;
 * ext4 and xfs, root only.
 *
 * Prints a file first: what was acknowledged before the cut.  That counts, and
 * no later answer does: a sync that the cut overtakes may return success, as
 * these kernels stop a file system without waiting for it.  A machine without
 * power returns nothing.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* One number for both: XFS_IOC_GOINGDOWN and EXT4_IOC_SHUTDOWN. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define WITHOUT_LOG 2

static int print_file(const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(STDOUT_FILENO, buffer, (size_t)n) != n)
			break;
	if (n != 0)
		perror(path);
	if (fd >= 0)
		(void)close(fd);
	return n != 0;
}

int main(int argc, char **argv)
{
	uint32_t how = WITHOUT_LOG;
	int fd, r;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: powercut DIRECTORY [FILE]\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	if (argc == 3 && print_file(argv[2]) != 0)
		return 1;
	r = ioctl(fd, SHUTDOWN, &how);
	if (r < 0)
		perror("shutdown");
	(void)close(fd);
	return r < 0;
}
