#!/bin/bash
# staging served through the mount, for programs that see nothing else.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
staging=$mnt/out/staging
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create in out
mkdir tree
for i in $(seq 300); do
	mkdir -p "tree/d$((i % 7))" && seq "$i" >"tree/d$((i % 7))/f$i"
done
"$INCRCTL" commit in tree -q
other=()
[ "$(id -u)" = 0 ] && other=(--allow-other)
"$INCRCTL" mount "$mnt" tr -i in=in -o out=out --staging=fuse "${other[@]+"${other[@]}"}" -q

t "staging is a directory of the mount" sh -c "[ -d $staging ] && ! [ -L $staging ]"
t "the views are as ever" diff -r tree "$mnt/in/added"
t_exit 2 "and read-only" sh -c "echo x >$mnt/in/added/x"
t_exit 2 "also for a file that is there" sh -c "echo x >>$mnt/in/added/d1/f1"
t_exit 1 "also for root's chmod" chmod 600 "$mnt/in/added/d1/f1"
t "cp -a into it" cp -a tree "$staging/copy"
t "is the same there" diff -r tree "$staging/copy"
t "and in added" diff -r tree "$mnt/out/added/copy"
t "rm -r" rm -r "$staging/copy"
t_out "leaves nothing" "" ls -A "$staging"

t "POSIX semantics" python3 - "$staging" <<'END'
import ctypes, errno, fcntl, mmap, os, sys
root = sys.argv[1]
os.chdir(root)
def put(name, data):
    with open(name, "wb") as f:
        f.write(data)
def get(name):
    with open(name, "rb") as f:
        return f.read()
# a file that is open outlives its name
f = open("gone", "wb+")
f.write(b"hello world")
f.flush()
os.unlink("gone")
f.seek(0)
assert f.read() == b"hello world"
assert os.fstat(f.fileno()).st_size == 11 and os.fstat(f.fileno()).st_nlink == 0
os.ftruncate(f.fileno(), 5)
assert os.fstat(f.fileno()).st_size == 5
os.fchmod(f.fileno(), 0o600)
put("gone", b"another")
assert get("gone") == b"another"
f.close()
# hard links are one file
put("a", b"1")
os.link("a", "b")
assert os.stat("a").st_ino == os.stat("b").st_ino and os.stat("a").st_nlink == 2
os.rename("a", "c")
with open("c", "ab") as f:
    f.write(b"2")
assert get("b") == b"12"
os.unlink("b")
assert get("c") == b"12" and os.stat("c").st_nlink == 1
# appends of two writers
fd = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.write(fd, b"1")
with open("log", "ab") as f:
    f.write(b"2")
os.write(fd, b"3")
os.close(fd)
assert get("log") == b"123"
# shared mappings
with open("map", "wb+") as f:
    f.truncate(10000)
    with mmap.mmap(f.fileno(), 10000) as m:
        m[5000:5005] = b"write"
        m.flush()
assert get("map")[5000:5005] == b"write"
# directories move with what is open below them
os.makedirs("d/e")
put("d/e/f", b"deep")
fd = os.open("d/e/f", os.O_RDONLY)
os.rename("d", "d2")
assert os.read(fd, 10) == b"deep" and get("d2/e/f") == b"deep"
os.close(fd)
# rename over, exchange, no replace
put("r1", b"one")
put("r2", b"two")
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b"r1", -100, b"r2", 1) == -1
assert ctypes.get_errno() == errno.EEXIST
assert libc.renameat2(-100, b"r1", -100, b"r2", 2) == 0
assert get("r1") == b"two" and get("r2") == b"one"
os.rename("r1", "r2")
assert get("r2") == b"two" and not os.path.exists("r1")
os.link("r2", "r3")
os.rename("r2", "r3")
assert get("r2") == get("r3") == b"two"
# attributes
os.symlink("r2", "link")
assert os.readlink("link") == "r2" and get("link") == b"two"
os.utime("r2", ns=(5, 1234567890123456789))
assert os.stat("r2").st_mtime_ns == 1234567890123456789
fd = os.open("r2", os.O_RDWR)
os.posix_fallocate(fd, 0, 100)
assert os.stat("r2").st_size == 100
os.fsync(fd)
os.close(fd)
try:
    os.open("r2", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    raise AssertionError
except FileExistsError:
    pass
put("r2", b"")
assert os.stat("r2").st_size == 0
for mask, want in ((0o077, 0o600), (0, 0o666)):
    os.umask(mask)
    put("mode%o" % mask, b"")
    assert os.stat("mode%o" % mask).st_mode & 0o777 == want
os.mkdir("open", 0o777)
assert os.stat("open").st_mode & 0o777 == 0o777
# locks
fd = os.open("lock", os.O_CREAT | os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX)
fcntl.flock(fd, fcntl.LOCK_EX)
# a directory of many
os.mkdir("many")
for i in range(2000):
    put("many/%d" % i, b"%d" % i)
assert sorted(map(int, os.listdir("many"))) == list(range(2000))
try:
    os.rmdir("many")
    raise AssertionError
except OSError as e:
    assert e.errno == errno.ENOTEMPTY
os.mkfifo("fifo")
for name in ("fifo", "link", "lock"):
    os.unlink(name)
END
dd if=/dev/urandom of=block bs=1M count=20 2>/dev/null
t "large files" sh -c "cp block $staging/block && cmp block $staging/block && cmp block $mnt/out/added/block"
t "copies inside" sh -c "cp $staging/block $staging/block2 && cmp block $staging/block2"
t "a sparse copy" sh -c "truncate -s 10M $staging/holes && cp --sparse=always $staging/holes $staging/holes2"
t "sync -f" sync -f "$staging"
if [ ${#other[@]} != 0 ] && id nobody >/dev/null 2>&1; then
	chmod 777 "$staging"
	chmod a+rx "$top" "$TMP"
	t "another user writes" su -s /bin/sh nobody -c "echo n >$staging/of-nobody && mkdir $staging/dir-of-nobody"
	t_out "and owns what was written" "$(id -u nobody) $(id -g nobody)" stat -c '%u %g' "$staging/of-nobody"
	t_out "also directories" "$(id -u nobody)" stat -c '%u' "$staging/dir-of-nobody"
	t_exit 2 "but not what others own" su -s /bin/sh nobody -c "echo n >$staging/log"
else
	skip "other users" "needs root"
fi
before=$(cd "$mnt/out/added" && find . -type f -exec sha256sum {} + | sort)
t_grep "unmount commits it" "SNAPSHOT out" "$INCRCTL" unmount "$mnt"
mkdir after && "$INCRCTL" export out after >/dev/null
t_out "all of it" "$before" sh -c "cd after && find . -type f -exec sha256sum {} + | sort"

done_testing
