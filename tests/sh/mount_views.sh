#!/bin/bash
# Read-only views over a real mount, compared with a plain tree.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
tree=$TMP/tree
mkdir "$mnt" "$tree"

# A tree with names, sizes, modes and times of all kinds.
python3 - "$tree" <<'END'
import os, random, sys
rng = random.Random(7)
root = os.fsencode(sys.argv[1])
words = [b"alpha", b"beta", b"brown", b"42", b"a,b,c", b"\n"]
def put(path, data, mode=0o644, mtime_ns=1767225600123456789):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)
    os.utime(path, ns=(mtime_ns, mtime_ns))
for i in range(1500):
    size = rng.choice([0, 1, 100, 4095, 4096, 4097, 9000])
    data = b" ".join(rng.choice(words) for _ in range(size // 3 + 1))[:size]
    put(b"small/d%02d/f%04d" % (i % 13, i), data, rng.choice([0o600, 0o644, 0o755, 0o400]), i * 10**9 + i)
put(b"odd/with space", b"1")
put(b"odd/new\nline", b"2")
put(b"odd/\xff\xfe not utf-8", b"3")
put(b"odd/" + b"n" * 255, b"4")
put(b"odd/before 1970", b"5", mtime_ns=-1234567891)
put(b"odd/.hidden", b"6")
put(b"a.txt", b"sorts before a/")
put(b"a/b", b"sorts behind a.txt")
put("odd/ünïcödé".encode(), b"7")
put(b"/".join([b"deep"] * 100) + b"/end", b"8")
put(b"large/random", rng.randbytes(3000000))
put(b"large/text", b"".join(b"%d,brown\n" % i for i in range(300000)))
put(b"large/odd size", rng.randbytes(1048577))
END
fresh_store
"$INCRCTL" dataset create in out
"$INCRCTL" commit in "$tree" -q

"$INCRCTL" mount "$mnt" t -i in=in -o out=out -q
added=$mnt/in/added
t "diff sees no difference" diff -r "$tree" "$added"
list() {
	(cd "$1" && find . -type f -printf '%P %s %m %T@\0' | sort -z | sha256sum)
}
t_out "find sees the same names, sizes, modes and times" "$(list "$tree")" list "$added"
list_dirs() {
	(cd "$1" && find . -type d -printf '%P\0' | sort -z | sha256sum)
}
t_out "and the same directories" "$(list_dirs "$tree")" list_dirs "$added"
numbers() {
	(cd "$1" && find . -type f -printf '%P %i\0' | sort -z | sha256sum)
}
t_out "current has the inode numbers of added" "$(numbers "$added")" numbers "$mnt/in/current"
t "files of different paths have different numbers" sh -c \
	"[ -z \"\$(find $added -type f -printf '%i\n' | sort | uniq -d)\" ]"
t "readdir tells the numbers that stat does" python3 -c '
import os, sys
for where, dirs, files in os.walk(os.fsencode(sys.argv[1])):
    for e in os.scandir(where):
        assert e.inode() == e.stat(follow_symlinks=False).st_ino, e.path' "$added"
t "diff tells an empty view from a full one" sh -c "! diff -r $mnt/in/previous $mnt/in/current >/dev/null"
if command -v tar >/dev/null; then
	(cd "$tree" && tar --format=pax -cf "$TMP/tree.tar" .)
	(cd "$added" && tar -cf "$TMP/copy.tar" . && mkdir "$TMP/copy" && tar -C "$TMP/copy" -xf "$TMP/copy.tar")
	t "tar copies it" diff -r "$tree" "$TMP/copy"
fi
if command -v rsync >/dev/null; then
	t_out "rsync -c finds nothing to do" "" rsync -rcn --out-format=%n "$tree/" "$added/"
fi
for view in previous modified removed; do
	t_out "$view is empty, not missing" "" ls -A "$mnt/in/$view"
done
seed=${SEED:-$RANDOM}
t "readers at once see the same bytes, seed $seed" \
	python3 "$SRCDIR/tests/sh/mount_read.py" "$tree" "$added" 2 "$seed"

# Lists
t_out "build.json names the build" b1 python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["build"])' \
	"$mnt/.incr/build.json"
list_added() {
	sort -z <"$mnt/.incr/in.added" | sha256sum
}
t_out "in.added lists the paths" "$(cd "$tree" && find . -type f -printf '%P\0' | sort -z | sha256sum)" list_added
t_out "in.removed is empty" 0 stat -c %s "$mnt/.incr/in.removed"
t_out "a list tells its size" "$(wc -c <"$mnt/.incr/in.added")" stat -c %s "$mnt/.incr/in.added"

# Nothing can be changed
for op in "touch $added/x" "rm -f $added/a.txt" "mkdir $added/d" "mv $added/a.txt $added/b.txt" \
	"ln $added/a.txt $added/l" "chmod 777 $added/a.txt" "truncate -s 1 $added/a.txt" \
	"touch $mnt/in/x" "touch $mnt/x" "touch $mnt/out/added/x" "touch $mnt/out/current/x" \
	"touch $mnt/out/previous/x" "setfattr -n user.a -v b $added/a.txt"; do
	command -v "${op%% *}" >/dev/null || continue
	t_grep "refused: ${op%% *} ${op##*/mnt}" "Read-only|Operation not|not supported" sh -c "$op"
done
t_exit 2 "a name that is too long is not there" ls "$added/$(printf 'n%.0s' {1..256})"
t_exit 1 "what is below a file is not there" cat "$added/a.txt/b"
t "statfs answers" df "$mnt"
t_out "the mount says whose store it is" "$INCR_STORE#b1" sh -c "df --output=source $mnt | tail -n 1"
"$INCRCTL" unmount "$mnt" >unmount.out

# A directory with many entries
mkdir many
(cd many && seq -f 'entry-%06g' 60000 | xargs touch)
"$INCRCTL" dataset create many
"$INCRCTL" commit many many -q
"$INCRCTL" mount "$mnt" -q
t_out "a large directory lists all entries once" 60000 sh -c "ls -U $mnt/many/current | sort -u | wc -l"
t "seekdir goes back to each place" python3 - "$mnt/many/current" <<'END'
import ctypes, ctypes.util, random, sys
libc = ctypes.CDLL(None, use_errno=True)
class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("len", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]
libc.opendir.restype = ctypes.c_void_p
libc.readdir.argtypes = [ctypes.c_void_p]
libc.readdir.restype = ctypes.POINTER(Dirent)
libc.telldir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
d = libc.opendir(sys.argv[1].encode())
seen = []
while True:
    at = libc.telldir(d)
    e = libc.readdir(d)
    if not e:
        break
    seen.append((at, e.contents.name))
assert len(seen) == 60002, len(seen)
rng = random.Random(1)
for at, name in rng.sample(seen, 300):
    libc.seekdir(d, at)
    assert libc.readdir(d).contents.name == name
END
"$INCRCTL" unmount "$mnt"

done_testing
