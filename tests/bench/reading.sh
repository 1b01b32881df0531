# shellcheck shell=bash
# Reading through the mount of a build against the same files on the
# filesystem beneath.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

cold() {
	if mountpoint -q "$mnt"; then
		unmount_views "$mnt"
	fi
	drop_caches
	mount_views "$work/store" "$mnt"
}

ours=
theirs=

# pair WHAT-FUNCTION: sides that are WHAT on the mount and WHAT beneath, cold.
cold_mount() {
	cold
	"$what" "$ours"
}

cold_native() {
	drop_caches
	"$what" "$theirs"
}

warm_mount() {
	"$what" "$ours"
}

warm_native() {
	"$what" "$theirs"
}

# To /dev/null: from file to file, cat would let the kernel copy, which it does
# within one filesystem only.
scan() {
	timed sh -c 'find "$1" -type f -print0 | xargs -0 cat >/dev/null' - "$1"
}
list_long() { timed ls -lR "$1"; }
find_all() { timed find "$1"; }
read_whole() { timed sh -c 'cat "$1" >/dev/null' - "$1"; }
count_words() { timed wc "$1"; }
sum_column() {
	timed awk -F, '{ n[$3] += $5 } END { for (k in n) print k, n[k] }' "$1"
}
read_randomly() { timed "$BENCH_BIN/random_read" "$1" "$n_random" "${1:+$RANDOM}"; }

# compare_reads NAME WHAT GOAL-COLD GOAL-WARM: a goal of none leaves it out.
# warm_up, if set, is what brings all into the cache in place of WHAT.
compare_reads() {
	what=$2
	rm -f "$work"/samples/*
	if [ "$3" != none ] && [ "$is_root" = 1 ]; then
		interleave cold_mount cold_native
		row "$1, cold" cold_mount cold_native "$3"
	elif [ "$3" != none ]; then
		note "$1, cold: skipped: dropping caches needs root"
	fi
	if [ "$4" != none ]; then
		mountpoint -q "$mnt" || mount_views "$work/store" "$mnt"
		side=warm_up
		"${warm_up:-$what}" "$ours"
		"${warm_up:-$what}" "$theirs"
		interleave warm_mount warm_native
		row "$1, warm" warm_mount warm_native "$4"
	fi
}

# open_view SOURCE: commit it into a new store; ours and theirs lead to it.
open_view() {
	if mountpoint -q "$mnt"; then
		unmount_views "$mnt"
	fi
	new_store "$work/store"
	"$INCRCTL" -S "$work/store" commit -q data "$1" >/dev/null ||
		die "cannot commit $1"
	ours=$mnt/in/current theirs=$1
	[ -d "$1" ] || ours=$ours/$(basename "$1")
}

close_view() {
	if mountpoint -q "$mnt"; then
		unmount_views "$mnt"
	fi
	rm -rf "$work/store"
}

read_trees() {
	need_small
	open_view "$data/small"
	compare_reads "scan $n_small x 4 KiB" scan 0.20 1.00
	compare_reads "ls -lR of $n_small files" list_long 0.7 0.9
	compare_reads "find of $n_small files" find_all 1.0 -
	need_medium
	open_view "$data/medium"
	compare_reads "scan $n_medium x 64 KiB" scan - -
	drop_data medium
}

read_files() {
	local size
	size=$(human "$big")
	need_csv
	open_view "$data/csv"
	compare_reads "$size CSV, cat" read_whole 0.75 1.2
	compare_reads "$size CSV, wc" count_words none 1.0
	compare_reads "$size CSV, awk" sum_column none 1.0
	warm_up=read_whole compare_reads "$n_random random 4 KiB reads in $size" \
		read_randomly 1.3 1.0
	note "DuckDB over CSV and Parquet: skipped: not in Debian"
	drop_data csv
	need_random
	open_view "$data/random"
	compare_reads "$size incompressible, cat" read_whole 1.0 1.2
	warm_up=read_whole \
		compare_reads "$n_random random 4 KiB reads in $size incompressible" \
		read_randomly - -
	drop_data random
}

# ---- mount to the first ls, by number of files ----
# Of a directory of 1,000 files in both: what a listing shows is no growth.

first_ls() {
	drop_caches
	"$INCRCTL" -S "$1" dataset create out >/dev/null 2>&1
	mkdir -p "$mnt"
	mounts+=("$mnt")
	timed sh -c '"$1" -S "$2" mount "$3" bench -i in=data -o out=out &&
		ls "$3/in/current/d000000"' - "$INCRCTL" "$1" "$mnt"
	unmount_views "$mnt"
}

first_ls_grown() { first_ls "$work/grown"; }
first_ls_little() { first_ls "$work/little"; }

section_reading() {
	[ -c /dev/fuse ] || {
		note "reading: skipped: no /dev/fuse"
		return
	}
	begin_section reading
	mnt=$work/mnt
	if has_room $((n_small / 60)) "trees"; then
		read_trees
	fi
	if has_room $((big >> 18)) "files of $(human "$big")"; then
		read_files
	fi
	close_view
	if has_room $((n_grown * 2)) "mount to first ls"; then
		need_grown
		rm -f "$work"/samples/*
		interleave first_ls_grown first_ls_little
		row "mount to first ls, $((n_grown * 1000)) files / 1000" \
			first_ls_grown first_ls_little 1.5
	fi
}
