# shellcheck shell=bash
# Commits against plain copies and archives of the same tree, to durable
# storage. The source is in the page cache for all of them.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

# A side: commit $source into a new store.
commit_ours() {
	new_store "$work/store"
	settle
	timed "$INCRCTL" -S "$work/store" commit --skip-special data "$source"
}

copy_and_sync() {
	rm -rf "$work/copy"
	settle
	timed sh -c 'cp -r "$1" "$2" && sync' - "$source" "$work/copy"
}

archive_and_sync() {
	rm -f "$work/archive"
	settle
	timed sh -c 'tar -C "$1" -cf - . | zstd -q -1 -T0 -o "$2" && sync' \
		- "$(as_tree "$source")" "$work/archive"
}

# The file as the only one of a folder.
as_tree() {
	[ ! -d "$1" ] || {
		echo "$1"
		return
	}
	mkdir -p "$1.tree"
	ln -f "$1" "$1.tree/"
	echo "$1.tree"
}

drop_targets() {
	rm -rf "$work/store" "$work/copy" "$work/archive"
}

peaks=()

# compare_commits NAME SOURCE COPY-GOAL ARCHIVE-GOAL
compare_commits() {
	source=$2
	rm -f "$work"/samples/*
	cat "$2"/*/* "$2" 2>/dev/null | cat >/dev/null
	interleave commit_ours copy_and_sync archive_and_sync
	row "commit $1 / cp -r + sync" commit_ours copy_and_sync "$3"
	row "commit $1 / tar|zstd -1 -T0 + sync" commit_ours archive_and_sync "$4"
	row_of_numbers "stored size of $1 / tar|zstd -1" \
		"$(mib_of "$work/store")" "$(mib_of "$work/archive")" - MiB
	peaks+=("$(peak_of commit_ours)")
	drop_targets
}

# Size in the store of $1, against tar|zstd -3.
compare_size() {
	new_store "$work/store"
	"$INCRCTL" -S "$work/store" commit -q --skip-special data "$2" \
		>/dev/null || die "cannot commit $2"
	tar -C "$2" --sort=name -cf - . | zstd -q -3 -f -o "$work/archive"
	row_of_numbers "stored size of $1 / tar|zstd -3" \
		"$(mib_of "$work/store")" "$(mib_of "$work/archive")" 1.15 MiB
	if "$INCRCTL" -S "$work/store" compact >/dev/null 2>&1; then
		row_of_numbers "the same after compact" \
			"$(mib_of "$work/store")" "$(mib_of "$work/archive")" \
			1.05 MiB
	else
		note "stored size after compact: skipped: no such verb yet"
	fi
	drop_targets
}

# ---- many commits of one small file each ----

loop_library() {
	new_store "$work/store"
	settle
	timed "$BENCH_BIN/store_loop" small "$work/store" data "$n_loop"
}

# Samples of its own, beside those of loop_writers.
loop_one() {
	loop_library
}

# As many commits, by writers at once, each into a dataset of its own.
n_writers=8
loop_writers() {
	new_store "$work/store"
	settle
	timed sh -c 'for i in $(seq "$4"); do
		"$1" small "$2" "data$i" $(($3 / $4)) & pids="$pids $!"
	done
	for pid in $pids; do wait "$pid" || exit 1; done' - \
		"$BENCH_BIN/store_loop" "$work/store" "$n_loop" "$n_writers"
}

loop_processes() {
	new_store "$work/store"
	settle
	timed bash -c 'for ((i = 0; i < $3; i++)); do
		echo "record $i of the day, with something small in it" |
			"$1" -S "$2" commit data - --name "f$i" || exit
	done' - "$INCRCTL" "$work/store" "$n_loop_processes"
}

loop_git() {
	rm -rf "$work/git"
	git init -q "$work/git"
	git -C "$work/git" config user.email bench@example.org
	git -C "$work/git" config user.name bench
	git -C "$work/git" config gc.auto 0
	settle
	timed bash -c 'cd "$1" && for ((i = 0; i < $2; i++)); do
		echo "record $i of the day, with something small in it" >"f$i"
		git add "f$i" && git -c core.fsync=all -c core.fsyncMethod=fsync \
			commit -q -m "file $i" || exit
	done' - "$work/git" "$n_loop_processes"
}

loop_sqlite() {
	rm -f "$work"/db*
	settle
	timed sh -c 'sqlite3 "$1" <"$2"' - "$work/db" "$work/inserts.sql"
}

write_inserts() {
	awk -v n="$n_loop" 'BEGIN {
		print "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
		print "CREATE TABLE file (path TEXT PRIMARY KEY, bytes BLOB);"
		for (i = 0; i < n; i++)
			printf "INSERT INTO file VALUES (\047f%08d.txt\047, " \
				"\047record %d of the day, with %d bytes of " \
				"something small in it\047);\n", i, i, i % 1000
	}' >"$work/inserts.sql"
}

compare_loops() {
	# a loop of processes takes long and is as slow in the middle as at the end
	n_loop_processes=$((n_loop / 10))
	rm -f "$work"/samples/*
	if command -v sqlite3 >/dev/null; then
		write_inserts
		interleave loop_library loop_sqlite
		row "$n_loop commits of one file, library / SQLite WAL, full sync" \
			loop_library loop_sqlite 1.2
	else
		note "SQLite: skipped: no sqlite3"
		interleave loop_library
	fi
	interleave loop_writers loop_one
	row "$n_loop commits, $n_writers writers of different datasets / one" \
		loop_writers loop_one -
	if command -v git >/dev/null; then
		interleave loop_processes loop_git
		# per commit: the library loop is ten times as long
		awk '{ print $1 / 10, $2 }' "$work/samples/loop_library" \
			>"$work/samples/loop_library_tenth"
		row "$n_loop_processes commits of one file, library / git add, commit" \
			loop_library_tenth loop_git 0.1
		row "$n_loop_processes commits of one file, incrctl loop / git loop" \
			loop_processes loop_git -
	else
		note "git: skipped: not installed"
	fi
	rm -rf "$work/git" "$work"/db* "$work/inserts.sql"
	drop_targets
}

section_committing() {
	begin_section committing
	peaks=()
	if has_room $((n_small / 40)) "trees"; then
		need_small
		compare_commits "$n_small x 4 KiB" "$data/small" 0.05 0.6
		compare_size "$n_small x 4 KiB text" "$data/small"
		need_medium
		compare_commits "$n_medium x 64 KiB" "$data/medium" - -
		drop_data medium
		need_real
		compare_commits "a real tree" "$real" - -
		compare_size "a real tree" "$real"
	fi
	if has_room $((huge >> 18)) "files of $(human "$huge")"; then
		need_half
		compare_commits "$(human "$huge") half compressible" "$data/half" \
			0.4 0.45
		drop_data half half.tree
		need_huge_random
		compare_commits "$(human "$huge") incompressible" "$data/huge" 0.5 -
		drop_data huge huge.tree
	fi
	compare_loops
	print_row "peak memory of a commit, MiB" \
		"$(printf '%s\n' "${peaks[@]}" | sort -g | tail -n 1)" 256 \
		"$(printf '%s\n' "${peaks[@]}" | sort -g | tail -n 1 |
			awk '{ print $1 / 256 }')" 1.0
}
