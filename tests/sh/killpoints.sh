#!/bin/bash
# Kills a verb before each call that changes something on disk. Afterwards
# nothing that was acknowledged is lost, nothing is there in part, verify is
# content, what is left over is listed and can be ended, and nobody is blocked;
# a repair leaves the packs that records name, and verify nothing to list.
#
# KILLPOINTS is how many points of each verb are tried, 0 for all. A failure
# prints KILLPOINT=VERB:CALL:N; set to that, the one point is run.
# shellcheck disable=SC2016  # commands of runs
. "$(dirname "$0")/lib.sh"

command -v strace >/dev/null || skip_all "no strace"
(strace -qq -o /dev/null -e inject=mkdir,mkdirat:signal=SIGKILL:when=1 mkdir probe
	exit $?) 2>/dev/null
[ $? = 137 ] && [ ! -d probe ] || skip_all "strace cannot kill here"

per_verb=${KILLPOINTS:-8}
only=${KILLPOINT:-}
calls=write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile
calls+=,fallocate,ftruncate,fdatasync,fsync,syncfs,rename,renameat,renameat2
calls+=,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat
calls+=,chmod,fchmod,fchmodat,utimensat,mount,umount2,openat
base=$TMP/base
mnt=$TMP/mnt
mkdir mnt tmp tree more
export INCR_STORE=$TMP/store TMPDIR=$TMP/tmp

# ---- what is killed; each is one process of incrctl, and those that it starts ----

