#!/bin/bash
# The golden traces of section 9 of the rulebook, by number, over the mount.
# shellcheck disable=SC2016  # commands of runs
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/sh/rulebook.sh
. "$SRCDIR/tests/sh/rulebook.sh"

can_mount || skip_all "no FUSE here"

# 1: the first build, then only what is new
fresh_world
commits I "S{a}"
run_is "1: the first build reads everything" snapshot first-build a//a
last_is "1: its output is a snapshot" O SNAPSHOT a
commits I "A{b}"
run_is "1: an append is read alone" incremental "" b/a/ab
last_is "1: the output is an update" O UPDATE b
view_is "1: the output holds both" O ab

# 2: nothing new
run_is "2: nothing new is not run" fresh "" ""
run_is "2: forced, it sees nothing added" incremental "" /ab/ab --force
last_is "2: and commits an empty update" O UPDATE ""
view_is "2: the output stays" O ab

# 3: an additive update, then one that overwrites
commits I "U{c}"
run_is "3: an additive update is read alone" incremental "" c/ab/abc
commits I "U{a}"
before=$(head_of O)
options --require-incremental
for _ in 1 2; do
	run_is "4: required, it is refused" refused input-modified ""
done
t "4: the output did not change" [ "$(head_of O)" = "$before" ]
t_exit 125 "4: a refused run exits 125" f
t_exit 5 "4: a refused plan exits 5" "$INCRCTL" plan f "${OPTIONS[@]}"
options
plan_is "3: an overwritten input asks for a full run" snapshot input-modified
options --require-incremental --semantic-version 2
run_is "4: another version lets it out" snapshot \
	"input-modified semantic-version" abc//abc
last_is "3: the output is replaced" O SNAPSHOT abc

# 5: a user delete
fresh_world
options --v2-semantics
commits I "S{a,b}"
f >out 2>err
commits I "D{b}"
plan_is "5: a user delete asks for a full run" snapshot input-removed-user
options --v2-semantics --allow-user-deletes
run_is "5: permitted, previous still has the file" incremental "" /ab/a
view_is "5: the output still has it" O ab

# 6: a retention delete
for flags in "" "--allow-retention" "--allow-user-deletes" \
	"--allow-retention --allow-user-deletes"; do
	fresh_world
	# shellcheck disable=SC2086  # two options
	options --v2-semantics $flags
	commits I "S{a,b}"
	f >out 2>err
	commits I "R{b}"
	case $flags in
	*retention*) plan_is "6: retention with $flags" incremental "" ;;
	*)
		plan_is "6: retention with ${flags:-neither}" snapshot \
			input-removed-retention
		;;
	esac
done

# 7: what comes and goes unread
fresh_world
commits I "S{a}"
f >out 2>err
commits I "A{d} D{d}"
run_is "7: added and deleted unread is nothing" incremental "" /a/a
commits I "A{d} U{d}"
run_is "7: added and overwritten unread is added" incremental "" d/a/ad
t_out "7: it is the newer version" "$("$INCRCTL" cat I d)" "$INCRCTL" cat O d

# 8: a snapshot of the input
fresh_world
commits I "S{a}"
f >out 2>err
commits I "S{z}"
plan_is "8: a snapshot asks for a full run" snapshot input-snapshot
options --snapshot-input i
run_is "8: a snapshot input is always added" incremental "" z//z
last_is "8: the output is an update" O UPDATE z
options
commits I "S{y}"
run_is "8: as an ordinary input again" snapshot input-snapshot y//y
last_is "8: its output is a snapshot" O SNAPSHOT y

# 9: history out of snapshots
fresh_world
options --snapshot-input i
for day in 1 2 3; do
	commits I "S{x}"
	writes "cp \"\$INCR_ADDED_I/x\" \"\$INCR_OUT_O/day$day\""
	f >out 2>err
	run_is "9: no new snapshot on day $day" fresh "" ""
done
view_is "9: each snapshot is kept" O day1day2day3

# 10: strict append
fresh_world
commits I "S{a}"
options --strict-append
writes fixed out
f >out 2>err
last_is "10: the first run is a snapshot" O SNAPSHOT out
"$INCRCTL" run g -i i=O -o o=G "--view=$VIEW" -- \
	sh -c 'cp "$INCR_ADDED_I"/* "$INCR_OUT_O"' >out 2>err
