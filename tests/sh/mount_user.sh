#!/bin/bash
# An ordinary user mounts, builds and unmounts; others stay out.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"
[ "$(id -u)" = 0 ] || skip_all "needs root, to be another user"
id nobody >/dev/null 2>&1 || skip_all "no user nobody"
[ -u "$(command -v fusermount3)" ] || skip_all "fusermount3 is not setuid"
chmod a+rx "$top" "$TMP"
cp "$INCRCTL" "$top/incrctl" && INCRCTL=$top/incrctl
chmod a+rx "$INCRCTL"
as_nobody() {
	setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups \
		env HOME="$TMP/home" INCR_STORE="$TMP/home/store" INCRCTL="$INCRCTL" "$@"
}
as_nobody true 2>/dev/null || skip_all "setpriv cannot be another user"
as_nobody sh -c ': </dev/fuse' 2>/dev/null || skip_all "/dev/fuse is for root alone"
as_nobody test -x "$INCRCTL" || skip_all "the program cannot be read by others"

mkdir home mnt && chown nobody home mnt
mnt=$TMP/mnt
t_exit 0 "a store" as_nobody "$INCRCTL" init "$TMP/home/store"
as_nobody "$INCRCTL" dataset create in out
echo a >a && as_nobody "$INCRCTL" commit in a -q
t_exit 0 "run with a mount" as_nobody "$INCRCTL" run tr -i in=in -o out=out -- \
	sh -c 'cp "$INCR_ADDED_IN/a" "$INCR_OUT_OUT/"'
t_out "has built" a as_nobody "$INCRCTL" cat out a
t_exit 0 "mount" as_nobody "$INCRCTL" mount "$mnt" tr
t_out "the views belong to the user" "$(id -u nobody)" as_nobody stat -c %u "$mnt/in/current/a"
t_exit 1 "root stays out" cat "$mnt/in/current/a"
as_nobody sh -c "echo \$\$ >$TMP/home/pid && cd $mnt/in && exec sleep 60" &
wait_until 10 sh -c "[ \"\$(readlink /proc/\$(cat $TMP/home/pid)/cwd)\" = $mnt/in ]"
sleeper=$(<home/pid)
kill_later "$sleeper"
t_exit 7 "unmount while it is used" as_nobody "$INCRCTL" unmount "$mnt"
t_grep "names who uses it" "\(sleep\) uses $mnt/in" as_nobody "$INCRCTL" unmount "$mnt"
kill "$sleeper"
wait $! 2>/dev/null
echo b | as_nobody sh -c "cat >$mnt/out/staging/b"
t_grep "unmount commits" "UPDATE out: 1 file" as_nobody "$INCRCTL" unmount "$mnt"
as_nobody sh -c "echo \$\$ >$TMP/home/pid && exec $INCRCTL mount $mnt -q --foreground" &
wait_until 10 as_nobody ls "$mnt/in"
kill -KILL "$(<home/pid)"
wait $! 2>/dev/null
t_exit 0 "a mount on the own dead one" as_nobody "$INCRCTL" mount "$mnt" -q
t_out "works" a as_nobody cat "$mnt/in/current/a"
t_exit 0 "plain fusermount3 -u" as_nobody fusermount3 -u "$mnt"
mkdir of-root
t_exit 1 "not on a directory of somebody else" as_nobody "$INCRCTL" mount "$TMP/of-root"

done_testing
