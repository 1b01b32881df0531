#!/bin/bash
# Cuts the power below a store on ext4 and on xfs. The file system stops without
# writing its log, is mounted again, and must hold what was acknowledged.
#
# POWERCUTS says how often right after an acknowledgement, and how often at a
# moment of chance, on each file system.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
powercut=${INCR_BUILDDIR:?where tests/powercut was built}/tests/powercut
[ -x "$powercut" ] || skip_all "tests/powercut is not built"

n_cuts=${POWERCUTS:-20}
mnt=$TMP/mnt
mkdir "$mnt" tmp
export TMPDIR=$TMP/tmp INCR_STORE=$mnt/store

# The file system stays as it was while another process still sees it, be it
# only in a copy of all mounts.
try_remount() {
	umount "$mnt"
	mount "$LOOP" "$mnt" && touch "$mnt/alive"
}
remount() {
	wait_until 60 try_remount
}
cut() {
	"$powercut" "$mnt" && remount
}

# make_fs TYPE: a new file system of that type, with a new store in it.
make_fs() {
	command -v "mkfs.$1" >/dev/null || return
	truncate -s 400M "$1.img"
	"mkfs.$1" -q "$1.img" && new_loop "$1.img" && mount -t "$1" "$LOOP" "$mnt"
}
new_store() {
	rm -rf "$INCR_STORE" want acked
	mkdir want
	: >acked
	"$INCRCTL" init "$INCR_STORE" >/dev/null &&
		"$INCRCTL" dataset create d other >/dev/null && sync -f "$mnt"
}

# Run a verb that prints transactions, and note them as acknowledged.
acked() {
	"$@" >said 2>&1 || {
		cat said >&2
		return 1
	}
	grep -oE '^t[0-9]+' said >>acked
}
# change N: one acknowledged change, by turns; the directory `want` follows.
change() {
	local n=$1
	case $((n % 8)) in
	0)
		echo "$n" >"want/small$n"
		acked "$INCRCTL" commit d "want/small$n"
		;;
	1)
		head -c 150000 /dev/urandom >want/large
		acked "$INCRCTL" commit d want/large --type update
		;;
	2)
		acked "$INCRCTL" run tr --view copy --force -i i=other -o o=d \
			--write-mode o=modify -- sh -c "echo $n >\$INCR_OUT_O/built"
		echo "$n" >want/built
		;;
	3)
		mkdir -p "want/dir$n"
		for i in 1 2 3 4 5 6 7 8; do
			echo "$n $i" >"want/dir$n/$i"
		done
		rm -f want/built
		acked "$INCRCTL" sync d want --mode mirror
		;;
	4)
		rm -rf "want/dir$((n - 1))"
		acked "$INCRCTL" rm d "dir$((n - 1))" --recursive
		;;
	5)
		txn=$("$INCRCTL" txn begin d --type update) &&
			echo "$n" >want/put &&
			"$INCRCTL" txn put "$txn" put want/put --overwrite >/dev/null
		;;
	6)
		"$INCRCTL" branch d create "b$n" >/dev/null
		;;
	7)
		rm -rf "$mnt/another"
		"$INCRCTL" init "$mnt/another" >/dev/null
		;;
	esac
}
# After the cut of change N: what it did is there.
check_change() {
	case $(($1 % 8)) in
	5) acked "$INCRCTL" txn commit "$txn" ;;
	6) "$INCRCTL" branch d list | grep -qw "b$1" ;;
	7)
		"$INCRCTL" --store "$mnt/another" dataset create x >/dev/null &&
			"$INCRCTL" --store "$mnt/another" verify -q
		;;
	esac
}
same_log() {
	"$INCRCTL" log d | grep -oE '^t[0-9]+' | sort >got.log
	sort acked | cmp - got.log
}
same_files() {
	rm -rf got
	"$INCRCTL" export d got >/dev/null && diff -r want got
}

# round HOW N: change, cut or only remount, look.
round() {
	change "$2" && $1 || return
	check_change "$2" && same_log && same_files && "$INCRCTL" verify --data -q ||
		n_lost=$((n_lost + 1))
	echo "$2" >next
	acked "$INCRCTL" --wait 0 commit other next --type update &&
		sed -i '$d' acked || n_blocked=$((n_blocked + 1))
}
rounds() {
	local how=$1 n=$2 i
	n_done=0 n_lost=0 n_blocked=0
	for i in $(seq "$n"); do
		n_changes=$((n_changes + 1))
		round "$how" $n_changes >>rounds.log 2>&1 && n_done=$((n_done + 1))
	done
}

