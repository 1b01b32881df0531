#!/bin/bash
# The process behind a mount dies, is told to end, or loses its connection.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
mkdir "$mnt" tree
for i in $(seq 400); do
	seq "$i" $((i + 500)) >"tree/f$i"
done
fresh_store
"$INCRCTL" dataset create in
"$INCRCTL" commit in tree -q

start() {
	"$INCRCTL" mount "$mnt" --foreground >mount.log 2>&1 &
	pid=$!
	kill_later $pid
	wait_until 10 ls "$mnt/in"
}
# Whatever still comes out of the mount is right; until nothing comes any more.
check_reads() {
	local f n_failed=0
	for f in tree/*; do
		timeout 5 cmp -s "$f" "$mnt/in/current/${f#tree/}" 2>/dev/null
		case $? in
		0) n_failed=0 ;;
		1) return 1 ;;
		*) [ $((n_failed += 1)) -lt 20 ] || return 0 ;;
		esac
	done
}

n=${KILLS:-10} n_bad=0 n_wrong=0 n_slow=0
for i in $(seq "$n"); do
	start || n_bad=$((n_bad + 1))
	check_reads &
	reader=$!
	sleep "0.0$((RANDOM % 10))"
	kill -KILL $pid
	wait $pid 2>/dev/null
	timeout 5 ls "$mnt" >/dev/null 2>&1
	[ $? = 2 ] || n_slow=$((n_slow + 1))
	wait $reader || n_wrong=$((n_wrong + 1))
done
t_out "killed $n times while it is read, mounted again without help" 0 echo $n_bad
t_out "what needs the process fails at once" 0 echo $n_slow
t_out "and no wrong bytes are read" 0 echo $n_wrong
t_exit 0 "unmount clears a dead mount" "$INCRCTL" unmount "$mnt"
t_out "the mount point is a directory again" "" ls -A "$mnt"

# Killed while a program writes to staging: what was written is kept, and told
# to commit. A number is noted when its file is closed.
"$INCRCTL" dataset create out
write_numbers() {
	local i=0
	while [ $((i += 1)) -le 2000 ]; do
		seq $i $((i + 300)) 2>/dev/null >"$mnt/out/staging/n$i" || return
		echo $i >>written
	done
}
# The numbers of $1 are in the dataset, as they were written.
has_numbers() {
	local i
	rm -rf got
	"$INCRCTL" export out got >/dev/null || return
	while read -r i; do
		seq "$i" $((i + 300)) | cmp -s - "got/n$i" || return
	done <"$1"
}
orphans() {
	"$INCRCTL" build list | awk '/ open .*orphan/ { print $1 }'
}
commit_orphan() {
	local build
	build=$(orphans)
	[ -n "$build" ] && "$INCRCTL" build commit "$build" -q && has_numbers written
}
# Whatever a round that failed has left is to spoil no other.
end_round() {
	local build
	kill -KILL $pid
	wait $pid $writer
	"$INCRCTL" unmount "$mnt"
	for build in $(orphans); do
		"$INCRCTL" build abort "$build" -q
	done
} >>death.log 2>&1
mount_build() {
	"$INCRCTL" mount "$mnt" tr -i in=in -o out=out --write-mode out=replace --force-snapshot \
		--allow-empty "--staging=$1" --foreground >mount.log 2>&1 &
	pid=$!
	kill_later $pid
	wait_until 60 ls "$mnt/out/staging"
}
# From the first file on: a build without any replaces nothing, see below.
kill_build() {
	writer=
	: >written
	mount_build "$1" || return
	write_numbers 2>/dev/null &
	writer=$!
	wait_until 60 [ -s written ] || return
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	kill -KILL $pid
	wait $pid 2>/dev/null
	wait_until 60 sh -c "! ls '$mnt' 2>/dev/null" || return
	wait $writer
	"$INCRCTL" unmount "$mnt" >>death.log 2>&1 # exits 1: it commits nothing
	commit_orphan
}
n_kept=0 n_builds=$(((n + 4) / 5))
for i in $(seq $n_builds); do
	[ $((i % 2)) = 0 ] && how="link" || how="fuse"
	if kill_build "$how" 2>>death.log; then
		n_kept=$((n_kept + 1))
	else
		echo "$how: $(wc -l <written) written" >>death.log
		end_round
	fi
done
[ $n_kept = $n_builds ] || cat death.log mount.log
t_out "killed $n_builds times while staging is written: all is committed later" $n_builds echo $n_kept

# Killed before the first file: to commit that would empty the output.
mount_build link
kill -KILL $pid
wait $pid 2>/dev/null
"$INCRCTL" unmount "$mnt" >/dev/null 2>&1
build=$(orphans)
t_exit 4 "of a build without a file, the commit is refused" "$INCRCTL" build commit "$build"
t_exit 0 "and the output stays as it was" has_numbers written
t_exit 0 "until that is asked for" "$INCRCTL" build commit "$build" --allow-empty -q
t_out "then it is empty" "" "$INCRCTL" ls out

# Stopped, and cut off
n=${STOPS:-3} n_freed=0
mkdir ctl
if mount -t fusectl none ctl 2>/dev/null; then
	for i in $(seq "$n"); do
		start
		kill -STOP $pid
		timeout 10 cat "$mnt/in/current/f1" >/dev/null 2>&1 &
		reader=$!
		dev=$(awk -v at="$mnt" '$5 == at { split($3, d, ":"); print d[2] }' /proc/self/mountinfo)
		echo 1 >"ctl/$dev/abort"
		wait_until 5 sh -c "! kill -0 $reader" && n_freed=$((n_freed + 1))
		kill -CONT $pid
		wait_until 10 sh -c "! kill -0 $pid" || n_freed=-1
	done
	t_out "aborting the connection of a stopped process frees its clients, $n times" "$n" echo $n_freed
	t_exit 2 "the mount point fails until somebody unmounts it" ls "$mnt"
	umount ctl
else
	skip "abort of the connection" "no fusectl here"
fi
wait
"$INCRCTL" unmount "$mnt" >/dev/null 2>&1

# Told to end while it is used
start
exec 9<"$mnt/in/current/f1"
kill -TERM $pid
t "SIGTERM ends it" wait_until 10 sh -c "! kill -0 $pid"
t "and detaches the mount" sh -c "! mountpoint -q $mnt"
t "a program that still has a file open gets no wrong bytes" sh -c "cat <&9 | cmp -s - tree/f1 || true"
exec 9<&-

# Users in the way
start
exec 9<"$mnt/in/current/f1"
(cd "$mnt/in" && exec sleep 60) &
kill_later $!
t_exit 7 "unmount while it is used" "$INCRCTL" unmount "$mnt"
t_grep "names who has a file" "$$ \(.*\) uses $mnt/in/current/f1" "$INCRCTL" unmount "$mnt"
t_grep "and who sits in a directory" "$! \(sleep\) uses $mnt/in" "$INCRCTL" unmount "$mnt"
exec 9<&-
kill $!
wait $! 2>/dev/null
t_exit 0 "then it works" "$INCRCTL" unmount "$mnt"
t "and the process ends" wait_until 10 sh -c "! kill -0 $pid"

done_testing
