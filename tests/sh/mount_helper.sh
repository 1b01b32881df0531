#!/bin/bash
# mount -t fuse.incr: the helper that mount(8) runs, and the unit for systemd.
# shellcheck disable=SC2016  # commands of other shells
. "$(dirname "$0")/lib.sh"

helper=$SRCDIR/tools/mount.fuse.incr
can_mount || skip_all "no FUSE here"

fresh_store
"$INCRCTL" dataset create d >/dev/null
echo one >one
"$INCRCTL" commit d one >/dev/null
mkdir mnt

t "the helper mounts a store" "$helper" "$INCR_STORE" "$TMP/mnt"
t_out "to be browsed" one cat mnt/d/current/one
echo two >two
"$INCRCTL" commit d two >/dev/null
t "new transactions are seen" test -e mnt/d/current/two
t "and it is unmounted" "$INCRCTL" unmount mnt
t "options of mount(8) and of ours" "$helper" "$INCR_STORE" "$TMP/mnt" -n \
	-o ro,noauto,x-systemd.automount,nosuid,uid=1234,gid=4321
t_out "are minded" 1234:4321 stat -c %u:%g mnt/d/current/one
t "and it is unmounted" "$INCRCTL" unmount mnt
t_exit 1 "an unknown option is an error" "$helper" "$INCR_STORE" "$TMP/mnt" -o frobnicate
t_out "that mounts nothing" "" ls mnt
t "unless sloppy is asked for" "$helper" "$INCR_STORE" "$TMP/mnt" -s -o frobnicate
t "and it is unmounted" "$INCRCTL" unmount mnt
t "a fake mount does nothing" "$helper" "$INCR_STORE" "$TMP/mnt" -f
t_out "at all" "" ls mnt
t_exit 3 "a store that is not there" "$helper" "$TMP/nothing" "$TMP/mnt"
t_exit 1 "too few words" "$helper" "$INCR_STORE"

# The real mount(8), in a namespace of its own where /sbin has the helper.
mkdir upper work
if unshare -m sh -c 'mount -t overlay overlay -o \
	"lowerdir=/usr/sbin,upperdir=$1/upper,workdir=$1/work" /usr/sbin' sh "$TMP" 2>/dev/null; then
	t_out "mount -t fuse.incr STORE DIR" one unshare -m sh -c '
		mount -t overlay overlay -o \
			"lowerdir=/usr/sbin,upperdir=$1/upper,workdir=$1/work" /usr/sbin &&
		cp "$2" /usr/sbin/mount.fuse.incr &&
		mount -t fuse.incr -o noauto "$INCR_STORE" "$1/mnt" &&
		cat "$1/mnt/d/current/one" && umount "$1/mnt"' sh "$TMP" "$helper"
else
	skip "mount -t fuse.incr STORE DIR" "no overlay mounts here"
fi

if command -v systemd-analyze >/dev/null; then
	mkdir units
	sed 's,/usr/local/bin/incrctl,/bin/true,' "$SRCDIR/docs/examples/incr-browse@.service" \
		>units/incr-browse@.service
	t "the unit is right in systemd's eyes" systemd-analyze verify units/incr-browse@.service
else
	skip "the unit is right in systemd's eyes" "no systemd"
fi
done_testing
