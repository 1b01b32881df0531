#!/bin/bash
# Damaged content is an I/O error of the files that it touches, never wrong
# bytes, also when its neighbours are read.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
mkdir "$mnt" tree
for i in $(seq -w 3000); do
	{
		seq "$i" "$((10#$i + 400))"
		head -c 600 /dev/urandom # so that most of the pack is content
	} >"tree/f$i"
done
fresh_store
"$INCRCTL" dataset create in
"$INCRCTL" commit in tree -q
pack=$(find "$INCR_STORE" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
size=$(stat -c %s "$pack")
[ "$size" -gt 100000 ] || skip_all "the content is not in a file of its own"
flip() {
	python3 - "$@" <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
off = int(sys.argv[2])
byte = os.pread(fd, 1, off)[0]
os.pwrite(fd, bytes([byte ^ 0x10]), off)
END
}
flip "$pack" $((size / 2))
"$INCRCTL" mount "$mnt" --foreground >mount.log 2>&1 &
kill_later $!
wait_until 10 ls "$mnt/in/current"
read_all() {
	n_good=0 n_refused=0 n_wrong=0
	for f in tree/*; do
		if ! cat "$mnt/in/current/${f#tree/}" >got 2>err; then
			grep -q "Input/output error" err && n_refused=$((n_refused + 1))
		elif cmp -s "$f" got; then
			n_good=$((n_good + 1))
		else
			n_wrong=$((n_wrong + 1))
		fi
	done
}
ls -l "$mnt/in/current" >/dev/null
read_all
t_out "no wrong bytes" 0 echo $n_wrong
t "some files are refused" [ $n_refused -gt 0 ]
t "most are read" [ $n_good -gt 2000 ]
t_out "all are one or the other" 3000 echo $((n_good + n_refused))
first=$n_refused
read_all
t_out "again, the same files" $first echo $n_refused
t_out "and no wrong bytes" 0 echo $n_wrong
t "the mount says what is damaged" grep -qE "$(basename "$pack")|checksum|damaged|corrupt" mount.log
"$INCRCTL" unmount "$mnt"

# One large file: in order, where the mount reads ahead, and here and there,
# where it gives the kernel what lies around.
rm -rf tree && mkdir tree
seq 1500000 >tree/large
fresh_store
"$INCRCTL" dataset create in
"$INCRCTL" commit in tree -q
pack=$(find "$INCR_STORE" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
flip "$pack" $(($(stat -c %s "$pack") / 2))
for order in forwards anyhow; do
	"$INCRCTL" mount "$mnt" --foreground >mount.log 2>&1 &
	kill_later $!
	wait_until 10 ls "$mnt/in/current"
	t_out "a large file, $order: an error in one frame, no wrong bytes" "wrong 0, refused within 65536" \
		python3 - tree/large "$mnt/in/current/large" $order <<'END'
import errno, os, random, sys
want = open(sys.argv[1], "rb").read()
fd = os.open(sys.argv[2], os.O_RDONLY)
blocks = list(range(0, len(want), 4096))
if sys.argv[3] == "anyhow":
    random.Random(3).shuffle(blocks)
wrong, refused = 0, []
for off in blocks:
    try:
        wrong += os.pread(fd, 4096, off) != want[off : off + 4096]
    except OSError as e:
        assert e.errno == errno.EIO
        refused.append(off)
span = max(refused) + 4096 - min(refused)
print(f"wrong {wrong}, refused within {65536 if span <= 65536 else span}")
END
	t "the mount names file, offset and pack, $order" \
		grep -qE "large of t1: packs/$(basename "$pack") at byte [0-9]+" mount.log
	"$INCRCTL" unmount "$mnt"
done

done_testing
