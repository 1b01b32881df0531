#!/bin/bash
# plan, run, build, status and changes on the command line.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

view=mount
can_mount || view=copy
# Where the private mount points are made: nothing may stay behind there.
export TMPDIR=$TMP/tmp XDG_RUNTIME_DIR=
mkdir "$TMPDIR"

io=(-i in=in -o out=out)
# run [OPTION]... -- COMMAND: the transform t of this test.
run() {
	"$INCRCTL" run t --view=$view "${io[@]}" "$@"
}
copy='cp "$INCR_ADDED_IN"/* "$INCR_OUT_OUT"/ 2>/dev/null; :'

new_world() {
	fresh_store
	"$INCRCTL" dataset create in out
	mkdir -p src && rm -f src/* && echo a >src/a
	"$INCRCTL" commit in src -q
}
add() {
	echo "$1" >"$TMP/$1"
	"$INCRCTL" commit in "$TMP/$1" -q
}
clean() {
	[ -z "$(ls -A "$TMPDIR")" ] && ! mounts_below | grep -q .
}

# Definitions
new_world
t_error 2 no-input "no input" "$INCRCTL" plan t -o out=out
t_error 2 no-output "no output" "$INCRCTL" plan t -i in=in
t_error 2 input-is-output "an input that is an output" "$INCRCTL" plan t -i in=in -o out=in
t_error 2 duplicate-output "two outputs with one dataset" "$INCRCTL" plan t -i in=in -o a=out -o b=out
t_error 2 duplicate-alias "one alias twice" "$INCRCTL" plan t -i in=in -o in=out
t_exit 2 "aliases that differ in case alone" "$INCRCTL" plan t -i a-b=in -i A_B=in -o out=out
for alias in '' 1a a.b 'a b' ä "$(printf 'x%.0s' {1..65})"; do
	t_exit 2 "alias $(printf %.20q "$alias")" "$INCRCTL" plan t -i "$alias=in" -o out=out
done
t_exit 2 "an input without a dataset" "$INCRCTL" plan t -i in= -o out=out
t_exit 3 "an unknown input dataset" "$INCRCTL" plan t -i in=nothing -o out=out
t_exit 3 "an unknown output dataset" "$INCRCTL" plan t -i in=in -o out=nothing
t_error 2 unknown-alias "an unknown snapshot input" "$INCRCTL" plan t "${io[@]}" --snapshot-input no
t_error 2 unknown-alias "a write mode of an unknown alias" "$INCRCTL" plan t "${io[@]}" --write-mode no=modify
t_exit 2 "an unknown write mode" "$INCRCTL" plan t "${io[@]}" --write-mode out=rewrite
t_error 2 needs-v2 "a limit without v2" "$INCRCTL" plan t "${io[@]}" --transaction-limit in=1
t_error 2 bad-limit "a limit of nothing" "$INCRCTL" plan t "${io[@]}" --v2-semantics --transaction-limit in=0
t_error 2 needs-v2 "user deletes without v2" "$INCRCTL" plan t "${io[@]}" --allow-user-deletes
t_exit 2 "a version that is none" "$INCRCTL" plan t "${io[@]}" --semantic-version 1.5
t_exit 0 "a version below zero" "$INCRCTL" plan t "${io[@]}" --semantic-version -7
t_exit 3 "a transform that was never built" "$INCRCTL" plan t
t_exit 3 "its status" "$INCRCTL" status t
t_exit 3 "its changes" "$INCRCTL" changes t in
t_out "no transform at all" "" "$INCRCTL" status
t_out "no build at all" "" "$INCRCTL" build list
t_exit 3 "no such build" "$INCRCTL" build show b1
t_exit 2 "what is no build" "$INCRCTL" build show 1

# The first run
t_json "plan --json" "['t', 'snapshot', False, ['first-build']]" \
	'[d["transform"], d["decision"], d["is_incremental"], [r["code"] for r in d["reasons"]]]' \
	"$INCRCTL" plan t "${io[@]}" --json
t_json "its input" "['in', 'main', 'normal', 't1', 't1', None, None, 't1', 1, 0, 1]" \
	'[d["inputs"]["in"][k] for k in "dataset branch kind view_start view_end previous_end last_read read_end".split()] + [d["inputs"]["in"]["files"][k] for k in "added previous current".split()]' \
	"$INCRCTL" plan t "${io[@]}" --json
t_json "its output" "['out', 'main', 'replace', 'SNAPSHOT']" \
	'[d["outputs"]["out"][k] for k in "dataset branch write_mode transaction_type".split()]' \
	"$INCRCTL" plan t "${io[@]}" --json
t_out "nothing of its own on standard output" "hello" run -- sh -c "$copy; echo hello"
t_out "what was written is there" a "$INCRCTL" ls out
t "no mount is left behind" clean
t_json "build list" "['b1', 't', 'committed', 'snapshot']" '[d[k] for k in "build transform status decision".split()]' \
	"$INCRCTL" build list --json
t_json "build show" "['b1', 'committed', 0, ['sh', '-c'], 't2']" \
	'[d["build"], d["status"], d["exit_code"], d["command"][:2], d["outputs"]["out"]["transaction"]]' \
	"$INCRCTL" build show b1 --json
t_grep "build report" "^decision:  snapshot" "$INCRCTL" build report b1
t "build report --html" sh -c '"$INCRCTL" build report b1 --html r.html && grep -q "<title>t b1</title>" r.html'
t_json "the log names the build" "b1" 'd["build"]' "$INCRCTL" log out --json
t_grep "fresh: says so" "incrctl: t is fresh: nothing to do" run -- sh -c "$copy; echo hello"
t_out "and runs nothing" "" run -- sh -c "$copy; echo hello"
t_json "status: fresh" "['t', True, 'fresh']" '[d["transform"], d["fresh"], d["state"]]' "$INCRCTL" status --json
t_exit 0 "--exit-code when fresh" "$INCRCTL" status --exit-code
t_out "--force runs it" "hello" run --force -- sh -c "$copy; echo hello"
t_json "a forced one is incremental" "incremental" 'd["decision"]' "$INCRCTL" build show b2 --json

# What is new
add b
t_exit 10 "stale" "$INCRCTL" status t --exit-code
t_json "how far behind" "{'transactions': 1, 'files': 1, 'bytes': 2}" 'd["behind"]["in"]' "$INCRCTL" status t --json
t_out "changes" "$(printf 'A\tb')" "$INCRCTL" changes t in
t_out "changes --added" "b" "$INCRCTL" changes t in --added
t_out "changes --removed" "" "$INCRCTL" changes t in --removed
t_exit 3 "changes of an unknown alias" "$INCRCTL" changes t no
t_exit 3 "plan of an unknown name" "$INCRCTL" plan unknown
t_json "plan by the recorded definition" "incremental" 'd["decision"]' "$INCRCTL" plan t --json
t_exit 0 "plan -- COMMAND" "$INCRCTL" plan t -- sh -c other
t_out "an incremental run sees added" "b" run -- sh -c 'ls "$INCR_ADDED_IN"'
add c
t_out "its environment" "b4 t 1 [] $TMPDIR" run -- sh -c \
	'echo $INCR_BUILD $INCR_TRANSFORM $INCR_IS_INCREMENTAL "[$INCR_REASONS]" ${INCR_MOUNT%/*}'
add d
t_out "directories and placeholders" "same same same same same {out.staging} {in.nothing} {}" run -- sh -c '
	for pair in "$INCR_ADDED_IN=$1" "$INCR_PREVIOUS_IN=$2" "$INCR_CURRENT_IN=$3" "$INCR_OUT_OUT=$4" "$INCR_MOUNT/in=$INCR_IN_IN"; do
		[ "${pair%%=*}" = "${pair#*=}" ] && printf "same "
	done; echo "$5" "$6" "$7"' \
	sh '{in.added}' '{in.previous}' '{in.current}' '{out.staging}' '{{out.staging}' '{in.nothing}' '{}'
t_out "--no-replace" "{in.added}" run --force --no-replace -- echo '{in.added}'
[ $view = copy ] || t_out "views are read-only" "read-only" run --force -- sh -c \
	'touch "$INCR_ADDED_IN/x" 2>/dev/null && echo writable || echo read-only'

# JSON and --result
add e
t_json "run --json is one line on standard error" "['committed', 'incremental', 0]" \
	'[d["status"], d["decision"], d["exit_code"]]' sh -c '"$INCRCTL" run t --view='$view' -i in=in -o out=out --json -- true 2>&1 >/dev/null'
add f
t "--result" run --result result.json -- true
t_json "is the same" "committed" 'd["status"]' cat result.json
t_json "run --json of a fresh one" "['fresh', None]" '[d["decision"], d["build"]]' \
	sh -c '"$INCRCTL" run t --view='$view' -i in=in -o out=out --json -- true 2>&1 >/dev/null'
t_json "run --json of a usage error" "usage" 'd["error"]["code"]' \
	sh -c '"$INCRCTL" run t -i in=in -o out=out --json 2>&1; :'
t_exit 125 "a result that cannot be written" run --force --result /dev/full -- true

# Commands that fail
new_world
t_exit 7 "the command's exit code" run -- sh -c "$copy; exit 7"
t_json "the build failed" "['failed', 7, None]" '[d["status"], d["exit_code"], d["outputs"]["out"]["transaction"]]' \
	"$INCRCTL" build show b1 --json
t_out "nothing was committed" "" "$INCRCTL" ls out
t_exit 127 "a command that is not there" run -- no-such-command
t_grep "which says so" "no-such-command" run -- no-such-command
: >not-executable
t_exit 126 "a command that cannot be executed" run -- ./not-executable
t_exit 126 "a directory as command" run -- /
t_exit 137 "a command that is killed" run -- sh -c 'kill -KILL $$'
t_exit 143 "a command that is terminated" run -- sh -c 'kill -TERM $$'
t "no mount is left behind" clean
t_exit 125 "no command" run
t_exit 125 "an empty command" run --
t_exit 125 "the command without --" run true
t_exit 125 "an unknown input" "$INCRCTL" run t -i in=nothing -o out=out -- true
t_exit 125 "no store" "$INCRCTL" -S nothing run t "${io[@]}" -- true
t_exit 125 "--until-fresh with --force" run --until-fresh --force -- true
t_exit 9 "--keep-failed" run --keep-failed -- sh -c "$copy; exit 9"
kept=$("$INCRCTL" build list --json | head -n 1 | json 'd["build"]')
t_json "its build stays open, an orphan" "['open', True]" '[d["status"], d["orphaned"]]' "$INCRCTL" build show "$kept" --json
t_out "and can be committed" "a" sh -c '"$INCRCTL" build commit '"$kept"' -q && "$INCRCTL" ls out'
t_exit 4 "not twice" "$INCRCTL" build commit "$kept"

# Signals
add g
"$INCRCTL" run t --view=$view "${io[@]}" -- sh -c 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.05; done' >out.txt 2>&1 &
pid=$!
kill_later $pid
wait_until 10 grep -q ready out.txt
kill -TERM $pid
wait $pid
t "SIGTERM is passed on, and its exit code comes back" [ $? = 3 ]
t "the command has caught it" grep -q caught out.txt
t "nothing is left behind" clean
rm out.txt
"$INCRCTL" run t --view=$view "${io[@]}" -- sh -c 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done' >out.txt 2>&1 &
pid=$!
kill_later $pid
wait_until 10 grep -q ready out.txt
kill -TERM $pid
wait $pid
t "told to end, its command succeeds, and it commits nothing" [ $? = 143 ]
t_json "the build failed" "failed" 'd["status"]' sh -c '"$INCRCTL" build list --json | head -n 1'

# What the command leaves running, and the death of incrctl itself
new_world
t_exit 0 "a process that is left in the mount" run -- sh -c \
	'cd "$INCR_ADDED_IN"; sleep 60 >/dev/null 2>&1 & echo $! >"$0"; cp a "$INCR_OUT_OUT"' "$TMP/left"
kill "$(cat left)" 2>/dev/null
t_out "does not stop the commit" a "$INCRCTL" ls out
t "nor stays mounted" clean
"$INCRCTL" run t --view=$view "${io[@]}" --force -- sh -c 'echo $$ >"$0"; exec sleep 60' "$TMP/command" >/dev/null 2>&1 &
pid=$!
kill_later $pid
wait_until 10 [ -s command ]
kill -KILL $pid
wait $pid 2>/dev/null
kill "$(cat command)"
if [ $view = mount ]; then
	t "a killed run leaves no mount" wait_until 10 clean
fi
t_json "but an orphan" "['open', True]" '[d["status"], d["orphaned"]]' sh -c '"$INCRCTL" build list --json | head -n 1'
rm -rf "${TMPDIR:?}"/*

# Refusals
new_world
t_exit 0 "a first run is let out of --require-incremental" run --require-incremental -- sh -c "$copy"
echo A >src/a && "$INCRCTL" commit in src --type update -q
t_exit 125 "refused" run --require-incremental -- sh -c "$copy"
t_grep "with the reason" "not running incrementally: .*" run --require-incremental -- sh -c "$copy"
t_exit 5 "plan exits 5" "$INCRCTL" plan t --require-incremental
t_json "plan says input-modified" "['refused', ['input-modified'], 'a', 1]" \
	'[d["decision"], [r["code"] for r in d["reasons"]], d["reasons"][0]["path"], d["reasons"][0]["count"]]' \
	sh -c '"$INCRCTL" plan t --require-incremental --json; :'
t_out "INCR_REASONS" "input-modified 0" run -- sh -c "$copy; echo \$INCR_REASONS \$INCR_IS_INCREMENTAL"
t_json "a refused run has no build" "['refused', None, True]" '[d["decision"], d["build"], "error" in d]' \
	sh -c 'echo b >src/a && "$INCRCTL" commit in src --type update -q; "$INCRCTL" run t --view='$view' --require-incremental --json -- true 2>&1; :'

# Commits that fail keep the build
new_world
run -- sh -c "$copy" 2>/dev/null
add b
t_exit 125 "a strict append that collides" run --strict-append -- sh -c 'echo >"$INCR_OUT_OUT/a"'
t_grep "its hint" "hint: .*incrctl build commit b[0-9]+, or incrctl build abort b[0-9]+" \
	run --strict-append -- sh -c 'echo >"$INCR_OUT_OUT/a"'
last=$("$INCRCTL" build list --json | head -n 1 | json 'd["build"]')
t_error 4 strict-append-collision "build commit fails again" "$INCRCTL" build commit "$last"
t_grep "and lists the path" "^  a$" "$INCRCTL" build commit "$last"
t_grep "build abort" "$last aborted: nothing committed" "$INCRCTL" build abort "$last"
t_exit 125 "an empty replace" run --write-mode out=replace -- true
t_grep "is named" "empty-replace" run --write-mode out=replace --json -- true
t_exit 0 "--allow-empty" run --write-mode out=replace --allow-empty -- true
t_out "it is empty" "" "$INCRCTL" ls out
add c
t_exit 0 "--abort-if-empty" run --abort-if-empty -- true
t_exit 10 "commits nothing" "$INCRCTL" status t --exit-code
t_exit 0 "an abort marker" run -- sh -c "$copy; touch \"\$INCR_MOUNT/.incr/abort\""
t_out "nothing was committed" "" "$INCRCTL" ls out
t_exit 0 "--skip" run --skip
t_exit 0 "moves on" "$INCRCTL" status t --exit-code

# Preview, limits, two outputs
add p
before=$("$INCRCTL" build list --json | wc -l)
t_out "--preview sees the same" "p" run --preview -- sh -c "ls \"\$INCR_ADDED_IN\"; $copy"
t "and leaves no build" [ "$("$INCRCTL" build list --json | wc -l)" = "$before" ]
t_exit 10 "and is still stale" "$INCRCTL" status t --exit-code
t_exit 6 "a command that fails in a preview" run --preview -- sh -c 'exit 6'
new_world
for name in b c d; do add $name; done
t_out "--until-fresh" "$(printf '%s\n' a b c d)" run --v2-semantics --transaction-limit in=1 --until-fresh -- \
	sh -c "ls \"\$INCR_ADDED_IN\"; $copy"
t_out "all is there" "a b c d" sh -c '"$INCRCTL" ls out | xargs'
"$INCRCTL" dataset create out2
io=(-i in=in -o out=out -o two=out2)
t_exit 0 "two outputs" run -- sh -c 'echo >"$INCR_OUT_OUT/x"; echo >"$INCR_OUT_TWO/y"'
t_out "the second" "y" "$INCRCTL" ls out2
t_exit 0 "one of them aborted" run --force -- sh -c 'echo >"$INCR_OUT_OUT/z"; echo >"$INCR_OUT_TWO/z"; touch "$INCR_MOUNT/.incr/abort-two"'
t_out "it is as it was" "y" "$INCRCTL" ls out2
t_out "the other has it" "z" "$INCRCTL" ls out z

# Locks: another build holds the outputs
io=(-i in=in -o out=out)
run --force -- sh -c 'echo ready >ready; while [ -e ready ]; do sleep 0.05; done' 2>/dev/null &
pid=$!
kill_later $pid
wait_until 10 [ -e ready ]
t_exit 7 "a commit on an output waits, then is busy" "$INCRCTL" commit out src --type update --wait 0
t_grep "which names the branch" "holds the branch: out:main$" "$INCRCTL" commit out src --type update --wait 0
t_grep "so does deleting it name the dataset" "using the dataset: out$" "$INCRCTL" dataset delete out --yes
t_exit 125 "so is a run" run --force --wait 0 -- true
t_grep "which says busy" '"code":"busy"' run --force --wait 0 --json -- true
t_exit 0 "an input is never locked" "$INCRCTL" commit in src --type update --wait 0
t_exit 7 "a live build cannot be adopted" sh -c '"$INCRCTL" build abort "$("$INCRCTL" build list | head -n 1 | cut -d" " -f1)" --wait 0'
rm ready
wait $pid
t "it ended well" [ $? = 0 ]
"$INCRCTL" txn begin out >/dev/null
t_exit 125 "an open transaction on an output" run --force -- true
t "no mount is left behind" clean

# What cannot be stored stays where it was written, and how to go on is told
new_world
t_exit 125 "a link in the staging" run -- sh -c "$copy; ln -s a \"\$INCR_OUT_OUT/link\""
t_grep "it is named where it lies" "spool/b1/staging/out/link$" "$INCRCTL" build commit b1
t_grep "and how to go on" "^hint: incrctl build commit b1 --skip-special" "$INCRCTL" build commit b1
t_exit 0 "going on so" "$INCRCTL" build commit b1 --skip-special
t_out "leaves it out" "a" "$INCRCTL" ls out
if [ $view = mount ]; then
	t_out "the command cannot wait for its own end" 7 run --force -- sh -c '"$INCRCTL" unmount "$INCR_MOUNT" 2>/dev/null; echo $?'
	t_exit 125 "a mount that is killed with the command's last breath" run --force -- \
		sh -c 'for pid in $(pgrep -P $PPID); do [ $pid = $$ ] || kill -KILL $pid; done'
	t_out "nothing was committed" "a" "$INCRCTL" ls out
	t "no mount is left behind" clean
fi

# An input that is deleted
new_world
"$INCRCTL" dataset create other out2
"$INCRCTL" run u --view=$view -i in=other -o out=out2 -q -- true 2>/dev/null
run -q -- true 2>/dev/null
"$INCRCTL" dataset delete in --yes
t_exit 3 "status of the transform that read it" "$INCRCTL" status t
t_out "status of all tells, and goes on" "$(printf 't: error: there is no such dataset: in\nu: fresh')" "$INCRCTL" status
t_json "with --json too" "$(printf "error\nfresh")" 'd["state"]' "$INCRCTL" status --json
t_exit 10 "it is not fresh" "$INCRCTL" status --exit-code

# Outputs that were never built beside one that was
fresh_store
"$INCRCTL" dataset create in one two
echo 1 >value && "$INCRCTL" commit in value -q
"$INCRCTL" run u --view="$view" -q -i in=in -o a=one -- sh -c 'cp "$INCR_ADDED_IN/value" "$INCR_OUT_A/"' 2>/dev/null
echo 2 >value && "$INCRCTL" commit in value --type update -q
two=(-i in=in -o a=one -o b=two --require-incremental)
t_grep "a new output lets the built one be replaced, with a warning" "warning: output a is replaced" \
	"$INCRCTL" plan u "${two[@]}"
t_exit 5 "not with --all-unbuilt" "$INCRCTL" plan u "${two[@]}" --all-unbuilt
t_exit 125 "nor does it run" "$INCRCTL" run u --view="$view" "${two[@]}" --all-unbuilt -- true
t_exit 0 "which allows a first build" "$INCRCTL" plan new -i in=in -o b=two --require-incremental --all-unbuilt

done_testing
