#!/bin/bash
# Views of 1,000,000 files over a real mount: one directory of them all, and
# 100,000 directories of ten files. Names and content are compared with lists
# made from numbers alone, the memory of the mount is held to 64 MiB, times are
# printed. Not part of `make check`: `make check-scale`.
#
# INCR_SCALE=N divides the number of files by N.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

n=$((1000000 / ${INCR_SCALE:-1} / 1000 * 1000))
limit_kib=65536
mnt=$TMP/mnt
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create few flat wide out

# say WHAT COMMAND...: run it and print how long it took, also below t.
exec 3>&1
say() {
	local what=$1 begin=$EPOCHREALTIME status
	shift
	"$@"
	status=$?
	awk -v what="$what" -v a="$begin" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "%-44s %8.3f s\n", what, b - a }' >&3
	return "$status"
}

# Files are links to twenty, since inodes take long to make: file I of the one
# directory, and file K of directory D, hold the number I % 20, (D + K) % 20.
python3 - "$n" <<'END'
import os, sys
n = int(sys.argv[1])
for name in ("few", "flat", "wide"):
    os.mkdir(name)
os.mkdir("held")
for i in range(20):
    with open(f"held/{i}", "w") as f:
        f.write(f"content {i}\n")
    os.link(f"held/{i}", f"few/f{i}")
for i in range(n):
    os.link(f"held/{i % 20}", f"flat/f{i:07}")
for d in range(n // 100):
    os.mkdir(f"wide/d{d:04}")
    for k in range(10):
        os.link(f"held/{(d + k) % 20}", f"wide/d{d:04}/f{k}")
END
"$INCRCTL" commit few few -q
t "one directory of $n files is committed" \
	say "commit of $n files" "$INCRCTL" commit flat flat -q
flat_txn=$("$INCRCTL" log flat --limit 1 | cut -d' ' -f1)
commit_wide() {
	local i
	for i in 0 1 2 3 4 5 6 7 8 9; do
		"$INCRCTL" commit wide wide --prefix "p$i" -q || return
	done
}
t "$((n / 10)) directories are committed" commit_wide
rm -r flat

# What must be seen, in byte order.
seq -f 'f%07.0f' 0 $((n - 1)) >flat.names
wide_list() { # names|dirs|bytes
	awk -v n="$n" -v how="$1" 'BEGIN {
		for (i = 0; i < n / 10; i++) {
			d = i % (n / 100)
			dir = sprintf("p%d/d%04d", i / (n / 100), d)
			if (how == "dirs")
				print dir
			for (k = 0; k < 10 && how != "dirs"; k++) {
				tail = how == "bytes" ? ":content " (d + k) % 20 : ""
				print dir "/f" k tail
			}
		}
	}' | LC_ALL=C sort
}
wide_list names >wide.names
wide_list dirs >wide.dirs
wide_list bytes >wide.bytes
flat_bytes=$(for i in $(seq 0 19); do echo "content $i"; done | sort | sed "s/^/$((n / 20)) /")

# same LIST COMMAND...: the command prints the lines of LIST, in any order.
same() {
	local list=$1
	shift
	"$@" | LC_ALL=C sort | cmp - "$list"
}

peak() {
	awk '/^VmHWM/ { print $2 }' "/proc/$pid/status"
}
check_peak() {
	local kib
	kib=$(peak)
	printf '%-44s %8d KiB\n' "peak memory of the mount after $1" "$kib"
	t "at most $limit_kib KiB after $1, $kib" [ "$kib" -le $limit_kib ]
}

list_long() { # DIRECTORY: names and sizes of ls -lR
	(cd "$1" && ls -lR .) | awk '
		/^\./ { dir = substr($0, 3, length($0) - 3); next }
		/^-/ { print (dir == "" ? "" : dir "/") $NF, $5 }'
}
sizes_of() { # LIST WITH CONTENT: names and sizes
	awk -F: '{ print $1, length($2) + 1 }' "$1"
}
names_of_tar() {
	tar -cf - -C "$1" . | tar -tf - | sed -n 's:^\./::; /[^\/]$/p'
}
bytes_of_tar() {
	tar -cf - -C "$1" . | tar -xOf - | sort | uniq -c | awk '{ print $1, $2, $3 }'
}
bytes_of_files() {
	(cd "$1" && find . -type f -print0 | xargs -0 grep -H '' | cut -c3-)
}