commit_small() {
	"$@" "$INCRCTL" commit a more
}
commit_large() {
	"$@" "$INCRCTL" commit a large --type update
}
sync_mirror() {
	"$@" "$INCRCTL" sync a more --mode mirror
}
rm_one() {
	"$@" "$INCRCTL" rm a one
}
run_copy() {
	"$@" "$INCRCTL" run tr --view copy -i a=a -o out=out -- \
		sh -c 'cp "$INCR_CURRENT_A"/* "$INCR_OUT_OUT/"'
}
run_mount() {
	"$@" "$INCRCTL" run tr -i a=a -o out=out -- \
		sh -c 'cp "$INCR_CURRENT_A"/* "$INCR_OUT_OUT/"'
}
txn_put() {
	"$@" "$INCRCTL" txn put "$txn" three more/three
}
txn_commit() {
	"$@" "$INCRCTL" txn commit "$txn"
}
build_commit() {
	"$@" "$INCRCTL" build commit "$build"
}
build_abort() {
	"$@" "$INCRCTL" build abort "$build"
}
repair_torn() {
	"$@" "$INCRCTL" repair
}
# The process behind a mount, from its start to the commit after an unmount.
unmount() {
	local pid status
	"$@" "$INCRCTL" mount "$mnt" tr -i a=a -o out=out --foreground "${staging[@]+"${staging[@]}"}" &
	pid=$!
	wait_until 20 sh -c "[ -d '$mnt/out/staging' ] || ! kill -0 $pid 2>/dev/null"
	timeout 20 cp tree/* "$mnt/out/staging/"
	timeout 20 "$INCRCTL" unmount "$mnt"
	status=$?
	[ "$status" = 0 ] || umount -l "$mnt"
	wait "$pid"
	return "$status"
}
unmount_fuse() {
	local staging=(--staging=fuse)
	unmount "$@"
}

# ---- before and after ----

prepare_base() {
	local txn build
	echo 1 >tree/one && echo 2 >tree/two
	echo 3 >more/three && echo 4 >more/four
	head -c 300000 /dev/urandom >large
	INCR_STORE=$base
	"$INCRCTL" init "$base" && "$INCRCTL" dataset create a b out && "$INCRCTL" commit a tree
	INCR_STORE=$TMP/store
} >/dev/null

# The store as it is before a verb.
setup() {
	rm -rf "$INCR_STORE" && cp -r "$base" "$INCR_STORE" || return
	case $verb in
	txn_*)
		txn=$("$INCRCTL" txn begin a)
		"$INCRCTL" txn put "$txn" four more/four
		;;
	repair_*)
		# half a record behind the last one, an index that is gone, staging of nothing
		head -c 300 "$base"/log/*.log | tail -c 60 >>"$(echo "$INCR_STORE"/log/*.log)"
		rm -f "$INCR_STORE"/index/*
		mkdir -p "$INCR_STORE/spool/b99/staging/out" && echo >"$INCR_STORE/spool/b99/staging/out/file"
		;;
	build_*)
		"$INCRCTL" run tr --view copy -i a=a -o out=out --keep-failed -- \
			sh -c 'echo out >"$INCR_OUT_OUT/file" && false' >/dev/null 2>&1
		build=$("$INCRCTL" build list | awk '/ open / { print $1 }')
		;;
	esac
}
state() {
	local d
	for d in a out; do
		echo "$d"
		"$INCRCTL" ls --json "$d" | grep -oE '"(path|hash)":"[^"]*"'
	done
}
packs_there() {
	(cd "$INCR_STORE" && find packs -type f | sort)
}
packs_named() {
	python3 "$SRCDIR/tests/format/read_store.py" --packs "$INCR_STORE"
}
open_txns() {
	"$INCRCTL" txn list | grep -oE '^t[0-9]+'
}
open_builds() {
	"$INCRCTL" build list | awk '/ open / { print $1 }'
}
blame() {
	echo "$verb:$call:$n: $*"
	return 1
}
nothing_mounted() {
	[ -z "$(mounts_below)" ]
}
# After a repair there is nothing that is no one's.
check_left_over() {
	[ "$(packs_there)" = "$(packs_named)" ] || n_left=$((n_left + 1))
	"$INCRCTL" repair -q || blame "repair fails" || return
	rm -f "$INCR_STORE"/lost/torn-*
	"$INCRCTL" repair -q || blame "a second repair fails" || return
	[ "$(packs_there)" = "$(packs_named)" ] ||
		blame "packs there and packs named" "$(packs_there)" "$(packs_named)" || return
	"$INCRCTL" verify --data --json | grep -q '"ok":true.*"left_over":\[\]' ||
		blame "something is left over" "$("$INCRCTL" verify)" || return
	[ -z "$(cd "$INCR_STORE" && find spool sync -mindepth 1 ! -name '*.table')" ] ||
		blame "something is in the spool" "$(find "$INCR_STORE/spool" "$INCR_STORE/sync")"
}
# How it looks after the kill. The dead may take a moment to be gone.
check() {
	local now b t
	if ! ls "$mnt" >/dev/null 2>&1; then
		timeout 20 "$INCRCTL" unmount "$mnt"
	fi
	wait_until 10 nothing_mounted || blame "a mount stays" || return
	"$INCRCTL" verify --data -q || blame "verify is not content" || return
	now=$(state)
	if [ "$now" = "$after" ]; then
		n_after=$((n_after + 1))
	elif [ "$now" != "$before" ]; then
		blame "there is a part of it" "$now" || return
	elif [ "$was_acked" = 1 ]; then
		blame "it was acknowledged and is lost" || return
	fi
	case $verb in
	txn_put)
		[ "$(open_txns)" = "$txn" ] || blame "the open transaction is lost" || return
		;;
	esac
	# by turns: end what is open and go on, or go on with it there
	if [ $((n_points % 2)) = 0 ]; then
		"$INCRCTL" --wait 2 commit b more -q --type update || blame "a commit is blocked" || return
		"$INCRCTL" --wait 2 commit out more -q --type update || blame "a commit to the output is blocked" || return
		for b in $(open_builds); do
			"$INCRCTL" --wait 2 build abort "$b" -q || blame "build abort fails" || return
		done
	else
		for b in $(open_builds); do
			"$INCRCTL" --wait 2 build commit "$b" -q || blame "build commit fails" || return
		done
	fi
	for t in $(open_txns); do
		"$INCRCTL" --wait 2 txn commit "$t" -q || blame "txn commit fails" || return
		[ "$("$INCRCTL" cat a four)" = 4 ] || blame "what was put is lost" || return
	done
	"$INCRCTL" --wait 2 commit a more -q --type update || blame "the next commit is blocked" || return
	"$INCRCTL" --wait 2 run tr --view copy --force -q -i a=a -o out=out -- sh -c 'echo >"$INCR_OUT_OUT/again"' ||
		blame "the next run is blocked" || return
	[ -z "$(open_builds)$(open_txns)" ] || blame "something stays open" || return
	"$INCRCTL" verify --data -q || blame "verify is not content at the end" || return
	check_left_over
}

# Run the verb; sets was_acked.
attempt() {
	setup || return
	before=$(state)
	was_acked=0
	$verb "$@" >said 2>&1 && was_acked=1
	return 0
}
# The points of a verb: CALL N, from a run that is only watched. Numbers are
# those of each thread, as strace counts.
list_points() {
	rm -f trace*
	attempt strace ${follow:+-ff} -qq -o trace -e "trace=$calls" || return
	after=$(state)
	[ "$was_acked" = 1 ] || return
	awk '
	FNR == 1 { delete n }
	/^[a-z0-9_]+[(]/ {
		call = $0
		sub(/[(].*/, "", call)
		n[call]++
		if (call == "openat" && $0 !~ /O_CREAT/)
			next
		seen[call " " n[call]] = 1
	}
	END { for (p in seen) print p }' trace* | sort -k1,1 -k2,2n >points
}
kill_at() {
	call=$1 n=$2
	n_points=$((n_points + 1))
	attempt strace ${follow:+-f} -qq -o /dev/null -e "trace=$call" \
		-e "inject=$call:signal=SIGKILL:when=$n"
	check >check.log 2>&1 || {
		n_bad=$((n_bad + 1))
		echo "KILLPOINT=$verb:$call:$n"
		cat check.log
		sed 's/^/  /' said
	}
}
# Every point, or as many as asked for, evenly from one of chance on.
choose() {
	local total
	total=$(wc -l <points)
	if [ -n "$only" ]; then
		echo "${only#*:}" | tr : ' '
	elif [ "$per_verb" = 0 ] || [ "$total" -le "$per_verb" ]; then
		cat points
	else
		awk -v n="$total" -v k="$per_verb" -v r=$((RANDOM % total)) '
		{ x = (NR + r) % n; if (int(x * k / n) != int((x + n - 1) % n * k / n)) print }' points
	fi
}