commits I "A{b}"
t_exit 125 "10: a fixed name collides" f
error_is "10: the error says so" strict-append-collision
last_is "10: the output did not change" O SNAPSHOT out
t "10: the staging can be thrown away" "$INCRCTL" build abort "$(build_of)"
options
writes fixed out
run_is "10: without strict append it overwrites" incremental "" b/a/ab
last_is "10: as an update" O UPDATE out
"$INCRCTL" plan g --json -i i=O -o o=G >plan.json 2>err
t "10: which downstream cannot follow" \
	[ "$(decision_of plan.json) $(reasons_of plan.json)" = "snapshot input-modified" ]

# 11: limits
fresh_world
options --v2-semantics --transaction-limit i=3
commits I "S{A} A{B} A{C}"
run_is "11: the first batch" snapshot first-build ABC//ABC
commits I "A{D} A{E} A{F} A{G} A{H} A{I} A{J}"
for want in DEF/ABC/ABCDEF GHI/ABCDEF/ABCDEFGHI J/ABCDEFGHI/ABCDEFGHIJ; do
	run_is "11: the batch $want" incremental "" $want
done
run_is "11: then it is fresh" fresh "" ""
commits I "U{x}"
run_is "11: an update fails it" error limit-bad-transaction ""
t_exit 125 "11: with exit 125" f

# 12: one output of two is aborted
fresh_world
OPTIONS+=(-o p=P)
commits I "S{a}"
f >out 2>err
commits I "A{b}"
writes 'cp -R "$INCR_ADDED_I/." "$INCR_OUT_O/"; touch "$INCR_MOUNT/.incr/abort-p"'
run_is "12: one output is thrown away" incremental "" b/a/ab
view_is "12: the other commits" O ab
view_is "12: the aborted one stays" P a
plan_is "12: the next run is not incremental" snapshot provenance-inconsistent
plan_is "12: nor allowed when required" refused provenance-inconsistent \
	--require-incremental

# 13: the output was touched
fresh_world
commits I "S{a}"
f >out 2>err
commits O "A{h}"
run_is "13: required, it is refused" refused output-foreign-commit "" \
	--require-incremental
view_is "13: and the file stays" O ah
run_is "13: else it is replaced" snapshot output-foreign-commit a//a
view_is "13: and the file is gone" O a

# 14: retention on the output
fresh_world
commits I "S{a,b}"
f >out 2>err
commits O "R{b}"
commits I "A{c}"
plan_is "14: retention on the output" snapshot output-retention-delete
options --allow-retention
writes 'names "$INCR_PREVIOUS_O" >seen-output; touch "$INCR_OUT_O/c"'
run_is "14: allowed, it goes on" incremental "" c/ab/abc
t_out "14: previous lacks the file" a cat seen-output

# 15: an output joins
fresh_world
commits I "S{a}"
f >out 2>err
OPTIONS+=(-o p=P)
commits I "A{b}"
writes 'cp -R "$INCR_ADDED_I/." "$INCR_OUT_O/"; cp -R "$INCR_ADDED_I/." "$INCR_OUT_P/"; names "$INCR_PREVIOUS_P" >seen-output'
run_is "15: a new output does not block" incremental "" b/a/ab
view_is "15: it gets only the increment" P b
t_out "15: its previous is empty" "" cat seen-output

# 16: an input joins
fresh_world
commits I "S{a}"
commits J "S{x} A{y}"
f >out 2>err
OPTIONS+=(-i j=J)
commits I "A{b}"
writes 'echo "$(names "$INCR_ADDED_J")/$(names "$INCR_PREVIOUS_J")/$(names "$INCR_CURRENT_J")" >seen-other'
run_is "16: the old input goes on" incremental "" b/a/ab
t_out "16: the new one is read whole" xy//xy cat seen-other

# 17: a branch
fresh_world
for spec in "S{a}" "A{b}" "A{c}"; do
	commits I "$spec"
	f >out 2>err
