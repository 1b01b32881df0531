"""Compare two trees through open, read and mmap, with several readers at once.

    mount_read.py PLAIN MOUNTED SECONDS SEED
"""
import mmap
import os
import random
import sys
import time

plain, mounted = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
end = time.monotonic() + float(sys.argv[3])
seed = int(sys.argv[4])

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


def compare_names(path):
    where = os.path.dirname(path)
    names = [sorted(os.listdir(os.path.join(root, where))) for root in (plain, mounted)]
    if names[0] != names[1]:
        differs("names", where)


def forget_pages(path):
    fd = os.open(os.path.join(mounted, path), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def reader(n):
    rng = random.Random(seed * 100 + n)
    while time.monotonic() < end:
        i = rng.randrange(len(files))
        what = rng.randrange(10)
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
        else:
            forget_pages(files[i])


pids = []
for n in range(6):
    pid = os.fork()
    if pid == 0:
        reader(n)
        os._exit(0)
    pids.append(pid)
bad = [pid for pid in pids if os.waitpid(pid, 0)[1] != 0]
print("seed", seed)
sys.exit(1 if bad else 0)
