#!/bin/bash
# POSIX behaviour of staging, on the disk itself and through the mount; a plain
# directory of the same file system is the measure.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"
posix=${INCR_BUILDDIR:?where tests/posix_staging was built}/tests/posix_staging
[ -x "$posix" ] || skip_all "tests/posix_staging is not built"

mnt=$TMP/mnt
mkdir mnt plain
fresh_store
"$INCRCTL" dataset create in out
# for the checks of other users
chmod a+rx "$top" "$TMP"
chmod a+x "$INCR_STORE"
other=()
[ "$(id -u)" = 0 ] && other=(--allow-other)

# check WHAT DIRECTORY
check() {
	if "$posix" "$2" >posix.log 2>&1; then
		pass "$1: $(tail -n 1 posix.log)"
	else
		fail "$1" "$(tail -n 40 posix.log)"
	fi
}

check "a plain directory" "$TMP/plain"
for how in link fuse; do
	"$INCRCTL" mount "$mnt" tr -i in=in -o out=out --staging=$how -q "${other[@]+"${other[@]}"}"
	check "--staging=$how" "$mnt/out/staging"
	t "--staging=$how: the mount is as before" sh -c "echo x >$mnt/out/staging/$how"
	t "--staging=$how: and commits" "$INCRCTL" unmount "$mnt"
	t_out "--staging=$how: what was left" "x" "$INCRCTL" cat out $how
done

done_testing
