#!/bin/bash
# A real git history, replayed commit by commit into a dataset, so that git is
# the oracle for views and for what changed between them.
# shellcheck disable=SC2016,SC2031  # commands of other shells; a name read there only
. "$(dirname "$0")/lib.sh"

command -v git >/dev/null || skip_all "no git"
repository=$SRCDIR
git() { command git -c safe.directory='*' -C "$repository" "$@"; }
git rev-parse --verify -q HEAD >/dev/null || skip_all "the sources are no git checkout"

# Links and submodules are no data of a dataset: such commits are left out.
mapfile -t commits < <(git rev-list --reverse --first-parent HEAD | tail -n 80)
fresh_store
"$INCRCTL" dataset create history >/dev/null

# number_of JSON: the transaction that a command reported, as tN.
number_of() {
	python3 -c 'import json, sys; print(json.loads(sys.stdin.read())["transaction"])'
}

# Paths of the given kind of change between two trees, NUL-terminated.
changed() {
	git diff-tree -r -z --no-renames --name-only --diff-filter="$1" "$2" "$3"
}

empty_tree=$(command git hash-object -t tree /dev/null)
parent=$empty_tree
declare -A point
for commit in "${commits[@]}"; do
	changed D "$parent" "$commit" >removed
	changed AMT "$parent" "$commit" >written
	last=
	if [ -s removed ]; then
		last=$(xargs -0 "$INCRCTL" rm history --json <removed | number_of) ||
			fail "rm at $commit"
	fi
	if [ -s written ]; then
		rm -rf tree && mkdir tree
		xargs -0 sh -c 'repository=$1; commit=$2; shift 2
			git -c safe.directory="*" -C "$repository" archive "$commit" -- "$@"' \
			sh "$repository" "$commit" <written | tar -xf - -C tree
		last=$("$INCRCTL" commit history tree --type update --json -m "$commit" |
			number_of) || fail "commit at $commit"
	fi
	[ -n "$last" ] || last=${point[$parent]:-}
	point[$commit]=$last
	parent=$commit
done

# tree_of COMMIT: mode and path of every file, as git has them.
tree_of() {
	git ls-tree -r "$1" | awk -F '\t' '{ print substr($1, 4, 3), $2 }' | sort
}

view_of() {
	"$INCRCTL" ls "history@$1" --json | python3 -c '
import json, sys
for line in sys.stdin:
    e = json.loads(line)
    print(e["mode"][-3:], e["path"])' | sort
}

# git knows of a mode only whether its owner may execute the file.
only_executable() {
	awk '{ $1 = $1 ~ /^7/ ? "755" : "644"; print }'
}

n=${#commits[@]}
RANDOM=4711
for _ in 1 2 3 4 5 6 7 8; do
	commit=${commits[RANDOM % n]}
	tree_of "$commit" >want
	view_of "${point[$commit]}" | only_executable >got
	t "the view at ${commit:0:8} has the files and modes of git's tree" cmp want got
	rm -rf want.d got.d && mkdir want.d
	git archive "$commit" | tar -xf - -C want.d
	"$INCRCTL" export "history@${point[$commit]}" got.d >/dev/null
	find want.d -type d -empty -delete
	t "and every byte of it" diff -r want.d got.d
done

for _ in 1 2 3 4 5 6 7 8; do
	a=${commits[RANDOM % n]} b=${commits[RANDOM % n]}
	[ "${point[$a]}" != "${point[$b]}" ] || continue
	git diff-tree -r --no-renames --name-status "$a" "$b" |
		sed 's/^D/R/; s/^T/M/' | sort >want
	"$INCRCTL" diff history "${point[$a]}..${point[$b]}" --name-status >raw
	sort raw >got
	# what was written again with the same bytes in between is a change here, none for git
	comm -13 want got | grep '^M' | cut -f 2 | while read -r path; do
		[ "$(git rev-parse "$a:$path")" = "$(git rev-parse "$b:$path")" ] &&
			printf 'M\t%s\n' "$path"
	done | sort >same_bytes
	comm -23 got same_bytes >net
	t "diff ${a:0:8}..${b:0:8} is what git says" cmp want net
done

t "verify finds nothing in the replayed history" "$INCRCTL" verify --data
done_testing
