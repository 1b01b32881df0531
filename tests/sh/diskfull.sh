#!/bin/bash
# Full disks: file systems of many sizes, so that every step of the work is the
# one that finds no space. What was acknowledged stays readable, what fails says
# so, an abort works without a byte free, and a commit does once there is space.
#
# DISKFULL_MIN, _MAX and _STEP (KiB) say which sizes. The work fills 4 MiB.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
min=${DISKFULL_MIN:-64} max=${DISKFULL_MAX:-768} step=${DISKFULL_STEP:-4}
n_shares=2
mnt=$TMP/mnt
mkdir "$mnt" src made
mount -t tmpfs -o size=64k none "$mnt" 2>/dev/null || skip_all "no tmpfs can be mounted"
umount "$mnt"
export INCR_STORE=$mnt/store
head -c 300 /dev/urandom >src/small
head -c 190000 /dev/urandom >src/large
head -c 9000 /dev/urandom >src/middle

# make NAME SIZE: a source, and its sum, so that all are checked at once.
shopt -s nullglob # nothing exported is no file
declare -A sums
make() {
	local sum
	head -c "$2" /dev/urandom >"made/$1"
	sum=$(sha256sum "made/$1")
	sums[$1]=${sum%% *}
}
# No two are equal: what is stored already would take no space.
for ((i = 0; i < 20; i++)); do
	make small$i 300
	make large$i 190000
	make middle$i 9000
done
make more 190000
make again 190000

n_sizes=0 n_full=0
# bad WHAT: note a failure of this size.
bad() {
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
# With an end, should anything but the small file system be there.
fill() {
	head -c 16M /dev/zero >"$mnt/fill" 2>/dev/null
	[ "$(stat -f -c %f "$mnt")" = 0 ] || bad "the disk is not full"
}

# Commit a source; then it is among those that must be readable.
commit() {
	try commit d "made/$1" --name "$1" || return
	echo "${sums[$1]}  got/$1" >>acked
	n_acked=$((n_acked + 1))
}
# What was acknowledged is there, and nothing else.
check_acked() {
	local files
	rm -rf got
	must "old data is readable" "$INCRCTL" export d got
	[ $n_acked = 0 ] || must "it is not lost or wrong" sha256sum --check --quiet acked
	files=(got/*)
	[ ${#files[@]} = $n_acked ] || bad "${#files[@]} files, not $n_acked"
	must "the store verifies" "$INCRCTL" verify --data
}

# The work, up to the first step that finds no space.
work() {
	local i
	for ((i = 0; i < 20; i++)); do
		commit "small$i" || return
		commit "large$i" || return
		commit "middle$i" || return
	done
}

# A staged transaction, as far as there is space for it; then it is aborted.
abort() {
	local txn
	# so that the abort's record crosses a page of the log, or not
	make pad $((2200 + size * 7 % 800))
	commit pad || return
	txn=$("$INCRCTL" txn begin e 2>said) || {
		grep -q "no space\|no-space\|No space" said || bad "txn begin"
		return
	}
	try txn put "$txn" a/file src/middle
	fill
	must "an abort needs no space" "$INCRCTL" txn abort "$txn"
}

one_size() {
	n_acked=0
	: >acked
	mount -t tmpfs -o "size=${size}k" none "$mnt" || return
	if try init "$INCR_STORE" && try dataset create d e; then
		abort
		rm -f "$mnt/fill"
		work
		fill
		check_acked
		commit more && bad "a commit without space"
		check_acked
		n_full=$((n_full + 1))
	fi
	rm -f "$mnt/fill"
	mount -o "remount,size=8m" "$mnt"
	[ -e "$INCR_STORE/format" ] || must "init works with space" "$INCRCTL" init "$INCR_STORE"
	for name in d e; do
		"$INCRCTL" dataset show "$name" >/dev/null 2>&1 ||
			must "a dataset can be made" "$INCRCTL" dataset create "$name"
	done
	commit again || bad "no commit though there is space"
	check_acked
	umount "$mnt"
	n_sizes=$((n_sizes + 1))
}

# Every n_shares-th size, in a directory of its own.
one_share() {
	local share=$1
	mkdir "share$share" && cp -r src made "share$share" && cd "share$share" || return
	mnt=$PWD/mnt
	mkdir "$mnt"
	export INCR_STORE=$mnt/store
	: >wrong
	for ((size = min + share * step; size <= max; size += n_shares * step)); do
		one_size
	done
	echo "$n_sizes $n_full" >count
}
for ((i = 0; i < n_shares; i++)); do
	one_share $i &
	kill_later $!
done
wait
cat share*/wrong >wrong
read -r n_sizes n_full < <(awk '{ a += $1; b += $2 } END { print a, b }' share*/count)

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

# A program that fills the disk through a mount.
fill_staging() {
	mount -t tmpfs -o size=4m none "$mnt"
	"$INCRCTL" init "$INCR_STORE" -q && "$INCRCTL" dataset create in out && "$INCRCTL" commit in src -q
	"$INCRCTL" mount build tr -i in=in -o out=out "--staging=$1" -q
	echo first >build/out/staging/first
	t "staging=$1: who writes to a full disk hears of it" sh -c \
		'! LC_ALL=C head -c 8M /dev/urandom 2>err >build/out/staging/big && grep -q "No space left" err'
	t "staging=$1: what is there can be read" cmp src/large build/in/current/large
	t "staging=$1: and what was staged" grep -q first build/out/staging/first
	cp build/out/staging/big big
	t_grep "staging=$1: unmount cannot commit, and says why" '"code":"no-space"' "$INCRCTL" unmount build --json
	t "staging=$1: the mount is gone" sh -c '! mountpoint -q build'
	mount -o remount,size=32m "$mnt"
	t_exit 0 "staging=$1: with space it is committed" "$INCRCTL" build commit b1
	t_out "staging=$1: as it was staged" first "$INCRCTL" cat out first
	t "staging=$1: all of it" sh -c '"$INCRCTL" cat out big | cmp - big'
	umount "$mnt"
}
if can_mount; then
	mkdir build
	fill_staging link
	fill_staging fuse
else
	skip "a program that fills the disk through a mount" "no FUSE here"
fi

head -n 60 wrong >&2
t "no size of $n_sizes, $n_full with a store, goes wrong" [ ! -s wrong ]
t "most sizes had room for a store" [ "$n_full" -ge $((n_sizes / 2)) ]
done_testing
