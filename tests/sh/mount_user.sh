#!/bin/bash
# An ordinary user mounts, builds and unmounts; others stay out. What root mounts
# for others is shown to them by its modes.
#
# Where /dev/fuse is root's alone, root has another one put over it, in a mount
# namespace that nobody else sees.
# shellcheck disable=SC2016  # expanded by the inner shell
if [ "$(id -u)" = 0 ] && [ -z "${INCR_OWN_FUSE-}" ] && [ -c /dev/fuse ] &&
	[ "$(stat -c %A /dev/fuse | cut -c8-9)" != rw ] && unshare --mount true 2>/dev/null; then
	exec env INCR_OWN_FUSE=1 unshare --mount bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"
[ "$(id -u)" = 0 ] || skip_all "needs root, to be another user"
id nobody >/dev/null 2>&1 || skip_all "no user nobody"
[ -u "$(command -v fusermount3)" ] || skip_all "fusermount3 is not setuid"
chmod a+rx "$top" "$TMP"
if [ -n "${INCR_OWN_FUSE-}" ]; then
	mknod "$top/fuse" c 10 229 && chmod 0666 "$top/fuse" &&
		mount --bind "$top/fuse" /dev/fuse || skip_all "/dev/fuse is for root alone"
fi
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

# Mounts of root
as() { # USER COMMAND...
	setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}
mkdir tree && echo open >tree/open && echo own >tree/own && echo group >tree/group && echo s >tree/setuid
chmod 644 tree/open && chmod 600 tree/own && chmod 640 tree/group && chmod 4755 tree/setuid
fresh_store
"$INCRCTL" dataset create in out
"$INCRCTL" commit in tree -q
"$INCRCTL" mount "$mnt" -q
t_out "views are owned by who mounts" "0 0" stat -c '%u %g' "$mnt/in/current/open"
t_exit 1 "others stay out without --allow-other" as 4321 cat "$mnt/in/current/open"
t_exit 0 "unmount" "$INCRCTL" unmount "$mnt"
"$INCRCTL" mount "$mnt" --allow-other --uid 4321 --gid 8765 -q
t_out "--uid and --gid own everything" "4321 8765" \
	sh -c "find $mnt -printf '%U %G\n' | sort -u"
t_out "others read what the mode lets them" open as 1 cat "$mnt/in/current/open"
t_exit 1 "and nothing else" as 1 cat "$mnt/in/current/own"
t_out "the owner reads its own" own as 4321 cat "$mnt/in/current/own"
t_out "the group what is for the group" group \
	setpriv --reuid=1 --regid=8765 --clear-groups cat "$mnt/in/current/group"
t_out "setuid bits are not shown" 755 stat -c %a "$mnt/in/current/setuid"
options() {
	findmnt -no OPTIONS "$mnt" | tr , '\n' | grep -xE "$1" | sort
}
t_out "modes are checked, devices and setuid off" \
	"$(printf 'allow_other\ndefault_permissions\nnodev\nnosuid\nro')" \
	options 'allow_other|default_permissions|nodev|nosuid|ro'
t "nothing unmounts by itself" sh -c "! ps -eo args | grep -q \"[f]usermount3.*auto_unmount.*$mnt\""
t_exit 0 "and it is unmounted" "$INCRCTL" unmount "$mnt"

done_testing
