#!/bin/bash
# mount and unmount on the command line, and where there is no mount.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

can_mount || skip_all "no FUSE here"

io=(-i in=in -o out=out)
mnt=$TMP/mnt
mkdir "$mnt"
new_world() {
	fresh_store
	"$INCRCTL" dataset create in out
	echo a >a && "$INCRCTL" commit in a -q
}
# The process that serves the store, by what it holds open.
daemon() {
	local pid
	for pid in $(pgrep -x incrctl); do
		[ "$(readlink "/proc/$pid/cwd")" = / ] || continue
		find "/proc/$pid/fd" -lname "$INCR_STORE*" 2>/dev/null | grep -q . && echo "$pid"
	done
}
# Kill it, and wait until the mount is dead.
kill_daemon() {
	kill -KILL "$(daemon)" && wait_until 10 sh -c '! ls '"$mnt"
}
last_build() {
	"$INCRCTL" build list --json | head -n 1
}

# What is no mount point
new_world
t_error 3 no-mountpoint "a mount point that is not there" "$INCRCTL" mount nothing t "${io[@]}"
mkdir full && touch full/file
t_error 2 mountpoint-not-empty "one that is not empty" "$INCRCTL" mount full t "${io[@]}"
t_error 2 not-a-directory "one that is a file" "$INCRCTL" mount full/file t "${io[@]}"
t_out "no build came of that" "" "$INCRCTL" build list
t_exit 3 "unmount what is not there" "$INCRCTL" unmount nothing
t_error 3 not-mounted "unmount where nothing is" "$INCRCTL" unmount full
t_exit 2 "unmount what is not ours" "$INCRCTL" unmount /proc
t_exit 2 "transform options without a name" "$INCRCTL" mount "$mnt" "${io[@]}"
t_exit 3 "a name that was never built" "$INCRCTL" mount "$mnt" t
t_exit 2 "--at with a transform" "$INCRCTL" mount "$mnt" t "${io[@]}" --at 2026-01-05T12:00:00Z
t_exit 2 "--at what is no time" "$INCRCTL" mount "$mnt" --at yesterday
t_exit 2 "no mount point" "$INCRCTL" mount
t_exit 5 "refused" sh -c '"$INCRCTL" run t --view=copy -i in=in -o out=out -- true 2>/dev/null
	echo b >a; "$INCRCTL" commit in a --type update -q
	"$INCRCTL" mount '"$mnt"' t -i in=in -o out=out --require-incremental'

# A lock of the caller's
new_world
t "a mount below a lock" sh -c 'exec 9>lock; flock 9; "$INCRCTL" mount '"$mnt"' t -i in=in -o out=out'
t "does not hold it when the caller is gone" flock -n lock true
t "is unmounted" "$INCRCTL" unmount --abort "$mnt"

# A build by hand
new_world
t_out "mount says what it is" "b1 mounted on $mnt: snapshot" "$INCRCTL" mount "$mnt" t "${io[@]}"
t_out "its input" a cat "$mnt/in/added/a"
t_json "build.json is what build show prints" "['b1', 'open', False]" \
	'[d["build"], d["status"], d["orphaned"]]' sh -c '"$INCRCTL" build show b1 --json; :'
t "and stands in the mount" python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["build"] == "b1"' "$mnt/.incr/build.json"
t_error 2 mounted "mount on it again, at once" "$INCRCTL" mount "$mnt" t "${io[@]}"
mkdir -p other
t_exit 7 "another build of the same output" "$INCRCTL" mount other t "${io[@]}" --wait 0
cp "$mnt/in/added/a" "$mnt/out/staging/"
t_out "current follows what is staged" a cat "$mnt/out/current/a"
t_exit 7 "unmount while it is used" sh -c 'cd '"$mnt"' && "$INCRCTL" unmount '"$mnt"
t_exit 7 "unmount --abort while it is used" sh -c 'cd '"$mnt"' && "$INCRCTL" unmount --abort '"$mnt"
t_out "unmount prints the commit" "t2 SNAPSHOT out: 1 file, 2 B" "$INCRCTL" unmount "$mnt"
t_out "it is there" a "$INCRCTL" ls out
t "the mount is gone" sh -c '! mountpoint -q '"$mnt"

