#!/bin/bash
# Live output views: what was staged is seen by whoever opens it next.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
out=$mnt/out
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create in out
echo a >a && "$INCRCTL" commit in a -q
run=("$INCRCTL" run tr -i in=in -o out=out)
t_exit 0 "a first build" "${run[@]}" -- sh -c \
	'cd "$INCR_OUT_OUT" && mkdir d && echo base >base && echo below >d/below && echo kept >d/kept'
echo b >b && "$INCRCTL" commit in b -q
"$INCRCTL" mount "$mnt" tr -q

t_out "previous is what there was" "$(printf 'base\nd\nd/below\nd/kept')" sh -c "cd $out/previous && find * | sort"
t_out "current too, as long as nothing is staged" "$(printf 'base\nd\nd/below\nd/kept')" \
	sh -c "cd $out/current && find * | sort"
t_out "added is empty" "" ls -A "$out/added"
echo new >"$out/staging/new"
t_out "what was written is in added" new cat "$out/added/new"
t_out "and in current" new cat "$out/current/new"
t_exit 1 "but not in previous" cat "$out/previous/new"
cat "$out/current/base" >/dev/null
echo staged >"$out/staging/base"
t_out "a staged file covers the one below" staged cat "$out/current/base"
t_out "not in previous" base cat "$out/previous/base"
rm "$out/staging/base"
t_out "and uncovers it when it goes" base cat "$out/current/base"
mkdir "$out/staging/d" && echo over >"$out/staging/d/below" && echo deep >"$out/staging/d/deep"
t_out "directories are merged" "$(printf 'below\ndeep\nkept')" ls "$out/current/d"
t_out "each file from where it is" "$(printf 'over\ndeep\nkept')" \
	sh -c "cd $out/current/d && cat below deep kept"
t_out "added has what is staged alone" "$(printf 'below\ndeep')" ls "$out/added/d"
ln -s new "$out/staging/link" && mkfifo "$out/staging/fifo"
t "links and special files are not shown" sh -c "! ls $out/added $out/current | grep -E 'link|fifo'"
rm "$out/staging/link" "$out/staging/fifo"
ln -s / "$out/staging/up"
t_exit 2 "nor is what lies behind them" ls "$out/added/up/etc"
rm "$out/staging/up"
t_exit 2 "added cannot be written" sh -c "echo x >$out/added/x"

# Each way to change a file is seen by the next open
t "a file rewritten 300 times is read as written" bash -c '
	for i in $(seq 300); do
		echo "value $i" >"$0/staging/loop"
		[ "$(<"$0/current/loop")" = "value $i" ] || exit 1
		[ "$(<"$0/added/loop")" = "value $i" ] || exit 1
	done' "$out"
t "also through a rename" bash -c '
	for i in $(seq 100); do
		echo "value $i" >"$0/staging/tmp" && mv "$0/staging/tmp" "$0/staging/loop"
		[ "$(<"$0/current/loop")" = "value $i" ] || exit 1
	done' "$out"
t "in place, with the same size and time" python3 - "$out" <<'END'
import os, sys
staged, shown = sys.argv[1] + "/staging/same", sys.argv[1] + "/current/same"
fd = os.open(staged, os.O_RDWR | os.O_CREAT)
for i in range(200):
    data = b"%04d" % i * 2048
    os.pwrite(fd, data, 0)
    os.utime(staged, ns=(10**18, 10**18))
    assert open(shown, "rb").read() == data, i
os.close(fd)
END
t "a descriptor follows a file that grows" python3 - "$out" <<'END'
import os, sys
w = open(sys.argv[1] + "/staging/grows", "wb", buffering=0)
w.write(b"a" * 5000)
fd = os.open(sys.argv[1] + "/added/grows", os.O_RDONLY)
assert os.read(fd, 10000) == b"a" * 5000
w.write(b"b" * 5000)
assert os.fstat(fd).st_size == 10000
assert os.read(fd, 10000) == b"b" * 5000
END
t "the number of a file does not change while it grows" python3 - "$out" <<'END'
import os, sys
before = os.stat(sys.argv[1] + "/added/grows").st_ino
open(sys.argv[1] + "/staging/grows", "ab").write(b"more")
assert os.stat(sys.argv[1] + "/added/grows").st_ino == before
END
t "a listing is live" bash -c '
	for i in $(seq 50); do
		: >"$0/staging/many$i"
		[ "$(ls "$0/added" | grep -c many)" = $i ] || exit 1
		[ "$(ls "$0/current" | grep -c many)" = $i ] || exit 1
	done' "$out"
mkdir "$out/staging/big"
(cd "$out/staging/big" && seq -f 'f%g' 20000 | xargs touch)
t_out "a large one too" 20000 sh -c "ls -U $out/current/big | sort -u | wc -l"
t "find and du walk current" sh -c "find $out/current -type f -exec cat {} + >/dev/null && du -s $out/current"
rm -r "$out/staging/big" "$out"/staging/many*
before=$(cd "$out/current" && find . -type f -exec sha256sum {} + | sort)
t_grep "unmount commits it" "UPDATE out" "$INCRCTL" unmount "$mnt"
mkdir after && "$INCRCTL" export out after >/dev/null
t_out "and the result is what current showed" "$before" sh -c "cd after && find . -type f -exec sha256sum {} + | sort"

# A path cannot be a file and a directory: what is staged is shown
"$INCRCTL" mount "$mnt" tr -q
mkdir "$out/staging/base" && echo e >"$out/staging/base/e" && echo file >"$out/staging/d"
t_out "a staged directory stands in place of a file" e cat "$out/current/base/e"
t_out "and a staged file in place of a directory" file cat "$out/current/d"
t_out "each is listed once" "$(printf 'base\nd')" sh -c "ls $out/current | grep -xE 'base|d'"
t_exit 4 "such a commit is refused" "$INCRCTL" unmount "$mnt"
"$INCRCTL" build abort "$("$INCRCTL" build list --json | python3 -c '
import json, sys
print(next(b["build"] for b in map(json.loads, sys.stdin) if b["status"] == "open"))')" -q

# Other write modes, and a snapshot
"$INCRCTL" mount "$mnt" tr --write-mode out=replace -q
t_out "under replace current starts empty" "" ls -A "$out/current"
t_out "previous does not" kept cat "$out/previous/d/kept"
"$INCRCTL" unmount "$mnt" --abort -q
"$INCRCTL" mount "$mnt" tr --semantic-version 2 -q
t_out "in a snapshot current starts empty" "" ls -A "$out/current"
t_out "and so does previous" "" ls -A "$out/previous"
t_exit 2 "abort-out dangles" ls -L "$mnt/.incr/abort-out"
"$INCRCTL" unmount "$mnt" --abort -q

done_testing
