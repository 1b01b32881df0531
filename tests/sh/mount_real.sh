#!/bin/bash
# Files of this system in a view: programs that compare trees find no difference
# to where they came from, and sixteen readers that do all kinds of things see
# what they see on the filesystem.
#
# INCR_REAL_FILES: how many files, of up to 256 KiB; 2,000 unless said otherwise.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

n=${INCR_REAL_FILES:-2000}
mnt=$TMP/mnt
tree=$TMP/tree
mkdir "$mnt" "$tree"
find /usr -xdev -type f -readable -size -256k -print0 2>/dev/null |
	head -z -n "$n" >files
tar -C / --null -T files -cf - 2>/dev/null | tar -C "$tree" -xf -
chmod -R u+rwX "$tree"
n=$(tr -dc '\0' <files | wc -c)
mkdir "$tree/run" && echo text >"$tree/run/text" && cp "$(command -v cat)" "$tree/run/cat"
[ "$n" -ge 100 ] || skip_all "only $n files here"
n=$((n + 2))
fresh_store
"$INCRCTL" dataset create in out
t "$n files are committed" "$INCRCTL" commit in "$tree" -q
(cd "$tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >sums

"$INCRCTL" mount "$mnt" t -i in=in -o out=out -q 2>/dev/null
compare() { # WHERE VIEW
	t "$1: sha256sum finds every byte" sh -c "cd '$2' && sha256sum --quiet -c '$TMP/sums'"
	t_out "$1: there are as many files" "$n" sh -c "find '$2' -type f | wc -l"
	t "$1: diff -r" diff -r --no-dereference "$tree" "$2"
	if command -v rsync >/dev/null; then
		t_out "$1: rsync -c" "" rsync -rcn --delete --out-format=%n "$tree/" "$2/"
		t_out "$1: rsync by size and time" "" rsync -rtnO --delete --out-format=%n "$tree/" "$2/"
	else
		skip "$1: rsync -c" "no rsync"
	fi
}
compare added "$mnt/in/added"
(cd "$tree" && find . -type f -print0 | tar --null -T - -cf "$TMP/tree.tar")
t_out "tar --compare" "" tar -C "$mnt/in/current" -df "$TMP/tree.tar"
seed=${SEED:-$RANDOM}
t "sixteen readers, seed $seed" \
	python3 "$SRCDIR/tests/sh/mount_read.py" "$tree" "$mnt/in/current" 5 "$seed" 16
t_out "a program runs from a view" text "$mnt/in/added/run/cat" "$mnt/in/added/run/text"
"$INCRCTL" unmount "$mnt" --abort -q

"$INCRCTL" mount "$mnt" -q
[ "$(id -u)" = 0 ] && echo 3 >/proc/sys/vm/drop_caches
compare "the browser, caches dropped" "$mnt/in/current"
t "sixteen readers there, seed $seed" \
	python3 "$SRCDIR/tests/sh/mount_read.py" "$tree" "$mnt/in/@t1" 5 "$seed" 16
"$INCRCTL" unmount "$mnt"

done_testing
