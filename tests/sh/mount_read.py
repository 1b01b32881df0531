"""Compare two trees through open, read, pread, seek, mmap, stat and readdir, with
several readers at once.

    mount_read.py PLAIN MOUNTED SECONDS SEED [READERS]
"""
import mmap
import os
import random
import stat
import sys
import time

plain, mounted = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
end = time.monotonic() + float(sys.argv[3])
seed = int(sys.argv[4])
n_readers = int(sys.argv[5]) if len(sys.argv) > 5 else 6

files = sorted(
    os.path.relpath(os.path.join(where, name), plain)
    for where, _, names in os.walk(plain)
    for name in names
)


def whole(root, path):
    with open(os.path.join(root, path), "rb") as f:
        return f.read()


def differs(what, path):
    print("differs:", what, path, flush=True)
    os._exit(1)


def compare_whole(path):
    if whole(plain, path) != whole(mounted, path):
        differs("whole", path)


def compare_pieces(path, rng):
    want = whole(plain, path)
    fd = os.open(os.path.join(mounted, path), os.O_RDONLY)
    for _ in range(5):
        off, size = rng.randrange(len(want) + 10), rng.randrange(200000)
        if os.pread(fd, size, off) != want[off : off + size]:
            differs("piece", path)
    os.close(fd)


def compare_mapped(path, rng):
    want = whole(plain, path)
    if not want:
        return
    with open(os.path.join(mounted, path), "rb") as f:
        with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            off = rng.randrange(len(want))
            if m[off : off + 5000] != want[off : off + 5000]:
                differs("mapped", path)


def compare_seeks(path, rng):
    """The same moves and reads on both, also behind the end."""
    fds = [os.open(os.path.join(root, path), os.O_RDONLY) for root in (plain, mounted)]
    size = os.fstat(fds[0]).st_size
    for _ in range(10):
        whence = rng.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END])
        off, count = rng.randrange(-size // 2 - 1, size + 5000), rng.randrange(9000)
        said = []
        for fd in fds:
            try:
                said.append((os.lseek(fd, off, whence), os.read(fd, count)))
            except OSError as e:
                said.append(e.errno)
        if said[0] != said[1]:
            differs("seek %d %d %d" % (whence, off, count), path)
    for fd in fds:
        os.close(fd)


def compare_stat(path):
    want, got = (os.lstat(os.path.join(root, path)) for root in (plain, mounted))
    if stat.S_ISDIR(want.st_mode):
        same = stat.S_ISDIR(got.st_mode)
    else:
        same = (want.st_mode & ~0o7000, want.st_size, want.st_mtime_ns) == (
            got.st_mode, got.st_size, got.st_mtime_ns)
    if not same:
        differs("stat", path)


def compare_names(path):
    where = os.path.dirname(path)
    names = [
        sorted((e.name, e.is_dir()) for e in os.scandir(os.path.join(root, where)))
        for root in (plain, mounted)
    ]
    if names[0] != names[1]:
        differs("names", where)
    compare_stat(where)
    if os.path.lexists(os.path.join(mounted, path + b".absent")):
        differs("an absent name", path)


def forget_pages(path):
    fd = os.open(os.path.join(mounted, path), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def reader(n):
    rng = random.Random(seed * 100 + n)
    while time.monotonic() < end:
        i = rng.randrange(len(files))
        what = rng.randrange(13)
        if what < 3:
            for path in files[i : i + 50]:
                compare_whole(path)
        elif what < 5:
            compare_whole(files[i])
        elif what < 7:
            compare_pieces(files[i], rng)
        elif what < 8:
            compare_mapped(files[i], rng)
        elif what < 9:
            compare_names(files[i])
        elif what < 11:
            compare_seeks(files[i], rng)
        elif what < 12:
            for path in files[i : i + 50]:
                compare_stat(path)
        else:
            forget_pages(files[i])


pids = []
for n in range(n_readers):
    pid = os.fork()
    if pid == 0:
        reader(n)
        os._exit(0)
    pids.append(pid)
bad = [pid for pid in pids if os.waitpid(pid, 0)[1] != 0]
print("seed", seed)
sys.exit(1 if bad else 0)