# start_mount WHAT ARGUMENT...: mounts, sets pid.
start_mount() {
	"$INCRCTL" mount "$mnt" "$@" --foreground >mount.log 2>&1 &
	pid=$!
	kill_later $pid
	wait_until 30 mountpoint -q "$mnt"
}

# first_names INPUT: from the mount to its first names. Nothing else than the
# size of the input tells two of them apart.
first_names() {
	"$INCRCTL" mount "$mnt" first -i "in=$1" -o out=out -q 2>err.txt || return
	perl -e 'opendir(D, $ARGV[0]); print "$_\n" for (map { scalar readdir D } 1 .. 5)' \
		"$mnt/in/added" >first.txt
	"$INCRCTL" unmount "$mnt" --abort -q
}

look() { # WHERE FLAT WIDE
	local flat=$2 wide=$3
	t "$1: ls -f" say "ls -f of one directory" \
		same <(sort flat.names <(printf '.\n..\n')) ls -f "$flat"
	t "$1: ls, sorted" say "ls" same flat.names ls "$flat"
	t "$1: find" say "find" same flat.names find "$flat" -type f -printf '%P\n'
	sizes_of <(awk '{ printf "%s:content %d\n", $0, (NR - 1) % 20 }' flat.names) >flat.sizes
	t "$1: ls -lR" say "ls -lR" same flat.sizes list_long "$flat"
	t "$1: find among directories" say "find, many directories" \
		same wide.names find "$wide" -type f -printf '%P\n'
	t "$1: the directories" say "find of directories" \
		same wide.dirs find "$wide" -mindepth 2 -type d -printf '%P\n'
	sizes_of wide.bytes >wide.sizes
	t "$1: ls -lR among directories" say "ls -lR, many directories" \
		same wide.sizes list_long "$wide"
	check_peak "listing"
}

for dataset in few flat few flat; do
	t "a mount of $dataset answers" \
		say "mount to first names of $dataset" first_names $dataset
	t_out "with names" 5 sh -c "wc -l <first.txt"
done

start_mount sc -i flat=flat -i wide=wide -o out=out
look "build" "$mnt/flat/added" "$mnt/wide/added"
t "tar of many directories" say "tar, many directories" \
	same wide.names names_of_tar "$mnt/wide/current"
t_out "tar holds the content" "$flat_bytes" bytes_of_tar "$mnt/flat/current"
t "each file holds what it should" say "grep, many directories" \
	same wide.bytes bytes_of_files "$mnt/wide/added"
check_peak "reading"
"$INCRCTL" unmount "$mnt" --abort -q

# As many new files as there were
"$INCRCTL" run later -i in=flat -o out=out -q --view=copy --skip 2>/dev/null ||
	fail "the files so far count as read"
commit_later() {
	local i
	for i in 0 1 2 3 4 5 6 7 8 9; do
		"$INCRCTL" commit flat wide --prefix "p$i" -q || return
	done
}
t "$n more files are committed" commit_later
start_mount later
t "incremental: find in added" say "find in added, incremental" \
	same wide.names find "$mnt/in/added" -type f -printf '%P\n'
t "incremental: ls of previous" say "ls of previous" same flat.names ls "$mnt/in/previous"
t "incremental: current has both" same <(LC_ALL=C sort wide.names flat.names) \
	find "$mnt/in/current" -type f -printf '%P\n'
check_peak "an incremental build"
"$INCRCTL" unmount "$mnt" --abort -q
t_out "nothing is left in the spool" "" ls -A "$INCR_STORE/spool"

start_mount
look "browser" "$mnt/flat/@$flat_txn" "$mnt/wide/current"
"$INCRCTL" unmount "$mnt"

done_testing
