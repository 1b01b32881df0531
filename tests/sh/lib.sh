# shellcheck shell=bash
# Helpers of the shell tests. A test reads:
#
#   #!/bin/bash
#   . "$(dirname "$0")/lib.sh"
#
#   fresh_store
#   t "a new store has no datasets" [ -z "$("$INCRCTL" dataset list)" ]
#   t_exit 3 "an unknown dataset is not found" "$INCRCTL" show nothing
#   t_out "cat prints the bytes" "hello" "$INCRCTL" cat d hello.txt
#   t_grep "log names the type" "APPEND" "$INCRCTL" log d
#   done_testing
#
# The working directory is $TMP, new and empty. On exit, whatever the reason,
# it is removed with the stores; before that mounts below it are detached,
# processes noted with kill_later ended and loop devices of new_loop detached.

set -u
export LC_ALL=C.UTF-8 TZ=UTC
umask 022

: "${INCRCTL:?the program under test, for example build/tools/incrctl}"
# shellcheck disable=SC2034  # for the tests
SRCDIR=${INCR_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
export INCRCTL
unset INCR_STORE

n_passed=0 n_failed=0 n_skipped=0
is_done=0
later_pids=()
later_loops=()

top=$(mktemp -d "${TMPDIR:-/tmp}/incr-$(basename "$0" .sh).XXXXXX") || exit 1
top=$(cd "$top" && pwd -P)
TMP=$top/work
mkdir "$TMP" && cd "$TMP" || exit 1

# Mount points below $top, the innermost first.
mounts_below() {
	local point
	while read -r _ _ _ _ point _; do
		point=$(printf '%b' "$point")
		case $point in
		"$top"/*) printf '%s\n' "$point" ;;
		esac
	done </proc/self/mountinfo | sort -r
}

clean_up() {
	local status=$? pid loop point
	trap - EXIT INT TERM HUP
	cd / || exit 1
	mounts_below | while read -r point; do
		fusermount3 -u -z "$point" 2>/dev/null || umount -l "$point"
	done
	for pid in "${later_pids[@]+"${later_pids[@]}"}"; do
		kill "$pid" 2>/dev/null
	done
	for loop in "${later_loops[@]+"${later_loops[@]}"}"; do
		losetup -d "$loop" 2>/dev/null
	done
	chmod -R u+rwX "$top" 2>/dev/null
	rm -rf --one-file-system "$top"
	if [ $is_done = 0 ] && [ $status != 77 ]; then
		echo "not ok: ended before done_testing, exit $status"
		n_failed=$((n_failed + 1))
		print_count
		[ $status != 0 ] || status=1
	fi
	exit $status
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

print_count() {
	local line="$n_passed passed, $n_failed failed"
	[ $n_skipped = 0 ] || line="$line, $n_skipped skipped"
	echo "$line"
}

pass() {
	n_passed=$((n_passed + 1))
	echo "ok: $1"
}

# fail WHAT [DETAIL]...: each detail is printed indented.
fail() {
	n_failed=$((n_failed + 1))
	echo "FAILED: $1  (line ${BASH_LINENO[1]} of $(basename "$0"))"
	shift
	[ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/    /'
}

# Run a command for t_*: sets status and leaves what it printed in two files.
run_quietly() {
	"$@" >"$top/out" 2>"$top/err"
	status=$?
}

# t WHAT COMMAND...: the command succeeds.
t() {
	local what=$1 status
	shift
	run_quietly "$@"
	if [ "$status" = 0 ]; then
		pass "$what"
	else
		fail "$what" "exit $status from: $*" "$(cat "$top/out" "$top/err")"
	fi
}

# t_exit CODE WHAT COMMAND...: the command exits with CODE.
t_exit() {
	local want=$1 what=$2 status
	shift 2
	run_quietly "$@"
	if [ "$status" = "$want" ]; then
		pass "$what"
	else
		fail "$what" "want exit $want, got $status from: $*" \
			"$(cat "$top/out" "$top/err")"
	fi
}

# t_out WHAT EXPECTED COMMAND...: the command succeeds and prints EXPECTED
# (newlines at the end do not count).
t_out() {
	local what=$1 want=$2 status got
	shift 2
	run_quietly "$@"
	got=$(cat "$top/out")
	if [ "$status" = 0 ] && [ "$got" = "$want" ]; then
		pass "$what"
	else
		fail "$what" "exit $status from: $*" \
			"$(diff -u --label want --label got \
				<(printf '%s\n' "$want") <(printf '%s\n' "$got"))" \
			"$(cat "$top/err")"
	fi
}

# t_grep WHAT REGEX COMMAND...: stdout or stderr, whatever the exit status, has
# a line that matches the extended REGEX.
t_grep() {
	local what=$1 regex=$2 status
	shift 2
	run_quietly "$@"
	if cat "$top/out" "$top/err" | grep -qE -e "$regex"; then
		pass "$what"
	else
		fail "$what" "no line matches: $regex" "exit $status from: $*" \
			"$(cat "$top/out" "$top/err")"
	fi
}

# skip WHAT REASON: one test cannot run here.
skip() {
	n_skipped=$((n_skipped + 1))
	echo "skipped: $1: $2"
}

# skip_all REASON: nothing of this file can run here.
skip_all() {
	echo "skipped: $1"
	is_done=1
	exit 77
}

# Make a new store, outside $TMP, and let INCR_STORE name it.
fresh_store() {
	INCR_STORE=$(mktemp -d "$top/store.XXXXXX")
	export INCR_STORE
	"$INCRCTL" init "$INCR_STORE" >/dev/null || exit 1
}

# Whether this user can mount with FUSE here.
can_mount() {
	[ -c /dev/fuse ] && command -v fusermount3 >/dev/null &&
		(exec 3<>/dev/fuse) 2>/dev/null
}

# End process PID when the test ends.
kill_later() {
	later_pids+=("$1")
}

# new_loop FILE: sets LOOP to a loop device over FILE, detached at the end.
new_loop() {
	LOOP=$(losetup --find --show "$1") || return
	later_loops+=("$LOOP")
}

# wait_until SECONDS COMMAND...: until the command succeeds; fails after that
# time.
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.05
	done
}

# Print the count; exit 1 if a test failed. The last line of every test.
done_testing() {
	is_done=1
	print_count
	[ $n_failed = 0 ]
	exit
}