# The recorded definition, and a plain umount
echo b >b && "$INCRCTL" commit in b -q
t_out "mount without -i and -o" "b2 mounted on $mnt: incremental" "$INCRCTL" mount "$mnt" t
t_out "added" b ls "$mnt/in/added"
t_out "previous" a ls "$mnt/in/previous"
cp "$mnt/in/added/b" "$mnt/out/staging/"
t "a plain unmount" sh -c 'umount '"$mnt"' 2>/dev/null || fusermount3 -u '"$mnt"
t "commits too" wait_until 10 sh -c '"$INCRCTL" ls out b'
t_json "and stands in the build" "['committed', 't4']" '[d["status"], d["outputs"]["out"]["transaction"]]' \
	"$INCRCTL" build show b2 --json

# Aborts
echo c >c && "$INCRCTL" commit in c -q
"$INCRCTL" mount "$mnt" t -q && echo c >"$mnt/out/staging/c"
t_out "unmount --abort" "b3 aborted: nothing committed" "$INCRCTL" unmount --abort "$mnt"
t_exit 3 "nothing was committed" "$INCRCTL" ls out c
"$INCRCTL" mount "$mnt" t -q && echo c >"$mnt/out/staging/c" && touch "$mnt/.incr/abort"
t_json "an abort marker" "aborted" 'd["status"]' "$INCRCTL" unmount "$mnt" --json

# Commits that fail
"$INCRCTL" mount "$mnt" t --strict-append -q && echo a >"$mnt/out/staging/a"
t_error_once() {
	"$INCRCTL" unmount "$mnt" >out.txt 2>err.txt
	t "a commit that fails exits with its code" [ $? = 4 ]
	t "and says what to do" grep -q "hint: .*incrctl build commit b5, or incrctl build abort b5" err.txt
}
t_error_once
t_json "the build stays open" "['open', True]" '[d["status"], d["orphaned"]]' "$INCRCTL" build show b5 --json
t_out "build abort" "b5 aborted: nothing committed" "$INCRCTL" build abort b5
"$INCRCTL" mount "$mnt" t -q
exec 9>"$mnt/out/staging/held"
"$INCRCTL" unmount "$mnt" --json >out.txt 2>err.txt
t "a file that is still open for writing: exit 4" [ $? = 4 ]
t "is staging-busy" grep -q '"code":"staging-busy"' err.txt
exec 9>&-
t_exit 0 "and can be committed later" "$INCRCTL" build commit b6

# The process behind it is killed or told to end
"$INCRCTL" mount "$mnt" t -q && echo k >"$mnt/out/staging/killed"
t "a killed mount does not answer" kill_daemon
t_grep "unmount cleans it up and says so" "b7 stays open" "$INCRCTL" unmount "$mnt"
t_out "the mount point is empty again" "" ls -A "$mnt"
t_json "an orphan" "['b7', 'open', True]" '[d["build"], d["status"], d["orphaned"]]' last_build
t_exit 0 "that can be committed" "$INCRCTL" build commit b7
t_out "with all that was staged" k "$INCRCTL" cat out killed
"$INCRCTL" mount "$mnt" t -q && echo x >"$mnt/out/staging/killed2"
kill_daemon
t_out "mount on a dead mount" "b9 mounted on $mnt: incremental" "$INCRCTL" mount "$mnt" t
kill -TERM "$(daemon)"
t "SIGTERM detaches it" wait_until 10 sh -c '! mountpoint -q '"$mnt"
t "and leaves an orphan" wait_until 10 sh -c '"$INCRCTL" build show b9 | grep -q "open (orphan)"'
t_exit 0 "abort the one" "$INCRCTL" build abort b8
t_exit 0 "and the other" "$INCRCTL" build abort b9
"$INCRCTL" mount "$mnt" t -q && kill_daemon
t_out "unmount --abort of a dead mount" "b10 aborted: nothing committed" "$INCRCTL" unmount "$mnt" --abort

