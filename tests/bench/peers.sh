# shellcheck shell=bash
# The tools that people keep such trees in today: a first commit, one of 1 %
# more files, a check that nothing changed, peak memory and stored size.
# Every step ends with a sync where the tool does not sync by itself.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

# A peer NAME is four functions: NAME_new, NAME_commit TREE, NAME_check TREE
# and NAME_version; its repository is $work/peer.

export RESTIC_PASSWORD=bench BORG_PASSPHRASE=bench
export BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes

incr_new() { new_store "$work/peer"; }
# As git does, sync knows by its times which file needs no reading.
incr_commit() { timed "$INCRCTL" -S "$work/peer" sync data "$1" --mode mirror; }
incr_check() { incr_commit "$1"; }
incr_version() { "$INCRCTL" --version | head -n 1; }

restic_new() { restic -q init -r "$work/peer" --no-cache; }
restic_commit() {
	timed sh -c 'cd "$2" && restic -q -r "$1" backup . && sync' - "$work/peer" "$1"
}
restic_check() { restic_commit "$1"; }
restic_version() { restic version | cut -d' ' -f1,2; }

borg_new() { borg init -e none "$work/peer" 2>/dev/null; }
borg_commit() {
	timed sh -c 'cd "$2" && borg create -C zstd,1 "$1::{utcnow:%s%f}" . && sync' \
		- "$work/peer" "$1"
}
borg_check() { borg_commit "$1"; }
borg_version() { borg --version; }

ostree_new() { ostree --repo="$work/peer" init --mode=bare-user-only >/dev/null; }
ostree_commit() {
	timed sh -c 'ostree --repo="$1" commit -b data --tree=dir="$2" \
		--canonical-permissions && sync' - "$work/peer" "$1"
}
ostree_check() { ostree_commit "$1"; }
ostree_version() { ostree --version | sed -n 's/.*Version: */ostree /p' | tr -d "'"; }

casync_new() { mkdir "$work/peer"; }
casync_commit() {
	timed sh -c 'casync make --store="$1/store" "$1/tree.caidx" "$2" && sync' \
		- "$work/peer" "$1"
}
casync_check() { casync_commit "$1"; }
casync_version() { casync --version | head -n 1; }

git_new() {
	git init -q "$work/peer"
	git -C "$work/peer" config user.email bench@example.org
	git -C "$work/peer" config user.name bench
	git -C "$work/peer" config gc.auto 0
}
git_commit() {
	timed sh -c 'git --git-dir="$1/.git" --work-tree="$2" add -A &&
		git --git-dir="$1/.git" --work-tree="$2" commit -q -m data \
			--allow-empty && sync' - "$work/peer" "$1"
}
git_check() { timed git --git-dir="$work/peer/.git" --work-tree="$1" status -s; }
git_version() { git --version; }

# A dataset of git-annex holds its files in its own tree.
datalad_new() {
	git config --global user.email >/dev/null ||
		export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@example.org \
			GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@example.org
	datalad -l critical create "$work/peer" >/dev/null
}
datalad_commit() {
	cp -rT "$1" "$work/peer"
	settle
	timed sh -c 'datalad -l critical save -d "$1" -m data && sync' - "$work/peer"
}
datalad_check() { timed datalad -l critical status -d "$work/peer"; }
datalad_version() { datalad --version 2>/dev/null; }

install_peers() {
	local want=(borgbackup casync git ostree restic sqlite3 tar zstd) missing=()
	local package
	[ -z "${BENCH_DATALAD:-}" ] || want+=(datalad)
	command -v dpkg-query >/dev/null || return 0
	for package in "${want[@]}"; do
		dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null |
			grep -qx installed || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$is_root" = 1 ] || {
		note "not installed, and not root: ${missing[*]}"
		return
	}
	note "installing ${missing[*]}"
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
		--no-install-recommends "${missing[@]}" >"$work/out" 2>&1 </dev/null ||
		note "apt-get could not install ${missing[*]}"
}

# Which of them are here.
find_peers() {
	local peer
	peers=()
	for peer in ${BENCH_PEERS:-restic borg ostree casync git datalad}; do
		if command -v "$peer" >/dev/null; then
			peers+=("$peer")
		else
			note "$peer: skipped: not installed"
		fi
	done
}

print_versions() {
	local peer
	for peer in "${peers[@]}"; do
		note "version: $("${peer}_version")"
	done
	for peer in sqlite3 zstd tar; do
		command -v $peer >/dev/null &&
			note "version: $peer $($peer --version | head -n 1)"
	done
	note "DVC: skipped: not in Debian"
	[ -n "${BENCH_DATALAD:-}" ] || command -v datalad >/dev/null ||
		note "DataLad: BENCH_DATALAD=1 installs it"
}

# One round of one tool: new repository, first commit, 1 % more, check.
measure_peer() {
	local peer=$1
	rm -rf "$work/peer" "$work/tree"
	cp -al "$data/small" "$work/tree"
	"${peer}_new" || die "$peer: cannot make a repository"
	settle
	side=$peer.first
	"${peer}_commit" "$work/tree"
	mib_of "$work/peer" >"$work/samples/$peer.size"
	cp -r "$data/more" "$work/tree/more"
	settle
	side=$peer.more
	"${peer}_commit" "$work/tree"
	settle
	side=$peer.check
	"${peer}_check" "$work/tree"
	rm -rf "$work/peer" "$work/tree"
}

print_peer() {
	local peer=$1
	printf '%s: first %.4gs, 1%% more %.4gs, no change %.4gs, peak %s MiB, stored %s MiB\n' \
		"$peer" "$(seconds_of "$peer.first")" "$(seconds_of "$peer.more")" \
		"$(seconds_of "$peer.check")" "$(peak_of "$peer.first")" \
		"$(cat "$work/samples/$peer.size")"
}

# row_of_best NAME STEP GOAL: ours against the fastest of the others.
row_of_best() {
	local peer best=
	for peer in "${peers[@]}"; do
		[ -n "$best" ] && awk -v a="$(seconds_of "$peer.$2")" \
			-v b="$(seconds_of "$best.$2")" 'BEGIN { exit a >= b }' ||
			best=${best:-$peer}
		awk -v a="$(seconds_of "$peer.$2")" -v b="$(seconds_of "$best.$2")" \
			'BEGIN { exit !(a < b) }' && best=$peer
	done
	row "$1 / best of peers ($best)" "incr.$2" "$best.$2" "$3"
}

section_peers() {
	local round peer
	begin_section peers
	install_peers
	find_peers
	print_versions
	has_room $((n_small / 30)) "peers" || return 0
	need_small
	make_once more tree 1 $((n_small / 100)) 4096
	for ((round = 0; round < rounds; round++)); do
		for peer in incr "${peers[@]}"; do
			measure_peer "$peer"
		done
	done
	for peer in incr "${peers[@]}"; do
		print_peer "$peer"
	done
	[ ${#peers[@]} -gt 0 ] || return 0
	row_of_best "commit $n_small x 4 KiB" first 0.12
	row_of_best "commit of 1 % more files" more -
	row_of_best "check that nothing changed" check -
}
