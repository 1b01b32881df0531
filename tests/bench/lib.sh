# shellcheck shell=bash
# Helpers of run-bench: measuring sides of a comparison by turns, and printing
# a row beside its goal.
#
# A side is a function that prepares what it needs and then calls `timed`
# around what counts. `interleave A B` calls each side once a round, in turn;
# `row` prints medians over the rounds.
# shellcheck disable=SC2034,SC2154  # of and for run-bench and the sections

set -u
export LC_ALL=C TZ=UTC

: "${INCRCTL:?the program under test, for example build/tools/incrctl}"
: "${BENCH_BIN:?the folder of the helper programs, for example build/tests/bench}"
rounds=${BENCH_ROUNDS:-5}
scale=${BENCH_SCALE:-full}
unset INCR_STORE

n_missed=0
side= # whose samples `timed` adds to
mounts=()

die() {
	echo "run-bench: $*" >&2
	exit 1
}

note() {
	printf '# %s\n' "$*"
}

begin_section() {
	printf '\n# %s\n# name: ours theirs ratio goal\n' "$1"
	rm -rf "$work/samples"
	mkdir "$work/samples"
}

# timed COMMAND...: run it as the sample of this round.
timed() {
	"$BENCH_BIN/measure" "$work/samples/$side" "$@" </dev/null \
		>"$work/out" 2>&1 && return
	tail -n 20 "$work/out" >&2
	die "$side: failed: $*"
}

# interleave SIDE...: every side once a round, each first in its turn.
interleave() {
	local round i n=$#
	local sides=("$@")
	for ((round = 0; round < rounds; round++)); do
		for ((i = 0; i < n; i++)); do
			side=${sides[(i + round) % n]}
			"$side" "$round"
		done
	done
	side=
}

# median FILE [COLUMN]
median() {
	awk -v column="${2:-1}" '{ print $column }' "$1" | sort -g |
		awk '{ v[NR] = $1 }
		     END { i = int((NR + 1) / 2); j = int(NR / 2) + 1
			   print (v[i] + v[j]) / 2 }'
}

seconds_of() {
	median "$work/samples/$1"
}

# Peak memory of a side over all rounds, in MiB.
peak_of() {
	awk '$2 > m { m = $2 } END { printf "%.0f", m / 1024 }' "$work/samples/$1"
}

# The median of the rounds' own ratios: what slows the machine down for a
# while slows both down.
ratio_of() {
	paste "$work/samples/$1" "$work/samples/$2" |
		awk '{ print $1 / $3 }' >"$work/samples/ratios"
	median "$work/samples/ratios"
}

# print_row NAME OURS THEIRS RATIO GOAL: GOAL - means that none was set.
print_row() {
	local goal=$5
	if [ "$goal" != - ]; then
		goal=$(awk -v r="$4" -v g="$5" \
			'BEGIN { print "<=" g, (r <= g ? "ok" : "MISSED") }')
		[ "${goal% MISSED}" = "$goal" ] || n_missed=$((n_missed + 1))
	fi
	printf '%s: %s %s %.3f %s\n' "$1" "$2" "$3" "$4" "$goal"
}

# row NAME OUR-SIDE THEIR-SIDE GOAL: times.
row() {
	print_row "$1" "$(printf '%.4gs' "$(seconds_of "$2")")" \
		"$(printf '%.4gs' "$(seconds_of "$3")")" \
		"$(ratio_of "$2" "$3")" "$4"
}

# row_of_numbers NAME OURS THEIRS GOAL UNIT: sizes.
row_of_numbers() {
	print_row "$1" "$2$5" "$3$5" "$(awk -v a="$2" -v b="$3" \
		'BEGIN { print a / b }')" "$4"
}

mib_of() {
	du -s --block-size=1 --apparent-size "$@" |
		awk '{ n += $1 } END { printf "%.1f", n / 1048576 }'
}

# MiB that must be free below $work, or the rows are left out.
has_room() {
	local free
	free=$(df --output=avail -B 1M "$work" | tail -n 1)
	[ "$free" -ge "$1" ] && return
	note "$2: skipped: needs $1 MiB below $work, there are $free"
	return 1
}

drop_caches() {
	sync
	[ "$is_root" = 1 ] || return 0
	echo 3 >/proc/sys/vm/drop_caches
}

# Start from quiet: nothing dirty that another side would have to write.
settle() {
	sync
}

new_store() {
	rm -rf "$1"
	"$INCRCTL" init "$1" >/dev/null || die "cannot make a store"
	"$INCRCTL" -S "$1" dataset create data >/dev/null ||
		die "cannot make a dataset"
}

# mount_views STORE MOUNTPOINT [OPTION]...: `data` as the input `in` of a build.
mount_views() {
	local store=$1 at=$2
	shift 2
	mkdir -p "$at"
	"$INCRCTL" -S "$store" dataset create out >/dev/null 2>&1
	"$INCRCTL" -S "$store" mount "$at" bench -i in=data -o out=out "$@" \
		</dev/null >"$work/out" 2>&1 || {
		cat "$work/out" >&2
		die "cannot mount"
	}
	mounts+=("$at")
}

# Whoever lists mounts on this machine holds one for a moment.
unmount_views() {
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		"$INCRCTL" unmount --abort "$1" >"$work/out" 2>&1 && return
		sleep 0.1
	done
	cat "$work/out" >&2
	die "cannot unmount"
}

clean_up() {
	local status=$? at
	trap - EXIT INT TERM HUP
	cd / || exit 1
	for at in "${mounts[@]+"${mounts[@]}"}"; do
		mountpoint -q "$at" && {
			fusermount3 -u -z "$at" 2>/dev/null || umount -l "$at"
		}
	done
	[ -n "${BENCH_KEEP:-}" ] || rm -rf --one-file-system "$work"
	exit "$status"
}
