#!/bin/bash
# Tables 3 and 4 of the rulebook, row by row: what a run finds in the views of
# its inputs and of its outputs, over the mount and over copies.
# shellcheck disable=SC2016  # commands of runs
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/sh/rulebook.sh
. "$SRCDIR/tests/sh/rulebook.sh"

LIST='names() { (cd "$1" && find . -type f | LC_ALL=C sort |
	sed "s|^\./||" | tr -d "\n"); }'

# input_is WHAT WANT [OPTION...]: run f, which writes one new file; WANT is
# added/previous/current/modified/removed of its input.
input_is() {
	local what=$1 want=$2 got status
	shift 2
	n_texts=$((n_texts + 1))
	cat >job <<END
$LIST
cd "\$INCR_IN_I" && echo "\$(names added)/\$(names previous)/\$(names \
current)/\$(names modified)/\$(names removed)" >"$TMP/seen-input"
for view in added previous current modified removed; do
	test -d \$view || echo "no \$view" >>"$TMP/seen-input"
done
echo >"\$INCR_OUT_O/out$n_texts"
END
	rm -f seen-input
	f "$@" >out 2>err
	status=$?
	got=$(cat seen-input 2>&1)
	if [ "$status $got" = "0 $want" ]; then
		pass "$VIEW, $what"
	else
		fail "$VIEW, $what" "want $want" "got  $got" "exit $status" \
			"$(cat err)"
	fi
}

table_3() {
	fresh_world
	commits I "S{a,b}"
	input_is "normal, not incremental" ab//ab//
	commits I "A{c}"
	input_is "normal, incremental" c/ab/abc//
	input_is "normal, nothing new, forced" /abc/abc// --force
	options --v2-semantics --semantic-version 2 --allow-user-deletes
	f >out 2>err
	commits I "D{a} A{d}"
	input_is "normal, with a permitted delete" d/abc/bcd//a

	fresh_world
	commits I "S{a}"
	commits J "S{x,y}"
	OPTIONS=(-i k=J -o o=O)
	"$INCRCTL" run f "${OPTIONS[@]}" --view=copy -- true >out 2>err
	OPTIONS+=(-i i=I)
	input_is "new in the list" a//a//

	fresh_world
	options --snapshot-input i
	commits I "S{a}"
	input_is "snapshot, not incremental" a//a//
	commits I "S{b} A{c}"
	input_is "snapshot, incremental" bc//bc//
	input_is "snapshot, nothing new, forced" bc//bc// --force

	fresh_world
	options --v2-semantics --transaction-limit i=2
	commits I "S{a} A{b} A{c} A{d} A{e}"
	input_is "limited, not incremental" ab//ab//
	input_is "limited, incremental" cd/ab/abcd//
	input_is "limited, last batch" e/abcd/abcde//
	input_is "limited, fresh, forced" /abcde/abcde// --force

	fresh_world
	OPTIONS=(-i i=I -i j=J -o o=O --v2-semantics --transaction-limit j=1)
	commits I "S{a}"
	commits J "S{x} A{y} A{z}"
	input_is "unlimited beside limited, first" a//a//
	input_is "unlimited beside limited, second" /a/a//
	commits I "A{b}"
	input_is "unlimited beside limited, new commit" b/a/ab//

	fresh_world
	input_is "an input without any transaction" ////
}

# output_is WHAT MODE incremental|full BEFORE AFTER PREVIOUS: the output holds
# a and b, the run writes b and c; BEFORE and AFTER are added/current.
output_is() {
	local what="$1: $2, $3" mode=$2 kind=$3 before=$4 after=$5 previous=$6 got
	local written="b c"
	[ "$mode" != append ] || written=c
	fresh_world
	writes fixed a b
	commits I "S{a,b}"
	f >out 2>err
	if [ "$kind" = full ]; then
		commits I "S{q}"
	else
		commits I "A{q}"
	fi
	options --write-mode "o=$mode"
	cat >job <<END
$LIST
cd "\$(dirname "\$INCR_OUT_O")" || exit 9
{
	names "\$INCR_PREVIOUS_O"; echo
	if [ $VIEW = mount ]; then
		echo "\$(names "\$INCR_MOUNT/o/added")/\$(names "\$INCR_CURRENT_O")"
	fi
	for path in $written; do
		echo new >"\$INCR_OUT_O/\$path"
	done
	if [ $VIEW = mount ]; then
		echo "\$(names "\$INCR_MOUNT/o/added")/\$(names "\$INCR_CURRENT_O")"
	fi
	names "\$INCR_PREVIOUS_O"; echo
} >"$TMP/seen-output"
END
	rm -f seen-output
	f >out 2>err
	got=$(paste -sd' ' seen-output)
	local want="$previous $before $after $previous"
	[ "$VIEW" = mount ] || want="$previous $previous"
	if [ "$got" = "$want" ]; then
		pass "$VIEW, output, $what"
	else
		fail "$VIEW, output, $what" "want $want" "got  $got" \
			"$(cat err)"
	fi
	view_is "$VIEW, output, $what: as committed" O "${after#*/}"
}

table_4() {
	output_is "row 1" modify incremental /ab bc/abc ab
	output_is "row 2" modify full /ab bc/abc ""
	output_is "row 3" append incremental /ab c/abc ab
	output_is "row 4" append full /ab c/abc ""
	output_is "row 5" replace incremental / bc/bc ab
	output_is "row 6" replace full / bc/bc ""
}

if can_mount; then
	VIEW=mount
	table_3
	table_4
else
	skip "tables 3 and 4 over the mount" "no FUSE here"
fi
VIEW=copy
table_3
table_4

# An output that was never built, beside one that was.
fresh_world
commits I "S{a}"
f >out 2>err
OPTIONS+=(-o p=P)
commits I "A{b}"
writes 'names "$INCR_PREVIOUS_O" >seen-output; names "$INCR_PREVIOUS_P" >>seen-output'
f >out 2>err
t_out "an output never built has no previous" a cat seen-output

done_testing