verbs="commit_small commit_large sync_mirror rm_one txn_put txn_commit"
verbs="$verbs run_copy build_commit build_abort repair_torn"
if can_mount; then
	verbs="$verbs run_mount unmount unmount_fuse"
fi
prepare_base
n_all=0
for verb in $verbs; do
	[ -z "$only" ] || [ "${only%%:*}" = "$verb" ] || continue
	n_points=0 n_bad=0 n_after=0 n_left=0 follow=-ff
	# the process of the verb alone: what it starts must see that it is gone
	case $verb in run_*) follow= ;; esac
	if ! list_points; then
		fail "$verb runs" "$(cat said)"
		continue
	fi
	choose >chosen
	while read -r call n; do
		kill_at "$call" "$n"
	done <chosen >bad.log 3<&0
	n_all=$((n_all + n_points))
	what="$verb: killed at $n_points of $(wc -l <points) calls, $n_after times after the commit"
	what+=", $n_left times with a pack left over"
	[ $n_bad = 0 ] && pass "$what" || fail "$what: $n_bad bad" "$(head -n 60 bad.log)"
done
echo "killed $n_all times"
t_out "nothing stays mounted" "" mounts_below

# ---- told to end, when the commit is recorded ----

fresh_store
mkdir ending
for i in 1 2 3; do echo "$i" >"ending/$i"; done
"$INCRCTL" dataset create in out >/dev/null
"$INCRCTL" commit in ending -q
# shellcheck disable=SC2016  # of the command
t_exit 0 "a run that is told to end when it has committed says that it has" \
	strace -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=SIGTERM:when=2+ \
	"$INCRCTL" run ending -i in=in -o out=out -- \
	sh -c 'cp "$INCR_ADDED_IN"/* "$INCR_OUT_OUT"'
t_grep "and has" "3 files" "$INCRCTL" log out

done_testing
