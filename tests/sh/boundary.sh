#!/bin/bash
# Who may use what: libincr shows the functions of incr.h and no other, and
# the mount and incrctl need nothing else of it.
. "$(dirname "$0")/lib.sh"

build=${INCR_BUILDDIR:-$SRCDIR/build}
library=$build/src/.libs/libincr.so
internal=$build/src/.libs/libincr_internal.a
[ -f "$library" ] && [ -f "$internal" ] || skip_all "no build in $build"

# Names of sanitizers and of the compiler begin with two underscores.
symbols() {
	nm "$@" | awk 'NF >= 2 { print $NF }' | grep -v '^_' | sort -u
}

declared() {
	tr '\n\t' '  ' <"$SRCDIR/src/incr.h" | sed 's/INCR_API/\n&/g' |
		sed -n 's/^INCR_API [^(]*[ *]\(incr_[a-z0-9_]*\)(.*/\1/p' | sort -u
}

# An internal function that tools/ or fuse/ calls shows as undefined there and
# defined in the archive.
internal_uses() {
	comm -12 <(symbols --defined-only --extern-only "$internal" | grep -v '^incr_') \
		<(find "$build/tools" "$build/fuse" -name '*.o' -print0 |
			xargs -0 nm --undefined-only | awk '$1 == "U" { print $2 }' | sort -u)
}

t_out "libincr exports what incr.h declares, and nothing else" "$(declared)" \
	symbols --dynamic --defined-only "$library"
t_out "incrctl and the mount call no internal function" "" internal_uses
done_testing
