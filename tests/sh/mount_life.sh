#!/bin/bash
# Several mounts of one store at once, while it is written to and moved: each
# shows what there was when it began, and commits what was written to it.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

fresh_store
"$INCRCTL" dataset create in out1 out2 out3 out4
mkdir first mnt1 mnt2 mnt3 mnt4 browse
for i in $(seq 40); do
	seq "$i" $((i * 50)) >"first/f$i"
done
"$INCRCTL" commit in first -q

# state DIRECTORY: names and bytes of all below it.
state() {
	(cd "$1" && find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
}
# mount_build N: mount the build tN on mntN, and note what in holds for it.
mount_build() {
	"$INCRCTL" mount "mnt$1" "t$1" -i in=in -o "out=out$1" -q 2>/dev/null || return
	"$INCRCTL" export in "want$1" -q >/dev/null
}
unchanged() {
	local i
	for i in "$@"; do
		[ "$(state "mnt$i/in/current")" = "$(state "want$i")" ] || return
	done
}

t "a build is mounted" mount_build 1
echo more >extra && "$INCRCTL" commit in extra -q
t "another after an append" mount_build 2
echo changed >first/f1 && "$INCRCTL" commit in first/f1 --type update -q
t "another after an update" mount_build 3
"$INCRCTL" rm in f2 -q
t "another after a removal" mount_build 4
"$INCRCTL" mount browse -q
t "each sees what there was" unchanged 1 2 3 4

# Everything that can happen to an input, while they are read
touch reading
(while [ -e reading ]; do unchanged 1 2 3 4 || echo changed >>wrong; done) &
reader=$!
kill_later $reader
for i in $(seq 30); do
	seq "$i" 100 >new
	"$INCRCTL" commit in new --name "new$i" -q
	"$INCRCTL" commit in new --name f3 --type update -q
	"$INCRCTL" rm in "new$i" -q
done
"$INCRCTL" commit in new --type snapshot -q
"$INCRCTL" dataset rename in moved
rm reading
wait $reader
t "no view changes while its input does" [ ! -e wrong ]
t_out "the browser follows" "$(cat new)" cat browse/moved/current/new
"$INCRCTL" dataset rename moved in

for i in 4 2 1 3; do
	echo "by $i" >"mnt$i/out/staging/result"
done
t_out "an output is not seen by others before" "" "$INCRCTL" ls out1
for i in 3 1; do
	t_grep "build $i commits its own" "SNAPSHOT out$i: 1 file" "$INCRCTL" unmount "mnt$i"
	t_out "with what was written to it" "by $i" "$INCRCTL" cat "out$i" result
done
t "the others stay" unchanged 2 4

# The store is moved
mv "$INCR_STORE" "$INCR_STORE-moved"
for i in 2 4; do
	[ "$(id -u)" = 0 ] && echo 3 >/proc/sys/vm/drop_caches
	t "build $i reads from a store that was moved" unchanged "$i"
	t "and shows what was staged" grep -q "by $i" "mnt$i/out/current/result"
	t_exit 3 "unmount says that it is not where it was" "$INCRCTL" unmount "mnt$i"
done
t_out "the browser shows it too" "$(cat new)" cat browse/in/current/new
t_exit 0 "and is unmounted" "$INCRCTL" unmount browse
INCR_STORE=$INCR_STORE-moved
for i in 2 4; do
	t "build $i is committed there" wait_until 10 "$INCRCTL" ls "out$i" result
done
t "nothing is left open" sh -c "! \"$INCRCTL\" build list | grep open"
t_exit 0 "and nothing is damaged" "$INCRCTL" verify --data

done_testing
