# shellcheck shell=bash
# What must not grow with the dataset or its history.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

# Two stores: many files in many commits, and a thousand in one.
need_grown() {
	[ ! -e "$work/grown" ] || return 0
	need_thousand
	note "making a dataset of $((n_grown * 1000)) files in $n_grown commits"
	new_store "$work/grown"
	new_store "$work/little"
	"$BENCH_BIN/store_loop" tree "$work/grown" data "$n_grown" \
		"$data/thousand" || die "cannot grow"
	"$BENCH_BIN/store_loop" tree "$work/little" data 1 "$data/thousand" ||
		die "cannot grow"
}

commit_hundred() {
	need_hundred
	settle
	timed "$INCRCTL" -S "$1" commit data "$data/hundred" \
		--prefix "round-$side-$2"
}

commit_grown() { commit_hundred "$work/grown" "$1"; }
commit_little() { commit_hundred "$work/little" "$1"; }

# Ten plans are one sample: one takes milliseconds.
plan_ten() {
	timed sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
		"$1" -S "$2" plan bench || exit
	done' - "$INCRCTL" "$1"
}

# The same for the newest of the history, and for an early view.
log_ten() {
	timed sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
		"$1" -S "$2" log data --limit 5 >/dev/null || exit
	done' - "$INCRCTL" "$1"
}

ls_ten() {
	timed sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
		"$1" -S "$2" ls data@t50 >/dev/null || exit
	done' - "$INCRCTL" "$1"
}

log_long() { log_ten "$work/long"; }
log_short() { log_ten "$work/short"; }
ls_long() { ls_ten "$work/long"; }
ls_short() { ls_ten "$work/short"; }
plan_grown() { plan_ten "$work/grown"; }
plan_little() { plan_ten "$work/little"; }
plan_long() { plan_ten "$work/long"; }
plan_short() { plan_ten "$work/short"; }

grow_files() {
	local store
	need_grown
	rm -f "$work"/samples/*
	interleave commit_grown commit_little
	row "commit of 100 files into $((n_grown * 1000)) / into 1000" \
		commit_grown commit_little 1.5
	for store in grown little; do
		skip_build "$work/$store"
		side=new
		commit_hundred "$work/$store" plan
	done
	interleave plan_grown plan_little
	row "10 plans, 100 new files, $((n_grown * 1000)) files / 1000" \
		plan_grown plan_little 1.5
	rm -rf "$work/grown" "$work/little"
}

# A build that reads nothing, but moves the read end to the head.
skip_build() {
	"$INCRCTL" -S "$1" dataset create out >/dev/null 2>&1
	"$INCRCTL" -S "$1" run bench -i in=data -o out=out --skip --force \
		-- true >"$work/out" 2>&1 && return
	cat "$work/out" >&2
	die "cannot build"
}

grow_history() {
	local store n
	note "making $n_transactions transactions"
	need_hundred
	for store in long short; do
		n=$n_transactions
		[ $store = long ] || n=100
		new_store "$work/$store"
		"$BENCH_BIN/store_loop" small "$work/$store" data "$n" ||
			die "cannot make transactions"
		skip_build "$work/$store"
		side=new
		commit_hundred "$work/$store" plan
	done
	rm -f "$work"/samples/*
	interleave plan_long plan_short
	row "10 plans after $n_transactions transactions / after 100" \
		plan_long plan_short 1.5
	interleave log_long log_short
	row "10 times log --limit 5 after $n_transactions transactions / after 100" \
		log_long log_short 1.5
	interleave ls_long ls_short
	row "10 times ls data@t50 after $n_transactions transactions / after 100" \
		ls_long ls_short 1.5
	rm -rf "$work/long" "$work/short"
}

# Another one for each $2 from 0 to 99.
change_hundredth() {
	local file
	find "$1" -type f | LC_ALL=C sort | awk -v i="$2" 'NR % 100 == i' |
		while IFS= read -r file; do
			echo "changed in round $2" >>"$file"
		done
}

grow_snapshots() {
	local one ten i
	make_once snapshot tree 1000 "$n_snapshots" 4096
	new_store "$work/store"
	for ((i = 0; i < 10; i++)); do
		"$BENCH_BIN/measure" "$work/samples/snapshot" \
			"$INCRCTL" -S "$work/store" commit -q data \
			"$data/snapshot" --type snapshot >/dev/null ||
			die "cannot commit a snapshot"
		[ $i != 0 ] || one=$(mib_of "$work/store")
	done
	ten=$(mib_of "$work/store")
	row_of_numbers "stored: 10 equal snapshots of $n_snapshots files / one" \
		"$ten" "$one" 1.1 MiB
	for ((i = 0; i < 10; i++)); do
		change_hundredth "$data/snapshot" $i
		"$INCRCTL" -S "$work/store" commit -q data \
			"$data/snapshot" --type snapshot >/dev/null ||
			die "cannot commit a snapshot"
	done
	row_of_numbers "stored: 10 more, 1 % changed in each / one" \
		"$(mib_of "$work/store")" "$one" - MiB
	print_row "peak memory of a commit of $n_snapshots files, MiB" \
		"$(peak_of snapshot)" 256 \
		"$(peak_of snapshot | awk '{ print $1 / 256 }')" 1.0
	rm -rf "$work/store"
	drop_data snapshot
}

section_growth() {
	begin_section growth
	if has_room $((n_grown * 2)) "growth by files"; then
		grow_files
	fi
	if has_room $((n_transactions / 50)) "growth by transactions"; then
		grow_history
	fi
	if has_room $((n_snapshots / 100)) "snapshots"; then
		grow_snapshots
	fi
}
