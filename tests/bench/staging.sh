# shellcheck shell=bash
# Writing into staging against a plain directory. goals.md of the project sets
# no number here: staging is a directory of the filesystem beneath, and
# --staging=fuse exists for those who cannot reach that.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

open_staging() {
	if mountpoint -q "$mnt"; then
		unmount_views "$mnt"
	fi
	mount_views "$work/store" "$mnt" --staging="$1"
}

write_big() {
	rm -f "$1/big"
	settle
	timed dd if=/dev/zero of="$1/big" bs=1M count=$((big >> 20))
	rm -f "$1/big"
}

write_synced() {
	rm -f "$1/big"
	settle
	timed dd if=/dev/zero of="$1/big" bs=1M count=$((big >> 20)) conv=fsync
	rm -f "$1/big"
}

write_records() {
	rm -f "$1/records"
	settle
	timed dd if=/dev/zero of="$1/records" bs=512 count=$((big >> 13))
	rm -f "$1/records"
}

write_files() {
	rm -rf "$1/staged"
	settle
	timed cp -r "$data/staged" "$1/"
	rm -rf "$1/staged"
}

staged() { "$what" "$mnt/out/staging"; }
beneath() { "$what" "$work/plain"; }

compare_writes() {
	local mode=$1 name
	shift
	while [ $# -gt 0 ]; do
		what=$1 name=$2
		shift 2
		rm -f "$work"/samples/*
		interleave staged beneath
		row "staging=$mode: $name" staged beneath -
	done
}

section_staging() {
	local mode
	[ -c /dev/fuse ] || {
		note "staging: skipped: no /dev/fuse"
		return
	}
	begin_section staging
	mnt=$work/mnt
	has_room $((big >> 18)) "staging" || return 0
	need_staged
	mkdir -p "$work/plain"
	new_store "$work/store"
	for mode in link fuse; do
		open_staging $mode
		compare_writes $mode write_big "dd of $(human "$big"), bs=1M" \
			write_synced "the same with fsync" \
			write_records "dd of $(human $((big >> 4))), bs=512" \
			write_files "cp -r of $n_staged x 4 KiB"
	done
	unmount_views "$mnt"
	rm -rf "$work/store" "$work/plain"
	drop_data staged
}