# Write until the disk is gone: number N is two files in one transaction.
work() {
	local n=0
	while :; do
		n=$((n + 1))
		mkdir -p "src/$n"
		echo "$n" | tee "src/$n/a" >"src/$n/b"
		case $((n % 4)) in
		1) "$INCRCTL" commit r src --type update -q || return 0 ;;
		2)
			yes "$n" | head -c 150000 >"src/$n/b"
			"$INCRCTL" commit r src --type update -q || return 0
			;;
		3)
			"$INCRCTL" run w --view copy --force -i i=other -o o=r -q \
				--write-mode o=modify -- \
				cp -r "$TMP/src/$n" "{o.staging}/$n" || return 0
			;;
		0) "$INCRCTL" sync r src --mode update -q || return 0 ;;
		esac
		echo "$n" >>worked
		rm -rf "src/$n"
	done
}
complain() {
	echo "$*"
	return 1
}
# Each number: both files or none, with what it wrote; the acknowledged ones are there.
numbers_whole() {
	local n
	rm -rf got
	"$INCRCTL" export r got >/dev/null || return
	for n in got/*; do
		[ -e "$n" ] || continue
		n=${n#got/}
		[ "$(cat "got/$n/a")" = "$n" ] && [ "$(uniq "got/$n/b" | head -n 1)" = "$n" ] ||
			complain "number $n is not whole" || return
	done
	while read -r n; do
		[ -e "got/$n/a" ] || complain "number $n is lost" || return
	done <acked_before
}
orphans_end() {
	local b
	for b in $("$INCRCTL" build list | awk '/ open .*orphan/ { print $1 }'); do
		"$INCRCTL" build abort "$b" -q || return
	done
}
# One cut at a moment of chance.
random_cut() {
	local worker
	"$INCRCTL" dataset create r >/dev/null || return
	rm -rf src worked
	: >worked
	work &
	worker=$!
	sleep "0.$(printf %03d $((RANDOM % 250)))"
	"$powercut" "$mnt" "$TMP/worked" >acked_before
	wait $worker
	remount || return
	numbers_whole && "$INCRCTL" verify --data || n_lost=$((n_lost + 1))
	echo x >next
	"$INCRCTL" --wait 0 commit r next --type update -q && orphans_end ||
		n_blocked=$((n_blocked + 1))
	n_worked=$((n_worked + $(wc -l <acked_before)))
	"$INCRCTL" dataset delete r --yes >/dev/null
}
random_cuts() {
	local i
	n_done=0 n_lost=0 n_blocked=0 n_worked=0
	for i in $(seq "$1"); do
		random_cut >>rounds.log 2>&1 && n_done=$((n_done + 1))
	done
}
# report WHAT N: all N rounds ran, nothing was lost, nobody was blocked.
report() {
	echo "$1: $n_done of $2 ran, $n_lost lost, $n_blocked blocked"
	[ "$n_done $n_lost $n_blocked" = "$2 0 0" ] && pass "$1" ||
		fail "$1" "$(tail -n 20 rounds.log)"
}

# That a cut is one. Somebody else on this machine may sync everything just then.
loses_unsynced() {
	mkdir -p "$mnt/plain" && sync -f "$mnt" &&
		echo x >"$mnt/plain/new" && mv "$mnt/plain/new" "$mnt/plain/file" &&
		cut && [ ! -s "$mnt/plain/file" ] || {
		rm -f "$mnt/plain/file"
		return 1
	}
}

n_fs=0 n_changes=0
for fs in ext4 xfs; do
	if ! make_fs $fs >fs.log 2>&1; then
		skip "$fs" "$(tail -n 1 fs.log)"
		continue
	fi
	n_fs=$((n_fs + 1))
	new_store
	t "$fs: a file that nobody synced is lost by a cut" wait_until 10 loses_unsynced
	rounds remount 8
	report "$fs: without a cut everything is kept" 8
	rounds cut "$n_cuts"
	report "$fs: $n_cuts cuts right after an acknowledgement" "$n_cuts"
	random_cuts "$n_cuts"
	report "$fs: $n_cuts cuts at any moment" "$n_cuts"
	t "$fs: something had been acknowledged" [ "$n_worked" -gt "$n_cuts" ]
	umount "$mnt"
done
[ $n_fs -gt 0 ] || skip_all "no ext4 and no xfs here"

done_testing