# Foreground
"$INCRCTL" mount "$mnt" t --foreground >out.txt 2>err.txt &
pid=$!
kill_later $pid
t "--foreground mounts" wait_until 10 mountpoint -q "$mnt"
echo f >"$mnt/out/staging/f"
t_grep "unmount from elsewhere" "^t[0-9]+ UPDATE out: 1 file, 2 B$" "$INCRCTL" unmount "$mnt"
wait $pid
t "it ends with the result" [ $? = 0 ]
"$INCRCTL" mount "$mnt" t --foreground >out.txt 2>err.txt &
pid=$!
kill_later $pid
wait_until 10 mountpoint -q "$mnt"
kill -TERM $pid
wait $pid
t "interrupted it fails" [ $? = 1 ]
t "and says what to do" grep -q "hint: .*incrctl build commit b12" err.txt
t "the mount is gone" sh -c '! mountpoint -q '"$mnt"
"$INCRCTL" build abort b12 -q

# Lazily
"$INCRCTL" mount "$mnt" t -q && echo l >"$mnt/out/staging/lazy"
exec 9<"$mnt/in/current/a"
t_exit 0 "unmount --lazy while it is used" "$INCRCTL" unmount "$mnt" --lazy
t_json "its build goes on" "['open', False]" '[d["status"], d["orphaned"]]' last_build
exec 9<&-
t "until the last user has left" wait_until 10 sh -c '"$INCRCTL" ls out lazy'

# Browsing, and views alone
t_out "a browser" "$INCR_STORE mounted on $mnt" "$INCRCTL" mount "$mnt"
t_out "shows datasets" "$(printf 'in\nout')" ls "$mnt"
t_out "and transactions" a cat "$mnt/in/@t1/a"
echo live >live && "$INCRCTL" commit in live -q
t_out "and what is committed meanwhile" live cat "$mnt/in/current/live"
t_exit 2 "has nothing to abort" "$INCRCTL" unmount "$mnt" --abort
t_out "unmounts quietly" "" "$INCRCTL" unmount "$mnt"
t_out "--read-only" "t mounted on $mnt: incremental, read-only" "$INCRCTL" mount "$mnt" t --read-only
t_out "has views alone" "$(printf 'added\ncurrent\nprevious')" ls "$mnt/out"
t_exit 0 "another build goes on beside it" "$INCRCTL" run t "${io[@]}" --force -- true
t_exit 0 "unmounts" "$INCRCTL" unmount "$mnt"
"$INCRCTL" mount "$mnt" --uid 12345 --gid 54321 -q
t_out "--uid and --gid" "12345 54321" stat -c '%u %g' "$mnt/in/current/a"
"$INCRCTL" unmount "$mnt"

# A store that is moved under its mount
new_world
"$INCRCTL" mount "$mnt" t "${io[@]}" -q 2>/dev/null
mv "$INCR_STORE" "$INCR_STORE.moved"
t_grep "unmount says that the store is gone" "not there any more: $INCR_STORE$" "$INCRCTL" unmount "$mnt"
t "but it is unmounted" sh -c '! mountpoint -q "$1"' sh "$mnt"
mv "$INCR_STORE.moved" "$INCR_STORE"
t_exit 0 "nothing is lost" "$INCRCTL" build show b1

# Without a mount
if unshare -m true 2>/dev/null; then
	hide='mount --bind /dev/null /dev/fuse && "$INCRCTL"'
	t_exit 125 "run without /dev/fuse" unshare -m sh -c "$hide run t -i in=in -o out=out --force -- true"
	t_grep "its hint" "hint: .*--view=copy" unshare -m sh -c "$hide run t -i in=in -o out=out --force -- true"
	t_exit 0 "--view=copy works" unshare -m sh -c "$hide run t -i in=in -o out=out --force --view=copy -- true"
	t_exit 1 "mount without /dev/fuse" unshare -m sh -c "$hide mount $mnt t"
	t_grep "its hint" "hint: .*--view=copy" unshare -m sh -c "$hide mount $mnt t"
	t "none of these leaves an open build" sh -c '! "$INCRCTL" build list | grep -q " open "'
else
	skip "run without /dev/fuse" "cannot hide it here"
fi

done_testing
