# shellcheck shell=bash
# For tests that follow the rulebook: its notation, and runs of a transform f
# from input I (alias i) to output O (alias o), checked in one line.
#
#   fresh_world
#   commits I "S{a,b} A{c} U{a} D{b} R{c}"     # R: a DELETE of retention
#   options --v2-semantics                     # of f, from now on
#   run_is "1: first build" snapshot first-build a//a
#   last_is "1: a snapshot" O SNAPSHOT a
#
# Views are written as the rulebook does: added/previous/current, the paths
# without anything between them. A file holds one number, never used before.

n_texts=0
OPTIONS=()
RUN_OPTIONS=()
VIEW=${VIEW:-mount}

fresh_world() {
	local name
	fresh_store
	for name in I J O P G; do
		"$INCRCTL" dataset create $name >/dev/null || exit 1
	done
	OPTIONS=(-i i=I -o o=O)
	RUN_OPTIONS=()
	writes copy
}

# options OPTION...: replaces those of f but for -i i=I -o o=O.
options() {
	OPTIONS=(-i i=I -o o=O "$@")
}

# commit_one DATASET SPEC [BRANCH]: one transaction such as U{a,b}.
commit_one() {
	local dataset=$1 kind=${2%%\{*} paths=${2#*\{} branch=${3:-main} path
	local -a list=()
	IFS=, read -r -a list <<<"${paths%\}}"
	case $kind in
	D | R)
		local origin=user
		[ "$kind" = D ] || origin=retention
		"$INCRCTL" rm "$dataset" "${list[@]}" --origin $origin \
			--branch "$branch" >/dev/null
		return
		;;
	S) set -- snapshot ;;
	A) set -- append ;;
	U) set -- update ;;
	esac
	rm -rf "$TMP/source"
	mkdir "$TMP/source"
	for path in "${list[@]+"${list[@]}"}"; do
		n_texts=$((n_texts + 1))
		mkdir -p "$(dirname "$TMP/source/$path")"
		echo $n_texts >"$TMP/source/$path"
	done
	"$INCRCTL" commit "$dataset" "$TMP/source" --type "$1" \
		--branch "$branch" >/dev/null
}

# commits DATASET "SPEC SPEC..." [BRANCH]
commits() {
	local spec
	for spec in $2; do
		commit_one "$1" "$spec" "${3:-main}" || fail "commit $spec to $1"
	done
}

# What the command of f writes: copy (added under its names),
# fixed NAME..., nothing, or a line of shell.
writes() {
	cat >"$TMP/job" <<'END'
names() {
	(cd "$1" && find . -type f | LC_ALL=C sort | sed 's|^\./||' | tr -d '\n')
}
echo "$(names "$INCR_ADDED_I")/$(names "$INCR_PREVIOUS_I")/$(names "$INCR_CURRENT_I")" >seen
END
	case $1 in
	copy)
		cat >>"$TMP/job" <<'END'
for out in "${INCR_OUT_O-}" "${INCR_OUT_P-}"; do
	[ -z "$out" ] || cp -R "$INCR_ADDED_I/." "$out/" || exit 9
done
END
		;;
	fixed)
		shift
		for name; do
			n_texts=$((n_texts + 1))
			# shellcheck disable=SC2016  # for the job
			echo "echo $n_texts >\"\$INCR_OUT_O/$name\"" >>"$TMP/job"
		done
		;;
	nothing) ;;
	*) echo "$1" >>"$TMP/job" ;;
	esac
}

# Run f with more options; the result is in ./result, what it saw in ./seen.
f() {
	rm -f seen result
	"$INCRCTL" run f "${OPTIONS[@]}" "--view=$VIEW" \
		"${RUN_OPTIONS[@]+"${RUN_OPTIONS[@]}"}" --result result "$@" \
		-- sh "$TMP/job"
}

# The decision and the codes of all reasons in ./result, or in a file.
decision_of() {
	tr -d '\n' <"${1:-result}" |
		sed -n 's/.*"decision": *"\([a-z]*\)".*/\1/p'
}

reasons_of() {
	tr -d '\n' <"${1:-result}" |
		sed 's/.*"reasons": *\[//; s/\].*//' |
		grep -o '"code": *"[a-z0-9-]*"' | sed 's/.*"\(.*\)"/\1/' |
		LC_ALL=C sort -u | paste -sd' '
}

# run_is WHAT DECISION CODES VIEWS [OPTION...]: run f; VIEWS may be empty where
# nothing runs.
run_is() {
	local what=$1 decision=$2 codes=$3 views=$4 got
	shift 4
	f "$@" >out 2>err
	local status=$?
	got="$(decision_of) [$(reasons_of)] $(cat seen 2>/dev/null)"
	if [ "$got" = "$decision [$codes] $views" ]; then
		pass "$what"
	else
		fail "$what" "want $decision [$codes] $views" "got  $got" \
			"exit $status" "$(cat err)"
	fi
}

# plan_is WHAT DECISION CODES [OPTION...]
plan_is() {
	local what=$1 decision=$2 codes=$3 got
	shift 3
	"$INCRCTL" plan f --json "${OPTIONS[@]}" "$@" >plan.json 2>err
	got="$(decision_of plan.json) [$(reasons_of plan.json)]"
	if [ "$got" = "$decision [$codes]" ]; then
		pass "$what"
	else
		fail "$what" "want $decision [$codes]" "got  $got" "$(cat err)"
	fi
}

# The paths of a dataset without anything between them.
paths_of() {
	"$INCRCTL" ls "$1" -z 2>/dev/null | tr -d '\0'
}

# view_is WHAT DATASET PATHS
view_is() {
	local got
	got=$(paths_of "$2")
	if [ "$got" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "want $3" "got  $got"
	fi
}

# last_is WHAT DATASET TYPE PATHS: the newest transaction and what it wrote.
last_is() {
	local line txn got
	line=$("$INCRCTL" log "$2" --limit 1 --json)
	txn=$(sed -n 's/.*"transaction": *"\(t[0-9]*\)".*/\1/p' <<<"$line")
	got="$(sed -n 's/.*"type": *"\([A-Z]*\)".*/\1/p' <<<"$line") "
	got+=$("$INCRCTL" ls "$2" --json |
		sed -n "/\"transaction\": *\"$txn\"/s/.*\"path\": *\"\([^\"]*\)\".*/\1/p" |
		tr -d '\n')
	if [ "$got" = "$3 $4" ]; then
		pass "$1"
	else
		fail "$1" "want $3 $4" "got  $got"
	fi
}

head_of() {
	"$INCRCTL" log "$1" --limit 1 --json |
		sed -n 's/.*"transaction": *"\(t[0-9]*\)".*/\1/p'
}

# The number of the build in ./result, as b7.
build_of() {
	tr -d '\n' <result | sed -n 's/.*"build": *"\(b[0-9]*\)".*/\1/p'
}

# error_is WHAT CODE: the code word of the error in ./result.
error_is() {
	local got
	got=$(tr -d '\n' <result |
		sed -n 's/.*"error": *{[^}]*"code": *"\([a-z-]*\)".*/\1/p')
	if [ "$got" = "$2" ]; then
		pass "$1"
	else
		fail "$1" "want $2" "got  $got" "$(cat err)"
	fi
}
