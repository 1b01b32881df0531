#!/bin/bash
# Full disks: file systems of many sizes, so that every step of the work is the
# one that finds no space. What was acknowledged stays readable, what fails says
# so, an abort works without a byte free, and a commit does once there is space.
#
# DISKFULL_MAX (KiB) and DISKFULL_STEP (KiB) say which sizes.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
max=${DISKFULL_MAX:-768} step=${DISKFULL_STEP:-4}
mnt=$TMP/mnt
mkdir "$mnt" src
mount -t tmpfs -o size=64k none "$mnt" 2>/dev/null || skip_all "no tmpfs can be mounted"
umount "$mnt"
export INCR_STORE=$mnt/store
head -c 300 /dev/urandom >src/small
head -c 70000 /dev/urandom >src/large
head -c 9000 /dev/urandom >src/middle

n_sizes=0 n_full=0 wrong=0
# bad WHAT: note a failure of this size.
bad() {
	wrong=$((wrong + 1))
	echo "at $size KiB: $*" >>wrong
	cat said >>wrong
}

# try COMMAND...: done (0), or no space, said so (1); else noted.
try() {
	"$INCRCTL" --json "$@" >out 2>said && return
	grep -q '"code":"no-space"' said || bad "exit $?: $*"
	return 1
}
# must WHAT COMMAND...
must() {
	local what=$1
	shift
	"$@" >out 2>said || bad "$what: $*"
}
fill() {
	cat /dev/zero >"$mnt/fill" 2>/dev/null
	[ "$(stat -f -c %f "$mnt")" = 0 ] || bad "the disk is not full"
}

# A commit, and its file among those that must be readable.
commit() {
	try commit d "src/$1" --name "$2" && acked+=("$1:$2")
}
# What was acknowledged, byte for byte.
check_acked() {
	local pair
	for pair in "${acked[@]+"${acked[@]}"}"; do
		must "old data is readable" "$INCRCTL" cat d "${pair#*:}"
		cmp -s out "src/${pair%%:*}" || bad "wrong bytes: $pair"
	done
	must "the store verifies" "$INCRCTL" verify --data
}

# The work, up to the first step that finds no space.
work() {
	local i
	for ((i = 0; i < 20; i++)); do
		commit small "small$i" || return
		commit large "large$i" || return
		commit middle "middle$i" || return
	done
}

# A staged transaction, as far as there is space for it; then it is aborted.
abort() {
	local txn
	# so that the abort's record crosses a page of the log, or not
	head -c $((2200 + size * 7 % 800)) /dev/urandom >src/pad
	commit pad pad || return
	txn=$("$INCRCTL" txn begin e 2>said) || {
		grep -q "no space\|no-space\|No space" said || bad "txn begin"
		return
	}
	try txn put "$txn" a/file src/middle
	fill
	must "an abort needs no space" "$INCRCTL" txn abort "$txn"
}

one_size() {
	acked=()
	rm -f src/pad
	mount -t tmpfs -o "size=${size}k" none "$mnt" || return
	if try init "$INCR_STORE" && try dataset create d e; then
		abort
		rm -f "$mnt/fill"
		work
		fill
		check_acked
		try commit d src/large --name more && bad "a commit without space"
		check_acked
		n_full=$((n_full + 1))
	fi
	rm -f "$mnt/fill"
	mount -o "remount,size=4m" "$mnt"
	[ -e "$INCR_STORE/format" ] || must "init works with space" "$INCRCTL" init "$INCR_STORE"
	for name in d e; do
		"$INCRCTL" dataset show "$name" >/dev/null 2>&1 ||
			must "a dataset can be made" "$INCRCTL" dataset create "$name"
	done
	must "a commit works with space" "$INCRCTL" commit d src/large --name again
	acked+=(large:again)
	check_acked
	umount "$mnt"
	n_sizes=$((n_sizes + 1))
}

: >wrong
for ((size = 64; size <= max; size += step)); do
	one_size
done

# Wherever in a page of the log the record comes to stand.
size=1024
mount -t tmpfs -o "size=${size}k" none "$mnt"
must "init" "$INCRCTL" init "$INCR_STORE"
must "make a dataset" "$INCRCTL" dataset create e
for ((i = 0; i < 60; i++)); do
	must "begin" "$INCRCTL" txn begin e
	txn=$(cat out)
	fill
	must "abort number $i needs no space" "$INCRCTL" txn abort "$txn"
	rm -f "$mnt/fill"
done
umount "$mnt"

[ "$wrong" = 0 ] || head -n 60 wrong >&2
t "no size of $n_sizes, $n_full with a store, goes wrong" [ "$wrong" = 0 ]
t "most sizes had room for a store" [ "$n_full" -ge $((n_sizes / 2)) ]
done_testing
