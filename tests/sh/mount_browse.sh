#!/bin/bash
# The browser: datasets, transactions, branches and points in time.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create a/b a/b/c "a/b c" empty -q
echo 1 >one && "$INCRCTL" commit a/b one -q
echo 2 >two && "$INCRCTL" commit a/b two -q
"$INCRCTL" branch a/b create dev --at t1 >/dev/null
echo 3 >three && "$INCRCTL" commit a/b three --branch dev -q
"$INCRCTL" mount "$mnt" -q

t_out "the parts of dataset names" "$(printf 'a\nempty')" ls "$mnt"
t_out "names beside each other" "$(printf 'b\nb c')" ls "$mnt/a"
t_out "a dataset, below it another one" "$(printf ':dev\n@t1\n@t2\nc\ncurrent')" ls "$mnt/a/b"
t_out "current" "$(printf 'one\ntwo')" ls "$mnt/a/b/current"
t_out "a transaction" one ls "$mnt/a/b/@t1"
t_out "another branch" "$(printf '@t1\n@t3\ncurrent')" ls "$mnt/a/b/:dev"
t_out "its files" "$(printf 'one\nthree')" ls "$mnt/a/b/:dev/current"
t_out "a dataset without transactions" current ls "$mnt/empty"
t_out "its view" "" ls -A "$mnt/empty/current"
t "the head is its transaction" [ "$mnt/a/b/current" -ef "$mnt/a/b/@t2" ]
t "another transaction is another directory" sh -c "! [ $mnt/a/b/current -ef $mnt/a/b/@t1 ]"
t "diff sees what a transaction added" sh -c "diff -r $mnt/a/b/@t1 $mnt/a/b/@t2 | grep -q 'Only in .*: two'"
for name in a/nothing a/b/@t99 a/b/@t01 a/b/@t a/b/:nothing a/b/c/@t1 empty/@t1 a/b/@t1/two x; do
	t_exit 2 "not there: $name" ls "$mnt/$name"
done

t_out "a transaction of another branch can be named too" "$(printf 'one\nthree')" ls "$mnt/a/b/@t3"

# Changes while it is mounted
echo 4 >four && "$INCRCTL" commit a/b four -q
t_out "a new transaction is seen at once" 4 cat "$mnt/a/b/current/four"
t_out "and listed" "$(printf '@t1\n@t2\n@t4')" sh -c "ls $mnt/a/b | grep '^@'"
t_exit 2 "an old one stays as it was" ls "$mnt/a/b/@t2/four"
"$INCRCTL" dataset create new/one -q
"$INCRCTL" commit new/one four -q
t_out "a new dataset" 4 cat "$mnt/new/one/current/four"
exec 9<"$mnt/a/b/@t1/one"
"$INCRCTL" branch a/b reset main t1 >/dev/null 2>&1 || "$INCRCTL" rm a/b two four -q
t_out "an open file stays" 1 cat <&9
exec 9<&-

# Commits while somebody reads: whoever sees one return finds it.
"$INCRCTL" dataset create busy quiet -q
seq 1000 >numbers && "$INCRCTL" commit busy numbers -q && "$INCRCTL" commit quiet numbers -q
touch reading
(while [ -e reading ]; do
	cat "$mnt/busy/current/numbers" "$mnt/quiet/current/numbers" | sum
done | uniq >sums) &
reader=$!
kill_later $reader
n_missed=0
for i in $(seq 100); do
	echo "$i" >file && "$INCRCTL" commit busy file --name "now$i" -q
	[ "$(cat "$mnt/busy/current/now$i")" = "$i" ] || n_missed=$((n_missed + 1))
	[ "$i" = 50 ] && "$INCRCTL" branch busy create side >/dev/null
	[ "$i" -le 50 ] && continue
	"$INCRCTL" commit busy file --branch side --name "side$i" -q
	[ "$(cat "$mnt/busy/:side/current/side$i")" = "$i" ] || n_missed=$((n_missed + 1))
	[ "$(tail -n 1 "$mnt/quiet/current/numbers")" = 1000 ] || n_missed=$((n_missed + 1))
done
rm reading
wait $reader
t "a commit that returned is seen, $n_missed missed" [ $n_missed = 0 ]
t_out "current has 100 files more" 101 sh -c "ls $mnt/busy/current | wc -l"
t_out "whoever reads meanwhile reads what was there" "$(cat numbers numbers | sum)" cat sums

# Many views, forgotten again
for i in $(seq 30); do
	echo "$i" >"file$i" && "$INCRCTL" commit empty "file$i" -q
done
for at in "$mnt"/empty/@t*; do
	cat "$at"/* >/dev/null
done
[ "$(id -u)" = 0 ] && echo 2 >/proc/sys/vm/drop_caches
t_out "each transaction has one file more" "$(seq 30)" sh -c "for at in \$(ls -v $mnt/empty | grep @); do ls $mnt/empty/\$at | wc -l; done"
"$INCRCTL" unmount "$mnt"

# Told to end while somebody is in a view that was listed.
# libfuse then keeps the name of the mount, which is no leak of ours.
"$INCRCTL" dataset create bare -q
ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}" "$INCRCTL" mount "$mnt" --foreground >mount.log 2>&1 &
pid=$!
kill_later $pid
wait_until 20 ls "$mnt/a/b/current"
ls "$mnt"/a/b/@t1 "$mnt/bare/current" >/dev/null
exec 9<"$mnt/bare/current"
kill -TERM $pid
t_exit 0 "the process of a browser that is told to end ends well" wait $pid
exec 9<&-

# At a time
time=$("$INCRCTL" show t1 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["time"])')
"$INCRCTL" mount "$mnt" --at "$time" -q
t_out "--at shows what there was" "$(printf '@t1\ncurrent')" sh -c "ls $mnt/a/b | grep -v '^[:c]$' | grep -v dev"
t_out "with its files" one ls "$mnt/a/b/current"
t_exit 2 "without later transactions" ls "$mnt/a/b/@t2"
"$INCRCTL" unmount "$mnt"

done_testing