done
"$INCRCTL" branch I create dev --at main >/dev/null
commits I "A{d}" dev
run_is "17: a branch goes on from the last run" incremental "" d/abc/abcd \
	--branch dev --fallback main
view_is "17: its output has all" O:dev abcd
view_is "17: main has not" O abc
run_is "17: main is fresh" fresh "" ""

# 18: the head of an input moved back
fresh_world
commits I "S{a}"
first=$(head_of I)
commits I "A{b}"
f >out 2>err
"$INCRCTL" branch I reset main "$first" >/dev/null
run_is "18: moved back is an error" error branch-order ""
plan_is "18: another version cures it" snapshot semantic-version \
	--semantic-version 2
commits I "A{c}"
plan_is "18: a new line is an error" error processed-transaction-not-in-view
commits I "S{q}"
plan_is "18: a snapshot on it is not" snapshot input-snapshot

# 19: the output rolled back
fresh_world
commits I "S{a}"
f >out 2>err
first=$(head_of O)
for path in b c; do
	commits I "A{$path}"
	f >out 2>err
done
"$INCRCTL" branch O reset main "$first" >/dev/null
run_is "19: rolled back, it reads again" incremental "" bc/a/abc

# 20: a run fails
fresh_world
commits I "S{a}"
f >out 2>err
commits I "A{b}"
writes 'touch "$INCR_OUT_O/b"; exit 3'
t_exit 3 "20: the exit code of the command" f
view_is "20: nothing is committed" O a
commits I "A{c}"
writes copy
run_is "20: the next run sees it all" incremental "" bc/a/abc

# 21: merge and replace
fresh_world
commits I "S{a}"
writes fixed sum
f >out 2>err
"$INCRCTL" run g -i i=O -o o=G "--view=$VIEW" -- \
	sh -c 'cp "$INCR_ADDED_I"/* "$INCR_OUT_O"' >out 2>err
options --write-mode o=replace
commits I "A{b}"
writes 'names "$INCR_PREVIOUS_O" >seen-output; echo more >"$INCR_OUT_O/sum"'
run_is "21: replace in an incremental run" incremental "" b/a/ab
t_out "21: previous is readable" sum cat seen-output
last_is "21: the output is a snapshot" O SNAPSHOT sum
commits I "A{c}"
plan_is "21: the next run is incremental" incremental ""
"$INCRCTL" plan g --json -i i=O -o o=G >plan.json 2>err
t "21: downstream is not" \
	[ "$(decision_of plan.json) $(reasons_of plan.json)" = "snapshot input-snapshot" ]

# 22: replace with nothing
fresh_world
commits I "S{a}"
options --write-mode o=replace
f >out 2>err
commits I "A{b}"
writes nothing
t_exit 125 "22: an empty replace is refused" f
error_is "22: the error says so" empty-replace
view_is "22: the output stays" O a
t "22: it can be allowed" "$INCRCTL" build commit "$(build_of)" --allow-empty
view_is "22: and then it is empty" O ""
commits I "A{c}"
writes 'touch "$INCR_OUT_O/x" "$INCR_MOUNT/.incr/abort"'
before=$(head_of O)
t_exit 0 "22: an aborted run succeeds" f
t "22: and commits nothing" [ "$(head_of O)" = "$before" ]

# 23: versions
fresh_world
commits I "S{a}"
f >out 2>err
run_is "23: the default version is 1" incremental "" /a/a --force \
	--semantic-version 1
run_is "23: another version" snapshot semantic-version a//a \
	--semantic-version 2
run_is "23: once" incremental "" /a/a --force --semantic-version 2
run_is "23: back again" snapshot semantic-version a//a --semantic-version 1

# 24: a crash between staging and commit
fresh_world
commits I "S{a}"
f >out 2>err
commits I "A{b}"
mkdir mount
"$INCRCTL" mount mount f "${OPTIONS[@]}" --foreground >out 2>err &
kill_later $!
t "24: the mount comes up" wait_until 20 test -d mount/o/staging
echo half >mount/o/staging/b
kill -9 $!
wait $! 2>/dev/null
view_is "24: nothing is visible" O a
run_is "24: nothing is locked" incremental "" b/a/ab
view_is "24: and the run commits" O ab

done_testing
