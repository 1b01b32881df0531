#!/bin/bash
# run --view=copy: the copies are right, and what is in two views takes the space
# of one where the filesystem can share blocks.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

fresh_store
"$INCRCTL" dataset create in out
mkdir tree tree/d
head -c 20000000 /dev/urandom >tree/large
seq 1000 >tree/d/small
: >tree/empty
chmod 400 tree/d/small
touch -d @1000000000.5 tree/large
"$INCRCTL" commit in tree -q

# lists DIRECTORY: names, sizes and times of its files.
lists() {
	(cd "$1" && find . -type f -printf '%P %s %T@\n' | sort)
}
export -f lists
# blocks FILE: which blocks it has.
blocks() {
	filefrag -v "$1" | awk '$1 ~ /^[0-9]+:$/ { print $4, $5, $6 }'
}
export -f blocks

check_copies() { # WHERE
	export WHERE=$1
	lists tree >want.txt
	"$INCRCTL" run t -i in=in -o out=out -q --view=copy --force-snapshot -- bash -c '
		diff -r "$INCR_ADDED_IN" "$INCR_CURRENT_IN" && diff -r tree "$INCR_CURRENT_IN" || exit 1
		lists "$INCR_ADDED_IN" | diff - want.txt && lists "$INCR_CURRENT_IN" | diff - want.txt || exit 1
		df --output=used -B1 "$INCR_MOUNT" | tail -n 1 >used.txt
		blocks "$INCR_ADDED_IN/large" >added.txt
		blocks "$INCR_CURRENT_IN/large" >current.txt
		cp "$INCR_CURRENT_IN/d/small" "$INCR_OUT_OUT/"' >run.txt 2>&1
	t "$1: the views are the tree, names, bytes and times" [ $? = 0 ]
	echo more >extra && "$INCRCTL" commit in extra --type update --rewrite -q
	"$INCRCTL" run t -q --view=copy -- bash -c '
		[ "$(ls "$INCR_ADDED_IN")" = extra ] && [ "$(ls "$INCR_CURRENT_IN" | wc -l)" = 4 ] || exit 1
		diff -r tree "$INCR_PREVIOUS_IN" && cmp tree/large "$INCR_CURRENT_IN/large" || exit 1
		diff -r "$INCR_PREVIOUS_OUT" "$INCR_CURRENT_OUT" || exit 1
		touch "$INCR_OUT_OUT/$WHERE"' >run.txt 2>&1
	t "$1: incrementally too" [ $? = 0 ]
	"$INCRCTL" rm in extra -q
}

TMPDIR=$TMP check_copies here
if [ "$(id -u)" = 0 ] && command -v mkfs.xfs >/dev/null && command -v filefrag >/dev/null &&
	truncate -s 400M disk && mkfs.xfs -q -m reflink=1 disk && new_loop disk &&
	mkdir shares && mount "$LOOP" shares 2>/dev/null; then
	before=$(df --output=used -B1 shares | tail -n 1)
	TMPDIR=$TMP/shares check_copies shares
	t "two views share the blocks of a file" cmp added.txt current.txt
	t "which are some" [ -s added.txt ]
	t "and take the space of one" [ $(($(<used.txt) - before)) -lt 30000000 ]
	umount shares
else
	skip "two views share the blocks of a file" "needs root and xfs"
fi

done_testing
